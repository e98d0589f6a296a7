//! What a strategy shows of itself, and what may be changed while it runs: counts, costs, other
//! quotas.

use core::time::Duration;

use crate::support::{Arc, Bare, Fixed, Hands, OK, Response, Then, http, ms, step, throttling};
use paceline::{
    Adaptive, Clock, ControlLaw, Failure, Legacy, RetrySafety, RetryStrategy, RetryStrategyExt,
    SendRate, Standard, Timestamp,
    config::{RetryGeneration, SettingsError},
    law::{DeclaredSettings, LimitReport, LimitReports, PacedSettings},
    operation::StopReason,
    snapshot::{StrategyCounts, StrategySnapshot},
    strategy::{NotAdmitted, Reports, SendRequest, SendTurn},
};

/// Plays one operation: responses until it ends.
fn play(strategy: &impl RetryStrategy, responses: &[Response]) -> Then {
    let mut token = Some(strategy.acquire_initial_token(None).unwrap());
    let mut last = Then::Success;
    for response in responses {
        (last, token) = step(strategy, token.expect("not ended yet"), response);
    }
    assert!(token.is_none(), "the operation has ended");
    last
}

const FAILS: Response = Response::Fails(Failure::transient());
const NOT_RETRYABLE: Response = Response::Fails(Failure::not_retryable());

#[test]
fn counts_are_of_what_happened_and_by_cause() {
    let strategy = Standard::builder().quota_capacity(30).build().unwrap();
    assert_eq!(strategy.snapshot().counts, StrategyCounts::default());
    play(&strategy, &[OK]);
    assert_eq!(
        strategy.snapshot().counts,
        StrategyCounts::default(),
        "nothing to count: it was full"
    );
    play(&strategy, &[NOT_RETRYABLE]);
    play(&strategy, &[FAILS, OK]); // 14 and back
    play(&strategy, &[throttling(), throttling(), throttling()]); // 10 spent
    play(&strategy, &[FAILS, FAILS]); // 14 of the 20, then refused
    play(&strategy, &[OK]);
    let StrategySnapshot {
        quota,
        rate,
        counts,
        ..
    } = strategy.snapshot();
    assert_eq!((quota.available, quota.capacity), (7, 30));
    assert!(rate.is_none());
    assert_eq!((counts.granted, counts.throttled), (4, 3));
    assert_eq!(
        (
            counts.refused_safety,
            counts.refused_attempts,
            counts.refused_quota
        ),
        (1, 1, 1)
    );
    assert_eq!(counts.credited, 15);
    assert_eq!(
        (counts.delayed, counts.cuts, counts.refused_sends),
        (0, 0, 0)
    );
}

#[test]
fn counts_of_the_send_rate_are_of_cuts_waits_and_refused_sends() {
    let clock = Arc::new(Hands::default());
    let build = |fail_fast| {
        let builder = Adaptive::builder()
            .law(ControlLaw::Aws)
            .clock(Arc::clone(&clock) as Arc<dyn Clock>);
        builder.fail_fast(fail_fast).build().unwrap()
    };
    let (waits, fails) = (build(false), build(true));
    for strategy in [&waits, &fails] {
        let token = strategy.acquire_initial_token(None).unwrap();
        drop(strategy.refresh_retry_token(token, &Failure::throttling(), Reports::new()));
        let seen = strategy.snapshot();
        assert!(seen.rate.is_some_and(|rate| rate.enabled));
        assert_eq!((seen.counts.cuts, seen.counts.throttled), (1, 1));
    }
    // A throttle at the floor lowers nothing.
    let token = waits.acquire_initial_token(None).unwrap();
    drop(waits.refresh_retry_token(token, &Failure::throttling(), Reports::new()));
    assert_eq!(waits.snapshot().counts.cuts, 1);

    let claim = |strategy: &Adaptive, turn: &mut SendTurn| strategy.admit(turn, SendRequest::new());
    assert!(claim(&fails, &mut SendTurn::new()).is_err());
    assert_eq!(fails.snapshot().counts.refused_sends, 1);
    let mut turn = SendTurn::new();
    let Err(NotAdmitted::Wait { wait, .. }) = claim(&waits, &mut turn) else {
        panic!("it had to wait");
    };
    assert!(claim(&waits, &mut turn).is_err());
    assert_eq!(
        waits.snapshot().counts.delayed,
        1,
        "one send, however often it looks"
    );
    clock.sleep(wait);
    assert!(claim(&waits, &mut turn).is_ok());
    clock.sleep(Duration::from_secs(60));
    assert!(claim(&waits, &mut turn).is_ok());
    assert_eq!(waits.snapshot().counts.delayed, 1);
}

#[test]
fn legacy_mode_has_nothing_to_show() {
    let legacy: Box<dyn RetryStrategy> = Box::new(Legacy::new());
    assert_eq!(legacy.snapshot(), StrategySnapshot::default());
}

#[test]
fn costs_are_those_of_the_generation() {
    for (generation, costs) in [
        (RetryGeneration::V2_0, [5, 10, 5]),
        (RetryGeneration::V2_1, [5, 14, 14]),
    ] {
        let strategy = Standard::builder().generation(generation).build().unwrap();
        let answers = [
            Failure::throttling(),
            Failure::timeout(),
            Failure::transient(),
        ]
        .map(|failure| {
            let before = strategy.quota().available();
            let token = strategy.acquire_initial_token(None).unwrap();
            drop(
                strategy
                    .refresh_retry_token(token, &failure, Reports::new())
                    .unwrap(),
            );
            before - strategy.quota().available()
        });
        assert_eq!(answers, costs, "{generation:?}");
    }
}

/// What is printed is one line of values, not words of bits.
#[test]
fn strategies_print_in_one_readable_line() {
    let adaptive = Adaptive::paced();
    let shown = format!("{adaptive:?}");
    assert_eq!(
        shown,
        "Adaptive { law: Paced, max_attempts: 3, quota: 500, \
         rate: unlimited (nothing measured yet), .. }"
    );
    let standard = format!("{:?}", Standard::new());
    assert_eq!(standard, "Standard { max_attempts: 3, quota: 500, .. }");
    let operation = paceline::Operation::new(&adaptive).scope("a");
    assert!(format!("{operation:?}").len() < 400);
    let attempts = format!("{:?}", operation.start());
    assert!(
        attempts.len() < 300 && !attempts.contains('\n'),
        "{attempts}"
    );
}

#[test]
fn refusals_for_want_of_time_are_counted() {
    let clock = Arc::new(Hands::default());
    let builder = Standard::builder().clock(Arc::clone(&clock) as Arc<dyn Clock>);
    let builder = builder.deadline(ms(10)).random(Fixed::whole());
    let strategy = builder.build().unwrap();
    let token = strategy.acquire_initial_token(None).unwrap();
    let refused = strategy.refresh_retry_token(token, &http(500), Reports::new());
    let refused = refused.unwrap_err();
    assert!(matches!(refused.reason(), StopReason::OutOfTime { .. }));
    assert_eq!(strategy.snapshot().counts.refused_time, 1);
}

#[test]
fn a_strategy_of_ones_own_asks_for_little_by_default() {
    let clock = Hands::default();
    let strategy = Bare(Standard::new());
    let token = strategy.acquire_initial_token(None).unwrap();
    let limits = LimitReports::from(LimitReport::new(3));
    strategy.observe(&token, Reports::at(&clock).declaring(&limits));
    assert!(strategy.charge(&token).is_none());
    assert!(!strategy.obeys_limits());
    assert_eq!(strategy.snapshot(), StrategySnapshot::default());
    let permit = strategy.admit(&mut SendTurn::new(), SendRequest::new());
    assert_eq!(permit.unwrap().time(), Timestamp::ZERO);
}

#[test]
fn a_snapshot_is_one_line_for_people() {
    let clock = Arc::new(Hands::default());
    let builder = Adaptive::builder()
        .clock(Arc::clone(&clock) as Arc<dyn Clock>)
        .paced(PacedSettings::new());
    let strategy = builder.build().unwrap();
    assert_eq!(
        strategy.snapshot().to_string(),
        "quota 500 of 500; law paced; rate unlimited (nothing measured yet)"
    );
    play(&strategy, &[NOT_RETRYABLE]);
    let standard = Standard::builder().quota_capacity(30).build().unwrap();
    play(&standard, &[FAILS, NOT_RETRYABLE]);
    assert_eq!(
        standard.snapshot().to_string(),
        "quota 16 of 30; 1 granted; 1 refused_safety"
    );
    // A peak that no throttle has shown is none.
    let declared = SendRate::declared(DeclaredSettings::new(), Timestamp::ZERO);
    let shown = declared.snapshot(Timestamp::ZERO).to_string();
    assert!(shown.contains("no peak yet"), "{shown}");
    // Nor is that of a throttle that came before anything was measured.
    clock.sleep(Duration::from_millis(300));
    play(
        &strategy,
        &[Response::Fails(Failure::throttling()), NOT_RETRYABLE],
    );
    let shown = strategy.snapshot().to_string();
    assert!(
        shown.contains("nothing measured yet, no peak yet"),
        "{shown}"
    );
}

#[test]
fn strategies_have_the_identity_of_their_tokens() {
    let (one, other) = (Standard::new(), Adaptive::new(ControlLaw::Aws));
    assert!(one.id().is_some() && one.id() != other.id());
    let shared: Arc<dyn RetryStrategy> = Arc::new(Legacy::new());
    assert!(shared.id().is_some());
}

/// Before a window is over no rate was measured, and before a throttle there is no peak.
#[test]
fn what_is_not_known_yet_is_shown_as_such() {
    let rates = |builder: paceline::config::StrategyBuilder<Adaptive>| {
        let hands = Arc::new(Hands::default());
        let strategy = builder
            .clock(hands.clone() as Arc<dyn Clock>)
            .build()
            .unwrap();
        let shown = || {
            let rate = strategy.snapshot().rate.unwrap();
            let known = (rate.measured().is_some(), rate.peak().is_some());
            (rate.to_string(), known, rate.in_flight)
        };
        let new = shown();
        let run = |failure: Option<Failure>| {
            let answer = strategy.run(|_| {
                hands.sleep(ms(1));
                failure.map_or(Ok(()), Err)
            });
            assert_eq!(answer.is_ok(), failure.is_none());
        };
        run(None);
        let one = shown();
        hands.sleep(ms(2_000));
        run(None);
        let window = shown();
        hands.sleep(ms(2_000));
        run(Some(
            Failure::throttling().with_retry_safety(RetrySafety::No),
        ));
        (new, one, window, shown())
    };
    let fixed = PacedSettings::fixed(10, Duration::from_secs(1)).unwrap();
    // The paced law guesses the peak if fewer than eight responses came before the first throttle.
    for (builder, is_peak_known) in [
        (Adaptive::builder().law(ControlLaw::Aws), true),
        (Adaptive::builder().paced(PacedSettings::new()), false),
        (Adaptive::builder().bulk(), true),
        (Adaptive::builder().declared(DeclaredSettings::new()), false),
        (Adaptive::builder().paced(fixed), true),
    ] {
        let (new, one, window, throttled) = rates(builder);
        assert_eq!([new.1, one.1], [(false, false); 2], "{new:?}, {one:?}");
        for (shown, ..) in [&new, &one] {
            assert!(shown.contains("nothing measured yet"), "{shown}");
            assert!(
                shown.starts_with("unlimited") || shown.contains("no peak yet"),
                "{shown}"
            );
        }
        assert_eq!(window.1, (true, false), "{window:?}");
        assert_eq!(throttled.1, (true, is_peak_known), "{throttled:?}");
        // What a rate that limits nothing would have under way.
        for (shown, _, in_flight) in [new, one, window, throttled] {
            assert!(
                in_flight.is_none_or(|count| count < 10),
                "{shown}: {in_flight:?}"
            );
        }
    }
}

/// Two programs that are alike but for their law differ in how much they send.
#[test]
fn who_builds_names_the_law_and_it_is_shown() {
    let nameless = Adaptive::builder().max_attempts(4);
    assert_eq!(nameless.clone().build().unwrap_err(), SettingsError::NoLaw);
    let scopes = nameless.scopes().build();
    assert_eq!(scopes.unwrap_err(), SettingsError::NoLaw);
    let builder = Adaptive::builder;
    for (strategy, law, shown) in [
        (Adaptive::new(ControlLaw::Aws), ControlLaw::Aws, "aws"),
        (
            builder().law(ControlLaw::Paced).build().unwrap(),
            ControlLaw::Paced,
            "paced",
        ),
        (
            builder().bulk().build().unwrap(),
            ControlLaw::Paced,
            "paced",
        ),
        (Adaptive::declared(), ControlLaw::Declared, "declared"),
    ] {
        assert_eq!(strategy.settings().law, Some(law));
        let seen = strategy.snapshot();
        assert_eq!(seen.law, Some(law));
        let line = format!("quota 500 of 500; law {shown}; rate ");
        assert!(seen.to_string().starts_with(&line), "{seen}");
        assert!(
            format!("{seen:?}").contains(&format!("law: {law:?}")),
            "{seen:?}"
        );
    }
    let standard = Standard::new();
    assert_eq!(
        (standard.settings().law, standard.snapshot().law),
        (None, None)
    );
}
