//! One thing that is measured: an operation, and the object that threads share.

use alloc::sync::Arc;
use core::fmt;
use core::hint::black_box;

use crossbeam_utils::CachePadded;

use crate::path::Path;
use crate::target::{Bound, Target};

/// Which of the threads that work at once this is.
#[derive(Clone, Copy, Debug)]
pub struct Seat {
    /// From 0.
    pub thread: usize,
    /// How many there are.
    pub threads: usize,
}

/// Does the operation so many times, and returns how many were granted.
pub type Runner = Box<dyn FnMut(u64) -> u64>;

/// The object that threads share. Each thread makes itself a runner.
pub type Stage = Box<dyn Fn(Seat) -> Runner + Send + Sync>;

/// Whose code it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// This crate's.
    Ours,
    /// Another crate's.
    Peer,
    /// The same algorithm under a mutex.
    Twin,
    /// What the hardware asks for the least that has to be done.
    Limit,
}

/// How often an operation writes a cache line that other threads write too.
///
/// Paceline's are counted by `stall-tests`, the peers' were read in their source; a lock is taken
/// and given back, and a shared reference counted up and down: two each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writes(pub u32);

/// One thing that is measured.
pub struct Case {
    /// What it is an alternative for.
    pub path: Path,
    /// Its name, unique together with the path.
    pub name: &'static str,
    /// Whose code it is.
    pub whose: Whose,
    /// Shared lines written by one operation.
    pub writes: Writes,
    /// Whether it is to be granted every time, or never.
    pub granted: bool,
    /// Whether it runs under an instruction counter: not with a time stamp counter that is
    /// calibrated.
    pub countable: bool,
    /// What it is held to.
    pub target: Option<Target>,
    /// Makes the object.
    pub stage: fn() -> Stage,
}

impl Case {
    /// Describes an operation that is granted every time.
    pub const fn new(
        path: Path,
        whose: Whose,
        name: &'static str,
        writes: u32,
        stage: fn() -> Stage,
    ) -> Self {
        Self {
            path,
            name,
            whose,
            writes: Writes(writes),
            granted: true,
            countable: true,
            target: None,
            stage,
        }
    }

    /// Marks it as refused every time.
    #[must_use]
    pub const fn refused(mut self) -> Self {
        self.granted = false;
        self
    }

    /// Marks it as one that reads a calibrated time stamp counter.
    #[must_use]
    pub const fn uncountable(mut self) -> Self {
        self.countable = false;
        self
    }

    /// Holds it to bounds. `why_not` stands beside one that is missed.
    #[must_use]
    pub const fn target(mut self, bounds: &'static [Bound], why_not: &'static str) -> Self {
        self.target = Some(Target { bounds, why_not });
        self
    }

    /// Returns the path and the name.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}/{}", self.path.key(), self.name)
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case")
            .field("id", &self.id())
            .finish_non_exhaustive()
    }
}

/// Makes a stage of the object `shared` and of the operation `op`, which says whether it was
/// granted.
///
/// `local` makes the state of one thread. The object shares no cache line. The operation is
/// compiled into the loop; the compiler knows neither the object's value nor how the answer is
/// used.
pub fn stage<S, L>(
    shared: S,
    local: impl Fn(&S, Seat) -> L + Send + Sync + 'static,
    op: impl Fn(&S, &mut L) -> bool + Copy + Send + Sync + 'static,
) -> Stage
where
    S: Send + Sync + 'static,
    L: 'static,
{
    let shared = Arc::new(CachePadded::new(shared));
    Box::new(move |seat| {
        let shared = Arc::clone(&shared);
        let mut local = local(&shared, seat);
        Box::new(move |times| {
            let mut granted = 0;
            for _ in 0..times {
                granted += u64::from(black_box(op(black_box(&**shared), &mut local)));
            }
            granted
        })
    })
}

/// As [`stage`], where a thread has nothing for itself.
pub fn plain<S: Send + Sync + 'static>(
    shared: S,
    op: impl Fn(&S) -> bool + Copy + Send + Sync + 'static,
) -> Stage {
    stage(shared, |_, _| (), move |shared, ()| op(shared))
}
