//! The retry quota: one word, moved by compare-and-swap, and a capacity that callers may change.

use alloc::boxed::Box;
use core::time::Duration;

use super::refill::Refill;
use super::sync::{AtomicU32, Ordering::Relaxed};
use crate::Timestamp;
use crate::budget::QuotaSettingsError;

/// What a retry was paid with.
///
/// It belongs to the one operation that acquired it. Hand it back with [`RetryQuota::release`] when
/// the retry it paid for succeeds; drop it and it is spent.
#[derive(Debug)]
#[must_use = "a permit that is dropped is spent"]
pub struct QuotaPermit {
    cost: u32,
}

impl QuotaPermit {
    /// Returns the permit of a retry that cost so much.
    ///
    /// For quotas that users write: what a permit took is known to its quota alone.
    pub const fn of(cost: u32) -> Self {
        Self { cost }
    }

    /// Returns the tokens that this permit took.
    #[must_use]
    pub const fn cost(&self) -> u32 {
        self.cost
    }
}

/// A bucket of tokens that retries pay from and successes pay into.
///
/// It holds between 0 and [`capacity`](Self::capacity) tokens, starts full and never waits. A refusal, and
/// a success that finds it full, write nothing. Time fills it only if it is made
/// [`with_refill`](Self::with_refill), and only in the calls that are given the time.
///
/// # Memory ordering
///
/// None: no call synchronizes with any other, so do not publish data through a quota. While the capacity stays, each
/// call takes effect at one instant, in one order that all threads agree on. A call that overlaps
/// [`set_capacity`](Self::set_capacity) may go by the old one.
///
/// # Examples
///
/// ```
/// use paceline::RetryQuota;
///
/// static QUOTA: RetryQuota = RetryQuota::new(500);
///
/// let permit = QUOTA.try_acquire(14).expect("the quota is full");
/// assert_eq!(QUOTA.available(), 486);
/// QUOTA.release(permit); // the retry succeeded
/// assert_eq!(QUOTA.available(), 500);
/// ```
#[derive(Debug)]
pub struct RetryQuota {
    /// The tokens that are not there: taken, and not paid back. What is full knows no capacity, so that a success
    /// that finds it so loads this word only.
    missing: AtomicU32,
    capacity: AtomicU32,
    /// Boxed, as few have one.
    refill: Option<Box<Refill>>,
}

/// The state of a [`RetryQuota`], for people to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RetryQuotaSnapshot {
    /// The tokens that are there.
    pub available: u32,
    /// The most there can be.
    pub capacity: u32,
}

impl RetryQuota {
    /// Creates a full quota of `capacity` tokens.
    ///
    /// A capacity of 0 refuses every retry that costs anything.
    #[cfg(not(all(loom, feature = "loom")))]
    #[must_use]
    pub const fn new(capacity: u32) -> Self {
        Self {
            missing: AtomicU32::new(0),
            capacity: AtomicU32::new(capacity),
            refill: None,
        }
    }

    /// Creates a full quota of `capacity` tokens. Loom's atomics cannot be made in a constant.
    #[cfg(all(loom, feature = "loom"))]
    #[must_use]
    pub fn new(capacity: u32) -> Self {
        Self {
            missing: AtomicU32::new(0),
            capacity: AtomicU32::new(capacity),
            refill: None,
        }
    }

    /// Creates a full quota of `capacity` tokens, into which time pays as well: `tokens` in each `per`.
    ///
    /// The published quota knows successes only, so that after an outage it stays empty for as long as nothing
    /// succeeds. Time pays when [`try_acquire_at`](Self::try_acquire_at) or [`fill_until`](Self::fill_until)
    /// is told of it. `start` is when it begins to count.
    ///
    /// # Errors
    ///
    /// [`QuotaSettingsError::RefillRate`](crate::QuotaSettingsError::RefillRate) outside one token in 1,000 s to one
    /// in each nanosecond. Each token comes at its nanosecond, rounded up.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use paceline::{RetryQuota, Timestamp};
    ///
    /// let quota = RetryQuota::with_refill(500, 2, Duration::from_secs(1), Timestamp::ZERO)?;
    /// quota.drain();
    /// let later = Timestamp::from_nanos(2_500_000_000);
    /// assert!(quota.try_acquire_at(5, later).is_some()); // the five tokens of 2.5 s
    /// assert!(quota.try_acquire_at(1, later).is_none());
    /// # Ok::<(), paceline::QuotaSettingsError>(())
    /// ```
    pub fn with_refill(
        capacity: u32,
        tokens: u32,
        per: Duration,
        start: Timestamp,
    ) -> Result<Self, QuotaSettingsError> {
        let refill = Some(Box::new(Refill::new(tokens, per, start)?));
        Ok(Self {
            refill,
            ..Self::new(capacity)
        })
    }

    /// Takes `cost` tokens, or takes nothing and returns `None` if there are not that many.
    ///
    /// A cost of 0 is always granted, a cost above the capacity never.
    #[must_use = "a permit that is dropped is spent"]
    pub fn try_acquire(&self, cost: u32) -> Option<QuotaPermit> {
        // Relaxed, before the other word: see `set_capacity`.
        let capacity = self.capacity.load(Relaxed);
        let fits = |missing: u32| missing.checked_add(cost).filter(|sum| *sum <= capacity);
        let taken = cost == 0 || self.update(fits).is_some();
        taken.then_some(QuotaPermit { cost })
    }

    /// As [`try_acquire`](Self::try_acquire), with what time has paid by `now`.
    ///
    /// Without a refill the time is ignored.
    #[must_use = "a permit that is dropped is spent"]
    pub fn try_acquire_at(&self, cost: u32, now: Timestamp) -> Option<QuotaPermit> {
        self.fill_until(now);
        self.try_acquire(cost)
    }

    /// Adds what time has paid by `now` and nobody has added yet, as much of it as fits, and returns how much that is.
    ///
    /// An older clock adds nothing. After a timestamp far in the future nothing is added until that time has come. A
    /// thread that stops within this call keeps what it was about to add; nobody waits for it, and nothing is added
    /// twice.
    #[allow(
        clippy::must_use_candidate,
        reason = "called for its effect, which the models' atomics hide"
    )]
    pub fn fill_until(&self, now: Timestamp) -> u32 {
        let due = self.refill.as_ref().map_or(0, |refill| refill.due(now));
        self.add(u32::try_from(due).unwrap_or(u32::MAX))
    }

    /// Whether time pays into the quota.
    #[cfg(feature = "std")]
    pub(crate) const fn has_refill(&self) -> bool {
        self.refill.is_some()
    }

    /// Puts back what `permit` took: the retry that it paid for succeeded.
    ///
    /// What does not fit under the capacity is discarded. A permit knows no quota: releasing it to
    /// another one than it came from moves its tokens there.
    #[expect(clippy::needless_pass_by_value, reason = "a permit is released once")]
    pub fn release(&self, permit: QuotaPermit) {
        self.credit(permit.cost);
    }

    /// Adds `amount` tokens, as many of them as fit: an operation succeeded that paid for no retry.
    pub fn credit(&self, amount: u32) {
        self.add(amount);
    }

    /// Adds `amount` tokens, and returns how many fitted.
    pub(crate) fn add(&self, amount: u32) -> u32 {
        let before = self.update(|missing| Some(missing.saturating_sub(amount)));
        before.map_or(0, |missing| missing.min(amount))
    }

    /// Takes all tokens there are, and returns how many that was. Permits that are out come back as before.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::RetryQuota;
    ///
    /// let quota = RetryQuota::new(500);
    /// let permit = quota.try_acquire(5).expect("it is full");
    /// assert_eq!(quota.drain(), 495);
    /// quota.release(permit);
    /// assert_eq!(quota.available(), 5);
    /// assert_eq!(quota.refill(), 495);
    /// ```
    #[allow(
        clippy::must_use_candidate,
        reason = "called for its effect, which the models' atomics hide"
    )]
    pub fn drain(&self) -> u32 {
        let capacity = self.capacity.load(Relaxed);
        let before = self.update(|missing| Some(missing.max(capacity)));
        before.map_or(0, |missing| capacity.saturating_sub(missing))
    }

    /// Fills the quota, and returns how many tokens more there are.
    ///
    /// Permits that are out then find it full when they come back.
    #[allow(
        clippy::must_use_candidate,
        reason = "called for its effect, which the models' atomics hide"
    )]
    pub fn refill(&self) -> u32 {
        self.add(u32::MAX).min(self.capacity())
    }

    /// Changes the capacity. What is missing stays missing.
    ///
    /// So a full quota stays full, permits that are out still have room to come back, and there and back again is
    /// no change. If more is missing than the new capacity, nothing is available until the rest has been paid back.
    /// A call that overlaps this one may go by the old capacity.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::RetryQuota;
    ///
    /// let quota = RetryQuota::new(500);
    /// let permit = quota.try_acquire(100).expect("it is full");
    /// quota.set_capacity(300);
    /// assert_eq!(quota.available(), 200);
    /// quota.set_capacity(50);
    /// assert_eq!(quota.available(), 0); // 50 more than all of it are out
    /// quota.release(permit);
    /// assert_eq!(quota.available(), 50);
    /// ```
    pub fn set_capacity(&self, capacity: u32) {
        // Relaxed: the word says nothing of any other. What is missing is the state, and no change of this word moves
        // it; a taker that read the old capacity answers as it would have a moment sooner.
        // Model: `quota::a_change_of_capacity_loses_nothing`.
        self.capacity.store(capacity, Relaxed);
    }

    /// Returns the tokens that are there now. Another thread may take them at once.
    #[must_use]
    pub fn available(&self) -> u32 {
        self.snapshot().available
    }

    /// Returns the largest number of tokens that the quota holds.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.capacity.load(Relaxed)
    }

    /// Returns the state, and changes nothing: what time has paid counts once it is added.
    #[must_use]
    pub fn snapshot(&self) -> RetryQuotaSnapshot {
        // Relaxed: the count is all there is to read. Model: `quota::available_is_in_range`.
        let missing = self.missing.load(Relaxed);
        let capacity = self.capacity.load(Relaxed);
        RetryQuotaSnapshot {
            available: capacity.saturating_sub(missing),
            capacity,
        }
    }

    /// Replaces what is missing by `step` of it, and returns what it was; `None` if `step` refused.
    ///
    /// A step that refuses, or leaves the count as it is, writes nothing.
    fn update(&self, step: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        // Relaxed throughout: the word is all there is, nothing is published through it, and
        // read-modify-writes of one word are totally ordered at any ordering. A stale first load
        // costs a lap when the step stores. When it does not, the answer may be out of date, which
        // is as if the caller had asked a moment sooner; between an operation's own take and its
        // own release no value of the word it can read is older than the take.
        // Models: `quota::two_takers_never_share_a_token`, `quota::release_and_credit_lose_nothing`.
        let mut seen = self.missing.load(Relaxed);
        loop {
            let next = step(seen)?;
            if next == seen {
                return Some(seen);
            }
            match self
                .missing
                .compare_exchange_weak(seen, next, Relaxed, Relaxed)
            {
                Ok(_) => return Some(seen),
                Err(actual) => seen = actual,
            }
        }
    }
}
