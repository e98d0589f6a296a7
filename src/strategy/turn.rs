//! The step between a token's delay and every send.

use alloc::{boxed::Box, sync::Arc};
use core::{error::Error, fmt, mem, task::Waker, time::Duration};

use super::{refusal::RefusalReason, token::RetryToken};
use crate::set::{MOST_RATES, SendSet, SetError, SetHeld, SetPermit, Weights};
use crate::wait::{LOOK_AGAIN, Rest, Waiting};
use crate::{
    AcquireError, Class, Clock, SendPermit, SendRate, Timestamp, WeightError, law::LimitReports,
    wait::PlaceInLine,
};

/// A place in line that owns what it needs.
type Place = PlaceInLine<Arc<SendRate>, Arc<dyn Clock>>;

/// A place in each of several lines.
type Places = Waiting<SetHeld<Arc<SendRate>, MOST_RATES>, Arc<dyn Clock>>;

/// What an attempt holds on its way to being sent.
enum Holds {
    Nothing,
    InLine(Place),
    /// Its places in line, with several send rates.
    InLines(Box<Places>),
    /// What it was granted by several send rates.
    Granted(Box<SetPermit<MOST_RATES>>),
    /// What it was granted behind a gate.
    Passed(SendPermit),
}

/// How far an attempt has come on its way to being sent: a value that
/// [`RetryStrategy::admit`](crate::RetryStrategy::admit) is handed again and again until it lets
/// the attempt go.
///
/// An attempt that goes at once leaves it empty. One that has to wait keeps its place in line here.
/// Dropped, it gives that place back, and those behind it move up. It borrows nothing, and
/// allocates only for a strategy with several send rates.
///
/// # Examples
///
/// ```
/// use paceline::{Adaptive, RetryStrategy, strategy::{NotAdmitted, SendRequest, SendTurn}};
///
/// let strategy = Adaptive::new();
/// let mut turn = SendTurn::new();
/// let permit = loop {
///     match strategy.admit(&mut turn, SendRequest::new()) {
///         Ok(permit) => break permit,
///         Err(NotAdmitted::Wait { look_in, .. }) => std::thread::sleep(look_in),
///         Err(refused) => return Err(refused),
///     }
/// };
/// # let _ = permit;
/// # Ok::<(), NotAdmitted>(())
/// ```
#[must_use = "a turn that is dropped gives its place in line back"]
pub struct SendTurn {
    holds: Holds,
    /// How many strategies around this one ask at the moment.
    depth: u8,
    /// The outermost depth at which everything inside has let the attempt go.
    passed: u8,
}

/// No strategy inside another has let the attempt go.
const NOTHING_PASSED: u8 = u8::MAX;

impl SendTurn {
    /// Creates a turn without a place in line.
    pub const fn new() -> Self {
        Self {
            holds: Holds::Nothing,
            depth: 0,
            passed: NOTHING_PASSED,
        }
    }

    /// Returns `true` if it holds a place in line.
    #[must_use]
    pub const fn is_in_line(&self) -> bool {
        matches!(self.holds, Holds::InLine(_) | Holds::InLines(_))
    }

    /// Takes out what the attempt was granted of several send rates.
    pub(crate) fn take_granted(&mut self) -> Option<Box<SetPermit<MOST_RATES>>> {
        match self.take() {
            Holds::Granted(permit) => Some(permit),
            _ => None,
        }
    }

    const fn take(&mut self) -> Holds {
        mem::replace(&mut self.holds, Holds::Nothing)
    }

    /// As [`wait`](Self::wait), of several send rates at once.
    #[inline(never)]
    pub(super) fn wait_for_set(
        &mut self,
        set: &SendSet<Arc<SendRate>>,
        clock: &Arc<dyn Clock>,
        request: SendRequest<'_>,
        longest: Option<Duration>,
    ) -> Result<SendPermit, NotAdmitted> {
        let time = request.time(clock);
        let mut places = if let Holds::InLines(places) = self.take() {
            places
        } else {
            let weights = request.weights_of(set)?;
            let now = time.now();
            let deadline = longest.map(|span| now.saturating_add(span));
            let held = SetHeld::take(set, now, &weights, request.class, longest)?;
            Box::new(Waiting::new(held, Arc::clone(clock), deadline))
        };
        match places.look_by(time, request.waker) {
            Ok(permit) => {
                self.holds = Holds::Granted(Box::new(permit));
                // One of the weights is not 0.
                Ok(permit.first().unwrap_or(SendPermit::sent_at(time.now())))
            }
            Err(rest) if rest.check(places.deadline()).is_ok() => {
                self.holds = Holds::InLines(places);
                Err(rest.into())
            }
            Err(rest) => Err(NotAdmitted::Refused(SendRefused { wait: rest.wait() })),
        }
    }

    /// Asks `rate` for the tokens of `request`, and takes a place in line if they are not there.
    /// For strategies that have a send rate.
    ///
    /// `clock` is that of the rate. It is read where the request brings no time, and
    /// when a place is given back.
    ///
    /// # Errors
    ///
    /// [`NotAdmitted::Wait`] while the turn has not come, [`NotAdmitted::Weight`] if there is no
    /// such weight.
    #[inline]
    pub fn admit(
        &mut self,
        rate: &Arc<SendRate>,
        clock: &Arc<dyn Clock>,
        request: SendRequest<'_>,
    ) -> Result<SendPermit, NotAdmitted> {
        if !self.is_in_line() {
            let time = request.time(clock);
            let taken = if request.is_background() {
                rate.try_background(time.now(), request.weight)
            } else if request.weight == 1 {
                let taken = rate.try_acquire_with(|| time.now());
                taken.map_err(|wait| AcquireError::NotInTime { wait })
            } else {
                rate.try_acquire_n(time.now(), request.weight)
            };
            match taken {
                Ok(permit) => return Ok(permit),
                // The line knows whether it may save up for a heavy one.
                Err(
                    AcquireError::NotInTime { .. }
                    | AcquireError::Weight(WeightError::AboveCapacity { .. }),
                ) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.wait(rate, clock, request, None)
    }

    /// Looks at the place in line, which is taken if there is none. One whose turn comes later than
    /// `longest` after it was taken is given back, and the attempt refused.
    // Out of the way of an attempt that goes at once.
    #[inline(never)]
    pub(super) fn wait(
        &mut self,
        rate: &Arc<SendRate>,
        clock: &Arc<dyn Clock>,
        request: SendRequest<'_>,
        longest: Option<Duration>,
    ) -> Result<SendPermit, NotAdmitted> {
        let time = request.time(clock);
        let mut place = if let Holds::InLine(place) = self.take() {
            place
        } else {
            let (rate, clock, now) = (Arc::clone(rate), Arc::clone(clock), time.now());
            let deadline = longest.map(|span| now.saturating_add(span));
            Place::take(rate, clock, request.weight, request.class, now, deadline)?
        };
        match place.look_by(time, request.waker) {
            Err(rest) if rest.check(place.deadline()).is_ok() => {
                self.holds = Holds::InLine(place);
                Err(rest.into())
            }
            // Its tokens are taken, so there is nothing to give back, or it is refused.
            looked => {
                looked.map_err(|rest| NotAdmitted::Refused(SendRefused { wait: rest.wait() }))
            }
        }
    }

    /// Asks `inside` until it lets the attempt go, and from then on only `gate`. For strategies
    /// that put a further gate before the sends of another one.
    ///
    /// The permit is the gate's. Where `inside` took tokens or was asked for a weight, it is the
    /// one of `inside`, at the time of the gate's: `inside` then records and settles what it took.
    ///
    /// Given up between the two, what `inside` granted is spent. A gate wakes no waiter, so it is
    /// asked every 50 ms, or sooner if it says so.
    ///
    /// # Errors
    ///
    /// What `inside` says, or [`NotAdmitted::Wait`] for as long as `gate` says.
    pub fn gated(
        &mut self,
        inside: impl FnOnce(&mut Self) -> Result<SendPermit, NotAdmitted>,
        gate: impl FnOnce() -> Result<SendPermit, Duration>,
    ) -> Result<SendPermit, NotAdmitted> {
        let depth = self.depth;
        if self.passed > depth {
            self.depth = depth.saturating_add(1);
            let granted = inside(self);
            self.depth = depth;
            let own = granted?;
            if matches!(self.holds, Holds::Nothing) {
                self.holds = Holds::Passed(own);
            }
            self.passed = depth;
        }
        let permit = gate().map_err(|wait| NotAdmitted::Wait {
            wait,
            look_in: wait.min(LOOK_AGAIN),
        })?;
        Ok(match self.holds {
            Holds::Passed(own) if own.is_charged() || own.weight() > 1 => {
                SendPermit::with_order(permit.time(), own.weight(), own.place())
            }
            _ => permit,
        })
    }
}

impl fmt::Debug for SendTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendTurn")
            .field("in_line", &self.is_in_line())
            .finish_non_exhaustive()
    }
}

impl Default for SendTurn {
    fn default() -> Self {
        Self::new()
    }
}

/// What [`RetryStrategy::admit`](crate::RetryStrategy::admit) is asked for: leave to send one
/// attempt.
///
/// By default an attempt of weight 1 without a token, at the time of the strategy's own clock, that
/// no thread can wake.
///
/// # Examples
///
/// ```
/// use paceline::{Adaptive, RetryStrategy, Timestamp, strategy::{SendRequest, SendTurn}};
///
/// let strategy = Adaptive::new();
/// let token = strategy.acquire_initial_token(None).unwrap();
/// let now = strategy.clock().now();
/// let request = SendRequest::new().token(&token).weight(4).at(&now);
/// assert_eq!(strategy.admit(&mut SendTurn::new(), request).unwrap().weight(), 4);
/// ```
#[derive(Clone, Copy)]
#[must_use = "a request does nothing until a strategy is asked"]
pub struct SendRequest<'a> {
    token: Option<&'a RetryToken>,
    weight: u32,
    class: Class,
    weights: Option<&'a Weights>,
    clock: Option<&'a dyn Clock>,
    waker: Option<&'a Waker>,
}

impl<'a> SendRequest<'a> {
    /// Asks for an attempt of weight 1.
    pub const fn new() -> Self {
        Self {
            token: None,
            weight: 1,
            class: Class::Foreground,
            weights: None,
            clock: None,
            waker: None,
        }
    }

    /// Names the operation, for strategies that keep a line for each scope.
    pub const fn token(mut self, token: &'a RetryToken) -> Self {
        self.token = Some(token);
        self
    }

    /// Sets how many tokens of the send rate the attempt takes.
    pub const fn weight(mut self, tokens: u32) -> Self {
        self.weight = tokens;
        self
    }

    /// Sets whether something waits for the attempt: foreground by default.
    pub const fn class(mut self, class: Class) -> Self {
        self.class = class;
        self
    }

    /// Returns `true` if the attempt is [background](Class::Background), for strategies with a send
    /// rate.
    #[must_use]
    pub const fn is_background(&self) -> bool {
        self.class.is_background()
    }

    /// Sets how many tokens of each send rate the attempt takes, for strategies with several. The
    /// first is also its [`weight`](Self::weight).
    pub const fn weights(mut self, tokens: &'a Weights) -> Self {
        self.weights = Some(tokens);
        self.weight = tokens.first_of();
        self
    }

    /// Returns a weight for each rate of `set`: that of the request for the first, and 1 for the
    /// others, unless it brings them all.
    fn weights_of(&self, set: &SendSet<Arc<SendRate>>) -> Result<[u32; MOST_RATES], SetError> {
        if let Some(weights) = self.weights {
            return set.checked(weights.as_slice());
        }
        let mut all = [1; MOST_RATES];
        all[0] = self.weight;
        set.checked(all.get(..set.rates().count()).unwrap_or(&all))
    }

    /// Sets when it is: a [`Timestamp`], or a clock that is read only if the time matters. It has
    /// to be of the strategy's own clock.
    pub const fn at(mut self, clock: &'a dyn Clock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Lets `waker` be woken if the turn comes sooner than it is said to.
    pub const fn waker(mut self, waker: &'a Waker) -> Self {
        self.waker = Some(waker);
        self
    }

    /// Returns the token of the operation, or `None` if its strategy gave none.
    #[must_use]
    pub const fn operation(&self) -> Option<&'a RetryToken> {
        self.token
    }

    /// Returns how many tokens of the send rate the attempt takes.
    #[must_use]
    pub const fn tokens(&self) -> u32 {
        self.weight
    }

    /// Returns the time, by `own` if the request brings none.
    #[must_use]
    pub fn now(&self, own: &dyn Clock) -> Timestamp {
        self.time(own).now()
    }

    fn time<'c>(&self, own: &'c dyn Clock) -> &'c dyn Clock
    where
        'a: 'c,
    {
        self.clock.unwrap_or(own)
    }
}

impl Default for SendRequest<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SendRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendRequest")
            .field("token", &self.token)
            .field("weight", &self.weight)
            .field("class", &self.class)
            .field("weights", &self.weights)
            .field("clock", &self.clock)
            .field("waker", &self.waker.is_some())
            .finish()
    }
}

/// Why an attempt may not be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NotAdmitted {
    /// Its turn has not come. The place in line is in the [`SendTurn`].
    Wait {
        /// The time until the turn, at the rate of the moment. Never zero.
        wait: Duration,
        /// The time to rest before the next look, unless the waker is woken before. Never zero,
        /// and at most `wait`; of background, whose waits are estimates, four times that.
        look_in: Duration,
    },
    /// It would have to wait, and the strategy refuses rather than makes wait.
    Refused(SendRefused),
    /// It would have to wait, and the service has throttled everything for the
    /// [stall timeout](crate::config::StrategyBuilder::stall_timeout) of a
    /// [bulk](crate::Adaptive::bulk) strategy.
    Stalled {
        /// The time since the first throttle after which nothing was delivered.
        span: Duration,
    },
    /// There is no such weight.
    Weight(WeightError),
    /// One of several limits refused, or there is no such request.
    Set(SetError),
}

impl From<SetError> for NotAdmitted {
    fn from(error: SetError) -> Self {
        match error {
            SetError::NotInTime(binding) => Self::Refused(SendRefused { wait: binding.wait }),
            error => Self::Set(error),
        }
    }
}

impl From<AcquireError> for NotAdmitted {
    fn from(error: AcquireError) -> Self {
        match error {
            AcquireError::NotInTime { wait } => Self::Refused(SendRefused { wait }),
            AcquireError::Weight(error) => Self::Weight(error),
        }
    }
}

impl From<Rest> for NotAdmitted {
    fn from(rest: Rest) -> Self {
        Self::Wait {
            wait: rest.wait(),
            look_in: rest.span(),
        }
    }
}

impl fmt::Display for NotAdmitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wait { wait, .. } => write!(f, "the turn to send comes in {wait:?}"),
            Self::Refused(refused) => refused.fmt(f),
            Self::Stalled { span } => RefusalReason::Stalled { span: *span }.fmt(f),
            Self::Weight(error) => error.fmt(f),
            Self::Set(error) => error.fmt(f),
        }
    }
}

impl Error for NotAdmitted {}

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

/// What came with a response besides its outcome: when it came, and what the service reported.
///
/// What a service declares about its limits ([`LimitReports`]) paces a strategy whose law is
/// [`ControlLaw::Declared`](crate::ControlLaw::Declared).
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
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "reports are for a strategy"]
pub struct Reports<'a> {
    clock: Option<&'a dyn Clock>,
    limits: Option<&'a LimitReports>,
    costs: Option<&'a Weights>,
}

impl<'a> Reports<'a> {
    /// Creates the reports of a response that came now, by the strategy's own clock.
    pub const fn new() -> Self {
        Self {
            clock: None,
            limits: None,
            costs: None,
        }
    }

    /// Creates the reports of a response that came at `clock`: a [`Timestamp`], or a clock that is
    /// read only if the time matters. It has to be of the strategy's own clock.
    pub const fn at(clock: &'a dyn Clock) -> Self {
        Self {
            clock: Some(clock),
            limits: None,
            costs: None,
        }
    }

    /// Adds what the service declared about its limits.
    pub const fn declaring(mut self, limits: &'a LimitReports) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Adds what the request cost of each send rate in truth, in tokens: a strategy with send rates
    /// settles it with what the attempt took ([`SendCharge`](crate::SendCharge)). As many as it has
    /// rates; others are ignored.
    pub const fn costing(mut self, costs: &'a Weights) -> Self {
        self.costs = Some(costs);
        self
    }

    /// Whether the service declared nothing, and what the request cost is not known.
    #[inline]
    pub(super) const fn says_nothing(&self) -> bool {
        self.limits.is_none() && self.costs.is_none()
    }

    /// Returns what the request cost of each send rate, if that is known.
    #[must_use]
    pub const fn costs(&self) -> Option<&'a Weights> {
        self.costs
    }

    /// Returns what the service declared about its limits, if anything.
    #[must_use]
    pub const fn limits(&self) -> Option<&'a LimitReports> {
        self.limits
    }

    /// Returns the clock, `own` if the response came now.
    #[must_use]
    pub fn clock<'c>(&self, own: &'c dyn Clock) -> &'c dyn Clock
    where
        'a: 'c,
    {
        self.clock.unwrap_or(own)
    }
}
