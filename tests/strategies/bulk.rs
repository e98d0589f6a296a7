//! Strategies for pipelines: what is throttled counts nothing, until the deadline, or until nothing
//! has been delivered for too long. By a clock that stands still unless it is moved.

use core::{cell::Cell, time::Duration};

use crate::support::{Arc, Fixed, Hands};
use paceline::{
    Adaptive, Clock, ControlLaw, Failure, Operation, RetryAfter, RetryStrategy, RetryStrategyExt,
    config::{SettingsError, StrategyBuilder},
    law::DeclaredSettings,
    operation::{Next, RunError, StopReason, Verdict},
    strategy::Reports,
};

const THROTTLED: Failure = Failure::throttling();
const TRANSIENT: Failure = Failure::transient();
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

fn bulk(hands: &Arc<Hands>) -> StrategyBuilder<Adaptive> {
    let builder = Adaptive::builder().bulk().random(Fixed::whole());
    builder.clock(Arc::clone(hands) as Arc<dyn Clock>)
}

fn bulk_strategy() -> (Adaptive, Arc<Hands>) {
    let hands = Arc::new(Hands::default());
    (bulk(&hands).build().unwrap(), hands)
}

/// Runs an operation to which attempt after attempt is answered by `answer`, which is given its
/// number; returns how it ended, and after how many attempts.
fn run(
    strategy: &Adaptive,
    hands: &Hands,
    answer: impl Fn(u32) -> Result<(), Failure>,
) -> (Result<(), RunError<Failure>>, u32) {
    let sent = Cell::new(0);
    let operation = strategy.operation().sleep_by(|span| hands.sleep(span));
    let ended = operation.run(|attempt| {
        assert_eq!(attempt.max(), None, "there may always be another");
        sent.set(attempt.number());
        answer(attempt.number())
    });
    (ended, sent.get())
}

fn why(ended: Result<(), RunError<Failure>>) -> StopReason {
    ended.unwrap_err().why()
}

#[test]
fn throttled_attempts_use_up_no_attempts_and_no_quota() {
    let (strategy, hands) = bulk_strategy();
    assert_eq!(strategy.settings().max_attempts, 3);
    let (ended, sent) = run(&strategy, &hands, |number| match number {
        1..=4 => Err(THROTTLED),
        _ => Ok(()),
    });
    assert!(ended.is_ok());
    assert_eq!((sent, strategy.quota().available()), (5, 500));
    // Without bulk the same law stops it.
    let paced = Adaptive::builder().paced(paceline::law::PacedSettings::new());
    let paced = paced.clock(hands.clone()).build().unwrap();
    let operation = paced.operation().sleep_by(|span| hands.sleep(span));
    let ended = operation.run(|_| Err::<(), _>(THROTTLED));
    assert_eq!(why(ended), StopReason::MaxAttempts { max: 3 });
}

#[test]
fn an_empty_quota_stops_no_throttled_attempt() {
    let hands = Arc::new(Hands::default());
    let strategy = bulk(&hands).quota_capacity(0).build().unwrap();
    let throttled_once = |number| if number == 1 { Err(THROTTLED) } else { Ok(()) };
    assert!(run(&strategy, &hands, throttled_once).0.is_ok());
    let failed_once = |number| if number == 1 { Err(TRANSIENT) } else { Ok(()) };
    let stopped = why(run(&strategy, &hands, failed_once).0);
    assert!(matches!(
        stopped,
        StopReason::QuotaExhausted { needed: 14, .. }
    ));
}

#[test]
fn other_failures_are_limited_as_ever() {
    let (strategy, hands) = bulk_strategy();
    let (ended, sent) = run(&strategy, &hands, |number| match number {
        2 | 4 | 6 => Err(TRANSIENT),
        _ => Err(THROTTLED),
    });
    assert_eq!((why(ended), sent), (StopReason::MaxAttempts { max: 3 }, 6));
    assert_eq!(strategy.quota().available(), 500 - 2 * 14);
    let (ended, sent) = run(&strategy, &hands, |_| Err(Failure::not_retryable()));
    assert_eq!((why(ended), sent), (StopReason::NotRetryable, 1));
}

#[test]
fn a_success_after_throttles_pays_back_the_last_retry_that_was_paid() {
    let (strategy, hands) = bulk_strategy();
    let (ended, _) = run(&strategy, &hands, |number| match number {
        1 => Err(TRANSIENT),
        2..=9 => Err(THROTTLED),
        _ => Ok(()),
    });
    assert!(ended.is_ok());
    assert_eq!(strategy.quota().available(), 500);
}

#[test]
fn an_operation_ends_at_its_deadline_a_day_by_default() {
    let (strategy, hands) = bulk_strategy();
    assert_eq!(strategy.settings().deadline, Some(MINUTE * 24 * 60));
    // A hint of four minutes each time, and another operation that succeeds now and then.
    let hint = THROTTLED.with_retry_after(RetryAfter::AtLeast(MINUTE * 4));
    let (ended, _) = run(&strategy, &hands, |_| {
        let token = strategy.acquire_initial_token(None).unwrap();
        strategy.record_success(token, Reports::new()).unwrap();
        Err(hint)
    });
    let stopped = why(ended);
    assert!(matches!(stopped, StopReason::OutOfTime { .. }), "{stopped}");
    let hours = hands.elapsed().as_secs_f64() / 3_600.0;
    assert!((23.9..24.0).contains(&hours), "{hours}");
}

#[test]
fn the_deadline_of_the_builder_and_that_of_the_operation() {
    let hands = Arc::new(Hands::default());
    let strategy = bulk(&hands).deadline(SECOND * 20).build().unwrap();
    let ended = run(&strategy, &hands, |_| Err(THROTTLED)).0;
    assert!(matches!(why(ended), StopReason::OutOfTime { .. }));
    assert!(hands.elapsed() <= SECOND * 20);
    let attempt = |operation: Operation<'_, &Adaptive>| match operation.start().next(&*hands, None)
    {
        Next::Send(attempt) => attempt.time_limit(),
        other => panic!("{other:?}"),
    };
    strategy.forget_throttles();
    hands.sleep(SECOND);
    assert_eq!(attempt(Operation::new(&strategy)), Some(SECOND * 20));
    let sooner = Operation::new(&strategy).deadline(SECOND);
    hands.sleep(SECOND);
    assert_eq!(attempt(sooner), Some(SECOND), "the operation's comes first");
}

#[test]
fn nothing_delivered_for_five_minutes_stops_an_operation() {
    let (strategy, hands) = bulk_strategy();
    let stopped = why(run(&strategy, &hands, |_| Err(THROTTLED)).0);
    let StopReason::Stalled { span } = stopped else {
        panic!("{stopped}");
    };
    assert_eq!(span, hands.elapsed(), "since the first throttle, at once");
    // It is looked at after a backoff of a second at most.
    assert!(
        (MINUTE * 5..=MINUTE * 5 + SECOND).contains(&span),
        "{span:?}"
    );
    assert_eq!(
        stopped.to_string(),
        format!("stalled: everything was throttled for {span:?}")
    );
}

#[test]
fn a_delivery_begins_the_five_minutes_anew() {
    let (strategy, hands) = bulk_strategy();
    let throttle = || {
        let token = strategy.acquire_initial_token(None).unwrap();
        strategy.refresh_retry_token(token, &THROTTLED, Reports::new())
    };
    assert!(throttle().is_ok());
    hands.sleep(MINUTE * 4);
    assert!(throttle().is_ok());
    let token = strategy.acquire_initial_token(None).unwrap();
    strategy.record_success(token, Reports::new()).unwrap();
    hands.sleep(MINUTE * 4);
    assert!(throttle().is_ok(), "four minutes after a delivery");
    hands.sleep(Duration::from_nanos(299_999_999_999));
    assert!(throttle().is_ok());
    hands.sleep(Duration::from_nanos(1));
    let refused = throttle().unwrap_err();
    assert_eq!(
        refused.to_string(),
        "stalled: everything was throttled for 300s"
    );
}

#[test]
fn a_silence_is_no_stall() {
    let (strategy, hands) = bulk_strategy();
    let throttle = || {
        let token = strategy.acquire_initial_token(None).unwrap();
        strategy.refresh_retry_token(token, &THROTTLED, Reports::new())
    };
    assert!(throttle().is_ok());
    hands.sleep(MINUTE * 60); // nothing was to be sent
    assert!(throttle().is_ok());
    hands.sleep(MINUTE * 4);
    assert!(throttle().is_ok());
    hands.sleep(MINUTE);
    assert!(throttle().is_err());
}

#[test]
fn a_stalled_strategy_lets_go_what_has_its_turn_and_refuses_the_rest() {
    let hands = Arc::new(Hands::default());
    let strategy = bulk(&hands).stall_timeout(MINUTE * 5).build().unwrap();
    let stopped = why(run(&strategy, &hands, |_| Err(THROTTLED)).0);
    assert!(matches!(stopped, StopReason::Stalled { .. }));
    hands.sleep(SECOND * 120); // a knock is due by now
    let mut probe = Operation::new(&strategy).start();
    assert!(matches!(probe.next(&*hands, None), Next::Send(_)));
    let mut next = Operation::new(&strategy).start();
    let Next::Stop(stop) = next.next(&*hands, None) else {
        panic!("it waits for an account that is disabled");
    };
    assert!(matches!(stop.why(), StopReason::Stalled { .. }));
    assert_eq!(stop.attempts(), 0);
    probe.succeeded(Reports::new()).unwrap();
    let mut last = Operation::new(&strategy).start();
    assert!(matches!(last.next(&*hands, None), Next::InLine(_)));
}

#[test]
fn an_idle_time_is_not_throttled() {
    let (strategy, hands) = bulk_strategy();
    let mut attempts = Operation::new(&strategy).start();
    assert!(matches!(attempts.next(&*hands, None), Next::Send(_)));
    attempts.failed(&THROTTLED, Reports::new()).unwrap();
    drop(attempts);
    hands.sleep(MINUTE * 10);
    let mut workers: Vec<_> = (0..8).map(|_| Operation::new(&strategy).start()).collect();
    let mut sent = 0;
    for attempts in &mut workers {
        match attempts.next(&*hands, None) {
            Next::Send(_) => sent += 1,
            next => assert!(matches!(next, Next::InLine(_)), "{next:?}"),
        }
    }
    assert_eq!(sent, 1);
}

#[test]
fn a_hint_longer_than_the_stall_timeout_is_not_waited_for() {
    let (strategy, hands) = bulk_strategy();
    let hinted = |span| THROTTLED.with_retry_after(RetryAfter::AtLeast(span));
    let verdict = |failure| {
        strategy.forget_throttles();
        hands.sleep(SECOND);
        let mut attempts = Operation::new(&strategy).start();
        assert!(matches!(attempts.next(&*hands, None), Next::Send(_)));
        attempts.failed(&failure, Reports::new()).unwrap()
    };
    assert!(matches!(verdict(hinted(MINUTE * 5)), Verdict::Again(_)));
    let Verdict::Stop(stop) = verdict(hinted(MINUTE * 5 + SECOND)) else {
        panic!("it waits");
    };
    let (asked, max) = (MINUTE * 5 + SECOND, MINUTE * 5);
    assert_eq!(stop.why(), StopReason::RetryAfterTooLong { asked, max });
}

#[test]
fn a_bulk_strategy_begins_slowly_whatever_its_other_settings() {
    let hands = Arc::new(Hands::default());
    let rate = |builder: StrategyBuilder<Adaptive>| {
        let strategy = builder.build().unwrap();
        assert_eq!(strategy.law(), ControlLaw::Paced);
        let rate = strategy.snapshot().rate.unwrap();
        (rate.enabled, rate.fill_rate.round())
    };
    let shared = paceline::law::PacedSettings::shared();
    let capped = shared.to_builder().ceiling(3_500, SECOND).build().unwrap();
    let begun = shared
        .to_builder()
        .initial_rate(40, SECOND)
        .build()
        .unwrap();
    assert_eq!(rate(bulk(&hands)), (true, 10.0));
    assert_eq!(rate(bulk(&hands).paced(capped)), (true, 10.0));
    assert_eq!(rate(bulk(&hands).paced(begun)), (true, 40.0));
    let declared = bulk(&hands).declared(DeclaredSettings::new());
    let declared = declared.build().unwrap();
    assert_eq!(declared.law(), ControlLaw::Declared);
}

#[test]
fn a_stall_timeout_without_bulk_is_an_error() {
    let wrong = Adaptive::builder()
        .law(ControlLaw::Aws)
        .stall_timeout(SECOND)
        .build();
    assert_eq!(wrong.unwrap_err(), SettingsError::StallTimeoutWithoutBulk);
    assert_eq!(Adaptive::paced().settings().deadline, None);
}

/// The delays of twenty attempts outlive half a minute of faults, at half of what they can be; those
/// of ten do not.
#[test]
fn twenty_attempts_outlive_an_outage_of_half_a_minute() {
    for (attempts, outlives) in [(10, false), (20, true)] {
        let hands = Arc::new(Hands::default());
        let builder = Adaptive::builder()
            .bulk()
            .random(Arc::new(Fixed(u64::MAX / 2)));
        let builder = builder.clock(Arc::clone(&hands) as Arc<dyn Clock>);
        let builder = builder.max_attempts(attempts).quota_capacity(280);
        let strategy = builder.build().unwrap();
        let (ended, _) = run(&strategy, &hands, |_| {
            if hands.elapsed() < 30 * SECOND {
                Err(TRANSIENT)
            } else {
                Ok(())
            }
        });
        assert_eq!(ended.is_ok(), outlives, "{attempts}");
    }
}
