//! The atomic types of the core: the only file that says where they come from.
//!
//! `portable-atomic` has the same types as `core` and adds 128-bit words and targets without
//! 64-bit compare-and-swap. Under loom and shuttle, their mocks take their place; neither has a
//! 128-bit atomic, so one is made of a word that numbers the values seen. Under `--cfg stall` come
//! wrappers that call a hook.

pub(crate) use core::sync::atomic::Ordering;

#[cfg(all(
    feature = "wake",
    not(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle")))
))]
pub(crate) use {atomic_waker::AtomicWaker, core::sync::atomic::fence};

#[cfg(not(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle"), stall)))]
pub(crate) use portable_atomic::{AtomicU32, AtomicU64, AtomicU128};

#[cfg(stall)]
pub(crate) use super::stall::{AtomicU32, AtomicU64, AtomicU128};

/// What the atomics that can be stopped are made of.
#[cfg(stall)]
pub(crate) use portable_atomic as real;

/// For statics, which loom's atomics cannot be; no model looks at one.
#[cfg(feature = "std")]
pub(crate) use portable_atomic::AtomicU64 as StaticU64;

#[cfg(all(loom, feature = "loom"))]
use loom::sync::atomic as explored;
#[cfg(all(shuttle, feature = "shuttle"))]
use shuttle::sync::atomic as explored;

#[cfg(all(
    feature = "wake",
    any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle"))
))]
pub(crate) use self::{explored::fence, waker::AtomicWaker};
#[cfg(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle")))]
pub(crate) use self::{
    explored::{AtomicU32, AtomicU64},
    mock::AtomicU128,
};

#[cfg(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle")))]
mod mock {
    #[cfg(not(feature = "std"))]
    extern crate std;

    use alloc::vec::Vec;

    use super::explored::{AtomicUsize, Ordering};

    /// A 128-bit atomic whose word is the number of a value in a table that only grows.
    ///
    /// Equal values have equal numbers, so that compare-and-swap by number is by value, and the
    /// orderings are those of the one atomic word: the state space is that of a real atomic.
    #[derive(Debug)]
    pub(crate) struct AtomicU128 {
        number: AtomicUsize,
        // The system's: no thread of a model can be switched out while it is held.
        values: std::sync::Mutex<Vec<u128>>,
    }

    impl AtomicU128 {
        pub(crate) fn new(value: u128) -> Self {
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
        pub(crate) const fn is_lock_free() -> bool {
            false
        }

        pub(crate) fn load(&self, order: Ordering) -> u128 {
            self.value_of(self.number.load(order))
        }

        pub(crate) fn store(&self, value: u128, order: Ordering) {
            self.number.store(self.number_of(value), order);
        }

        pub(crate) fn compare_exchange(
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
}

/// The crate's own one is proved elsewhere: here each of its calls is one step.
#[cfg(all(
    feature = "wake",
    any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle"))
))]
mod waker {
    #[cfg(not(feature = "std"))]
    extern crate std;

    use core::task::Waker;

    use super::explored::{AtomicUsize, Ordering};

    #[derive(Debug)]
    pub(crate) struct AtomicWaker {
        step: AtomicUsize,
        // The system's: no thread of a model can be switched out while it is held.
        waker: std::sync::Mutex<Option<Waker>>,
    }

    impl AtomicWaker {
        pub(crate) fn new() -> Self {
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

        pub(crate) fn register(&self, waker: &Waker) {
            drop(self.replace(Some(waker.clone())));
        }

        pub(crate) fn take(&self) -> Option<Waker> {
            self.replace(None)
        }

        pub(crate) fn wake(&self) {
            if let Some(waker) = self.take() {
                waker.wake();
            }
        }
    }
}

/// Compare-and-swap torn into a load and a store: what `ci/orderings.sh` puts in the place of one
/// after the other, to see that a model fails.
#[cfg(all(loom, feature = "loom"))]
#[expect(dead_code, reason = "used by the mutants that the script makes")]
pub(crate) trait Torn<T> {
    fn torn_exchange(
        &self,
        current: T,
        new: T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<T, T>;
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
}

#[cfg(all(loom, feature = "loom"))]
torn!(AtomicU32: u32, AtomicU64: u64, AtomicU128: u128);
