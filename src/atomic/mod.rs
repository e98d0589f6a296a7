//! The two buckets: every atomic word of the crate, and nothing that reads a clock.

mod bits;
mod cancellations;
mod control;
#[cfg(feature = "std")]
pub(crate) mod counts;
mod credit;
mod delivery;
mod followed;
mod forget;
mod gate;
#[cfg(feature = "std")]
mod idle;
mod law;
mod lazy;
mod limit;
mod meter;
#[cfg(all(loom, feature = "loom"))]
pub mod modelled;
#[cfg_attr(not(feature = "wake"), path = "no_nudge.rs")]
mod nudge;
#[cfg(feature = "scopes")]
pub(crate) mod occupancy;
mod padded;
mod permit;
mod refill;
mod reservation;
mod reset;
mod retry_budget;
mod retry_quota;
mod segments;
mod send_rate;
#[cfg(feature = "std")]
pub(crate) mod sequence;
#[cfg(feature = "std")]
pub(crate) mod setting;
mod slots;
mod snapshot;
#[cfg(stall)]
pub mod stall;
mod stripes;
pub(crate) mod sync;
mod throttle;
mod tune;
mod tuning;
#[cfg(any(feature = "scopes", all(loom, feature = "loom")))]
#[cfg_attr(
    not(all(loom, feature = "loom")),
    expect(unreachable_pub, reason = "public for its models only")
)]
pub(crate) mod usage;
#[cfg(feature = "wake")]
mod waiters;
mod weight;

pub use credit::SendCredit;
pub use permit::{ControlLaw, Outcome, SendPermit};
#[cfg(feature = "std")]
pub(crate) use reservation::Held;
pub use reservation::Reservation;
pub use retry_budget::{RetryBudget, RetryBudgetSnapshot};
pub use retry_quota::{QuotaPermit, RetryQuota, RetryQuotaSnapshot};
pub use send_rate::SendRate;
pub use snapshot::SendRateSnapshot;
pub use weight::{AcquireError, WeightError};
