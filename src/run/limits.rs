//! What an operation is held to besides its strategy: once or more often, and by when.

use core::time::Duration;

use super::Stopped;
use crate::{Clock, Idempotency, MonotonicClock, Timestamp};

/// The limits that the caller sets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limits<'a> {
    pub(super) idempotency: Idempotency,
    /// From the beginning of the operation to its end.
    pub(super) total: Option<Duration>,
    /// Of one attempt.
    pub(super) attempt: Option<Duration>,
    /// The clock for the total, if it is the caller's.
    pub(super) clock: Option<&'a dyn Clock>,
}

/// The total of an operation under way, or that it has none.
pub(super) struct Deadline<'a>(Option<Running<'a>>);

struct Running<'a> {
    total: Duration,
    begun: Timestamp,
    clock: Source<'a>,
}

enum Source<'a> {
    Callers(&'a dyn Clock),
    Systems(MonotonicClock),
}

impl<'a> Limits<'a> {
    /// Starts the time, if there is a limit to it: else no clock is read.
    pub(super) fn start(&self) -> Deadline<'a> {
        Deadline(self.total.map(|total| {
            let clock = self
                .clock
                .map_or_else(|| Source::Systems(MonotonicClock::new()), Source::Callers);
            let begun = clock.now();
            Running {
                total,
                begun,
                clock,
            }
        }))
    }
}

impl Deadline<'_> {
    /// Returns the time that is left, or `None` without a limit.
    pub(super) fn left(&self) -> Option<Duration> {
        let running = self.0.as_ref()?;
        let now = running.clock.now().as_nanos();
        let gone = now.saturating_sub(running.begun.as_nanos());
        Some(running.total.saturating_sub(Duration::from_nanos(gone)))
    }

    /// Tells whether anything would be left after `wait`.
    ///
    /// # Errors
    ///
    /// Returns what stops the operation if not.
    pub(super) fn allows(&self, wait: Duration) -> Result<(), Stopped> {
        match self.left() {
            Some(left) if wait >= left => Err(Stopped::OutOfTime { wait, left }),
            _ => Ok(()),
        }
    }
}

impl Source<'_> {
    fn now(&self) -> Timestamp {
        match self {
            Self::Callers(clock) => clock.now(),
            Self::Systems(clock) => clock.now(),
        }
    }
}
