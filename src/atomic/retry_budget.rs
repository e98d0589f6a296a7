//! A retry budget: the retries of the last seconds, held against the requests of the same seconds.

use core::time::Duration;

use super::bits::Field;
use super::padded::Padded;
use super::retry_quota::QuotaPermit;
use super::stripes::Stripes;
use super::sync::{
    AtomicU64, AtomicU128,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::Timestamp;
use crate::budget::{Budget, QuotaSettingsError, SLOTS};

/// How things stood when a slot began. Low bits first:
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

/// The checkpoints kept: more than a window has slots, so that one is not overwritten while it is read.
const KEPT: usize = 16;

/// A quota that allows retries in proportion to requests: at most so many thousandths of those of the last window,
/// and so many a second besides.
///
/// Where [`RetryQuota`](crate::RetryQuota) is a store that failures empty and successes fill, this bounds what retries
/// add to the load, whatever became of the requests. The window moves by tenths: it is between nine tenths of its
/// length and the whole. A retry counts as one whatever it costs, and is never given back.
///
/// # Costs
///
/// Every request asks the time, loads one word that changes ten times in a window, and adds to a count in a cache line
/// that threads share only while they seldom meet, or if there are more of them than cores. [`RetryQuota`](crate::RetryQuota) has none of this.
/// A retry looks at ten words and swaps one. Memory is some hundred bytes, and a cache line for each core.
///
/// No call waits for another thread, where [`SendRate::is_lock_free`](crate::SendRate::is_lock_free).
///
/// # Time
///
/// As in [`SendRate`](crate::SendRate), every call takes it as an argument. A clock that is behind counts as the latest
/// that was seen in whole tenths of the window. After a timestamp far in the future the window stands still until
/// that time has come: requests and retries since then are held against each other.
///
/// # Memory ordering
///
/// None is promised: do not publish data through a budget. Retries are granted in one order that all threads agree on.
/// Requests counted at the same time as a tenth begins may fall on either side of it.
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
#[derive(Debug)]
pub struct RetryBudget {
    rules: Budget,
    requests: Stripes,
    /// The number of the last slot that has begun. Every request loads it.
    newest: Padded<AtomicU64>,
    retries: Padded<AtomicU64>,
    checkpoints: [AtomicU128; KEPT],
}

/// The state of a [`RetryBudget`], for people to read.
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

impl RetryBudget {
    /// Creates a budget of `permille` retries for a thousand requests, and `per_second` a second besides, over `window`.
    ///
    /// # Errors
    ///
    /// [`QuotaSettingsError::Ratio`] above 1,000, [`QuotaSettingsError::Window`] outside 1 s to an hour.
    pub fn new(
        permille: u16,
        per_second: u32,
        window: Duration,
    ) -> Result<Self, QuotaSettingsError> {
        Ok(Self {
            rules: Budget::new(permille, per_second, window)?,
            requests: Stripes::new(0),
            newest: Padded::new(AtomicU64::new(0)),
            retries: Padded::new(AtomicU64::new(0)),
            checkpoints: core::array::from_fn(|_| AtomicU128::new(0)),
        })
    }

    /// Counts a request that begins: once for each operation, not for its retries.
    pub fn count_request(&self, now: Timestamp) {
        self.turn(now);
        self.requests.add(1);
    }

    /// Takes a retry, or takes nothing and returns `None` if the budget of the last window is used up.
    #[must_use = "a permit that is dropped is spent"]
    pub fn try_acquire(&self, now: Timestamp) -> Option<QuotaPermit> {
        let base = loop {
            let newest = self.turn(now);
            // Whoever turned to it has: this makes sure that the base is seen.
            self.begin(newest);
            // It is gone only if so many slots have begun meanwhile.
            if let Some(base) = self.base(newest) {
                break base;
            }
        };
        // Relaxed throughout: the word is a chain of read-modify-writes, totally ordered by itself, and publishes
        // nothing. A swap that succeeds was checked against the last grant, which the base is no newer than.
        // Model: `budget::two_takers_never_share_a_retry`.
        let mut seen = self.retries.load(Relaxed);
        loop {
            if self.rules.left(base, self.balance(seen)) == 0 {
                return None;
            }
            match self
                .retries
                .compare_exchange_weak(seen, seen.wrapping_add(1), Relaxed, Relaxed)
            {
                Ok(_) => return Some(QuotaPermit::of(1)),
                Err(actual) => seen = actual,
            }
        }
    }

    /// Returns the retries that are left now, and changes nothing. Another thread may take them at once.
    #[must_use]
    pub fn available(&self, now: Timestamp) -> u32 {
        self.snapshot(now).available
    }

    /// Returns the state, and changes nothing.
    #[must_use]
    pub fn snapshot(&self, now: Timestamp) -> RetryBudgetSnapshot {
        // Relaxed: a hint of where to look, see `turn`.
        let newest = self.number(now).max(self.newest.load(Relaxed));
        let base = self.base(newest);
        // Relaxed: a count that is shown. After the base, so that it is no older.
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

    /// Returns the balance when the window that ends with slot `newest` began; `None` if nothing happened in it.
    fn base(&self, newest: u64) -> Option<u64> {
        let oldest = newest.saturating_sub(SLOTS.wrapping_sub(1)).max(1);
        (oldest..=newest).find_map(|number| {
            // Acquire: whoever sums up the requests after this load must see at least those behind the balance,
            // or too little would be left. Pairs with the release in `begin`.
            // Model: `budget::the_minimum_is_never_refused`.
            let checkpoint = Checkpoint(self.checkpoint(number).load(Acquire));
            (checkpoint.number() == number).then(|| checkpoint.balance())
        })
    }

    #[expect(
        clippy::indexing_slicing,
        clippy::cast_possible_truncation,
        reason = "masked to the length, a power of two"
    )]
    fn checkpoint(&self, number: u64) -> &AtomicU128 {
        &self.checkpoints[number as usize & KEPT.wrapping_sub(1)]
    }

    /// Begins the slot of `now`, if it has not begun, and returns the number of the newest one.
    fn turn(&self, now: Timestamp) -> u64 {
        let number = self.number(now);
        // Relaxed: a hint. Who does not see it finds the checkpoint taken.
        let mut newest = self.newest.load(Relaxed);
        if number <= newest {
            return newest;
        }
        self.begin(number);
        while newest < number {
            // Relaxed: as above.
            match self
                .newest
                .compare_exchange_weak(newest, number, Relaxed, Relaxed)
            {
                Ok(_) => return number,
                Err(actual) => newest = actual,
            }
        }
        newest
    }

    /// Notes how things stand as slot `number` begins, unless somebody has.
    ///
    /// Nobody waits: whoever comes first has done it for all.
    fn begin(&self, number: u64) {
        let word = self.checkpoint(number);
        loop {
            // Relaxed: only its number counts.
            let seen = Checkpoint(word.load(Relaxed));
            if seen.number() >= number {
                return;
            }
            // Relaxed: a retry that is granted meanwhile may fall on either side.
            let retries = self.retries.load(Relaxed);
            let next = Checkpoint::new(number, self.balance(retries));
            // Release publishes the counts behind the balance, see `base`. A word never comes back, as numbers grow.
            // Model: `budget::a_request_is_counted_in_one_slot`.
            if word
                .compare_exchange(seen.0, next.0, Release, Relaxed)
                .is_ok()
            {
                return self.requests.settle();
            }
        }
    }
}
