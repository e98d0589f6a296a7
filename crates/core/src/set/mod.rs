//! Several limits on one request: a set of send rates, with a weight in each.
//!
//! # Why no order of places can deadlock
//!
//! A place in line holds nothing that another thread waits for. Its turn comes with time, and the
//! places behind it come due whether or not it is claimed. So two sets that overlap never wait for
//! each other's places, in any order of their rates. Such sets share only tokens. A set claims no
//! token before it is due in every line. It joins each line so late that its turns come together. A
//! place that is due keeps its tokens meanwhile, and delays others as much as its request would.

mod error;
mod guard;
mod permit;
mod weights;

pub use error::{Binding, SetError};
#[doc(hidden)]
pub use guard::SetGuard;
pub use guard::SetReservation;
pub use permit::SetPermit;
pub use weights::Weights;

use core::ops::Deref;
use core::time::Duration;
use core::{array, fmt};

use crate::law::{LimitReports, Observed};

use crate::{
    AcquireError, Background, Class, Outcome, SendPermit, SendRate, Timestamp, WeightError,
};

/// The most send rates that a set has.
pub const MOST_RATES: usize = 8;

/// Up to eight send rates that one request counts against, with a weight in each.
///
/// APIs count several things at once: requests a minute and tokens a minute, a weight a minute and
/// a number a day. A request of a set takes its weight from each rate, or nothing from any rate.
/// The request is due when its last place is. A rate is named by its position, called the *limit*.
/// A weight of 0 leaves a limit alone.
///
/// `R` holds a rate: a reference, or an `Arc`. [`new`](Self::new) makes a set of a fixed number of
/// rates, and [`of`](Self::of) a set of a number known at run time. A rate may belong to several
/// sets and be used alone, but stands only once in each set. Otherwise requests are refused
/// ([`SetError::Twice`]). No call allocates or waits for another thread. `SendLimiter` waits for
/// the tokens of a set.
///
/// Every call takes the time `now`, which counts for all rates of the set.
///
/// # Memory ordering
///
/// No ordering is promised, as with [`SendRate`]. The grants of each rate are in one order that all
/// threads agree on. A request takes from one rate after the other. If the second rate refuses, the
/// tokens of the first go back in a moment. Another caller may be refused meanwhile. Nothing is
/// granted that was not minted.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use paceline::{Outcome, SendRate, SendSet, Timestamp, law::PacedSettings};
///
/// // 5 requests and 1,000 tokens a second.
/// let second = Duration::from_secs(1);
/// let settings = |n| PacedSettings::fixed(n, second)?.to_builder().burst(second).build();
/// let requests = SendRate::paced(settings(5)?, Timestamp::ZERO);
/// let tokens = SendRate::paced(settings(1_000)?, Timestamp::ZERO);
/// let set = SendSet::new([&requests, &tokens]);
///
/// let now = Timestamp::ZERO;
/// let permit = set.try_acquire(now, &[1, 600]).unwrap();
/// let refused = set.try_acquire(now, &[1, 600]).unwrap_err();
/// assert_eq!(refused.to_string(), "limit 1: not in time: the send rate asks for a wait of 200ms");
///
/// // ... the response says that it cost 150 tokens:
/// set.settle(now, permit, &[1, 150]).unwrap();
/// set.record(now, &permit, Outcome::NotThrottled);
/// assert!(set.try_acquire(now, &[1, 600]).is_ok());
/// # Ok::<(), paceline::law::PacedSettingsError>(())
/// ```
#[derive(Clone)]
pub struct SendSet<R, const N: usize = MOST_RATES> {
    rates: [Option<R>; N],
}

impl<R, const N: usize> SendSet<R, N> {
    /// Creates a set of `rates`. Any number but one to eight is a compile error.
    #[must_use]
    pub fn new(rates: [R; N]) -> Self {
        const { assert!(N >= 1 && N <= MOST_RATES, "a set has one to eight rates") };
        Self {
            rates: rates.map(Some),
        }
    }
}

impl<R> SendSet<R> {
    /// Creates a set of all `rates`.
    ///
    /// # Errors
    ///
    /// [`SetError::Rates`] if there are no rates, or more than eight.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use paceline::{ControlLaw, SendRate, SendSet, Timestamp, set::SetError};
    ///
    /// let rate = || Arc::new(SendRate::new(ControlLaw::Aws, Timestamp::ZERO));
    /// let set = SendSet::of((0..3).map(|_| rate()))?;
    /// assert!(set.try_acquire(Timestamp::ZERO, &[1, 0, 7]).is_ok());
    /// assert_eq!(SendSet::<&SendRate>::of([]).unwrap_err(), SetError::Rates { given: 0 });
    /// # Ok::<(), SetError>(())
    /// ```
    pub fn of(rates: impl IntoIterator<Item = R>) -> Result<Self, SetError> {
        let mut rates = rates.into_iter().fuse();
        let set = Self::of_first(&mut rates);
        let held = set.rates.iter().flatten().count();
        match held.saturating_add(rates.count()) {
            1..=MOST_RATES => Ok(set),
            given => Err(SetError::Rates { given }),
        }
    }

    /// Returns a set of the first eight of `rates`.
    #[doc(hidden)]
    pub fn of_first(mut rates: impl Iterator<Item = R>) -> Self {
        Self {
            rates: array::from_fn(|_| rates.next()),
        }
    }

    /// Returns `true` if there is more than one rate.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub const fn is_several(&self) -> bool {
        self.rates[1].is_some()
    }
}

impl<R: Deref<Target = SendRate>, const N: usize> SendSet<R, N> {
    /// Returns the rates, in the order of their limits.
    #[inline]
    pub fn rates(&self) -> impl Iterator<Item = &SendRate> {
        self.rates.iter().map_while(Option::as_deref)
    }

    /// Returns a set of references to the same rates.
    pub(crate) fn borrowed(&self) -> SendSet<&SendRate, N> {
        let rates = self.rates.each_ref();
        SendSet {
            rates: rates.map(|rate| rate.as_deref()),
        }
    }

    /// Returns `weights` as an array, or the error of weights that do not fit the set.
    #[doc(hidden)]
    pub fn checked(&self, weights: &[u32]) -> Result<[u32; N], SetError> {
        let rates = self.rates().count();
        if weights.len() != rates {
            let given = weights.len();
            return Err(SetError::Weights { given, rates });
        }
        let all = array::from_fn(|limit| weights.get(limit).copied().unwrap_or(0));
        for (limit, rate) in self.rates().enumerate() {
            let is_same = |earlier: &SendRate| core::ptr::eq(earlier, rate);
            if let Some(first) = self.rates().take(limit).position(is_same) {
                let limits = [first, limit];
                return Err(SetError::Twice { limits });
            }
        }
        if all == [0; N] {
            let error = WeightError::Zero;
            return Err(SetError::Limit {
                limit: 0,
                error: error.into(),
            });
        }
        Ok(all)
    }

    /// Returns each limit that has a weight, with its rate.
    fn weighed<'a>(
        &'a self,
        weights: &'a [u32; N],
    ) -> impl Iterator<Item = (usize, &'a SendRate, u32)> {
        let all = self.rates().zip(weights).enumerate();
        all.filter_map(|(limit, (rate, weight))| (*weight > 0).then_some((limit, rate, *weight)))
    }

    /// Returns each limit that has a permit in `permits`, with its rate.
    fn permitted<'a>(
        &'a self,
        permits: impl Fn(usize) -> Option<SendPermit> + 'a,
    ) -> impl Iterator<Item = (usize, &'a SendRate, SendPermit)> {
        let all = self.rates().enumerate();
        all.filter_map(move |(limit, rate)| Some((limit, rate, permits(limit)?)))
    }

    /// Takes the weight of each limit now, or takes nothing.
    ///
    /// # Errors
    ///
    /// [`SetError::Limit`] with the limit that asks for the longest wait, and this wait. The wait
    /// is not zero. It is exact while no other caller takes the tokens and the rates stay the same.
    /// [`SetError::Limit`] also if a weight is invalid, or all weights are 0. [`SetError::Weights`]
    /// if there is not one weight for each rate. [`SetError::Twice`] if a rate stands twice in the
    /// set.
    pub fn try_acquire(&self, now: Timestamp, weights: &[u32]) -> Result<SetPermit<N>, SetError> {
        self.take(now, &self.checked(weights)?, Class::Foreground)
    }

    #[inline]
    pub(crate) fn take(
        &self,
        now: Timestamp,
        weights: &[u32; N],
        class: Class,
    ) -> Result<SetPermit<N>, SetError> {
        // A request sent at a declared limit can be taken back only while nothing was sent since,
        // and background takes only spare tokens. So all limits are asked before anything is taken.
        let listens = || self.weighed(weights).any(|(_, rate, _)| rate.law.listens());
        if class.is_background() || listens() {
            self.check(now, weights, class)?;
        }
        let mut permit = SetPermit::NOTHING;
        // A loop over indexes, which compiles to two takes in a row for a set of two.
        for limit in 0..N {
            let (Some(rate), weight @ 1..) = (&self.rates[limit], weights[limit]) else {
                continue;
            };
            match rate.ask(now, weight, class).take() {
                Ok(order) => permit.put(limit, SendPermit::with_order(now, weight, order)),
                Err(why) => return Err(self.refused(now, weights, class, &permit, limit, why)),
            }
        }
        Ok(permit)
    }

    /// Refuses a request that has to wait now.
    fn check(&self, now: Timestamp, weights: &[u32; N], class: Class) -> Result<(), SetError> {
        for (limit, rate, weight) in self.weighed(weights) {
            let checked = rate.ask(now, weight, class).check_now();
            checked.map_err(|error| SetError::Limit {
                limit,
                error: error.into(),
            })?;
        }
        match self.binding(now, weights, class) {
            Some(binding) => Err(binding.into()),
            None => Ok(()),
        }
    }

    /// Gives back the tokens of `permit`. Returns the error of a request that `limit` refused
    /// because of `why`.
    #[cold]
    fn refused(
        &self,
        now: Timestamp,
        weights: &[u32; N],
        class: Class,
        permit: &SetPermit<N>,
        limit: usize,
        why: AcquireError,
    ) -> SetError {
        for (_, rate, taken) in self.permitted(|limit| permit.get(limit)) {
            rate.ask(now, taken.weight(), class).take_back(taken);
        }
        self.refusal(now, weights, class, limit, why)
    }

    /// Returns the error of a request that `limit` has refused because of `why`.
    fn refusal(
        &self,
        now: Timestamp,
        weights: &[u32; N],
        class: Class,
        limit: usize,
        why: AcquireError,
    ) -> SetError {
        let AcquireError::NotInTime { wait } = why else {
            return SetError::Limit { limit, error: why };
        };
        let binding = Binding { limit, wait };
        let latest = self.binding(now, weights, class);
        latest
            .map_or(binding, |latest| latest.later(binding))
            .into()
    }

    /// Returns the limit that a request would have to wait for longest, `None` if it need not wait.
    fn binding(&self, now: Timestamp, weights: &[u32; N], class: Class) -> Option<Binding> {
        let waits = self.weighed(weights).filter_map(|(limit, rate, weight)| {
            let wait = rate.ask(now, weight, class).wait()?;
            Some(Binding { limit, wait })
        });
        waits.reduce(Binding::later)
    }

    /// Returns the whole tokens left of the limit with the least, and whether any limit is closed.
    pub(crate) fn room(&self, now: Timestamp, weights: &[u32; N], class: Class) -> (u64, bool) {
        let rooms = self
            .weighed(weights)
            .map(|(_, rate, weight)| rate.ask(now, weight, class).room());
        rooms.fold((u64::MAX, false), |(least, is_closed), (left, closed)| {
            (least.min(left), is_closed || closed)
        })
    }

    /// Returns the wait for the limit that is due last, how fast that limit mints, and which it is.
    pub(crate) fn ahead(
        &self,
        now: Timestamp,
        weights: &[u32; N],
        class: Class,
    ) -> Result<(Option<Duration>, [Duration; 3], usize), SetError> {
        for (limit, rate, weight) in self.weighed(weights) {
            let checked = rate.ask(now, weight, class).check();
            checked.map_err(|error| SetError::Limit {
                limit,
                error: error.into(),
            })?;
        }
        let Some(Binding { limit, wait }) = self.binding(now, weights, class) else {
            return Ok((None, [Duration::ZERO; 3], 0));
        };
        let mut binding = self.weighed(weights).filter(|(other, ..)| *other == limit);
        let pace = binding
            .next()
            .map(|(_, rate, weight)| rate.ask(now, weight, class).pace());
        Ok((Some(wait), pace.unwrap_or_default(), limit))
    }

    /// Takes a place in the line of each limit. Each line is first come, first served.
    ///
    /// The request is due when its last place is. If one limit refuses, the other places go back.
    ///
    /// # Errors
    ///
    /// The errors of [`try_acquire`](Self::try_acquire); having to wait is not an error.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use paceline::{SendRate, SendSet, Timestamp, law::PacedSettings};
    ///
    /// let second = Duration::from_secs(1);
    /// let settings = |n| PacedSettings::fixed(n, second)?.to_builder().burst(second).build();
    /// let requests = SendRate::paced(settings(5)?, Timestamp::ZERO);
    /// let tokens = SendRate::paced(settings(1_000)?, Timestamp::ZERO);
    /// let (set, now) = (SendSet::new([&requests, &tokens]), Timestamp::ZERO);
    /// let mut first = set.reserve(now, &[1, 900])?;
    /// let mut second = set.reserve(now, &[1, 900])?;
    /// assert!(first.claim(now).is_ok());
    /// let binding = second.claim(now).unwrap_err();
    /// assert_eq!((binding.limit, binding.wait), (1, Duration::from_millis(800)));
    /// drop(second); // gives back its request and its tokens
    /// assert!(set.try_acquire(now, &[4, 100]).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reserve(
        &self,
        now: Timestamp,
        weights: &[u32],
    ) -> Result<SetReservation<'_, N>, SetError> {
        let weights = self.checked(weights)?;
        self.reserve_as(now, &weights, Class::Foreground)
    }

    pub(crate) fn reserve_as(
        &self,
        now: Timestamp,
        weights: &[u32; N],
        class: Class,
    ) -> Result<SetReservation<'_, N>, SetError> {
        let held = SetGuard::take(&self.borrowed(), now, weights, class, None)?;
        Ok(SetReservation::new(held))
    }

    /// Returns a view of the set whose requests are [background](crate::Class::Background) in each
    /// line.
    #[must_use]
    pub const fn background(&self) -> Background<'_, Self> {
        Background::new(self)
    }

    /// Records the outcome of a request with each of its limits.
    ///
    /// A throttle is attributed to the limits that explain it. A declared limit explains a throttle
    /// if, by the report on this response, less was left than the request took. If no limit does,
    /// the throttle counts for every limit that is not declared, and for the declared limit with
    /// the least left. For the other limits the request was not throttled. Use
    /// [`record_by`](Self::record_by) where the service says which limit it was.
    ///
    /// Call it once for every response, after [`observe`](Self::observe).
    pub fn record(&self, now: Timestamp, permit: &SetPermit<N>, outcome: Outcome) {
        self.record_each(
            now,
            |limit| permit.get(limit),
            outcome,
            |rate, taken, outcome| {
                let _recorded = rate.record(now, taken, outcome);
            },
        );
    }

    /// Hands each rate of the request to `record`, with its permit and its part of the outcome.
    #[doc(hidden)]
    pub fn record_each(
        &self,
        now: Timestamp,
        permits: impl Fn(usize) -> Option<SendPermit>,
        outcome: Outcome,
        mut record: impl FnMut(&SendRate, SendPermit, Outcome),
    ) {
        let blamed = if outcome.is_throttled() {
            self.blamed(now, &permits)
        } else {
            [true; N]
        };
        for (limit, rate, taken) in self.permitted(permits) {
            record(rate, taken, part_of(outcome, blamed[limit]));
        }
    }

    /// Returns which limits explain a throttle.
    // Cold, because most responses are no throttle.
    #[cold]
    fn blamed(&self, now: Timestamp, permits: &impl Fn(usize) -> Option<SendPermit>) -> [bool; N] {
        // Each share is read once, because another response may change it meanwhile. So at least
        // one limit is blamed.
        let mut shares = [None; N];
        for (limit, rate, taken) in self.permitted(permits) {
            shares[limit] = rate.share_left(now, taken);
        }
        let least = shares.iter().flatten().min().copied();
        shares.map(|share| match (least, share) {
            (Some(0), share) => share == Some(0),
            (Some(least), Some(share)) => share == least,
            _ => true,
        })
    }

    /// Records the outcome of a request where the service says which `limits` throttled it.
    ///
    /// For the other limits the request was not throttled. Positions outside the set are ignored.
    pub fn record_by(
        &self,
        now: Timestamp,
        permit: &SetPermit<N>,
        outcome: Outcome,
        limits: &[usize],
    ) {
        for (limit, rate, taken) in self.permitted(|limit| permit.get(limit)) {
            let outcome = part_of(outcome, limits.contains(&limit));
            let _recorded = rate.record(now, taken, outcome);
        }
    }

    /// Takes in what a service declares in a response. Each report goes to the rates that obey its
    /// dimension. See [`SendRate::observe`].
    #[allow(
        clippy::must_use_candidate,
        reason = "called for its effect, which the models' atomics hide"
    )]
    pub fn observe(
        &self,
        now: Timestamp,
        permit: &SetPermit<N>,
        reports: &LimitReports,
    ) -> Observed {
        let mut most = Observed::Nothing;
        self.observe_each(
            now,
            |limit| permit.get(limit),
            reports,
            |_, observed| {
                most = most.max(observed);
            },
        );
        most
    }

    /// Like [`observe`](Self::observe), but passes the result of each rate to `observed`.
    #[doc(hidden)]
    pub fn observe_each(
        &self,
        now: Timestamp,
        permits: impl Fn(usize) -> Option<SendPermit>,
        reports: &LimitReports,
        mut observed: impl FnMut(&SendRate, Observed),
    ) {
        for (_, rate, taken) in self.permitted(permits) {
            observed(rate, rate.observe(now, taken, reports));
        }
    }

    /// Corrects the tokens of a request to its true `costs`, one for each limit. Call it once for
    /// each request. See [`SendRate::settle`].
    ///
    /// # Errors
    ///
    /// [`SetError::Weights`] if there is not one cost for each rate. Nothing is settled then.
    /// [`SetError::Limit`] if a debit does not fit a line. The other limits are settled all the
    /// same.
    pub fn settle(
        &self,
        now: Timestamp,
        permit: SetPermit<N>,
        costs: &[u32],
    ) -> Result<(), SetError> {
        let (given, rates) = (costs.len(), self.rates().count());
        if given != rates {
            return Err(SetError::Weights { given, rates });
        }
        let mut settled = Ok(());
        for (limit, rate, taken) in self.permitted(|limit| permit.get(limit)) {
            let cost = costs.get(limit).copied().unwrap_or(taken.weight());
            if let Err(error) = rate.settle(now, taken, cost) {
                settled = Err(SetError::Limit {
                    limit,
                    error: error.into(),
                });
            }
        }
        settled
    }
}

/// Requests of a set that have time: see [`SendSet::background`].
impl<'a, R: Deref<Target = SendRate>, const N: usize> Background<'a, SendSet<R, N>> {
    /// Takes the weight of each limit now, or takes nothing.
    ///
    /// # Errors
    ///
    /// The errors of [`SendSet::try_acquire`]. The wait is an estimate.
    pub fn try_acquire(&self, now: Timestamp, weights: &[u32]) -> Result<SetPermit<N>, SetError> {
        let set = self.of();
        set.take(now, &set.checked(weights)?, Class::Background)
    }

    /// Takes a place behind the line of each limit.
    ///
    /// The request is due when its last place is.
    ///
    /// # Errors
    ///
    /// The errors of [`SendSet::reserve`].
    pub fn reserve(
        &self,
        now: Timestamp,
        weights: &[u32],
    ) -> Result<SetReservation<'a, N>, SetError> {
        let set = self.of();
        set.reserve_as(now, &set.checked(weights)?, Class::Background)
    }
}

/// Returns the outcome of a request for one of its limits. A throttle counts only if the limit is
/// blamed.
const fn part_of(outcome: Outcome, is_blamed: bool) -> Outcome {
    if is_blamed || !outcome.is_throttled() {
        outcome
    } else {
        Outcome::NotThrottled
    }
}

/// The laws of the rates, in one line.
impl<R: Deref<Target = SendRate>, const N: usize> fmt::Debug for SendSet<R, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SendSet(")?;
        for (limit, rate) in self.rates().enumerate() {
            let comma = if limit == 0 { "" } else { ", " };
            write!(f, "{comma}{limit}: {:?}", rate.law())?;
        }
        f.write_str(")")
    }
}
