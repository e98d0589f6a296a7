//! The step between a token's delay and every send.

use alloc::{boxed::Box, sync::Arc};
use core::{
    any::Any,
    fmt,
    mem::{self, ManuallyDrop},
    task::Waker,
    time::Duration,
};

use super::{
    members::{Asked, Members, PoolPlaces},
    refusal::NotAdmitted,
    request::{SendRequest, least},
    token::{Granted, first_of},
};
use crate::seam::{InLine, PlaceGuard, SetGuard};
use crate::set::{MOST_RATES, SendSet, SetError, SetPermit, Weights};
use crate::wait::{Limit, Waiting};
use crate::{AcquireError, Class, Clock, SendPermit, SendRate, Timestamp, WeightError};

/// How a strategy lets its attempts wait: by default as long as their requests allow.
#[derive(Debug, Default)]
pub(super) struct Manner {
    /// Whether an attempt that would have to wait is refused.
    pub(super) fail_fast: bool,
    /// The longest wait for a turn.
    pub(super) max_wait: Option<Duration>,
    /// Whether the clock is read for every send.
    pub(super) exact_timing: bool,
}

/// The send rates of a strategy, and how its attempts wait for them.
#[derive(Clone, Copy)]
pub(super) struct Lines<'a> {
    pub(super) manner: &'a Manner,
    pub(super) rate: &'a Arc<SendRate>,
    /// `rate` and the further rates, if there are several.
    pub(super) set: Option<&'a SendSet<Arc<SendRate>>>,
    /// The members, if there are several. Each member has a set.
    pub(super) members: Option<&'a Members>,
    /// The clock of the rates. A place that is given back reads it.
    pub(super) clock: &'a Arc<dyn Clock>,
}

impl<'a> Lines<'a> {
    /// Returns the set of `member`, or the only set.
    fn set_of(&self, member: usize) -> Option<&'a SendSet<Arc<SendRate>>> {
        match self.members {
            Some(members) => members.all().get(member),
            None => self.set,
        }
    }

    /// Returns how long an attempt may wait that takes its place now.
    //= AWS: If a token is not available, it will wait for one to become available.
    //= AWS: Your SDK might have configuration options available to fail the request instead of
    //= wait.
    fn patience(&self, request: SendRequest<'_>) -> Option<Duration> {
        let refuses = self.manner.fail_fast.then_some(Duration::ZERO);
        least(request.patience, refuses.or(self.manner.max_wait))
    }
}

/// What an attempt holds before it is sent.
enum Holds {
    Nothing,
    InLine(Waiting<Places, Arc<dyn Clock>>),
    /// The grant of several send rates.
    Granted(Box<Granted>),
    /// The attempt waits at a gate.
    AtGate(Box<AtGate>),
}

/// The place of an attempt in the line of each of its send rates. The place in a single line needs no
/// allocation.
enum Places {
    One(PlaceGuard<Arc<SendRate>>),
    Several(Box<SetGuard<Arc<SendRate>, MOST_RATES>>),
    Pool(Box<PoolPlaces>),
    /// A member let the attempt go at once.
    Gone(Granted),
}

impl Places {
    /// Takes the places of `request`. With several send rates, a weight above the capacity of a
    /// bucket is reduced to the capacity, if the request allows it.
    fn take(
        lines: Lines<'_>,
        now: Timestamp,
        request: SendRequest<'_>,
        patience: Option<Duration>,
    ) -> Result<Self, NotAdmitted> {
        let class = request.class;
        if let Some(members) = lines.members {
            return Ok(match members.ask(now, request, patience)? {
                Asked::Went(granted) => Self::Gone(granted),
                Asked::InLine(places) => Self::Pool(places),
            });
        }
        let Some(set) = lines.set else {
            let rate = Arc::clone(lines.rate);
            let place = PlaceGuard::take(rate, now, request.tokens(), class, patience)?;
            return Ok(Self::One(place));
        };
        let taken = request.up_to_capacity(set, |weights| {
            SetGuard::take(set, now, weights, class, patience)
        });
        Ok(Self::Several(Box::new(taken?)))
    }
}

impl InLine for Places {
    type Permit = Granted;

    fn claim_with(&mut self, now: impl FnOnce() -> Timestamp) -> Result<Granted, Duration> {
        match self {
            Self::One(place) => place.claim_with(now).map(of_one),
            Self::Several(places) => InLine::claim_with(&mut **places, now).map(of_set),
            Self::Pool(places) => places.claim_with(now).map(Granted::from),
            Self::Gone(granted) => Ok(*granted),
        }
    }

    fn stand(&mut self, now: Timestamp, wait: Duration, waker: &Waker) -> Option<Duration> {
        match self {
            Self::One(place) => place.stand(now, wait, waker),
            Self::Several(places) => InLine::stand(&mut **places, now, wait, waker),
            Self::Pool(places) => places.stand(now, wait, waker),
            Self::Gone(_) => None,
        }
    }

    fn leave(&mut self, now: impl FnOnce() -> Timestamp) {
        match self {
            Self::One(place) => place.leave(now),
            Self::Several(places) => places.leave(now),
            Self::Pool(places) => places.leave(now),
            Self::Gone(_) => {}
        }
    }

    fn limit(&self) -> usize {
        match self {
            Self::Several(places) => places.limit(),
            Self::Pool(places) => places.limit_of_member(),
            Self::One(_) | Self::Gone(_) => 0,
        }
    }
}

/// An attempt that its strategy has let go, and that waits at a gate behind the strategy.
struct AtGate {
    /// The permit of the strategy. `granted` has the permits of several send rates.
    own: SendPermit,
    granted: Option<Box<Granted>>,
    place: GatePlace,
}

/// The state that a gate keeps for one waiting attempt, such as its place in a line. See
/// [`SendTurn::gated`].
///
/// The state is dropped with the turn, or when the gate lets the attempt go.
#[derive(Default)]
pub struct GatePlace(Option<Box<dyn Any + Send + Sync>>);

impl GatePlace {
    /// Takes out the state, if it has the type `T`.
    pub fn take<T: Any + Send + Sync>(&mut self) -> Option<Box<T>> {
        self.0.take().and_then(|kept| kept.downcast().ok())
    }

    /// Keeps `place` until the gate is asked again.
    pub fn put<T: Any + Send + Sync>(&mut self, place: Box<T>) {
        self.0 = Some(place);
    }

    /// Returns `true` if the gate keeps something.
    #[must_use]
    pub const fn is_kept(&self) -> bool {
        self.0.is_some()
    }
}

impl fmt::Debug for GatePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GatePlace").field(&self.is_kept()).finish()
    }
}

/// The progress of an attempt towards its send. Pass the same value to
/// [`RetryStrategy::admit`](crate::RetryStrategy::admit) until the attempt may go.
///
/// An attempt that goes at once leaves the turn empty. An attempt that has to wait keeps its place
/// in line in the turn. A turn that is dropped gives the place back, and the requests behind move
/// up. A turn borrows nothing, and allocates only for a strategy with several send rates.
///
/// # Examples
///
/// ```
/// use paceline::{Adaptive, RetryStrategy, strategy::{NotAdmitted, SendRequest, SendTurn}};
///
/// let strategy = Adaptive::paced();
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
    /// Dropped by `let_go`, unless it is `Nothing`.
    holds: ManuallyDrop<Holds>,
    /// The number of `gated` calls under way, one inside the other.
    depth: u8,
    /// The outermost depth of a gate whose inner strategy has let the attempt go.
    passed: u8,
    /// Whether an event has explained the wait.
    pub(super) explained: bool,
    /// When the attempt began to wait, if a hook needs this time.
    pub(super) began: Option<Timestamp>,
}

/// The value of `passed` while no inner strategy has let the attempt go.
const NOTHING_PASSED: u8 = u8::MAX;

impl SendTurn {
    /// Creates a turn without a place in line.
    pub const fn new() -> Self {
        Self {
            holds: ManuallyDrop::new(Holds::Nothing),
            depth: 0,
            passed: NOTHING_PASSED,
            explained: false,
            began: None,
        }
    }

    /// Returns the limit that the attempt waits for; `None` if it waits at a gate.
    pub(crate) fn limit(&mut self) -> Option<usize> {
        match &mut *self.holds {
            Holds::InLine(places) => Some(places.limit()),
            Holds::AtGate(_) => None,
            _ => Some(0),
        }
    }

    /// Returns the member whose turn comes first; 0 where there is one.
    pub(super) fn member(&mut self) -> usize {
        match &*self.holds {
            Holds::InLine(places) => match places.held() {
                Places::Pool(places) => places.limit(),
                _ => 0,
            },
            _ => 0,
        }
    }

    /// Returns `true` if the turn holds a place in line.
    #[must_use]
    pub fn is_in_line(&self) -> bool {
        match &*self.holds {
            Holds::InLine(_) => true,
            Holds::AtGate(gate) => gate.place.is_kept(),
            Holds::Nothing | Holds::Granted(_) => false,
        }
    }

    /// Takes out the attempt's grant of several send rates.
    pub(crate) fn take_granted(&mut self) -> Option<Box<Granted>> {
        match self.take() {
            Holds::Granted(permit) => Some(permit),
            _ => None,
        }
    }

    fn take(&mut self) -> Holds {
        ManuallyDrop::into_inner(mem::replace(
            &mut self.holds,
            ManuallyDrop::new(Holds::Nothing),
        ))
    }

    /// Asks `rate` for the tokens of `request`, and takes a place in line if they are not there. It
    /// is for strategies with a send rate.
    ///
    /// `clock` is the clock of the rate. It is read if the request has no time, and when a place is
    /// given back.
    ///
    /// # Errors
    ///
    /// [`NotAdmitted::Wait`] while the turn has not come, [`NotAdmitted::Refused`] if it comes
    /// later than the [request](SendRequest::within) may wait, [`NotAdmitted::Weight`] if the
    /// weight is invalid.
    #[inline]
    pub fn admit(
        &mut self,
        rate: &Arc<SendRate>,
        clock: &Arc<dyn Clock>,
        request: SendRequest<'_>,
    ) -> Result<SendPermit, NotAdmitted> {
        let lines = Lines {
            manner: &Manner::default(),
            rate,
            set: None,
            members: None,
            clock,
        };
        let asked = self.ask(lines, request);
        asked.or_else(|why| self.queue(lines, request, why))
    }

    /// Asks the only send rate. For an attempt in line, or with several send rates, it returns an
    /// error of `None` without asking.
    #[inline]
    pub(super) fn ask(
        &self,
        lines: Lines<'_>,
        request: SendRequest<'_>,
    ) -> Result<SendPermit, Option<AcquireError>> {
        if lines.set.is_some() || lines.members.is_some() || self.is_in_line() {
            return Err(None);
        }
        let rate = lines.rate;
        let now = || request.now(&**lines.clock);
        let (weight, class) = (request.tokens(), request.class);
        let taken = if lines.manner.exact_timing && class != Class::Background {
            rate.try_acquire_n(now(), weight)
        } else {
            rate.take_now(weight, class, now)
        };
        taken.map_err(Some)
    }

    /// Claims the places of the attempt, or takes places for an attempt that was refused because of
    /// `why`. An attempt whose turn comes too late gives its places back, and is refused.
    // Not inlined, because most attempts go at once.
    #[inline(never)]
    pub(super) fn queue(
        &mut self,
        lines: Lines<'_>,
        request: SendRequest<'_>,
        why: Option<AcquireError>,
    ) -> Result<SendPermit, NotAdmitted> {
        match why {
            Some(error) if lines.manner.fail_fast => return Err(error.into()),
            // The line knows whether it may save up for a heavy attempt.
            None
            | Some(
                AcquireError::NotInTime { .. }
                | AcquireError::Weight(WeightError::AboveCapacity { .. }),
            ) => {}
            Some(error) => return Err(error.into()),
        }
        let time = request.time(lines.clock);
        let mut places = if let Holds::InLine(places) = self.take() {
            places
        } else {
            let (now, patience) = (time.now(), lines.patience(request));
            let held = Places::take(lines, now, request, patience)?;
            let deadline = patience.map(|span| now.saturating_add(span));
            Waiting::new(held, Arc::clone(lines.clock), deadline)
        };
        let granted = match places.look_by(time, request.waker) {
            Ok(granted) => granted,
            Err(rest) => {
                rest.check(places.deadline())?;
                *self.holds = Holds::InLine(places);
                return Err(NotAdmitted::resting(rest));
            }
        };
        let Granted { member, mut permit } = granted;
        if let Some(set) = lines.set_of(member) {
            permit = owing(set, time, request, permit)?;
            *self.holds = Holds::Granted(Box::new(Granted { member, permit }));
        }
        // At least one weight is not 0.
        let first = first_of(&permit);
        Ok(first.unwrap_or_else(|| SendPermit::sent_at(time.now())))
    }

    /// Asks `inside` until it lets the attempt go, and then only `gate`. It is for strategies that
    /// put a further gate before the sends of another strategy.
    ///
    /// The result is the gate's permit. If `inside` took tokens or had a weight, the result is the
    /// permit of `inside`, with the time of the gate's permit. So `inside` records and settles its
    /// tokens.
    ///
    /// A gate with a line keeps the attempt's place in the [`GatePlace`], which it gets at each
    /// call. A gate that makes the attempt wait returns [`NotAdmitted::wait`].
    ///
    /// If the attempt is given up at the gate, the tokens of `inside` are spent, and the place is
    /// dropped.
    ///
    /// # Errors
    ///
    /// The error of `inside`, or of `gate`.
    pub fn gated(
        &mut self,
        inside: impl FnOnce(&mut Self) -> Result<SendPermit, NotAdmitted>,
        gate: impl FnOnce(&mut GatePlace) -> Result<SendPermit, NotAdmitted>,
    ) -> Result<SendPermit, NotAdmitted> {
        let depth = self.depth;
        let mut waiting = if self.passed > depth {
            self.depth = depth.saturating_add(1);
            let granted = inside(self);
            self.depth = depth;
            AtGate {
                own: granted?,
                granted: self.take_granted(),
                place: GatePlace::default(),
            }
        } else if let Holds::AtGate(waiting) = self.take() {
            *waiting
        } else {
            // The attempt was let go before, so the caller already has its grant.
            return gate(&mut GatePlace::default());
        };
        self.passed = depth;
        match gate(&mut waiting.place) {
            Ok(permit) => {
                let own = waiting.own;
                if let Some(granted) = waiting.granted {
                    *self.holds = Holds::Granted(granted);
                } else if own.is_charged() || own.weight() > 1 {
                    return Ok(own.moved(permit.time()));
                }
                Ok(permit)
            }
            Err(not_yet) => {
                *self.holds = Holds::AtGate(Box::new(waiting));
                Err(not_yet)
            }
        }
    }

    /// Notes the `weights` that an attempt took at a [gate](Self::gated), which let it go with
    /// `permit`. [`RetryToken::tokens_of`](crate::RetryToken::tokens_of) returns them. A grant of
    /// several send rates of the inner strategy is noted already, and stays.
    pub fn note(&mut self, permit: SendPermit, weights: &Weights) {
        if let Holds::Nothing = &*self.holds {
            *self.holds = Holds::Granted(Box::new(of_set(SetPermit::behind(permit, weights))));
        }
    }
}

/// Returns the tokens that the request took from `limit`.
pub(super) fn weight_of(permit: &SetPermit<MOST_RATES>, limit: usize) -> u32 {
    permit.get(limit).map_or(0, SendPermit::weight)
}

/// Returns the permit of one send rate as the permit of a set.
fn of_one(permit: SendPermit) -> Granted {
    of_set(SetPermit::of(|limit| (limit == 0).then_some(permit)))
}

/// Returns the permit of the only set as a grant of the first member.
const fn of_set(permit: SetPermit<MOST_RATES>) -> Granted {
    Granted { member: 0, permit }
}

/// Debits the tokens that a granted request owes, because its weights are above the capacities.
fn owing(
    set: &SendSet<Arc<SendRate>>,
    time: &dyn Clock,
    request: SendRequest<'_>,
    permit: SetPermit<MOST_RATES>,
) -> Result<SetPermit<MOST_RATES>, SetError> {
    if !request.is_up_to_capacity() {
        return Ok(permit);
    }
    let weights = request.weights_of(set)?;
    let owes = |(limit, owed): (usize, &u32)| weight_of(&permit, limit) < *owed;
    if !weights.iter().enumerate().any(owes) {
        return Ok(permit);
    }
    let costs = weights.get(..set.rates().count()).unwrap_or(&weights);
    // A debit that does not fit a line is left out, and the request goes all the same.
    let _settled = set.settle(time.now(), permit, costs);
    Ok(permit.costing(costs))
}

impl Drop for SendTurn {
    #[inline]
    fn drop(&mut self) {
        if !matches!(*self.holds, Holds::Nothing) {
            let_go(self.take());
        }
    }
}

/// Cold, because most turns hold nothing. Their drop stays small enough to be inlined.
#[cold]
#[inline(never)]
fn let_go(holds: Holds) {
    drop(holds);
}

impl fmt::Debug for SendTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendTurn")
            .field("in_line", &self.is_in_line())
            .finish_non_exhaustive()
    }
}
