//! The choices of a builder, the other defaults, and the check that the choices fit together.

use alloc::{boxed::Box, sync::Arc, vec::Vec};
use core::{fmt, time::Duration};

use super::{
    engine::{Common, Plan},
    event::Hook,
    members::{Choice, MOST_MEMBERS},
    quota::QuotaSource,
    settings::{RetryGeneration, Settings, SettingsError},
    token::{MAX_RETRY_AFTER, Terms},
};
use crate::{
    Clock, ControlLaw, MonotonicClock, RetryQuota,
    backoff::{BackoffStrategy, ExponentialBackoff},
    law::{DeclaredSettings, PacedSettings},
    random::{Random, ThreadRandom},
    set::MOST_RATES,
};

/// The tokens of a quota, in every SDK and generation.
const QUOTA_CAPACITY: u32 = 500;
const MAX_ATTEMPTS: u32 = 3;
pub(super) const MAX_BACKOFF: Duration = Duration::from_secs(20);

/// A pipeline waits for its service longer than a person does.
const BULK_DEADLINE: Duration = Duration::from_secs(86_400);
const STALL_TIMEOUT: Duration = Duration::from_secs(300);

/// DynamoDB answers fast, so it is worth asking again sooner and once more (generation 2.1 only).
const DYNAMODB_MAX_ATTEMPTS: u32 = 4;
const DYNAMODB_BASE_DELAY: Duration = Duration::from_millis(25);

/// The caller's choices. `None` where the default depends on other choices, or is made for each
/// strategy.
#[derive(Clone, Default)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate switch")]
pub(super) struct Choices {
    pub(super) name: Option<Box<str>>,
    /// The name in metrics of a strategy without `name`.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(super) metrics_name: Option<Box<str>>,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(super) on_event: Option<Hook>,
    pub(super) generation: Option<RetryGeneration>,
    pub(super) dynamodb: bool,
    pub(super) max_attempts: Option<u32>,
    pub(super) max_backoff: Option<Duration>,
    pub(super) base_delay: Option<Duration>,
    pub(super) throttling_floor: Option<Duration>,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(super) backoff: Option<Arc<dyn BackoffStrategy>>,
    pub(super) quota_capacity: Option<u32>,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(super) quota: Option<Arc<RetryQuota>>,
    pub(super) long_polling: bool,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(super) random: Option<Arc<dyn Random>>,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(super) clock: Option<Arc<dyn Clock>>,
    pub(super) law: Option<ControlLaw>,
    pub(super) paced: Option<PacedSettings>,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(super) declared: Option<DeclaredSettings>,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(super) also: Vec<DeclaredSettings>,
    pub(super) members: Option<usize>,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(super) choosing: Option<Choice>,
    pub(super) fail_fast: bool,
    pub(super) max_wait: Option<Duration>,
    pub(super) exact_timing: bool,
    pub(super) bulk: bool,
    pub(super) stall_timeout: Option<Duration>,
    pub(super) deadline: Option<Duration>,
    pub(super) wait_out_deadlines: bool,
}

/// Defines methods of a builder. Each method sets the choice of the same name.
macro_rules! choose {
    ($choices:tt: $($(#[$doc:meta])+ $name:ident($value:ident: $kind:ty);)+) => {$(
        $(#[$doc])+
        pub fn $name(mut self, $value: $kind) -> Self {
            self.$choices.$name = $value.into();
            self
        }
    )+};
}
pub(crate) use choose;

impl Choices {
    /// Shows the choices that were set, by the names of the setters of `builder`.
    pub(super) fn show(&self, builder: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn given<T: fmt::Debug>(choice: Option<&T>) -> Option<&dyn fmt::Debug> {
            choice.map(|value| value as &dyn fmt::Debug)
        }
        macro_rules! choices {
            ($($kind:ident: $($name:ident)*;)*) => {
                [$($((stringify!($name), choices!($kind $name)),)*)*]
            };
            (given $name:ident) => { given(self.$name.as_ref()) };
            (other $name:ident) => { self.$name.then_some(&true as &dyn fmt::Debug) };
            (several $name:ident) => { self.$name.first().map(|_| &self.$name as &dyn fmt::Debug) };
        }
        let choices = choices! {
            given: name on_event generation;
            other: dynamodb;
            given: max_attempts max_backoff base_delay throttling_floor backoff quota_capacity quota;
            other: long_polling;
            given: random clock law paced declared;
            several: also;
            given: members choosing;
            other: fail_fast;
            given: max_wait;
            other: exact_timing bulk;
            given: stall_timeout deadline;
            other: wait_out_deadlines;
        };
        let mut shown = f.debug_struct(builder);
        for (name, choice) in choices {
            if let Some(value) = choice {
                shown.field(name, value);
            }
        }
        shown.finish_non_exhaustive()
    }

    pub(super) fn check(&self) -> Result<(), SettingsError> {
        if self.max_attempts == Some(0) {
            Err(SettingsError::ZeroMaxAttempts)
        } else if self.backoff.is_some() && self.base_delay.is_some() {
            Err(SettingsError::BackoffWithBaseDelay)
        } else if self.backoff.is_some() && self.throttling_floor.is_some() {
            Err(SettingsError::BackoffWithFloor)
        } else if self.throttling_floor > Some(self.max_backoff.unwrap_or(MAX_BACKOFF)) {
            Err(SettingsError::FloorAboveMaxBackoff)
        } else if self.quota.is_some() && self.quota_capacity.is_some() {
            Err(SettingsError::QuotaWithCapacity)
        } else if self.stall_timeout.is_some() && !self.bulk {
            Err(SettingsError::StallTimeoutWithoutBulk)
        } else if self.also.len() >= MOST_RATES {
            Err(SettingsError::TooManyRates)
        } else if !(1..=MOST_MEMBERS).contains(&self.members.unwrap_or(1)) {
            Err(SettingsError::Members)
        } else if self.choosing.is_some() && self.members.unwrap_or(1) == 1 {
            Err(SettingsError::ChoiceOfOne)
        } else {
            Ok(())
        }
    }

    /// Checks the choices of an adaptive strategy.
    pub(super) fn check_adaptive(&self) -> Result<(), SettingsError> {
        self.law().ok_or(SettingsError::NoLaw)?;
        self.check()
    }

    /// Returns the law that was named.
    pub(super) fn law(&self) -> Option<ControlLaw> {
        self.law.or(self.bulk.then_some(ControlLaw::Paced))
    }

    pub(super) fn into_plan<P>(self, pace: P) -> Plan<P> {
        let given = self.clock.clone();
        let clock = given.unwrap_or_else(|| Arc::new(MonotonicClock::new()));
        let max_backoff = self.max_backoff.unwrap_or(MAX_BACKOFF);
        let max_attempts = self.max_attempts.unwrap_or(if self.is_dynamodb() {
            DYNAMODB_MAX_ATTEMPTS
        } else {
            MAX_ATTEMPTS
        });
        let built_in = self.exponential(max_backoff);
        let capacity = self.quota_capacity.unwrap_or(QUOTA_CAPACITY);
        let given = self.quota.clone().map(QuotaSource::Given);
        let quota = given.unwrap_or_else(|| QuotaSource::own(capacity));
        let stall_timeout = self.stall_timeout();
        let settings = Settings {
            law: self.law,
            generation: self.generation(),
            max_attempts,
            max_backoff,
            long_polling: self.long_polling,
            deadline: self.deadline.or(self.bulk.then_some(BULK_DEADLINE)),
            backoff: self.backoff.unwrap_or_else(|| Arc::new(built_in)),
            random: self.random.unwrap_or_else(|| Arc::new(ThreadRandom)),
        };
        let common = Arc::new(Common {
            first: Terms::of_first(
                settings.deadline,
                self.wait_out_deadlines,
                stall_timeout.unwrap_or(MAX_RETRY_AFTER),
                self.on_event.is_some(),
            ),
            // In bulk, throttled attempts are not counted, so the attempts have no limit.
            most: stall_timeout.map_or(settings.max_attempts.max(1), |_| 0),
            settings,
            clock,
            pace,
            hook: self.on_event,
        });
        Plan {
            common,
            quota,
            name: self.name.or(self.metrics_name).map(Arc::from),
        }
    }

    /// Returns how long everything may be throttled in bulk; `None` if not in bulk.
    pub(super) fn stall_timeout(&self) -> Option<Duration> {
        self.bulk
            .then(|| self.stall_timeout.unwrap_or(STALL_TIMEOUT))
    }

    fn generation(&self) -> RetryGeneration {
        self.generation.unwrap_or_default()
    }

    fn exponential(&self, max_backoff: Duration) -> ExponentialBackoff {
        let (throttling, other) = self.generation().bases();
        let other = if self.is_dynamodb() {
            DYNAMODB_BASE_DELAY
        } else {
            other
        };
        let throttling = match self.generation() {
            RetryGeneration::V2_0 => self.base_delay.unwrap_or(throttling),
            RetryGeneration::V2_1 => throttling,
        };
        ExponentialBackoff::new(self.base_delay.unwrap_or(other), max_backoff)
            .with_throttling_base(throttling)
            .with_throttling_floor(self.throttling_floor.unwrap_or_default())
    }

    /// Returns `true` if DynamoDB's own defaults apply.
    fn is_dynamodb(&self) -> bool {
        self.dynamodb && self.generation() == RetryGeneration::V2_1
    }
}
