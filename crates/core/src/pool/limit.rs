//! A pool as one limit, in a limiter or in another pool.

use core::time::Duration;

use super::guard::{Place, PoolGuard, foretold};
use super::{MemberSnapshot, PoolError, PoolPermit, SendPool, of};
use crate::law::{LimitReports, Observed};
use crate::limit::{Ahead, AskedFor, Deadline, Limit};
use crate::{AcquireError, Class, Outcome, Timestamp};

/// One of several limiters.
impl<L, const N: usize, F> Limit for SendPool<L, N, F>
where
    L: Limit<Weights: Copy> + Clone,
    F: Fn(&MemberSnapshot) -> Option<u64>,
{
    type Weights = L::Weights;
    type Permit = PoolPermit<L::Permit>;
    type Error = PoolError<L::Error>;
    type Held = PoolGuard<L, N>;
    type Ref<'a>
        = SendPool<L::Ref<'a>, N, &'a F>
    where
        Self: 'a;

    fn by_ref(&self) -> SendPool<L::Ref<'_>, N, &F> {
        self.borrowed()
    }

    fn take_now(
        &self,
        weights: L::Weights,
        class: Class,
        now: impl FnOnce() -> Timestamp,
    ) -> Result<Self::Permit, Self::Error> {
        self.take(now(), weights, class)
    }

    fn hold(
        self,
        weights: L::Weights,
        class: Class,
        deadline: Deadline,
        now: impl FnOnce() -> Timestamp,
    ) -> Result<(PoolGuard<L, N>, Option<Timestamp>), Self::Error> {
        let now = now();
        let (deadline, patience) = deadline.of(now).unzip();
        let order = self.order(now, &weights, class);
        let mut held = PoolGuard {
            places: [const { None }; N],
            claimed: None,
            nearest: 0,
        };
        match self.take_by(&order, now, weights, class) {
            Ok(permit) => {
                held.claimed = Some(permit);
                return Ok((held, deadline));
            }
            Err(PoolError::NotChosen) => return Err(PoolError::NotChosen),
            Err(_) => {}
        }
        let (mut ahead, mut refusal) = ([None; N], None);
        let members = |index| self.members().get(index);
        for (ahead, index) in ahead.iter_mut().zip(order.all()) {
            match members(index).map(|member| member.ahead(now, &weights, class)) {
                Some(Ok((wait, pace, limit))) => {
                    *ahead = Some((index, wait.unwrap_or_default(), pace, limit));
                }
                Some(Err(error)) => refusal = refusal.or(Some((index, error))),
                None => {}
            }
        }
        let ahead = ahead.into_iter().flatten();
        let (nearest, wait) = foretold(
            ahead
                .clone()
                .map(|(index, wait, pace, _)| (index, wait, pace)),
        );
        let mut limits = ahead.clone().filter(|(index, ..)| *index == nearest);
        let limit = limits.next().map(|(.., limit)| limit);
        let is_late = patience.is_some_and(|patience| wait > patience);
        if let Some(limit) = limit.filter(|_| is_late) {
            let error = L::refused(limit, 0, AcquireError::NotInTime { wait });
            return Err(order.refused::<L>(Some((nearest, error))));
        }
        for (place, (index, wait, pace, _)) in held.places.iter_mut().zip(ahead) {
            let queue = |member: L| member.hold(weights, class, Deadline::Never, || now);
            match members(index).cloned().map(queue) {
                Some(Ok((held, _))) => {
                    *place = Some(Place {
                        index,
                        held,
                        pace,
                        wait,
                    });
                }
                Some(Err(error)) => refusal = refusal.or(Some((index, error))),
                None => {}
            }
        }
        if held.places.iter().all(Option::is_none) {
            return Err(order.refused::<L>(refusal));
        }
        Ok((held, deadline))
    }

    fn hear(&self, now: Timestamp, permit: Self::Permit, reports: &LimitReports) -> Observed {
        let member = self.members().get(permit.index());
        member.map_or(Observed::Nothing, |member| {
            member.hear(now, permit.permit(), reports)
        })
    }

    fn note(&self, now: impl FnOnce() -> Timestamp, permit: Self::Permit, outcome: Outcome) {
        if let Some(member) = self.members().get(permit.index()) {
            member.note(now, permit.permit(), outcome);
        }
    }

    fn refused(member: usize, limit: usize, why: AcquireError) -> Self::Error {
        PoolError::Member {
            index: member,
            error: L::refused(limit, 0, why),
        }
    }

    fn wait_of(error: &Self::Error) -> Option<Duration> {
        match error {
            PoolError::Spent { wait } => Some(*wait),
            PoolError::Member { error, .. } => L::wait_of(error),
            _ => None,
        }
    }

    fn room(&self, now: Timestamp, weights: &L::Weights, class: Class) -> (u64, bool) {
        let rooms = self.members().iter();
        let rooms = rooms.map(|member| member.room(now, weights, class));
        rooms.fold((0, true), |(most, are_closed), (left, is_closed)| {
            (most.max(left), are_closed && is_closed)
        })
    }

    fn ahead(
        &self,
        now: Timestamp,
        weights: &L::Weights,
        class: Class,
    ) -> Result<Ahead, Self::Error> {
        let (mut all, mut refusal) = ([None; N], None);
        for (ahead, (index, member)) in all.iter_mut().zip(self.members().iter().enumerate()) {
            match member.ahead(now, weights, class) {
                Ok((wait, pace, _)) => *ahead = Some((index, wait.unwrap_or_default(), pace)),
                Err(error) => refusal = refusal.or(Some(of(index)(error))),
            }
        }
        let all = all.into_iter().flatten();
        let (nearest, wait) = foretold(all.clone());
        let mut paces = all.filter(|(index, ..)| *index == nearest);
        match (paces.next(), refusal) {
            (Some((_, _, pace)), _) => Ok((Some(wait), pace, nearest)),
            (None, refusal) => Err(refusal.unwrap_or(PoolError::NotChosen)),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        let others = other.members();
        let is_there = |member: &L| others.iter().any(|other| member.is_same(other));
        self.members().iter().any(is_there)
    }

    fn check_like(&self, first: &Self) -> Result<(), Self::Error> {
        let members = self.members().first().zip(first.members().first());
        members.map_or(Ok(()), |(own, first)| own.check_like(first).map_err(of(0)))
    }
}

impl<L, const N: usize, F, W> AskedFor<W> for SendPool<L, N, F>
where
    L: AskedFor<W, Weights: Copy> + Clone,
    F: Fn(&MemberSnapshot) -> Option<u64>,
{
    fn weigh(&self, weights: W) -> L::Weights {
        self.weigh_all(weights)
    }
}
