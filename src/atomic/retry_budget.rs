//! A retry budget: the retries of the last seconds, held against the requests of the same seconds.

use core::{fmt, time::Duration};

use crossbeam_utils::CachePadded;

use super::counter::Stripes;
use crate::atomic::sync::{
    AtomicU64, AtomicU128,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::bits::Field;
use crate::budget::{Budget, QuotaSettingsError, SLOTS};
use crate::{QuotaPermit, Timestamp};

/// The balance when a slot began. Low bits first:
///
/// | bits | field |
/// |---|---|
/// | 64 | the slot's number, counted from 1; 0 before the first |
/// | 64 | the balance |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Checkpoint(u128);

impl Checkpoint {
    const NUMBER: Field = Field::lowest(64);
    const BALANCE: Field = Self::NUMBER.above(64);

    const fn new(number: u64, balance: u64) -> Self {
        Self(Self::NUMBER.put(number) | Self::BALANCE.put(balance))
    }

    const fn number(self) -> u64 {
        Self::NUMBER.get(self.0)
    }

    const fn balance(self) -> u64 {
        Self::BALANCE.get(self.0)
    }
}

const _: () = assert!(Checkpoint::BALANCE.is_last(), "the fields fill the word");

/// The checkpoints kept: more than a window has slots, so that the window is still there for a
/// thread that is a few slots late.
const KEPT: usize = 16;

/// A quota that allows retries in proportion to requests: at most so many thousandths of those of
/// the last window, and so many a second besides.
///
/// Where [`RetryQuota`](crate::RetryQuota) is a store that failures empty and successes fill, this
/// bounds what retries add to the load, however the requests ended. The window moves by
/// tenths: it is between nine tenths of its length and the whole. A retry counts as one whatever it
/// costs, and is never given back.
///
/// # Costs
///
/// A request reads the clock, loads one word that changes ten times in a window, and adds to a
/// count in a cache line that threads share only while they seldom meet, or if there are more of
/// them than cores. [`RetryQuota`](crate::RetryQuota) has none of this. A retry looks at twelve
/// words and swaps one. Memory is about 700 bytes, and a cache line for each core.
///
/// No call waits for another thread, where
/// [`SendRate::is_lock_free`](crate::SendRate::is_lock_free).
///
/// # Time
///
/// As in [`SendRate`](crate::SendRate), every call takes it as an argument. A clock that is behind
/// counts as the latest that was seen, in whole tenths of the window. After a timestamp far in the
/// future the window stands still until that time has come: requests and retries since then are
/// held against each other.
///
/// A thread that stops within a call and goes on later, however late, gives no retry twice.
///
/// # Memory ordering
///
/// None is promised: do not publish data through a budget. Retries are granted in one order that
/// all threads agree on. Requests counted at the same time as a tenth begins may fall on either
/// side of it.
///
/// # Examples
///
/// One retry in ten requests, and one a second for clients with few of them, over ten seconds:
///
/// ```
/// use core::time::Duration;
/// use paceline::{RetryBudget, Timestamp};
///
/// let budget = RetryBudget::new(100, 1, Duration::from_secs(10))?;
/// let now = Timestamp::ZERO;
/// for _ in 0..50 {
///     budget.count_request(now);
/// }
/// assert_eq!(budget.available(now), 15);
/// assert!(budget.try_acquire(now).is_some());
/// assert_eq!(budget.available(now), 14);
/// # Ok::<(), paceline::QuotaSettingsError>(())
/// ```
pub struct RetryBudget {
    rules: Budget,
    requests: Stripes,
    slots: CachePadded<Slots>,
    retries: CachePadded<AtomicU64>,
}

/// The slots that have begun.
///
/// # Rules
///
/// 1. Slots begin in the order of their numbers: the head is swapped from one to a later one. The
///    new balance is computed after the head was loaded, so it is no later than the slot that it
///    belongs to: no retry that is granted in a slot is written off by it. A thread that is late
///    finds that its slot, or a later one, has begun.
/// 2. Before the head is swapped its checkpoint is copied to `kept`. Any thread may do so: there is
///    one balance for each number that has ever been the head's.
struct Slots {
    /// The newest slot that has begun.
    head: AtomicU128,
    /// Its number, or an earlier one: a hint. Every request loads it.
    newest: AtomicU64,
    /// The slots before it, by number.
    kept: [AtomicU128; KEPT],
}

/// The state of a [`RetryBudget`], for diagnostics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RetryBudgetSnapshot {
    /// The retries that are left at this moment.
    pub available: u32,
    /// The requests counted since the budget was made.
    pub requests: u64,
    /// The retries granted since then.
    pub retries: u64,
}

impl fmt::Debug for RetryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryBudget")
            .field("budget", &self.rules)
            .field("requests", &self.requests.sum())
            .finish_non_exhaustive()
    }
}

impl RetryBudget {
    /// Creates a budget of `permille` retries for a thousand requests, and `per_second` a second
    /// besides, over `window`.
    ///
    /// # Errors
    ///
    /// [`QuotaSettingsError::Ratio`] above 1,000, [`QuotaSettingsError::Window`] outside 1 s to an
    /// hour.
    pub fn new(
        permille: u16,
        per_second: u32,
        window: Duration,
    ) -> Result<Self, QuotaSettingsError> {
        Ok(Self {
            rules: Budget::new(permille, per_second, window)?,
            requests: Stripes::new(0),
            slots: CachePadded::new(Slots {
                head: AtomicU128::new(0),
                newest: AtomicU64::new(0),
                kept: core::array::from_fn(|_| AtomicU128::new(0)),
            }),
            retries: CachePadded::new(AtomicU64::new(0)),
        })
    }

    /// Counts a request that begins: once for each operation, not for its retries.
    pub fn count_request(&self, now: Timestamp) {
        let number = self.number(now);
        // Relaxed: a hint. If it is too small, `turn` finds the head.
        if number > self.slots.newest.load(Relaxed) {
            self.turn(number);
        }
        self.requests.add(1);
    }

    /// Takes a retry, or takes nothing and returns `None` if the budget of the last window is used
    /// up.
    #[must_use = "a permit that is dropped is spent"]
    pub fn try_acquire(&self, now: Timestamp) -> Option<QuotaPermit> {
        let number = self.number(now);
        loop {
            // First the word that is swapped: if the swap succeeds, no retry was granted since, so
            // the grant is as good as one made when the head was loaded. Acquire, with
            // the release of the swap: the window is no older than that of any grant
            // counted here. Model: `budget::a_late_taker_goes_by_the_newest_window`.
            let seen = self.retries.load(Acquire);
            let head = self.turn(number);
            let Some(base) = self.base(head, head.number()) else {
                continue; // other threads have begun seven slots meanwhile
            };
            if self.rules.left(base, self.balance(seen)) == 0 {
                return None;
            }
            // Model: `budget::two_takers_never_share_a_retry`.
            let next = seen.wrapping_add(1);
            if self
                .retries
                .compare_exchange_weak(seen, next, Release, Relaxed)
                .is_ok()
            {
                return Some(QuotaPermit::of(1));
            }
        }
    }

    /// Returns the retries that are left now, and changes nothing. Another thread may take them at
    /// once.
    #[must_use]
    pub fn available(&self, now: Timestamp) -> u32 {
        self.snapshot(now).available
    }

    /// Returns the state, and changes nothing.
    #[must_use]
    pub fn snapshot(&self, now: Timestamp) -> RetryBudgetSnapshot {
        let base = loop {
            // Acquire: see `base`.
            let head = Checkpoint(self.slots.head.load(Acquire));
            let newest = self.number(now).max(head.number());
            if head.number() < oldest(newest) {
                break None; // the window has no slot that has begun
            }
            if let Some(base) = self.base(head, newest) {
                break Some(base);
            }
        };
        // Relaxed: a count that is shown.
        let retries = self.retries.load(Relaxed);
        let balance = self.balance(retries);
        RetryBudgetSnapshot {
            available: self.rules.left(base.unwrap_or(balance), balance),
            requests: self.requests.sum(),
            retries,
        }
    }

    fn number(&self, now: Timestamp) -> u64 {
        self.rules.slot(now.as_nanos()).wrapping_add(1)
    }

    fn balance(&self, retries: u64) -> u64 {
        self.rules.balance(self.requests.sum(), retries)
    }

    /// Returns the balance when the window that ends with slot `newest` began, where `head` is in
    /// that window; `None` if the head has moved on so far that the window is overwritten.
    fn base(&self, head: Checkpoint, newest: u64) -> Option<u64> {
        for number in oldest(newest)..head.number() {
            // Relaxed: the head was loaded with acquire, and its thread had seen all of those
            // before it kept.
            let kept = Checkpoint(self.kept(number).load(Relaxed));
            if kept.number() == number {
                return Some(kept.balance());
            }
            if kept.number() > number {
                return None;
            }
        }
        Some(head.balance())
    }

    #[expect(
        clippy::indexing_slicing,
        clippy::cast_possible_truncation,
        reason = "masked to the length, a power of two"
    )]
    fn kept(&self, number: u64) -> &AtomicU128 {
        &self.slots.kept[number as usize & KEPT.wrapping_sub(1)]
    }

    /// Begins the slot `number`, unless that or a later one has begun, and returns the newest one.
    fn turn(&self, number: u64) -> Checkpoint {
        loop {
            // Acquire, with the release below: a thread that sums up the requests after this load
            // sees at least those behind the balance, or too little would be left. It
            // sees also what is kept.
            // Models: `budget::a_taker_is_never_refused_the_minimum`,
            // `budget::the_minimum_is_never_refused`,
            // `budget::a_window_is_kept_before_it_moves_on`.
            let head = Checkpoint(self.slots.head.load(Acquire));
            if head.number() >= number {
                // Relaxed: a hint.
                if self.slots.newest.load(Relaxed) < head.number() {
                    self.slots.newest.store(head.number(), Relaxed);
                }
                return head;
            }
            self.keep(head);
            // Relaxed: one that is too small holds a retry against this slot that was granted
            // before it began.
            let retries = self.retries.load(Relaxed);
            let next = Checkpoint::new(number, self.balance(retries));
            // Release publishes the counts behind the balance, and what is kept. The word never
            // comes back, as numbers grow. Models: those above,
            // `budget::a_request_is_counted_in_one_slot` and
            // `budget::a_fresh_budget_grants_its_minimum_once`.
            if self
                .slots
                .head
                .compare_exchange(head.0, next.0, Release, Relaxed)
                .is_ok()
            {
                self.slots.newest.store(number, Relaxed);
                self.requests.forget_meetings();
                return next;
            }
        }
    }

    /// Copies `head` to where it is found when it is the head no more.
    fn keep(&self, head: Checkpoint) {
        let word = self.kept(head.number());
        // Relaxed: published with the head, see `turn`.
        let mut seen = word.load(Relaxed);
        while Checkpoint(seen).number() < head.number() {
            // A thread that is late must not put back what is overwritten since, so it is a swap.
            // Model: `budget::a_late_thread_keeps_no_old_slot`.
            match word.compare_exchange(seen, head.0, Relaxed, Relaxed) {
                Ok(_) => return,
                Err(actual) => seen = actual,
            }
        }
    }
}

/// Returns the first slot of the window that ends with slot `newest`.
fn oldest(newest: u64) -> u64 {
    newest.saturating_sub(SLOTS.wrapping_sub(1)).max(1)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// A budget over ten seconds, so that slot `n` begins at the second `n - 1`.
    fn budget() -> RetryBudget {
        RetryBudget::new(1_000, 0, Duration::from_secs(10)).expect("in range")
    }

    fn second(number: u64) -> Timestamp {
        Timestamp::ZERO.saturating_add(Duration::from_secs(number))
    }

    /// The thread that began the slot may stop before it stores the hint.
    #[test]
    fn a_hint_that_is_behind_is_corrected() {
        let budget = budget();
        budget.count_request(second(5));
        budget.slots.newest.store(0, Relaxed);
        budget.count_request(second(5));
        assert_eq!(budget.slots.newest.load(Relaxed), 6);
    }

    /// A thread may stop between its load of the head and the loads of what was kept.
    #[test]
    fn a_window_that_was_overwritten_has_no_base() {
        let budget = budget();
        budget.count_request(second(1));
        let head = Checkpoint(budget.slots.head.load(Acquire));
        assert_eq!(budget.base(head, head.number()), Some(head.balance()));
        (2..40).for_each(|number| budget.count_request(second(number)));
        assert_eq!(budget.base(head, head.number()), None);
    }
}
