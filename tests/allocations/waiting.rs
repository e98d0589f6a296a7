//! What waiting allocates: nothing, but for the table in which the first ones stand, and a run
//! time's timer.
#![expect(
    clippy::arithmetic_side_effects,
    reason = "a test may overflow, and fail"
)]

use alloc::sync::Arc;
use core::{
    future::Future,
    pin::pin,
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    task::{Context, Poll, Waker},
    time::Duration,
};

use allocation_counter::measure;
use paceline::{
    Clock, ControlLaw, Outcome, SendLimiter, SendPermit, SendRate, Timestamp,
    law::PacedSettings,
    wait::{Sleep, Timer},
};

const MILLI: u64 = 1_000_000;

/// A clock that is set by hand, and timers that never fire.
#[derive(Clone, Debug, Default)]
struct Hands(Arc<AtomicU64>);

impl Hands {
    fn set(&self, millis: u64) {
        self.0.store(millis * MILLI, SeqCst);
    }
}

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.load(SeqCst))
    }
}

#[derive(Clone, Copy, Debug)]
struct Never;

impl Sleep for Never {
    type Timer = Self;

    fn timer(&self) -> Self {
        Self
    }
}

impl Timer for Never {
    fn arm(&mut self, _: Duration) {}

    fn poll_elapsed(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

/// Five tokens a second, and none in the bucket.
fn rate() -> Arc<SendRate> {
    let settings = PacedSettings::fixed(5, Duration::from_secs(1)).expect("in range");
    let rate = SendRate::paced(settings, Timestamp::ZERO);
    while rate.try_acquire(Timestamp::ZERO).is_ok() {}
    Arc::new(rate)
}

fn allocations(work: impl FnOnce()) -> u64 {
    measure(work).count_total
}

#[test]
fn a_waiter_allocates_nothing_from_its_first_poll_to_its_end() {
    let hands = Hands::default();
    let limiter = SendLimiter::new(rate())
        .clock(hands.clone())
        .sleep_on(Never);
    let mut cx = Context::from_waker(Waker::noop());
    let first = limiter.clone().into_tokens(1).acquire();
    let table = allocations(|| assert!(pin!(first).poll(&mut cx).is_pending()));
    assert_eq!(
        table, 3,
        "the list of tables, the first of them, and its slots"
    );
    for turn in 1..=10 {
        let count = allocations(|| {
            let mut waiting = pin!(limiter.clone().into_tokens(1).acquire());
            let before = (turn - 1) * 200;
            for millis in before..before + 200 {
                hands.set(millis);
                assert!(waiting.as_mut().poll(&mut cx).is_pending());
            }
            hands.set(turn * 200);
            assert!(waiting.as_mut().poll(&mut cx).is_ready());
        });
        assert_eq!(count, 0);
    }
    let dropped = allocations(|| {
        let mut waiting = pin!(limiter.token().acquire());
        assert!(waiting.as_mut().poll(&mut cx).is_pending());
    });
    assert_eq!(dropped, 0, "given up");
}

#[tokio::test(start_paused = true)]
async fn with_tokios_timer_it_allocates_that_and_never_again() {
    let hands = Hands::default();
    let limiter = SendLimiter::new(rate()).clock(hands.clone());
    let mut cx = Context::from_waker(Waker::noop());
    let first = limiter.clone().into_tokens(1).acquire();
    assert!(pin!(first).poll(&mut cx).is_pending());
    let mut ahead = limiter.token().reserve().ok();
    let mut waiting = pin!(limiter.token().acquire());
    let once = allocations(|| assert!(waiting.as_mut().poll(&mut cx).is_pending()));
    assert_eq!(once, 1, "the timer");
    let never = allocations(|| {
        for millis in 0..100 {
            hands.set(millis);
            assert!(waiting.as_mut().poll(&mut cx).is_pending());
        }
        // It moves up, and its timer is armed anew.
        drop(ahead.take());
        for millis in 100..200 {
            hands.set(millis);
            assert!(waiting.as_mut().poll(&mut cx).is_pending());
        }
        hands.set(200);
        assert!(waiting.as_mut().poll(&mut cx).is_ready());
    });
    assert_eq!(never, 0);
}

#[test]
fn who_does_not_have_to_wait_allocates_nothing() {
    let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    let limiter = SendLimiter::new(&rate)
        .clock(Hands::default())
        .sleep_on(Never);
    let mut cx = Context::from_waker(Waker::noop());
    // The thread gets its number, and its own stripe to count in.
    limiter.record(SendPermit::sent_at(Timestamp::ZERO), Outcome::NotThrottled);
    let count = allocations(|| {
        assert!(limiter.token().acquire_blocking().is_ok());
        assert!(limiter.token().try_acquire().is_ok());
        assert!(limiter.token().reserve().is_ok());
        assert!(pin!(limiter.token().acquire()).poll(&mut cx).is_ready());
    });
    assert_eq!(count, 0);
}

/// What a limiter allocates once it limits, and when 64 wait in it.
#[test]
fn a_limiter_is_small_until_many_wait() {
    let now = Timestamp::ZERO;
    let rate = SendRate::new(ControlLaw::Paced, now);
    // The thread gets its number.
    rate.record(now, SendPermit::sent_at(now), Outcome::NotThrottled);
    let engaged = measure(|| {
        rate.record(now, SendPermit::sent_at(now), Outcome::Throttled);
        while rate.try_acquire(now).is_ok() {}
    });
    assert!(engaged.bytes_current <= 256, "{engaged:?}");
    let mut places = Vec::with_capacity(64);
    let waiting = measure(|| places.extend((0..64).map(|_| rate.reserve(now))));
    assert!(waiting.bytes_current <= 4_096, "{waiting:?}");
    places.clear();
    let again = measure(|| places.extend((0..64).map(|_| rate.reserve(now))));
    assert_eq!(again.count_total, 0, "the slots are used again");
}
