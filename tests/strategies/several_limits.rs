//! Operations of a strategy with several send rates: weights before, costs in the response.
#![expect(
    clippy::arithmetic_side_effects,
    reason = "a test may overflow, and fail"
)]

use alloc::sync::Arc;
use core::{
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    time::Duration,
};

use paceline::{
    Adaptive, Clock, Failure, Operation, RetryStrategy, SendRateSnapshot, Timestamp, WeightError,
    config::SettingsError,
    law::{DeclaredSettings, Dimension, LimitReport, LimitReports, PacedSettings, Reset},
    operation::{Attempts, Next, StopReason},
    set::{SetError, Weights},
    strategy::{NotAdmitted, Reports, SendRequest, SendTurn},
};

/// A clock that stands until it is moved, in milliseconds.
#[derive(Clone, Debug, Default)]
struct Hands(Arc<AtomicU64>);

impl Hands {
    fn set(&self, millis: u64) {
        self.0.store(millis * 1_000_000, SeqCst);
    }
}

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.load(SeqCst))
    }
}

fn tokens() -> DeclaredSettings {
    DeclaredSettings::new().dimension(Dimension::Tokens)
}

/// A strategy of requests and tokens, and its clock.
fn strategy() -> (Adaptive, Hands) {
    let hands = Hands::default();
    let strategy = Adaptive::builder()
        .declared(DeclaredSettings::new())
        .also(tokens())
        .clock(Arc::new(hands.clone()))
        .build();
    (strategy.expect("in range"), hands)
}

/// 100 requests and 10,000 tokens a minute, of which so many are left.
fn reports(requests: u64, tokens: u64) -> LimitReports {
    let report = |left, limit, dimension| {
        LimitReport::new(left)
            .dimension(dimension)
            .limit(limit)
            .window(Duration::from_secs(60))
            .reset(Reset::In(Duration::from_secs(60)))
            .refills(false)
    };
    let mut reports = LimitReports::from(report(requests, 100, Dimension::Requests));
    reports.push(report(tokens, 10_000, Dimension::Tokens));
    reports
}

fn rates(strategy: &Adaptive) -> Vec<SendRateSnapshot> {
    let snapshot = strategy.snapshot();
    let further = snapshot.further_rates.into_iter().flatten();
    snapshot.rate.into_iter().chain(further).collect()
}

/// What is left of requests and tokens.
fn left(strategy: &Adaptive) -> Vec<String> {
    let limits = rates(strategy).into_iter().map(|rate| {
        let limit = rate.declared.expect("it is declared");
        format!("{:.0}", limit.remaining)
    });
    limits.collect()
}

fn begin<S: RetryStrategy>(strategy: S, weights: [u32; 2]) -> Attempts<S> {
    Operation::new(strategy).weights(weights).start()
}

/// Sends the next attempt, which has its turn.
fn send<S: RetryStrategy>(attempts: &mut Attempts<S>, hands: &Hands) {
    let next = attempts.next(hands, None);
    assert!(matches!(next, Next::Send(_)), "{next:?}");
}

#[test]
fn reports_and_outcomes_go_to_every_limit() {
    let (strategy, hands) = strategy();
    let mut first = begin(&strategy, [1, 500]);
    send(&mut first, &hands);
    let heard = first.observe(Reports::at(&hands).declaring(&reports(60, 9_000)));
    heard.expect("it is under way");
    assert_eq!(left(&strategy), ["60", "9000"]);
    first.succeeded(Reports::at(&hands)).expect("it succeeded");

    // The next one waits for its tokens, 150 a second, and not for its request.
    let mut second = begin(&strategy, [1, 600]);
    let Next::InLine(rest) = second.next(&hands, None) else {
        panic!("it has to wait");
    };
    assert_eq!(rest.span(), Duration::from_millis(50), "it is not woken");
    hands.set(5_000);
    send(&mut second, &hands);
    assert_eq!(left(&strategy), ["59", "8400"]);
    // It cost 200, and the response does not say what is left.
    let costs = Weights::from([1, 200]);
    let told = second.succeeded(Reports::at(&hands).costing(&costs));
    told.expect("it succeeded");
    assert_eq!(left(&strategy), ["59", "8400"], "a credit waits");
}

/// The body of a response says what it cost, after its outcome was recorded.
#[test]
fn a_cost_that_comes_with_the_body_is_settled_once() {
    let (strategy, hands) = strategy();
    let mut attempts = begin(&strategy, [1, 500]);
    assert!(attempts.charge().is_none(), "nothing was sent");
    send(&mut attempts, &hands);
    let heard = attempts.observe(Reports::at(&hands).declaring(&reports(60, 9_000)));
    heard.expect("it is under way");
    attempts
        .succeeded(Reports::at(&hands))
        .expect("it succeeded");
    assert!(attempts.charge().is_none(), "it has ended");

    let mut attempts = begin(&strategy, [1, 600]);
    assert!(matches!(attempts.next(&hands, None), Next::InLine(_)));
    hands.set(5_000);
    send(&mut attempts, &hands);
    let charge = attempts.charge().expect("it is under way");
    attempts
        .succeeded(Reports::at(&hands))
        .expect("it succeeded");
    assert_eq!(left(&strategy), ["59", "8400"]);
    let (given, rates) = (1, 2);
    let wrong = charge.settle(&[200]);
    assert_eq!(wrong, Err(SetError::Weights { given, rates }));
    assert_eq!(format!("{charge:?}"), "AttemptCharge([1, 600])");
    for cost in [1_000, 5_000] {
        charge.settle(&[1, cost]).expect("a debit");
        assert_eq!(left(&strategy), ["59", "8000"]);
    }
    assert!(format!("{charge:?}").ends_with(", settled)"), "{charge:?}");
}

#[test]
fn a_cost_of_one_send_rate_is_settled_too() {
    let hands = Hands::default();
    let second = Duration::from_secs(1);
    let settings = PacedSettings::fixed(1_000, second)
        .and_then(|fixed| fixed.to_builder().burst(second).build());
    let strategy = Adaptive::builder()
        .paced(settings.expect("in range"))
        .clock(Arc::new(hands.clone()))
        .build();
    let strategy = strategy.expect("in range");
    let mut attempts = Operation::new(&strategy).weight(600).start();
    send(&mut attempts, &hands);
    let body = attempts.detach().expect("it is under way");
    let charge = body.charge().expect("it took 600");
    body.succeeded(Reports::at(&hands));
    let available = || {
        let rate = strategy.snapshot().rate.expect("it has one");
        format!("{:.0}", rate.available)
    };
    assert_eq!(available(), "400");
    charge.settle(&[150]).expect("a credit");
    assert_eq!(available(), "850");
}

#[test]
fn a_snapshot_shows_every_send_rate() {
    let (strategy, hands) = strategy();
    let mut first = begin(&strategy, [1, 500]);
    send(&mut first, &hands);
    let told = first.succeeded(Reports::at(&hands).declaring(&reports(60, 9_000)));
    told.expect("it succeeded");
    let snapshot = strategy.snapshot();
    let dimension = |rate: Option<SendRateSnapshot>| {
        let declared = rate.expect("there is one").declared;
        declared.expect("it is declared").dimension
    };
    assert_eq!(dimension(snapshot.rate), Dimension::Requests);
    assert_eq!(dimension(snapshot.further_rates[0]), Dimension::Tokens);
    assert_eq!(snapshot.further_rates[1..], [None; 6]);
}

/// A first request that fails without a report must not hold a heavy retry back for hours.
#[test]
fn the_first_burst_is_one_of_requests() {
    let (strategy, hands) = strategy();
    let mut first = begin(&strategy, [1, 1_200]);
    send(&mut first, &hands);
    drop(first);
    let mut second = begin(&strategy, [1, 1_200]);
    assert!(matches!(second.next(&hands, None), Next::InLine(_)));
    hands.set(10_100);
    send(&mut second, &hands);
}

#[test]
fn a_throttle_is_the_limits_that_explains_it() {
    let (strategy, hands) = strategy();
    let mut attempts = begin(&strategy, [1, 500]);
    send(&mut attempts, &hands);
    let limits = reports(60, 200);
    let failed = attempts.failed(
        &Failure::throttling(),
        Reports::at(&hands).declaring(&limits),
    );
    assert!(failed.is_ok());
    let contradicted: Vec<_> = rates(&strategy)
        .into_iter()
        .map(|rate| rate.declared.is_some_and(|limit| limit.contradicted))
        .collect();
    assert_eq!(contradicted, [false, false]);
    assert_eq!(left(&strategy), ["60", "200"]);
}

#[test]
fn a_dropped_operation_gives_back_its_places() {
    let (strategy, hands) = strategy();
    let mut first = begin(&strategy, [1, 500]);
    send(&mut first, &hands);
    let told = first.succeeded(Reports::at(&hands).declaring(&reports(60, 9_000)));
    told.expect("it succeeded");
    let mut waiting = begin(&strategy, [1, 600]);
    assert!(matches!(waiting.next(&hands, None), Next::InLine(_)));
    let in_line = |strategy| -> Vec<u64> {
        let rates = rates(strategy).into_iter();
        rates.map(|rate| rate.waiting).collect()
    };
    assert_eq!(
        in_line(&strategy)[1],
        600,
        "the first has taken all there was"
    );
    drop(waiting);
    assert_eq!(in_line(&strategy), [0, 0]);
}

#[test]
fn weights_that_do_not_fit_stop_the_operation() {
    let (strategy, hands) = strategy();
    let mut attempts = Operation::new(&strategy).weights([1, 2, 3]).start();
    let (given, rates) = (3, 2);
    let Next::Stop(stop) = attempts.next(&hands, None) else {
        panic!("it was not refused");
    };
    assert_eq!(
        stop.why(),
        StopReason::Weight(SetError::Weights { given, rates })
    );
    assert_eq!(
        stop.why().to_string(),
        "3 weights for 2 rates: each has one"
    );
    // Costs that do not fit are ignored.
    let mut attempts = begin(&strategy, [1, 2]);
    send(&mut attempts, &hands);
    let costs = Weights::from([9]);
    let told = attempts.succeeded(Reports::at(&hands).costing(&costs));
    assert!(told.is_ok());
}

/// Such a weight may be an estimate that is too high.
#[test]
fn a_weight_above_the_limit_takes_the_limit_if_told_to() {
    let (strategy, hands) = strategy();
    let mut first = begin(&strategy, [1, 500]);
    send(&mut first, &hands);
    let full = reports(99, 10_000);
    let told = first.succeeded(Reports::at(&hands).declaring(&full));
    told.expect("it succeeded");

    let heavy = Weights::from([1, 36_000]);
    let next = Operation::new(&strategy)
        .weights(heavy)
        .start()
        .next(&hands, None);
    let Next::Stop(stop) = next else {
        panic!("{next:?}");
    };
    let (weight, capacity) = (36_000, 10_000);
    let error = WeightError::AboveCapacity { weight, capacity };
    assert_eq!(
        stop.why(),
        StopReason::Weight(SetError::Limit {
            limit: 1,
            error: error.into()
        })
    );

    let heavy = heavy.up_to_capacity();
    let mut second = Operation::new(&strategy).weights(heavy).start();
    let next = second.next(&hands, None);
    assert!(matches!(next, Next::InLine(_)), "{next:?}");
    hands.set(61_000);
    send(&mut second, &hands);
    let charge = second.charge().expect("it is under way");
    assert_eq!(format!("{charge:?}"), "AttemptCharge([1, 36000])");
    let used = reports(98, 0);
    let told = second.succeeded(Reports::at(&hands).declaring(&used));
    told.expect("it succeeded");
}

#[test]
fn one_rate_is_settled_too() {
    let hands = Hands::default();
    let strategy = Adaptive::builder()
        .declared(tokens())
        .clock(Arc::new(hands.clone()))
        .build()
        .expect("in range");
    assert_eq!(rates(&strategy).len(), 1);
    let left = || {
        let limit = strategy.send_rate().snapshot(hands.now()).declared;
        format!("{:.0}", limit.expect("it is declared").remaining)
    };
    let mut first = Operation::new(&strategy).weight(100).start();
    send(&mut first, &hands);
    let limits = reports(60, 9_000);
    let told = first.succeeded(Reports::at(&hands).declaring(&limits));
    told.expect("it succeeded");
    hands.set(5_000);
    let mut second = Operation::new(&strategy).weight(100).start();
    send(&mut second, &hands);
    assert_eq!(left(), "8900");
    let costs = Weights::from([300]);
    let told = second.succeeded(Reports::at(&hands).costing(&costs));
    told.expect("it succeeded");
    assert_eq!(left(), "8700");
}

#[test]
fn each_scope_has_its_own_limits() {
    let hands = Hands::default();
    let builder = Adaptive::builder()
        .declared(DeclaredSettings::new())
        .also(tokens())
        .clock(Arc::new(hands.clone()));
    let scopes = builder.scopes().build().expect("in range");
    let ask = |scope| {
        let operation = Operation::new(scopes.clone()).scope(scope);
        let mut attempts = operation.weights([1, 600]).start();
        let next = attempts.next(&hands, None);
        (attempts, next)
    };
    let (mut one, next) = ask("one");
    assert!(matches!(next, Next::Send(_)));
    let limits = reports(60, 300);
    let told = one.succeeded(Reports::at(&hands).declaring(&limits));
    told.expect("it succeeded");
    assert!(matches!(ask("one").1, Next::InLine(_)));
    assert!(matches!(ask("two").1, Next::Send(_)));
}

#[test]
fn a_strategy_that_fails_fast_refuses_at_once() {
    let hands = Hands::default();
    let strategy = Adaptive::builder()
        .declared(DeclaredSettings::new())
        .also(tokens())
        .fail_fast(true)
        .clock(Arc::new(hands.clone()))
        .build()
        .expect("in range");
    let mut first = begin(&strategy, [1, 1]);
    send(&mut first, &hands);
    let told = first.succeeded(Reports::at(&hands).declaring(&reports(60, 9_000)));
    told.expect("it succeeded");
    let mut second = begin(&strategy, [1, 600]);
    let Next::Stop(stop) = second.next(&hands, None) else {
        panic!("it was made to wait");
    };
    assert!(matches!(stop.why(), StopReason::SendRefused { .. }));
    assert_eq!(rates(&strategy)[1].waiting, 0);
}

#[test]
fn a_strategy_has_eight_rates_at_most() {
    let mut builder = Adaptive::builder().law(paceline::ControlLaw::Aws);
    for _ in 0..7 {
        builder = builder.also(tokens());
    }
    let strategy = builder.clone().build().expect("eight");
    assert_eq!(rates(&strategy).len(), 8);
    let ninth = builder.also(tokens()).build();
    assert_eq!(ninth.map(drop), Err(SettingsError::TooManyRates));
}

#[test]
fn an_attempt_that_waits_is_counted_once() {
    let (strategy, hands) = strategy();
    let mut first = begin(&strategy, [1, 9_000]);
    send(&mut first, &hands);
    let limits = reports(60, 100);
    let told = first.succeeded(Reports::at(&hands).declaring(&limits));
    told.expect("it succeeded");
    let mut waits = begin(&strategy, [1, 500]);
    for _ in 0..3 {
        assert!(matches!(waits.next(&hands, None), Next::InLine(_)));
    }
    assert_eq!(strategy.snapshot().counts.delayed, 1);
}

#[test]
fn the_weight_of_an_attempt_is_that_of_its_first_limit() {
    let (strategy, _) = strategy();
    let weights = Weights::from([0, 5]);
    let request = SendRequest::new().weights(&weights);
    let permit = strategy.admit(&mut SendTurn::new(), request);
    assert_eq!(permit.expect("it goes").weight(), 5);
    assert_eq!(
        SendRequest::new().weights(&Weights::from([7, 1])).tokens(),
        7
    );
}

/// Ten requests a second and 1,000 tokens a minute; a turn that has moved out of time is given up.
#[test]
fn a_turn_of_several_limits_that_moves_too_far_is_refused() {
    let hands = Hands::default();
    let settings = |requests| {
        let settings = PacedSettings::fixed(requests, Duration::from_secs(1)).expect("in range");
        let burst = Duration::from_millis(100);
        settings
            .to_builder()
            .burst(burst)
            .build()
            .expect("in range")
    };
    let strategy = Adaptive::builder()
        .paced(settings(10))
        .also(tokens())
        .max_wait(Duration::from_millis(250))
        .clock(Arc::new(hands.clone()))
        .build()
        .expect("in range");
    let admit = |turn: &mut SendTurn| strategy.admit(turn, SendRequest::new());
    let mut turns = [const { SendTurn::new() }; 3];
    let [first, second, third] = &mut turns;
    assert!(admit(first).is_ok());
    assert!(matches!(admit(second), Err(NotAdmitted::Wait { .. })));
    assert!(matches!(admit(third), Err(NotAdmitted::Wait { .. })));
    hands.set(50);
    strategy
        .set_paced(settings(5))
        .expect("it has the paced law");
    assert!(matches!(admit(second), Err(NotAdmitted::Wait { .. })));
    assert!(matches!(admit(third), Err(NotAdmitted::Refused { .. })));
    assert!(!third.is_in_line());
}

#[test]
fn limits_that_are_known_are_kept_to_without_headers() {
    let hands = Hands::default();
    let builder = Adaptive::builder().per_minute(60, 6_000).unwrap();
    let strategy = builder.clock(Arc::new(hands.clone())).build().unwrap();
    let sent_at = |weight: u32| {
        let mut attempts = Operation::new(&strategy).weights([1, weight]).start();
        loop {
            match attempts.next(&hands, None) {
                Next::Send(_) => break,
                Next::InLine(rest) | Next::Sleep(rest) => {
                    hands.0.store(rest.until().as_nanos(), SeqCst);
                }
                step => panic!("{step:?}"),
            }
        }
        attempts.succeeded(Reports::at(&hands)).unwrap();
        hands.now().as_nanos() / 1_000_000
    };
    // A second each by the requests; 3 s by the tokens, once the first 1,000 are used.
    assert_eq!([0; 4].map(|_| sent_at(1)), [0, 1_000, 2_000, 3_000]);
    let begun = sent_at(1_000);
    let later = [0; 3].map(|_| sent_at(300) - begun);
    assert_eq!(later, [3_000, 6_000, 9_000]);
    assert!(Adaptive::per_minute(0, 6_000).is_err());
    assert!(Adaptive::per_minute(60, 0).is_err());
}
