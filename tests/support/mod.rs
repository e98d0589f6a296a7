//! Time that tests move, jitter that is always the same, and scripts of one operation.
#![allow(dead_code, reason = "every test file uses a part of it")]

extern crate alloc;

#[cfg(feature = "scopes")]
pub(crate) mod scopes;

pub(crate) use alloc::sync::Arc;
use core::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use paceline::{
    Clock, Failure, RetryQuota, RetryStrategy, RetryToken, Timestamp,
    backoff::Random,
    classify::ServiceUnavailable,
    operation::StopReason,
    strategy::{ForeignToken, InitialTokenRefused, Reports, RetryRefused},
};

/// Returns the delay of `millis` milliseconds.
pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Returns what a bare status says, with 503 a transient error.
pub(crate) const fn http(status: u16) -> Failure {
    Failure::from_http_status(status, ServiceUnavailable::Transient)
}

/// A strategy that does nothing but what the trait asks for, by the one inside.
#[derive(Debug)]
pub(crate) struct Bare<S>(pub(crate) S);

impl<S: RetryStrategy> RetryStrategy for Bare<S> {
    fn acquire_initial_token(
        &self,
        scope: Option<&str>,
    ) -> Result<RetryToken, InitialTokenRefused> {
        self.0.acquire_initial_token(scope)
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        failure: &Failure,
        reports: Reports<'_>,
    ) -> Result<RetryToken, RetryRefused> {
        self.0.refresh_retry_token(token, failure, reports)
    }

    fn record_success(&self, token: RetryToken, reports: Reports<'_>) -> Result<(), ForeignToken> {
        self.0.record_success(token, reports)
    }
}

/// Jitter that always draws the same number.
#[derive(Debug)]
pub(crate) struct Fixed(pub(crate) u64);

impl Fixed {
    /// The jitter `b = 1`: every delay is the whole backoff.
    pub(crate) fn whole() -> Arc<Self> {
        Arc::new(Self(u64::MAX))
    }
}

impl Random for Fixed {
    fn next_u64(&self) -> u64 {
        self.0
    }
}

/// A clock that moves only by `sleep`.
#[derive(Debug, Default)]
pub(crate) struct Hands(AtomicU64);

impl Hands {
    pub(crate) fn sleep(&self, span: Duration) {
        let nanos = u64::try_from(span.as_nanos()).unwrap();
        self.0.fetch_add(nanos, Relaxed);
    }

    /// Returns how far the clock has moved: the sum of all sleeps.
    pub(crate) fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.0.load(Relaxed))
    }
}

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.load(Relaxed))
    }
}

/// What is expected after one response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// A retry after this delay.
    Retry(Duration),
    /// No retry: the attempts are used up.
    MaxAttempts,
    /// No retry: the quota refuses. The caller is to sleep this long.
    QuotaExceeded(Duration),
    /// No retry: the failure forbids it.
    FailRequest,
    /// The operation succeeded.
    Success,
}

/// One row of a table: a response, what follows, and the quota after it.
pub(crate) type Row = (Response, Then, u32);

/// A response of the service.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Response {
    Fails(Failure),
    Works,
}

pub(crate) const OK: Response = Response::Works;

/// Returns the response with a bare status.
pub(crate) const fn status(status: u16) -> Response {
    Response::Fails(http(status))
}

/// Returns the response 400 with the error code `Throttling`.
pub(crate) const fn throttling() -> Response {
    Response::Fails(Failure::throttling())
}

/// Runs one operation row by row; the rows must end with the operation.
pub(crate) fn play(strategy: &impl RetryStrategy, quota: &RetryQuota, rows: &[Row]) {
    let mut token = Some(strategy.acquire_initial_token(None).unwrap());
    for (index, (response, expected, left)) in rows.iter().enumerate() {
        let sent = token.take().expect("the operation ended before the table");
        let (then, next) = step(strategy, sent, response);
        assert_eq!(then, *expected, "row {index}");
        assert_eq!(quota.available(), *left, "quota after row {index}");
        token = next;
    }
    assert!(token.is_none(), "the table ended before the operation");
}

/// Answers one attempt.
pub(crate) fn step(
    strategy: &impl RetryStrategy,
    token: RetryToken,
    response: &Response,
) -> (Then, Option<RetryToken>) {
    let Response::Fails(failure) = response else {
        strategy.record_success(token, Reports::new()).unwrap();
        return (Then::Success, None);
    };
    let refused = match strategy.refresh_retry_token(token, failure, Reports::new()) {
        Ok(token) => return (Then::Retry(token.delay()), Some(token)),
        Err(refused) => refused,
    };
    let then = match refused.reason() {
        StopReason::MaxAttempts { .. } => Then::MaxAttempts,
        StopReason::QuotaExhausted { .. } => Then::QuotaExceeded(refused.delay()),
        StopReason::NotRetryable => Then::FailRequest,
        other => panic!("unexpected refusal: {other}"),
    };
    if !matches!(then, Then::QuotaExceeded(_)) {
        assert_eq!(refused.delay(), Duration::ZERO);
    }
    (then, None)
}
