//! Waiting for a token: first come, first served, until a deadline. The only file that waits on a
//! caller's behalf.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use core::{error::Error, fmt, time::Duration};

use paceline::{Clock, Timestamp};
use tokio::time::Instant;

use crate::pool::Pool;

/// The deadline passed before there was a token. Nothing was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadlinePassed {
    /// How long it might have been still.
    pub wait: Duration,
}

impl fmt::Display for DeadlinePassed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no token before the deadline; perhaps in {:?}",
            self.wait
        )
    }
}

impl Error for DeadlinePassed {}

/// How often the head of the line looks without a notice, for a clock that another one moves.
const LOOK: Duration = Duration::from_millis(50);

/// A waiter, counted until dropped.
struct Waiting<'a>(&'a AtomicU64);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        // Relaxed: a count for the task to read, which publishes nothing.
        self.0.fetch_sub(1, Relaxed);
    }
}

/// Takes a token as soon as it is this caller's turn. Dropped, it gives the turn up and nothing is
/// lost.
pub(crate) async fn take(
    pool: &Pool,
    clock: &dyn Clock,
    deadline: Option<Instant>,
) -> Result<Timestamp, DeadlinePassed> {
    let now = clock.now();
    if pool.line.available_permits() > 0 && pool.take(now) {
        return Ok(now);
    }
    pool.waiting.fetch_add(1, Relaxed);
    let _counted = Waiting(&pool.waiting);
    pool.need.notify_one();
    let late = DeadlinePassed { wait: pool.hint() };
    let Some(deadline) = deadline else {
        return in_line(pool, clock).await.ok_or(late);
    };
    let taken = tokio::time::timeout_at(deadline, in_line(pool, clock)).await;
    taken.ok().flatten().ok_or(late)
}

/// Stands in line, and at its head waits for a token. The semaphore is fair.
async fn in_line(pool: &Pool, clock: &dyn Clock) -> Option<Timestamp> {
    let _head = pool.line.acquire().await.ok()?;
    loop {
        let poured = pool.poured.notified();
        let now = clock.now();
        if pool.take(now) {
            return Some(now);
        }
        // A notice that came before is kept: there is one head, and one permit.
        let _either = tokio::time::timeout(LOOK, poured).await;
    }
}
