//! The words of declared limits. Each limit is replaced as a whole, and the word `edge` says up to
//! where requests may go.
//!
//! A report reads all words of a limit and computes the next value by the pure rules of
//! `law/declared`. `multi_word.rs` then publishes that value in another copy. A thread that stops
//! in between loses its report, and the next report says the same.
//!
//! A send need not read the limits. `edge` is the position up to which sends may go, with the
//! `version` of the limits from which the edge was computed. Each change of a limit raises
//! `version` afterwards. A thread that finds another version in `edge` reads the limits, begins the
//! windows that have begun, and writes `edge` anew. Between a change and its raise a send may go by
//! the old limits. Such a send is concurrent with the change.

use crate::atomic::lazy::Lazy;
use crate::atomic::multi_word::MultiWord;
use crate::atomic::sync::{
    AtomicU64, AtomicU128,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::bits::Field;
use crate::law::{Ledger, LimitName};

/// The words of one limit.
type Words = MultiWord<{ Ledger::WORDS }>;

/// How many limits of one limiter are remembered.
const MOST: usize = if cfg!(all(loom, feature = "loom")) {
    1
} else {
    4
};

/// How often a change of one limit is tried if it loses to other threads. A change that is given up
/// is counted, and the next report makes up for it.
const TRIES: u32 = 1_000;

const POSITION: Field = Field::lowest(64);
const VERSION: Field = POSITION.above(64);
/// An edge so far after the last send bars no request.
const FAR: u64 = 1 << 62;

/// The limits of one limiter, and how much was ignored.
pub(super) struct Limits {
    ledgers: [Lazy<Words>; MOST],
    /// Wrong values, limits that found no room, and changes that were given up.
    ignored: AtomicU64,
    /// Raised after each change of a limit.
    version: AtomicU64,
    /// The position up to which requests may go, and the version that it was computed from.
    edge: AtomicU128,
    unclaimed: Unclaimed,
}

/// What decides which requests may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// A limit is declared.
    Declared,
    /// Nothing has been heard of the service yet, and only the first burst goes.
    FirstContact,
    /// Requests go as they come until a limit is declared.
    Unbound,
    /// Nothing is declared, or the law does not listen: the law decides alone.
    Alone,
}

/// How many unclaimed tokens are charged to the pace. These were minted for requests that have not
/// gone yet. Tokens that stay unclaimed throughout a window are written off at its end.
#[derive(Default)]
struct Unclaimed {
    /// When the window began.
    since: AtomicU64,
    /// The position of the last send when the window began.
    sent: AtomicU64,
    /// The fewest tokens open in line during the window; in `least`, the fewest unclaimed.
    open: AtomicU64,
    least: AtomicU64,
    /// The unclaimed tokens written off.
    written_off: AtomicU64,
}

// Orderings. `version` is raised with release after a limit has changed, and loaded with acquire
// before the limits are read for an edge. If the load finds the raise, the edge is computed from
// this change or a later one. If the raise comes later, the edge has an older version than requests
// compare it with, which sends them to look at the limits. Until they see the raise, they go by the
// old limits, concurrently with the call that changes these. The comparison is relaxed, because
// nothing else is read then. `edge` is relaxed, because the one word also says of which version it
// is. Models: `declared::a_send_beside_a_report_goes_by_one_of_both`,
// `declared::reports_at_once_each_move_the_edge`, `declared::two_sends_at_the_edge_do_not_both_go`.
impl Limits {
    pub(super) fn new() -> Self {
        Self {
            ledgers: core::array::from_fn(|_| Lazy::new(new_ledger)),
            ignored: AtomicU64::new(0),
            version: AtomicU64::new(1),
            edge: AtomicU128::new(0),
            unclaimed: Unclaimed::default(),
        }
    }

    pub(super) fn ledgers(&self) -> impl Iterator<Item = Ledger> {
        self.known().filter(Ledger::is_declared)
    }

    /// Returns all limits, including those that were given up.
    pub(super) fn known(&self) -> impl Iterator<Item = Ledger> {
        let made = self.ledgers.iter().map_while(Lazy::get);
        let read = made.map(|ledger| Ledger::from_words(&ledger.read().words));
        read.filter(Ledger::is_known)
    }

    /// Returns `true` if any limit is declared.
    pub(super) fn is_any_declared(&self) -> bool {
        self.ledgers().next().is_some()
    }

    /// Returns `true` if no declared limit holds any more.
    pub(super) fn is_over(&self, now: u64) -> bool {
        self.ledgers().all(|ledger| ledger.is_over(now))
    }

    /// Returns how long a request of `weight` is barred after the send at `sent`, in nanoseconds;
    /// `None` if it may go.
    pub(super) fn barred(&self, now: u64, sent: u64, weight: u32) -> Option<u64> {
        let edge = self.edge.load(Relaxed);
        let room = POSITION.get(edge).wrapping_sub(sent);
        let is_far = room < FAR.wrapping_mul(2) && room >= u64::from(weight);
        if is_far && VERSION.get(edge) == self.version.load(Relaxed) {
            return None;
        }
        self.look(now, sent, weight)
    }

    #[cold]
    fn look(&self, now: u64, sent: u64, weight: u32) -> Option<u64> {
        // A window that has begun is noted for all requests. Otherwise each would be its first.
        self.roll(now, sent);
        // Before the limits: see the orderings above.
        let version = self.version.load(Acquire);
        let mut edge = sent.wrapping_add(FAR);
        let mut wait = None;
        for ledger in self.ledgers() {
            let standing = ledger.standing(now, sent);
            wait = wait.max(standing.barred(weight));
            edge = edge.min(standing.edge());
        }
        if wait.is_none() {
            self.edge
                .store(POSITION.put(edge) | VERSION.put(version), Relaxed);
        }
        wait
    }

    /// Returns the whole tokens that are left after the send at `sent` of the limit with the least,
    /// `None` if none is declared.
    pub(super) fn left(&self, now: u64, sent: u64) -> Option<u64> {
        let left = |ledger: Ledger| ledger.standing(now, sent).level().0 >> 20; // an amount
        let least = self.ledgers().map(left).min()?;
        Some(u64::try_from(least).unwrap_or(0))
    }

    /// Returns the least declared limit: of those whose size the service has `told`, or of all.
    pub(super) fn least(&self, told: bool) -> Option<u32> {
        let limit = |ledger: Ledger| (ledger.limit_told || !told).then_some(ledger.limit);
        let least = self.ledgers().filter_map(limit).min()?;
        Some(u32::try_from(least).unwrap_or(u32::MAX))
    }

    pub(super) fn ignore(&self, values: u64) {
        // Relaxed: a count, for diagnostics.
        self.ignored.fetch_add(values, Relaxed);
    }

    /// Returns how many values were ignored.
    pub(super) fn ignored(&self) -> u64 {
        // Relaxed, as in `ignore`.
        self.ignored.load(Relaxed)
    }

    /// Takes in a report of `policy` by `report`. The report goes to the ledger of the policy, or
    /// else to a free ledger. The last choice is the ledger unheard of for longest, if for over its
    /// window. `None` if nothing was taken in.
    pub(super) fn report<T>(
        &self,
        now: u64,
        policy: LimitName,
        report: impl Fn(&Ledger) -> (Ledger, Option<T>),
    ) -> Option<T> {
        for _ in 0..TRIES {
            let Some(words) = self.room_for(now, policy) else {
                break;
            };
            let read = words.read();
            let mut last = Ledger::from_words(&read.words);
            if last.policy != policy {
                if last.is_known() && !last.is_old(now) {
                    continue; // it was taken meanwhile
                }
                last = Ledger::default();
            }
            let (next, taken) = report(&last);
            if taken.is_none() {
                break;
            }
            if words.replace(&read, next.to_words()) {
                self.raise();
                return taken;
            }
        }
        self.ignore(1);
        None
    }

    fn room_for(&self, now: u64, policy: LimitName) -> Option<&Words> {
        let mut oldest: Option<(u64, &Words)> = None;
        for words in &self.ledgers {
            let words = words.get_or_make(new_ledger);
            let ledger = Ledger::from_words(&words.read().words);
            if ledger.is_known() && ledger.policy == policy {
                return Some(words);
            }
            let heard = if ledger.is_known() {
                ledger.heard_at.saturating_add(1)
            } else {
                0
            };
            let free = heard == 0 || ledger.is_old(now);
            if free && oldest.is_none_or(|(least, _)| heard < least) {
                oldest = Some((heard, words));
            }
            if heard == 0 {
                break; // none was made after it
            }
        }
        oldest.map(|(_, words)| words)
    }

    /// Begins the windows whose time has come by `now`.
    pub(super) fn roll(&self, now: u64, sent: u64) {
        self.each(|ledger| ledger.rolled(now, sent).unwrap_or(*ledger));
    }

    /// Forgets every limit.
    pub(super) fn forget(&self) {
        self.each(|_| Ledger::default());
        // Relaxed: see `Unclaimed`.
        self.unclaimed.written_off.store(0, Relaxed);
    }

    /// Replaces each limit that is declared by what `next` makes of it.
    pub(super) fn each(&self, mut next: impl FnMut(&Ledger) -> Ledger) {
        for words in self.ledgers.iter().map_while(Lazy::get) {
            let mut tries = 0..TRIES;
            loop {
                let read = words.read();
                let last = Ledger::from_words(&read.words);
                if !last.is_known() {
                    break;
                }
                let next = next(&last);
                if next == last {
                    break;
                }
                if words.replace(&read, next.to_words()) {
                    self.raise();
                    break;
                }
                if tries.next().is_none() {
                    self.ignore(1);
                    break;
                }
            }
        }
    }

    fn raise(&self) {
        self.version.fetch_add(1, Release);
    }

    /// Returns how many of the `unclaimed` tokens are charged to the pace.
    pub(super) fn charged(&self, unclaimed: u64) -> u64 {
        // Relaxed, here and below: a hint for the pace, which bars no request.
        let written_off = self.unclaimed.written_off.load(Relaxed);
        unclaimed.saturating_sub(written_off)
    }

    /// Notes that a request whose turn has come is barred at `now`, with `others` unclaimed beside
    /// its tokens. Its own tokens are not written off. Otherwise requests behind it would go first.
    pub(super) fn note_barred(&self, now: u64, others: u64) {
        let words = &self.unclaimed;
        if others < words.written_off.load(Relaxed) {
            words.written_off.store(others, Relaxed);
        }
        words.since.store(now, Relaxed);
        words.least.store(u64::MAX, Relaxed);
    }

    /// Notes how many tokens are `open` in line at `now`, and how many of these are minted and
    /// `unclaimed`. Returns how many were open throughout a window in which nothing was sent.
    pub(super) fn note_open(&self, now: u64, sent: u64, open: u64, unclaimed: u64) -> u64 {
        let words = &self.unclaimed;
        for (least, seen) in [
            (&words.written_off, unclaimed),
            (&words.least, unclaimed),
            (&words.open, open),
        ] {
            if seen < least.load(Relaxed) {
                least.store(seen, Relaxed);
            }
        }
        // Without a declared limit nothing is stuck: the law brings the turn of each place.
        let Some(window) = self.ledgers().map(|ledger| ledger.window).max() else {
            return 0;
        };
        let ends = words.since.load(Relaxed).saturating_add(window);
        if now < ends {
            return 0;
        }
        let is_stuck = words.sent.load(Relaxed) == sent;
        let stuck = if is_stuck {
            words.open.load(Relaxed)
        } else {
            0
        };
        words
            .written_off
            .store(words.least.load(Relaxed).min(unclaimed), Relaxed);
        words.least.store(unclaimed, Relaxed);
        words.open.store(open, Relaxed);
        words.sent.store(sent, Relaxed);
        words.since.store(now, Relaxed);
        stuck
    }
}

fn new_ledger() -> Words {
    MultiWord::new(Ledger::default().to_words())
}

/// How many answers came before the first report, at a limiter that obeys declared limits. The
/// count stops at three. From then on it is only read.
pub(super) struct Unheard(AtomicU64);

// Relaxed: a count that is only shown and publishes nothing. Of two answers at once one may not be
// counted, and the next answer makes up for it. A report wins over answers, because it is stored
// and they are swapped in.
impl Unheard {
    /// So many answers without a report say that the limiter hears nothing.
    const SEVERAL: u64 = 3;
    /// Stored in place of a count once there has been a report.
    const HEARD: u64 = u64::MAX;

    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Counts an answer, or a request that failed without one.
    // Out of the way of laws that do not listen.
    #[cold]
    pub(super) fn answer(&self) {
        let seen = self.0.load(Relaxed);
        if seen < Self::SEVERAL {
            let next = seen.saturating_add(1);
            let _lost = self.0.compare_exchange(seen, next, Relaxed, Relaxed);
        }
    }

    /// Notes a report.
    pub(super) fn hear(&self) {
        if self.0.load(Relaxed) != Self::HEARD {
            self.0.store(Self::HEARD, Relaxed);
        }
    }

    /// Begins to count again.
    pub(super) fn forget(&self) {
        self.0.store(0, Relaxed);
    }

    /// Returns `true` if several answers came and no report.
    pub(super) fn is_so(&self) -> bool {
        (Self::SEVERAL..Self::HEARD).contains(&self.0.load(Relaxed))
    }
}

/// How many requests of a burst have gone.
#[derive(Debug)]
pub(super) struct Burst(AtomicU64);

// Relaxed: a count that publishes nothing. It is raised before a request goes, and the swap of this
// one word decides. So no more requests go than the burst has. Model:
// `declared::the_last_of_a_burst_is_given_once`.
impl Burst {
    pub(super) fn of(gone: u64) -> Self {
        Self(AtomicU64::new(gone))
    }

    /// Counts one more request, if fewer than `most` have gone.
    pub(super) fn is_one_of(&self, most: u64) -> bool {
        let mut gone = self.0.load(Relaxed);
        while gone < most {
            let next = gone.saturating_add(1);
            match self.0.compare_exchange_weak(gone, next, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(actual) => gone = actual,
            }
        }
        false
    }

    /// Begins to count again.
    pub(super) fn forget(&self) {
        self.0.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed::SECOND;
    use crate::law::Observed;
    use crate::law::declared::Told;

    fn report(limits: &Limits, told: &Told) -> Option<Observed> {
        limits.report(told.now, told.policy, |ledger| ledger.report(told))
    }

    /// A report of so many tokens left of 100 in a minute.
    fn told(remaining: u64) -> Told {
        Told {
            now: SECOND,
            sent_at: SECOND,
            order: 1,
            weight: 1,
            sent: 1,
            policy: LimitName::new("minute"),
            limit: Some(100),
            remaining,
            window: Some(60 * SECOND),
            reset: None,
            refills: None,
            date: None,
        }
    }

    #[test]
    fn a_change_that_always_loses_is_counted() {
        let limits = Limits::new();
        assert_ne!(report(&limits, &told(90)), None);
        // Another call is faster, for so many tries.
        let forget = |losses: u32| {
            let mut calls = 0;
            limits.each(|_| {
                if calls < losses {
                    let told = told(80 - u64::from(calls & 1));
                    assert_ne!(report(&limits, &told), None);
                }
                calls += 1;
                Ledger::default()
            });
            calls
        };
        assert_eq!(forget(u32::MAX), TRIES + 1);
        assert_eq!((limits.ignored(), limits.is_any_declared()), (1, true));
        assert_eq!(forget(TRIES), TRIES + 1, "the last one wins");
        assert_eq!((limits.ignored(), limits.is_any_declared()), (1, false));
    }

    #[test]
    fn what_is_unclaimed_for_a_window_is_written_off() {
        let limits = Limits::new();
        assert_ne!(report(&limits, &told(90)), None);
        for minutes in 1..3 {
            assert_eq!(limits.charged(10), 10);
            limits.note_open(minutes * 60 * SECOND, 1, 10, 10);
        }
        assert_eq!(limits.charged(10), 0);
        // One request is barred. Beside it four tokens are unclaimed.
        limits.note_barred(121 * SECOND, 4);
        assert_eq!(limits.charged(10), 6);
        limits.note_open(180 * SECOND, 1, 10, 10);
        assert_eq!(limits.charged(10), 6, "the window begins anew");
        limits.note_open(181 * SECOND, 1, 10, 10);
        assert_eq!(limits.charged(10), 0);
        limits.forget();
        assert_eq!(limits.charged(10), 10);
    }

    #[test]
    fn only_what_is_open_while_nothing_is_sent_is_stuck() {
        let limits = Limits::new();
        assert_ne!(report(&limits, &told(90)), None);
        let stuck = [(1, 1, 10), (2, 1, 7), (3, 2, 5)]
            .map(|(minutes, sent, open)| limits.note_open(minutes * 60 * SECOND, sent, open, 0));
        assert_eq!(stuck, [0, 7, 0]);
    }

    #[test]
    fn a_limit_that_is_old_makes_room_for_another() {
        let limits = Limits::new();
        let of = |name, now| Told {
            now,
            policy: LimitName::new(name),
            ..told(90)
        };
        let mut names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"].into_iter();
        for name in names.by_ref().take(limits.ledgers.len()) {
            assert_ne!(report(&limits, &of(name, SECOND)), None, "{name}");
        }
        let more = names.next().expect("there are few");
        assert_eq!(report(&limits, &of(more, SECOND)), None);
        assert_eq!(
            report(&limits, &of(more, 1_000 * SECOND)),
            Some(Observed::Declared)
        );
    }
}
