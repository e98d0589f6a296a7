//! Lock-free rate control for clients of services that throttle.
//!
//! Two token buckets decide everything, and a thin strategy puts them together:
//!
//! | | asked | says | refilled by |
//! |---|---|---|---|
//! | [`RetryQuota`] | before each retry | retry, or give up now; it never waits | successes |
//! | [`SendRate`] | before each send, in adaptive mode | go, or a place in line | time, at a rate that answers to throttling |
//!
//! The behaviour is the one that the AWS SDKs document and Smithy's client guide specifies. Both buckets are
//! lock-free, take the time as an argument and need neither a run time nor `std`.
//!
//! Begin with [the guides](guide): choosing a mode and a law, clients of many threads, embedding one bucket, comparing
//! limiters, coming from other crates, and how it is built.
//!
//! # With a strategy
//!
//! ```
//! # #[cfg(feature = "std")] {
//! use paceline::{Adaptive, Fault, RetryInfo, RetryStrategyExt};
//!
//! #[derive(Debug)]
//! enum CallError {
//!     SlowDown,
//!     NotFound,
//! }
//!
//! impl RetryInfo for CallError {
//!     fn is_throttle(&self) -> bool {
//!         matches!(self, Self::SlowDown)
//!     }
//!     fn fault(&self) -> Fault {
//!         Fault::Client
//!     }
//! }
//!
//! let strategy = Adaptive::new(); // one for each resource that the service throttles
//! let stopped = strategy.run(|_attempt| Err::<(), _>(CallError::NotFound)).unwrap_err();
//! assert_eq!(stopped.attempts(), 1);
//! # }
//! ```
//!
//! `Standard` never delays a first send;
//! `Adaptive` also keeps the send rate below what is throttled; `Legacy` is what the SDKs did before both.
//! With the feature `tokio` there is `run_async`. `SendLimiter` waits for send tokens without a strategy.
//!
//! # Embedding one bucket
//!
//! ```
//! use paceline::RetryQuota;
//!
//! static QUOTA: RetryQuota = RetryQuota::new(500);
//!
//! fn may_retry() -> bool {
//!     match QUOTA.try_acquire(5) {
//!         Some(permit) => {
//!             // ... retry; and if that succeeds:
//!             QUOTA.release(permit);
//!             true
//!         }
//!         None => false, // the service is in trouble: give up
//!     }
//! }
//! assert!(may_retry());
//! ```
//!
//! # Features
//!
//! | feature | default | gives |
//! |---|---|---|
//! | `std` | yes | strategies, clocks, the blocking loop, a count of sends for each core |
//! | `quanta` | yes | a clock that reads the processor's time stamp counter |
//! | `wake` | no | those who wait for a send token are woken when it comes sooner, instead of looking every 50 ms |
//! | `tokio` | no | tasks sleep by tokio's timer: the asynchronous loop; `wake` |
//! | `async-io` | no | tasks sleep by async-io's timer, as smol's do; `wake` |
//! | `tracing` | no | events when a limiter engages, cuts or recovers, and when a quota is exhausted or recovers |
//! | `metrics` | no | a strategy's snapshot as counters and gauges |
//! | `serde` | no | settings and snapshots in and out of text |
//! | `scopes` | no | one strategy state for each resource that is throttled on its own |
//! | `http-date` | no | dates in the header `Retry-After` |
//! | `http` | no | classifiers for the responses of the crate `http`; has `http-date` |
//!
//! Without `std` the buckets remain; they need an allocator for [`SendRate`] only.
#![cfg_attr(not(feature = "std"), no_std)]
// docs.rs says beside each item which feature it needs, but for those of the models.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(docsrs, doc(auto_cfg(hide(loom, feature = "loom"))))]

extern crate alloc;

mod atomic;
mod aws;
#[cfg(feature = "std")]
mod backoff;
mod budget;
#[cfg(feature = "std")]
mod classify;
#[cfg(feature = "std")]
mod clock;
#[cfg(feature = "std")]
mod config;
mod cubic;
mod fixed;
#[cfg(all(any(doc, doctest), feature = "std"))]
pub mod guide;
#[cfg(feature = "std")]
mod headers;
mod line;
mod meter;
mod paced;
#[cfg(feature = "std")]
mod random;
#[cfg(feature = "std")]
mod run;
#[cfg(feature = "scopes")]
mod scope;
#[cfg(feature = "std")]
mod strategy;
mod time;
#[cfg(feature = "std")]
mod wait;

#[cfg(all(loom, feature = "loom"))]
#[doc(hidden)]
pub use atomic::modelled;
#[cfg(stall)]
#[doc(hidden)]
pub use atomic::stall;
pub use atomic::{
    AcquireError, ControlLaw, Outcome, QuotaPermit, Reservation, RetryBudget, RetryBudgetSnapshot,
    RetryQuota, RetryQuotaSnapshot, SendCredit, SendPermit, SendRate, SendRateSnapshot,
    WeightError,
};
#[cfg(feature = "std")]
pub use backoff::{BackoffStrategy, ExponentialBackoff, Jitter};
pub use budget::QuotaSettingsError;
#[cfg(feature = "std")]
pub use classify::{Chain, Classifier, IoErrors, RateLimit, aws_error_code};
#[cfg(feature = "http")]
pub use classify::{HttpAnswer, HttpResponses, RateLimits, Skew, SkewedClock};
#[cfg(feature = "std")]
pub use clock::{Clock, MonotonicClock};
#[cfg(feature = "std")]
pub use config::{
    ConfigError, Environment, ProcessEnvironment, ProfileFile, ProfileFileError, ProfileFileFault,
    ProfileFileKind, RetryConfig, RetryConfigLoader, RetryMode, SettingFault, SettingOrigin,
};
#[cfg(feature = "std")]
pub use headers::{HintError, HintFault};
pub use paced::{PacedSettings, PacedSettingsError};
#[cfg(feature = "std")]
pub use random::{Random, SeededRandom, ThreadRandom};
#[cfg(feature = "std")]
pub use run::{Attempt, Operation, RetryStrategyExt, RunError, Stopped};
#[cfg(feature = "scopes")]
pub use scope::{Scope, ScopeRefused, Scopes, ScopesBuilder, ScopesError, ScopesSnapshot};
#[cfg(feature = "std")]
pub use strategy::{
    Adaptive, Execution, Failure, Fault, ForeignToken, HasFault, HintPolicy, Idempotency,
    InitialTokenRefused, Legacy, LegacyBuilder, MaybePolicy, Quota, QuotaSnapshot, RefusalReason,
    RetryAfter, RetryCosts, RetryGeneration, RetryInfo, RetryRefused, RetrySafety, RetryStrategy,
    RetryToken, SendGate, SendRefused, SendTurn, ServiceUnavailable, Settings, SettingsError,
    Standard, StrategyBuilder, StrategyCounts, StrategyId, StrategySnapshot,
};
pub use time::Timestamp;
#[cfg(feature = "tokio")]
pub use wait::TokioTimer;
#[cfg(feature = "std")]
pub use wait::{Acquire, Ask, DefaultSleep, PlaceInLine, SendLimiter, Sleep, Timer};
#[cfg(feature = "async-io")]
pub use wait::{AsyncIoSleep, AsyncIoTimer};

#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../README.md")]
mod readme {}
