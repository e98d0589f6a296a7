//! The retry quota: one word, moved by compare-and-swap.

use super::sync::{AtomicU32, Ordering::Relaxed};

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
    /// Returns the tokens that this permit took.
    #[must_use]
    pub const fn cost(&self) -> u32 {
        self.cost
    }
}

/// A bucket of tokens that retries pay from and successes pay into.
///
/// It holds between 0 and [`capacity`](Self::capacity) tokens, starts full, never waits and has no
/// clock. A refusal, and a success that finds it full, write nothing.
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
#[derive(Debug)]
pub struct RetryQuota {
    available: AtomicU32,
    capacity: u32,
}

impl RetryQuota {
    /// Creates a full quota of `capacity` tokens.
    ///
    /// A capacity of 0 refuses every retry that costs anything.
    #[cfg(not(all(loom, feature = "loom")))]
    #[must_use]
    pub const fn new(capacity: u32) -> Self {
        Self {
            available: AtomicU32::new(capacity),
            capacity,
        }
    }

    /// Creates a full quota of `capacity` tokens. Loom's atomics cannot be made in a constant.
    #[cfg(all(loom, feature = "loom"))]
    #[must_use]
    pub fn new(capacity: u32) -> Self {
        Self {
            available: AtomicU32::new(capacity),
            capacity,
        }
    }

    /// Takes `cost` tokens, or takes nothing and returns `None` if there are not that many.
    ///
    /// A cost of 0 is always granted, a cost above the capacity never.
    #[must_use = "a permit that is dropped is spent"]
    pub fn try_acquire(&self, cost: u32) -> Option<QuotaPermit> {
        let taken = self.update(|available| available.checked_sub(cost));
        taken.then_some(QuotaPermit { cost })
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
        self.update(|available| Some(available.saturating_add(amount).min(self.capacity)));
    }

    /// Returns the tokens that are there now. Another thread may take them at once.
    #[must_use]
    pub fn available(&self) -> u32 {
        // Relaxed: the count is all there is to read. Model: `quota::available_is_in_range`.
        self.available.load(Relaxed)
    }

    /// Returns the largest number of tokens that the quota holds.
    #[must_use]
    pub const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Replaces the count by `step` of it, and tells whether `step` accepted.
    ///
    /// A step that refuses, or leaves the count as it is, writes nothing.
    fn update(&self, step: impl Fn(u32) -> Option<u32>) -> bool {
        // Relaxed throughout: the word is all there is, nothing is published through it, and
        // read-modify-writes of one word are totally ordered at any ordering. A stale first load
        // costs a lap when the step stores. When it does not, the answer may be out of date, which
        // is as if the caller had asked a moment sooner; between an operation's own take and its
        // own release no value of the word it can read is older than the take.
        // Models: `quota::two_takers_never_share_a_token`, `quota::release_and_credit_lose_nothing`.
        let mut seen = self.available.load(Relaxed);
        loop {
            let Some(next) = step(seen) else { return false };
            if next == seen {
                return true;
            }
            match self
                .available
                .compare_exchange_weak(seen, next, Relaxed, Relaxed)
            {
                Ok(_) => return true,
                Err(actual) => seen = actual,
            }
        }
    }
}
