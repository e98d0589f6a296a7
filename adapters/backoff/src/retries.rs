//! One operation in a retry loop that another crate runs.

use core::{fmt, time::Duration};

use paceline::{
    Failure, Idempotency, RetryStrategy, RetryToken, operation::OuterAttempt, strategy::Reports,
};

use crate::delays::{Delays, Due};

/// The retries of one operation: how often, when, and from which quota.
///
/// A strategy decides, and its quota pays for each retry of the host's loop. Make a `Retries` for
/// each operation, and end it by [`finish`](Self::finish) or [`succeed`](Self::succeed). A success
/// pays back the cost of the last retry, or adds a token if there was no retry. If it is dropped,
/// the payment is spent.
///
/// There are two ways to use it. [`split`](Self::split) gives the loop its delays and its
/// condition. This way is better, since the condition sees the errors. `Retries` is also an
/// iterator of delays, for loops without a condition. The iterator takes every failure for the
/// failure of [`assume`](Self::assume).
///
/// Inside of an attempt of a loop of paceline it notes failures and grants no retry, since that
/// loop sends again. Loops inside of the host's loop do the same if they have the mark of
/// [`outer`](Self::outer).
///
/// No operation waits here until it is [admitted](RetryStrategy::admit), since these loops have no
/// place for the wait. Use [`Standard`](paceline::Standard), or paceline's own loop.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use backon::BlockingRetryable;
/// use paceline::{Failure, Standard};
/// use paceline_backoff::Retries;
///
/// let strategy = Standard::builder().base_delay(Duration::from_millis(1)).build()?;
/// let mut answers = [Err("reset"), Ok("there it is")].into_iter();
/// let fetch = || answers.next().unwrap_or(Err("that was all"));
///
/// let mut retries = Retries::of(&strategy);
/// let (delays, condition) = retries.split(|_: &&str| Failure::transient());
/// let answer = fetch.retry(delays).when(condition).call();
/// assert_eq!(strategy.quota().available(), 486);
/// retries.finish(&answer);
/// assert_eq!((answer, strategy.quota().available()), (Ok("there it is"), 500));
/// # Ok::<(), paceline::config::SettingsError>(())
/// ```
#[must_use = "retries that are dropped are spent"]
pub struct Retries<'a, S: ?Sized> {
    strategy: &'a S,
    /// `None` if no other attempt may follow.
    token: Option<RetryToken>,
    due: Due,
    assumed: Failure,
    /// Whether the retries are left to an outer loop.
    is_inside: bool,
}

impl<'a, S: RetryStrategy + ?Sized> Retries<'a, S> {
    /// Begins an operation.
    ///
    /// If the strategy gives no token, there are no retries.
    pub fn of(strategy: &'a S) -> Self {
        Self::in_scope(strategy, None)
    }

    /// Begins an operation on `scope`, for strategies with a state for each scope.
    pub fn in_scope(strategy: &'a S, scope: Option<&str>) -> Self {
        Self {
            strategy,
            token: strategy.acquire_initial_token(scope).ok(),
            due: Due::none(),
            assumed: Failure::transient(),
            is_inside: OuterAttempt::current().is_some(),
        }
    }

    /// Sets whether the operation may be carried out twice. Yes by default.
    pub fn idempotency(mut self, idempotency: Idempotency) -> Self {
        self.token = self.token.map(|token| token.with_idempotency(idempotency));
        self
    }

    /// Accepts no longer wait than `span` from the service: 60 s by default. A service that asks
    /// for more gets no retry.
    pub fn max_retry_after(mut self, span: Duration) -> Self {
        self.token = self.token.map(|token| token.with_max_retry_after(span));
        self
    }

    /// Sets the failure that the iterator assumes, since it sees no errors. [`Failure::transient`]
    /// by default.
    pub fn assume(mut self, failure: Failure) -> Self {
        self.assumed = failure;
        self
    }

    /// Returns the mark for each attempt of the host's loop, so that paceline's loops inside of it
    /// send once: `within_async(outer, fetch())`, or `within`. `None` if the strategy allows one
    /// attempt, or if an outer loop has set a mark already.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use backon::BlockingRetryable;
    /// use paceline::{Failure, RetryStrategyExt, Standard, operation::within};
    /// use paceline_backoff::Retries;
    ///
    /// let strategy = Standard::builder().base_delay(Duration::from_millis(1)).build()?;
    /// let mut sends = 0;
    /// // A client with retries.
    /// let mut fetch = || strategy.run(|_| { sends += 1; Err::<(), _>(Failure::transient()) });
    ///
    /// let mut retries = Retries::of(&strategy);
    /// let outer = retries.outer();
    /// let (delays, condition) = retries.split(|_| Failure::transient());
    /// let answer = (|| within(outer, &mut fetch)).retry(delays).when(condition).call();
    /// assert!(answer.is_err());
    /// assert_eq!(sends, 3); // not 9
    /// # Ok::<(), paceline::config::SettingsError>(())
    /// ```
    #[must_use]
    pub fn outer(&self) -> Option<OuterAttempt> {
        let max = self
            .token
            .as_ref()
            .map_or(Some(1), RetryToken::max_attempts);
        let alone = self.is_inside || matches!(max, Some(0 | 1));
        (!alone).then(OuterAttempt::new)
    }

    /// Returns the delay before the first send. It is zero except with custom strategies.
    #[must_use]
    pub fn first_delay(&self) -> Duration {
        let first = self.token.as_ref().filter(|token| token.attempt() == 1);
        first.map_or(Duration::ZERO, RetryToken::delay)
    }

    /// Returns the delays for the host's loop and its condition. The loop needs both.
    ///
    /// The condition classifies each error by `classify`, and asks the strategy, which notes the
    /// failure and pays. The delays contain the service's hints. With backon write
    /// `.retry(delays).when(condition)`, with tokio-retry
    /// `RetryIf::start(delays, action, condition)`.
    pub fn split<E, C: FnMut(&E) -> Failure>(
        &mut self,
        mut classify: C,
    ) -> (Delays<'_>, impl FnMut(&E) -> bool) {
        let Self {
            strategy,
            token,
            due,
            is_inside,
            ..
        } = self;
        let due = &*due;
        due.set(None);
        let condition = move |error: &E| {
            let delay = refresh(*strategy, token, &classify(error), *is_inside);
            due.set(delay);
            delay.is_some()
        };
        (Delays(due), condition)
    }

    /// Ends the operation, and records it if `answer` is a success.
    pub fn finish<T, E>(self, answer: &Result<T, E>) {
        if answer.is_ok() {
            self.succeed();
        }
    }

    /// Ends an operation that succeeded.
    pub fn succeed(mut self) {
        if let Some(token) = self.token.take() {
            // A strategy that refuses its own token changes nothing about the success.
            let _recorded = self.strategy.record_success(token, Reports::new());
        }
    }
}

impl<S: fmt::Debug + ?Sized> fmt::Debug for Retries<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retries")
            .field("strategy", &self.strategy)
            .field("attempt", &self.token.as_ref().map(RetryToken::attempt))
            .finish_non_exhaustive()
    }
}

/// Notes a failure, and returns the delay before the next attempt, or `None` without a retry.
fn refresh<S: RetryStrategy + ?Sized>(
    strategy: &S,
    token: &mut Option<RetryToken>,
    failure: &Failure,
    is_inside: bool,
) -> Option<Duration> {
    let last = token.take()?;
    let permitted = last.idempotency().permits(failure) && !is_inside;
    // The outer loop sends again. With no time left the failure is recorded, and no quota is taken.
    let last = if is_inside {
        last.with_time_left(Some(Duration::ZERO))
    } else {
        last
    };
    let next = strategy
        .refresh_retry_token(last, failure, Reports::new())
        .ok()?;
    // For a user's strategy that does not check idempotency. Paceline's strategies have refused
    // above.
    let next = token.insert(next);
    if permitted {
        return Some(next.delay());
    }
    *token = None;
    None
}

/// Pays for a retry after the [assumed](Retries::assume) failure, and returns its delay.
///
/// The iterator ends when the strategy refuses, and does not begin again. Hand it to the loop as
/// `&mut retries`.
///
/// # Examples
///
/// ```
/// use paceline::Standard;
/// use paceline_backoff::Retries;
///
/// let strategy = Standard::new();
/// let mut retries = Retries::of(&strategy);
/// assert_eq!(retries.by_ref().count(), 2); // of three attempts
/// assert_eq!(strategy.quota().available(), 472);
/// ```
impl<S: RetryStrategy + ?Sized> Iterator for Retries<'_, S> {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        refresh(
            self.strategy,
            &mut self.token,
            &self.assumed,
            self.is_inside,
        )
    }
}

impl<S: RetryStrategy + ?Sized> core::iter::FusedIterator for Retries<'_, S> {}
