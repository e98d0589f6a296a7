//! Time as the caller has it: a number that moves on with every operation and costs next to
//! nothing.

use alloc::sync::Arc;
use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use core::time::Duration;

use crossbeam_utils::CachePadded;

use crate::case::Seat;

/// How far time moves on from one operation to the next, all threads together: a million a second.
///
/// That is slower than the operations follow upon each other here, so that what is done once in so
/// much time is charged to fewer of them, which favours the peers only.
pub const STEP: u64 = 1_000;

/// How many operations a thread does before it looks at what time the others have.
const APART: u32 = 1024;

std::thread_local! {
    static TOLD: Cell<u64> = const { Cell::new(0) };
}

/// The time that all threads at a stage agree on, more or less.
#[derive(Clone, Debug)]
pub struct SharedTime(Arc<CachePadded<AtomicU64>>);

impl SharedTime {
    /// Begins at `nanos`.
    #[must_use]
    pub fn new(nanos: u64) -> Self {
        Self(Arc::new(CachePadded::new(AtomicU64::new(nanos))))
    }

    /// Returns a thread's own time, which runs at its part of the common pace and never goes back.
    #[must_use]
    pub fn at(&self, seat: Seat) -> CallerTime {
        CallerTime {
            shared: self.clone(),
            now: self.0.load(Relaxed),
            step: STEP * seat.threads as u64,
            left: APART,
            span: Duration::from_nanos(self.0.load(Relaxed)),
            span_step: Duration::from_nanos(STEP * seat.threads as u64),
        }
    }
}

/// A thread's own time.
#[derive(Debug)]
pub struct CallerTime {
    shared: SharedTime,
    now: u64,
    step: u64,
    left: u32,
    /// `now`, for peers that take a span.
    span: Duration,
    span_step: Duration,
}

impl CallerTime {
    /// Moves on, and returns the time in nanoseconds.
    #[inline]
    pub fn tick(&mut self) -> u64 {
        self.now += self.step;
        self.left -= 1;
        if self.left == 0 {
            self.agree();
        }
        self.now
    }

    /// As [`tick`](Self::tick), without a division for the other unit.
    #[inline]
    pub fn tick_duration(&mut self) -> Duration {
        self.span += self.span_step;
        self.left -= 1;
        if self.left == 0 {
            self.now = u64::try_from(self.span.as_nanos()).unwrap_or(u64::MAX);
            self.agree();
            self.span = Duration::from_nanos(self.now);
        }
        self.span
    }

    /// Moves to the latest time of all threads, so that no thread asks with a time long past.
    #[cold]
    fn agree(&mut self) {
        let latest = self.shared.0.fetch_max(self.now, Relaxed);
        self.now = self.now.max(latest);
        self.left = APART;
    }
}

/// Sets what [`told`] returns on this thread, for clocks that are handed to a peer.
#[inline]
pub fn tell(nanos: u64) {
    TOLD.set(nanos);
}

/// Returns what this thread was told.
#[inline]
#[must_use]
pub fn told() -> u64 {
    TOLD.get()
}
