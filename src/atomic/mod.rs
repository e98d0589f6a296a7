//! The two buckets: every atomic word of the crate, and nothing that reads a clock.

#[cfg(feature = "std")]
pub(crate) mod cells;
mod counter;
#[cfg(not(all(loom, feature = "loom")))]
mod lazy;
#[cfg(all(loom, feature = "loom"))]
use mocked as lazy;
#[cfg(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle")))]
mod mocked;
#[cfg(all(loom, feature = "loom"))]
pub mod modelled;
mod multi_word;
mod retry_quota;
mod send_rate;
#[cfg(stall)]
pub mod stall;
pub(crate) mod sync;
#[cfg(any(feature = "scopes", all(loom, feature = "loom")))]
pub(crate) mod usage;

pub use retry_quota::{RetryQuota, RetryQuotaSnapshot};
#[cfg(feature = "std")]
pub(crate) use send_rate::Meter;
pub(crate) use send_rate::PlaceGuard;
pub use send_rate::{
    Background, BackgroundSnapshot, DeclaredLimit, Reservation, SendRate, SendRateSnapshot,
};
