//! `quota_vs_model`: operation sequences on the retry quota against a plain count.

use arbitrary::{Arbitrary, Unstructured};
use paceline::{QuotaPermit, RetryQuota};

use crate::steps;

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Capacity {
    Published,
    Small(u8),
    Any(u32),
    Largest,
}

impl Capacity {
    fn tokens(self) -> u32 {
        match self {
            Self::Published => 500,
            Self::Small(tokens) => u32::from(tokens),
            Self::Any(tokens) => tokens,
            Self::Largest => u32::MAX,
        }
    }
}

#[derive(Arbitrary, Debug)]
enum Step {
    TryAcquire(Amount),
    Credit(Amount),
    /// Gives back one of the permits that are out.
    Release(u8),
    /// Spends one of the permits that are out.
    Drop(u8),
}

/// Amounts that lie where the answers change.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Amount {
    Small(u8),
    /// What is available, and a little more or less.
    NearAvailable(i8),
    /// What is missing to the capacity, and a little more or less.
    NearMissing(i8),
    Any(u32),
}

/// The quota as one plain number.
#[derive(Debug)]
struct Model {
    available: u64,
    capacity: u64,
}

impl Model {
    fn amount(&self, amount: Amount) -> u32 {
        let near = |count: u64, off: i8| {
            let near = count.saturating_add_signed(i64::from(off));
            u32::try_from(near).unwrap_or(u32::MAX)
        };
        match amount {
            Amount::Small(tokens) => u32::from(tokens),
            Amount::NearAvailable(off) => near(self.available, off),
            Amount::NearMissing(off) => near(self.capacity - self.available, off),
            Amount::Any(tokens) => tokens,
        }
    }

    fn take(&mut self, cost: u32) -> bool {
        let fits = u64::from(cost) <= self.available;
        if fits {
            self.available -= u64::from(cost);
        }
        fits
    }

    fn add(&mut self, amount: u32) {
        self.available = self.capacity.min(self.available + u64::from(amount));
    }
}

/// Runs the sequence that `data` encodes on a quota and on its model.
///
/// # Panics
///
/// Panics if an answer of the quota is not the model's.
pub fn quota_vs_model(data: &[u8]) {
    let mut data = Unstructured::new(data);
    let Ok(capacity) = Capacity::arbitrary(&mut data) else {
        return;
    };
    let quota = RetryQuota::new(capacity.tokens());
    let capacity = u64::from(capacity.tokens());
    let mut model = Model {
        available: capacity,
        capacity,
    };
    let mut permits = Vec::new();
    for step in steps(&mut data) {
        apply(&step, &quota, &mut model, &mut permits);
        assert_eq!(u64::from(quota.available()), model.available, "{step:?}");
        assert_eq!(u64::from(quota.capacity()), capacity, "{step:?}");
    }
}

fn apply(step: &Step, quota: &RetryQuota, model: &mut Model, permits: &mut Vec<QuotaPermit>) {
    match *step {
        Step::TryAcquire(amount) => {
            let cost = model.amount(amount);
            let permit = quota.try_acquire(cost);
            assert_eq!(permit.is_some(), model.take(cost), "{cost} of {model:?}");
            assert!(permit.iter().all(|permit| permit.cost() == cost));
            permits.extend(permit);
        }
        Step::Credit(amount) => {
            let amount = model.amount(amount);
            quota.credit(amount);
            model.add(amount);
        }
        Step::Release(pick) if !permits.is_empty() => {
            let permit = permits.swap_remove(usize::from(pick) % permits.len());
            model.add(permit.cost());
            quota.release(permit);
        }
        Step::Drop(pick) if !permits.is_empty() => {
            drop(permits.swap_remove(usize::from(pick) % permits.len()));
        }
        Step::Release(_) | Step::Drop(_) => {}
    }
}
