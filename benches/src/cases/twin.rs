//! The same algorithms under a mutex.

use super::aws_model::AwsModel;

/// A mutex, of either kind.
pub(super) trait Lock<T>: Send + Sync + 'static {
    fn of(value: T) -> Self;
    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R;
}

impl<T: Send + 'static> Lock<T> for std::sync::Mutex<T> {
    fn of(value: T) -> Self {
        Self::new(value)
    }

    #[inline]
    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let mut guard = self
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        work(&mut guard)
    }
}

impl<T: Send + 'static> Lock<T> for parking_lot::Mutex<T> {
    fn of(value: T) -> Self {
        Self::new(value)
    }

    #[inline]
    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.lock())
    }
}

/// A retry quota.
pub(super) struct Quota {
    available: u32,
    capacity: u32,
}

impl Quota {
    pub(super) const fn holding(available: u32, capacity: u32) -> Self {
        Self {
            available,
            capacity,
        }
    }

    pub(super) const fn take(&mut self, cost: u32) -> bool {
        let enough = self.available >= cost;
        if enough {
            self.available -= cost;
        }
        enough
    }

    pub(super) fn credit(&mut self, amount: u32) {
        self.available = self.capacity.min(self.available + amount);
    }
}

/// A send rate of the published law: the model that the tests compare `SendRate` with.
pub(super) struct Rate(AwsModel);

impl Rate {
    pub(super) fn new() -> Self {
        Self(AwsModel::new(0))
    }

    /// Takes a token if there is one.
    pub(super) fn take(&mut self, now: u64) -> bool {
        if !self.0.enabled {
            return true;
        }
        self.0.refill(now);
        let enough = self.0.available >= 1.0;
        if enough {
            self.0.available -= 1.0;
        }
        enough
    }

    pub(super) fn record(&mut self, now: u64, throttled: bool) {
        self.0.record(now, throttled);
    }
}
