//! One operation under one strategy.

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

/// The strategy of an operation, with the settings.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    pub(crate) strategy: Arc<dyn RetryStrategy>,
    pub(crate) pacing: Arc<Pacing>,
}

/// An operation whose attempts are made here.
pub(crate) type Pending = Attempts<Arc<dyn RetryStrategy>>;

/// A sent request whose outcome is not recorded yet.
pub(crate) type Sending = Detached<Arc<dyn RetryStrategy>>;

impl Lane {
    /// Sends until the operation succeeds or the strategy stops it.
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

    /// Does the same as [`run`](Self::run) for an idempotent operation of several requests. A
    /// connector in the store repeats these requests.
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

    /// Waits for a turn and sends a request that can be sent only once.
    pub(crate) async fn once<T>(&self, send: impl Future<Output = Result<T>>) -> Result<T> {
        let sending = self.begin().await?;
        let ended = send.await;
        self.end(sending, ended.as_ref().err());
        ended
    }

    /// Returns the attempts of an operation that takes `tokens` tokens.
    pub(crate) fn start(&self, tokens: u32) -> Pending {
        let operation = Operation::new(Arc::clone(&self.strategy)).weight(tokens);
        self.pacing.bounds.apply(operation).start()
    }

    /// Waits for a turn. A wait that is dropped gives its place back.
    pub(crate) async fn begin(&self) -> Result<Sending> {
        let mut attempts = self.start(1);
        let mut waiter = Waiter::new(DefaultSleep::new());
        let _attempt = waiter
            .next(&mut attempts, self.strategy.clock())
            .await
            .map_err(of_stop)?;
        attempts.detach().map_err(|error| generic(error.into()))
    }

    /// Records the outcome of a sent request. There is no retry, so no quota is taken.
    pub(crate) fn end(&self, sending: Sending, error: Option<&Error>) {
        match error {
            None => sending.succeeded(Reports::new()),
            Some(error) => sending.failed(&self.pacing.classify(error), Reports::new()),
        }
    }

    /// Records the outcome of the last attempt.
    pub(crate) fn conclude(&self, attempts: &mut Pending, error: Option<&Error>) {
        let Some(error) = error else {
            let _recorded = attempts.succeeded(Reports::new());
            return;
        };
        let failure = self.pacing.classify(error);
        let failure = failure.with_retry_safety(RetrySafety::No);
        let _recorded = attempts.failed(&failure, Reports::new());
    }

    /// Records the error of a request that took its turn elsewhere, such as a page that has begun.
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

/// Returns the error that nothing was sent, or that an attempt was cut off.
pub(crate) fn of_stop(stop: Stop) -> Error {
    generic(stop.into())
}

fn generic(source: Box<dyn core::error::Error + Send + Sync>) -> Error {
    Error::Generic {
        store: "paceline",
        source,
    }
}
