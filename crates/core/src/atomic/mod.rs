//! The two buckets: every atomic word of the crate, and nothing that reads a clock.

mod counter;
#[cfg(not(all(loom, feature = "loom")))]
mod lazy;
#[cfg(all(loom, feature = "loom"))]
use mocked as lazy;
#[cfg(any(all(loom, feature = "loom"), all(shuttle, feature = "shuttle")))]
#[path = "../../models/mocked.rs"]
#[allow(
    missing_docs,
    unreachable_pub,
    reason = "as the atomics that they stand for"
)]
mod mocked;
#[cfg(all(loom, feature = "loom"))]
#[path = "../../models/modelled.rs"]
pub mod modelled;
mod multi_word;
mod retry_quota;
mod send_rate;
mod sequence;
#[cfg(stall)]
#[path = "../../models/stall.rs"]
pub mod stall;
pub mod sync;

pub use lazy::Lazy;
pub use retry_quota::{RetryQuota, RetryQuotaSnapshot};
pub use send_rate::{
    Background, BackgroundSnapshot, DeclaredLimit, PlaceGuard, Reservation, SendRate,
    SendRateSnapshot,
};
pub use sequence::Sequence;
