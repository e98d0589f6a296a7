//! Limiters that obey declared limits, and hear of none.

use core::time::Duration;

use paceline::{
    ControlLaw, Outcome, SendPermit, SendRate, Timestamp,
    law::{DeclaredSettings, Dimension, LimitReport, LimitReports, Observed},
};

fn at(millis: u64) -> Timestamp {
    Timestamp::from_nanos(millis * 1_000_000)
}

fn minute(left: u64) -> LimitReports {
    let minute = Duration::from_secs(60);
    LimitReport::new(left).limit(60).window(minute).into()
}

/// Records an answer, and returns whether the limiter is shown as one that hears nothing.
fn answer(rate: &SendRate, millis: u64, outcome: Outcome) -> bool {
    rate.record(at(millis), SendPermit::sent_at(at(millis)), outcome);
    rate.snapshot(at(millis)).unheard
}

fn three(rate: &SendRate, millis: u64) -> [bool; 3] {
    [1, 2, 3].map(|more| answer(rate, millis + more, Outcome::NotThrottled))
}

#[test]
fn three_answers_without_a_report_are_shown() {
    let rate = SendRate::declared(DeclaredSettings::new(), at(0));
    assert!(!rate.snapshot(at(0)).unheard);
    assert_eq!(three(&rate, 0), [false, false, true]);
    let shown = rate.snapshot(at(9)).to_string();
    assert!(shown.ends_with(", no declared limit heard"), "{shown}");
}

#[test]
fn a_throttle_and_an_untimed_record_are_answers_too() {
    let tokens = DeclaredSettings::new().dimension(Dimension::Tokens);
    let rate = SendRate::declared(tokens, at(0));
    let permit = SendPermit::sent_at(at(0));
    rate.record_with(|| at(1), permit, Outcome::NotThrottled);
    assert!(!answer(&rate, 2, Outcome::Throttled));
    rate.record_with(|| at(3), permit.costing(500), Outcome::NotThrottled);
    assert!(rate.snapshot(at(3)).unheard);
}

#[test]
fn a_report_ends_it_for_good() {
    let rate = SendRate::declared(DeclaredSettings::new(), at(0));
    three(&rate, 0);
    let permit = SendPermit::sent_at(at(4));
    assert_eq!(rate.observe(at(5), permit, &minute(59)), Observed::Declared);
    assert!(!rate.snapshot(at(5)).unheard);
    assert_eq!(three(&rate, 6), [false; 3]);
    // Nor is one that was heard first ever unheard.
    let rate = SendRate::declared(DeclaredSettings::new(), at(0));
    rate.observe(at(1), SendPermit::sent_at(at(0)), &minute(59));
    assert_eq!(three(&rate, 1), [false; 3]);
}

#[test]
fn a_report_of_something_else_is_not_heard() {
    let tokens = DeclaredSettings::new().dimension(Dimension::Tokens);
    let rate = SendRate::declared(tokens, at(0));
    let permit = SendPermit::sent_at(at(0));
    assert_eq!(rate.observe(at(1), permit, &minute(59)), Observed::Nothing);
    assert_eq!(three(&rate, 1), [false, false, true]);
}

#[test]
fn forgetting_and_a_reset_begin_the_count_again() {
    for begin_again in [SendRate::forget_throttles, SendRate::reset] {
        let rate = SendRate::declared(DeclaredSettings::new(), at(0));
        three(&rate, 0);
        begin_again(&rate, at(4));
        assert!(!rate.snapshot(at(4)).unheard);
        assert_eq!(three(&rate, 5), [false, false, true]);
    }
}

#[test]
fn other_laws_do_not_listen() {
    for law in [ControlLaw::Aws, ControlLaw::Paced] {
        assert_eq!(three(&SendRate::new(law, at(0)), 0), [false; 3]);
    }
}
