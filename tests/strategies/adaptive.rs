//! Adaptive mode as a whole: the facade over the send rate.
//!
//! Time is a clock that the tests move, or tokio's paused one. Waits are compared in whole
//! microseconds, as the rate is fixed point and its waits are rounded up to the nanosecond.
#![expect(
    clippy::arithmetic_side_effects,
    reason = "a test may overflow, and fail"
)]

use core::{
    cell::{Cell, RefCell},
    time::Duration,
};

use crate::support::{Arc, Fixed, Hands, http, ms};
use paceline::{
    Adaptive, Clock, Failure, RetryInfo, RetrySafety, RetryStrategy, RetryStrategyExt, SendPermit,
    SendRate, Timestamp,
    config::{RetryGeneration, StrategyBuilder},
    law::{DeclaredSettings, PacedSettings},
    operation::{RunError, StopReason},
    strategy::{NotAdmitted, Reports, SendRequest, SendTurn},
};

/// Starts an adaptive strategy at time 0 of a clock that only sleeps move, with b = 1.
fn adaptive() -> (StrategyBuilder<Adaptive>, Arc<Hands>) {
    let hands = Arc::new(Hands::default());
    let builder = Adaptive::builder()
        .law(paceline::ControlLaw::Aws)
        .clock(hands.clone())
        .random(Fixed::whole());
    (builder, hands)
}

/// Runs an operation that gets `responses` in turn, and returns how it ended and its requests.
fn run(
    strategy: &Adaptive,
    hands: &Hands,
    responses: &[Result<(), Failure>],
) -> (Result<(), RunError<Failure>>, usize) {
    let sent = Cell::new(0);
    let ended = strategy
        .operation()
        .sleep_by(|span| hands.sleep(span))
        .run(|_| {
            let response = responses[sent.get()];
            sent.set(sent.get() + 1);
            response
        });
    (ended, sent.get())
}

/// Fails an operation at once by a throttling error that must not be retried.
fn throttle_once(strategy: &Adaptive) {
    let token = strategy.acquire_initial_token(None).unwrap();
    let failure = Failure::throttling().with_retry_safety(RetrySafety::No);
    let refused = strategy.refresh_retry_token(token, &failure, Reports::new());
    assert!(refused.is_err());
}

/// Returns the wait of one who would join the line now, in microseconds. It leaves again.
fn wait_of_the_next(rate: &SendRate, clock: &dyn Clock) -> u128 {
    let now = clock.now();
    let wait = rate.reserve(now).claim(now).map_or_else(
        |wait| wait,
        |_permit: SendPermit| panic!("there is no line to wait in"),
    );
    wait.as_micros()
}

const SERVER_ERROR: Result<(), Failure> = Err(Failure::transient());
const THROTTLING: Result<(), Failure> = Err(Failure::throttling());
const OK: Result<(), Failure> = Ok(());

/// smithy-rs `dynamodb/tests/retries-with-client-rate-limiting.rs`,
/// `test_adaptive_retries_with_no_throttling_errors`: three operations on one client.
#[test]
fn without_throttling_it_sleeps_as_standard_does() {
    for (generation, base, slept) in [
        (RetryGeneration::V2_0, 1000, [3000, 4000, 11_000]),
        (RetryGeneration::V2_1, 25, [75, 100, 275]),
    ] {
        let (builder, hands) = adaptive();
        let builder = builder.generation(generation).base_delay(ms(base));
        let strategy = builder.max_attempts(4).build().unwrap();

        let (ended, sent) = run(&strategy, &hands, &[SERVER_ERROR, SERVER_ERROR, OK]);
        assert!(ended.is_ok());
        assert_eq!((hands.elapsed(), sent), (ms(slept[0]), 3));

        let (ended, sent) = run(&strategy, &hands, &[SERVER_ERROR, OK]);
        assert!(ended.is_ok());
        assert_eq!((hands.elapsed(), sent), (ms(slept[1]), 2));

        let (ended, sent) = run(&strategy, &hands, &[SERVER_ERROR; 4]);
        assert_eq!(ended.unwrap_err().why(), StopReason::MaxAttempts { max: 4 });
        assert_eq!((hands.elapsed(), sent), (ms(slept[2]), 4));
    }
}

/// smithy-rs `dynamodb/tests/retries-with-client-rate-limiting.rs`,
/// `test_adaptive_retries_with_throttling_errors`, generation 2.1: 4 s, then between 5.0 and 5.3 s.
#[test]
fn with_throttling_backoff_and_turn_add_up() {
    let (builder, hands) = adaptive();
    let builder = builder.base_delay(ms(25)).max_attempts(4);
    let strategy = builder.build().unwrap();

    let (ended, sent) = run(&strategy, &hands, &[THROTTLING, THROTTLING, OK]);
    assert!(ended.is_ok());
    assert_eq!((hands.elapsed().as_millis(), sent), (4000, 3));

    let (ended, sent) = run(&strategy, &hands, &[SERVER_ERROR, OK]);
    assert!(ended.is_ok());
    assert_eq!(sent, 2);
    // The source says between 5.0 and 5.3 s. The published equations, in f64: 5.184 913 217 6 s.
    assert_eq!(hands.elapsed().as_micros(), 5_184_913);
}

/// The fill rate and the measured rate after each outcome, every 200 ms.
const END_TO_END: [(f64, f64); 17] = [
    (0.5, 0.0),
    (0.5, 0.0),
    (0.5, 4.8),
    (0.5, 4.8),
    (0.5, 4.16),
    (0.6912, 4.16),
    (1.0976, 4.16),
    (1.6384, 5.632),
    (2.3328, 5.632),
    (3.02848, 4.3264), // throttled
    (3.486_639_173_470_26, 4.3264),
    (3.821_874_416_040_255, 4.3264),
    (4.053_385_727_709_987, 5.66528),
    (4.200_373_108_479_454, 5.66528),
    (4.282_036_558_348_658, 4.333_056),
    (2.997_425_590_844_06, 4.333_056), // throttled
    (3.452_226_394_386_346_3, 4.333_056),
];

/// aws-sdk-go-v2 `adaptive_ratelimit_test.go`, end to end; the same in smithy-rs and smithy-kotlin.
///
/// It goes through operations of one attempt each, so every outcome is recorded exactly once.
#[test]
fn every_outcome_is_recorded_once() {
    let (builder, hands) = adaptive();
    let strategy = builder.max_attempts(1).build().unwrap();
    for (nth, (fill, measured)) in (1..).zip(END_TO_END) {
        hands.sleep(ms(200));
        let token = strategy.acquire_initial_token(None).unwrap();
        match nth {
            10 | 16 => {
                let refused =
                    strategy.refresh_retry_token(token, &Failure::throttling(), Reports::new());
                assert!(refused.is_err());
            }
            // A failure that is not throttling counts like a success.
            5 => assert!(
                strategy
                    .refresh_retry_token(token, &http(404), Reports::new())
                    .is_err()
            ),
            _ => strategy.record_success(token, Reports::new()).unwrap(),
        }
        let seen = strategy.send_rate().snapshot(hands.now());
        assert!((seen.fill_rate - fill).abs() < 1e-6, "{nth}: {seen:?}");
        assert!(
            (seen.measured_rate - measured).abs() < 1e-6,
            "{nth}: {seen:?}"
        );
        assert_eq!(seen.enabled, nth >= 10, "{nth}");
    }
}

#[test]
fn throttling_is_recorded_even_if_it_is_not_retried() {
    let (builder, hands) = adaptive();
    let strategy = builder.build().unwrap();
    assert!(!strategy.send_rate().snapshot(hands.now()).enabled);
    throttle_once(&strategy);
    assert!(strategy.send_rate().snapshot(hands.now()).enabled);
    assert_eq!(strategy.quota().available(), 500);
}

#[test]
fn foreign_token_is_not_recorded() {
    let (builder, hands) = adaptive();
    let strategy = builder.build().unwrap();
    let foreign = Adaptive::new(paceline::ControlLaw::Aws)
        .acquire_initial_token(None)
        .unwrap();
    let refused = strategy.refresh_retry_token(foreign, &Failure::throttling(), Reports::new());
    assert!(refused.is_err());
    assert!(!strategy.send_rate().snapshot(hands.now()).enabled);
}

#[test]
fn first_send_waits_its_turn_and_looks_again_every_50_ms() {
    let (builder, hands) = adaptive();
    let strategy = builder.build().unwrap();
    throttle_once(&strategy);
    let slept = RefCell::new(Vec::new());
    let ended = strategy
        .operation()
        .sleep_by(|span| {
            slept.borrow_mut().push(span);
            hands.sleep(span);
        })
        .run(|_| OK);
    assert!(ended.is_ok());
    // The bucket is empty and fills at 0.5/s, the law's floor.
    assert_eq!(hands.elapsed().as_micros(), 2_000_000);
    assert!(slept.borrow().iter().all(|span| *span <= ms(50)));
}

#[test]
fn no_place_is_held_during_a_backoff() {
    let (builder, hands) = adaptive();
    let strategy = builder.build().unwrap();
    let token = strategy.acquire_initial_token(None).unwrap();
    let token = strategy.refresh_retry_token(token, &Failure::throttling(), Reports::new());
    assert_eq!(token.as_ref().unwrap().delay(), ms(1000));
    let wait = wait_of_the_next(strategy.send_rate(), &*hands);
    assert_eq!(wait, 2_000_000);
    drop(token);
    assert_eq!(wait_of_the_next(strategy.send_rate(), &*hands), wait);
}

#[test]
fn turn_that_is_dropped_gives_its_place_back() {
    let (builder, hands) = adaptive();
    let strategy = builder.build().unwrap();
    throttle_once(&strategy);
    let (mut first, mut second) = (SendTurn::new(), SendTurn::new());
    let claim = |turn: &mut SendTurn| match strategy.admit(turn, SendRequest::new()) {
        Err(NotAdmitted::Wait { wait, .. }) => Some(wait.as_micros()),
        admitted => admitted.map(|_| None).unwrap(),
    };
    assert_eq!(claim(&mut first), Some(2_000_000));
    assert_eq!(claim(&mut second), Some(4_000_000));
    drop(first);
    assert_eq!(claim(&mut second), Some(2_000_000));
    hands.sleep(ms(2001));
    assert_eq!(claim(&mut second), None);
    assert!(!second.is_in_line());
}

#[test]
fn fail_fast_refuses_the_first_send_with_the_wait() {
    let (builder, hands) = adaptive();
    let strategy = builder.fail_fast(true).build().unwrap();
    assert!(run(&strategy, &hands, &[OK]).0.is_ok());
    throttle_once(&strategy);
    let (ended, sent) = run(&strategy, &hands, &[]);
    let stopped = ended.unwrap_err();
    let StopReason::SendRefused { wait } = stopped.why() else {
        panic!("stopped by {}", stopped.why());
    };
    assert_eq!((sent, stopped.attempts()), (0, 0));
    assert!(stopped.into_error().is_err());
    assert_eq!(wait.as_micros(), 2_000_000);
    assert_eq!(hands.elapsed(), Duration::ZERO);

    // The wait is what it says: refused a microsecond before, granted at it.
    let microsecond = Duration::from_micros(1);
    hands.sleep(wait.checked_sub(microsecond).unwrap());
    assert!(
        strategy
            .admit(&mut SendTurn::new(), SendRequest::new())
            .is_err()
    );
    hands.sleep(microsecond);
    assert!(run(&strategy, &hands, &[OK]).0.is_ok());
}

#[test]
fn fail_fast_refuses_a_retry_with_the_original_failure() {
    let (builder, hands) = adaptive();
    let strategy = builder.fail_fast(true).build().unwrap();
    let (ended, sent) = run(&strategy, &hands, &[THROTTLING]);
    let stopped = ended.unwrap_err();
    let StopReason::SendRefused { wait } = stopped.why() else {
        panic!("stopped by {}", stopped.why());
    };
    assert_eq!((sent, stopped.attempts()), (1, 1));
    assert!(stopped.into_error().unwrap().is_throttle());
    // 1 s of backoff has gone by, in which half a token came.
    assert_eq!(hands.elapsed(), ms(1000));
    assert_eq!(wait.as_micros(), 1_000_000);
}

/// Ten a second and one token, with a longest wait of 250 ms: two may stand in line.
fn impatient() -> (Adaptive, Arc<Hands>) {
    let (builder, hands) = adaptive();
    let settings = PacedSettings::fixed(10, ms(1000)).unwrap().to_builder();
    let builder = builder.paced(settings.burst(ms(100)).build().unwrap());
    (builder.max_wait(ms(250)).build().unwrap(), hands)
}

#[test]
fn a_turn_beyond_the_longest_wait_is_refused_at_once() {
    let (strategy, hands) = impatient();
    let admit = |turn: &mut SendTurn| strategy.admit(turn, SendRequest::new());
    let mut turns = [const { SendTurn::new() }; 4];
    let [first, second, third, fourth] = &mut turns;
    assert!(admit(first).is_ok());
    assert!(matches!(admit(second), Err(NotAdmitted::Wait { .. })));
    assert!(matches!(admit(third), Err(NotAdmitted::Wait { wait, .. }) if wait.as_millis() == 200));
    let wait = |refused| match refused {
        Err(NotAdmitted::Refused { wait }) => wait.as_micros(),
        other => panic!("{other:?}"),
    };
    assert_eq!(wait(admit(fourth)), 300_000);
    assert!(!fourth.is_in_line());
    // 50 ms later its turn comes in time, to the microsecond.
    hands.sleep(Duration::from_micros(49_999));
    assert_eq!(wait(admit(fourth)), 250_001);
    hands.sleep(Duration::from_micros(2));
    assert!(matches!(admit(fourth), Err(NotAdmitted::Wait { .. })));
    let counts = strategy.snapshot().counts;
    assert_eq!((counts.refused_sends, counts.delayed), (2, 3));
}

#[test]
fn a_turn_that_has_moved_beyond_the_longest_wait_is_refused_in_line() {
    let (strategy, hands) = impatient();
    let admit = |turn: &mut SendTurn| strategy.admit(turn, SendRequest::new());
    let (mut turn, mut behind) = (SendTurn::new(), SendTurn::new());
    assert!(admit(&mut turn).is_ok());
    assert!(admit(&mut turn).is_err() && admit(&mut behind).is_err());
    hands.sleep(ms(50));
    let slower = PacedSettings::fixed(5, ms(1000)).unwrap().to_builder();
    strategy
        .set_paced(slower.burst(ms(100)).build().unwrap())
        .unwrap();
    // Half a token is there, and the other comes in 100 ms: the first is in time still.
    assert!(matches!(admit(&mut turn), Err(NotAdmitted::Wait { .. })));
    let refused = admit(&mut behind).unwrap_err();
    assert!(
        matches!(refused, NotAdmitted::Refused { wait } if wait.as_millis() == 300),
        "{refused:?}"
    );
    assert!(!behind.is_in_line());
    let now = strategy.clock().now();
    assert_eq!(strategy.send_rate().snapshot(now).waiting, 1);
    hands.sleep(ms(100));
    assert!(admit(&mut turn).is_ok());
}

/// Errors of a user's own that know whether they are throttled.
#[derive(Debug)]
struct SlowDown;

impl RetryInfo for SlowDown {
    fn failure(&self) -> Failure {
        Failure::throttling()
    }
}

#[test]
fn users_error_that_says_throttled_turns_the_send_rate_on() {
    let (builder, hands) = adaptive();
    let strategy = builder.max_attempts(1).build().unwrap();
    let ended = strategy.run(|_| Err::<(), _>(SlowDown));
    assert_eq!(ended.unwrap_err().why(), StopReason::MaxAttempts { max: 1 });
    assert!(strategy.send_rate().snapshot(hands.now()).enabled);
}

/// Dropping the tokio loop at each point where it waits.
#[cfg(feature = "tokio")]
mod cancellation {
    use core::future::Future;

    use paceline::TokioClock;
    use tokio::time::{Instant, sleep, timeout};

    use super::*;

    /// Starts a strategy that was throttled once: its bucket is empty and fills at 0.5/s.
    fn throttled() -> StrategyBuilder<Adaptive> {
        Adaptive::builder()
            .law(paceline::ControlLaw::Aws)
            .clock(Arc::new(TokioClock::new()))
            .random(Fixed::whole())
    }

    /// Drops `run` after `span`, and returns the wait of the next in line before and after.
    async fn drop_after(
        span: Duration,
        strategy: &Adaptive,
        run: impl Future<Output = Result<(), RunError<Failure>>>,
    ) -> (u128, u128) {
        let mut run = Box::pin(run);
        assert!(timeout(span, run.as_mut()).await.is_err(), "it ended");
        let before = wait_of_the_next(strategy.send_rate(), strategy.clock());
        drop(run);
        let after = wait_of_the_next(strategy.send_rate(), strategy.clock());
        (before, after)
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_for_a_turn_it_gives_the_place_back() {
        let strategy = throttled().build().unwrap();
        throttle_once(&strategy);
        let run = strategy.run_async(async |_| panic!("it was its turn"));
        let waits = drop_after(ms(1000), &strategy, run).await;
        assert_eq!(waits, (3_000_000, 1_000_000));
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_for_the_turn_of_a_retry_it_gives_the_place_back() {
        let strategy = throttled().build().unwrap();
        // Sent at 0 and throttled; backs off until 1 s; has its turn at 2 s.
        let run = strategy.run_async(async |_| THROTTLING);
        let waits = drop_after(ms(1500), &strategy, run).await;
        assert_eq!(waits, (2_500_000, 500_000));
        assert_eq!(strategy.quota().available(), 500); // the retry was never sent
    }

    #[tokio::test(start_paused = true)]
    async fn backing_off_it_holds_no_place() {
        let strategy = throttled().build().unwrap();
        let run = strategy.run_async(async |_| THROTTLING);
        let waits = drop_after(ms(500), &strategy, run).await;
        assert_eq!(waits, (1_500_000, 1_500_000));
    }

    #[tokio::test(start_paused = true)]
    async fn sending_it_has_spent_its_token_and_holds_no_place() {
        let strategy = throttled().build().unwrap();
        throttle_once(&strategy);
        let run = strategy.run_async(async |_| {
            sleep(ms(10_000)).await;
            OK
        });
        // Sent at 2 s; the next token comes at 4 s. A send that is given up counts as sent, which
        // moves the rate along the curve, to 1.067/s: half a token is missing.
        let waits = drop_after(ms(3000), &strategy, run).await;
        assert_eq!(waits, (1_000_000, 468_750));
    }

    #[tokio::test(start_paused = true)]
    async fn sleeping_for_a_long_poll_it_holds_no_place() {
        let builder = throttled().quota_capacity(0).long_polling(true);
        let strategy = builder.build().unwrap();
        let run = strategy.run_async(async |_| THROTTLING);
        let waits = drop_after(ms(500), &strategy, run).await;
        assert_eq!(waits, (1_500_000, 1_500_000));
    }

    #[tokio::test(start_paused = true)]
    async fn those_behind_move_up() {
        let strategy = throttled().build().unwrap();
        throttle_once(&strategy);
        let start = Instant::now();
        let first = strategy.run_async(async |_| OK);
        let second = strategy.run_async(async |_| OK);
        let (first, second) = tokio::join!(timeout(ms(1000), first), second);
        assert!(first.is_err());
        assert!(second.is_ok());
        assert_eq!(start.elapsed().as_millis(), 2000);
    }
}

/// A strategy that limits nothing, and has counted many successes in a millisecond: it lets
/// attempts go without a look at the clock if it may.
fn at_ease(builder: StrategyBuilder<Adaptive>, clock: &Hands) -> Adaptive {
    let strategy = builder.paced(PacedSettings::new()).build().unwrap();
    for _ in 0..1_000 {
        clock.sleep(Duration::from_micros(1));
        let token = strategy.acquire_initial_token(None).unwrap();
        strategy.record_success(token, Reports::new()).unwrap();
    }
    strategy
}

#[test]
fn while_nothing_is_limited_one_token_needs_no_time() {
    let (builder, clock) = adaptive();
    let strategy = at_ease(builder, &clock);
    let admit = |request| strategy.admit(&mut SendTurn::new(), request).unwrap();
    assert_eq!(admit(SendRequest::new()).time(), Timestamp::ZERO);
    let heavy = admit(SendRequest::new().weight(5));
    assert_eq!((heavy.weight(), heavy.time()), (5, clock.now()));
}

#[test]
fn with_exact_timing_each_attempt_has_its_time() {
    let (builder, clock) = adaptive();
    let strategy = at_ease(builder.exact_timing(true), &clock);
    let request = SendRequest::new();
    let permit = strategy.admit(&mut SendTurn::new(), request).unwrap();
    assert_eq!(permit.time(), clock.now());
}

#[test]
fn a_foreign_token_is_refused_while_nothing_is_limited() {
    let (builder, clock) = adaptive();
    let strategy = at_ease(builder, &clock);
    let foreign = Adaptive::paced().acquire_initial_token(None).unwrap();
    assert!(strategy.record_success(foreign, Reports::new()).is_err());
}

#[test]
fn before_the_first_report_one_heavy_request_goes() {
    let builder = adaptive().0.fail_fast(true);
    let strategy = builder.declared(DeclaredSettings::new()).build().unwrap();
    let admit = || strategy.admit(&mut SendTurn::new(), SendRequest::new().weight(2));
    assert_eq!(admit().unwrap().weight(), 2);
    let refused = admit();
    assert!(
        !matches!(refused, Ok(_) | Err(NotAdmitted::Weight(_))),
        "{refused:?}"
    );
}

/// What strategies that users write call.
#[test]
fn a_turn_takes_tokens_or_a_place_in_line() {
    let settings = PacedSettings::fixed(10, ms(1000)).unwrap();
    let settings = settings.to_builder().burst(ms(300)).build().unwrap();
    let rate = Arc::new(SendRate::paced(settings, Timestamp::ZERO));
    let hands = Arc::new(Hands::default());
    let clock = Arc::clone(&hands) as Arc<dyn Clock>;
    let admit = |turn: &mut SendTurn, weight| {
        let request = SendRequest::new().weight(weight);
        turn.admit(&rate, &clock, request)
    };
    let mut turn = SendTurn::new();
    let tokens = || rate.snapshot(hands.now()).available;
    hands.sleep(ms(300));
    assert_eq!(tokens().round().to_bits(), 3.0_f64.to_bits());
    assert_eq!(admit(&mut turn, 1).unwrap().weight(), 1);
    assert_eq!(admit(&mut turn, 2).unwrap().weight(), 2);
    assert!(matches!(admit(&mut turn, 0), Err(NotAdmitted::Weight(_))));
    assert!(matches!(admit(&mut turn, 1), Err(NotAdmitted::Wait { .. })));
    assert!(matches!(admit(&mut turn, 1), Err(NotAdmitted::Wait { .. })));
    assert_eq!(rate.snapshot(hands.now()).waiting, 1);
    hands.sleep(ms(101));
    assert_eq!(admit(&mut turn, 1).unwrap().weight(), 1);
}
