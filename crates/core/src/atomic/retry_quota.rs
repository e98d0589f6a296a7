//! The retry quota: one word that counts the missing tokens.

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
/// It holds between 0 and [`capacity`](Self::capacity) tokens, starts full and never waits. A
/// refusal, and a [`credit`](Self::credit) that finds it full, write nothing.
///
/// # Memory ordering
///
/// No ordering is promised: no call synchronizes with another, so do not publish data through a
/// quota. Each call takes effect at one instant, in one order that all threads agree on.
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
    /// The tokens that were taken and not paid back. This is 0 in a full quota of any capacity, so
    /// a success that finds the quota full loads only this word.
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
    /// The most tokens that there can be.
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
    /// Tokens above the capacity are discarded. A permit does not know its quota. Released to
    /// another quota, a permit moves its tokens there.
    #[expect(clippy::needless_pass_by_value, reason = "a permit is released once")]
    pub fn release(&self, permit: QuotaPermit) {
        self.missing.give_back(permit.cost());
    }

    /// Adds `amount` tokens, or as many as fit: an operation succeeded without paying for a retry.
    //= Smithy: If an attempt succeeds, a fraction of a token is put into the bucket.
    pub fn credit(&self, amount: u32) {
        self.add(amount);
    }

    /// Adds `amount` tokens, and returns how many fitted.
    #[doc(hidden)]
    #[inline]
    pub fn add(&self, amount: u32) -> u32 {
        self.missing.pay(amount)
    }

    /// Takes all tokens, and returns how many there were. Permits that are out can still be
    /// released.
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

    /// Refuses every retry that costs anything until [`reopen`](Self::reopen). Takes all tokens,
    /// and also the tokens that come back meanwhile.
    ///
    /// Once 2³² tokens less the capacity have come back, tokens are there again. Close the quota
    /// once more before that.
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

    /// Ends [`close`](Self::close). The quota is then empty. A quota that was not closed stays as
    /// it is.
    pub fn reopen(&self) {
        let within = |missing: u32| Some(missing.min(self.capacity));
        let _before = self.missing.update(within);
    }

    /// Fills the quota, and returns how many tokens it gained.
    ///
    /// Permits that are out then find the quota full when they are released.
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
/// A word of 64 bits is below 0 if more was given back than was missing. Between two takes the word
/// only falls, so clamping it once, in the take, equals clamping each gain. So a release is one
/// subtraction, and no loop. Where 64-bit words are not native, the word has 32 bits, since a word
/// made of a lock would not be lock-free. There each gain is clamped.
struct Missing(Word);

#[cfg(all(target_has_atomic = "64", not(narrow)))]
type Word = AtomicU64;
#[cfg(all(target_has_atomic = "64", not(narrow)))]
type Bits = u64;
#[cfg(not(all(target_has_atomic = "64", not(narrow))))]
type Word = AtomicU32;
#[cfg(not(all(target_has_atomic = "64", not(narrow))))]
type Bits = u32;

// Relaxed throughout: there is only this word, it publishes nothing, and read-modify-writes of one
// word are totally ordered at any ordering. If a gain comes before a take, the take's swap finds
// the gain. If the take comes first, it is answered without the gain, as a moment sooner. A stale
// first load costs a lap if the call swaps. Between an operation's take and its release, the
// operation can read no value of the word older than the take. Models:
// `quota::two_takers_never_share_a_token`, `quota::release_and_credit_lose_nothing`.
impl Missing {
    /// Returns the tokens that are missing.
    #[inline]
    fn get(&self) -> u32 {
        missing_by(self.0.load(Relaxed)).unwrap_or(0)
    }

    /// Takes `cost` tokens if at most `capacity` are missing then.
    #[inline]
    fn take(&self, cost: u32, capacity: u32) -> bool {
        let fits = |missing: u32| missing.checked_add(cost).filter(|sum| *sum <= capacity);
        self.update(fits).is_some()
    }

    /// Takes all tokens, and returns how many there were.
    fn take_all(&self, capacity: u32) -> u32 {
        let before = self.update(|missing| Some(missing.max(capacity)));
        before.map_or(0, |missing| capacity.saturating_sub(missing))
    }

    /// Gives back as much of `amount` as is missing, and returns how much. Writes nothing if
    /// nothing is missing.
    #[inline]
    fn pay(&self, amount: u32) -> u32 {
        if amount == 0 || self.get() == 0 {
            return 0;
        }
        self.pay_back(amount)
    }

    // Not inlined: this keeps the path of a full quota short.
    #[inline(never)]
    fn pay_back(&self, amount: u32) -> u32 {
        self.give_back(amount).min(amount)
    }

    /// Gives back as much of `amount` as is missing, and returns what was missing.
    #[cfg(all(target_has_atomic = "64", not(narrow)))]
    fn give_back(&self, amount: u32) -> u32 {
        /// A word below this is put back to 0. For the word to wrap, all threads together would
        /// have to subtract as much again, in steps of 2³², before the thread that notices goes on.
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

    /// Replaces the count of missing tokens by `step` of it, and returns the old count; `None` if
    /// `step` refused.
    ///
    /// A step that refuses, or leaves the count as it is, writes nothing.
    #[inline]
    fn update(&self, step: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        let mut seen = self.0.load(Relaxed);
        loop {
            // Two swaps in two branches: one swap for both would have to compute its value first.
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

    /// Replaces `seen`, a word of `missing` tokens, by `step` of `missing`.
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

/// Returns how many tokens a word says are missing, `None` if none are.
#[cfg(all(target_has_atomic = "64", not(narrow)))]
fn missing_by(word: Bits) -> Option<u32> {
    (to_signed(word) > 0).then(|| u32::try_from(word).unwrap_or(u32::MAX))
}

/// Returns how many tokens a word says are missing, `None` if none are.
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
