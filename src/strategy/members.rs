//! The members of a strategy, of which one serves each attempt.

use alloc::sync::Arc;
use core::{fmt, time::Duration};

use super::{refusal::NotAdmitted, request::SendRequest, token::Granted};
use crate::pool::{MemberSnapshot, PoolError, PoolGuard, PoolPermit};
use crate::seam::Deadline;
use crate::set::{MOST_RATES, SetPermit};
use crate::wait::Limit;
use crate::{SendPool, SendRate, SendSet, Timestamp};

/// The most members of a strategy.
pub(super) const MOST_MEMBERS: usize = 16;

type Rank = dyn Fn(&MemberSnapshot) -> Option<u64> + Send + Sync;

/// The caller's function that ranks the members.
#[derive(Clone)]
pub(super) struct Choice(Arc<Rank>);

impl Choice {
    pub(super) fn new(
        choose: impl Fn(&MemberSnapshot) -> Option<u64> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(choose))
    }
}

impl fmt::Debug for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

/// The members, each a set of send rates.
pub(super) struct Members {
    pool: SendPool<SendSet<Arc<SendRate>>, MOST_MEMBERS>,
    choice: Option<Choice>,
}

/// The places of an attempt in the lines of its members.
pub(super) type PoolPlaces = PoolGuard<SendSet<Arc<SendRate>>, MOST_MEMBERS>;

/// The result for an attempt that asks the members.
pub(super) enum Asked {
    Went(Granted),
    InLine(Box<PoolPlaces>),
}

impl From<PoolPermit<SetPermit<MOST_RATES>>> for Granted {
    fn from(permit: PoolPermit<SetPermit<MOST_RATES>>) -> Self {
        Self {
            member: permit.index(),
            permit: permit.permit(),
        }
    }
}

impl Members {
    /// Creates the members from `sets`. `None` if there are fewer than two sets, or too many.
    pub(super) fn new(
        sets: impl ExactSizeIterator<Item = SendSet<Arc<SendRate>>>,
        choice: Option<Choice>,
    ) -> Option<Self> {
        if sets.len() < 2 {
            return None;
        }
        let pool = SendPool::of(sets).ok()?;
        Some(Self { pool, choice })
    }

    /// Returns the set of each member.
    pub(super) fn all(&self) -> &[SendSet<Arc<SendRate>>] {
        self.pool.members()
    }

    /// Takes the tokens of `request` from a member that has them, or a place in each member's line.
    pub(super) fn ask(
        &self,
        now: Timestamp,
        request: SendRequest<'_>,
        patience: Option<Duration>,
    ) -> Result<Asked, NotAdmitted> {
        let rank = |member: &MemberSnapshot| match (request.member, &self.choice) {
            (Some(only), _) => (member.index == only).then_some(0),
            (None, Some(choice)) => (choice.0)(member),
            (None, None) => Some(member.left),
        };
        let Some(first) = self.all().first() else {
            return Err(NotAdmitted::NotChosen);
        };
        let deadline = patience.map_or(Deadline::Never, Deadline::Within);
        let asked = request.up_to_capacity(first, |weights| {
            let (weights, class) = (Ok(*weights), request.class);
            let pool = self.pool.by_ref().choosing(rank);
            if let Ok(granted) = pool.take_now(weights, class, || now) {
                return Ok(Ok(Asked::Went(granted.into())));
            }
            let pool = self.pool.clone().choosing(rank);
            match pool.hold(weights, class, deadline, || now) {
                Ok((places, _)) => Ok(Ok(Asked::InLine(Box::new(places)))),
                Err(PoolError::Member { error, .. }) => Err(error),
                Err(error) => Ok(Err(error.into())),
            }
        });
        asked?
    }
}
