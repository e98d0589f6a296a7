//! Requests that take several tokens at once, and those that will not wait for longer than they say.

use core::{error::Error, fmt, time::Duration};

use super::limit::Limited;
use super::permit::SendPermit;
use super::reservation::{Reservation, Turn};
use super::send_rate::SendRate;
use crate::Timestamp;
use crate::line::{TOKEN, capacity};

/// A weight that no request can have.
///
/// Returned at once: such a request takes no token and no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WeightError {
    /// The request would take no token.
    Zero,
    /// The bucket never holds as much at today's rate: the request would wait for ever, or hold up all others.
    AboveCapacity {
        /// The tokens asked for.
        weight: u32,
        /// The most that the bucket holds at today's rate, rounded down, at least 1.
        capacity: u32,
    },
}

impl fmt::Display for WeightError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero => f.write_str("the request asks for no token"),
            Self::AboveCapacity { weight, capacity } => write!(
                f,
                "the request asks for {weight} tokens, and the bucket holds {capacity} at most"
            ),
        }
    }
}

impl Error for WeightError {}

/// Why a request got no token. It took none, and has no place in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AcquireError {
    /// The tokens cannot come in time.
    NotInTime {
        /// How long it would have been, at today's rate. Never zero.
        wait: Duration,
    },
    /// There is no such request.
    Weight(WeightError),
}

impl AcquireError {
    /// Returns how long it would have been until the tokens came, `None` if they never could.
    #[must_use]
    pub const fn wait(&self) -> Option<Duration> {
        match self {
            Self::NotInTime { wait } => Some(*wait),
            Self::Weight(_) => None,
        }
    }
}

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInTime { wait } => {
                write!(f, "not in time: the send rate asks for a wait of {wait:?}")
            }
            Self::Weight(error) => error.fmt(f),
        }
    }
}

impl Error for AcquireError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NotInTime { .. } => None,
            Self::Weight(error) => Some(error),
        }
    }
}

impl From<WeightError> for AcquireError {
    fn from(error: WeightError) -> Self {
        Self::Weight(error)
    }
}

impl SendRate {
    /// Takes `weight` tokens at once, or takes nothing and says how long it will be until there are as many.
    ///
    /// The rate is then one of tokens: a permit counts in [`record`](Self::record) for as many as it took.
    ///
    /// # Errors
    ///
    /// [`AcquireError::NotInTime`] if there are fewer. [`WeightError::Zero`], and
    /// [`WeightError::AboveCapacity`] if the bucket does not hold as many at today's rate: at a higher one it may. A
    /// limiter that limits nothing lets any other weight go.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use paceline::{AcquireError, PacedSettings, SendRate, Timestamp, WeightError};
    ///
    /// // 5 tokens/s, of which the bucket holds a second's worth.
    /// let second = Duration::from_secs(1);
    /// let settings = PacedSettings::fixed(5, second)?.burst(second)?;
    /// let (rate, now) = (SendRate::paced(settings, Timestamp::ZERO), Timestamp::ZERO);
    /// assert_eq!(rate.try_acquire_n(now, 4).unwrap().weight(), 4);
    /// let wait = Duration::from_millis(400);
    /// assert_eq!(rate.try_acquire_n(now, 3), Err(AcquireError::NotInTime { wait }));
    /// let never = WeightError::AboveCapacity { weight: 6, capacity: 5 };
    /// assert_eq!(rate.try_acquire_n(now, 6), Err(never.into()));
    /// # Ok::<(), paceline::PacedSettingsError>(())
    /// ```
    pub fn try_acquire_n(&self, now: Timestamp, weight: u32) -> Result<SendPermit, AcquireError> {
        self.queue_up(now, weight, Some(Duration::ZERO))?;
        Ok(SendPermit::of_weight(now, weight))
    }

    /// Takes a place in line for `weight` tokens at once.
    ///
    /// It holds up those behind it for as long as that many tokens take, and gives them all back if it is dropped.
    /// The weight is checked now: a place stays good if the capacity falls below it afterwards. While the limiter
    /// limits nothing, the place is taken when it is claimed, and its weight is not checked any more.
    ///
    /// # Errors
    ///
    /// As [`try_acquire_n`](Self::try_acquire_n), but for the wait.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use paceline::{PacedSettings, SendRate, Timestamp};
    ///
    /// let second = Duration::from_secs(1);
    /// let settings = PacedSettings::fixed(5, second)?.burst(second)?;
    /// let (rate, now) = (SendRate::paced(settings, Timestamp::ZERO), Timestamp::ZERO);
    /// let mut first = rate.reserve_n(now, 5).unwrap();
    /// assert!(first.claim(now).is_ok(), "the bucket was full");
    /// let second = rate.reserve_n(now, 4).unwrap();
    /// let mut third = rate.reserve_n(now, 2).unwrap();
    /// assert_eq!(third.claim(now), Err(Duration::from_millis(1_200)));
    /// drop(second);
    /// assert_eq!(third.claim(now), Err(Duration::from_millis(400)));
    /// # Ok::<(), paceline::PacedSettingsError>(())
    /// ```
    pub fn reserve_n(&self, now: Timestamp, weight: u32) -> Result<Reservation<'_>, WeightError> {
        let turn = match self.queue_up(now, weight, None) {
            Ok(turn) => turn,
            Err(AcquireError::Weight(error)) => return Err(error),
            // Not without a deadline.
            Err(AcquireError::NotInTime { .. }) => Turn::Unlimited,
        };
        Ok(Reservation::new(self, turn, weight))
    }

    /// Takes a place in line for `weight` tokens, if its turn comes within `patience`.
    ///
    /// None if the limiter limits nothing. A refusal writes nothing: those who are refused over and over leave
    /// no places given up behind, of which the limiter remembers only so many.
    pub(super) fn queue_up(
        &self,
        now: Timestamp,
        weight: u32,
        patience: Option<Duration>,
    ) -> Result<Turn, AcquireError> {
        if weight == 0 {
            return Err(WeightError::Zero.into());
        }
        match self.engaged() {
            None => Ok(Turn::Unlimited),
            Some(limited) => {
                let elapsed = limited.elapsed(now);
                if !limited.law.is_published() && (weight > 1 || patience.is_some()) {
                    // It may have moved the rate, and the capacity with it, since it was last looked at.
                    limited.follow_curve(elapsed);
                }
                limited.weigh(elapsed, weight)?;
                limited.queue_up(now, weight, patience)
            }
        }
    }

    /// Takes a place in line for `weight` tokens, as many as they may be, or none if the limiter limits nothing.
    pub(super) fn queue_up_anyhow(&self, now: Timestamp, weight: u32) -> Turn {
        let turn = self
            .engaged()
            .map(|limited| limited.queue_up(now, weight, None));
        turn.and_then(Result::ok).unwrap_or(Turn::Unlimited)
    }
}

impl Limited<'_> {
    fn queue_up(
        &self,
        now: Timestamp,
        weight: u32,
        patience: Option<Duration>,
    ) -> Result<Turn, AcquireError> {
        let elapsed = self.elapsed(now);
        let Some(line) = self.line(elapsed) else {
            return Ok(Turn::Unlimited);
        };
        let cancelled = self.cancellations.total();
        let units = u64::from(weight).wrapping_mul(TOKEN);
        let place = self.issue(|issued| {
            let next = line.settled(elapsed, issued, cancelled).plus(units);
            let Some(patience) = patience else {
                return Ok(next);
            };
            let wait = self.wait_of(&line, elapsed, next.less_tokens(cancelled));
            match wait.map(|nanos| self.wait(now, nanos)) {
                Some(wait) if wait > patience => Err(AcquireError::NotInTime { wait }),
                _ => Ok(next),
            }
        })?;
        self.retire(&line, elapsed);
        Ok(Turn::Placed(place))
    }

    /// Refuses a weight that the bucket never holds at today's rate, or at the one after the pause.
    fn weigh(&self, elapsed: u64, weight: u32) -> Result<(), WeightError> {
        if weight == 1 {
            return Ok(()); // at any rate
        }
        let Some(line) = self.line(elapsed) else {
            return Ok(());
        };
        let held = if line.is_paused() {
            capacity(self.law.resumed(self.throttle.load()), line.burst)
        } else {
            line.capacity()
        };
        let capacity = u32::try_from(held >> TOKEN.trailing_zeros()).unwrap_or(u32::MAX);
        if weight > capacity {
            return Err(WeightError::AboveCapacity { weight, capacity });
        }
        Ok(())
    }
}
