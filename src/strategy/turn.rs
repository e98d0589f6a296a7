//! The step between a token's delay and every send.

use alloc::boxed::Box;
use core::{convert::Infallible, error::Error, fmt, future::poll_fn, time::Duration};

use crate::atomic::counts::{Counts, Event};
use crate::wait::{Alarm, LOOK_AGAIN, Rest};
use crate::{Clock, PlaceInLine, Reservation, SendPermit, SendRate, Sleep, Timestamp};

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

/// What stands between a turn and its send besides the strategy's own line: an allowance kept elsewhere, for one.
///
/// # Examples
///
/// A gate that opens at the third try:
///
/// ```
/// use std::sync::Mutex;
/// use core::time::Duration;
/// use paceline::{SendGate, SendPermit, SendTurn, Timestamp};
///
/// #[derive(Debug, Default)]
/// struct Third(Mutex<u32>);
///
/// impl SendGate for Third {
///     fn try_send(&self) -> Result<SendPermit, Duration> {
///         let mut tries = self.0.lock().unwrap();
///         *tries += 1;
///         if *tries < 3 {
///             return Err(Duration::from_millis(1));
///         }
///         Ok(SendPermit::sent_at(Timestamp::from_nanos(7)))
///     }
/// }
///
/// let gate = Third::default();
/// let mut turn = SendTurn::immediate().gated(&gate);
/// assert_eq!(turn.claim(), Err(Duration::from_millis(1)));
/// assert_eq!(turn.claim(), Err(Duration::from_millis(1)));
/// assert_eq!(turn.claim().map(SendPermit::time), Ok(Timestamp::from_nanos(7)));
/// assert_eq!(turn.claim().map(SendPermit::time), Ok(Timestamp::from_nanos(7)));
/// ```
pub trait SendGate: fmt::Debug + Send + Sync {
    /// Lets a send go, once for each success.
    ///
    /// # Errors
    ///
    /// Returns after which time to ask again, never zero.
    fn try_send(&self) -> Result<SendPermit, Duration>;
}

type Place<'a> = PlaceInLine<&'a SendRate, &'a dyn Clock>;

#[derive(Debug)]
enum Turn<'a> {
    Granted(SendPermit),
    /// Boxed: a turn that has come, as nearly all have, is not worth the moving of a place.
    InLine(Box<InLine<'a>>),
    Gated {
        line: Option<Box<InLine<'a>>>,
        gate: &'a dyn SendGate,
    },
}

#[derive(Debug)]
struct InLine<'a> {
    place: Place<'a>,
    /// Where to count that it has to wait.
    waits: Option<&'a Counts>,
}

impl<'a> InLine<'a> {
    // Out of the way of a turn that has come.
    #[inline(never)]
    fn claim(&mut self) -> Result<SendPermit, Duration> {
        let claimed = self.place.claim();
        if let (Err(_), Some(counts)) = (&claimed, self.waits.take()) {
            counts.one(Event::Delayed);
        }
        claimed
    }

    /// Returns the permit if the turn has come when it is first looked at, or else the place to wait for.
    ///
    /// Those who wait by the place do not look here again.
    fn first_look(&mut self) -> Result<&mut Place<'a>, SendPermit> {
        if self.waits.is_some() {
            if let Ok(permit) = self.claim() {
                return Err(permit);
            }
        }
        Ok(&mut self.place)
    }
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
        Self(Turn::InLine(Box::new(InLine {
            place: PlaceInLine::of(place.into_held(), clock),
            waits: None,
        })))
    }

    /// Counts it in `counts` if the turn has not come when it is first looked at.
    pub(super) const fn counted(mut self, counts: &'a Counts) -> Self {
        if let Turn::InLine(line) = &mut self.0 {
            line.waits = Some(counts);
        }
        self
    }

    /// Returns a turn that comes once this one has, and `gate` lets it go then: with the permit of the gate, in place of
    /// another gate if it had one. Given up between the two, its own token is spent.
    pub fn gated(self, gate: &'a dyn SendGate) -> Self {
        let line = match self.0 {
            Turn::Granted(_) => None,
            Turn::InLine(line) => Some(line),
            Turn::Gated { line, .. } => line,
        };
        Self(Turn::Gated { line, gate })
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
            Turn::InLine(line) => line.claim(),
            Turn::Gated { line, gate } => {
                let permit = claim_gate(line, *gate)?;
                self.0 = Turn::Granted(permit);
                Ok(permit)
            }
        }
    }

    /// Waits in a task until the turn has come, on whatever run time `sleep` belongs to.
    ///
    /// As [`acquire`](crate::Ask::acquire) does: woken when the turn comes sooner, with the feature `wake`. The future may be
    /// dropped and made again; dropping the turn gives its place back.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "tokio")] {
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), paceline::SendRefused> {
    /// use paceline::{Adaptive, DefaultSleep, Outcome, RetryStrategy};
    ///
    /// let strategy = Adaptive::new();
    /// let permit = strategy.send_turn()?.wait_on(&DefaultSleep::new()).await;
    /// // ... send
    /// # let _ = permit;
    /// # Ok(())
    /// # }
    /// # main().unwrap() }
    /// ```
    pub async fn wait_on(&mut self, sleep: &impl Sleep) -> SendPermit {
        let go_on = |_| Ok::<_, Infallible>(());
        let Ok(permit) = self.wait_while(go_on, &mut Alarm::new(), sleep).await;
        permit
    }

    /// Waits until the turn has come, or `check` refuses: it is asked before each sleep with its length, and with zero
    /// after it.
    pub(crate) async fn wait_while<Z: Sleep, E>(
        &mut self,
        check: impl Fn(Duration) -> Result<(), E>,
        alarm: &mut Alarm<Z::Timer>,
        sleep: &Z,
    ) -> Result<SendPermit, E> {
        let allows = |rest: Option<&Rest>| check(rest.map_or(Duration::ZERO, Rest::wait));
        match self.place() {
            Err(permit) => return Ok(permit),
            Ok(Some(place)) => {
                let _own = poll_fn(|cx| alarm.poll_place(place, sleep, allows, cx)).await?;
            }
            Ok(None) => {}
        }
        loop {
            match self.claim() {
                Ok(permit) => return Ok(permit),
                Err(wait) => {
                    check(wait)?;
                    alarm.sleep(sleep, wait.min(LOOK_AGAIN)).await;
                    check(Duration::ZERO)?;
                }
            }
        }
    }

    /// Returns the permit if there is no waiting, or else the place in line to wait for before the next claim, if there
    /// is one.
    pub(crate) fn place(&mut self) -> Result<Option<&mut Place<'a>>, SendPermit> {
        match &mut self.0 {
            Turn::Granted(permit) => Err(*permit),
            Turn::InLine(line) => line.first_look().map(Some),
            // Its own line lets go what the gate may still hold back.
            Turn::Gated { line, .. } => Ok(line.as_mut().and_then(|line| line.first_look().ok())),
        }
    }
}

#[inline(never)]
fn claim_gate(
    line: &mut Option<Box<InLine<'_>>>,
    gate: &dyn SendGate,
) -> Result<SendPermit, Duration> {
    if let Some(line) = line {
        let _own = line.claim()?;
    }
    gate.try_send()
}

/// A send was refused rather than made to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
