//! Lock-free rate control for clients of services that throttle.
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

mod atomic;
mod aws;
#[cfg(feature = "std")]
mod backoff;
#[cfg(feature = "std")]
mod clock;
mod cubic;
mod fixed;
mod line;
mod meter;
#[cfg(feature = "std")]
mod random;
#[cfg(feature = "std")]
mod run;
#[cfg(feature = "std")]
mod strategy;
mod time;

pub use atomic::{
    ControlLaw, Outcome, QuotaPermit, Reservation, RetryQuota, SendPermit, SendRate,
    SendRateSnapshot,
};
#[cfg(feature = "std")]
pub use backoff::{BackoffStrategy, ExponentialBackoff};
#[cfg(feature = "std")]
pub use clock::{Clock, MonotonicClock};
#[cfg(feature = "std")]
pub use random::{Random, SeededRandom, ThreadRandom};
#[cfg(feature = "std")]
pub use run::{Attempt, Operation, RetryStrategyExt, RunError, Stopped};
#[cfg(feature = "std")]
pub use strategy::{
    Adaptive, Failure, Fault, ForeignToken, HasFault, HintPolicy, InitialTokenRefused, Legacy,
    LegacyBuilder, MaybePolicy, RefusalReason, RetryAfter, RetryGeneration, RetryInfo,
    RetryRefused, RetrySafety, RetryStrategy, RetryToken, SendRefused, SendTurn,
    ServiceUnavailable, Settings, SettingsError, Standard, StrategyBuilder, StrategyId,
};
pub use time::Timestamp;
