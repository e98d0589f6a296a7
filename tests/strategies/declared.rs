//! Declared limits through strategies, operations and limiters.

use core::time::Duration;

use crate::support::{Arc, Hands, http, ms};
use paceline::{
    Adaptive, Clock, ControlLaw, Operation, RetryStrategy, SendLimiter, SendRate,
    law::{DeclaredSettings, LimitReport, LimitReports, Observed, Reset},
    operation::{Next, NotSending},
    strategy::Reports,
};

fn minute(remaining: u64) -> LimitReports {
    let reset = Reset::In(Duration::from_secs(60));
    LimitReport::new(remaining).limit(60).reset(reset).into()
}

fn strategy(clock: &Arc<Hands>) -> Adaptive {
    let builder = Adaptive::builder()
        .law(ControlLaw::Aws)
        .clock(clock.clone() as Arc<dyn Clock>);
    let built = builder.declared(DeclaredSettings::new()).build();
    built.expect("the settings are right")
}

fn known(strategy: &impl RetryStrategy) -> Option<u64> {
    let rate = strategy.snapshot().rate?;
    Some(rate.declared?.limit)
}

#[test]
fn limits_are_taken_from_every_kind_of_report() {
    type Tell = fn(&Adaptive, &LimitReports);
    let tell: [(&str, Tell); 3] = [
        ("success", |strategy, limits| {
            let token = strategy.acquire_initial_token(None).unwrap();
            strategy
                .record_success(token, Reports::new().declaring(limits))
                .unwrap();
        }),
        ("failure", |strategy, limits| {
            let token = strategy.acquire_initial_token(None).unwrap();
            let reports = Reports::new().declaring(limits);
            drop(strategy.refresh_retry_token(token, &http(500), reports));
        }),
        ("headers alone", |strategy, limits| {
            let token = strategy.acquire_initial_token(None).unwrap();
            strategy.observe(&token, Reports::new().declaring(limits));
        }),
    ];
    for (name, tell) in tell {
        let strategy = strategy(&Arc::new(Hands::default()));
        assert!(strategy.obeys_limits());
        assert_eq!(known(&strategy), None, "{name}");
        tell(&strategy, &minute(30));
        assert_eq!(known(&strategy), Some(60), "{name}");
        let shown = strategy.snapshot().rate.unwrap().to_string();
        assert!(
            shown.ends_with("declared: 30 of 60 requests left, window 60s, reset in 61.0s"),
            "{shown}"
        );
    }
    let paced = Adaptive::paced();
    assert!(!paced.obeys_limits());
    let token = paced.acquire_initial_token(None).unwrap();
    paced
        .record_success(token, Reports::new().declaring(&minute(30)))
        .unwrap();
    assert_eq!(known(&paced), None);
}

#[test]
fn an_operation_hears_the_headers_before_its_outcome() {
    let clock = Arc::new(Hands::default());
    let strategy = strategy(&clock);
    let mut attempts = Operation::new(&strategy).start();
    let limits = minute(59);
    let reports = || Reports::at(&*clock).declaring(&limits);
    assert_eq!(attempts.observe(reports()), Err(NotSending));
    assert!(matches!(attempts.next(&*clock, None), Next::Send(_)));
    clock.sleep(ms(100));
    assert_eq!(attempts.observe(reports()), Ok(()));
    assert_eq!(known(&strategy), Some(60));
    // Its turn comes in a second, though the first one is not done yet.
    let mut second = Operation::new(&strategy).start();
    assert!(matches!(second.next(&*clock, None), Next::InLine(_)));
    clock.sleep(ms(1_500));
    assert!(matches!(second.next(&*clock, None), Next::Send(_)));
    assert_eq!(attempts.succeeded(Reports::at(&*clock)), Ok(()));
}

/// Before the first report the length of a wait is unknown: a deadline refuses no request that may
/// go in time.
#[test]
fn a_deadline_refuses_nothing_before_the_first_report() {
    let clock = Arc::new(Hands::default());
    let strategy = strategy(&clock);
    let start = || Operation::new(&strategy).deadline(ms(20_000)).start();
    let [mut first, mut second, mut third, mut late] = [(); 4].map(|()| start());
    assert!(matches!(first.next(&*clock, None), Next::Send(_)));
    for waiting in [&mut second, &mut third, &mut late] {
        let next = waiting.next(&*clock, None);
        assert!(matches!(next, Next::InLine(_)), "{next:?}");
    }
    clock.sleep(ms(100));
    let limits = minute(59);
    assert_eq!(
        first.observe(Reports::at(&*clock).declaring(&limits)),
        Ok(())
    );
    for waiting in [&mut second, &mut third] {
        clock.sleep(ms(1_500));
        let next = waiting.next(&*clock, None);
        assert!(matches!(next, Next::Send(_)), "{next:?}");
    }
    // From now on a wait can be foretold: a second for each.
    let mut many = [(); 30].map(|()| start());
    let next = many.each_mut().map(|one| one.next(&*clock, None));
    assert!(matches!(next.first(), Some(Next::InLine(_))), "{next:?}");
    assert!(matches!(next.last(), Some(Next::Stop(_))), "{next:?}");
}

/// Without a report the deadline ends the wait all the same, and not sooner than 50 ms before it.
#[test]
fn a_deadline_ends_the_wait_for_the_first_report() {
    let clock = Arc::new(Hands::default());
    let strategy = strategy(&clock);
    let start = || Operation::new(&strategy).deadline(ms(5_000)).start();
    let (mut first, mut second) = (start(), start());
    assert!(matches!(first.next(&*clock, None), Next::Send(_)));
    for _ in 0..49 {
        assert!(matches!(second.next(&*clock, None), Next::InLine(_)));
        clock.sleep(ms(100));
    }
    clock.sleep(ms(51));
    assert!(matches!(second.next(&*clock, None), Next::Stop(_)));
}

#[test]
fn a_limiter_hears_limits() {
    let clock = Hands::default();
    let rate = SendRate::new(ControlLaw::Declared, clock.now());
    let limiter = SendLimiter::new(&rate).clock(&clock);
    let permit = limiter.token().try_acquire().expect("the first one goes");
    assert_eq!(limiter.observe(permit, &minute(59)), Observed::Declared);
    assert!(limiter.token().try_acquire().is_err());
}

#[cfg(feature = "scopes")]
#[test]
fn each_scope_has_its_limits() {
    let builder = Adaptive::builder().declared(DeclaredSettings::new());
    let scopes = builder.scopes().build().expect("the settings are right");
    let token = scopes.acquire_initial_token(Some("one")).unwrap();
    scopes.observe(&token, Reports::new().declaring(&minute(30)));
    scopes.record_success(token, Reports::new()).unwrap();
    let limit = |key: &str| known(&*scopes.get(key).expect("there is room"));
    assert_eq!((limit("one"), limit("two")), (Some(60), None));
    assert!(scopes.obeys_limits());
}
