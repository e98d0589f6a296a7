#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! | module | has |
//! |---|---|
//! | [`law`] | the settings of the paced and the declared law, and what a service declares |
//! | [`pool`] | one of several limiters for one request: permits, places and errors |
//! | [`set`] | several limits on one request: permits, places and errors |
//! | [`snapshot`] | states at one moment, for diagnostics |
//!
//! # Features
//!
//! | feature | default | gives |
//! |---|---|---|
//! | `std` | no | a count of sends for each core; without it [`SendRate`] needs an allocator alone |
//! | `serde` | no | settings and snapshots in and out of text |
#![cfg_attr(not(feature = "std"), no_std)]
// docs.rs shows beside each item the feature that the item needs, except the features of the
// models.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(docsrs, doc(auto_cfg(hide(loom, feature = "loom"))))]

extern crate alloc;

mod atomic;
mod bits;
mod fixed;
pub mod law;
mod limit;
mod line;
mod padded;
mod permit;
pub mod pool;
mod print;
pub mod set;
#[cfg(feature = "serde")]
mod text;
mod time;

#[cfg(all(loom, feature = "loom"))]
#[doc(hidden)]
pub use atomic::modelled;
#[cfg(stall)]
#[doc(hidden)]
pub use atomic::stall;
pub use atomic::{Background, Reservation, RetryQuota, SendRate, SendRateSnapshot};
pub use law::outcome::{ControlLaw, Outcome, Part};
pub use limit::{AskedFor, Limit};
pub use permit::{AcquireError, Class, QuotaPermit, SendPermit, WeightError};
pub use pool::SendPool;
pub use set::SendSet;
pub use time::Timestamp;

/// States at one moment, for diagnostics and metrics.
///
/// [`SendRateSnapshot`] stands at the root, beside its bucket.
pub mod snapshot {
    pub use crate::atomic::{BackgroundSnapshot, DeclaredLimit, RetryQuotaSnapshot};
}

/// The items that the crate `paceline` uses beyond the public API. Both crates are released
/// together, and `paceline` requires the exact version. Other crates get no promise.
#[doc(hidden)]
pub mod seam {
    pub use crate::atomic::Sequence;
    #[cfg(feature = "serde")]
    pub use crate::text::by_name;
    pub use crate::{
        atomic::{Lazy, PlaceGuard, sync},
        limit::{Deadline, InLine},
        padded::Padded,
        set::SetGuard,
        time::LONG_UNUSED,
    };
}
