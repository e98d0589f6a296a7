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

#[cfg(test)]
mod tests {
    use core::future::Future;
    use core::pin::pin;
    use core::task::{Context, Poll, Waker};

    use super::*;

    /// A clock that stands.
    #[derive(Debug)]
    struct Stands;

    impl Clock for Stands {
        fn now(&self) -> Timestamp {
            Timestamp::from_nanos(5)
        }
    }

    #[tokio::test]
    async fn a_waiter_is_counted_and_takes_its_token_after_the_head() {
        let pool = Pool::new();
        pool.good_until(Timestamp::from_nanos(10));
        let head = pool.line.try_acquire();
        let mut context = Context::from_waker(Waker::noop());
        {
            let mut waiter = pin!(take(&pool, &Stands, None));
            assert!(waiter.as_mut().poll(&mut context).is_pending());
            assert_eq!(pool.waiting.load(Relaxed), 1);
            pool.pour(1);
            assert!(waiter.as_mut().poll(&mut context).is_pending());
            drop(head);
            let taken = waiter.as_mut().poll(&mut context);
            assert_eq!(taken, Poll::Ready(Ok(Timestamp::from_nanos(5))));
        }
        assert_eq!((pool.waiting.load(Relaxed), pool.available()), (0, 0));
        // Without tokens a free line is no turn.
        let mut waiter = pin!(take(&pool, &Stands, None));
        assert!(waiter.as_mut().poll(&mut context).is_pending());
    }

    #[tokio::test]
    async fn a_newcomer_does_not_overtake_the_head() {
        let pool = Pool::new();
        pool.good_until(Timestamp::from_nanos(10));
        pool.pour(1);
        let head = pool.line.try_acquire();
        let mut context = Context::from_waker(Waker::noop());
        let mut waiter = pin!(take(&pool, &Stands, None));
        assert!(waiter.as_mut().poll(&mut context).is_pending());
        assert_eq!(pool.available(), 1);
        drop(head);
    }

    #[tokio::test]
    async fn a_token_that_is_there_is_taken_without_a_word_to_the_task() {
        let pool = Pool::new();
        pool.good_until(Timestamp::from_nanos(10));
        pool.pour(1);
        assert!(take(&pool, &Stands, None).await.is_ok());
        let mut context = Context::from_waker(Waker::noop());
        assert!(pin!(pool.need.notified()).poll(&mut context).is_pending());
    }

    #[test]
    fn a_passed_deadline_shows_the_wait() {
        let wait = Duration::from_millis(3);
        let text = "no token before the deadline; perhaps in 3ms";
        assert_eq!(DeadlinePassed { wait }.to_string(), text);
    }
}
