//! The retry quota for recorded histories: the plain count, the calls, and twins with mistakes.

use core::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;

use fastrand::Rng;
use paceline::{QuotaPermit, RetryQuota};

use crate::history::{Sequential, Shared};

/// A quota, or a twin of one.
pub(crate) trait Quota: Sync {
    type Permit: Send;

    fn try_acquire(&self, cost: u32) -> Option<Self::Permit>;
    fn release(&self, permit: Self::Permit, cost: u32);
    fn credit(&self, amount: u32);
    fn drain(&self) -> u32;
    fn refill(&self) -> u32;
    fn available(&self) -> u32;
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Did {
    Take {
        cost: u32,
        granted: bool,
    },
    Add(u32),
    /// Takes all there is, and says how much that was.
    Drain(u32),
    /// Adds all that is missing, and says how much that was.
    Refill(u32),
    See(u32),
}

/// The plain count.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Count {
    available: u32,
    capacity: u32,
}

impl Sequential for Count {
    type Step = Did;

    fn after(&self, step: &Did) -> Option<Self> {
        let mut next = self.clone();
        match *step {
            Did::Take { cost, granted } => {
                if granted != (cost <= self.available) {
                    return None;
                }
                if granted {
                    next.available -= cost;
                }
            }
            Did::Add(amount) => {
                next.available = self.capacity.min(self.available.saturating_add(amount));
            }
            Did::Drain(taken) => {
                if taken != self.available {
                    return None;
                }
                next.available = 0;
            }
            Did::Refill(added) => {
                if added != self.capacity - self.available {
                    return None;
                }
                next.available = self.capacity;
            }
            Did::See(seen) => {
                if seen != self.available {
                    return None;
                }
            }
        }
        Some(next)
    }
}

pub(crate) struct QuotaObject<Q> {
    quota: Q,
    capacity: u32,
}

/// Capacities that a few costs fill, empty and miss by one, and the ends of the range.
const CAPACITIES: [u32; 6] = [0, 1, 7, 10, 28, u32::MAX];
const AMOUNTS: [u32; 7] = [0, 1, 3, 5, 7, 14, u32::MAX];

impl<Q> QuotaObject<Q> {
    pub(crate) fn new(make: impl Fn(u32) -> Q, seed: u64) -> Self {
        let capacity = CAPACITIES[usize::try_from(seed % 6).expect("small")];
        Self {
            quota: make(capacity),
            capacity,
        }
    }

    pub(crate) fn model(&self) -> Count {
        Count {
            available: self.capacity,
            capacity: self.capacity,
        }
    }
}

impl<Q: Quota> Shared for QuotaObject<Q> {
    type Did = Did;
    type Hand<'a>
        = Vec<(Q::Permit, u32)>
    where
        Self: 'a;

    fn deal(&self, threads: usize, _: &mut Rng) -> (Vec<Self::Hand<'_>>, Vec<Did>) {
        ((0..threads).map(|_| Vec::new()).collect(), Vec::new())
    }

    fn call<'a>(&'a self, hand: &mut Self::Hand<'a>, rng: &mut Rng) -> Did {
        let amount = AMOUNTS[rng.usize(..AMOUNTS.len())];
        match rng.u8(..10) {
            0..4 => {
                let permit = self.quota.try_acquire(amount);
                let granted = permit.is_some();
                hand.extend(permit.map(|permit| (permit, amount)));
                Did::Take {
                    cost: amount,
                    granted,
                }
            }
            4 => {
                self.quota.credit(amount);
                Did::Add(amount)
            }
            5 => Did::See(self.quota.available()),
            6 => Did::Drain(self.quota.drain()),
            7 => Did::Refill(self.quota.refill()),
            _ => match hand.pop() {
                Some((permit, cost)) => {
                    self.quota.release(permit, cost);
                    Did::Add(cost)
                }
                None => Did::See(self.quota.available()),
            },
        }
    }

    fn close(&self) -> Vec<Did> {
        vec![Did::See(self.quota.available())]
    }
}

impl Quota for RetryQuota {
    type Permit = QuotaPermit;

    fn try_acquire(&self, cost: u32) -> Option<QuotaPermit> {
        self.try_acquire(cost)
    }
    fn release(&self, permit: QuotaPermit, _: u32) {
        self.release(permit);
    }
    fn credit(&self, amount: u32) {
        self.credit(amount);
    }
    fn drain(&self) -> u32 {
        self.drain()
    }
    fn refill(&self) -> u32 {
        self.refill()
    }
    fn available(&self) -> u32 {
        self.available()
    }
}

/// A twin whose every step is a load and then a store.
pub(crate) struct LoadThenStore(AtomicU32, u32);

impl LoadThenStore {
    pub(crate) fn new(capacity: u32) -> Self {
        Self(AtomicU32::new(capacity), capacity)
    }

    fn replace(&self, step: impl Fn(u32) -> Option<u32>) -> Option<()> {
        let next = step(self.0.load(SeqCst))?;
        thread::yield_now(); // the mistake, made wide enough to be seen on few cores
        self.0.store(next, SeqCst);
        Some(())
    }
}

impl Quota for LoadThenStore {
    type Permit = ();

    fn try_acquire(&self, cost: u32) -> Option<()> {
        self.replace(|available| available.checked_sub(cost))
    }
    fn release(&self, (): (), cost: u32) {
        self.credit(cost);
    }
    fn credit(&self, amount: u32) {
        self.replace(|available| Some(available.saturating_add(amount).min(self.1)));
    }
    fn drain(&self) -> u32 {
        self.0.swap(0, SeqCst)
    }
    fn refill(&self) -> u32 {
        // Its mistake leaves more than the capacity now and then.
        self.1.saturating_sub(self.0.swap(self.1, SeqCst))
    }
    fn available(&self) -> u32 {
        self.0.load(SeqCst)
    }
}

/// A twin that looks whether a gain fits, and then adds it.
pub(crate) struct TwoSteps(AtomicU32, u32);

impl TwoSteps {
    pub(crate) fn new(capacity: u32) -> Self {
        Self(AtomicU32::new(capacity), capacity)
    }
}

impl Quota for TwoSteps {
    type Permit = ();

    fn try_acquire(&self, cost: u32) -> Option<()> {
        self.0
            .fetch_update(SeqCst, SeqCst, |available| available.checked_sub(cost))
            .ok()
            .map(drop)
    }
    fn release(&self, (): (), cost: u32) {
        self.credit(cost);
    }
    fn credit(&self, amount: u32) {
        let gain = amount.min(self.1.saturating_sub(self.0.load(SeqCst)));
        thread::yield_now(); // as above
        self.0.fetch_add(gain, SeqCst);
    }
    fn drain(&self) -> u32 {
        self.0.swap(0, SeqCst)
    }
    fn refill(&self) -> u32 {
        // Its mistake leaves more than the capacity now and then.
        self.1.saturating_sub(self.0.swap(self.1, SeqCst))
    }
    fn available(&self) -> u32 {
        self.0.load(SeqCst)
    }
}
