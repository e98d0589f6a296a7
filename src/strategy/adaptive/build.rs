//! Building `Adaptive`.

use core::time::Duration;

use super::{Adaptive, Pace};
use crate::{
    ControlLaw,
    law::{DeclaredSettings, Dimension, PacedSettings, PacedSettingsError},
    pool::MemberSnapshot,
    strategy::{
        builder::StrategyBuilder, choices::choose, engine::Plan, members::Choice,
        settings::SettingsError, turn::Manner,
    },
};

const MINUTE: Duration = Duration::from_secs(60);
/// How long tokens are saved up for a heavy request.
const TOKENS_AT_ONCE: Duration = Duration::from_secs(10);

impl StrategyBuilder<Adaptive> {
    /// Moves the send rate by `law` with its defaults. A strategy needs a law.
    /// [`paced`](Self::paced), [`declared`](Self::declared) and [`bulk`](Self::bulk) also name a
    /// law.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{Adaptive, ControlLaw, config::SettingsError};
    ///
    /// let strategy = Adaptive::builder().law(ControlLaw::Paced).max_attempts(5).build()?;
    /// assert_eq!(strategy.settings().law, Some(ControlLaw::Paced));
    /// let nameless = Adaptive::builder().max_attempts(5).build();
    /// assert_eq!(nameless.unwrap_err(), SettingsError::NoLaw);
    /// # Ok::<(), SettingsError>(())
    /// ```
    pub fn law(mut self, law: ControlLaw) -> Self {
        self.choices.law = Some(law);
        (self.choices.paced, self.choices.declared) = (None, None);
        self
    }

    /// Moves the send rate by [`ControlLaw::Paced`] with `settings`: [`Adaptive::paced`].
    pub fn paced(mut self, settings: PacedSettings) -> Self {
        (self.choices.law, self.choices.paced) = (Some(ControlLaw::Paced), Some(settings));
        self.choices.declared = None;
        self
    }

    /// Retries throttled requests until they succeed, for pipelines. See [`Adaptive::bulk`].
    ///
    /// The law is [`ControlLaw::Paced`] unless [`declared`](Self::declared) is called.
    /// [`paced`](Self::paced) sets the settings of the paced law, which always begins with a [slow
    /// start](crate::law::PacedSettingsBuilder::slow_start).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::Adaptive;
    ///
    /// let strategy = Adaptive::builder()
    ///     .bulk()
    ///     .max_attempts(4) // that are not throttled
    ///     .deadline(Duration::from_secs(3_600))
    ///     .stall_timeout(Duration::from_secs(60))
    ///     .build()?;
    /// assert_eq!(strategy.settings().deadline, Some(Duration::from_secs(3_600)));
    /// # Ok::<(), paceline::config::SettingsError>(())
    /// ```
    pub fn bulk(mut self) -> Self {
        self.choices.bulk = true;
        self
    }

    /// Moves the send rate by [`ControlLaw::Declared`] with `settings`: [`Adaptive::declared`].
    pub fn declared(mut self, settings: DeclaredSettings) -> Self {
        (self.choices.law, self.choices.paced) = (Some(ControlLaw::Declared), None);
        self.choices.declared = Some(settings);
        self
    }

    /// Limits requests and tokens a minute, for a service that has these limits and does not
    /// declare them: [`Adaptive::per_minute`].
    ///
    /// # Errors
    ///
    /// If one of the limits is 0.
    pub fn per_minute(self, requests: u32, tokens: u32) -> Result<Self, PacedSettingsError> {
        let requests = PacedSettings::fixed(requests, MINUTE)?;
        let tokens = PacedSettings::fixed(tokens, MINUTE)?.to_builder();
        let tokens = tokens.burst(TOKENS_AT_ONCE).build()?;
        let declared = DeclaredSettings::new().dimension(Dimension::Tokens);
        Ok(self.paced(requests).also(declared.otherwise(tokens)))
    }

    /// Adds a send rate beside the first, for a service that counts several things at once, such as
    /// requests and tokens. Each call adds a rate, up to seven.
    ///
    /// A send then takes its weight from each rate
    /// ([`Operation::weights`](crate::Operation::weights)), and waits for the limit whose turn
    /// comes last. The first rate counts requests, by the law of the strategy. A further rate obeys
    /// the declared limits of its [dimension](DeclaredSettings::dimension). Where no limits are
    /// declared, its [paced law](DeclaredSettings::otherwise) decides. A throttle counts for the
    /// limits that explain it, as [`SendSet::record`](crate::SendSet::record) says.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{
    ///     Adaptive, RetryStrategy, law::{DeclaredSettings, Dimension},
    /// };
    ///
    /// let requests = DeclaredSettings::new();
    /// let tokens = requests.dimension(Dimension::Tokens);
    /// let strategy = Adaptive::builder().declared(requests).also(tokens).build()?;
    /// assert!(strategy.snapshot().further_rates[0].is_some());
    /// # Ok::<(), paceline::config::SettingsError>(())
    /// ```
    pub fn also(mut self, settings: DeclaredSettings) -> Self {
        self.choices.also.push(settings);
        self
    }

    /// Ranks the [members](Self::members) for each attempt by `choose`, as
    /// [`SendPool::choosing`](crate::SendPool::choosing) does. By default the tokens left decide.
    /// An attempt that has to wait asks `choose` twice for each member.
    pub fn choosing(
        mut self,
        choose: impl Fn(&MemberSnapshot) -> Option<u64> + Send + Sync + 'static,
    ) -> Self {
        self.choices.choosing = Some(Choice::new(choose));
        self
    }

    choose! {
        choices:
        /// Lets one of `count` members serve each attempt, as in a [`SendPool`](crate::SendPool): 1
        /// by default, 16 at most.
        ///
        /// It is for a client with several keys, accounts or endpoints. Each member has send rates
        /// with the settings of the strategy, and learns separately. All members share the quota.
        /// An attempt goes by the first member that lets it go
        /// ([`Attempt::member`](crate::operation::Attempt::member)), and its outcome is recorded
        /// with this member. A retry may go to another member, unless the operation
        /// [stays](crate::Operation::same_member).
        ///
        /// # Examples
        ///
        /// ```
        /// use std::time::Duration;
        /// use paceline::{Adaptive, Failure, RetryStrategyExt, law::PacedSettings};
        ///
        /// let keys = ["key-a", "key-b", "key-c"];
        /// let each = PacedSettings::fixed(40, Duration::from_secs(60))?;
        /// let strategy = Adaptive::builder().paced(each).members(keys.len()).build()?;
        /// for expected in keys {
        ///     let sent = strategy.run(|attempt| Ok::<_, Failure>(keys[attempt.member()]));
        ///     assert_eq!(sent.unwrap(), expected);
        /// }
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        members(count: usize);

        /// Ends the retries of [`bulk`](Self::bulk) when everything has been throttled for `span`,
        /// 5 minutes by default. `span` is also the longest wait that the service may ask for.
        stall_timeout(span: Duration);

        /// Refuses a send that would have to wait. The error has the wait.
        fail_fast(yes: bool);

        /// Refuses a send whose turn would come more than `span` after it was asked for. The error
        /// has the wait. The send is refused at once, or in line if the rate falls meanwhile. No
        /// limit by default.
        ///
        /// It is for requests with a signature or a credential that expires. A backoff does not
        /// count, because no place in line is held meanwhile.
        ///
        /// # Examples
        ///
        /// ```
        /// use std::time::Duration;
        /// use paceline::{Adaptive, Failure, RetryStrategyExt, law::PacedSettings, operation::StopReason};
        ///
        /// let minute = Duration::from_secs(60);
        /// let strategy = Adaptive::builder()
        ///     .paced(PacedSettings::fixed(1, 2 * minute)?)
        ///     .max_wait(minute)
        ///     .build()?;
        /// strategy.run(|_| Ok::<_, Failure>(())).unwrap(); // takes the one token
        /// let refused = strategy.run(|_| Ok::<_, Failure>(())).unwrap_err();
        /// assert!(matches!(refused.why(), StopReason::SendRefused { wait } if wait > minute));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        max_wait(span: Duration);

        /// Reads the clock for every send and every response.
        ///
        /// By default, while nothing is throttled, a busy thread reads the clock only every
        /// millisecond or two. [`SendRate::record_with`](crate::SendRate::record_with) says how
        /// exact this is. After a throttle, every send and response reads the clock.
        exact_timing(yes: bool);
    }

    /// Builds the strategy, whose send rate starts now by its clock.
    ///
    /// # Errors
    ///
    /// Returns [`SettingsError`] if a setting is out of range or two contradict each other.
    pub fn build(self) -> Result<Adaptive, SettingsError> {
        self.choices.check_adaptive()?;
        Ok(self.build_checked())
    }

    /// Builds the strategy from choices that are known to be right.
    pub(crate) fn build_checked(self) -> Adaptive {
        Adaptive::from_engine(self.into_plan().engine(None))
    }

    /// Checks the choices once, and returns a function that builds strategies by name. All of them
    /// share the settings.
    #[cfg(feature = "scopes")]
    pub(crate) fn many(
        self,
    ) -> impl Fn(Option<&str>) -> Result<Adaptive, SettingsError> + Send + Sync {
        let (checked, plan) = (self.choices.check_adaptive(), self.into_plan());
        move |name| checked.map(|()| Adaptive::from_engine(plan.engine(name)))
    }

    fn into_plan(mut self) -> Plan<Pace> {
        let law = self.choices.law().unwrap_or(ControlLaw::Aws);
        self.choices.law = Some(law);
        let pace = Pace {
            manner: Manner {
                fail_fast: self.choices.fail_fast,
                max_wait: self.choices.max_wait,
                exact_timing: self.choices.exact_timing,
            },
            law,
            paced: self.choices.paced,
            declared: self.choices.declared,
            also: self.choices.also.clone(),
            members: self.choices.members.unwrap_or(1),
            choosing: self.choices.choosing.clone(),
            stall_timeout: self.choices.stall_timeout(),
        };
        self.choices.into_plan(pace)
    }
}

/// Fields are named like the methods, and are all optional. Choices that [`build`](Self::build)
/// would refuse are refused here already, and so are `paced` settings with the law `aws`.
#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for StrategyBuilder<Adaptive> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut builder = Self::read(from)?;
        let choices = &mut builder.choices;
        if choices.paced.is_some()
            && *choices.law.get_or_insert(ControlLaw::Paced) == ControlLaw::Aws
        {
            return Err(serde::de::Error::custom(
                "paced has no effect on the law aws",
            ));
        }
        Ok(builder)
    }
}
