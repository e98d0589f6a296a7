//! The two buckets: every atomic word of the crate, and nothing that reads a clock.

#[cfg(feature = "std")]
pub(crate) mod cells;
mod counter;
mod lazy;
#[cfg(all(loom, feature = "loom"))]
pub mod modelled;
mod retry_budget;
mod retry_quota;
mod send_rate;
#[cfg(stall)]
pub mod stall;
pub(crate) mod sync;

pub use retry_budget::{RetryBudget, RetryBudgetSnapshot};
pub use retry_quota::{QuotaPermit, RetryQuota, RetryQuotaSnapshot};
#[cfg(feature = "std")]
pub(crate) use send_rate::Held;
pub use send_rate::{
    AcquireError, ControlLaw, Outcome, Recorded, Reservation, SendCredit, SendPermit, SendRate,
    SendRateSnapshot, WeightError,
};
