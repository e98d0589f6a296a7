//! What users of the public types rely on without naming it: that errors travel, that what is shared may be, and that values are values.

use core::error::Error;
use core::fmt::Debug;
use core::hash::Hash;

use paceline::{
    Acquire, AcquireError, Adaptive, Attempt, Chain, ConfigError, ControlLaw, DefaultSleep,
    Execution, ExponentialBackoff, Failure, Fault, ForeignToken, HintError, HintFault, HintPolicy,
    HttpResponses, Idempotency, InitialTokenRefused, IoErrors, Jitter, Legacy, LegacyBuilder,
    MaybePolicy, MonotonicClock, Outcome, PacedSettings, PacedSettingsError, PlaceInLine,
    ProcessEnvironment, ProfileFileError, ProfileFileFault, ProfileFileKind, QuotaPermit,
    QuotaSettingsError, RateLimit, RateLimits, RefusalReason, Reservation, RetryAfter, RetryBudget,
    RetryConfig, RetryCosts, RetryGeneration, RetryMode, RetryQuota, RetryRefused, RetrySafety,
    RetryToken, RunError, Scope, ScopeRefused, Scopes, ScopesError, SeededRandom, SendCredit,
    SendLimiter, SendPermit, SendRate, SendRefused, SendTurn, ServiceUnavailable, SettingFault,
    Settings, SettingsError, Skew, SkewedClock, Standard, Stopped, StrategyBuilder, StrategyId,
    ThreadRandom, Timestamp, TokioTimer, WeightError,
};

const fn error<T: Error + Send + Sync + Unpin + 'static>() {}
const fn shared<T: Debug + Send + Sync + Unpin>() {}
const fn moved<T: Debug + Send + Unpin>() {}
const fn value<T: Copy + Debug + Eq + Hash + Send + Sync + Unpin + 'static>() {}

macro_rules! each {
    ($check:ident: $($type:ty),* $(,)?) => { const _: () = { $($check::<$type>();)* }; };
}

each!(error: AcquireError, ConfigError, ForeignToken, HintError, InitialTokenRefused, PacedSettingsError, ProfileFileError,
    QuotaSettingsError, RetryRefused, RunError<std::io::Error>, ScopeRefused, ScopesError, SendRefused, SettingsError, WeightError);
each!(shared: Adaptive, Legacy, LegacyBuilder, MonotonicClock, QuotaPermit, RefusalReason, Reservation<'_>, RetryBudget, RetryConfig,
    RetryQuota, RetryToken, Scope<Adaptive>, Scopes<Adaptive>, SeededRandom, SendLimiter, SendRate, SendTurn<'_>, Settings, Standard, StrategyBuilder<Adaptive>);
each!(moved: Acquire<&SendRate, MonotonicClock, DefaultSleep>, PlaceInLine<&SendRate, MonotonicClock>, SendCredit<&SendRate>, TokioTimer);
each!(value: AcquireError, Attempt, Chain<RateLimits, HttpResponses>, ControlLaw, DefaultSleep, Execution, ExponentialBackoff,
    Failure, Fault, HintFault, HintPolicy, Idempotency, InitialTokenRefused, IoErrors, Jitter, MaybePolicy, Outcome, PacedSettings,
    PacedSettingsError, ProcessEnvironment, ProfileFileFault, ProfileFileKind, QuotaSettingsError, RateLimit, RetryAfter, RetryCosts,
    RetryGeneration, RetryMode, RetrySafety, ScopeRefused, ScopesError, SendPermit, SendRefused, ServiceUnavailable, SettingFault, SettingsError, Skew,
    SkewedClock, Stopped, StrategyId, ThreadRandom, Timestamp, WeightError);
