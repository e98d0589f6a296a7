//! [`SendRate`] under four threads and more: tokens, throttles and counts.

use alloc::sync::Arc;

use paceline_core::{ControlLaw, Outcome, SendPermit, SendRate, Timestamp};

use crate::{explore, on_threads};

pub(crate) fn at(millis: u64) -> Timestamp {
    Timestamp::from_nanos(millis * 1_000_000)
}

pub(crate) fn record(rate: &SendRate, millis: u64, outcome: Outcome) {
    rate.record(at(millis), SendPermit::sent_at(at(millis)), outcome);
}

fn open() -> SendRate {
    SendRate::new(ControlLaw::Aws, Timestamp::ZERO)
}

/// A limiter that has measured 32/s and was throttled at 0.6 s: 22.4 tokens/s from there on.
pub(crate) fn limited() -> Arc<SendRate> {
    let rate = open();
    for _ in 0..19 {
        record(&rate, 0, Outcome::NotThrottled);
    }
    record(&rate, 600, Outcome::NotThrottled);
    record(&rate, 600, Outcome::Throttled);
    Arc::new(rate)
}

fn close(got: f64, want: f64) -> bool {
    (got - want).abs() < 1e-6
}

/// Takes tokens at `millis` until there are none, and returns how many there were.
fn take_the_rest(rate: &SendRate, millis: u64) -> u32 {
    let mut granted = 0;
    while rate.try_acquire(at(millis)).is_ok() {
        granted += 1;
    }
    granted
}

/// Five threads try, wait in line, give up places and look on: what they get, and what is left, is
/// what was minted.
#[test]
fn grants_of_five_threads_and_the_rest_are_what_was_minted() {
    explore(1_500, || {
        let rate = limited(); // 8.96 tokens at 1 s
        let granted = on_threads(5, &rate, |rate, thread| {
            let mut granted = 0;
            for round in 0..3 {
                let taken = match (thread + round) % 4 {
                    0 | 1 => rate.try_acquire(at(1_000)).is_ok(),
                    2 => rate.reserve(at(1_000)).claim(at(1_000)).is_ok(),
                    _ => {
                        drop(rate.reserve(at(1_000)));
                        let seen = rate.snapshot(at(1_000)).available;
                        assert!((0.0..=8.96 + 1e-6).contains(&seen), "{seen} are there");
                        false
                    }
                };
                granted += u32::from(taken);
            }
            granted
        });
        let granted: u32 = granted.iter().sum();
        assert!(granted <= 8, "granted {granted} of 8.96");
        let rest = take_the_rest(&rate, 1_000);
        assert_eq!(granted + rest, 8, "no token is lost");
    });
}

/// Five threads try, wait and give up in both lines: what they get, and what is left, is what was
/// minted.
#[test]
fn grants_of_both_classes_and_the_rest_are_what_was_minted() {
    explore(1_000, || {
        let rate = limited(); // 8.96 tokens at 1 s
        let granted = on_threads(5, &rate, |rate, thread| {
            let (view, now) = (rate.background(), at(1_000));
            let (mut ahead, mut behind) = (0, 0);
            for round in 0..4 {
                match (thread + round) % 5 {
                    0 => ahead += u32::from(rate.try_acquire(now).is_ok()),
                    1 => behind += u32::from(view.try_acquire(now).is_ok()),
                    2 => behind += u32::from(view.reserve(now).claim(now).is_ok()),
                    3 => ahead += u32::from(rate.reserve(now).claim(now).is_ok()),
                    _ => drop(view.reserve(now)),
                }
            }
            (ahead, behind)
        });
        let ahead: u32 = granted.iter().map(|one| one.0).sum();
        let behind: u32 = granted.iter().map(|one| one.1).sum();
        assert!(ahead + behind <= 8, "granted {ahead} and {behind} of 8.96");
        // A look gives back what two threads have released for one.
        let view = rate.background();
        let rest = (0..9).filter(|_| view.try_acquire(at(1_000)).is_ok());
        let rest = u32::try_from(rest.count()).expect("9 at most");
        assert_eq!(ahead + behind + rest, 8, "no token is lost");
        let seen = rate.snapshot(at(1_000));
        assert_eq!((seen.waiting, seen.background.waiting), (0, 0));
        assert_eq!(seen.background.released, u64::from(behind + rest));
    });
}

/// While two threads throttle, others succeed and take: every throttle cuts, and takers get no more
/// than the first rate would have minted.
#[test]
fn throttles_of_two_threads_all_cut_whatever_others_do() {
    explore(1_500, || {
        let rate = limited();
        let granted = on_threads(5, &rate, |rate, thread| match thread {
            0 | 1 => {
                record(rate, 800, Outcome::Throttled);
                record(rate, 800, Outcome::Throttled);
                0
            }
            2 => {
                record(rate, 800, Outcome::NotThrottled);
                0
            }
            _ => (0..6)
                .map(|_| u32::from(rate.try_acquire(at(800)).is_ok()))
                .sum(),
        });
        let after = rate.snapshot(at(800));
        // The success has raised the rate before the first cut, or between two of them it changes
        // nothing.
        let raised = 0.4 * (0.2 - (32.0_f64 * 0.75).cbrt()).powi(3) + 32.0;
        let cut = 0.7_f64.powi(4);
        assert!(
            close(after.fill_rate, cut * 22.4) || close(after.fill_rate, cut * raised),
            "no throttle is lost: {after:?}"
        );
        let granted: u32 = granted.iter().sum();
        assert!(granted <= 4, "granted {granted} of 4.48");
        assert_eq!(granted + take_the_rest(&rate, 800), 4, "no token is lost");
    });
}

/// Five threads throttle a limiter that was never throttled: the first cuts what was measured.
#[test]
fn first_throttles_of_five_threads_all_cut() {
    explore(1_500, || {
        let rate = open();
        for _ in 0..19 {
            record(&rate, 0, Outcome::NotThrottled);
        }
        record(&rate, 600, Outcome::NotThrottled);
        let rate = Arc::new(rate);
        on_threads(5, &rate, |rate, _| record(rate, 700, Outcome::Throttled));
        let after = rate.snapshot(at(700));
        assert!(close(after.fill_rate, 0.7_f64.powi(5) * 32.0), "{after:?}");
        assert!(
            close(after.last_max_rate, 0.7_f64.powi(4) * 32.0),
            "{after:?}"
        );
    });
}

/// Requests of five threads, some of which turn the window, are counted in one window each.
#[test]
fn every_request_is_counted_in_one_window() {
    explore(1_500, || {
        let rate = Arc::new(open());
        on_threads(5, &rate, |rate, _| {
            record(rate, 100, Outcome::NotThrottled);
            record(rate, 200, Outcome::NotThrottled);
            record(rate, 600, Outcome::NotThrottled);
        });
        let first = rate.snapshot(at(600)).measured_rate;
        record(&rate, 1_100, Outcome::NotThrottled);
        let second = rate.snapshot(at(1_100)).measured_rate;
        // 16 requests in two windows: the smoothed rates tell how many in which.
        let counts = [first / 1.6, (second - 0.2 * first) / 1.6];
        assert!(close(counts.iter().sum(), 16.0), "counted {counts:?}");
        assert!(close(counts[0], counts[0].round()), "counted {counts:?}");
        assert!(
            (3.0 - 1e-6..=15.0 + 1e-6).contains(&counts[0]),
            "counted {counts:?}"
        );
    });
}
