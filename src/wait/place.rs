//! A place in line, with the clock by which its turn comes.

use core::{fmt, task::Waker, time::Duration};

use super::Limit;
use crate::seam::InLine;
use crate::{AcquireError, Clock, Timestamp};

/// A place in line, with the clock by which its turn comes. If it is dropped, the place is given
/// up.
pub(crate) struct Waiting<H: InLine, C: Clock> {
    held: H,
    clock: C,
    deadline: Option<Timestamp>,
}

/// A place in the line of a [`SendRate`](crate::SendRate), of each rate of a
/// [`SendSet`](crate::SendSet), or of each member of a [`SendPool`](crate::SendPool), for callers
/// that do the waiting themselves.
///
/// The place has a clock, so that a drop wakes the waiters behind it at once. A
/// [`Reservation`](crate::Reservation) is the same place without a clock, for code that gets the
/// time as an argument.
///
/// It comes from [`AcquireRequest::reserve`](crate::wait::AcquireRequest::reserve). A place that is
/// dropped before it is claimed is given up. Its tokens go back, and the requests behind move up.
#[must_use = "a place that is dropped is given up"]
pub struct PlaceInLine<L: Limit, C: Clock>(pub(super) Waiting<L::Held, C>);

/// How often a waiter looks if no thread can wake it, because the rate may have risen.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// How long to rest before the next look, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
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
    pub(crate) fn check(&self, deadline: Option<Timestamp>) -> Result<(), AcquireError> {
        let Self { now, wait, .. } = *self;
        match deadline {
            Some(deadline) if wait > deadline.saturating_since(now) => {
                Err(AcquireError::NotInTime { wait })
            }
            _ => Ok(()),
        }
    }

    /// Returns how long to rest from now.
    #[must_use]
    pub const fn span(&self) -> Duration {
        self.span
    }

    /// Describes a rest that ends at `until`, where the whole wait ends too.
    pub(crate) const fn between(now: Timestamp, until: Timestamp) -> Self {
        let span = until.saturating_since(now);
        Self {
            now,
            wait: span,
            span,
        }
    }

    /// Returns when the rest is over.
    #[must_use]
    pub const fn until(&self) -> Timestamp {
        self.now.saturating_add(self.span)
    }
}

/// A waiter looks once more if its turn came sooner by more than this while it took its stand.
const MOVED: Duration = Duration::from_millis(10);

impl<L: Limit, C: Clock> PlaceInLine<L, C> {
    /// Takes the tokens if the turn has come. Every later call returns the same permit.
    ///
    /// # Errors
    ///
    /// Returns the time left at today's rate, never zero. The time shrinks when the rate rises or a
    /// place ahead is given up, and grows when the rate falls. So look again after a part of a long
    /// wait.
    pub fn claim(&mut self) -> Result<L::Permit, Duration> {
        self.0.claim()
    }

    /// Returns the limit that the place waits for longest, by the last look; 0 if there is one
    /// limit. For a pool, returns the member whose turn comes first.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.0.limit()
    }

    pub(super) fn refused(&self, why: AcquireError) -> L::Error {
        let held = &self.0.held;
        L::refused(held.limit(), held.limit_of_member(), why)
    }
}

impl<H: InLine, C: Clock> Waiting<H, C> {
    pub(crate) const fn new(held: H, clock: C, deadline: Option<Timestamp>) -> Self {
        Self {
            held,
            clock,
            deadline,
        }
    }

    pub(crate) fn limit(&self) -> usize {
        self.held.limit()
    }

    pub(crate) const fn held(&self) -> &H {
        &self.held
    }

    pub(crate) fn claim(&mut self) -> Result<H::Permit, Duration> {
        self.held.claim_with(|| self.clock.now())
    }

    /// Takes the tokens if the turn has come; if not, returns for how long to rest, unless `waker`
    /// is woken before.
    pub(crate) fn look(&mut self, waker: &Waker) -> Result<H::Permit, Rest> {
        look(&mut self.held, &self.clock, self.deadline, Some(waker))
    }

    /// Like [`look`](Self::look), at the time of `clock`. Without a waker nothing can end the rest
    /// early, so the rest is short.
    pub(crate) fn look_by(
        &mut self,
        clock: &dyn Clock,
        waker: Option<&Waker>,
    ) -> Result<H::Permit, Rest> {
        look(&mut self.held, clock, self.deadline, waker)
    }

    pub(crate) const fn deadline(&self) -> Option<Timestamp> {
        self.deadline
    }
}

fn look<H: InLine>(
    held: &mut H,
    clock: &dyn Clock,
    deadline: Option<Timestamp>,
    waker: Option<&Waker>,
) -> Result<H::Permit, Rest> {
    let mut asked = None;
    let claimed = held.claim_with(|| *asked.insert(clock.now()));
    let mut wait = match claimed {
        Ok(permit) => return Ok(permit),
        Err(wait) => wait,
    };
    // A claim that has to wait has looked at the clock.
    let now = asked.unwrap_or(Timestamp::ZERO);
    loop {
        let Some(span) = waker.and_then(|waker| held.stand(now, wait, waker)) else {
            let span = wait.min(LOOK_AGAIN);
            return Err(Rest { now, wait, span });
        };
        // A thread that raised the rate since the first look may not have seen this waiter.
        match held.claim_with(|| now) {
            Ok(permit) => return Ok(permit),
            Err(again) if again.saturating_add(MOVED) < wait => wait = again,
            Err(_) => {
                // A rest behind the line may be longer than the estimate, but it ends at the
                // deadline.
                let left = deadline.map_or(span, |deadline| deadline.saturating_since(now));
                let span = span.min(left);
                return Err(Rest { now, wait, span });
            }
        }
    }
}

impl<H: InLine, C: Clock> Drop for Waiting<H, C> {
    fn drop(&mut self) {
        self.held.leave(|| self.clock.now());
    }
}

impl<L: Limit, C: Clock> fmt::Debug for PlaceInLine<L, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlaceInLine")
            .field("clock", &self.0.clock)
            .field("deadline", &self.0.deadline)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A place in line, with the milliseconds left at each look in turn.
    struct Moving(&'static [u64], u32);

    impl InLine for Moving {
        type Permit = ();

        fn claim_with(&mut self, now: impl FnOnce() -> Timestamp) -> Result<(), Duration> {
            let _ = now();
            let Some((first, rest)) = self.0.split_first() else {
                return Ok(());
            };
            self.0 = rest;
            Err(Duration::from_millis(*first))
        }

        fn stand(&mut self, _: Timestamp, wait: Duration, _: &Waker) -> Option<Duration> {
            self.1 = self.1.saturating_add(1);
            Some(wait)
        }

        fn leave(&mut self, _: impl FnOnce() -> Timestamp) {}
    }

    /// The rate may rise while a waiter takes its stand, and nothing wakes it for that.
    #[test]
    fn a_turn_that_has_moved_far_sets_another_timer() {
        let looked = |waits| {
            let mut held = Moving(waits, 0);
            let rest = look(&mut held, &Timestamp::ZERO, None, Some(Waker::noop()));
            let span = rest.map_err(|rest| rest.span().as_millis());
            (span, held.1)
        };
        assert_eq!(looked(&[100, 90, 90]), (Err(100), 1), "not far");
        assert_eq!(looked(&[100, 89, 80]), (Err(89), 2));
        assert_eq!(looked(&[100, 89, 70, 70]), (Err(70), 3));
        assert_eq!(looked(&[100]), (Ok(()), 1), "it has come");
    }
}
