//! What implementations of [`RetryStrategy`](crate::RetryStrategy) take and return: admission,
//! refusals, reports.
//!
//! The strategies follow Smithy's client guide, "Retrying Requests", over the two buckets.

pub(crate) mod adaptive;
pub(crate) mod builder;
mod charge;
mod choices;
pub(crate) mod costs;
mod engine;
mod event;
pub(crate) mod failure;
#[cfg(feature = "scopes")]
pub(crate) mod hold;
mod in_class;
pub(crate) mod legacy;
mod members;
#[cfg(feature = "metrics")]
pub(crate) mod metrics;
mod quota;
pub(crate) mod refusal;
mod reports;
mod request;
pub(crate) mod retry_strategy;
pub(crate) mod settings;
pub(crate) mod snapshot;
pub(crate) mod standard;
pub(crate) mod token;
mod turn;

pub use charge::AttemptCharge;
pub(crate) use choices::choose;
pub(crate) use engine::{hint_too_long, out_of_time};
pub use event::{Event, EventKind};
pub use in_class::in_class;
pub use refusal::{InitialTokenRefused, NotAdmitted, RetryRefused};
pub use reports::Reports;
pub use request::SendRequest;
pub(crate) use request::least;
pub use token::{ForeignToken, StrategyId};
pub(crate) use token::{MAX_RETRY_AFTER, nanos, rounded_cap};
pub use turn::{GatePlace, SendTurn};
