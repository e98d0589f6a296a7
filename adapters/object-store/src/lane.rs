//! One strategy at work for one operation.

use alloc::{boxed::Box, sync::Arc};
use core::future::Future;

use object_store::{Error, Result};
use paceline::{
    Idempotency, Operation, RetrySafety, RetryStrategy,
    operation::{Attempt, Attempts, Detached, Stop, Waiter},
    strategy::Reports,
    wait::DefaultSleep,
};

use crate::Pacing;

/// Where an operation goes.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    pub(crate) strategy: Arc<dyn RetryStrategy>,
    pub(crate) pacing: Arc<Pacing>,
}

/// An operation whose attempts are made here.
pub(crate) type Pending = Attempts<Arc<dyn RetryStrategy>>;

/// A request that was let go, and whose outcome is to be recorded.
pub(crate) type Sending = Detached<Arc<dyn RetryStrategy>>;

impl Lane {
    /// Sends until it succeeds or the strategy stops it.
    pub(crate) async fn run<T, F>(
        &self,
        idempotency: Idempotency,
        send: impl FnMut(Attempt) -> F,
    ) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let operation = Operation::new(&*self.strategy).idempotency(idempotency);
        self.drive(operation, send).await
    }

    /// As [`run`](Self::run), for what the store makes several requests of, and is idempotent. A
    /// connector in the store sends them again.
    pub(crate) async fn run_composite<T, F>(&self, send: impl FnMut(Attempt) -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let operation = Operation::new(&*self.strategy).composite();
        self.drive(operation, send).await
    }

    async fn drive<'a, T, F>(
        &'a self,
        operation: Operation<'a, &'a dyn RetryStrategy>,
        send: impl FnMut(Attempt) -> F,
    ) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let operation = self.pacing.bounds.apply(operation);
        let classify = |error: &Error| self.pacing.classify(error);
        let ended = operation.run_async_with(classify, send).await;
        ended.map_err(|stopped| stopped.into_error_or_else(of_stop))
    }

    /// Waits for a turn and sends what can be sent only once.
    pub(crate) async fn once<T>(&self, send: impl Future<Output = Result<T>>) -> Result<T> {
        let sending = self.begin().await?;
        let ended = send.await;
        self.end(sending, ended.as_ref().err());
        ended
    }

    /// Returns the attempts of an operation that takes so many tokens.
    pub(crate) fn start(&self, tokens: u32) -> Pending {
        let operation = Operation::new(Arc::clone(&self.strategy)).weight(tokens);
        self.pacing.bounds.apply(operation).start()
    }

    /// Waits for a turn. Dropped before it has come, it gives the place back.
    pub(crate) async fn begin(&self) -> Result<Sending> {
        let mut attempts = self.start(1);
        let mut waiter = Waiter::new(DefaultSleep::new());
        let _attempt = waiter
            .next(&mut attempts, self.strategy.clock())
            .await
            .map_err(of_stop)?;
        attempts.detach().map_err(|error| generic(error.into()))
    }

    /// Records the outcome of a request that was let go. There is no retry, so no quota is taken.
    pub(crate) fn end(&self, sending: Sending, error: Option<&Error>) {
        match error {
            None => sending.succeeded(Reports::new()),
            Some(error) => sending.failed(&self.pacing.classify(error), Reports::new()),
        }
    }

    /// Records the outcome of an attempt after which there is no other.
    pub(crate) fn conclude(&self, attempts: &mut Pending, error: Option<&Error>) {
        let Some(error) = error else {
            let _recorded = attempts.succeeded(Reports::new());
            return;
        };
        let failure = self.pacing.classify(error);
        let failure = failure.with_retry_safety(RetrySafety::No);
        let _recorded = attempts.failed(&failure, Reports::new());
    }

    /// Records the error of a request that took its turn elsewhere: of a page that has begun, say.
    pub(crate) fn note(&self, error: &Error) {
        if let Ok(token) = self.strategy.acquire_initial_token(None) {
            let failure = self
                .pacing
                .classify(error)
                .with_retry_safety(RetrySafety::No);
            drop(
                self.strategy
                    .refresh_retry_token(token, &failure, Reports::new()),
            );
        }
    }
}

/// The error that nothing was sent, or that an attempt was cut off.
pub(crate) fn of_stop(stop: Stop) -> Error {
    generic(stop.into())
}

fn generic(source: Box<dyn core::error::Error + Send + Sync>) -> Error {
    Error::Generic {
        store: "paceline",
        source,
    }
}
