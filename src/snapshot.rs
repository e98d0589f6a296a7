//! States at one moment, for diagnostics and metrics.
//!
//! [`SendRateSnapshot`](crate::SendRateSnapshot) stands at the root, beside its bucket.

pub use crate::atomic::{RetryBudgetSnapshot, RetryQuotaSnapshot};
#[cfg(feature = "scopes")]
pub use crate::scope::scopes::ScopesSnapshot;
#[cfg(feature = "std")]
pub use crate::strategy::{
    quota::QuotaSnapshot,
    snapshot::{StrategyCounts, StrategySnapshot},
};
