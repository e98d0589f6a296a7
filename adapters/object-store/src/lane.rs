//! One strategy at work for one operation.

use alloc::{boxed::Box, sync::Arc};
use core::future::Future;

use object_store::{Error, Result};
use paceline::{
    Attempt, DefaultSleep, Failure, Idempotency, RetrySafety, RetryStrategy, RetryStrategyExt as _,
    RetryToken, RunError, SendPermit, SendRefused, SendTurn,
};

use crate::Pacing;

/// Where an operation goes.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    pub(crate) strategy: Arc<dyn RetryStrategy>,
    pub(crate) pacing: Arc<Pacing>,
}

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
        let operation = self.strategy.operation().idempotency(idempotency);
        let classify = |error: &Error| self.pacing.classify(error);
        let ended = operation.run_async_with(classify, send).await;
        ended.map_err(of_stopped)
    }

    /// Waits for a turn and sends what can be sent only once.
    pub(crate) async fn once<T>(&self, send: impl Future<Output = Result<T>>) -> Result<T> {
        let sending = self.begin().await?;
        let ended = send.await;
        self.end(sending, ended.as_ref().err());
        ended
    }

    /// Waits for a turn. Dropped before it has come, it gives the place back.
    pub(crate) async fn begin(&self) -> Result<Sending> {
        let permit = self.turn()?.wait_on(&DefaultSleep::new()).await;
        Ok(self.sending(permit))
    }

    /// Waits for two turns, this lane's and that of `other`.
    pub(crate) async fn begin_both(&self, other: &Self) -> Result<(Sending, Sending)> {
        let (mut mine, mut others) = (self.turn()?, other.turn()?);
        // In one line the later place comes last; until it has, neither is claimed, so that both can go back.
        let others = others.wait_on(&DefaultSleep::new()).await;
        let mine = mine.wait_on(&DefaultSleep::new()).await;
        Ok((self.sending(mine), other.sending(others)))
    }

    fn turn(&self) -> Result<SendTurn<'_>> {
        self.strategy.send_turn().map_err(of_refused)
    }

    fn sending(&self, permit: SendPermit) -> Sending {
        let mut sending = self.unsent();
        if let Sending(Some(token)) = &mut sending {
            token.sent(permit);
        }
        sending
    }

    /// Begins what takes no turn of its own.
    pub(crate) fn unsent(&self) -> Sending {
        Sending(self.strategy.acquire_initial_token(None).ok())
    }

    /// Records what became of it. There is no retry, so no quota is taken.
    pub(crate) fn end(&self, sending: Sending, error: Option<&Error>) {
        let Some(token) = sending.0 else {
            return;
        };
        // A strategy that refuses its own token changes nothing.
        match error {
            None => drop(self.strategy.record_success(token)),
            Some(error) => {
                let failure = final_of(self.pacing.classify(error));
                drop(self.strategy.refresh_retry_token(token, &failure));
            }
        }
    }
}

/// What has been begun, for the record.
#[derive(Debug)]
#[must_use = "its outcome is to be recorded"]
pub(crate) struct Sending(Option<RetryToken>);

/// Says that there will be no retry; whether it was throttling stays.
const fn final_of(failure: Failure) -> Failure {
    failure.with_retry_safety(RetrySafety::No)
}

/// Returns the store's error, or that nothing was sent.
fn of_stopped(stopped: RunError<Error>) -> Error {
    let wait = stopped.wait();
    let own = || of_refused(SendRefused { wait });
    stopped.into_error().unwrap_or_else(own)
}

fn of_refused(refused: SendRefused) -> Error {
    Error::Generic {
        store: "paceline",
        source: Box::new(refused),
    }
}
