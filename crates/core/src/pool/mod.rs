//! One of several limiters for one request: a pool of keys, accounts or endpoints.
//!
//! A request stands in the line of each member. Its places are reservations like any others, so the
//! order of each line stays as it is. The first turn that comes is claimed, and the other places go
//! back like the places of a cancelled wait. A place holds nothing that another thread waits for,
//! so pools that overlap never wait for each other.

mod error;
mod guard;
mod limit;
mod permit;

pub use error::PoolError;
#[doc(hidden)]
pub use guard::PoolGuard;
pub use guard::PoolReservation;
pub use permit::PoolPermit;

use core::cmp::Reverse;
use core::fmt;
use core::time::Duration;

use crate::law::{LimitReports, Observed};
use crate::limit::{AskedFor, Deadline, Limit};
use crate::set::MOST_RATES;
use crate::{AcquireError, Class, Outcome, Timestamp};

/// The state of a member for a request at one moment, from which a [`SendPool`] chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemberSnapshot {
    /// The position of the member in the pool.
    pub index: usize,
    /// The whole tokens that are left of the declared limit with the least, or else in the bucket.
    /// For a set, the tokens of the limit with the least. `u64::MAX` while nothing is limited.
    pub left: u64,
    /// Whether the member is shut, paused or spent: no token can be had today.
    pub is_closed: bool,
}

/// How a pool ranks its members by default: by what is [left](MemberSnapshot::left).
pub type MostLeft = fn(&MemberSnapshot) -> Option<u64>;

/// Several limiters behind one call, of which one serves each request: API keys, accounts or
/// endpoints, each with a limit for itself.
///
/// A request goes by the first member that lets it go. A member is a pointer to a
/// [`SendRate`](crate::SendRate), or a [`SendSet`](crate::SendSet) if each key has several limits.
/// Members are named by their position, called the *index*. [`PoolPermit::index`] says which member
/// serves a request. The outcome of the request is recorded with this member alone. `SendLimiter`
/// waits for the tokens of a pool.
///
/// - **Now.** [`try_acquire`](Self::try_acquire) asks the members in the order of what is left, and
///   takes the first tokens that it gets. A member that is shut, paused or spent is passed over.
///   If all members are, the error is [`PoolError::Spent`].
/// - **Later.** A request that waits takes a place in the line of each member: first come, first
///   served in each. The request takes the first turn that comes. Its other places go back, and the
///   requests behind move up. So a request waits no longer than in the line of any one member.
/// - **How long.** A request ahead may go by any member, so a wait is the time before which no turn
///   comes at today's rates, and a turn may come later. A deadline refuses a request at once only
///   if the turn surely comes too late.
/// - **Beside others.** A request of a member alone counts every waiter of the pool as ahead,
///   though that waiter may go by another member. So its forecast is too long, and so is the
///   `waiting` of a rate that several sets share: a waiter has a place there for each set.
///
/// `N` is the most members that the pool has room for, eight by default. A member may also be used
/// alone, and belong to several pools and sets, but stands once in a pool. Sets of one pool may
/// share a rate. For keys with a limit each and a common limit of the account, make a pool of sets
/// `[key, account]`. No call allocates or waits for another thread. A request that waits has a
/// place in `N` lines, so that the cost of a wait grows with `N`.
///
/// # Choice
///
/// [`choosing`](Self::choosing) ranks the members for each request. It is for members of different
/// weight, for conversations that should stay with a member, and for keys that the service rejected
/// (401).
///
/// # Memory ordering
///
/// No ordering is promised, as with [`SendRate`](crate::SendRate). The grants of each member are in
/// one order that all threads agree on.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use paceline::{Outcome, SendPool, SendRate, Timestamp, law::PacedSettings};
///
/// // Two keys of 40 requests a minute.
/// let settings = PacedSettings::fixed(40, Duration::from_secs(60))?;
/// let keys = [(); 2].map(|()| SendRate::paced(settings, Timestamp::ZERO));
/// let pool = SendPool::new(keys.each_ref())?;
/// let now = Timestamp::ZERO;
/// let first = pool.try_acquire(now, 1)?;
/// let second = pool.try_acquire(now, 1)?;
/// assert_eq!([first.index(), second.index()], [0, 1]);
///
/// // ... sent with the second key, and answered with 429:
/// pool.record(now, second, Outcome::ThrottledFor(Duration::from_secs(30)));
///
/// let mut place = pool.reserve(now, 1)?;
/// let later = Timestamp::from_nanos(1_600_000_000); // a token of the first key takes 1.5 s
/// assert!(place.claim(now).is_err());
/// assert_eq!(place.claim(later).map(|permit| permit.index()), Ok(0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct SendPool<L, const N: usize = MOST_RATES, F = MostLeft> {
    /// The members, then clones of the first member up to `N`.
    room: [L; N],
    count: usize,
    choose: F,
}

impl<L: Limit + Clone, const N: usize> SendPool<L, N> {
    /// Creates a pool of `members`, with no room for more.
    ///
    /// # Errors
    ///
    /// The errors of [`of`](Self::of).
    pub fn new(members: [L; N]) -> Result<Self, PoolError<L::Error>> {
        Self::of(members)
    }

    /// Creates a pool of all `members`, up to `N`.
    ///
    /// # Errors
    ///
    /// [`PoolError::Members`] if there are no members, or more than `N`. [`PoolError::Twice`] if a
    /// limiter is given twice. [`PoolError::Member`] with the index of a set that has a rate twice,
    /// or not as many rates as the first set.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use paceline::{ControlLaw, SendPool, SendRate, Timestamp, pool::PoolError};
    ///
    /// let key = || Arc::new(SendRate::new(ControlLaw::Aws, Timestamp::ZERO));
    /// let pool = SendPool::<_, 32>::of((0..20).map(|_| key()))?;
    /// assert!(pool.try_acquire(Timestamp::ZERO, 1).is_ok());
    ///
    /// let twice = [key(), key()];
    /// let twice = [&twice[0], &twice[1], &twice[0]].map(Arc::clone);
    /// assert_eq!(SendPool::new(twice).unwrap_err(), PoolError::Twice { members: [0, 2] });
    /// # Ok::<(), PoolError<paceline::AcquireError>>(())
    /// ```
    pub fn of(members: impl IntoIterator<Item = L>) -> Result<Self, PoolError<L::Error>> {
        let mut members = members.into_iter().fuse();
        let mut count = 0_usize;
        let Some(first) = members.next() else {
            return Err(PoolError::Members { given: 0, most: N });
        };
        let mut next = Some(first.clone());
        let room = core::array::from_fn(|_| {
            let member = next.take();
            count = count.saturating_add(member.is_some().into());
            next = members.next();
            member.unwrap_or_else(|| first.clone())
        });
        let more = usize::from(next.is_some()).saturating_add(members.count());
        if more > 0 {
            let given = count.saturating_add(more);
            return Err(PoolError::Members { given, most: N });
        }
        let choose: MostLeft = |member| Some(member.left);
        let pool = Self {
            room,
            count,
            choose,
        };
        for (index, member) in pool.members().iter().enumerate() {
            let earlier = pool.members().iter().take(index);
            if let Some(twice) = earlier
                .into_iter()
                .position(|earlier| member.is_same(earlier))
            {
                let members = [twice, index];
                return Err(PoolError::Twice { members });
            }
            member.check_like(&first).map_err(of(index))?;
        }
        Ok(pool)
    }
}

impl<L, const N: usize, F> SendPool<L, N, F> {
    /// Ranks the members for each request by `choose`, instead of by the tokens that are left.
    ///
    /// Among the members that have tokens, the member with the highest rank serves the request.
    /// Equal ranks are ordered by the tokens left. A request that waits stands in the line of each
    /// member that has a rank, whatever the rank is. A member without a rank (`None`) is left
    /// alone. The function is called once for each member when a request is made, or when the
    /// request begins to wait.
    ///
    /// # Examples
    ///
    /// A conversation stays with a member while the member has tokens, and a rejected key is left
    /// alone:
    ///
    /// ```
    /// use std::sync::{Arc, atomic::{AtomicBool, Ordering::Relaxed}};
    /// use paceline::{ControlLaw, SendPool, SendRate, Timestamp, pool::PoolError};
    ///
    /// let key = || Arc::new(SendRate::new(ControlLaw::Aws, Timestamp::ZERO));
    /// let pool = SendPool::new([key(), key(), key()])?;
    /// let rejected = [const { AtomicBool::new(false) }; 3];
    /// let conversation = 7;
    /// let sticky = pool.choosing(|member| {
    ///     let is_rejected = rejected[member.index].load(Relaxed);
    ///     (!is_rejected).then_some(u64::from(member.index == conversation % 3))
    /// });
    /// let now = Timestamp::ZERO;
    /// assert_eq!(sticky.try_acquire(now, 1)?.index(), 1);
    /// rejected[1].store(true, Relaxed); // 401
    /// assert_eq!(sticky.try_acquire(now, 1)?.index(), 0);
    /// # Ok::<(), PoolError<paceline::AcquireError>>(())
    /// ```
    pub fn choosing<G>(self, choose: G) -> SendPool<L, N, G>
    where
        G: Fn(&MemberSnapshot) -> Option<u64>,
    {
        SendPool {
            room: self.room,
            count: self.count,
            choose,
        }
    }

    /// Returns the members, in the order of their indexes.
    #[must_use]
    pub fn members(&self) -> &[L] {
        self.room.get(..self.count).unwrap_or(&self.room)
    }
}

impl<L, const N: usize, F> SendPool<L, N, F>
where
    L: Limit<Weights: Copy> + Clone,
    F: Fn(&MemberSnapshot) -> Option<u64>,
{
    /// Returns the state of each member for a request of `weights` at `now`, in the order of the
    /// indexes.
    pub fn snapshot<W>(&self, now: Timestamp, weights: W) -> impl Iterator<Item = MemberSnapshot>
    where
        L: AskedFor<W>,
    {
        let weights = self.weigh_all(weights);
        let all = self.members().iter().enumerate();
        all.map(move |(index, member)| look(index, member, now, &weights, Class::Foreground))
    }

    fn weigh_all<W>(&self, weights: W) -> L::Weights
    where
        L: AskedFor<W>,
    {
        const { assert!(N > 0, "a pool has a member") };
        self.room[0].weigh(weights)
    }

    /// Takes the tokens of the first member that has them, by the [choice](Self#choice), or takes
    /// nothing. `weights` is a number of tokens if the members are rates, and an array of numbers
    /// if the members are sets.
    ///
    /// # Errors
    ///
    /// [`PoolError::Member`] with the member whose tokens would come first, and its error. The wait
    /// is exact while no other caller takes the tokens and the rates stay the same.
    /// [`PoolError::Spent`] if each member is shut, paused or spent. [`PoolError::NotChosen`] if no
    /// member has a rank.
    pub fn try_acquire<W>(
        &self,
        now: Timestamp,
        weights: W,
    ) -> Result<PoolPermit<L::Permit>, PoolError<L::Error>>
    where
        L: AskedFor<W>,
    {
        self.take(now, self.weigh_all(weights), Class::Foreground)
    }

    /// Takes a place in the line of each member. Each line is first come, first served. A request
    /// that need not wait takes its tokens at once.
    ///
    /// # Errors
    ///
    /// The errors of [`try_acquire`](Self::try_acquire); having to wait is not an error.
    pub fn reserve<W>(
        &self,
        now: Timestamp,
        weights: W,
    ) -> Result<PoolReservation<L::Ref<'_>, N>, PoolError<L::Error>>
    where
        L: AskedFor<W>,
    {
        let (weights, never) = (self.weigh_all(weights), Deadline::Never);
        let held = self
            .borrowed()
            .hold(weights, Class::Foreground, never, || now)?;
        Ok(PoolReservation(held.0))
    }

    /// Records the outcome of a request with the member that served it. Call it once for every
    /// response. A permit of another pool is ignored if this pool has no member of the same index.
    pub fn record(&self, now: Timestamp, permit: PoolPermit<L::Permit>, outcome: Outcome) {
        self.note(|| now, permit, outcome);
    }

    /// Takes in what the service declares about the limits of the member that served the request:
    /// see [`SendRate::observe`](crate::SendRate::observe).
    #[allow(
        clippy::must_use_candidate,
        reason = "called for its effect, which the models' atomics hide"
    )]
    pub fn observe(
        &self,
        now: Timestamp,
        permit: PoolPermit<L::Permit>,
        reports: &LimitReports,
    ) -> Observed {
        self.hear(now, permit, reports)
    }

    /// Returns the pool of references to the same members.
    fn borrowed(&self) -> SendPool<L::Ref<'_>, N, &F> {
        SendPool {
            room: self.room.each_ref().map(L::by_ref),
            count: self.count,
            choose: &self.choose,
        }
    }

    fn order(&self, now: Timestamp, weights: &L::Weights, class: Class) -> Order<N> {
        let mut ranked = core::array::from_fn(|index| {
            let member = self.members().get(index);
            let seen = member.map(|member| look(index, member, now, weights, class));
            let rank = |seen: MemberSnapshot| {
                let rank = (self.choose)(&seen)?;
                Some((!seen.is_closed, rank, seen.left))
            };
            (seen.and_then(rank), Reverse(index))
        });
        ranked.sort_unstable_by(|one, other| other.cmp(one));
        Order(ranked)
    }

    /// Takes the tokens of the first member in `order` that has them.
    fn take_by(
        &self,
        order: &Order<N>,
        now: Timestamp,
        weights: L::Weights,
        class: Class,
    ) -> Result<PoolPermit<L::Permit>, PoolError<L::Error>> {
        let mut refusal = None;
        let asked = order.first().count();
        for (place, index) in order.all().enumerate() {
            let Some(member) = self.members().get(index) else {
                continue;
            };
            let error = if place < asked {
                match member.take_now(weights, class, || now) {
                    Ok(permit) => return Ok(PoolPermit::new(index, permit)),
                    Err(error) => error,
                }
            } else {
                // A closed member may have the tokens sooner than those that are open.
                match member.ahead(now, &weights, class) {
                    Ok((wait, _, limit)) => {
                        let wait = wait.unwrap_or(Duration::from_nanos(1));
                        L::refused(limit, 0, AcquireError::NotInTime { wait })
                    }
                    Err(error) => error,
                }
            };
            refusal = Some(sooner::<L>(refusal, (index, error)));
        }
        Err(order.refused::<L>(refusal))
    }

    fn take(
        &self,
        now: Timestamp,
        weights: L::Weights,
        class: Class,
    ) -> Result<PoolPermit<L::Permit>, PoolError<L::Error>> {
        let order = self.order(now, &weights, class);
        self.take_by(&order, now, weights, class)
    }
}

fn look<L: Limit>(
    index: usize,
    member: &L,
    now: Timestamp,
    weights: &L::Weights,
    class: Class,
) -> MemberSnapshot {
    let (left, is_closed) = member.room(now, weights, class);
    MemberSnapshot {
        index,
        left,
        is_closed,
    }
}

/// A member that refused, and its error.
type Refusal<L> = (usize, <L as Limit>::Error);

/// Returns a function that turns an error of the member at `index` into an error of the pool.
fn of<E>(index: usize) -> impl FnOnce(E) -> PoolError<E> {
    move |error| PoolError::Member { index, error }
}

/// Returns the refusal with the shorter wait, or `first` if both waits are equal.
fn sooner<L: Limit>(first: Option<Refusal<L>>, second: Refusal<L>) -> Refusal<L> {
    let wait = |refusal: &Refusal<L>| L::wait_of(&refusal.1).unwrap_or(Duration::MAX);
    match first {
        Some(first) if wait(&first) <= wait(&second) => first,
        _ => second,
    }
}

/// Whether a member is open, its rank, and the tokens left.
type Rank = (bool, u64, u64);

/// The order in which members are asked: first the open members, by rank and by the tokens left.
/// The closed members follow, then the members without a rank.
struct Order<const N: usize>([(Option<Rank>, Reverse<usize>); N]);

impl<const N: usize> Order<N> {
    /// Returns the members that have a rank.
    fn all(&self) -> impl Iterator<Item = usize> {
        let ranked = self.0.iter().take_while(|(rank, _)| rank.is_some());
        ranked.map(|(_, Reverse(index))| *index)
    }

    /// Returns the members that are asked: the open members, or all with a rank if none is open.
    fn first(&self) -> impl Iterator<Item = usize> {
        let open = self.0.iter().filter(|(rank, _)| is_open(*rank)).count();
        self.all().take(if open > 0 { open } else { N })
    }

    /// Returns the error of a request that all members refused. `refusal` is of the member that
    /// would have let it go first.
    fn refused<L: Limit>(&self, refusal: Option<Refusal<L>>) -> PoolError<L::Error> {
        let Some((index, error)) = refusal else {
            return PoolError::NotChosen;
        };
        match L::wait_of(&error) {
            Some(wait) if !is_open(self.0.first().and_then(|(rank, _)| *rank)) => {
                PoolError::Spent { wait }
            }
            _ => PoolError::Member { index, error },
        }
    }
}

fn is_open(rank: Option<Rank>) -> bool {
    rank.is_some_and(|(is_open, ..)| is_open)
}

/// The number of members.
impl<L, const N: usize, F> fmt::Debug for SendPool<L, N, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SendPool({} members)", self.count)
    }
}
