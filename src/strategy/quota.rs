//! What retries are paid from: the strategy's own quota, or one that the caller gave.

use alloc::sync::Arc;
use core::ops::Deref;

use crate::RetryQuota;

/// The quota of one strategy.
#[derive(Debug)]
pub(super) enum QuotaSource {
    /// Its own, and as full as it is made.
    Own(RetryQuota),
    Given(Arc<RetryQuota>),
}

impl QuotaSource {
    pub(super) fn own(capacity: u32) -> Self {
        Self::Own(RetryQuota::new(capacity))
    }

    /// Returns what another strategy with the same settings pays from: a new quota, or the one that
    /// the caller gave to all.
    pub(super) fn another(&self) -> Self {
        match self {
            Self::Own(quota) => Self::own(quota.capacity()),
            Self::Given(quota) => Self::Given(Arc::clone(quota)),
        }
    }

    /// Returns `true` if dropping it loses nothing: an own quota is full, and the caller still has
    /// one that was given.
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

/// Follows the pointer, out of the way of a strategy with its own quota.
#[cold]
#[inline(never)]
fn given(quota: &Arc<RetryQuota>) -> &RetryQuota {
    quota
}
