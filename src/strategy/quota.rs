//! The quota that pays for retries: the strategy's own, or the caller's.

use alloc::sync::Arc;
use core::ops::Deref;

use crate::RetryQuota;

/// The quota of one strategy.
#[derive(Debug)]
pub(super) enum QuotaSource {
    /// The strategy's own quota, which starts full.
    Own(RetryQuota),
    Given(Arc<RetryQuota>),
}

impl QuotaSource {
    pub(super) fn own(capacity: u32) -> Self {
        Self::Own(RetryQuota::new(capacity))
    }

    /// Returns the quota of another strategy with the same settings: a new quota, or the caller's
    /// quota for all.
    pub(super) fn another(&self) -> Self {
        match self {
            Self::Own(quota) => Self::own(quota.capacity()),
            Self::Given(quota) => Self::Given(Arc::clone(quota)),
        }
    }

    /// Returns `true` if dropping the quota loses nothing. An own quota must be full; the caller
    /// still has a given quota.
    pub(super) fn is_as_new(&self) -> bool {
        match self {
            Self::Own(quota) => quota.available() == quota.capacity(),
            Self::Given(_) => true,
        }
    }
}

impl Deref for QuotaSource {
    type Target = RetryQuota;

    #[inline]
    fn deref(&self) -> &RetryQuota {
        match self {
            Self::Own(quota) => quota,
            Self::Given(quota) => given(quota),
        }
    }
}

/// Follows the pointer. Cold, because most strategies have their own quota.
#[cold]
#[inline(never)]
fn given(quota: &Arc<RetryQuota>) -> &RetryQuota {
    quota
}
