//! A quota as tower's budget.

use alloc::sync::Arc;

use paceline::RetryQuota;
use tower::retry::budget::Budget;

/// A [`RetryQuota`] as the budget of a custom policy of tower.
///
/// A budget does not see results. Each retry costs the same, and each success adds the same,
/// whatever it had paid. [`RetryPolicy`](crate::RetryPolicy) knows both. Clones share the quota.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use paceline::RetryQuota;
/// use paceline_tower::QuotaBudget;
/// use tower::retry::budget::Budget;
///
/// let budget = QuotaBudget::new(Arc::new(RetryQuota::new(20)));
/// assert!(budget.withdraw());
/// assert!(!budget.withdraw()); // 6 are left, and a retry costs 14
/// budget.deposit();
/// assert_eq!(budget.quota().available(), 7);
/// ```
#[derive(Clone, Debug)]
pub struct QuotaBudget {
    quota: Arc<RetryQuota>,
    cost: u32,
    credit: u32,
}

impl QuotaBudget {
    /// Creates the budget in which a retry costs 14 tokens and a success adds one ("Retry behavior
    /// 2.1", AWS SDKs and Tools Reference Guide).
    #[must_use]
    pub const fn new(quota: Arc<RetryQuota>) -> Self {
        Self {
            quota,
            cost: 14,
            credit: 1,
        }
    }

    /// Sets what a retry costs. With 0 no retry is refused.
    #[must_use]
    pub const fn cost(mut self, tokens: u32) -> Self {
        self.cost = tokens;
        self
    }

    /// Sets what a success adds.
    #[must_use]
    pub const fn credit(mut self, tokens: u32) -> Self {
        self.credit = tokens;
        self
    }

    /// Returns the quota.
    #[must_use]
    pub const fn quota(&self) -> &Arc<RetryQuota> {
        &self.quota
    }
}

impl Budget for QuotaBudget {
    fn deposit(&self) {
        self.quota.credit(self.credit);
    }

    fn withdraw(&self) -> bool {
        // No call reports the success of this retry, so its permit is spent.
        self.quota.try_acquire(self.cost).is_some()
    }
}
