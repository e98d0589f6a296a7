//! failsafe-go (<https://github.com/failsafe-go/failsafe-go>), `priority/*_test.go` and
//! `adaptivelimiter/*_test.go`: who waits, who is refused, and what is counted.
//!
//! Its limiter is of requests in flight, by the time that answers take. Here it is a rate of eight
//! a second, whose bucket holds one or nine.

use core::time::Duration;

use paceline::{
    Adaptive, Class, ControlLaw, Outcome, RetryStrategy, SendRate, Timestamp,
    law::PacedSettings,
    strategy::{NotAdmitted, SendRequest, SendTurn},
};

use crate::support::{Arc, Hands, ms};

const FOREGROUND: SendRequest<'static> = SendRequest::new();
const BACKGROUND: SendRequest<'static> = SendRequest::new().class(Class::Background);

fn at(millis: u64) -> Timestamp {
    Timestamp::from_nanos(millis * 1_000_000)
}

fn eight(burst: Duration) -> PacedSettings {
    PacedSettings::fixed(8, ms(1_000))
        .and_then(|fixed| fixed.to_builder().burst(burst).build())
        .expect("in range")
}

/// Asks once, and returns the place, or how long a refused one would have waited.
fn ask(strategy: &Adaptive, request: SendRequest<'_>) -> Result<SendTurn, Duration> {
    let mut turn = SendTurn::new();
    match strategy.admit(&mut turn, request) {
        Ok(_) | Err(NotAdmitted::Wait { .. }) => Ok(turn),
        Err(NotAdmitted::Refused { wait }) => Err(wait),
        Err(other) => panic!("{other:?}"),
    }
}

// priority: TestPriorityLimiter_AcquirePermitWithPriority, "with no rejection threshold" and "below
// prioritizer rejection threshold"
#[test]
fn background_is_refused_first_and_foreground_has_the_rest() {
    let builder = Adaptive::builder().paced(eight(ms(1_125))).fail_fast(true);
    let clock = Arc::new(Hands::default());
    let strategy = builder.clock(clock).build().expect("in range");
    let granted = |request: SendRequest<'_>| {
        let went = |_: &u32| strategy.admit(&mut SendTurn::new(), request).is_ok();
        (0..20).filter(went).count()
    };
    // Of nine tokens: one, and a quarter of the rest.
    assert_eq!([BACKGROUND, FOREGROUND].map(granted), [3, 6]);
}

// priority: "above max queued executions"; queueing: TestQueueingLimiter_AcquirePermit and
// _CanAcquirePermit
#[test]
fn beyond_the_longest_wait_both_classes_are_refused() {
    let clock = Arc::new(Hands::default());
    let builder = Adaptive::builder().paced(eight(ms(125))).max_wait(ms(375));
    let strategy = builder.clock(clock).build().expect("in range");
    let waiting = || strategy.snapshot().rate.map(|rate| rate.waiting);
    let went = ask(&strategy, FOREGROUND).expect("the bucket is full");
    assert!(!went.is_in_line());
    let mut line: Vec<_> = (0..3).map(|_| ask(&strategy, FOREGROUND)).collect();
    assert!(line.iter().all(Result::is_ok));
    for request in [FOREGROUND, BACKGROUND] {
        assert!(ask(&strategy, request).is_err_and(|wait| wait >= ms(500)));
        assert_eq!(waiting(), Some(3), "a refusal leaves nothing in line");
    }
    drop(line.pop());
    assert_eq!(waiting(), Some(2));
    assert!(ask(&strategy, FOREGROUND).is_ok());
}

// adaptivelimiter: TestAdaptiveLimiter_AcquirePermitWithMaxWaitAndRecord, with no time at all
#[test]
fn without_time_to_wait_it_goes_at_once_or_is_refused() {
    let clock = Arc::new(Hands::default());
    let builder = Adaptive::builder()
        .paced(eight(ms(125)))
        .max_wait(Duration::ZERO);
    let strategy = builder.clock(clock.clone()).build().expect("in range");
    assert!(ask(&strategy, FOREGROUND).is_ok());
    assert_eq!(ask(&strategy, FOREGROUND).err(), Some(ms(125)));
    clock.sleep(ms(125));
    assert!(ask(&strategy, FOREGROUND).is_ok());
}

// adaptivelimiter: TestAdaptiveLimiter_TryAcquirePermitAndRecord, _CanAcquirePermit, _Queued
#[test]
fn what_is_taken_and_who_waits_is_counted() {
    let rate = SendRate::paced(eight(ms(125)), at(0));
    let shown = |millis| {
        let shown = rate.snapshot(at(millis));
        (shown.available >= 1.0, shown.waiting)
    };
    assert_eq!(shown(0), (true, 0), "to look takes nothing");
    assert!(rate.try_acquire(at(0)).is_ok());
    assert_eq!(shown(0), (false, 0));
    assert_eq!(rate.try_acquire(at(0)), Err(ms(125)));
    let place = rate.reserve(at(0));
    assert_eq!(shown(0), (false, 1));
    drop(place);
    assert_eq!((shown(0), shown(125)), ((false, 0), (true, 0)));
}

// adaptivelimiter: TestAdaptiveLimiter_Reset
#[test]
fn a_reset_forgets_all_that_was_learned() {
    let used = SendRate::new(ControlLaw::Paced, at(0));
    for millis in 0..2_000 {
        let permit = used.try_acquire(at(millis));
        let throttled = millis > 1_000 && millis % 100 == 0;
        let outcome = if throttled {
            Outcome::Throttled
        } else {
            Outcome::NotThrottled
        };
        let _ = permit.map(|permit| used.record(at(millis + 5), permit, outcome));
    }
    let learned = used.snapshot(at(2_000));
    assert!(learned.enabled && learned.peak().is_some());
    used.forget_throttles(at(2_000));
    let new = SendRate::new(ControlLaw::Paced, at(2_000));
    let of = |rate: &SendRate| {
        let shown = rate.snapshot(at(2_000));
        (shown.enabled, shown.peak(), shown.fill_rate, shown.waiting)
    };
    assert_eq!(of(&used), of(&new));
}
