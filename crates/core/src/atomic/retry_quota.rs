//! The retry quota: one word of what is missing.

use core::fmt;

#[cfg(not(all(target_has_atomic = "64", not(narrow))))]
use super::sync::AtomicU32;
#[cfg(all(target_has_atomic = "64", not(narrow)))]
use super::sync::AtomicU64;
use super::sync::Ordering::Relaxed;
use crate::QuotaPermit;
#[cfg(all(target_has_atomic = "64", not(narrow)))]
use crate::fixed::to_signed;

/// A bucket of tokens that retries pay from and successes pay into.
///
/// A quota holds between 0 and [`capacity`](Self::capacity) tokens, starts full and never waits. A
/// refusal writes nothing, nor does a [`credit`](Self::credit) to a full quota.
///
/// # Memory ordering
///
/// None: no call synchronizes with any other, so do not publish data through a quota. Each call
/// takes effect at one instant, in one order that all threads agree on.
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
pub struct RetryQuota {
    /// The tokens that are not there: taken, and not paid back. What is full knows no capacity, so
    /// that a success that finds it so loads this word only.
    missing: Missing,
    capacity: u32,
}

/// The state of a [`RetryQuota`], for diagnostics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RetryQuotaSnapshot {
    /// The tokens that are there.
    pub available: u32,
    /// The most there can be.
    pub capacity: u32,
}

impl fmt::Debug for RetryQuota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryQuota")
            .field("available", &self.available())
            .field("capacity", &self.capacity())
            .finish()
    }
}

impl RetryQuota {
    /// Creates a full quota of `capacity` tokens.
    ///
    /// A capacity of 0 refuses every retry that costs anything.
    #[cfg(not(all(loom, feature = "loom")))]
    #[must_use]
    pub const fn new(capacity: u32) -> Self {
        Self {
            missing: Missing(Word::new(0)),
            capacity,
        }
    }

    /// Creates a full quota of `capacity` tokens. Loom's atomics cannot be made in a constant.
    #[cfg(all(loom, feature = "loom"))]
    #[must_use]
    pub fn new(capacity: u32) -> Self {
        Self {
            missing: Missing(Word::new(0)),
            capacity,
        }
    }

    /// Takes `cost` tokens, or takes nothing and returns `None` if there are not that many.
    ///
    /// A cost of 0 is always granted, a cost above the capacity never.
    #[must_use = "a permit that is dropped is spent"]
    //= AWS: This step acquires a token from the retry token bucket. If the retry token bucket is
    //= empty, the request will not be retried.
    //= Smithy: In short: if an attempt fails, a retry is only performed if a whole token can be
    //= removed from the bucket.
    pub fn try_acquire(&self, cost: u32) -> Option<QuotaPermit> {
        let taken = cost == 0 || self.missing.take(cost, self.capacity);
        taken.then_some(QuotaPermit::of(cost))
    }

    /// Puts back what `permit` took: the retry that it paid for succeeded.
    ///
    /// What does not fit under the capacity is discarded. A permit knows no quota: released to
    /// another quota, the permit moves its tokens there.
    #[expect(clippy::needless_pass_by_value, reason = "a permit is released once")]
    pub fn release(&self, permit: QuotaPermit) {
        self.missing.give_back(permit.cost());
    }

    /// Adds `amount` tokens, as many of them as fit: an operation succeeded that paid for no retry.
    //= Smithy: If an attempt succeeds, a fraction of a token is put into the bucket.
    pub fn credit(&self, amount: u32) {
        self.add(amount);
    }

    /// Adds `amount` tokens, and returns how many fitted.
    #[doc(hidden)]
    #[inline]
    #[allow(
        clippy::must_use_candidate,
        reason = "called for its effect, which the models' atomics hide"
    )]
    pub fn add(&self, amount: u32) -> u32 {
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
    #[allow(clippy::must_use_candidate, reason = "called for its effect")]
    pub fn drain(&self) -> u32 {
        self.missing.take_all(self.capacity)
    }

    /// Refuses every retry that costs anything until [`reopen`](Self::reopen): takes all tokens
    /// there are, and those that come back meanwhile.
    ///
    /// After 2³² tokens less the capacity have come back, some are there again: close it once more
    /// before that.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::RetryQuota;
    ///
    /// let quota = RetryQuota::new(500);
    /// quota.close();
    /// quota.credit(100);
    /// assert!(quota.try_acquire(1).is_none());
    /// quota.reopen();
    /// assert_eq!(quota.available(), 0);
    /// quota.credit(100);
    /// assert_eq!(quota.available(), 100);
    /// ```
    pub fn close(&self) {
        let _before = self.missing.update(|_| Some(u32::MAX));
    }

    /// Ends [`close`](Self::close). The quota is empty then; one that was not closed is as before.
    pub fn reopen(&self) {
        let within = |missing: u32| Some(missing.min(self.capacity));
        let _before = self.missing.update(within);
    }

    /// Fills the quota, and returns how many tokens more there are.
    ///
    /// Permits that are out then find it full when they come back.
    #[allow(clippy::must_use_candidate, reason = "called for its effect")]
    pub fn refill(&self) -> u32 {
        self.add(u32::MAX).min(self.capacity)
    }

    /// Returns the tokens that are there now. Another thread may take them at once.
    #[must_use]
    pub fn available(&self) -> u32 {
        self.snapshot().available
    }

    /// Returns the largest number of tokens that the quota holds.
    #[must_use]
    pub const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Returns the state, and changes nothing.
    #[must_use]
    pub fn snapshot(&self) -> RetryQuotaSnapshot {
        // Model: `quota::available_is_in_range`.
        RetryQuotaSnapshot {
            available: self.capacity.saturating_sub(self.missing.get()),
            capacity: self.capacity,
        }
    }
}

/// The tokens that are missing.
///
/// In 64 bits below 0 if more was given back than was missing: between two takes the word only
/// falls, so that clamping it once, in the take, is the same as clamping each gain, and a release
/// is one subtraction, and no loop. In 32 bits where wider words are not native, since one that is
/// made of a lock would not be lock-free: there each gain is clamped.
struct Missing(Word);

#[cfg(all(target_has_atomic = "64", not(narrow)))]
type Word = AtomicU64;
#[cfg(all(target_has_atomic = "64", not(narrow)))]
type Bits = u64;
#[cfg(not(all(target_has_atomic = "64", not(narrow))))]
type Word = AtomicU32;
#[cfg(not(all(target_has_atomic = "64", not(narrow))))]
type Bits = u32;

// Relaxed throughout: the word is all there is, nothing is published through it, and
// read-modify-writes of one word are totally ordered at any ordering. If a gain comes before a
// take, the take's swap finds it; if the take comes first, it is answered without the gain, as it
// would have been a moment sooner. A stale first load costs a lap if the call swaps; between an
// operation's take and its release no value of the word that it can read is older than the take.
// Models: `quota::two_takers_never_share_a_token`, `quota::release_and_credit_lose_nothing`.
impl Missing {
    /// Returns the tokens that are missing.
    #[inline]
    fn get(&self) -> u32 {
        missing_by(self.0.load(Relaxed)).unwrap_or(0)
    }

    /// Takes `cost` if no more than `capacity` is missing then.
    #[inline]
    fn take(&self, cost: u32, capacity: u32) -> bool {
        let fits = |missing: u32| missing.checked_add(cost).filter(|sum| *sum <= capacity);
        self.update(fits).is_some()
    }

    /// Takes all there is of `capacity`, and returns how much that was.
    fn take_all(&self, capacity: u32) -> u32 {
        let before = self.update(|missing| Some(missing.max(capacity)));
        before.map_or(0, |missing| capacity.saturating_sub(missing))
    }

    /// Gives back as much of `amount` as is missing, and returns how much that was. Writes nothing
    /// if it is none.
    #[inline]
    fn pay(&self, amount: u32) -> u32 {
        if amount == 0 || self.get() == 0 {
            return 0;
        }
        self.pay_back(amount)
    }

    // Out of the way of a success that finds the quota full.
    #[inline(never)]
    fn pay_back(&self, amount: u32) -> u32 {
        self.give_back(amount).min(amount)
    }

    /// Gives back as much of `amount` as is missing, and returns what was missing.
    #[cfg(all(target_has_atomic = "64", not(narrow)))]
    fn give_back(&self, amount: u32) -> u32 {
        /// Where a word so far below 0 is put back to 0. All threads together would have to
        /// subtract as much again before the one that notices goes on, in steps of 2³², for it to
        /// wrap.
        const FLOOR: i64 = -(1 << 62);
        let before = self.0.fetch_sub(amount.into(), Relaxed);
        let mut seen = before;
        while to_signed(seen) < FLOOR {
            match self.0.compare_exchange_weak(seen, 0, Relaxed, Relaxed) {
                Ok(_) => break,
                Err(actual) => seen = actual,
            }
        }
        missing_by(before).unwrap_or(0)
    }

    /// Gives back as much of `amount` as is missing, and returns what was missing.
    #[cfg(not(all(target_has_atomic = "64", not(narrow))))]
    fn give_back(&self, amount: u32) -> u32 {
        let before = self.update(|missing| Some(missing.saturating_sub(amount)));
        before.unwrap_or(0)
    }

    /// Replaces what is missing by `step` of it, and returns what it was; `None` if `step` refused.
    ///
    /// A step that refuses, or leaves the count as it is, writes nothing.
    #[inline]
    fn update(&self, step: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        let mut seen = self.0.load(Relaxed);
        loop {
            // Two swaps, for a branch: a value that both cases choose would have to be computed
            // first.
            let swapped = match missing_by(seen) {
                None => self.swap(seen, 0, &step),
                Some(missing) => self.swap(seen, missing, &step),
            };
            match swapped? {
                Ok(missing) => return Some(missing),
                Err(actual) => seen = actual,
            }
        }
    }

    /// Replaces `seen`, by which `missing` is missing, by `step` of that.
    #[inline]
    fn swap(
        &self,
        seen: Bits,
        missing: u32,
        step: impl Fn(u32) -> Option<u32>,
    ) -> Option<Result<u32, Bits>> {
        let next = step(missing)?;
        if next == missing {
            return Some(Ok(missing));
        }
        let swapped = self
            .0
            .compare_exchange_weak(seen, next.into(), Relaxed, Relaxed);
        Some(swapped.map(|_| missing))
    }
}

/// Returns what is missing by a word, `None` if nothing is.
#[cfg(all(target_has_atomic = "64", not(narrow)))]
fn missing_by(word: Bits) -> Option<u32> {
    (to_signed(word) > 0).then(|| u32::try_from(word).unwrap_or(u32::MAX))
}

/// Returns what is missing by a word, `None` if nothing is.
#[cfg(not(all(target_has_atomic = "64", not(narrow))))]
fn missing_by(word: Bits) -> Option<u32> {
    (word > 0).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(all(target_has_atomic = "64", not(narrow)))]
    #[test]
    fn a_word_far_below_zero_is_lifted_before_it_wraps() {
        let word = |value: i64| u64::from_ne_bytes(value.to_ne_bytes());
        let floor = -(1 << 62);
        let missing = Missing(AtomicU64::new(word(floor + 1)));
        missing.give_back(1);
        missing.give_back(1);
        assert_eq!(missing.0.load(Relaxed), word(floor - 1));
        missing.give_back(1);
        assert_eq!(missing.0.load(Relaxed), 0);
        missing.give_back(u32::MAX);
        assert_eq!((missing.get(), missing.pay(1)), (0, 0));
        assert!(missing.take(7, 7) && !missing.take(1, 7));
    }

    #[test]
    fn a_full_quota_is_not_written() {
        let missing = Missing(Word::new(0));
        assert_eq!((missing.pay(5), missing.0.load(Relaxed)), (0, 0));
    }
}
