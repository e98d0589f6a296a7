//! What stands for the atomics under loom and shuttle: only there.
//!
//! Neither has a 128-bit atomic, so one is made of a word that numbers the values seen.
#![allow(
    clippy::must_use_candidate,
    clippy::missing_errors_doc,
    reason = "only models see it"
)]

#[cfg(not(feature = "std"))]
extern crate std;

#[cfg(all(loom, feature = "loom"))]
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::task::Waker;

#[cfg(all(loom, feature = "loom"))]
pub use loom::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
#[cfg(all(shuttle, feature = "shuttle"))]
pub use shuttle::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

/// A 128-bit atomic whose word is the number of a value in a table that only grows.
///
/// Equal values have equal numbers, so that compare-and-swap by number is by value, and the
/// orderings are those of the one atomic word: the state space is that of a real atomic.
#[derive(Debug)]
pub struct AtomicU128 {
    number: AtomicUsize,
    // The system's: no thread of a model can be switched out while it is held.
    values: std::sync::Mutex<Vec<u128>>,
}

impl AtomicU128 {
    pub fn new(value: u128) -> Self {
        Self {
            number: AtomicUsize::new(0),
            values: std::sync::Mutex::new(alloc::vec![value]),
        }
    }

    fn number_of(&self, value: u128) -> usize {
        let mut values = self
            .values
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        values.iter().position(|v| *v == value).unwrap_or_else(|| {
            values.push(value);
            values.len().wrapping_sub(1)
        })
    }

    fn value_of(&self, number: usize) -> u128 {
        self.values
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)[number]
    }

    #[cfg(not(loom))]
    pub const fn is_lock_free() -> bool {
        false
    }

    pub fn load(&self, order: Ordering) -> u128 {
        self.value_of(self.number.load(order))
    }

    pub fn store(&self, value: u128, order: Ordering) {
        self.number.store(self.number_of(value), order);
    }

    pub fn compare_exchange(
        &self,
        current: u128,
        new: u128,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u128, u128> {
        let (current, new) = (self.number_of(current), self.number_of(new));
        match self.number.compare_exchange(current, new, success, failure) {
            Ok(number) => Ok(self.value_of(number)),
            Err(number) => Err(self.value_of(number)),
        }
    }
}

/// The crate's own one is proved elsewhere: here each of its calls is one step.
#[derive(Debug)]
pub struct AtomicWaker {
    step: AtomicUsize,
    // The system's: no thread of a model can be switched out while it is held.
    waker: std::sync::Mutex<Option<Waker>>,
}

impl AtomicWaker {
    pub fn new() -> Self {
        Self {
            step: AtomicUsize::new(0),
            waker: std::sync::Mutex::new(None),
        }
    }

    fn replace(&self, waker: Option<Waker>) -> Option<Waker> {
        self.step.fetch_add(1, Ordering::AcqRel);
        let mut held = self
            .waker
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        core::mem::replace(&mut held, waker)
    }

    pub fn register(&self, waker: &Waker) {
        drop(self.replace(Some(waker.clone())));
    }

    pub fn take(&self) -> Option<Waker> {
        self.replace(None)
    }

    pub fn wake(&self) {
        if let Some(waker) = self.take() {
            waker.wake();
        }
    }
}

/// A value that is there from the start: loom explores what it knows of, and the pointer is none of
/// its business.
#[cfg(all(loom, feature = "loom"))]
#[derive(Debug)]
pub struct Lazy<T>(Box<T>);

#[cfg(all(loom, feature = "loom"))]
impl<T> Lazy<T> {
    pub fn new(make: impl FnOnce() -> T) -> Self {
        Self(Box::new(make()))
    }

    pub fn get(&self) -> Option<&T> {
        Some(&self.0)
    }

    pub fn get_or_make(&self, _make: impl FnOnce() -> T) -> &T {
        &self.0
    }
}

/// Read-modify-writes torn into a load and a store: what `ci/orderings.py` puts in the place of one
/// after the other, to see that a model fails.
#[cfg(all(loom, feature = "loom"))]
#[allow(dead_code, reason = "used by the mutants that the script makes")]
pub trait Torn<T> {
    fn torn_exchange(
        &self,
        current: T,
        new: T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<T, T>;
}

/// As [`Torn`], of those that cannot fail.
#[cfg(all(loom, feature = "loom"))]
#[allow(dead_code, reason = "used by the mutants that the script makes")]
pub trait TornFetch {
    fn torn(&self, step: impl FnOnce(u64) -> u64) -> u64;

    fn torn_add(&self, value: u64, _: Ordering) -> u64 {
        self.torn(|seen| seen.wrapping_add(value))
    }

    fn torn_sub(&self, value: u64, _: Ordering) -> u64 {
        self.torn(|seen| seen.wrapping_sub(value))
    }

    fn torn_and(&self, value: u64, _: Ordering) -> u64 {
        self.torn(|seen| seen & value)
    }

    fn torn_or(&self, value: u64, _: Ordering) -> u64 {
        self.torn(|seen| seen | value)
    }

    fn torn_max(&self, value: u64, _: Ordering) -> u64 {
        self.torn(|seen| seen.max(value))
    }
}

#[cfg(all(loom, feature = "loom"))]
macro_rules! torn {
    ($($atomic:ty: $value:ty),*) => {$(
        impl Torn<$value> for $atomic {
            fn torn_exchange(
                &self,
                current: $value,
                new: $value,
                _success: Ordering,
                _failure: Ordering,
            ) -> Result<$value, $value> {
                let seen = self.load(Ordering::Acquire);
                if seen != current {
                    return Err(seen);
                }
                self.store(new, Ordering::Release);
                Ok(seen)
            }
        }
    )*};
    (fetch $($atomic:ty),*) => {$(
        impl TornFetch for $atomic {
            fn torn(&self, step: impl FnOnce(u64) -> u64) -> u64 {
                let seen = self.load(Ordering::Acquire);
                self.store(step(seen), Ordering::Release);
                seen
            }
        }
    )*};
}

#[cfg(all(loom, feature = "loom"))]
torn!(AtomicU32: u32, AtomicU64: u64, AtomicU128: u128);
#[cfg(all(loom, feature = "loom"))]
torn!(fetch AtomicU64, portable_atomic::AtomicU64);
