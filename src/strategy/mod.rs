//! The facade: retry strategies as Smithy's client guide describes them, over the two buckets.

mod adaptive;
mod builder;
mod choices;
mod costs;
mod engine;
mod events;
mod failure;
#[cfg(feature = "scopes")]
pub(crate) mod hold;
mod idempotency;
mod info;
mod legacy;
#[cfg(feature = "metrics")]
mod metrics;
mod plan;
mod quota;
mod refusal;
mod settings;
mod snapshot;
mod standard;
#[cfg(feature = "serde")]
mod text;
mod token;
mod turn;

use core::fmt;

pub use adaptive::Adaptive;
pub use builder::StrategyBuilder;
pub use costs::RetryCosts;
pub use failure::{Failure, ServiceUnavailable};
pub use idempotency::Idempotency;
pub use info::{Execution, Fault, HasFault, RetryAfter, RetryInfo, RetrySafety};
pub use legacy::{Legacy, LegacyBuilder};
pub use quota::{Quota, QuotaSnapshot};
pub use refusal::{ForeignToken, InitialTokenRefused, RefusalReason, RetryRefused};
pub use settings::{HintPolicy, MaybePolicy, RetryGeneration, Settings, SettingsError};
pub use snapshot::{StrategyCounts, StrategySnapshot};
pub use standard::Standard;
pub use token::{RetryToken, StrategyId};
pub use turn::{SendGate, SendRefused, SendTurn};

/// Decides whether, and when, a failed operation is sent again.
///
/// The interface of Smithy's client guide, "Retrying Requests", and one step of our own: between a
/// token's delay and every send, first or repeated, stands a [`send_turn`](Self::send_turn). Tokens
/// have to do with retries only; the turn has to do with the send rate only.
///
/// An operation goes: initial token; then for each attempt its delay, a turn, the send, and either
/// [`record_success`](Self::record_success) or [`refresh_retry_token`](Self::refresh_retry_token).
/// [`RetryStrategyExt::run`](crate::RetryStrategyExt::run) is that loop, for any implementation.
///
/// # Examples
///
/// A strategy that retries twice, whatever it was and at once:
///
/// ```
/// use paceline::*;
///
/// #[derive(Debug)]
/// struct Twice(StrategyId);
///
/// impl RetryStrategy for Twice {
///     fn acquire_initial_token(&self, _: Option<&str>) -> Result<RetryToken, InitialTokenRefused> {
///         Ok(RetryToken::new(self.0))
///     }
///     fn refresh_retry_token(&self, token: RetryToken, _: &Failure) -> Result<RetryToken, RetryRefused> {
///         let token = self.0.check(token)?;
///         if token.attempt() == 3 {
///             return Err(RetryRefused::new(RefusalReason::MaxAttempts { max: 3 }));
///         }
///         let next = token.attempt() + 1;
///         Ok(token.with_attempt(next, Some(3)))
///     }
///     fn record_success(&self, token: RetryToken) -> Result<(), ForeignToken> {
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
    /// `scope` names what the operation goes to, for strategies that keep a state for each, as `Scopes` does (feature
    /// `scopes`). The others of ours keep one and ignore it.
    ///
    /// # Errors
    ///
    /// Returns [`InitialTokenRefused`] if there is no token. The operation must then be sent exactly
    /// once. Ours always give one, even with an empty quota.
    fn acquire_initial_token(&self, scope: Option<&str>)
    -> Result<RetryToken, InitialTokenRefused>;

    /// Takes note of a failed attempt and asks for another.
    ///
    /// The failure is recorded before the decision, whatever that is. Of two permits only the last
    /// one is carried on: what an earlier retry paid is spent.
    ///
    /// # Errors
    ///
    /// Returns [`RetryRefused`] if there is no retry. The caller sleeps its
    /// [`delay`](RetryRefused::delay), which is nearly always zero, and returns the original failure.
    /// A token of another strategy is refused too, and comes back in it with nothing changed.
    fn refresh_retry_token(
        &self,
        token: RetryToken,
        failure: &Failure,
    ) -> Result<RetryToken, RetryRefused>;

    /// Ends an operation that succeeded.
    ///
    /// # Errors
    ///
    /// Returns [`ForeignToken`] with the token in it, and changes nothing, if another strategy issued
    /// it.
    fn record_success(&self, token: RetryToken) -> Result<(), ForeignToken>;

    /// Takes a turn to send. By default it has come already and touches nothing.
    ///
    /// To be asked for after the token's delay, once for each send: no place is held while an
    /// operation backs off.
    ///
    /// # Errors
    ///
    /// Returns [`SendRefused`] with the time to wait if the strategy refuses rather than makes wait.
    fn send_turn(&self) -> Result<SendTurn<'_>, SendRefused> {
        Ok(SendTurn::immediate())
    }

    /// Returns the state for people to read, and changes nothing. By default there is nothing to see, as with
    /// [`Legacy`], which keeps no state.
    fn snapshot(&self) -> StrategySnapshot {
        StrategySnapshot::default()
    }

    /// Takes a turn to send the operation of `token`: what a retry loop asks for where it has a token.
    ///
    /// By default [`send_turn`](Self::send_turn). For strategies that keep a state for each scope, whose line depends
    /// on where the operation goes; they may lend the turn from the token.
    ///
    /// # Errors
    ///
    /// As [`send_turn`](Self::send_turn).
    fn send_turn_for<'a>(&'a self, token: &'a RetryToken) -> Result<SendTurn<'a>, SendRefused> {
        let _ = token;
        self.send_turn()
    }

    /// Tells whether the strategy is as good as new, so that one built in its place would decide alike.
    ///
    /// Ours are while their own quota is full and their send rate limits nothing, or no more than a new one's. `Scopes`
    /// (feature `scopes`) asks before it drops a state that nobody uses. By default `false`: never dropped.
    fn is_idle(&self) -> bool {
        false
    }
}
