//! What retries are paid from, whichever kind it is.

use alloc::sync::Arc;
use core::fmt;

use crate::{Clock, QuotaPermit, RetryBudget, RetryQuota};

/// What retries are paid from: [`RetryQuota`], [`RetryBudget`], or one of your own.
///
/// [`StrategyBuilder::pay_from`](crate::config::StrategyBuilder::pay_from) takes any. A strategy
/// with a plain [`RetryQuota`] makes no virtual call, and asks no clock.
///
/// # Examples
///
/// One that lets every retry through, and says so:
///
/// ```
/// use std::sync::Arc;
/// use paceline::{Clock, QuotaPermit, Standard, config::Quota};
///
/// #[derive(Debug)]
/// struct Unlimited;
///
/// impl Quota for Unlimited {
///     fn try_acquire(&self, cost: u32, _clock: &dyn Clock) -> Option<QuotaPermit> {
///         Some(QuotaPermit::of(cost))
///     }
///     fn available(&self, _clock: &dyn Clock) -> u32 {
///         u32::MAX
///     }
/// }
///
/// let strategy = Standard::builder().pay_from(Arc::new(Unlimited)).build()?;
/// # Ok::<(), paceline::config::SettingsError>(())
/// ```
pub trait Quota: fmt::Debug + Send + Sync {
    /// Takes note of an operation that begins. By default nothing.
    fn begin(&self, clock: &dyn Clock) {
        let _ = clock;
    }

    /// Pays for a retry that costs so much, or takes nothing and returns `None`.
    fn try_acquire(&self, cost: u32, clock: &dyn Clock) -> Option<QuotaPermit>;

    /// Takes note that the retry succeeded that `permit` paid for, and returns the tokens that this
    /// brought. By default none: what is paid is spent.
    fn release(&self, permit: QuotaPermit) -> u32 {
        let _ = permit;
        0
    }

    /// Takes back what a retry was paid with that was never sent, because its operation was given
    /// up. By default nothing comes back.
    fn give_back(&self, permit: QuotaPermit) {
        let _ = permit;
    }

    /// Takes note of a success that needed no retry and is worth `amount`, and returns the tokens
    /// that this brought. By default none.
    fn credit(&self, amount: u32) -> u32 {
        let _ = amount;
        0
    }

    /// Returns the tokens that are there now.
    fn available(&self, clock: &dyn Clock) -> u32;

    /// Returns the most that there can be, if there is a bound. By default `None`.
    fn capacity(&self) -> Option<u32> {
        None
    }
}

impl Quota for RetryQuota {
    fn try_acquire(&self, cost: u32, _clock: &dyn Clock) -> Option<QuotaPermit> {
        self.try_acquire(cost)
    }

    fn release(&self, permit: QuotaPermit) -> u32 {
        self.add(permit.cost())
    }

    fn give_back(&self, permit: QuotaPermit) {
        self.add(permit.cost());
    }

    fn credit(&self, amount: u32) -> u32 {
        self.add(amount)
    }

    fn available(&self, _clock: &dyn Clock) -> u32 {
        self.available()
    }

    fn capacity(&self) -> Option<u32> {
        Some(self.capacity())
    }
}

/// Each retry counts as one, whatever it costs, and also if it was never sent.
impl Quota for RetryBudget {
    fn begin(&self, clock: &dyn Clock) {
        self.count_request(clock.now());
    }

    fn try_acquire(&self, _cost: u32, clock: &dyn Clock) -> Option<QuotaPermit> {
        self.try_acquire(clock.now())
    }

    fn available(&self, clock: &dyn Clock) -> u32 {
        self.available(clock.now())
    }
}

/// The quota of one strategy.
#[derive(Debug)]
pub(super) enum QuotaSource {
    /// The published one, and as full as it is made: of this capacity.
    Own { quota: RetryQuota, capacity: u32 },
    /// The published one, of the caller's.
    Plain(Arc<RetryQuota>),
    Other {
        quota: Arc<dyn Quota>,
        clock: Arc<dyn Clock>,
        /// A published one that no retry pays from.
        none: Arc<RetryQuota>,
    },
}

/// The state of what retries are paid from, for diagnostics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct QuotaSnapshot {
    /// The tokens that are there; of a [`RetryBudget`] the retries.
    pub available: u32,
    /// The most that there can be, if there is a bound.
    pub capacity: Option<u32>,
}

#[cold]
fn begin_other(quota: &dyn Quota, clock: &dyn Clock) {
    quota.begin(clock);
}

impl QuotaSource {
    /// Returns the first that is given, or else a plain one of `capacity`. Only what asks for the
    /// time makes a clock.
    pub(super) fn of(
        other: Option<Arc<dyn Quota>>,
        published: Option<Arc<RetryQuota>>,
        capacity: u32,
        clock: impl FnOnce() -> Arc<dyn Clock>,
    ) -> Self {
        match (other, published) {
            (Some(quota), _) => Self::Other {
                quota,
                clock: clock(),
                none: Arc::new(RetryQuota::new(0)),
            },
            (None, Some(quota)) => Self::Plain(quota),
            (None, None) => Self::own(capacity),
        }
    }

    fn own(capacity: u32) -> Self {
        Self::Own {
            quota: RetryQuota::new(capacity),
            capacity,
        }
    }

    /// What another strategy with the same settings pays from: a new quota, or the one that the
    /// caller gave to all.
    pub(super) fn another(&self) -> Self {
        match self {
            Self::Own { capacity, .. } => Self::own(*capacity),
            Self::Plain(quota) => Self::Plain(Arc::clone(quota)),
            Self::Other { quota, clock, none } => Self::Other {
                quota: Arc::clone(quota),
                clock: Arc::clone(clock),
                none: Arc::clone(none),
            },
        }
    }

    /// Returns `true` if dropping it loses nothing: an own quota is as it was made, and the caller
    /// still has one that was given.
    pub(super) fn is_as_new(&self) -> bool {
        match self {
            Self::Own { quota, capacity } => {
                quota.capacity() == *capacity && quota.available() == *capacity
            }
            Self::Plain(_) | Self::Other { .. } => true,
        }
    }

    /// Returns the published quota; an empty one that no retry pays from if it is another kind.
    pub(super) fn published(&self) -> &RetryQuota {
        match self {
            Self::Own { quota, .. } => quota,
            Self::Plain(quota) | Self::Other { none: quota, .. } => quota,
        }
    }

    pub(super) fn begin(&self) {
        if let Self::Other { quota, clock, .. } = self {
            begin_other(&**quota, &**clock);
        }
    }

    pub(super) fn try_acquire(&self, cost: u32) -> Option<QuotaPermit> {
        match self {
            Self::Own { quota, .. } => quota.try_acquire(cost),
            Self::Plain(quota) => quota.try_acquire(cost),
            Self::Other { quota, clock, .. } => quota.try_acquire(cost, &**clock),
        }
    }

    pub(super) fn release(&self, permit: QuotaPermit) -> u32 {
        match self {
            Self::Own { quota, .. } => quota.add(permit.cost()),
            Self::Plain(quota) => quota.add(permit.cost()),
            Self::Other { quota, .. } => quota.release(permit),
        }
    }

    pub(super) fn give_back(&self, permit: QuotaPermit) {
        match self {
            Self::Own { quota, .. } => Quota::give_back(quota, permit),
            Self::Plain(quota) => Quota::give_back(&**quota, permit),
            Self::Other { quota, .. } => quota.give_back(permit),
        }
    }

    #[inline]
    pub(super) fn credit(&self, amount: u32) -> u32 {
        match self {
            Self::Own { quota, .. } => quota.add(amount),
            _ => self.credit_given(amount),
        }
    }

    // Cold, here and below, for the layout alone: the quota that most have falls through.
    #[cold]
    fn credit_given(&self, amount: u32) -> u32 {
        match self {
            Self::Own { quota, .. } => quota.add(amount),
            Self::Plain(quota) => quota.add(amount),
            Self::Other { quota, .. } => quota.credit(amount),
        }
    }

    pub(super) fn available(&self) -> u32 {
        match self {
            Self::Own { quota, .. } => quota.available(),
            Self::Plain(quota) => quota.available(),
            Self::Other { quota, clock, .. } => quota.available(&**clock),
        }
    }

    pub(super) fn snapshot(&self) -> QuotaSnapshot {
        let capacity = match self {
            Self::Own { quota, .. } => Some(quota.capacity()),
            Self::Plain(quota) => Some(quota.capacity()),
            Self::Other { quota, .. } => quota.capacity(),
        };
        QuotaSnapshot {
            available: self.available(),
            capacity,
        }
    }
}
