//! Background beside the rest: a strategy's, a set's and a snapshot's. By a clock that stands still
//! unless it is moved.
#![expect(
    clippy::arithmetic_side_effects,
    reason = "a test may overflow, and fail"
)]

use alloc::collections::VecDeque;
use core::time::Duration;

use crate::support::{Arc, Fixed, Hands, ms};
use paceline::{
    Adaptive, Class, ControlLaw, Failure, Outcome, RetryAfter, RetryStrategy, RetryStrategyExt,
    SendRate, SendSet, Timestamp,
    config::StrategyBuilder,
    law::PacedSettings,
    strategy::{NotAdmitted, Reports, SendRequest, SendTurn, in_class},
};

const SECOND: Duration = Duration::from_secs(1);
const PERSON: SendRequest<'static> = SendRequest::new();
const BACKFILL: SendRequest<'static> = SendRequest::new().class(Class::Background);

fn at(millis: u64) -> Timestamp {
    Timestamp::from_nanos(millis * 1_000_000)
}

/// So many tokens a second, and a bucket of `burst`.
fn fixed(tokens: u32, burst: Duration) -> PacedSettings {
    PacedSettings::fixed(tokens, SECOND)
        .and_then(|fixed| fixed.to_builder().burst(burst).build())
        .unwrap()
}

/// A strategy of 8 tokens a second, with a bucket of one, which is empty.
fn eight(builder: StrategyBuilder<Adaptive>) -> (Adaptive, Arc<Hands>) {
    let hands = Arc::new(Hands::default());
    let builder = builder.paced(fixed(8, ms(125))).random(Fixed::whole());
    let strategy = builder.clock(hands.clone()).build().unwrap();
    assert!(goes(&strategy, PERSON));
    (strategy, hands)
}

fn goes(strategy: &impl RetryStrategy, request: SendRequest<'_>) -> bool {
    strategy.admit(&mut SendTurn::new(), request).is_ok()
}

/// Takes a turn that has to wait.
fn stands(strategy: &impl RetryStrategy, request: SendRequest<'_>) -> SendTurn {
    let mut turn = SendTurn::new();
    let admitted = strategy.admit(&mut turn, request);
    assert!(matches!(admitted, Err(NotAdmitted::Wait { .. })));
    turn
}

#[test]
fn a_strategy_is_not_idle_while_background_waits() {
    let (strategy, hands) = eight(Adaptive::builder());
    assert!(!strategy.is_idle(), "the bucket is empty");
    let backfill = stands(&strategy, BACKFILL);
    // The bucket is full, and no thread has looked.
    hands.sleep(10 * SECOND);
    assert!(!strategy.is_idle());
    drop(backfill);
    assert!(strategy.is_idle());
}

#[cfg(feature = "scopes")]
#[test]
fn a_scope_is_not_evicted_while_background_waits() {
    let hands = Arc::new(Hands::default());
    let template = Adaptive::builder().paced(fixed(8, ms(125)));
    let scopes = template.clock(hands.clone()).scopes().build().unwrap();
    let admit = |request: SendRequest<'_>| {
        let token = scopes.acquire_initial_token(Some("a")).unwrap();
        let mut turn = SendTurn::new();
        let admitted = scopes.admit(&mut turn, request.token(&token));
        (admitted.is_ok(), turn)
    };
    assert!(admit(PERSON).0);
    let (went, backfill) = admit(BACKFILL);
    assert!(!went);
    hands.sleep(10 * SECOND);
    assert_eq!(scopes.evict_idle(), 0);
    drop(backfill);
    assert_eq!(scopes.evict_idle(), 1);
}

#[test]
fn fail_fast_refuses_background_first_and_gives_it_no_trickle() {
    let hands = Arc::new(Hands::default());
    let builder = Adaptive::builder().paced(fixed(100, ms(210)));
    let builder = builder.fail_fast(true).clock(hands.clone());
    let strategy = builder.build().unwrap();
    // Of 21 tokens one and a quarter of the rest.
    assert_eq!((0..30).filter(|_| goes(&strategy, BACKFILL)).count(), 6);
    let refused = strategy.admit(&mut SendTurn::new(), BACKFILL);
    assert!(matches!(refused, Err(NotAdmitted::Refused { .. })));
    assert_eq!((0..30).filter(|_| goes(&strategy, PERSON)).count(), 15);
    for _ in 0..40 {
        hands.sleep(ms(10));
        assert!(!goes(&strategy, BACKFILL) && goes(&strategy, PERSON));
    }
    let seen = strategy.snapshot().rate.unwrap().background;
    assert_eq!((seen.waiting, seen.released), (0, 6));
}

#[test]
fn background_that_waits_for_foreground_is_not_stalled() {
    let (strategy, hands) = eight(Adaptive::builder().bulk().stall_timeout(2 * SECOND));
    let mut backfill = stands(&strategy, BACKFILL);
    for step in 0..19 {
        hands.sleep(ms(125));
        // The foreground takes what is there.
        assert!(goes(&strategy, PERSON));
        let admitted = strategy.admit(&mut backfill, BACKFILL);
        let waits = matches!(admitted, Err(NotAdmitted::Wait { .. }));
        assert!(waits, "{step}: {admitted:?}");
    }
}

#[test]
fn a_stall_refuses_background_like_foreground() {
    for request in [BACKFILL, PERSON] {
        let (strategy, hands) = eight(Adaptive::builder().bulk().stall_timeout(10 * SECOND));
        let mut turn = stands(&strategy, request);
        let token = strategy.acquire_initial_token(None).unwrap();
        let hint = RetryAfter::AtLeast(ms(9_900));
        let throttled = Failure::throttling().with_retry_after(hint);
        let again = strategy.refresh_retry_token(token, &throttled, Reports::new());
        drop(again.unwrap());
        hands.sleep(9 * SECOND);
        let admitted = strategy.admit(&mut turn, request);
        assert!(matches!(admitted, Err(NotAdmitted::Wait { look_in, .. }) if look_in <= SECOND));
        hands.sleep(SECOND);
        let admitted = strategy.admit(&mut turn, request);
        let span = 10 * SECOND;
        assert_eq!(admitted, Err(NotAdmitted::Stalled { span }));
        // It holds up no other.
        let waiting = strategy.snapshot().rate.unwrap();
        assert_eq!((waiting.waiting, waiting.background.waiting), (0, 0));
    }
}

#[test]
fn a_debit_of_background_falls_on_the_first_line() {
    let rate = SendRate::paced(fixed(100, SECOND), Timestamp::ZERO);
    let permit = rate.background().try_acquire_n(at(0), 10).unwrap();
    rate.settle(at(0), permit, 200).unwrap();
    // A bucket of 100 less 200: one more needs 101 tokens.
    assert_eq!(rate.try_acquire(at(0)), Err(ms(1_010)));
    assert!(rate.try_acquire(at(1_010)).is_ok());
}

#[test]
fn a_credit_of_background_goes_back_to_the_bucket() {
    let rate = SendRate::paced(fixed(100, SECOND), Timestamp::ZERO);
    let permit = rate.background().try_acquire_n(at(0), 20).unwrap();
    rate.settle(at(0), permit, 5).unwrap();
    assert_eq!(
        (0..200).filter(|_| rate.try_acquire(at(0)).is_ok()).count(),
        95
    );
}

#[test]
fn requests_in_flight_are_suggested_for_both_classes() {
    let rate = SendRate::paced(fixed(100, SECOND), Timestamp::ZERO);
    let permit = rate.background().try_acquire(at(900)).unwrap();
    assert_eq!(rate.snapshot(at(1_000)).in_flight, None);
    rate.record(at(1_000), permit, Outcome::NotThrottled);
    assert_eq!(
        rate.snapshot(at(1_000)).in_flight,
        Some(16),
        "as of a foreground trip"
    );
    let _place = rate.background().reserve_n(at(1_000), 100).unwrap();
    assert_eq!(rate.snapshot(at(1_000)).in_flight, Some(16));
}

#[test]
fn everything_unmarked_is_foreground() {
    let strategy = Arc::new(
        Adaptive::builder()
            .paced(fixed(100, SECOND))
            .build()
            .unwrap(),
    );
    let released = || strategy.snapshot().rate.unwrap().background.released;
    let answer = |_| Ok::<_, Failure>(());
    for _ in 0..3 {
        strategy.run(answer).unwrap();
        strategy.operation().run(answer).unwrap();
    }
    assert_eq!(released(), 0);
    let marked = strategy.operation().class(Class::Background);
    marked.run(answer).unwrap();
    assert_eq!(released(), 1);
    let backfill = in_class(Arc::clone(&strategy), Class::Background);
    backfill.run(answer).unwrap();
    assert_eq!(released(), 2);
}

/// A retry waits behind the line again: one attempt of the foreground comes between.
#[test]
fn retries_keep_the_class_of_their_operation() {
    let hands = Arc::new(Hands::default());
    let builder = Adaptive::builder().paced(fixed(100, SECOND));
    let builder = builder.clock(hands.clone()).random(Fixed::whole());
    let strategy = builder.build().unwrap();
    let operation = strategy.operation().class(Class::Background);
    let ended =
        operation
            .sleep_by(|span| hands.sleep(span))
            .run(|attempt| match attempt.number() {
                1 => Err(Failure::transient()),
                _ => Ok(()),
            });
    assert!(ended.is_ok());
    assert_eq!(strategy.snapshot().rate.unwrap().background.released, 2);
}

/// Background keeps the bucket from emptying: the rate is used up all the same.
#[test]
fn a_slow_start_goes_on_while_background_waits() {
    let rise = |waits: bool| {
        let settings = PacedSettings::builder().slow_start(true);
        let settings = settings.initial_rate(10, SECOND).build().unwrap();
        let rate = SendRate::paced(settings, Timestamp::ZERO);
        while rate.try_acquire(at(0)).is_ok() {}
        let place = waits.then(|| rate.background().reserve(at(0)));
        let first = rate.snapshot(at(2_000)).fill_rate;
        rate.record(
            at(2_000),
            paceline::SendPermit::sent_at(at(1_900)),
            Outcome::NotThrottled,
        );
        drop(place);
        rate.snapshot(at(2_000)).fill_rate / first
    };
    let risen = [false, true].map(|waits| rise(waits) > 1.0);
    assert_eq!(risen, [false, true]);
}

#[test]
fn a_set_of_both_classes_takes_and_gives_back_of_each_limit() {
    let rates = [fixed(10, SECOND), fixed(1_000, SECOND)];
    let rates = rates.map(|settings| SendRate::paced(settings, Timestamp::ZERO));
    let set = SendSet::of(&rates).unwrap();
    while set.try_acquire(at(0), &[1, 10]).is_ok() {}
    let mut backfill = set.background().reserve(at(0), &[1, 100]).unwrap();
    let mut person = set.reserve(at(0), &[1, 10]).unwrap();
    assert!(backfill.claim(at(101)).is_err());
    assert!(person.claim(at(101)).is_ok());
    drop(backfill);
    for rate in &rates {
        let seen = rate.snapshot(at(101));
        assert_eq!((seen.waiting, seen.background.waiting), (0, 0));
    }
    assert_eq!(rates[0].law(), ControlLaw::Paced);
}

/// One token of the trickle stands behind all foreground requests in line, and the next comes after
/// 20 further tokens.
#[test]
fn background_gets_one_token_of_21_and_of_those_in_line() {
    for (waiters, weight, share) in [(1, 1, 22), (64, 1, 85), (512, 1, 533), (20, 5, 121)] {
        let settings = PacedSettings::fixed(1_000, Duration::from_secs(1)).unwrap();
        let rate = SendRate::paced(settings, Timestamp::ZERO);
        let mut line = VecDeque::new();
        let mut behind = rate.background().reserve(Timestamp::ZERO);
        let (mut of_all, mut of_background) = (0, 0);
        for millis in 0..60_000 {
            let now = Timestamp::from_nanos(millis * 1_000_000);
            while line.len() < waiters {
                line.push_back(rate.reserve_n(now, weight).unwrap());
            }
            while line.front_mut().unwrap().claim(now).is_ok() {
                of_all += weight;
                line.pop_front();
                line.push_back(rate.reserve_n(now, weight).unwrap());
            }
            if behind.claim(now).is_ok() {
                of_all += 1;
                of_background += 1;
                behind = rate.background().reserve(now);
            }
        }
        let expected = of_all / share;
        let most = expected / 50 + 2;
        assert!(
            expected.abs_diff(of_background) <= most,
            "{waiters} of {weight}: {of_background} of {of_all}, not 1 of {share}"
        );
    }
}
