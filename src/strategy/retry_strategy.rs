//! The interface of strategies.

use alloc::sync::Arc;
use core::{fmt, ops::Deref};

use super::{
    AttemptCharge, Event, ForeignToken, InitialTokenRefused, NotAdmitted, Reports, RetryRefused,
    SendRequest, SendTurn, StrategyId, snapshot::StrategySnapshot,
};
use crate::{Clock, Failure, RetryToken, SendPermit, Timestamp};

/// Decides whether, and when, a failed operation is sent again.
///
/// This is the interface of Smithy's client guide, "Retrying Requests", with one more step. Between
/// a token's delay and every send, first or repeated, the strategy has to [`admit`](Self::admit)
/// the send. Tokens concern only retries, admission only the send rate.
///
/// The order of calls is: an initial token; then for each attempt its delay, admission, the send,
/// and either [`record_success`](Self::record_success) or
/// [`refresh_retry_token`](Self::refresh_retry_token). [`Attempts`](crate::operation::Attempts)
/// makes these calls for any implementation.
///
/// Types that dereference to a strategy are strategies too: references, `Box`es, `Arc`s. A strategy
/// around another strategy returns the other from [`inside`](Self::inside), and implements only the
/// methods that differ.
///
/// # Examples
///
/// A strategy that retries twice at once, whatever the failure was:
///
/// ```
/// use paceline::{operation::StopReason, strategy::*, *};
///
/// #[derive(Debug)]
/// struct Twice(StrategyId);
///
/// impl RetryStrategy for Twice {
///     fn acquire_initial_token(&self, _: Option<&str>) -> Result<RetryToken, InitialTokenRefused> {
///         Ok(RetryToken::new(self.0))
///     }
///     fn refresh_retry_token(
///         &self,
///         token: RetryToken,
///         _: &Failure,
///         _: Reports<'_>,
///     ) -> Result<RetryToken, RetryRefused> {
///         let token = self.0.check(token)?;
///         if token.attempt() == 3 {
///             return Err(RetryRefused::new(StopReason::MaxAttempts { max: 3 }));
///         }
///         let next = token.attempt() + 1;
///         Ok(token.with_attempt(next, Some(3)))
///     }
///     fn record_success(&self, token: RetryToken, _: Reports<'_>) -> Result<(), ForeignToken> {
///         self.0.check(token).map(drop)
///     }
/// }
///
/// let strategy: Box<dyn RetryStrategy> = Box::new(Twice(StrategyId::new()));
/// let mut sends = 0;
/// let answer = strategy.run(|_| {
///     sends += 1;
///     if sends == 3 { Ok("at last") } else { Err(Failure::not_retryable()) }
/// });
/// assert_eq!(answer.ok(), Some("at last"));
/// ```
pub trait RetryStrategy: fmt::Debug + Send + Sync {
    /// Begins an operation.
    ///
    /// `scope` names the scope of the operation, for strategies that keep a state for each scope,
    /// as `Scopes` does (feature `scopes`). The other strategies of this crate keep one state and
    /// ignore `scope`.
    ///
    /// # Errors
    ///
    /// Returns [`InitialTokenRefused`] if there is no token. The operation must then be sent
    /// exactly once. The strategies of this crate always give a token, even with an empty quota.
    //= Smithy: If an initial token cannot be acquired, the client should still make an attempt.
    fn acquire_initial_token(&self, scope: Option<&str>)
    -> Result<RetryToken, InitialTokenRefused>;

    /// Records a failed attempt and asks for another attempt.
    ///
    /// The failure is recorded before the decision, whatever the decision is. The token carries
    /// only the permit of the last retry. Permits of earlier retries are spent.
    ///
    /// # Errors
    ///
    /// Returns [`RetryRefused`] if there is no retry. The caller sleeps the refusal's
    /// [`delay`](RetryRefused::delay), which is nearly always zero, and returns the original
    /// failure. A token of another strategy is refused too. The refusal then contains the unchanged
    /// token.
    //= Smithy: If the retry strategy determines that the failed attempt may be retried, it will
    //= return a refreshed retry token to use for the next attempt.
    fn refresh_retry_token(
        &self,
        token: RetryToken,
        failure: &Failure,
        reports: Reports<'_>,
    ) -> Result<RetryToken, RetryRefused>;

    /// Ends an operation that succeeded.
    ///
    /// As after a failure, `reports` says when the response came and what the service reported.
    ///
    /// # Errors
    ///
    /// Returns [`ForeignToken`] with the token, and changes nothing, if another strategy issued the
    /// token.
    //= Smithy: If the request succeeds, the retry strategy is given the token so that it may free
    //= up any resources it was using.
    fn record_success(&self, token: RetryToken, reports: Reports<'_>) -> Result<(), ForeignToken>;

    /// Returns the strategy inside this strategy. Methods that are not implemented call the inner
    /// strategy. By default `None`.
    fn inside(&self) -> Option<&dyn RetryStrategy> {
        None
    }

    /// Ends an operation that its caller has given up.
    ///
    /// An attempt under way, whose token has a [send permit](RetryToken::send_permit), counts as
    /// sent. An attempt that was not sent yet gives its quota back. By default the token is
    /// dropped.
    ///
    /// # Errors
    ///
    /// Returns [`ForeignToken`] with the token, and changes nothing, if another strategy issued the
    /// token.
    fn record_cancelled(
        &self,
        token: RetryToken,
        reports: Reports<'_>,
    ) -> Result<(), ForeignToken> {
        match self.inside() {
            Some(inside) => inside.record_cancelled(token, reports),
            None => Ok(()),
        }
    }

    /// Takes in what the service declares about its limits when the headers of a response come. It
    /// is for responses whose outcome is known much later. By default nothing is done.
    ///
    /// Limits that come with the outcome are taken from its `reports`, and need no call.
    fn observe(&self, token: &RetryToken, reports: Reports<'_>) {
        if let Some(inside) = self.inside() {
            inside.observe(token, reports);
        }
    }

    /// Returns the charge of the attempt of `token`, to settle with its true cost after its outcome
    /// was recorded. By default there is nothing to settle.
    fn charge(&self, token: &RetryToken) -> Option<AttemptCharge> {
        self.inside()?.charge(token)
    }

    /// Returns `true` if the strategy follows the limits that services declare. By default `false`,
    /// so that no headers need to be read.
    fn obeys_limits(&self) -> bool {
        self.inside().is_some_and(RetryStrategy::obeys_limits)
    }

    /// Asks for permission to send an attempt. By default the strategy gives it at once.
    ///
    /// Call it after the token's delay, because an operation holds no place in line while it backs
    /// off. Use a new `turn` for each attempt, and the same turn until the attempt may go. The
    /// permit goes into the token with [`RetryToken::sent`].
    ///
    /// # Errors
    ///
    /// [`NotAdmitted::Wait`] while the turn has not come, and other variants if the turn will never
    /// come.
    fn admit(
        &self,
        turn: &mut SendTurn,
        request: SendRequest<'_>,
    ) -> Result<SendPermit, NotAdmitted> {
        match self.inside() {
            Some(inside) => inside.admit(turn, request),
            None => Ok(SendPermit::sent_at(Timestamp::ZERO)),
        }
    }

    /// Returns the clock that times the strategy's sends and the deadlines of its operations. By
    /// default the system's clock, [`MonotonicClock`](crate::MonotonicClock).
    fn clock(&self) -> &dyn Clock {
        match self.inside() {
            Some(inside) => inside.clock(),
            None => crate::clock::system(),
        }
    }

    /// Returns the strategy's identity, which is in its events (`strategy=3`). By default `None`.
    fn id(&self) -> Option<StrategyId> {
        self.inside()?.id()
    }

    /// Returns the name of the strategy, or of the scope of `token`, in events and metrics. By
    /// default `None`.
    ///
    /// [`StrategyBuilder::name`](crate::config::StrategyBuilder::name) sets the name of a strategy.
    /// The name of a scope is its key, unless `ScopesBuilder` was given a function that names the
    /// scope's strategy.
    fn name(&self, token: Option<&RetryToken>) -> Option<Arc<str>> {
        self.inside()?.name(token)
    }

    /// Calls the strategy's [hook](crate::config::StrategyBuilder::on_event) with an event of one
    /// of its operations. By default there is no hook.
    fn notify(&self, event: &Event<'_>) {
        if let Some(inside) = self.inside() {
            inside.notify(event);
        }
    }

    /// Returns the state for diagnostics, and changes nothing. By default the snapshot is empty, as
    /// with [`Legacy`](crate::Legacy), which keeps no state.
    fn snapshot(&self) -> StrategySnapshot {
        self.inside()
            .map_or_else(StrategySnapshot::default, RetryStrategy::snapshot)
    }

    /// Returns `true` if a new strategy in its place would decide alike.
    ///
    /// A strategy of this crate is idle while its own quota is full and its send rate limits no
    /// more than a new send rate. An unused strategy also becomes idle, after half an hour in which
    /// no retry was paid and the bucket of the send rate was full. `Scopes` (feature `scopes`) asks
    /// before it drops an unused state. By default `false`: the state is never dropped.
    fn is_idle(&self) -> bool {
        self.inside().is_some_and(RetryStrategy::is_idle)
    }
}

/// Forwards the methods of a list to another value.
macro_rules! forward {
    (
        $self:ident => $to:tt:
        $($method:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)?;)+
    ) => {$(
        fn $method(&$self $(, $argument: $kind)*) $(-> $result)? {
            $to.$method($($argument),*)
        }
    )+};
}
pub(crate) use forward;

impl<P> RetryStrategy for P
where
    P: Deref<Target: RetryStrategy> + fmt::Debug + Send + Sync,
{
    forward! {
        self => (**self):
        acquire_initial_token(scope: Option<&str>) -> Result<RetryToken, InitialTokenRefused>;
        refresh_retry_token(token: RetryToken, failure: &Failure, reports: Reports<'_>)
            -> Result<RetryToken, RetryRefused>;
        record_success(token: RetryToken, reports: Reports<'_>) -> Result<(), ForeignToken>;
        inside() -> Option<&dyn RetryStrategy>;
        record_cancelled(token: RetryToken, reports: Reports<'_>) -> Result<(), ForeignToken>;
        observe(token: &RetryToken, reports: Reports<'_>);
        charge(token: &RetryToken) -> Option<AttemptCharge>;
        obeys_limits() -> bool;
        admit(turn: &mut SendTurn, request: SendRequest<'_>) -> Result<SendPermit, NotAdmitted>;
        clock() -> &dyn Clock;
        id() -> Option<StrategyId>;
        name(token: Option<&RetryToken>) -> Option<Arc<str>>;
        notify(event: &Event<'_>);
        snapshot() -> StrategySnapshot;
        is_idle() -> bool;
    }
}
