//! Lock-free rate control for clients of services that throttle.
//!
//! Two token buckets decide everything. A strategy combines them:
//!
//! | | called | returns | refilled by |
//! |---|---|---|---|
//! | [`RetryQuota`] | before each retry | retry, or give up now; it never waits | successes |
//! | [`SendRate`] | before each send, in adaptive mode | go, or a place in line | time, at a rate that adapts to throttling |
//!
//! The quota, and the rate under `ControlLaw::Aws`, behave as the AWS SDKs document and Smithy's
//! client guide specifies. The paced and the declared law are paceline's own. Both buckets are
//! lock-free, take the time as an argument and need neither a runtime nor `std`.
//!
//! Begin with a [guide]; the list is by task. The most read are: [choose a mode](guide::choosing),
//! [what to write for your client crate](guide::client_crates), [the retry loop](guide::the_loop).
//!
//! # With a strategy
//!
//! ```
//! # #[cfg(feature = "std")] {
//! use paceline::{Adaptive, Failure, RetryInfo, RetryStrategyExt};
//!
//! #[derive(Debug)]
//! enum CallError {
//!     SlowDown,
//!     NotFound,
//! }
//!
//! impl RetryInfo for CallError {
//!     fn failure(&self) -> Failure {
//!         match self {
//!             Self::SlowDown => Failure::throttling(),
//!             Self::NotFound => Failure::not_retryable(),
//!         }
//!     }
//! }
//!
//! let strategy = Adaptive::paced(); // one for each resource that the service throttles
//! let stopped = strategy.run(|_attempt| Err::<(), _>(CallError::NotFound)).unwrap_err();
//! assert_eq!(stopped.attempts(), 1);
//! # }
//! ```
//!
//! `Standard` never delays a first send. `Adaptive` also keeps the send rate below the throttled
//! rate. `Legacy` is the mode that the SDKs had before both. With the feature `tokio` there is
//! `run_async`. `SendLimiter` waits for send tokens without a strategy.
//!
//! # Embedding one bucket
//!
//! ```
//! use paceline::RetryQuota;
//!
//! static QUOTA: RetryQuota = RetryQuota::new(500);
//!
//! /// Sends once more at most, and returns whether it succeeded.
//! fn with_one_retry(mut send: impl FnMut() -> bool) -> bool {
//!     if send() {
//!         QUOTA.credit(1);
//!         return true;
//!     }
//!     let Some(permit) = QUOTA.try_acquire(5) else {
//!         return false; // the service is in trouble: give up
//!     };
//!     let succeeded = send();
//!     if succeeded {
//!         QUOTA.release(permit); // only a success gives back what its retry cost
//!     }
//!     succeeded // a permit that is dropped is spent
//! }
//!
//! // A service that is down: the quota ends the retries after 100 of them.
//! let mut sends = 0;
//! for _ in 0..10_000 {
//!     with_one_retry(|| { sends += 1; false });
//! }
//! assert_eq!(sends, 10_100);
//! ```
//!
//! # Modules
//!
//! | module | has |
//! |---|---|
//! | [`law`] | the settings of the paced and the declared law, and what a service declares |
//! | [`snapshot`] | states at one moment, for diagnostics |
//! | `backoff` | backoff rules, jitter, random numbers |
//! | `classify` | classifiers of HTTP responses, error codes and `io` errors |
//! | `aws_config` | settings of the AWS SDKs, from the environment and the profile files |
//! | `config` | builders and their settings |
//! | `headers` | the headers of hints and of the SDKs' requests |
//! | `operation` | the retry loop, sans-I/O: without input and output; its verdicts and errors |
//! | `scope` | scopes, and why one was refused |
//! | [`pool`] | one of several limiters for one request: permits, places and errors |
//! | [`set`] | several limits on one request: permits, places and errors |
//! | `strategy` | what implementations of `RetryStrategy` take and return |
//! | `wait` | places in line, timers and ways to sleep |
//!
//! # Features
//!
//! | feature | default | gives |
//! |---|---|---|
//! | `std` | yes | strategies, clocks, the blocking loop, a count of sends for each core |
//! | `quanta` | no | a clock that reads the processor's time stamp counter |
//! | `tokio` | no | tasks sleep by tokio's timer: the asynchronous loop |
//! | `async-io` | no | tasks sleep by async-io's timer, as smol's do |
//! | `tracing` | no | events: changes of state, retries, refusals, giving up, long waits |
//! | `metrics` | no | a strategy's snapshot as counters and gauges, and what each request adds if asked for |
//! | `serde` | no | settings out of a text; snapshots and what was learned, as text |
//! | `scopes` | no | one strategy state for each resource that is throttled on its own |
//! | `classify` | no | classifiers of responses, error codes and `io` errors, and the limits in headers |
//! | `aws-config` | no | the settings of the AWS SDKs, from the environment and the profile files |
//! | `http-date` | no | dates in the header `Retry-After` |
//! | `http` | no | classifiers for the responses of the crate `http`; has `classify` and `http-date` |
//!
//! Without `std` there are only the buckets. They are the crate `paceline-core`, which can also be
//! used alone. [`SendRate`] needs an allocator.
#![cfg_attr(not(feature = "std"), no_std)]
// docs.rs shows beside each item the feature that the item needs, except the features of the
// models.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(docsrs, doc(auto_cfg(hide(loom, feature = "loom"))))]

#[cfg(feature = "std")]
extern crate alloc;

#[cfg(feature = "aws-config")]
pub mod aws_config;
#[cfg(feature = "std")]
pub mod backoff;
#[cfg(feature = "std")]
mod cells;
#[cfg(feature = "classify")]
pub mod classify;
#[cfg(feature = "std")]
mod clock;
#[cfg(any(doc, doctest))]
pub mod guide;
#[cfg(feature = "std")]
pub mod headers;
#[cfg(all(loom, feature = "loom"))]
#[doc(hidden)]
pub mod modelled;
#[cfg(feature = "std")]
pub mod operation;
#[cfg(feature = "std")]
mod random;
#[cfg(feature = "scopes")]
pub mod scope;
#[cfg(feature = "std")]
pub mod strategy;
#[cfg(any(feature = "scopes", all(loom, feature = "loom")))]
mod usage;
#[cfg(feature = "std")]
pub mod wait;

#[cfg(feature = "tokio")]
pub use clock::TokioClock;
#[cfg(feature = "std")]
pub use clock::{Clock, MonotonicClock};
#[cfg(feature = "std")]
pub use headers::retry_after::RetryAfter;
#[cfg(feature = "std")]
pub use operation::{builder::Operation, ext::RetryStrategyExt};
#[cfg(feature = "std")]
use paceline_core::seam;
pub use paceline_core::{
    AcquireError, Background, Class, ControlLaw, Outcome, Part, QuotaPermit, Reservation,
    RetryQuota, SendPermit, SendPool, SendRate, SendRateSnapshot, SendSet, Timestamp, WeightError,
    law, pool, set,
};
#[cfg(feature = "scopes")]
pub use scope::scopes::Scopes;
#[cfg(feature = "std")]
pub use strategy::{
    adaptive::Adaptive,
    failure::{Execution, Failure, Fault, Idempotency, RetryInfo, RetrySafety},
    legacy::Legacy,
    retry_strategy::RetryStrategy,
    standard::Standard,
    token::RetryToken,
};
#[cfg(feature = "std")]
pub use wait::limiter::SendLimiter;

/// The builders of strategies, and their settings.
#[cfg(feature = "std")]
pub mod config {
    pub use crate::strategy::{
        builder::StrategyBuilder,
        settings::{RetryGeneration, Settings, SettingsError},
    };
}

/// States at one moment, for diagnostics and metrics.
///
/// [`SendRateSnapshot`] stands at the root, beside its bucket.
pub mod snapshot {
    #[cfg(feature = "scopes")]
    pub use crate::scope::scopes::ScopesSnapshot;
    #[cfg(feature = "std")]
    pub use crate::strategy::snapshot::{StrategyCounts, StrategySnapshot};
    pub use paceline_core::snapshot::{BackgroundSnapshot, DeclaredLimit, RetryQuotaSnapshot};
}

#[cfg(all(doctest, feature = "tokio"))]
#[doc = include_str!("../README.md")]
mod readme {}
