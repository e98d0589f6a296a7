//! The four forms mean the same: deadlines, weights, and what is refused.

use alloc::sync::Arc;
use core::{
    error::Error,
    fmt::Debug,
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    time::Duration,
};
use std::{thread, time::Instant};

use paceline::{
    AcquireError, Clock, ControlLaw, MonotonicClock, Outcome, SendLimiter, SendPermit, SendRate,
    Timestamp, WeightError,
    law::PacedSettings,
    wait::{Acquire, AsyncIoSleep, sleep_fn},
};

use crate::steady::fixed;
use crate::world::{Limiter, MILLI, SECOND, World, at, limiter, ms};

/// Asks in all forms, and returns what each of them says at once.
fn in_all_forms(limiter: &Limiter, weight: u32, within: Duration) -> [Result<(), AcquireError>; 3] {
    let ask = || limiter.clone().into_tokens(weight).within(within);
    let mut world = World::default();
    let task = world.spawn(ask().acquire());
    let ended = world.tasks[task].ended.map(|(_, result)| result.map(drop));
    [
        ended.unwrap_or(Ok(())),
        ask().acquire_blocking().map(drop),
        ask().reserve().map(drop),
    ]
}

fn not_in_time(millis: u64) -> AcquireError {
    AcquireError::NotInTime { wait: ms(millis) }
}

#[test]
fn what_cannot_come_in_time_is_refused_at_once_with_the_wait() {
    let world = World::default();
    let limiter = limiter(fixed(5), &world.hands);
    for _ in 0..3 {
        let refused = Err(not_in_time(200));
        assert_eq!(in_all_forms(&limiter, 1, ms(199)), [refused; 3]);
        assert_eq!(limiter.token().try_acquire().map(drop), refused);
        assert_eq!(
            limiter.token().by(at(200 * MILLI - 1)).reserve().map(drop),
            refused
        );
    }
    assert!(limiter.token().within(ms(200)).reserve().is_ok());
    assert!(limiter.token().by(at(200 * MILLI)).reserve().is_ok());
    // Places were given back, and refusals took none.
    assert_eq!(limiter.token().try_acquire(), Err(not_in_time(200)));
}

#[test]
fn weights_that_cannot_be_are_refused_in_all_forms() {
    let world = World::default();
    let limiter = limiter(fixed(5), &world.hands);
    let hour = Duration::from_secs(3_600);
    assert_eq!(
        in_all_forms(&limiter, 0, hour),
        [Err(WeightError::Zero.into()); 3]
    );
    assert_eq!(
        limiter.tokens(0).try_acquire(),
        Err(WeightError::Zero.into())
    );
    for weight in [2, u32::MAX] {
        let refused = WeightError::AboveCapacity {
            weight,
            capacity: 1,
        };
        assert_eq!(
            in_all_forms(&limiter, weight, hour),
            [Err(refused.into()); 3]
        );
        assert_eq!(limiter.tokens(weight).try_acquire(), Err(refused.into()));
    }
    assert_eq!(
        limiter.token().try_acquire(),
        Err(not_in_time(200)),
        "none was taken"
    );
}

#[test]
fn a_turn_that_moves_past_the_deadline_is_refused_when_it_is_seen() {
    let mut world = World::default();
    let limiter = limiter(fixed(5), &world.hands);
    let ask = || limiter.clone().into_tokens(1);
    let patient = world.spawn(ask().acquire());
    let hurried = world.spawn(ask().within(ms(500)).acquire());
    let last = world.spawn(ask().acquire());
    let pause = Outcome::ThrottledFor(Duration::from_secs(2));
    limiter.record(SendPermit::sent_at(at(0)), pause);
    world.run_until(10 * SECOND);
    let (when, refused) = world.tasks[hurried].ended.expect("refused");
    assert_eq!(when, 400 * MILLI, "when its turn was to come");
    assert_eq!(refused, Err(not_in_time(2_000)));
    assert_eq!(
        world.tasks[last].went_at() - world.tasks[patient].went_at(),
        200 * MILLI,
        "no debt"
    );
}

#[test]
fn a_reserved_place_is_claimed_when_its_turn_comes_and_goes_back_if_not() {
    let world = World::default();
    let limiter = limiter(fixed(5), &world.hands);
    let mut first = limiter.token().reserve().unwrap();
    let mut second = limiter.clone().into_tokens(1).reserve().unwrap();
    assert_eq!(second.claim(), Err(ms(400)));
    world.hands.set(200 * MILLI);
    let permit = first.claim().expect("due");
    assert_eq!(permit.time(), at(200 * MILLI));
    assert_eq!(first.claim(), Ok(permit), "the same again");
    drop(second);
    assert_eq!(limiter.token().try_acquire(), Err(not_in_time(200)));
}

#[test]
fn everything_can_be_sent_and_printed() {
    fn assert_all<T: Send + Sync + Debug>(_: &T) {}
    let world = World::default();
    let limiter = limiter(fixed(5), &world.hands);
    let future: Acquire<_, _, _> = limiter.token().acquire();
    assert_all(&future);
    assert_all(&limiter.clone().into_tokens(1).acquire());
    assert_all(&limiter);
    assert_all(&limiter.token());
    assert_all(&limiter.token().reserve().unwrap());
    assert!(format!("{future:?} {limiter:?} {:?}", limiter.token()).contains("not polled"));
    assert!(not_in_time(200).to_string().ends_with("200ms"));
    assert!(not_in_time(200).source().is_none());
}

/// A clock that counts who asks.
#[derive(Debug, Default)]
struct Counting(AtomicU64);

impl Clock for Counting {
    fn now(&self) -> Timestamp {
        self.0.fetch_add(1, SeqCst);
        Timestamp::ZERO
    }
}

#[test]
fn while_nothing_is_limited_a_busy_thread_does_not_ask_for_the_time() {
    let clock = Counting::default();
    let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    let limiter = SendLimiter::new(&rate)
        .clock(&clock)
        .sleep_on(AsyncIoSleep::new());
    for _ in 0..20 {
        let permit = limiter.token().try_acquire().expect("nothing is limited");
        limiter.record(permit, Outcome::NotThrottled);
    }
    let asked = clock.0.load(SeqCst);
    let ask = || limiter.token().within(ms(1));
    let mut place = ask().reserve().expect("nothing is limited");
    for permit in [
        place.claim().ok(),
        ask().try_acquire().ok(),
        ask().acquire_blocking().ok(),
        async_io::block_on(ask().acquire()).ok(),
    ] {
        limiter.record(permit.expect("nothing is limited"), Outcome::NotThrottled);
    }
    assert_eq!(clock.0.load(SeqCst), asked);
    assert!(limiter.tokens(2).try_acquire().is_ok());
    assert_eq!(clock.0.load(SeqCst), asked + 1, "but with a weight it does");
}

/// Real threads and real time: 8 threads share 200 tokens a second.
#[test]
fn threads_park_until_their_turns() {
    let second = Duration::from_secs(1);
    let settings = PacedSettings::fixed(200, second).expect("in range");
    let clock = MonotonicClock::new();
    let limiter = SendLimiter::new(Arc::new(SendRate::paced(settings, clock.now())));
    while limiter.token().try_acquire().is_ok() {}
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let permit = limiter
                        .token()
                        .within(Duration::from_secs(20))
                        .acquire_blocking();
                    assert!(permit.is_ok(), "{permit:?}");
                }
            });
        }
    });
    let took = start.elapsed();
    assert!(took >= ms(190), "40 tokens at 200/s: {took:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");
}

/// A thread that would have parked for minutes is woken once those ahead have given up.
#[test]
fn a_parked_thread_is_woken_when_its_turn_comes_sooner() {
    let clock = MonotonicClock::new();
    let settings = PacedSettings::fixed(1, Duration::from_secs(1)).expect("in range");
    let rate = SendRate::paced(settings, clock.now());
    let limiter = SendLimiter::new(&rate).clock(clock);
    let places: Vec<_> = (0..600).map(|_| limiter.token().reserve()).collect();
    let start = Instant::now();
    thread::scope(|scope| {
        let parked = scope.spawn(|| limiter.token().acquire_blocking());
        thread::sleep(ms(50));
        drop(places);
        assert!(parked.join().expect("it returns").is_ok());
    });
    assert!(
        start.elapsed() < Duration::from_secs(60),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn a_limiter_of_so_many_a_second_takes_one_call() {
    let limiter = SendLimiter::per_second(10).unwrap();
    let began = Instant::now();
    for _ in 0..3 {
        let _permit = limiter.token().acquire_blocking().unwrap();
    }
    let taken = began.elapsed();
    assert!(taken >= ms(199), "{taken:?}");
    let error = SendLimiter::per_second(0).unwrap_err();
    assert!(error.to_string().contains("fixed rate"), "{error}");
}

/// A function of the host, and no trait of this crate.
#[cfg(feature = "tokio")]
#[tokio::test(start_paused = true)]
async fn a_function_is_a_timer() {
    let armed = AtomicU64::new(0);
    let clock = paceline::TokioClock::new();
    let rate = SendRate::paced(PacedSettings::fixed(2, ms(1_000)).unwrap(), clock.now());
    let sleep = |span| {
        armed.fetch_add(1, SeqCst);
        tokio::time::sleep(span)
    };
    let limiter = SendLimiter::new(&rate)
        .clock(clock)
        .sleep_on(sleep_fn(sleep));
    for _ in 0..3 {
        let _permit = limiter.token().acquire().await.unwrap();
    }
    assert_eq!(armed.load(SeqCst), 2, "one for each wait");
}
