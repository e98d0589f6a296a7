//! What users of the public types rely on without naming it: that errors travel, that what is
//! shared may be, and that values are values.

use core::error::Error;
use core::fmt::Debug;

use paceline::{
    AcquireError, Adaptive, ControlLaw, Execution, Failure, Fault, Idempotency, Legacy,
    MonotonicClock, Outcome, QuotaPermit, Reservation, RetryAfter, RetryQuota, RetrySafety,
    RetryToken, Scopes, SendLimiter, SendPermit, SendRate, Standard, Timestamp, WeightError,
    aws_config::{ConfigError, RetryConfig, RetryMode},
    backoff::{ExponentialBackoff, SeededRandom},
    classify::{HttpClassifier, IoErrorClassifier, ServiceUnavailable},
    config::{RetryGeneration, Settings, SettingsError, StrategyBuilder},
    law::{PacedSettings, PacedSettingsError},
    operation::{Attempt, RunError, StopReason},
    scope::{Scope, ScopeRefused},
    strategy::{ForeignToken, InitialTokenRefused, RetryRefused, SendTurn, StrategyId},
    wait::{Acquire, DefaultSleep, PlaceInLine},
};

const fn error<T: Error + Send + Sync + Unpin + 'static>() {}
const fn shared<T: Debug + Send + Sync + Unpin>() {}
const fn moved<T: Debug + Send + Unpin>() {}
const fn value<T: Copy + Debug + Send + Sync + Unpin + 'static>() {}

macro_rules! each {
    ($check:ident: $($type:ty),* $(,)?) => { const _: () = { $($check::<$type>();)* }; };
}

each!(error: AcquireError, ConfigError, ForeignToken, InitialTokenRefused, PacedSettingsError, 
    RetryRefused, RunError<std::io::Error>, ScopeRefused, SettingsError, WeightError);
each!(shared: Adaptive, Legacy, MonotonicClock, QuotaPermit, Reservation<'_>, RetryConfig,
    RetryQuota, RetryToken, Scope<Adaptive>, Scopes<Adaptive>, SeededRandom, SendLimiter, SendRate, SendTurn, Settings, Standard, StrategyBuilder<Adaptive>);
each!(moved: Acquire<&SendRate, MonotonicClock, DefaultSleep>, PlaceInLine<&SendRate, MonotonicClock>);
each!(value: AcquireError, Attempt, HttpClassifier, ControlLaw, DefaultSleep, Execution, ExponentialBackoff,
    Failure, Fault, Idempotency, IoErrorClassifier, Outcome, PacedSettings,
    PacedSettingsError, RetryAfter, 
    RetryGeneration, RetryMode, RetrySafety, SendPermit, ServiceUnavailable, SettingsError, 
    StopReason, StrategyId, Timestamp, WeightError);
