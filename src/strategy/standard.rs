//! Standard mode: a retry quota, and no delay of first attempts.

use alloc::sync::Arc;
use core::{fmt, time::Duration};

use super::{
    builder::StrategyBuilder,
    engine::{Engine, Weighed, by_engine},
    event::{Event, EventKind},
    failure::Failure,
    refusal::{InitialTokenRefused, NotAdmitted, RetryRefused},
    reports::Reports,
    request::SendRequest,
    retry_strategy::RetryStrategy,
    settings::{Settings, SettingsError},
    snapshot::StrategySnapshot,
    token::{ForeignToken, RetryToken, StrategyId},
    turn::SendTurn,
};
use crate::{Clock, RetryQuota, SendPermit, Timestamp};

/// The standard mode of the AWS SDKs: backoff with full jitter, and a quota that ends retries when
/// too many fail.
///
/// The mode holds back no first attempt. While the quota is full, an operation that succeeds at
/// once writes nothing that threads share. Make one strategy for each client, and share the
/// strategy by reference or `Arc`.
///
/// # Examples
///
/// ```
/// use paceline::{Failure, RetryStrategyExt, Standard, operation::StopReason};
///
/// let strategy = Standard::new();
/// let answer = strategy.run(|_| Ok::<_, Failure>(42));
/// assert_eq!(answer.unwrap(), 42);
///
/// let stopped = strategy.run(|_| Err::<(), _>(Failure::not_retryable())).unwrap_err();
/// assert_eq!((stopped.why(), stopped.attempts()), (StopReason::NotRetryable, 1));
/// ```
pub struct Standard {
    pub(super) engine: Engine,
}

impl Standard {
    /// Creates the strategy with the defaults in [`Settings`].
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build_checked()
    }

    /// Starts from the defaults in [`Settings`].
    pub fn builder() -> StrategyBuilder<Self> {
        StrategyBuilder::new()
    }

    pub(super) const fn from_engine(engine: Engine) -> Self {
        Self { engine }
    }

    /// Returns the settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        self.engine.settings()
    }

    /// Returns the quota that retries are paid from.
    #[must_use]
    pub fn quota(&self) -> &RetryQuota {
        &self.engine.quota
    }
}

impl fmt::Debug for Standard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Standard");
        if let Some(name) = &self.engine.name {
            shown.field("name", name);
        }
        shown
            .field("max_attempts", &self.settings().max_attempts)
            .field("quota", &self.snapshot().quota.available)
            .finish_non_exhaustive()
    }
}

impl StrategyBuilder<Standard> {
    /// Builds the strategy.
    ///
    /// # Errors
    ///
    /// Returns [`SettingsError`] if a setting is out of range or two contradict each other.
    pub fn build(self) -> Result<Standard, SettingsError> {
        self.choices.check()?;
        Ok(self.build_checked())
    }

    /// Builds the strategy from choices that are known to be right.
    pub(crate) fn build_checked(self) -> Standard {
        Standard::from_engine(self.choices.into_plan(()).engine(None))
    }

    /// Checks the choices once, and returns a function that builds strategies by name. All of them
    /// share the settings.
    #[cfg(feature = "scopes")]
    pub(crate) fn many(
        self,
    ) -> impl Fn(Option<&str>) -> Result<Standard, SettingsError> + Send + Sync {
        let (checked, plan) = (self.choices.check(), self.choices.into_plan(()));
        move |name| checked.map(|()| Standard::from_engine(plan.engine(name)))
    }
}

/// Fields are named like the methods, and are all optional. Choices that [`build`](Self::build)
/// would refuse are refused here already, and so are fields of adaptive mode.
///
/// # Examples
///
/// ```
/// use paceline::{Standard, config::StrategyBuilder};
///
/// let text = r#"{ "generation": "2.0", "max_attempts": 5 }"#;
/// let builder: StrategyBuilder<Standard> = serde_json::from_str(text)?;
/// assert_eq!(builder.build()?.settings().max_attempts, 5);
///
/// let wrong = serde_json::from_str::<StrategyBuilder<Standard>>(r#"{ "max_attempts": 0 }"#);
/// assert!(wrong.unwrap_err().to_string().starts_with("max_attempts must be at least 1"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for StrategyBuilder<Standard> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let builder = Self::read(from)?;
        let choices = &builder.choices;
        let adaptive = [
            ("law", choices.law.is_some()),
            ("paced", choices.paced.is_some()),
            ("fail_fast", choices.fail_fast),
            ("max_wait", choices.max_wait.is_some()),
            ("exact_timing", choices.exact_timing),
            ("bulk", choices.bulk),
        ];
        if let Some((name, _)) = adaptive.iter().find(|(_, chosen)| *chosen) {
            return Err(serde::de::Error::custom(format_args!(
                "{name} is a setting of adaptive mode"
            )));
        }
        Ok(builder)
    }
}

impl RetryStrategy for Standard {
    by_engine!();

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        failure: &Failure,
        _reports: Reports<'_>,
    ) -> Result<RetryToken, RetryRefused> {
        let token = self.engine.id().check(token)?;
        self.engine.refresh(token, failure, Weighed::Counts)
    }

    #[inline]
    fn record_success(
        &self,
        mut token: RetryToken,
        _reports: Reports<'_>,
    ) -> Result<(), ForeignToken> {
        if token.strategy() != self.engine.id() {
            return Err(ForeignToken(token));
        }
        let (paid, attempts) = (token.take_paid(), token.attempt());
        drop(token);
        self.engine.succeed(paid, attempts);
        Ok(())
    }

    fn record_cancelled(
        &self,
        token: RetryToken,
        _reports: Reports<'_>,
    ) -> Result<(), ForeignToken> {
        self.engine.give_back(&mut self.engine.id().check(token)?);
        Ok(())
    }

    fn snapshot(&self) -> StrategySnapshot {
        self.engine.snapshot()
    }

    #[inline]
    fn admit(
        &self,
        _turn: &mut SendTurn,
        request: SendRequest<'_>,
    ) -> Result<SendPermit, NotAdmitted> {
        self.engine.show(|| EventKind::Sent {
            waited: Duration::ZERO,
            background: request.is_background(),
        });
        Ok(SendPermit::sent_at(Timestamp::ZERO))
    }

    fn is_idle(&self) -> bool {
        self.engine.is_idle()
    }
}
