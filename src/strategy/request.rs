//! The request that a strategy gets before a send.

use alloc::sync::Arc;
use core::{task::Waker, time::Duration};

use super::token::RetryToken;
use crate::set::{MOST_RATES, SendSet, SetError, Weights};
use crate::{AcquireError, Class, Clock, SendRate, Timestamp, WeightError};

/// A request for permission to send one attempt, for
/// [`RetryStrategy::admit`](crate::RetryStrategy::admit).
///
/// By default the attempt has weight 1, no token and no waker, and the strategy's clock gives the
/// time.
///
/// # Examples
///
/// ```
/// use paceline::{Adaptive, RetryStrategy, Timestamp, strategy::{SendRequest, SendTurn}};
///
/// let strategy = Adaptive::paced();
/// let token = strategy.acquire_initial_token(None).unwrap();
/// let now = strategy.clock().now();
/// let request = SendRequest::new().token(&token).weight(4).at(&now);
/// assert_eq!(strategy.admit(&mut SendTurn::new(), request).unwrap().weight(), 4);
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "a request does nothing until a strategy is asked"]
pub struct SendRequest<'a> {
    pub(crate) token: Option<&'a RetryToken>,
    pub(crate) weight: u32,
    pub(crate) class: Class,
    pub(crate) weights: Option<&'a Weights>,
    pub(crate) clock: Option<&'a dyn Clock>,
    pub(crate) waker: Option<&'a Waker>,
    pub(crate) patience: Option<Duration>,
    pub(crate) member: Option<usize>,
}

impl<'a> SendRequest<'a> {
    /// Asks for an attempt of weight 1.
    pub const fn new() -> Self {
        Self {
            token: None,
            weight: 1,
            class: Class::Foreground,
            weights: None,
            clock: None,
            waker: None,
            patience: None,
            member: None,
        }
    }

    /// Names the operation, for strategies that keep a line for each scope.
    pub const fn token(mut self, token: &'a RetryToken) -> Self {
        self.token = Some(token);
        self
    }

    /// Sets how many tokens of the send rate the attempt takes.
    pub const fn weight(mut self, tokens: u32) -> Self {
        self.weight = tokens;
        self
    }

    /// Sets whether something waits for the attempt: foreground by default.
    pub const fn class(mut self, class: Class) -> Self {
        self.class = class;
        self
    }

    /// Returns `true` if the attempt is [background](Class::Background), for strategies with a send
    /// rate.
    #[must_use]
    pub const fn is_background(&self) -> bool {
        matches!(self.class, Class::Background)
    }

    /// Sets how many tokens of each send rate the attempt takes, for strategies with several rates.
    /// The first number is also the [`weight`](Self::weight).
    pub fn weights(mut self, tokens: &'a Weights) -> Self {
        self.weights = Some(tokens);
        self.weight = tokens.as_slice().first().copied().unwrap_or(1);
        self
    }

    /// Returns a weight for each rate of `set`. Without weights for all rates, the first rate gets
    /// the weight of the request, and the others get 1.
    pub(super) fn weights_of(
        &self,
        set: &SendSet<Arc<SendRate>>,
    ) -> Result<[u32; MOST_RATES], SetError> {
        if let Some(weights) = self.weights {
            return set.checked(weights.as_slice());
        }
        let mut all = [1; MOST_RATES];
        all[0] = self.weight;
        set.checked(all.get(..set.rates().count()).unwrap_or(&all))
    }

    /// Calls `take` with the weights of the request for `set`. If the request allows it, a weight
    /// above the capacity of a bucket is reduced to the capacity.
    pub(super) fn up_to_capacity<T>(
        &self,
        set: &SendSet<Arc<SendRate>>,
        mut take: impl FnMut(&[u32; MOST_RATES]) -> Result<T, SetError>,
    ) -> Result<T, SetError> {
        let mut weights = self.weights_of(set)?;
        loop {
            match take(&weights) {
                Err(SetError::Limit {
                    limit,
                    error: AcquireError::Weight(WeightError::AboveCapacity { weight, capacity }),
                }) if self.is_up_to_capacity() && capacity < weight => {
                    weights[limit] = capacity.max(1);
                }
                taken => return taken,
            }
        }
    }

    /// Returns `true` if a weight above capacity is reduced to the capacity.
    pub(super) fn is_up_to_capacity(&self) -> bool {
        self.weights.is_some_and(Weights::is_up_to_capacity)
    }

    /// Returns how many tokens of each send rate the attempt takes. `None` if the request has only
    /// a [`weight`](Self::tokens).
    #[must_use]
    pub const fn tokens_of_each(&self) -> Option<&'a Weights> {
        self.weights
    }

    /// Sets the time: a [`Timestamp`], or a clock that is read only if the time matters. The time
    /// has to be the time of the strategy's clock.
    pub const fn at(mut self, clock: &'a dyn Clock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Wakes `waker` if the turn comes sooner than the strategy answered.
    pub const fn waker(mut self, waker: &'a Waker) -> Self {
        self.waker = Some(waker);
        self
    }

    /// Lets the attempt wait `span` at most. An attempt whose turn comes later is refused, with
    /// [`NotAdmitted::Refused`](super::NotAdmitted::Refused). No limit by default.
    pub const fn within(mut self, span: Duration) -> Self {
        self.patience = Some(span);
        self
    }

    /// Lets only the member at `index` serve the attempt, for a strategy with
    /// [several](crate::config::StrategyBuilder::members) members.
    pub const fn member(mut self, index: usize) -> Self {
        self.member = Some(index);
        self
    }

    /// Returns the waker to wake if the turn comes sooner than answered, for gates with a line.
    #[must_use]
    pub const fn to_wake(&self) -> Option<&'a Waker> {
        self.waker
    }

    /// Returns the token of the operation, or `None` if its strategy gave none.
    #[must_use]
    pub const fn operation(&self) -> Option<&'a RetryToken> {
        self.token
    }

    /// Returns how many tokens of the send rate the attempt takes.
    #[must_use]
    pub const fn tokens(&self) -> u32 {
        self.weight
    }

    /// Returns the time of the request, or of `own` if the request has no time.
    #[must_use]
    pub fn now(&self, own: &dyn Clock) -> Timestamp {
        self.time(own).now()
    }

    pub(super) fn time<'c>(&self, own: &'c dyn Clock) -> &'c dyn Clock
    where
        'a: 'c,
    {
        self.clock.unwrap_or(own)
    }
}

/// Returns the shorter of two limits; `None` is no limit.
#[inline]
pub(crate) fn least(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
