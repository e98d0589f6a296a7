//! The state of an operation, which is kept in its config bag.

use core::time::Duration;

use aws_smithy_types::config_bag::{ConfigBag, Storable, StoreReplace};
use paceline::{
    Failure,
    operation::{Next, Stop},
    strategy::Reports,
};

use crate::{
    Pacing,
    capacity::capacity,
    limit::Limit,
    turn::{Awaited, Pending},
};

/// An operation under way.
///
/// The operation is dropped with its bag. Then it gives back its own place in line, and no other.
#[derive(Debug)]
pub(crate) struct Operation {
    state: Stage,
    verdict: Verdict,
    bounds: Bounds,
    begun_by: usize,
}

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all operations stay here, and a box would be an allocation"
)]
enum Stage {
    /// The attempts are here.
    Own(Pending),
    /// The HTTP client has the attempts, and waits for the next.
    Lent(Awaited),
    /// The operation has ended, or its attempts are lost, since a wrapper sent the request twice.
    Ended,
}

/// The bounds of an operation from outside.
#[derive(Debug)]
pub(crate) struct Bounds {
    /// How many items the request sends, 1 if it is no batch.
    pub(crate) items: u32,
    /// Whether the request can be sent a second time. Some bodies cannot.
    pub(crate) repeatable: bool,
    /// How long the whole operation may take.
    pub(crate) span: Option<Duration>,
    /// How long each attempt may take.
    pub(crate) attempt: Option<Limit>,
}

/// What was decided after the last attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No attempt has ended yet.
    None,
    /// There is no retry.
    Stop,
    /// Another attempt follows after `delay`, of at most `max_attempts`.
    Retry { delay: Duration, max_attempts: u32 },
}

impl Storable for Operation {
    type Storer = StoreReplace<Self>;
}

impl Operation {
    /// Begins an operation for the interceptor at the address `by`.
    pub(crate) fn begin(pacing: &Pacing, bounds: Bounds, by: usize) -> Self {
        Self {
            state: Stage::Own(start(pacing, &bounds, bounds.items)),
            verdict: Verdict::None,
            bounds,
            begun_by: by,
        }
    }

    /// Returns the operation that the interceptor put into `bag`.
    pub(crate) fn of(bag: &mut ConfigBag) -> Option<&mut Self> {
        bag.get_mut_from_interceptor_state::<Self>()
    }

    pub(crate) const fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// Returns the most attempts of the operation for the SDK, before the first attempt.
    pub(crate) fn max_attempts(&self) -> u32 {
        match &self.state {
            Stage::Own(attempts) => max_attempts(attempts),
            Stage::Lent(_) | Stage::Ended => 1,
        }
    }

    pub(crate) const fn begun_by(&self) -> usize {
        self.begun_by
    }

    /// Returns how many items the request sends.
    pub(crate) const fn items(&self) -> u32 {
        self.bounds.items
    }

    /// Returns the time limit of each attempt.
    pub(crate) const fn limit(&self) -> Option<&Limit> {
        self.bounds.attempt.as_ref()
    }

    /// Takes the turn of an attempt, or returns the wait for the HTTP client.
    ///
    /// Nothing is awaited between here and the HTTP client, so a taken token is used.
    pub(crate) fn take_turn(&mut self, pacing: &Pacing) -> Result<Option<Awaited>, Stop> {
        let Stage::Own(mut attempts) = core::mem::replace(&mut self.state, Stage::Ended) else {
            return Ok(None);
        };
        if self.verdict != Verdict::None {
            attempts.slept(); // by the orchestrator
        }
        let clock = pacing.strategy().clock();
        let mut next = attempts.next(clock, None);
        if let Next::Stop(stop) = &next
            && let Some(less) = capacity(stop)
        {
            attempts = start(pacing, &self.bounds, less);
            next = attempts.next(clock, None);
        }
        match next {
            Next::Sleep(_) | Next::InLine(_) => {
                let lent = Awaited::new(attempts);
                self.state = Stage::Lent(lent.clone());
                Ok(Some(lent))
            }
            Next::Stop(stop) => Err(stop), // it is not sent, so there is nothing to record
            _ => {
                self.state = Stage::Own(attempts);
                Ok(None)
            }
        }
    }

    /// Ends an attempt: records its outcome and decides what comes next. Also returns whether the
    /// attempt was sent before its turn had come.
    pub(crate) fn finish(&mut self, failure: Option<&Failure>) -> (Verdict, bool) {
        let (attempts, lent) = match core::mem::replace(&mut self.state, Stage::Ended) {
            Stage::Own(attempts) => (Some(attempts), false),
            Stage::Lent(awaited) => (awaited.take(), true),
            Stage::Ended => (None, false),
        };
        let Some(mut attempts) = attempts else {
            self.verdict = Verdict::Stop;
            return (self.verdict, false);
        };
        let overtook = lent && !attempts.is_sending();
        self.verdict = decide(&mut attempts, failure);
        if let Verdict::Retry { .. } = self.verdict {
            self.state = Stage::Own(attempts);
        }
        (self.verdict, overtook)
    }
}

/// Returns the attempts of an operation that takes `tokens` tokens.
fn start(pacing: &Pacing, bounds: &Bounds, tokens: u32) -> Pending {
    let mut operation = paceline::Operation::new(pacing.strategy().clone()).weight(tokens);
    if let Some(scope) = pacing.scope_name() {
        operation = operation.scope(scope);
    }
    if let Some(span) = pacing.longest_hint() {
        operation = operation.max_retry_after(span);
    }
    if let Some(span) = bounds.span {
        operation = operation.deadline(span);
    }
    let mut attempts = operation.start();
    attempts.set_repeatable(bounds.repeatable);
    attempts
}

/// Records the outcome of an attempt, and decides what comes next.
fn decide(attempts: &mut Pending, failure: Option<&Failure>) -> Verdict {
    let reports = Reports::new();
    let Some(failure) = failure else {
        // A request that was only signed was not sent here, so nothing is recorded.
        let _recorded = attempts.succeeded(reports);
        return Verdict::Stop;
    };
    let decided = if attempts.is_sending() {
        attempts.failed(failure, reports)
    } else {
        attempts.not_sent(failure, reports)
    };
    match decided {
        Ok(paceline::operation::Verdict::Again(rest)) => Verdict::Retry {
            delay: rest.span(),
            max_attempts: max_attempts(attempts),
        },
        _ => Verdict::Stop,
    }
}

/// Returns the most attempts for the SDK. Without a limit it is one above the next attempt. The
/// number must be small, since the SDK adds up as many timeouts each time it looks for credentials.
fn max_attempts(attempts: &Pending) -> u32 {
    let next = attempts.count().saturating_add(1);
    attempts.max_attempts().unwrap_or(next.saturating_add(1))
}
