//! The step between a token's delay and every send.

use core::{error::Error, fmt, time::Duration};

use crate::{Clock, PlaceInLine, Reservation, SendPermit, SendRate, Timestamp};

/// A turn to send.
///
/// In standard mode it has come already; in adaptive mode it is a place in the line of the send
/// rate. Dropped before it is claimed, it gives the place back and those behind move up.
///
/// # Examples
///
/// ```
/// use paceline::{Adaptive, RetryStrategy};
///
/// let strategy = Adaptive::new();
/// let mut turn = strategy.send_turn()?;
/// while let Err(wait) = turn.claim() {
///     std::thread::sleep(wait);
/// }
/// # Ok::<(), paceline::SendRefused>(())
/// ```
#[derive(Debug)]
#[must_use = "a turn that is dropped is given up"]
pub struct SendTurn<'a>(Turn<'a>);

type Place<'a> = PlaceInLine<&'a SendRate, &'a dyn Clock>;

#[derive(Debug)]
enum Turn<'a> {
    Granted(SendPermit),
    InLine(Place<'a>),
}

impl<'a> SendTurn<'a> {
    /// Creates a turn that has come, for strategies that hold nobody back.
    ///
    /// Its permit carries [`Timestamp::ZERO`], as nobody records it and the time was never asked for.
    pub const fn immediate() -> Self {
        Self::granted(SendPermit::sent_at(Timestamp::ZERO))
    }

    /// Creates a turn that has come, with its permit.
    ///
    /// A token that a send rate gave for the permit is spent, even if the turn is dropped.
    pub const fn granted(permit: SendPermit) -> Self {
        Self(Turn::Granted(permit))
    }

    /// Creates a turn that comes when `place` does, by `clock`.
    pub fn reserved(place: Reservation<'a>, clock: &'a dyn Clock) -> Self {
        Self(Turn::InLine(PlaceInLine::of(place.into_held(), clock)))
    }

    /// Returns the permit to send if the turn has come.
    ///
    /// After success it returns the same permit again.
    ///
    /// # Errors
    ///
    /// Returns the time left, never zero, as today's rate has it. The rate may rise in the meantime,
    /// so look again after a part of a long wait.
    #[inline]
    pub fn claim(&mut self) -> Result<SendPermit, Duration> {
        match &mut self.0 {
            Turn::Granted(permit) => Ok(*permit),
            Turn::InLine(place) => claim_place(place),
        }
    }

    /// Returns the place in line, or the permit if there is no waiting.
    pub(crate) const fn place(&mut self) -> Result<&mut Place<'a>, SendPermit> {
        match &mut self.0 {
            Turn::Granted(permit) => Err(*permit),
            Turn::InLine(place) => Ok(place),
        }
    }
}

// Out of the way of a turn that has come.
#[inline(never)]
fn claim_place(place: &mut Place<'_>) -> Result<SendPermit, Duration> {
    place.claim()
}

/// A send was refused rather than made to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendRefused {
    /// The time until a send would have been let go, at today's rate. Never zero.
    pub wait: Duration,
}

impl fmt::Display for SendRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the send rate asks for a wait of {:?}", self.wait)
    }
}

impl Error for SendRefused {}
