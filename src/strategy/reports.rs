//! What comes with the outcome of an attempt.

use core::time::Duration;

use crate::Clock;
use crate::law::LimitReports;
use crate::set::Weights;

/// The reports that go to a strategy with an outcome: the time of the response, its declared
/// limits, and the true cost of the request.
///
/// The limits ([`LimitReports`]) pace a strategy whose law is
/// [`ControlLaw::Declared`](crate::ControlLaw::Declared); each of them is a
/// [`LimitReport`](crate::law::LimitReport).
///
/// # Examples
///
/// ```
/// use paceline::{Failure, RetryStrategy, Standard, Timestamp, strategy::Reports};
///
/// let strategy = Standard::new();
/// let token = strategy.acquire_initial_token(None).unwrap();
/// let now = Timestamp::from_nanos(7);
/// let token = strategy.refresh_retry_token(token, &Failure::transient(), Reports::at(&now)).unwrap();
/// strategy.record_success(token, Reports::new()).unwrap(); // at the time of its clock
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "reports are for a strategy"]
pub struct Reports<'a> {
    pub(crate) clock: Option<&'a dyn Clock>,
    pub(crate) limits: Option<&'a LimitReports>,
    pub(crate) costs: Option<&'a Weights>,
    pub(crate) pause: Option<Duration>,
}

impl<'a> Reports<'a> {
    /// Creates the reports of a response that came now. The strategy's clock gives the time.
    pub const fn new() -> Self {
        Self {
            clock: None,
            limits: None,
            costs: None,
            pause: None,
        }
    }

    /// Creates the reports of a response that came at `clock`. This is a
    /// [`Timestamp`](crate::Timestamp) of the strategy's clock, or the clock, which is read only if
    /// the time matters.
    pub const fn at(clock: &'a dyn Clock) -> Self {
        Self {
            clock: Some(clock),
            ..Self::new()
        }
    }

    /// Adds what the service declared about its limits.
    pub const fn declaring(mut self, limits: &'a LimitReports) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Adds the true cost of the request, in tokens of each send rate. A strategy with send rates
    /// settles the attempt with this cost ([`SendRate::settle`](crate::SendRate::settle)). Costs
    /// are ignored if there is not one for each rate.
    pub const fn costing(mut self, costs: &'a Weights) -> Self {
        self.costs = Some(costs);
        self
    }

    /// Adds the pause that the service asked for although it did its work, as by `Retry-After`
    /// beside a success. The send rate pauses, and is not cut ([`Outcome::PauseAfter`]).
    ///
    /// [`Outcome::PauseAfter`]: crate::Outcome::PauseAfter
    pub const fn pausing(mut self, span: Duration) -> Self {
        self.pause = Some(span);
        self
    }

    /// Returns the pause that the service asked for although it did its work, if any.
    #[must_use]
    pub const fn pause(&self) -> Option<Duration> {
        self.pause
    }

    /// Returns `true` if there are no limits, no costs and no pause.
    #[inline]
    pub(super) const fn says_nothing(&self) -> bool {
        self.limits.is_none() && self.costs.is_none() && self.pause.is_none()
    }

    /// Returns the true cost of the request, in tokens of each send rate, if it is known.
    #[must_use]
    pub const fn costs(&self) -> Option<&'a Weights> {
        self.costs
    }

    /// Returns what the service declared about its limits, if anything.
    #[must_use]
    pub const fn limits(&self) -> Option<&'a LimitReports> {
        self.limits
    }

    /// Returns the clock of the reports, or `own` if the response came now.
    #[must_use]
    pub fn clock<'c>(&self, own: &'c dyn Clock) -> &'c dyn Clock
    where
        'a: 'c,
    {
        self.clock.unwrap_or(own)
    }
}
