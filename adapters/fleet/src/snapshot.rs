//! What a member shows of itself.

use core::fmt;
use core::time::Duration;

use crate::fault::EngineFault;

/// One member of a scope. At the engine it is the field `m<id>` of the scope's key.
///
/// A member whose record was broken goes on under another one.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct MemberId(pub(crate) u64);

impl MemberId {
    /// Returns an id that no other member has, by chance of one in 2⁶⁴.
    pub(crate) fn new() -> Self {
        Self(fastrand::u64(1..))
    }
}

/// Sixteen digits.
impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// As it is displayed.
impl fmt::Debug for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// How a member stands with its fleet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Standing {
    /// It has no lease, and no reason to think that the engine is away: nothing is let go.
    #[default]
    Joining,
    /// It spends what the engine grants.
    Leased,
    /// Its requests have waited for a second, and the engine granted nothing that they could spend.
    Starved,
    /// Its task has ended: the runtime was dropped, or the task panicked. Nothing is let go, and
    /// nothing will be.
    Ended,
    /// The engine is away: it goes on alone, [`Away::Alone`](crate::Away::Alone).
    Alone,
    /// The engine is away: nothing is let go.
    Closed,
    /// The engine is away: everything is let go.
    Open,
}

/// A member as it was when its task last looked: at most a third of the lease's validity ago, and
/// 10 ms while requests come.
///
/// Rates are in thousandths of a token per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BudgetSnapshot {
    /// Which member this is.
    pub member: MemberId,
    /// How the member stands with the fleet.
    pub standing: Standing,
    /// The member's fair share, by the last answer.
    pub share: u64,
    /// The fleet's rate, by the last answer: the allowance, or less if the service throttles.
    pub rate: u64,
    /// What all may send, by the last answer: the least that a member with requests has said.
    pub allowance: u64,
    /// What this member would send if it were let.
    pub demand: u64,
    /// Why requests wait, if the service is shut: the time until the next request asks for all, by
    /// the last answer. Zero says that this may come at any time.
    pub shut: Option<Duration>,
    /// Whether this member asks for all: its next request is the knock.
    pub knocks: bool,
    /// How many members there are.
    pub members: u32,
    /// Tokens that are granted and not spent.
    pub held: u32,
    /// What is wrong with the engine, if the last ask came to nothing.
    pub fault: Option<EngineFault>,
    /// How many asks came to nothing.
    pub faults: u64,
    /// How many asks there were.
    pub asks: u64,
    /// Tokens that the engine granted.
    pub granted: u64,
    /// Tokens that were spent, one's own included.
    pub spent: u64,
    /// Tokens that were granted and not spent in time.
    pub expired: u64,
    /// Responses that were throttled.
    pub throttled: u64,
}
