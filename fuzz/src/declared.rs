//! `declared`: headers of any text, and limits of any size in any order.

use core::time::Duration;

use arbitrary::{Arbitrary, Unstructured};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use paceline::{
    Outcome, Part, SendPermit, SendRate, Timestamp,
    classify::{HeaderLimits, HttpResponseParts},
    law::{DeclaredSettings, LimitReports, Spend},
};

/// Headers that services have.
const NAMES: [&str; 44] = [
    "ratelimit",
    "ratelimit-policy",
    "ratelimit-limit",
    "ratelimit-remaining",
    "ratelimit-reset",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "x-ratelimit-reset-after",
    "x-ratelimit-bucket",
    "x-ratelimit-resource",
    "x-rate-limit-limit",
    "x-rate-limit-remaining",
    "x-rate-limit-reset",
    "x-ratelimit-limit-requests",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-requests",
    "x-ratelimit-limit-tokens",
    "x-ratelimit-remaining-tokens",
    "x-ratelimit-reset-tokens",
    "anthropic-ratelimit-requests-limit",
    "anthropic-ratelimit-requests-remaining",
    "anthropic-ratelimit-requests-reset",
    "anthropic-ratelimit-tokens-limit",
    "anthropic-ratelimit-tokens-remaining",
    "anthropic-ratelimit-tokens-reset",
    "anthropic-ratelimit-input-tokens-limit",
    "anthropic-ratelimit-input-tokens-remaining",
    "anthropic-ratelimit-input-tokens-reset",
    "anthropic-ratelimit-output-tokens-limit",
    "anthropic-ratelimit-output-tokens-remaining",
    "anthropic-ratelimit-output-tokens-reset",
    "x-ratelimit-limit-req-minute",
    "x-ratelimit-remaining-req-minute",
    "x-ratelimit-reset-req-minute",
    "x-ratelimit-limit-tokens-minute",
    "x-ratelimit-remaining-tokens-minute",
    "x-ratelimit-reset-tokens-minute",
    "x-shopify-shop-api-call-limit",
    "x-mbx-used-weight-1m",
    "age",
    "date",
    "retry-after",
    "x-ratelimit-used",
];

#[derive(Arbitrary, Debug)]
enum Value {
    Bytes(Vec<u8>),
    Number(u64),
    Small(u16),
    Fraction(u32, u16),
    Span(u16, u8, u16),
    Day(u16, u8, u8),
    Members(Vec<(u8, u32, u32)>),
    Pair(u16, u16),
}

impl Value {
    fn text(&self) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes.clone(),
            Self::Number(number) => number.to_string().into(),
            Self::Small(number) => number.to_string().into(),
            Self::Fraction(whole, part) => format!("{whole}.{part}").into(),
            Self::Span(minutes, seconds, millis) => {
                format!("{minutes}m{seconds}s{millis}ms").into()
            }
            Self::Day(year, month, day) => {
                format!("{year:04}-{month:02}-{day:02}T08:30:00Z").into()
            }
            Self::Members(members) => {
                let members = members
                    .iter()
                    .map(|(name, r, t)| format!("\"{name}\";r={r};t={t};q={r};w={t}"));
                members.collect::<Vec<_>>().join(", ").into()
            }
            Self::Pair(used, limit) => format!("{used}/{limit}").into(),
        }
    }
}

#[derive(Arbitrary, Debug)]
enum Step {
    /// Time passes.
    Wait(u64),
    Millis(u16),
    Ask,
    Weigh(u32),
    /// A response to an earlier request, with these headers.
    Hear(u8, Vec<(u8, Value)>, Option<u32>),
    Done(u8),
    Throttled(u8, u16),
    Forget,
    Reset,
}

fn read(headers: &[(u8, Value)], date: Option<u32>) -> LimitReports {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name = NAMES[usize::from(*name) % NAMES.len()];
        if let Ok(value) = HeaderValue::from_bytes(&value.text()) {
            map.append(HeaderName::from_static(name), value);
        }
    }
    let reports = HeaderLimits::new()
        .mbx_weight(6_000)
        .read(&HttpResponseParts::new(StatusCode::OK, &map));
    match date {
        Some(date) => reports.with_date(Duration::from_secs(date.into())),
        None => reports,
    }
}

/// Whatever is declared, nothing overflows, the rate stays in range, and what is taken adds up.
///
/// # Panics
///
/// If it is not so.
pub fn declared(data: &[u8]) {
    let mut data = Unstructured::new(data);
    let fast = bool::arbitrary(&mut data).unwrap_or(false);
    let spend = if fast { Spend::Fast } else { Spend::Even };
    let rate = SendRate::declared(DeclaredSettings::new().spend(spend), Timestamp::ZERO);
    let mut now = 0_u64;
    let mut permits: Vec<SendPermit> = Vec::new();
    let pick = |permits: &[SendPermit], index: u8, now: u64| {
        let count = permits.len().max(1);
        permits
            .get(usize::from(index) % count)
            .copied()
            .unwrap_or(SendPermit::sent_at(Timestamp::from_nanos(now)))
    };
    for step in crate::steps::<Step>(&mut data) {
        let time = Timestamp::from_nanos(now);
        match step {
            Step::Wait(nanos) => now = now.saturating_add(nanos >> (nanos & 63)),
            Step::Millis(millis) => now = now.saturating_add(u64::from(millis) * 1_000_000),
            Step::Ask => permits.extend(rate.try_acquire(time).ok()),
            Step::Weigh(weight) => permits.extend(rate.try_acquire_n(time, weight).ok()),
            Step::Hear(index, lines, clock) => {
                rate.observe(time, pick(&permits, index, now), &read(&lines, clock));
            }
            Step::Done(index) => {
                rate.record(time, pick(&permits, index, now), Outcome::NotThrottled);
            }
            Step::Throttled(index, millis) => {
                let hint = Duration::from_millis(millis.into());
                let outcome = match millis & 3 {
                    0 => Part::outcome(1 + u32::from(millis & 7), 7),
                    1 => Outcome::PauseAfter(hint),
                    _ => Outcome::ThrottledFor(hint),
                };
                rate.record(time, pick(&permits, index, now), outcome);
            }
            Step::Forget => rate.forget_throttles(time),
            Step::Reset => rate.reset(time),
        }
        let seen = rate.snapshot(Timestamp::from_nanos(now));
        assert!(seen.enabled, "it limits from the start");
        assert!((0.0..=1e9).contains(&seen.fill_rate), "{seen:?}");
        if let Some(declared) = seen.declared {
            assert!(
                declared.limit > 0 && declared.limit <= 1 << 40,
                "{declared:?}"
            );
            assert!(declared.remaining >= 0.0, "{declared:?}");
        }
    }
}
