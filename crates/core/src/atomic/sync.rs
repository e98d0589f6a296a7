//! The atomic types of the core. Only this file says where they come from.
//!
//! `portable-atomic` has the same types as `core` and adds 128-bit words and targets without
//! 64-bit compare-and-swap. Under loom and shuttle, their mocks take their place. Under `--cfg
//! stall` come wrappers that call a hook.

pub use core::sync::atomic::Ordering;

#[cfg(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle")))]
pub use super::mocked::*;
#[cfg(not(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle"))))]
pub use plain::*;

#[cfg(not(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle"))))]
mod plain {
    #[cfg(stall)]
    pub use crate::atomic::stall::{AtomicU32, AtomicU64, AtomicU128};
    #[cfg(not(stall))]
    pub use portable_atomic::{AtomicU32, AtomicU64, AtomicU128};
    pub use {atomic_waker::AtomicWaker, core::sync::atomic::fence};
}

/// The types that the stall wrappers wrap.
#[cfg(stall)]
pub use portable_atomic as real;

/// For statics, which cannot be loom's atomics. No model uses a static.
pub use portable_atomic::AtomicU64 as StaticU64;
