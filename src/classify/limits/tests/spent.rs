//! Closed loops in virtual time: a service that counts, its headers, and a declared limiter.
#![allow(
    clippy::arithmetic_side_effects,
    reason = "numbers of tests: one that overflows fails"
)]

use std::time::UNIX_EPOCH;

use super::*;
use crate::law::{DeclaredSettings, Dimension, Spend};
use crate::{Outcome, SendRate, Timestamp};

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;
/// Midnight, by the service's clock.
const EPOCH: u64 = 1_700_006_400;

const fn at(second: u64) -> Timestamp {
    Timestamp::from_nanos(second * 1_000_000_000)
}

/// A fixed window in which the service counts arriving requests.
struct Counter {
    limit: u64,
    window: u64,
    used: u64,
    begun: u64,
}

impl Counter {
    const fn new(limit: u64, window: u64) -> Self {
        Self {
            limit,
            window,
            used: 0,
            begun: 0,
        }
    }

    fn turn(&mut self, now: u64) {
        let begun = now - now % self.window;
        if begun != self.begun {
            (self.begun, self.used) = (begun, 0);
        }
    }

    fn has_left(&self) -> bool {
        self.used < self.limit
    }
}

/// Makes the service's headers from its counters and the time in seconds.
type Headers = fn(&[Counter], u64) -> Vec<(String, String)>;
/// When a request was sent, in seconds, and whether the service accepted it.
type Sends = Vec<(u64, bool)>;

/// Tries to send each ten seconds until `end`. The service answers at once.
fn play(settings: DeclaredSettings, counters: &mut [Counter], end: u64, headers: Headers) -> Sends {
    let rate = SendRate::declared(settings, at(0));
    let mut sends = Vec::new();
    for now in (0..end).step_by(10) {
        let Ok(permit) = rate.try_acquire(at(now)) else {
            continue;
        };
        for counter in &mut *counters {
            counter.turn(now);
        }
        let goes = counters.iter().all(Counter::has_left);
        for counter in counters.iter_mut().filter(|_| goes) {
            counter.used += 1;
        }
        sends.push((now, goes));
        let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(EPOCH + now));
        let mut told = headers(counters, now);
        told.push(("date".to_owned(), date));
        let told: Vec<_> = told
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        rate.observe(at(now), permit, &read(&told));
        rate.record(
            at(now),
            permit,
            if goes {
                Outcome::NotThrottled
            } else {
                Outcome::Throttled
            },
        );
    }
    sends
}

fn plan(counters: &[Counter], _: u64) -> Vec<(String, String)> {
    let mut told = Vec::new();
    for (name, counter) in ["5h", "7d"].into_iter().zip(counters) {
        let header = |what| format!("anthropic-ratelimit-unified-{name}-{what}");
        let status = if counter.has_left() {
            "allowed"
        } else {
            "rejected"
        };
        let hundredths = counter.used * 100 / counter.limit;
        let used = format!("{}.{:02}", hundredths / 100, hundredths % 100);
        let reset = EPOCH + counter.begun + counter.window;
        told.push((header("status"), status.to_owned()));
        told.push((header("utilization"), used));
        told.push((header("reset"), reset.to_string()));
    }
    told
}

fn day(counters: &[Counter], now: u64) -> Vec<(String, String)> {
    let counter = &counters[0];
    let told = [
        ("limit", counter.limit),
        ("remaining", counter.limit - counter.used),
        ("reset", counter.begun + counter.window - now),
    ];
    let header = |(what, number): (&str, u64)| {
        (
            format!("x-ratelimit-{what}-requests-day"),
            number.to_string(),
        )
    };
    told.map(header).into()
}

/// Returns how many requests passed in each `window`, and the seconds from its beginning to the
/// first.
fn passed(sends: &Sends, window: u64) -> Vec<(usize, Option<u64>)> {
    let end = sends.last().map_or(0, |(at, _)| at / window);
    let of = |index| {
        let went =
            |(at, goes): &(u64, bool)| (*goes && at / window == index).then_some(at % window);
        let mut all = sends.iter().filter_map(went);
        let first = all.next();
        (all.count() + usize::from(first.is_some()), first)
    };
    (0..=end).map(of).collect()
}

fn refused(sends: &Sends) -> usize {
    sends.iter().filter(|(_, goes)| !goes).count()
}

/// A plan of 200 requests in 5 hours and 1,000 in 7 days, which are declared in parts.
#[test]
fn a_spent_plan_is_shut_until_its_reset() {
    let plans = DeclaredSettings::new().dimension(Dimension::Named(LimitName::new("plan")));
    let mut counters = [Counter::new(200, 5 * HOUR), Counter::new(1_000, 7 * DAY)];
    let sends = play(plans.spend(Spend::Fast), &mut counters, 8 * DAY, plan);
    let hours = passed(&sends, 5 * HOUR);
    let whole = |first| (200, Some(first));
    assert_eq!(hours[..5], [0, 10, 10, 10, 10].map(whole));
    assert_eq!(hours[5..33], [(0, None); 28]);
    let weeks = passed(&sends, 7 * DAY);
    assert_eq!(weeks, [(1_000, Some(0)), (1_000, Some(10))]);
    assert_eq!(refused(&sends), 0, "once it is spent");
}

/// A day of 1,000 requests.
#[test]
fn a_spent_day_is_shut_until_its_reset() {
    let fast = DeclaredSettings::new().spend(Spend::Fast);
    let mut counters = [Counter::new(1_000, DAY)];
    let sends = play(fast, &mut counters, 3 * DAY, day);
    let whole = |first| (1_000, Some(first));
    assert_eq!(passed(&sends, DAY), [0, 10, 10].map(whole));
    assert_eq!(refused(&sends), 0, "once it is spent");
}
