//! One operation: everything between its request and its answer but the sending.

use alloc::sync::Arc;
use core::time::Duration;

use paceline::{
    DefaultSleep, Failure, Idempotency, RefusalReason, RetryStrategy, RetryToken, SendRefused,
};
use tokio::time::{Instant, sleep};

/// An operation under way.
pub(crate) struct Operation {
    strategy: Arc<dyn RetryStrategy>,
    idempotency: Idempotency,
    /// When the operation is over, if there is a limit, and it is one that a clock can show.
    until: Option<Instant>,
    /// `None` if the initial token was refused, and after the end.
    token: Option<RetryToken>,
}

/// What comes after a failed attempt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Retry,
    /// Sleep, then return the answer.
    Stop(Duration),
    /// There would have been a retry if the request could be sent again.
    OneShot,
}

impl Operation {
    pub(crate) fn begin(
        strategy: Arc<dyn RetryStrategy>,
        idempotency: Idempotency,
        deadline: Option<Duration>,
    ) -> Self {
        let token = strategy.acquire_initial_token(None).ok();
        Self {
            token: token.map(|token| token.with_idempotency(idempotency)),
            strategy,
            idempotency,
            until: deadline.and_then(|span| Instant::now().checked_add(span)),
        }
    }

    /// Tells whether there may be an attempt after the next one.
    pub(crate) fn may_retry(&self) -> bool {
        self.token.as_ref().is_some_and(|token| {
            let max = token.max_attempts();
            max.is_none_or(|max| token.attempt() < max)
        })
    }

    /// Waits until the next attempt may be sent. Dropped before that, it gives its place in line back.
    pub(crate) async fn wait(&mut self) -> Result<(), SendRefused> {
        let delay = self
            .token
            .as_ref()
            .map_or(Duration::ZERO, RetryToken::delay);
        pause(delay).await;
        let turn = match &self.token {
            Some(token) => self.strategy.send_turn_for(token),
            None => self.strategy.send_turn(),
        };
        let permit = turn?.wait_on(&DefaultSleep::new()).await;
        if let Some(token) = &mut self.token {
            token.sent(permit);
        }
        Ok(())
    }

    /// Ends the operation well.
    pub(crate) fn succeed(&mut self) {
        // A strategy that refuses its own token changes nothing about the success.
        let _recorded = self
            .token
            .take()
            .map(|token| self.strategy.record_success(token));
    }

    /// Records a failed attempt and decides what comes next. No quota is paid if there is nothing to send again.
    pub(crate) fn fail(&mut self, failure: &Failure, repeatable: bool) -> Verdict {
        let Some(token) = self.token.take() else {
            return Verdict::Stop(Duration::ZERO);
        };
        // No time is what our strategies look at last before the quota, so they record and answer, and take nothing.
        let left = if repeatable {
            self.left()
        } else {
            Some(Duration::ZERO)
        };
        let asked = self
            .strategy
            .refresh_retry_token(token.with_time_left(left), failure);
        match asked {
            // For strategies that do not ask: ours have refused.
            Ok(_) if !self.idempotency.permits(failure) => Verdict::Stop(Duration::ZERO),
            Ok(_) if !repeatable => Verdict::OneShot,
            Ok(token) => {
                self.token = Some(token);
                Verdict::Retry
            }
            Err(refused) => match refused.reason() {
                RefusalReason::OutOfTime { .. } if !repeatable => Verdict::OneShot,
                _ => Verdict::Stop(refused.delay()),
            },
        }
    }

    fn left(&self) -> Option<Duration> {
        let until = self.until?;
        Some(until.saturating_duration_since(Instant::now()))
    }
}

pub(crate) async fn pause(span: Duration) {
    if !span.is_zero() {
        sleep(span).await;
    }
}
