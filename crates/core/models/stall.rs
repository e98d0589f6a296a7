//! Atomics that call a hook before each access, for the package `stall-tests`: only under `--cfg
//! stall`.
//!
//! The hook belongs to a thread. It may count, or unwind: then the access and all that would have
//! followed it never happen, as in a thread that stops there. A second hook is called
//! of each access after it.
#![allow(
    clippy::must_use_candidate,
    clippy::missing_errors_doc,
    missing_docs,
    reason = "only models see it"
)]

#[cfg(not(feature = "std"))]
extern crate std;

use core::cell::Cell;

use super::sync::{Ordering, real};

/// An access, once it has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The atomic's address.
    pub address: usize,
    /// What was done.
    pub kind: Kind,
}

/// What was done to an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It was read.
    Load,
    /// It was written, whatever it held.
    Update,
    /// It was compared and swapped. Hardware takes the line for writing.
    Swap,
    /// It was compared, and held something else.
    LostSwap,
}

std::thread_local! {
    static HOOK: Cell<fn()> = const { Cell::new(|| {}) };
    static WATCH: Cell<fn(Access)> = const { Cell::new(|_| {}) };
}

/// Makes this thread call `hook` before each of its atomic accesses from here on.
pub fn set_hook(hook: fn()) {
    HOOK.set(hook);
}

/// Calls `watch` at each of this thread's atomic accesses from here on.
pub fn set_watch(watch: fn(Access)) {
    WATCH.set(watch);
}

fn step() {
    HOOK.get()();
}

fn told<A>(atomic: &A, kind: Kind) {
    let address = core::ptr::from_ref(atomic).addr();
    WATCH.get()(Access { address, kind });
}

macro_rules! hooked {
    ($($name:ident: $value:ty),*) => {$(
        /// The atomic of this name, with the hook before each access.
        #[derive(Debug, Default)]
        pub struct $name(real::$name);

        impl $name {
            pub const fn new(value: $value) -> Self {
                Self(real::$name::new(value))
            }

            pub fn load(&self, order: Ordering) -> $value {
                step();
                told(self, Kind::Load);
                self.0.load(order)
            }

            #[allow(dead_code, reason = "not every width is stored")]
            pub fn store(&self, value: $value, order: Ordering) {
                step();
                told(self, Kind::Update);
                self.0.store(value, order);
            }
        }
    )*};
}

hooked!(AtomicU32: u32, AtomicU64: u64, AtomicU128: u128);

macro_rules! hooked_swaps {
    ($($name:ident $swap:ident: $value:ty),*) => {$(
        impl $name {
            #[allow(dead_code, reason = "not every width is swapped in every build")]
            pub fn $swap(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                step();
                let swapped = self.0.$swap(current, new, success, failure);
                told(self, if swapped.is_ok() { Kind::Swap } else { Kind::LostSwap });
                swapped
            }
        }
    )*};
}

hooked_swaps!(
    AtomicU32 compare_exchange_weak: u32,
    AtomicU32 compare_exchange: u32,
    AtomicU64 compare_exchange_weak: u64,
    AtomicU64 compare_exchange: u64,
    AtomicU128 compare_exchange: u128
);

impl AtomicU64 {
    pub fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        step();
        told(self, Kind::Update);
        self.0.fetch_add(value, order)
    }

    pub fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
        step();
        told(self, Kind::Update);
        self.0.fetch_sub(value, order)
    }

    /// For the numbers of threads, which there are none of without `std`.
    #[cfg(feature = "std")]
    pub fn fetch_and(&self, value: u64, order: Ordering) -> u64 {
        step();
        told(self, Kind::Update);
        self.0.fetch_and(value, order)
    }

    pub fn fetch_or(&self, value: u64, order: Ordering) -> u64 {
        step();
        told(self, Kind::Update);
        self.0.fetch_or(value, order)
    }
}

impl AtomicU128 {
    pub fn is_lock_free() -> bool {
        real::AtomicU128::is_lock_free()
    }
}
