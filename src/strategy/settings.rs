//! The settings of a strategy, and their defaults.

use alloc::sync::Arc;
use core::{error::Error, fmt, time::Duration};

use super::failure::{Failure, Fault, RetrySafety};
use crate::{ControlLaw, backoff::BackoffStrategy, random::Random};

/// Which edition of AWS's standard and adaptive modes a strategy follows.
///
/// | | 2.0 | 2.1 |
/// |---|---|---|
/// | a retry costs | 5; 10 after a timeout | 14; 5 after throttling |
/// | first backoff | 1 s | 50 ms; 1 s after throttling |
/// | `x-amz-retry-after` | instead of the backoff, at most `max_backoff` | between the backoff and 5 s more |
/// | connection after a transient error | dropped | kept |
///
/// Sources: "Retry behavior" in the AWS SDKs and Tools Reference Guide; botocore (only timeouts
/// cost 10 in 2.0; smithy-rs takes it for every transient error); smithy-rs (the hint and the
/// connection in 2.0).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[non_exhaustive]
pub enum RetryGeneration {
    /// The modes of 2020 to 2026.
    #[cfg_attr(feature = "serde", serde(rename = "2.0"))]
    V2_0,
    /// "Retry behavior 2.1". The default since 2026-11-10 of botocore 1.44.0, of the SDK for
    /// JavaScript 3.1166.0 and of the SDK for Go 1.48.0. In Rust this generation needs `aws-config`
    /// 1.13.2 with `BehaviorVersion::v2026_11_10()`. The SDKs for Java and Kotlin do not have it by
    /// default.
    #[default]
    #[cfg_attr(feature = "serde", serde(rename = "2.1"))]
    V2_1,
}

impl RetryGeneration {
    /// Returns the backoffs of the first retry before jitter: after throttling, and after other
    /// failures.
    pub(super) const fn bases(self) -> (Duration, Duration) {
        match self {
            Self::V2_0 => (Duration::from_secs(1), Duration::from_secs(1)),
            Self::V2_1 => (Duration::from_secs(1), Duration::from_millis(50)),
        }
    }
}

/// Returns `true` if `failure` may be retried. [`RetrySafety::Maybe`] is retried if the fault is
/// the server's.
pub(super) const fn permits(failure: &Failure) -> bool {
    match failure.retry_safety() {
        RetrySafety::Yes => true,
        RetrySafety::Maybe => matches!(failure.fault(), Fault::Server),
        RetrySafety::No => false,
    }
}

/// The settings of a [`Standard`](crate::Standard) or [`Adaptive`](crate::Adaptive) strategy.
///
/// | setting | default |
/// |---|---|
/// | generation | 2.1 |
/// | most sends of an operation | 3; 4 with [`dynamodb`](crate::config::StrategyBuilder::dynamodb) in 2.1 |
/// | quota | 500 |
/// | cost of a retry | 14; 5 after throttling (2.0: 5; 10 after a timeout) |
/// | credit of a success | what its last retry cost, else 1 |
/// | first backoff | 50 ms; 1 s after throttling (2.0: 1 s; DynamoDB in 2.1: 25 ms; 1 s after throttling) |
/// | longest backoff | 20 s |
/// | jitter | full |
/// | least backoff after throttling | 0 |
/// | [`RetrySafety::Maybe`] | retried if the fault is the server's |
/// | `x-amz-retry-after` | clamped to between the backoff and 5 s more |
/// | `Retry-After` | a floor: the hint plus the backoff |
/// | long polling | off |
/// | deadline of an operation | none; a day in bulk |
/// | a turn that comes after the deadline | refused at once |
/// | bare status 429, 509 | throttling |
/// | bare status 503 | transient; a switch makes it throttling |
/// | bare status 400, 403 | never retried |
/// | adaptive: law | none: it is [named](crate::config::StrategyBuilder::law) |
/// | adaptive: fail fast | off |
/// | adaptive: longest wait for a turn | none |
/// | adaptive: exact timing | off |
/// | adaptive: members | one |
/// | adaptive: bulk | off |
/// | bulk: stall timeout | 5 minutes |
///
/// The mode itself defaults to [`Standard`](crate::Standard). Sources: "Retry behavior" in the AWS
/// SDKs and Tools Reference Guide; "Retrying Requests" in Smithy's client guide.
#[derive(Debug)]
#[non_exhaustive]
pub struct Settings {
    /// The law of the send rate; `None` without a send rate.
    pub law: Option<ControlLaw>,
    /// The generation of the rules.
    pub generation: RetryGeneration,
    /// The most sends that an operation may make, the first one included.
    pub max_attempts: u32,
    /// The cap of the built-in backoff and of hints in generation 2.0.
    pub max_backoff: Duration,
    /// Whether a refusal by the quota asks the caller to wait.
    pub long_polling: bool,
    /// The deadline of operations that set none; `None` without a limit.
    pub deadline: Option<Duration>,
    /// The rule for delays.
    pub backoff: Arc<dyn BackoffStrategy>,
    pub(super) random: Arc<dyn Random>,
}

/// Why a strategy could not be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingsError {
    /// `max_attempts` is 0. The setting counts sends, and the first send is always made.
    ZeroMaxAttempts,
    /// The caller's backoff was given together with a base delay, which the backoff would ignore.
    BackoffWithBaseDelay,
    /// The caller's backoff was given together with a floor, which the backoff would ignore.
    BackoffWithFloor,
    /// The floor of backoffs after throttling is above the longest backoff, which is 20 s unless
    /// set.
    FloorAboveMaxBackoff,
    /// The caller's quota was given together with a capacity, which the quota would ignore.
    QuotaWithCapacity,
    /// A stall timeout was given without [`bulk`](crate::config::StrategyBuilder::bulk), and would
    /// have no effect.
    StallTimeoutWithoutBulk,
    /// An adaptive strategy was given no [law](crate::config::StrategyBuilder::law).
    NoLaw,
    /// More than seven send rates were added: a strategy has eight at most.
    TooManyRates,
    /// A strategy has no member, or more than 16.
    Members,
    /// A choice of members was given to a strategy with one member, and would have no effect.
    ChoiceOfOne,
    /// `max_scopes` is 0. Every operation would share one state.
    ZeroMaxScopes,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ZeroMaxAttempts => "max_attempts must be at least 1: it counts the first send",
            Self::BackoffWithBaseDelay => "a base delay has no effect on a backoff of your own",
            Self::BackoffWithFloor => "a throttling floor has no effect on a backoff of your own",
            Self::FloorAboveMaxBackoff => "the throttling floor is above the longest backoff",
            Self::StallTimeoutWithoutBulk => "a stall timeout has no effect without bulk",
            Self::NoLaw => "no law: call law, paced, declared, bulk or per_minute",
            Self::TooManyRates => "a strategy has eight send rates at most",
            Self::Members => "a strategy has one to 16 members",
            Self::ChoiceOfOne => "a choice has no effect on a strategy with one member",
            Self::ZeroMaxScopes => "max_scopes must be at least 1",
            Self::QuotaWithCapacity => "a capacity has no effect on a quota of your own",
        })
    }
}

impl Error for SettingsError {}
