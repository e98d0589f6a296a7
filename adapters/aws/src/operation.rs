//! One operation's state, which travels in its config bag.

use core::time::Duration;
use std::time::Instant;

use aws_smithy_types::config_bag::{ConfigBag, Storable, StoreReplace};
use paceline::{Failure, RetrySafety, RetryToken, SendPermit, SendRefused};

use crate::{Pacing, turn::Awaited};

/// An operation under way: its token, and with it the permit of its last retry.
///
/// It goes with the bag: an operation that is dropped gives up its own token, and touches no other's.
#[derive(Debug)]
pub(crate) struct Operation {
    /// `None` if the strategy gave no token, and after the end.
    token: Option<RetryToken>,
    send: Send,
    verdict: Verdict,
    limits: Limits,
}

/// What keeps the orchestrator from another attempt, whatever is decided: then none must be paid for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Whether the request can be sent a second time: some bodies cannot.
    pub(crate) repeatable: bool,
    /// When the whole operation times out.
    pub(crate) deadline: Option<Instant>,
}

impl Limits {
    fn permit_another(&self) -> bool {
        self.repeatable
            && self
                .deadline
                .is_none_or(|deadline| Instant::now() < deadline)
    }
}

/// How far the send of the present attempt has come.
#[derive(Debug)]
enum Send {
    NotAsked,
    /// The turn had come.
    Granted(SendPermit),
    /// The HTTP client waits for it.
    Awaited(Awaited),
}

/// What was decided after the last attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No attempt has ended yet.
    None,
    /// There is no retry.
    Stop,
    /// Another attempt after this time, of so many at most.
    Retry {
        delay: Duration,
        max_attempts: Option<u32>,
    },
}

impl Storable for Operation {
    type Storer = StoreReplace<Self>;
}

impl Operation {
    /// Begins an operation.
    pub(crate) fn begin(pacing: &Pacing, limits: Limits) -> Self {
        let token = pacing
            .strategy()
            .acquire_initial_token(pacing.scope_name())
            .ok();
        Self {
            token,
            send: Send::NotAsked,
            verdict: Verdict::None,
            limits,
        }
    }

    /// Returns the operation that the interceptor put into `bag`.
    pub(crate) fn of(bag: &mut ConfigBag) -> Option<&mut Self> {
        bag.get_mut_from_interceptor_state::<Self>()
    }

    pub(crate) const fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// Returns the most sends there may be, if that is known.
    pub(crate) fn max_attempts(&self) -> Option<u32> {
        match &self.token {
            Some(token) => token.max_attempts(),
            None => Some(1),
        }
    }

    /// Takes the turn of an attempt, or returns the wait for it that is left to the HTTP client.
    ///
    /// Nothing is awaited between here and there, so a token that is taken is sent with.
    pub(crate) fn take_turn(&mut self, pacing: &Pacing) -> Result<Option<Awaited>, SendRefused> {
        let first_delay = match (&self.token, self.verdict) {
            (Some(token), Verdict::None) => token.delay(),
            _ => Duration::ZERO, // the orchestrator has slept it
        };
        if first_delay.is_zero() {
            let turn = match &self.token {
                Some(token) => pacing.strategy().send_turn_for(token),
                None => pacing.strategy().send_turn(),
            };
            let claimed = turn.map(|mut turn| turn.claim());
            match claimed {
                Ok(Ok(permit)) => {
                    self.send = Send::Granted(permit);
                    return Ok(None);
                }
                Ok(Err(_wait)) => {}
                Err(refused) => {
                    self.token = None; // it is not sent, so there is nothing to record
                    return Err(refused);
                }
            }
        }
        let turn = Awaited::new(pacing.strategy().clone(), first_delay);
        self.send = Send::Awaited(turn.clone());
        Ok(Some(turn))
    }

    /// Tells whether the HTTP client was asked to wait and did not.
    pub(crate) fn has_not_waited(&self) -> bool {
        matches!(&self.send, Send::Awaited(turn) if turn.permit().is_none())
    }

    /// Ends an attempt: records its outcome and decides what comes next.
    pub(crate) fn finish(&mut self, pacing: &Pacing, failure: Option<&Failure>) -> Verdict {
        let permit = match core::mem::replace(&mut self.send, Send::NotAsked) {
            Send::NotAsked => None,
            Send::Granted(permit) => Some(permit),
            Send::Awaited(turn) => turn.permit(),
        };
        self.verdict = match (self.token.take(), failure) {
            (None, _) => Verdict::Stop,
            (Some(mut token), failure) => {
                if let Some(permit) = permit {
                    token.sent(permit);
                }
                self.decide(pacing, token, failure)
            }
        };
        self.verdict
    }

    fn decide(&mut self, pacing: &Pacing, token: RetryToken, failure: Option<&Failure>) -> Verdict {
        let Some(failure) = failure else {
            // A strategy that refuses its own token changes nothing about the success.
            let _recorded = pacing.strategy().record_success(token);
            return Verdict::Stop;
        };
        let failure = if self.limits.permit_another() {
            *failure
        } else {
            failure.with_retry_safety(RetrySafety::No)
        };
        match pacing.strategy().refresh_retry_token(token, &failure) {
            Ok(token) => {
                let (delay, max_attempts) = (token.delay(), token.max_attempts());
                self.token = Some(token);
                Verdict::Retry {
                    delay,
                    max_attempts,
                }
            }
            Err(_refused) => Verdict::Stop,
        }
    }
}
