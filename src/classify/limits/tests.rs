mod guide;
mod identity;
mod ietf;
mod models;
mod services;
mod spent;
mod told;
mod values;

use http::{HeaderName, HeaderValue, Response};

use super::*;
use crate::law::{LimitName, LimitReport};

/// The header without which times in other headers mean nothing.
const DATE: (&str, &str) = ("date", "Tue, 14 Nov 2023 22:00:00 GMT");

fn read(headers: &[(&str, &str)]) -> LimitReports {
    let mut response = Response::new(());
    for (name, value) in headers {
        let name = HeaderName::try_from(*name).unwrap();
        let value = HeaderValue::try_from(*value).unwrap();
        response.headers_mut().append(name, value);
    }
    let limits = HeaderLimits::new().mbx_weight(6_000);
    limits.read(&HttpResponseParts::of(&response))
}

/// Returns the reports as text: what is left, and how the limit comes back if declared.
fn shown(reports: &LimitReports) -> Vec<String> {
    let back = |refills| match refills {
        None => "",
        Some(true) => ", refills",
        Some(false) => ", windows",
    };
    let shown = reports
        .iter()
        .map(|report| format!("{report}{}", back(report.declared_refills())));
    shown.collect()
}

/// Returns the reports of headers, none of which is wrong.
#[track_caller]
fn texts(headers: &[(&str, &str)]) -> Vec<String> {
    let reports = read(headers);
    assert_eq!(reports.ignored(), 0, "{headers:?}");
    shown(&reports)
}

/// Returns the names of the policies that were read.
fn policies(headers: &[(&str, &str)]) -> Vec<LimitName> {
    let reports = read(headers);
    reports.iter().map(LimitReport::policy_name).collect()
}

#[test]
fn a_response_from_a_cache_declares_nothing() {
    let cached = read(&[("x-ratelimit-remaining", "3"), ("age", "7")]);
    assert!(cached.is_empty());
    let fresh = texts(&[("x-ratelimit-remaining", "3"), ("age", "0")]);
    assert_eq!(fresh, ["3 requests left"]);
}

#[test]
fn the_date_goes_with_the_reports() {
    let dated = read(&[
        ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ("x-ratelimit-remaining", "3"),
    ]);
    assert_eq!(dated.date(), Some(Duration::from_secs(784_111_777)));
}

#[test]
fn of_one_limit_in_two_families_the_first_counts() {
    // Many frameworks send both.
    let both = [
        ("ratelimit-limit", "100"),
        ("ratelimit-remaining", "99"),
        ("ratelimit-reset", "50"),
        ("x-ratelimit-limit", "100"),
        ("x-ratelimit-remaining", "99"),
        ("x-ratelimit-reset", "1700000000"),
        DATE,
    ];
    assert_eq!(texts(&both), ["99 of 100 requests left, reset in 50s"]);
    let named = [both.as_slice(), &[("x-ratelimit-resource", "core")]].concat();
    assert_eq!(texts(&named).len(), 2);
}
