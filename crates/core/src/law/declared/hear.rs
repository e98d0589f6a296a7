//! What a report does to a ledger (rule 6).

use super::infer::SOON;
use super::ledger::{
    LONGEST_SPAN, LONGEST_STOP, Ledger, MOST_TOKENS, Source, Within, after, amount, signed, to_i64,
};
use super::report::{LimitName, Observed};
use super::seen::{Seen, brought};

/// So many resets in a row that brought nothing back show that the resets have another meaning.
const DOUBTS: u8 = 2;

/// When a limit is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResetAt {
    In(u64),
    /// At nanoseconds since 1970, by the service's clock.
    At(u64),
}

/// A report, and the limiter's position when it came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub(crate) now: u64,
    /// When the request was sent, and its position after its own send.
    pub(crate) sent_at: u64,
    pub(crate) order: u64,
    pub(crate) weight: u32,
    /// The position of the last request sent.
    pub(crate) sent: u64,
    pub(crate) policy: LimitName,
    pub(crate) limit: Option<u64>,
    pub(crate) remaining: u64,
    pub(crate) window: Option<u64>,
    pub(crate) reset: Option<ResetAt>,
    pub(crate) refills: Option<bool>,
    /// The time by the service's clock since 1970, in whole seconds.
    pub(crate) date: Option<u64>,
}

/// A report while a ledger takes it in.
pub(super) struct Hearing<'a> {
    pub(super) told: &'a Told,
    /// When the limit is whole, by the report.
    pub(super) reset: Option<Within>,
    /// The ledger before the report, and the ledger after it.
    pub(super) last: &'a Ledger,
    pub(super) next: Ledger,
}

impl Ledger {
    /// Returns the ledger after a report, and what the report did: `None` if the report says too
    /// little, or something impossible.
    pub(crate) fn report(&self, told: &Told) -> (Self, Option<Observed>) {
        if self.given_up {
            if told.now < self.heard_at.saturating_add(LONGEST_STOP) {
                return (*self, Some(Observed::Nothing));
            }
            return Self::default().report(told);
        }
        let told = &self.clock.in_seconds(told);
        let hearing = Hearing {
            told,
            reset: None,
            last: self,
            next: self.rolled(told.now, told.sent).unwrap_or(*self),
        };
        // What was inferred from seconds is wrong. The ledger begins anew.
        if hearing.falls_by_millis() {
            let mut anew = Self::default();
            anew.clock.millis = true;
            return anew.report(told);
        }
        let taken = hearing.taken();
        taken.map_or((*self, None), |(next, observed)| (next, Some(observed)))
    }
}

impl Hearing<'_> {
    /// Takes the report, and returns what it did; `None` if the report says too little, or
    /// something impossible.
    fn taken(mut self) -> Option<(Ledger, Observed)> {
        let (told, last) = (self.told, self.last);
        // A limit that is not told is at least what is left, or what this request takes.
        let taken = told.remaining.max(told.weight.into());
        let limit = told.limit.unwrap_or(last.limit.max(taken));
        if limit == 0 || limit > MOST_TOKENS || told.remaining > MOST_TOKENS {
            return None;
        }
        let trip = told.now.saturating_sub(told.sent_at).min(LONGEST_SPAN);
        self.next.seen.note_request(trip, told.weight);
        self.next.clock.note(told);
        let window = told.window.filter(|span| (1..=LONGEST_SPAN).contains(span));
        self.reset = self.reset_of(window);
        let next = &mut self.next;
        if window.is_none() && self.reset.is_none() && next.window == 0 {
            return None;
        }
        next.heard_at = told.now;
        (next.told, next.told_order, next.told_left) = (true, told.order, told.remaining);
        next.limit_told |= told.limit.is_some();
        let before = (last.limit, last.told_window());
        let changed = limit != last.limit;
        if changed {
            (next.limit, next.moved, next.kept) = (limit, 0, 0);
            next.left = next.left.min(to_i64(amount(limit)));
        }
        self.note_kind();
        self.note_window(window);
        if !last.is_declared() {
            self.next.policy = told.policy;
            self.anchor(false);
            (self.next.first, self.next.fresh) = (true, true);
            return Some((self.next, Observed::Declared));
        }
        let Some(same_window) = self.is_news() else {
            let observed = self.note_less();
            return Some((self.next, observed));
        };
        let lacks = self.is_not_back();
        if self.next.doubt >= DOUBTS {
            self.next.given_up = true;
            return Some((self.next, Observed::GivenUp));
        }
        let mut counted = same_window && !changed && !lacks && self.next.doubt == 0;
        if let (Some(reset), false) = (self.reset, changed) {
            self.test(reset);
            self.learn_window(reset);
            counted &= !self.note_rise();
        }
        if same_window && !changed && self.overtakes() {
            let (own, seen) = (self.own_since(), &mut self.next.seen);
            seen.own = Seen::mean(seen.own, own, 0);
            self.next.position = told.order;
        } else {
            self.anchor(counted);
        }
        let after = (self.next.limit, self.next.told_window());
        let other = after != before && (changed || before.1.is_some());
        let observed = other.then_some(Observed::Changed);
        Some((self.next, observed.unwrap_or(Observed::Taken)))
    }

    /// Returns how far after `position` the request was sent; negative if before.
    pub(super) const fn sent_after(&self, position: u64) -> i64 {
        after(self.told.order, position)
    }

    /// Returns the time from the anchor to the report.
    const fn age(&self) -> u64 {
        self.told.now.saturating_sub(self.next.at)
    }

    /// Returns `true` if the report is of the anchor's window, `false` if it is of a later one;
    /// `None` if it says nothing new.
    fn is_news(&self) -> Option<bool> {
        let Self { told, next, .. } = self;
        let newer = self.sent_after(next.position) > 0;
        if next.comes_back() {
            if newer {
                return Some(true);
            }
            // After a silent window what is left is a guess. Reports of requests sent in that
            // window come later, as does that of the last send before a second silent window.
            let since_roll = self.sent_after(next.rolled) > 0;
            let knows = next.fresh && (since_roll || told.order == next.position);
            return knows.then_some(false);
        }
        let Some(reset) = self.reset.filter(|_| next.reset.is_known()) else {
            return newer.then_some(true);
        };
        if next.reset.meets(reset) {
            let opens = next.fresh && !next.first;
            return (newer || opens).then_some(true);
        }
        if reset.is_after(next.reset) {
            let ended = signed(told.now) >= next.reset.lo;
            return (ended || newer).then_some(!ended);
        }
        // The report's reset is before the current one. If the current reset has been heard of, and
        // lies a window later, the report is of the window before.
        let is_past = !next.fresh && reset.moved(signed(next.window)).meets(next.reset);
        (newer && !is_past).then_some(true)
    }

    /// Returns `true` if the report is the first after the told reset, and says that the reset
    /// brought nothing back. Otherwise notes a reset that did.
    fn is_not_back(&mut self) -> bool {
        let (told, age, next) = (self.told, self.age(), &self.next);
        // Later in the window others may have taken what came back.
        let heard_at = self.last.heard_at.saturating_add(next.window);
        let soon = age < next.window / 2 && heard_at >= next.at;
        let rough = next.source == Source::Told && self.is_rough();
        // An exactly told reset shows the window of a report whose request was sent before the
        // reset.
        let is_of_it = rough || self.sent_after(next.rolled) > 0;
        if !(next.fresh && !next.first && next.resets() && is_of_it && soon) {
            return false;
        }
        if self.is_back() {
            self.next.doubt = 0;
            if self.next.opens {
                self.open(told.sent_at);
            }
            return false;
        }
        let next = &mut self.next;
        if rough {
            // The window may begin later. The client asks again after as long as the window is
            // late.
            next.opens = true;
            next.reset = Within {
                lo: signed(told.sent_at),
                hi: signed(told.now.saturating_add(age.max(next.seen.trip))),
            };
            return true;
        }
        // A sooner reset shows a sliding limit, and a later one a longer window. A reset where it
        // was expected shows that a window has begun, unless resets are always near.
        let is_any = next.source < Source::Told && next.window < SOON;
        if is_any && self.reset.is_none_or(|reset| next.reset.meets(reset)) {
            next.doubt += 1;
        }
        true
    }

    /// Returns `true` if half of the limit or more has come back: what the report says is left, and
    /// what may have been taken in the window.
    fn is_back(&self) -> bool {
        let Self { told, next, .. } = self;
        let own = self.sent_after(next.rolled).max(i64::from(told.weight));
        let others = brought(next.seen.others, self.age()) * 2;
        amount(told.remaining) + amount(own.unsigned_abs()) + others >= amount(next.limit) / 2
    }

    /// Returns `true` if the report, soon after the last one, says that more is left. Its request
    /// then reached the service before the last report's, which includes both.
    fn overtakes(&self) -> bool {
        let Self { told, next, .. } = self;
        let soon = told.now < next.at.saturating_add(next.seen.trip.saturating_mul(2));
        let newer = self.sent_after(next.position) > 0;
        let is_more = amount(told.remaining) >= self.left_before(self.age());
        soon && newer && !next.fresh && is_more && !self.has_risen()
    }

    /// Takes the report of an older send if it says that less is left. Its request reached the
    /// service after the request of the last report.
    fn note_less(&mut self) -> Observed {
        let next = &self.next;
        let meets = self.reset.is_some_and(|reset| next.reset.meets(reset));
        let since_roll = self.sent_after(next.rolled) > 0;
        let left = to_i64(amount(self.told.remaining));
        if next.fresh || left >= next.left || !(next.comes_back() || (meets && since_roll)) {
            return Observed::Nothing;
        }
        self.next.left = left;
        Observed::Taken
    }

    /// Anchors what is left to the report. `counted` says that the report shows what others took
    /// since the last anchor.
    fn anchor(&mut self, counted: bool) {
        let told = self.told;
        let left = to_i64(amount(told.remaining.min(self.next.limit)));
        if counted {
            let (own, passed) = (self.own_since(), self.age().min(LONGEST_SPAN));
            let others = self.left_before(passed) - own - i128::from(left);
            self.next.seen.note_taken(own, others, passed);
        }
        let next = &mut self.next;
        (next.fresh, next.first) = (false, false);
        (next.left, next.position, next.at) = (left, told.order, told.now);
        if let Some(reset) = self.reset {
            next.reset = if next.reset.meets(reset) {
                next.reset.and(reset)
            } else {
                reset
            };
        }
    }

    /// Returns what would be left `passed` after the anchor, without any sends.
    fn left_before(&self, passed: u64) -> i128 {
        let next = &self.next;
        let left = i128::from(next.left);
        if next.comes_back() {
            return (left + next.back(passed)).min(amount(next.limit));
        }
        left
    }

    /// Returns what this limiter sent between the anchor and the report.
    fn own_since(&self) -> i128 {
        // A request in flight over a reset counts in the window after it. If this client seems
        // alone, what is missing was its own request.
        let least = if self.next.seen.is_alone() {
            self.told.weight.into()
        } else {
            0
        };
        let own = self.sent_after(self.next.position).max(least);
        amount(own.unsigned_abs())
    }
}
