//! The step between a token's delay and every send.

use core::{error::Error, fmt, time::Duration};

use crate::atomic::counts::{Counts, Event};
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
    InLine {
        place: Place<'a>,
        /// Where to count that it has to wait.
        waits: Option<&'a Counts>,
    },
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
        Self(Turn::InLine {
            place: PlaceInLine::of(place.into_held(), clock),
            waits: None,
        })
    }

    /// Counts it in `counts` if the turn has not come when it is first looked at.
    pub(super) const fn counted(mut self, counts: &'a Counts) -> Self {
        if let Turn::InLine { waits, .. } = &mut self.0 {
            *waits = Some(counts);
        }
        self
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
            Turn::InLine { place, waits } => claim_place(place, waits),
        }
    }

    /// Returns the place in line, or the permit if there is no waiting.
    pub(crate) fn place(&mut self) -> Result<&mut Place<'a>, SendPermit> {
        match &mut self.0 {
            Turn::Granted(permit) => Err(*permit),
            Turn::InLine { place, waits } => {
                // Those who wait by the place do not come by here again: this is the first look.
                if waits.is_some() {
                    if let Ok(permit) = claim_place(place, waits) {
                        return Err(permit);
                    }
                }
                Ok(place)
            }
        }
    }
}

// Out of the way of a turn that has come.
#[inline(never)]
fn claim_place(place: &mut Place<'_>, waits: &mut Option<&Counts>) -> Result<SendPermit, Duration> {
    let claimed = place.claim();
    if let (Err(_), Some(counts)) = (&claimed, waits.take()) {
        counts.one(Event::Delayed);
    }
    claimed
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
