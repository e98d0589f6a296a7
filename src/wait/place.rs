//! A place in line, with the clock that tells when its turn comes.

use core::{fmt, ops::Deref, task::Waker, time::Duration};

use crate::atomic::Held;
use crate::{AcquireError, Clock, SendPermit, SendRate, Timestamp};

/// A place in the line of a [`SendRate`], for those who do the waiting themselves.
///
/// From [`Ask::reserve`](crate::Ask::reserve). Dropped before it is claimed it is given up: its tokens go back and those
/// behind move up.
#[must_use = "a place that is dropped is given up"]
pub struct PlaceInLine<R: Deref<Target = SendRate>, C: Clock> {
    held: Held<R>,
    clock: C,
    deadline: Option<Timestamp>,
}

/// How often a waiter looks whom nobody can wake: the rate may have risen meanwhile.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// What a waiter finds whose turn has not come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest {
    now: Timestamp,
    /// The time until the turn, at today's rate.
    wait: Duration,
    /// The time to rest before the next look.
    span: Duration,
}

impl Rest {
    pub(crate) const fn wait(&self) -> Duration {
        self.wait
    }

    /// Refuses if the turn comes after `deadline`.
    pub(super) fn check(&self, deadline: Option<Timestamp>) -> Result<(), AcquireError> {
        let Self { now, wait, .. } = *self;
        match deadline {
            Some(deadline) if wait > deadline.saturating_since(now) => {
                Err(AcquireError::NotInTime { wait })
            }
            _ => Ok(()),
        }
    }

    pub(super) const fn span(&self) -> Duration {
        self.span
    }

    pub(super) const fn until(&self) -> Timestamp {
        self.now.saturating_add(self.span)
    }
}

/// How far back a claim must have moved while a waiter took its stand for it to look once more.
const MOVED: Duration = Duration::from_millis(10);

impl<R: Deref<Target = SendRate>, C: Clock> PlaceInLine<R, C> {
    /// Takes a place for `weight` tokens if its turn comes by `deadline`.
    pub(super) fn take(
        rate: R,
        clock: C,
        weight: u32,
        now: Timestamp,
        deadline: Option<Timestamp>,
    ) -> Result<Self, AcquireError> {
        let patience = deadline.map(|deadline| deadline.saturating_since(now));
        let held = Held::take(rate, now, weight, patience)?;
        Ok(Self {
            held,
            clock,
            deadline,
        })
    }

    pub(crate) const fn of(held: Held<R>, clock: C) -> Self {
        Self {
            held,
            clock,
            deadline: None,
        }
    }

    /// Takes the tokens if the turn has come. Once it has, returns the same permit ever after.
    ///
    /// # Errors
    ///
    /// Returns the time left, never zero, as today's rate has it. It shrinks when the rate rises or somebody ahead gives
    /// up, and grows when the rate falls: look again after a part of a long wait.
    pub fn claim(&mut self) -> Result<SendPermit, Duration> {
        self.held.claim_with(|| self.clock.now())
    }

    /// Takes the tokens if the turn has come; if not, returns for how long to rest, unless `waker` is woken before.
    pub(crate) fn look(&mut self, waker: &Waker) -> Result<SendPermit, Rest> {
        let mut asked = None;
        let claimed = self.held.claim_with(|| *asked.insert(self.clock.now()));
        let mut wait = match claimed {
            Ok(permit) => return Ok(permit),
            Err(wait) => wait,
        };
        let now = asked.unwrap_or(Timestamp::ZERO); // nobody is told to wait without a look at the clock
        loop {
            let Some(span) = self.held.stand(now, wait, waker) else {
                let span = wait.min(LOOK_AGAIN);
                return Err(Rest { now, wait, span });
            };
            // Whoever has raised the rate since the first look may not have seen who stands here: it is seen now.
            match self.held.claim_with(|| now) {
                Ok(permit) => return Ok(permit),
                Err(again) if again.saturating_add(MOVED) < wait => wait = again,
                Err(_) => return Err(Rest { now, wait, span }),
            }
        }
    }

    pub(super) const fn deadline(&self) -> Option<Timestamp> {
        self.deadline
    }
}

impl<R: Deref<Target = SendRate>, C: Clock> Drop for PlaceInLine<R, C> {
    fn drop(&mut self) {
        if self.held.give_up() {
            self.held.rate().nudge(self.clock.now());
        }
    }
}

impl<R: Deref<Target = SendRate> + fmt::Debug, C: Clock> fmt::Debug for PlaceInLine<R, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlaceInLine")
            .field("held", &self.held)
            .field("clock", &self.clock)
            .field("deadline", &self.deadline)
            .finish()
    }
}
