//! The retry quota: one word of what is missing, a capacity that callers may change, and tokens
//! that time pays.

use alloc::boxed::Box;
use core::time::Duration;

use self::missing::Missing;
use super::sync::{AtomicU32, AtomicU64, Ordering::Relaxed};
use crate::Timestamp;
use crate::budget::QuotaSettingsError;
use crate::fixed::Rate;

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
/// It holds between 0 and [`capacity`](Self::capacity) tokens, starts full and never waits. A
/// refusal, and a [`credit`](Self::credit) that finds it full, write nothing. Time fills it only if
/// it is made [`with_refill`](Self::with_refill), and only in the calls that are given the time.
///
/// # Memory ordering
///
/// None: no call synchronizes with any other, so do not publish data through a quota. While the
/// capacity stays, each call takes effect at one instant, in one order that all threads agree on. A
/// call that overlaps [`set_capacity`](Self::set_capacity) may go by the old one.
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
    /// The tokens that are not there: taken, and not paid back. What is full knows no capacity, so
    /// that a success that finds it so loads this word only.
    missing: Missing,
    capacity: AtomicU32,
    /// Boxed, as few have one.
    refill: Option<Box<Refill>>,
}

/// The state of a [`RetryQuota`], for diagnostics.
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
            missing: Missing::none(),
            capacity: AtomicU32::new(capacity),
            refill: None,
        }
    }

    /// Creates a full quota of `capacity` tokens. Loom's atomics cannot be made in a constant.
    #[cfg(all(loom, feature = "loom"))]
    #[must_use]
    pub fn new(capacity: u32) -> Self {
        Self {
            missing: Missing::none(),
            capacity: AtomicU32::new(capacity),
            refill: None,
        }
    }

    /// Creates a full quota of `capacity` tokens, into which time pays as well: `tokens` in each
    /// `per`.
    ///
    /// The published quota knows successes only, so that after an outage it stays empty for as long
    /// as nothing succeeds. Time pays when [`try_acquire_at`](Self::try_acquire_at) or
    /// [`fill_until`](Self::fill_until) is told of it. `start` is when it begins to count.
    ///
    /// # Errors
    ///
    /// [`QuotaSettingsError::RefillRate`](crate::QuotaSettingsError::RefillRate) outside one token
    /// in 1,000 s to one in each nanosecond. Each token comes at its nanosecond, rounded up.
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
        let taken = cost == 0 || self.missing.take(cost, capacity);
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

    /// Adds what time has paid by `now` and nobody has added yet, as much of it as fits, and
    /// returns how much that is.
    ///
    /// An older clock adds nothing. After a timestamp far in the future nothing is added until that
    /// time has come. A thread that stops within this call keeps what it was about to add;
    /// nobody waits for it, and nothing is added twice.
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
        self.missing.give_back(permit.cost);
    }

    /// Adds `amount` tokens, as many of them as fit: an operation succeeded that paid for no retry.
    pub fn credit(&self, amount: u32) {
        self.add(amount);
    }

    /// Adds `amount` tokens, and returns how many fitted.
    pub(crate) fn add(&self, amount: u32) -> u32 {
        self.missing.pay(amount)
    }

    /// Takes all tokens there are, and returns how many that was. Permits that are out come back as
    /// before.
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
        self.missing.take_all(self.capacity.load(Relaxed))
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
    /// So a full quota stays full, permits that are out still have room to come back, and there and
    /// back again is no change. If more is missing than the new capacity, nothing is available
    /// until the rest has been paid back. A call that overlaps this one may go by the old
    /// capacity.
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
        // Relaxed: the word says nothing of any other. What is missing is the state, and no change
        // of this word moves it; a taker that read the old capacity answers as it would
        // have a moment sooner. Model: `quota::a_change_of_capacity_loses_nothing`.
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
        // Model: `quota::available_is_in_range`.
        let missing = self.missing.get();
        let capacity = self.capacity.load(Relaxed);
        RetryQuotaSnapshot {
            available: capacity.saturating_sub(missing),
            capacity,
        }
    }
}

// Relaxed throughout, in both: the word is all there is, nothing is published through it, and
// read-modify-writes of one word are totally ordered at any ordering. A stale first load costs a
// lap if the call swaps. If it does not, the answer may be out of date, as if the caller had asked
// a moment sooner; between an operation's take and its release no value of the word that it can
// read is older than the take. Models: `quota::two_takers_never_share_a_token`,
// `quota::release_and_credit_lose_nothing`.

/// What is missing in 64 bits: below 0 if more was given back than was missing.
///
/// Between two takes the word only falls, so that clamping it once, in the take, is the same as
/// clamping each gain: a release is one subtraction, and no loop.
#[cfg(all(target_has_atomic = "64", not(narrow)))]
mod missing {
    use crate::atomic::sync::{AtomicU64, Ordering::Relaxed};
    use crate::fixed::to_signed;

    /// Where a word so far below 0 is put back to 0. All threads together would have to subtract as
    /// much again before the one that notices goes on, in steps of 2³², for it to wrap.
    const FLOOR: i64 = -(1 << 62);

    #[derive(Debug)]
    pub(super) struct Missing(AtomicU64);

    impl Missing {
        #[cfg(not(all(loom, feature = "loom")))]
        pub(super) const fn none() -> Self {
            Self(AtomicU64::new(0))
        }

        #[cfg(all(loom, feature = "loom"))]
        pub(super) fn none() -> Self {
            Self(AtomicU64::new(0))
        }

        /// Returns the tokens that are missing.
        pub(super) fn get(&self) -> u32 {
            clamped(self.0.load(Relaxed))
        }

        /// Takes `cost` if no more than `capacity` is missing then.
        pub(super) fn take(&self, cost: u32, capacity: u32) -> bool {
            let (cost, capacity) = (u64::from(cost), u64::from(capacity));
            let mut seen = self.0.load(Relaxed);
            loop {
                // Two swaps, for a branch: a value that both cases choose would have to be computed
                // first.
                let swapped = if to_signed(seen) <= 0 {
                    if cost > capacity {
                        return false;
                    }
                    self.0.compare_exchange_weak(seen, cost, Relaxed, Relaxed)
                } else {
                    // Cannot overflow: what is missing is never above a capacity.
                    let next = seen.wrapping_add(cost);
                    if next > capacity {
                        return false;
                    }
                    self.0.compare_exchange_weak(seen, next, Relaxed, Relaxed)
                };
                match swapped {
                    Ok(_) => return true,
                    Err(actual) => seen = actual,
                }
            }
        }

        /// Gives `amount` back, or as much of it as is missing.
        pub(super) fn give_back(&self, amount: u32) {
            self.subtract(amount);
        }

        /// As [`give_back`](Self::give_back), but writes nothing if nothing is missing. Returns how
        /// much it was.
        pub(super) fn pay(&self, amount: u32) -> u32 {
            if to_signed(self.0.load(Relaxed)) <= 0 || amount == 0 {
                return 0;
            }
            clamped(self.subtract(amount)).min(amount)
        }

        /// Subtracts `amount`, and returns the word as it was.
        fn subtract(&self, amount: u32) -> u64 {
            let before = self.0.fetch_sub(u64::from(amount), Relaxed);
            if to_signed(before) < FLOOR {
                self.lift();
            }
            before
        }

        /// Puts a word that is far below 0 back to 0, which means the same.
        #[cold]
        fn lift(&self) {
            let mut seen = self.0.load(Relaxed);
            while to_signed(seen) < FLOOR {
                match self.0.compare_exchange_weak(seen, 0, Relaxed, Relaxed) {
                    Ok(_) => return,
                    Err(actual) => seen = actual,
                }
            }
        }

        /// Takes all there is of `capacity`, and returns how much that was.
        pub(super) fn take_all(&self, capacity: u32) -> u32 {
            let mut seen = self.0.load(Relaxed);
            loop {
                let there = capacity.saturating_sub(clamped(seen));
                if there == 0 {
                    return 0;
                }
                let next = u64::from(capacity);
                match self.0.compare_exchange_weak(seen, next, Relaxed, Relaxed) {
                    Ok(_) => return there,
                    Err(actual) => seen = actual,
                }
            }
        }
    }

    /// Returns what is missing by a word.
    fn clamped(word: u64) -> u32 {
        u32::try_from(to_signed(word).max(0)).unwrap_or(u32::MAX)
    }

    #[cfg(all(test, not(any(loom, shuttle))))]
    mod tests {
        use super::*;

        fn word(value: i64) -> u64 {
            u64::from_ne_bytes(value.to_ne_bytes())
        }

        #[test]
        fn a_word_far_below_zero_is_lifted_before_it_wraps() {
            let missing = Missing(AtomicU64::new(word(FLOOR)));
            missing.give_back(1);
            assert_eq!(missing.0.load(Relaxed), word(FLOOR - 1));
            missing.give_back(1);
            assert_eq!(missing.0.load(Relaxed), 0);
            missing.give_back(u32::MAX);
            assert_eq!((missing.get(), missing.pay(1)), (0, 0));
            assert!(missing.take(7, 7) && !missing.take(1, 7));
        }
    }
}

/// What is missing in 32 bits, where wider words are not native: one that is made of a lock would
/// not be lock-free.
#[cfg(not(all(target_has_atomic = "64", not(narrow))))]
mod missing {
    use crate::atomic::sync::{AtomicU32, Ordering::Relaxed};

    #[derive(Debug)]
    pub(super) struct Missing(AtomicU32);

    impl Missing {
        #[cfg(not(all(loom, feature = "loom")))]
        pub(super) const fn none() -> Self {
            Self(AtomicU32::new(0))
        }

        #[cfg(all(loom, feature = "loom"))]
        pub(super) fn none() -> Self {
            Self(AtomicU32::new(0))
        }

        /// Returns the tokens that are missing.
        pub(super) fn get(&self) -> u32 {
            self.0.load(Relaxed)
        }

        /// Takes `cost` if no more than `capacity` is missing then.
        pub(super) fn take(&self, cost: u32, capacity: u32) -> bool {
            let fits = |missing: u32| missing.checked_add(cost).filter(|sum| *sum <= capacity);
            self.update(fits).is_some()
        }

        /// Gives `amount` back, or as much of it as is missing.
        pub(super) fn give_back(&self, amount: u32) {
            self.pay(amount);
        }

        /// As [`give_back`](Self::give_back). Returns how much it was.
        pub(super) fn pay(&self, amount: u32) -> u32 {
            let before = self.update(|missing| Some(missing.saturating_sub(amount)));
            before.map_or(0, |missing| missing.min(amount))
        }

        /// Takes all there is of `capacity`, and returns how much that was.
        pub(super) fn take_all(&self, capacity: u32) -> u32 {
            let before = self.update(|missing| Some(missing.max(capacity)));
            before.map_or(0, |missing| capacity.saturating_sub(missing))
        }

        /// Replaces what is missing by `step` of it, and returns what it was; `None` if `step`
        /// refused.
        ///
        /// A step that refuses, or leaves the count as it is, writes nothing.
        fn update(&self, step: impl Fn(u32) -> Option<u32>) -> Option<u32> {
            let mut seen = self.0.load(Relaxed);
            loop {
                let next = step(seen)?;
                if next == seen {
                    return Some(seen);
                }
                match self.0.compare_exchange_weak(seen, next, Relaxed, Relaxed) {
                    Ok(_) => return Some(seen),
                    Err(actual) => seen = actual,
                }
            }
        }
    }
}

/// A source of tokens at a fixed rate.
///
/// What is remembered is how many tokens have been handed out since the start, not when: the next
/// number follows from the time alone, so that no fraction is dropped and no two callers are given
/// the same token.
#[derive(Debug)]
struct Refill {
    tokens: u32,
    /// In so many nanoseconds.
    per: u64,
    start: Timestamp,
    handed_out: AtomicU64,
}

impl Refill {
    /// Creates a source of `tokens` in each `per`, from `start` on.
    fn new(tokens: u32, per: Duration, start: Timestamp) -> Result<Self, QuotaSettingsError> {
        Rate::settable(tokens, per).ok_or(QuotaSettingsError::RefillRate { tokens, per })?;
        Ok(Self {
            tokens,
            per: u64::try_from(per.as_nanos()).unwrap_or(u64::MAX),
            start,
            handed_out: AtomicU64::new(0),
        })
    }

    /// Returns the whole tokens of so many nanoseconds.
    fn minted_in(&self, nanos: u64) -> u64 {
        // Cannot overflow: 64 bits by 32. At most one token a nanosecond, and `per` is not 0.
        let parts = u128::from(nanos).wrapping_mul(u128::from(self.tokens));
        let minted = parts.checked_div(u128::from(self.per)).unwrap_or(0);
        u64::try_from(minted).unwrap_or(u64::MAX)
    }

    /// Hands out the tokens that have been minted by `now` and not yet handed out.
    fn due(&self, now: Timestamp) -> u64 {
        let nanos = now.as_nanos().saturating_sub(self.start.as_nanos());
        let minted = self.minted_in(nanos);
        // Relaxed throughout: a number that only grows, moved by read-modify-writes; whoever moves
        // it from `a` to `b` hands out the tokens from `a` to `b`. Model:
        // `quota::time_pays_each_token_once`.
        let mut seen = self.handed_out.load(Relaxed);
        while seen < minted {
            match self
                .handed_out
                .compare_exchange_weak(seen, minted, Relaxed, Relaxed)
            {
                Ok(_) => return minted.wrapping_sub(seen),
                Err(actual) => seen = actual,
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_on_the_nanosecond_whatever_the_rate() {
        let span = Duration::from_nanos(7_000_000_003);
        let refill = Refill::new(3, span, Timestamp::ZERO).expect("in range");
        assert_eq!(refill.due(Timestamp::from_nanos(7_000_000_002)), 2);
        assert_eq!(refill.due(Timestamp::from_nanos(7_000_000_003)), 1);
    }

    #[test]
    fn no_fraction_of_a_token_is_dropped_and_none_comes_twice() {
        let start = Timestamp::from_nanos(7);
        let refill = Refill::new(1, Duration::from_nanos(8), start).expect("in range");
        let due = |nanos| refill.due(Timestamp::from_nanos(nanos));
        let asked = [0, 7, 14, 15, 15, 23, 12, 39, 40].map(due);
        assert_eq!(asked, [0, 0, 0, 1, 0, 1, 0, 2, 0]);
        assert_eq!(due(u64::MAX), (1 << 61) - 1 - 4);
        assert_eq!(due(u64::MAX), 0);
    }
}
