//! What an operation is held to besides its strategy: its deadline, and that it is not done twice.

use core::{cell::Cell, time::Duration};

use crate::support::{Arc, Fixed, Hands, http, ms};
use paceline::{
    Adaptive, Execution, Failure, Idempotency, Legacy, RetryAfter, RetryStrategy, RetryStrategyExt,
    RetryToken, Standard,
    config::StrategyBuilder,
    law::PacedSettings,
    operation::{Attempt, Next, RunError, StopReason, Verdict},
    strategy::{ForeignToken, InitialTokenRefused, Reports, RetryRefused, StrategyId},
};

fn standard() -> StrategyBuilder<Standard> {
    Standard::builder().max_attempts(9).random(Fixed::whole())
}

/// Runs an operation of which every attempt takes `each` and fails, under a deadline.
fn run_until(
    strategy: &dyn RetryStrategy,
    deadline: Duration,
    each: Duration,
    failure: Failure,
) -> (RunError<Failure>, Duration) {
    let hands = Hands::default();
    let stopped = strategy
        .operation()
        .clock(&hands)
        .deadline(deadline)
        .sleep_by(|span| hands.sleep(span))
        .run(|_| {
            hands.sleep(each);
            Err::<(), _>(failure)
        });
    (stopped.unwrap_err(), hands.elapsed())
}

const fn out_of_time(wait: u64, left: u64) -> StopReason {
    let (wait, left) = (ms(wait), ms(left));
    StopReason::OutOfTime { wait, left }
}

/// Whatever ends the operation: attempts, a final failure, or a strategy that sends once.
#[test]
fn the_wait_that_the_service_asked_for_is_in_the_error() {
    let two = Duration::from_secs(2);
    let hint = RetryAfter::AtLeast(two);
    let once = Standard::builder().max_attempts(1).build().unwrap();
    for failure in [Failure::throttling(), Failure::not_retryable()] {
        let failure = failure.with_retry_after(hint);
        let stopped = once.run(|_| Err::<(), _>(failure)).unwrap_err();
        assert_eq!((stopped.wait(), stopped.attempts()), (two, 1), "{stopped}");
        let stopped = once
            .run(|_| Err::<(), _>(Failure::throttling()))
            .unwrap_err();
        assert_eq!(stopped.wait(), Duration::ZERO);
    }
}

#[test]
fn backoff_that_would_use_up_the_time_is_refused_at_once_and_costs_nothing() {
    let strategy = standard().build().unwrap();
    let (stopped, elapsed) = run_until(&strategy, ms(200), ms(10), http(500));
    // 10, sleep 50, 10, sleep 100, 10: 20 are left, and the next backoff is 200.
    assert_eq!((stopped.attempts(), elapsed), (3, ms(180)));
    assert_eq!(stopped.why(), out_of_time(200, 20));
    assert_eq!((stopped.backoff(), stopped.wait()), (ms(200), ms(200)));
    assert_eq!(
        stopped.to_string(),
        "stopped after 3 attempts: out of time: 20ms left, and a wait of 200ms"
    );
    assert_eq!(stopped.into_error(), Ok(http(500)));
    assert_eq!(strategy.quota().available(), 500 - 14 - 14);
}

#[test]
fn backoff_that_leaves_a_nanosecond_is_slept_and_one_that_leaves_none_is_not() {
    let strategy = standard().max_attempts(2).build().unwrap();
    let after = |deadline| run_until(&strategy, deadline, ms(10), http(500)).0;
    assert_eq!(after(ms(60)).why(), out_of_time(50, 50));
    let stopped = after(ms(60) + Duration::from_nanos(1));
    assert_eq!(stopped.why(), StopReason::MaxAttempts { max: 2 });
}

#[test]
fn hint_beyond_the_deadline_is_told_to_the_caller() {
    let failure = Failure::throttling().with_retry_after(RetryAfter::AtLeast(Duration::MAX));
    let strategy = standard().build().unwrap();
    let (stopped, elapsed) = run_until(&strategy, ms(1000), ms(10), failure);
    assert_eq!((stopped.wait(), elapsed), (Duration::MAX, ms(10)));
}

#[test]
fn no_attempt_is_begun_without_time() {
    let strategy = standard().build().unwrap();
    let (stopped, elapsed) = run_until(&strategy, ms(0), ms(10), http(500));
    assert_eq!((stopped.attempts(), elapsed), (0, ms(0)));
    assert_eq!(stopped.why(), out_of_time(0, 0));
    assert!(stopped.error().is_none());
}

#[test]
fn sleep_that_takes_longer_than_asked_ends_the_operation() {
    let (strategy, hands) = (standard().build().unwrap(), Hands::default());
    let stopped = strategy
        .operation()
        .clock(&hands)
        .deadline(ms(60))
        .sleep_by(|span| hands.sleep(span + ms(10)))
        .run(|_| Err::<(), _>(http(500)))
        .unwrap_err();
    assert_eq!((stopped.attempts(), stopped.why()), (1, out_of_time(0, 0)));
    assert_eq!(stopped.into_error(), Ok(http(500)));
}

/// Refused at once, a caller that asks again at once asks thousands of times a second.
#[test]
fn a_deadline_is_waited_out_in_line_if_that_is_chosen() {
    let (hands, rate) = (
        Arc::new(Hands::default()),
        PacedSettings::fixed(1, ms(60_000)),
    );
    let builder = Adaptive::builder().paced(rate.unwrap());
    let builder = builder.clock(hands.clone()).wait_out_deadlines(true);
    let strategy = builder.build().unwrap();
    let run = |deadline| {
        let operation = strategy.operation().deadline(deadline);
        let sent = operation.sleep_by(|span| hands.sleep(span));
        sent.run(|_| Ok::<_, Failure>(()))
    };
    run(ms(1)).unwrap();
    for end in [1_000, 2_000] {
        assert_eq!(run(ms(1_000)).unwrap_err().why(), out_of_time(0, 0));
        assert_eq!(hands.elapsed(), ms(end));
    }
    let counts = strategy.snapshot().counts;
    assert_eq!((counts.delayed, counts.refused_sends), (2, 0));
    assert_eq!(strategy.snapshot().rate.unwrap().waiting, 0);
    // The turn that the rate of the moment does not promise may come.
    strategy
        .set_paced(PacedSettings::fixed(1, ms(50)).unwrap())
        .unwrap();
    run(ms(100)).unwrap();
}

#[test]
fn legacy_keeps_the_deadline() {
    let strategy = Legacy::new().random(Fixed::whole());
    let (stopped, elapsed) = run_until(&strategy, ms(3500), ms(0), http(500));
    assert_eq!((stopped.attempts(), elapsed), (3, ms(3000)));
    assert_eq!(stopped.why(), out_of_time(4000, 500));
}

#[test]
fn success_after_the_deadline_is_a_success() {
    let (strategy, hands) = (standard().build().unwrap(), Hands::default());
    let operation = strategy.operation().clock(&hands).deadline(ms(5));
    let answer = operation.run(|_| {
        hands.sleep(ms(10));
        Ok::<_, Failure>("late")
    });
    assert_eq!(answer.unwrap(), "late");
}

/// An adaptive strategy that lets one send go now and the next after two seconds.
fn throttled(hands: &Arc<Hands>) -> Adaptive {
    let builder = Adaptive::builder()
        .law(paceline::ControlLaw::Aws)
        .random(Fixed::whole());
    let strategy = builder.clock(hands.clone()).build().unwrap();
    let token = strategy.acquire_initial_token(None).unwrap();
    drop(strategy.refresh_retry_token(token, &Failure::throttling(), Reports::new()));
    while strategy.send_rate().try_acquire(now(hands)).is_ok() {}
    strategy
}

fn now(hands: &Hands) -> paceline::Timestamp {
    paceline::Clock::now(hands)
}

#[test]
fn turn_that_would_come_too_late_is_given_back_at_once() {
    let hands = Arc::new(Hands::default());
    let strategy = throttled(&hands);
    let wait = strategy.send_rate().try_acquire(now(&hands)).unwrap_err();
    let run = |deadline| {
        strategy
            .operation()
            .clock(&*hands)
            .deadline(deadline)
            .sleep_by(|span| hands.sleep(span))
            .run(|_| Ok::<_, Failure>(()))
    };
    let stopped = run(wait).unwrap_err();
    let left = wait;
    assert_eq!(stopped.why(), StopReason::OutOfTime { wait, left });
    assert_eq!((stopped.wait(), stopped.backoff()), (wait, ms(0)));
    assert_eq!(hands.elapsed(), ms(0));
    assert_eq!(
        strategy.send_rate().try_acquire(now(&hands)),
        Err(wait),
        "its place went back"
    );
    run(wait + Duration::from_nanos(1)).unwrap();
    assert_eq!(hands.elapsed(), wait);
}

#[test]
fn refused_send_says_its_wait() {
    let hands = Arc::new(Hands::default());
    let builder = Adaptive::builder()
        .law(paceline::ControlLaw::Aws)
        .random(Fixed::whole())
        .fail_fast(true);
    let strategy = builder.clock(hands.clone()).build().unwrap();
    let token = strategy.acquire_initial_token(None).unwrap();
    drop(strategy.refresh_retry_token(token, &Failure::throttling(), Reports::new()));
    while strategy.send_rate().try_acquire(now(&hands)).is_ok() {}
    let wait = strategy.send_rate().try_acquire(now(&hands)).unwrap_err();
    let stopped = strategy.run(|_| Ok::<_, Failure>(())).unwrap_err();
    assert_eq!(
        (stopped.why(), stopped.wait()),
        (StopReason::SendRefused { wait }, wait)
    );
}

#[test]
fn attempts_are_told_the_smaller_of_the_two_limits() {
    let told = |deadline: Option<u64>, each: Option<u64>| {
        let (strategy, hands) = (standard().build().unwrap(), Hands::default());
        let mut operation = strategy.operation().clock(&hands);
        if let Some(deadline) = deadline {
            operation = operation.deadline(ms(deadline));
        }
        if let Some(each) = each {
            operation = operation.attempt_timeout(ms(each));
        }
        let operation = operation.sleep_by(|span| hands.sleep(span));
        let told = Cell::new(Vec::new());
        let _stopped = operation.run(|attempt: Attempt| {
            let mut limits = told.take();
            limits.push(attempt.time_limit());
            told.set(limits);
            if attempt.number() < 3 {
                Err(http(500))
            } else {
                Ok(())
            }
        });
        told.into_inner()
    };
    assert_eq!(told(None, None), [None; 3]);
    assert_eq!(told(None, Some(70)), [Some(ms(70)); 3]);
    assert_eq!(
        told(Some(200), None),
        [200, 150, 50].map(|left| Some(ms(left)))
    );
    assert_eq!(
        told(Some(200), Some(70)),
        [70, 70, 50].map(|left| Some(ms(left)))
    );
}

#[test]
fn without_a_deadline_no_clock_is_read() {
    #[derive(Debug)]
    struct Unread;
    impl paceline::Clock for Unread {
        fn now(&self) -> paceline::Timestamp {
            panic!("the time is not needed")
        }
    }
    let strategy = standard().build().unwrap();
    let operation = strategy.operation().clock(&Unread).attempt_timeout(ms(1));
    assert!(operation.run(|_| Ok::<_, Failure>(())).is_ok());
}

/// Runs what must not be done twice, and fails once by `failure`.
fn run_once(
    strategy: &dyn RetryStrategy,
    hands: &Hands,
    failure: Failure,
) -> Result<u32, StopReason> {
    let operation = strategy.operation().sleep_by(|span| hands.sleep(span));
    let operation = operation.idempotency(Idempotency::NotIdempotent);
    let answer = operation.run(|attempt| match attempt.number() {
        1 => Err(failure),
        number => Ok(number),
    });
    answer.map_err(|stopped| stopped.why())
}

/// Retries whatever it was, and asks nothing.
#[derive(Debug)]
struct Careless(StrategyId);

impl RetryStrategy for Careless {
    fn acquire_initial_token(&self, _: Option<&str>) -> Result<RetryToken, InitialTokenRefused> {
        Ok(RetryToken::new(self.0))
    }
    fn refresh_retry_token(
        &self,
        token: RetryToken,
        _: &Failure,
        _: Reports<'_>,
    ) -> Result<RetryToken, RetryRefused> {
        let token = self.0.check(token)?;
        Ok(token.with_delay(ms(100)))
    }
    fn record_success(&self, token: RetryToken, _: Reports<'_>) -> Result<(), ForeignToken> {
        self.0.check(token).map(drop)
    }
}

#[test]
fn what_may_have_been_done_is_not_done_twice() {
    let hands = Arc::new(Hands::default());
    let adaptive = Adaptive::builder()
        .law(paceline::ControlLaw::Aws)
        .clock(hands.clone())
        .build();
    let strategies: [Box<dyn RetryStrategy>; 4] = [
        Box::new(Standard::new()),
        Box::new(adaptive.unwrap()),
        Box::new(Legacy::new()),
        Box::new(Careless(StrategyId::new())),
    ];
    let once = Err(StopReason::MaybeExecuted);
    for strategy in &strategies {
        let run = |failure| run_once(&**strategy, &hands, failure);
        let lost = Failure::transient();
        assert_eq!(run(lost), once, "{strategy:?}");
        assert_eq!(run(Failure::timeout()), once);
        assert_eq!(run(lost.with_execution(Execution::NotSent)), Ok(2));
        assert_eq!(run(lost.with_execution(Execution::Rejected)), Ok(2));
        assert_eq!(run(Failure::throttling()), Ok(2));
        let half_done = Failure::throttling().with_execution(Execution::Maybe);
        assert_eq!(run(half_done), once);
    }
}

#[test]
fn failure_that_is_not_retryable_says_so_first() {
    let why = run_once(
        &Standard::new(),
        &Hands::default(),
        Failure::not_retryable(),
    );
    assert_eq!(why, Err(StopReason::NotRetryable));
}

#[test]
fn refused_repetition_costs_no_quota_and_is_recorded() {
    let hands = Arc::new(Hands::default());
    let strategy = Adaptive::builder()
        .law(paceline::ControlLaw::Aws)
        .clock(hands.clone())
        .build()
        .unwrap();
    let half_done = Failure::throttling().with_execution(Execution::Maybe);
    assert_eq!(
        run_once(&strategy, &hands, half_done),
        Err(StopReason::MaybeExecuted)
    );
    assert_eq!(strategy.quota().available(), 500);
    assert!(strategy.send_rate().snapshot(now(&hands)).enabled);
}

/// Refuses a retry of an operation with a token like this.
fn refused(strategy: &dyn RetryStrategy, with: impl Fn(RetryToken) -> RetryToken) -> RetryRefused {
    let token = with(strategy.acquire_initial_token(None).unwrap());
    let refused = strategy.refresh_retry_token(token, &http(500), Reports::new());
    refused.unwrap_err()
}

#[test]
fn strategies_refuse_without_our_loop() {
    let standard = standard().build().unwrap();
    let legacy = Legacy::new().random(Fixed::whole());
    let strategies: [(&dyn RetryStrategy, u64); 2] = [(&standard, 50), (&legacy, 1000)];
    for (strategy, delay) in strategies {
        let once = Idempotency::NotIdempotent;
        let reason = refused(strategy, |token| token.with_idempotency(once)).reason();
        assert!(matches!(reason, StopReason::MaybeExecuted), "{reason}");
        let late = refused(strategy, |token| token.with_time_left(Some(ms(delay))));
        assert!(matches!(late.reason(), StopReason::OutOfTime { .. }));
        assert_eq!((late.backoff(), late.delay()), (ms(delay), ms(0)));
    }
    assert_eq!(standard.quota().available(), 500);
}

#[test]
fn token_tells_the_time_that_is_left_up_to_584_years() {
    let token = RetryToken::new(StrategyId::new());
    assert_eq!(token.time_left(), None);
    let token = token.with_time_left(Some(ms(7)));
    assert_eq!(token.time_left(), Some(ms(7)));
    let token = token.with_time_left(Some(Duration::MAX));
    assert_eq!(token.time_left(), None);
}

#[test]
fn loop_holds_careless_strategies_to_the_deadline() {
    let strategy = Careless(StrategyId::new());
    let (stopped, elapsed) = run_until(&strategy, ms(250), ms(0), http(500));
    assert_eq!((stopped.attempts(), elapsed), (3, ms(200)));
    assert_eq!(stopped.why(), out_of_time(100, 50));
    assert_eq!(stopped.into_error(), Ok(http(500)));
}

#[test]
fn reasons_read_well() {
    let text = |reason: StopReason| RetryRefused::new(reason).to_string();
    let done = "the work may have been done, and must not be done twice";
    assert_eq!(text(StopReason::MaybeExecuted), done);
    assert_eq!(StopReason::MaybeExecuted.to_string(), done);
    let (wait, left) = (ms(1500), ms(20));
    let late = "out of time: 20ms left, and a wait of 1.5s";
    assert_eq!(text(StopReason::OutOfTime { wait, left }), late);
    assert_eq!(StopReason::OutOfTime { wait, left }.to_string(), late);
}

#[test]
fn errors_know_what_they_say_of_the_work() {
    use paceline::RetryInfo;
    let lost = Failure::transient().with_execution(Execution::NotSent);
    assert_eq!(lost.failure().execution(), Execution::NotSent);
    assert_eq!(Failure::throttling().execution(), Execution::Rejected);
}

/// Three seconds with the backoff, of which the service asked for one; and of the minute that it
/// asked for, no more than the backoff and five seconds are slept.
#[test]
fn a_delay_of_the_cap_and_a_hint_of_the_cap_are_not_too_long() {
    let seconds = Duration::from_secs;
    let hints = [
        (RetryAfter::AtLeast(seconds(1)), 1, 3),
        (RetryAfter::Clamped(seconds(60)), 7, 7),
    ];
    for (hint, cap, slept) in hints {
        let hands = Hands::default();
        let builder = Standard::builder().base_delay(seconds(2));
        let strategy = builder.random(Fixed::whole()).build().unwrap();
        let operation = strategy.operation().max_retry_after(seconds(cap));
        let mut attempts = operation.clock(&hands).start();
        assert!(matches!(attempts.next(&hands, None), Next::Send(_)));
        let hinted = http(500).with_retry_after(hint);
        let verdict = attempts.failed(&hinted, Reports::at(&hands)).unwrap();
        assert!(
            matches!(verdict, Verdict::Again(rest) if rest.span() == seconds(slept)),
            "{verdict:?}"
        );
    }
}
