//! Waiting for a token: first come, first served, until a deadline. The only file that waits on a
//! caller's behalf.

use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;
use core::{error::Error, fmt, time::Duration};
use std::sync::Arc;

use paceline::{Clock, Timestamp};
use tokio::time::Instant;

use crate::line::Place;
use crate::pool::Pool;
use crate::snapshot::MemberId;

/// The deadline passes before there is a token. Nothing was taken.
///
/// It is known as soon as the wait is longer than the time that is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadlinePassed {
    /// How long it might have been still.
    pub wait: Duration,
    /// The member that had no token.
    pub member: MemberId,
}

impl fmt::Display for DeadlinePassed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "member {} has no token before the deadline; perhaps in {:?}",
            self.member, self.wait
        )
    }
}

impl Error for DeadlinePassed {}

/// How often the head of the line looks without a notice, for a clock that another one moves.
const LOOK: Duration = Duration::from_millis(50);

/// Takes `weight` tokens as soon as it is this caller's turn. Dropped, it gives the turn up and
/// nothing is lost.
pub(crate) async fn take(
    pool: &Arc<Pool>,
    clock: &dyn Clock,
    weight: u32,
    deadline: Option<Instant>,
) -> Result<Timestamp, DeadlinePassed> {
    let now = clock.now();
    if pool.take_in_turn(now, weight) {
        return Ok(now);
    }
    let mut place = Place::take(pool, weight, false);
    let now = fill(&mut place, pool, clock, deadline).await?;
    place.goes();
    Ok(now)
}

/// Waits until `place` has all its tokens.
pub(crate) async fn fill(
    place: &mut Place,
    pool: &Pool,
    clock: &dyn Clock,
    deadline: Option<Instant>,
) -> Result<Timestamp, DeadlinePassed> {
    loop {
        let now = clock.now();
        let looked = poll_fn(|context| Poll::Ready(place.look(now, Some(context.waker())))).await;
        let Err(wait) = looked else {
            return Ok(now);
        };
        let left = deadline.map(|by| by.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| wait > left) {
            return Err(DeadlinePassed {
                wait,
                member: pool.member(),
            });
        }
        woken_or_after(left.map_or(LOOK, |left| left.min(LOOK))).await;
    }
}

/// Returns when the task is woken, or after `span`.
async fn woken_or_after(span: Duration) {
    let mut sleep = pin!(tokio::time::sleep(span));
    let mut asked = false;
    poll_fn(|context| {
        let slept = sleep.as_mut().poll(context).is_ready();
        if slept || asked {
            return Poll::Ready(());
        }
        asked = true;
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::Ordering::Relaxed;
    use core::task::{Context, Waker};

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
        let pool = Arc::new(Pool::new());
        pool.good_until(Timestamp::from_nanos(10));
        let head = Place::take(&pool, 1, false);
        let mut context = Context::from_waker(Waker::noop());
        {
            let mut waiter = pin!(take(&pool, &Stands, 1, None));
            assert!(waiter.as_mut().poll(&mut context).is_pending());
            assert_eq!(pool.waiting.load(Relaxed), 2);
            pool.pour(1);
            assert!(waiter.as_mut().poll(&mut context).is_pending());
            drop(head);
            let taken = waiter.as_mut().poll(&mut context);
            assert_eq!(taken, Poll::Ready(Ok(Timestamp::from_nanos(5))));
        }
        assert_eq!((pool.waiting.load(Relaxed), pool.available()), (0, 0));
        // Without tokens a free line is no turn.
        let mut waiter = pin!(take(&pool, &Stands, 1, None));
        assert!(waiter.as_mut().poll(&mut context).is_pending());
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_that_cannot_be_met_is_refused_at_once_with_the_wait() {
        let pool = Arc::new(Pool::new());
        pool.good_until(Timestamp::from_nanos(10));
        pool.set_rate(10_000);
        let _before = Place::take(&pool, 30, false);
        let began = Instant::now();
        let within = |millis| began + Duration::from_millis(millis);
        let (wait, member) = (Duration::from_secs(3), pool.member());
        let early = take(&pool, &Stands, 1, Some(within(2_999))).await;
        assert_eq!(
            (early, began.elapsed()),
            (Err(DeadlinePassed { wait, member }), Duration::ZERO)
        );
        // One that can be met is waited for, until it cannot.
        let late = take(&pool, &Stands, 1, Some(within(3_020))).await;
        assert_eq!(late, Err(DeadlinePassed { wait, member }));
        assert_eq!(began.elapsed(), Duration::from_millis(50));
    }

    #[tokio::test]
    async fn a_token_that_is_there_is_taken_without_a_word_to_the_task() {
        let pool = Arc::new(Pool::new());
        pool.good_until(Timestamp::from_nanos(10));
        pool.pour(1);
        assert!(take(&pool, &Stands, 1, None).await.is_ok());
        let mut context = Context::from_waker(Waker::noop());
        assert!(pin!(pool.need.notified()).poll(&mut context).is_pending());
    }

    #[test]
    fn a_passed_deadline_shows_the_wait() {
        let wait = Duration::from_millis(3);
        let member = MemberId(0xabc);
        let text = "member 0000000000000abc has no token before the deadline; perhaps in 3ms";
        assert_eq!(DeadlinePassed { wait, member }.to_string(), text);
    }
}
