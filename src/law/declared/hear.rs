//! What a report does to a ledger (rule 6).

#![allow(
    clippy::arithmetic_side_effects,
    reason = "amounts and times are below 2⁶², spans below 2⁵⁶, and products are made in 128 bits"
)]

use super::infer::SOON;
use super::ledger::{
    LONGEST_SPAN, Ledger, MOST_TOKENS, Source, Within, after, amount, signed, to_i64,
};
use super::level::{LONGEST_STOP, brought};
use super::report::LimitName;
use crate::fixed::SECOND;

/// So many resets in a row that brought nothing back say that they have another meaning.
const DOUBTS: u8 = 2;

/// What a report did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// It is the first one of this limit.
    Declared,
    /// It declares another limit or window than before.
    Changed,
    /// It was taken.
    Taken,
    /// It shows that what is told has another meaning: the limit is given up.
    GivenUp,
    /// It is older than what is known.
    Late,
    /// It says too little to go by, or what cannot be.
    Wrong,
}

/// When a limit is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResetAt {
    In(u64),
    /// Since 1970.
    At(u64),
}

/// A report, and where the limiter stood.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub(crate) now: u64,
    /// When the request was sent, and its position among the sends, itself included.
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

impl Ledger {
    /// Returns the ledger after a report, and what that did.
    pub(crate) fn report(&self, told: &Told) -> (Self, Heard) {
        if self.given_up && told.now < self.heard_at.saturating_add(LONGEST_STOP) {
            return (*self, Heard::Late);
        }
        if self.given_up {
            return Self::default().report(told);
        }
        let told = &self.in_seconds(told);
        // What was inferred may be wrong. All is begun anew then.
        if self.falls_by_millis(told) {
            let anew = Self {
                millis: true,
                ..Self::default()
            };
            return anew.report(told);
        }
        let mut next = self.rolled(told.now, told.sent).unwrap_or(*self);
        // What is not told is at least what is left, or what a request takes.
        let least = told.remaining.max(told.weight.into());
        let limit = told.limit.unwrap_or(self.limit.max(least));
        if limit == 0 || limit > MOST_TOKENS || told.remaining > MOST_TOKENS {
            return (*self, Heard::Wrong);
        }
        let trip = told.now.saturating_sub(told.sent_at).min(LONGEST_SPAN);
        next.trip = match next.trip {
            0 => trip,
            mean => mean - mean / 8 + trip / 8,
        };
        if let Some(date) = told.date {
            next.note_date(date, told);
        }
        let window = told.window.filter(|span| (1..=LONGEST_SPAN).contains(span));
        let reset = next.reset_of(told, window);
        let reset = reset.map(|reset| next.steadied(told, reset));
        if window.is_none() && reset.is_none() && next.window == 0 {
            return (*self, Heard::Wrong);
        }
        next.heaviest = (next.heaviest - next.heaviest / 64).max(u64::from(told.weight));
        next.heard_at = told.now;
        (next.told, next.told_order, next.told_left) = (true, told.order, told.remaining);
        next.limit_told |= told.limit.is_some();
        let before = (self.limit, self.told_window());
        let changed = limit != self.limit;
        if changed {
            (next.limit, next.moved, next.kept) = (limit, 0, 0);
            next.left = next.left.min(to_i64(amount(limit)));
        }
        next.note_kind(told);
        next.note_window(window, reset, told);
        if !self.is_declared() {
            next.policy = told.policy;
            next.anchor(told, reset, false);
            (next.first, next.fresh) = (true, true);
            return (next, Heard::Declared);
        }
        let Some(same_window) = next.is_news(told, reset) else {
            let heard = next.note_less(told, reset);
            return (next, heard);
        };
        let lacks = next.is_not_back(self, told, reset);
        if next.doubt >= DOUBTS {
            next.given_up = true;
            return (next, Heard::GivenUp);
        }
        let mut counted = same_window && !changed && !lacks && next.doubt == 0;
        if let (Some(reset), false) = (reset, changed) {
            next.test(told, reset);
            next.learn_window(self, told, reset);
            counted &= !next.note_rise(told, reset);
        }
        if same_window && !changed && next.overtakes(told, reset) {
            next.own = next.mean(next.own, next.own_since(told), 0);
            next.position = told.order;
        } else {
            next.anchor(told, reset, counted);
        }
        let after = (next.limit, next.told_window());
        let other = after != before && (changed || before.1.is_some());
        let heard = if other { Heard::Changed } else { Heard::Taken };
        (next, heard)
    }

    /// Returns whether a report goes on from the anchor, in the same window; `None` if it says
    /// nothing new.
    fn is_news(&self, told: &Told, reset: Option<Within>) -> Option<bool> {
        let newer = after(told.order, self.position) > 0;
        if self.comes_back() {
            if newer {
                return Some(true);
            }
            // After a silent window what is left is a guess. What was sent in that window is heard
            // of later, and so is the last send before a second one.
            let since_roll = after(told.order, self.rolled) > 0;
            let knows = self.fresh && (since_roll || told.order == self.position);
            return knows.then_some(false);
        }
        let Some(reset) = reset.filter(|_| self.reset.is_known()) else {
            return newer.then_some(true);
        };
        if self.reset.meets(reset) {
            let opens = self.fresh && !self.first;
            return (newer || opens).then_some(true);
        }
        if reset.is_after(self.reset) {
            let ended = signed(told.now) >= self.reset.lo;
            return (ended || newer).then_some(!ended);
        }
        // A reset before the current one. If this one has been heard of, and was to come a window
        // later, it is of the window before: another request came to the service after it.
        let next = reset.moved(signed(self.window));
        let is_past = !self.fresh && next.meets(self.reset);
        (newer && !is_past).then_some(true)
    }

    /// Returns `true` if a report is the first of a window that has begun at the reset that was
    /// told before, and says that it brought nothing back. Notes if it did.
    fn is_not_back(&mut self, last: &Self, told: &Told, reset: Option<Within>) -> bool {
        let age = told.now.saturating_sub(self.at);
        // Later in the window others may have taken it.
        let soon = age < self.window / 2 && last.heard_at.saturating_add(self.window) >= self.at;
        let resets = !self.comes_back() && self.reset.is_known();
        let rough = self.source == Source::Told && self.is_rough(reset);
        // Where the reset is told well, it shows of which window a report is that was sent before.
        let is_of_it = rough || after(told.order, self.rolled) > 0;
        if !(self.fresh && !self.first && resets && is_of_it && soon) {
            return false;
        }
        if self.is_back(told) {
            self.doubt = 0;
            if self.opens {
                self.open(told, told.sent_at);
            }
            return false;
        }
        if rough {
            // It may have begun later. Asked again after as long as it was late by.
            self.opens = true;
            self.reset = Within {
                lo: signed(told.sent_at),
                hi: signed(told.now.saturating_add(age.max(self.trip))),
            };
            return true;
        }
        // A sooner reset is of a limit that slides, and a later one of a longer window. One that is
        // where it was to be expected shows that a window has begun, unless any reset is that soon.
        let is_any = self.source < Source::Told && self.window < SOON;
        if is_any && reset.is_none_or(|reset| self.reset.meets(reset)) {
            self.doubt += 1;
        }
        true
    }

    /// Returns `true` if what a report says is left, with what may have been taken in the window,
    /// is half of the limit or more.
    fn is_back(&self, told: &Told) -> bool {
        let own = after(told.order, self.rolled).max(i64::from(told.weight));
        let others = brought(self.others, told.now.saturating_sub(self.at)) * 2;
        amount(told.remaining) + amount(own.unsigned_abs()) + others >= amount(self.limit) / 2
    }

    /// Returns `true` if a report says that more is left than the last one, soon after it: a
    /// request sent before it came to the service later, and the last report has that in it.
    fn overtakes(&self, told: &Told, reset: Option<Within>) -> bool {
        let soon = told.now < self.at.saturating_add(self.trip.saturating_mul(2));
        let newer = after(told.order, self.position) > 0;
        let before = self.left_before(told.now.saturating_sub(self.at));
        let is_more = amount(told.remaining) >= before;
        soon && newer && !self.fresh && is_more && !self.has_risen(told, reset)
    }

    /// Takes from a report of an older send what it says less: that request came to the service
    /// after the one of the last report.
    fn note_less(&mut self, told: &Told, reset: Option<Within>) -> Heard {
        let meets = reset.is_some_and(|reset| self.reset.meets(reset));
        let since_roll = after(told.order, self.rolled) > 0;
        let left = to_i64(amount(told.remaining));
        if self.fresh || left >= self.left || !(self.comes_back() || (meets && since_roll)) {
            return Heard::Late;
        }
        self.left = left;
        Heard::Taken
    }

    /// Returns by how much a report says more than the last one left.
    pub(super) fn more(&self, told: &Told) -> i128 {
        let sent = amount(after(told.order, self.position).max(0).unsigned_abs());
        amount(told.remaining) - i128::from(self.left) + sent
    }

    /// Anchors what is left to a report. `counted` says that what others took since the last one is
    /// known from it.
    fn anchor(&mut self, told: &Told, reset: Option<Within>, counted: bool) {
        let left = to_i64(amount(told.remaining.min(self.limit)));
        if counted {
            self.note_rates(told, left, told.now.saturating_sub(self.at));
        }
        (self.fresh, self.first) = (false, false);
        (self.left, self.position, self.at) = (left, told.order, told.now);
        if let Some(reset) = reset {
            self.reset = if self.reset.meets(reset) {
                self.reset.and(reset)
            } else {
                reset
            };
        }
    }

    /// Returns what was left `passed` after the anchor, if nothing was sent.
    fn left_before(&self, passed: u64) -> i128 {
        let left = i128::from(self.left);
        if self.comes_back() {
            return (left + self.back(passed)).min(amount(self.limit));
        }
        left
    }

    /// Returns what this limiter sent between the anchor and a report.
    fn own_since(&self, told: &Told) -> i128 {
        // One that was in flight over a reset is counted in the window after it. What is missing is
        // its own if this client seems to be alone.
        let least = if self.is_alone() {
            told.weight.into()
        } else {
            0
        };
        amount(after(told.order, self.position).max(least).unsigned_abs())
    }

    /// Averages what this limiter and others took between the anchor and a report.
    fn note_rates(&mut self, told: &Told, left: i64, passed: u64) {
        let passed = passed.min(LONGEST_SPAN);
        let own = self.own_since(told);
        let others = self.left_before(passed) - own - i128::from(left);
        self.others = self.mean(self.others, others, passed).max(0);
        self.net = self.mean(self.net, others, passed);
        self.own = self.mean(self.own, own, passed);
    }

    /// Returns the average of a rate and of what was taken in the time that passed.
    pub(super) fn mean(&self, rate: i64, tokens: i128, passed: u64) -> i64 {
        let tau = (5 * SECOND)
            .max(self.trip.saturating_mul(4))
            .min(LONGEST_SPAN);
        let gained = (tokens << 12) * i128::from(SECOND);
        let sum = i128::from(rate) * i128::from(tau) + gained;
        to_i64(sum / i128::from(tau + passed))
    }
}
