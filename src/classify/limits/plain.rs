//! Families of headers with one header for each number, which many services share.

use core::time::Duration;

use super::counts::{Item, list};
use super::field::Number;
use super::reader::Reader;
use crate::headers::time::SECOND;
use crate::law::{LimitName, LimitReport, Reset};

/// The names of the headers of a family.
pub(super) struct Family {
    pub(super) limit: &'static str,
    remaining: &'static str,
    resets: &'static [&'static str],
    /// The header of the policies: `1;w=1, 15000;w=2592000`.
    policy: &'static str,
    /// The header of the window in seconds.
    window: &'static str,
    /// The headers of the limit's name.
    names: &'static [&'static str],
    /// Headers that only a service sends whose limits come back all at once.
    windows: &'static [&'static str],
}

/// The IETF drafts come first.
pub(super) const FAMILIES: [Family; 3] = [
    // "RateLimit Fields for HTTP", IETF drafts 03 to 06; "Rate limits on GitLab.com", GitLab Docs,
    // with a time; "Docker Hub pull usage and limits", Docker Docs, without a reset; "Rate Limiting",
    // Yelp, with an ISO 8601 time.
    Family {
        limit: "ratelimit-limit",
        remaining: "ratelimit-remaining",
        resets: &["ratelimit-reset", "ratelimit-resettime"],
        policy: "ratelimit-policy",
        window: "",
        names: &["ratelimit-name"],
        windows: &["ratelimit-name", "ratelimit-observed"],
    },
    // "Rate limits for the REST API", GitHub Docs; "Rate Limits", Discord Developer Docs, whose
    // span is exact to milliseconds, and whose time is not; "API Rules", Reddit; "Rate Limits",
    // Datadog.
    Family {
        limit: "x-ratelimit-limit",
        remaining: "x-ratelimit-remaining",
        resets: &["x-ratelimit-reset-after", "x-ratelimit-reset"],
        policy: "x-ratelimit-policy",
        window: "x-ratelimit-period",
        names: &[
            "x-ratelimit-bucket",
            "x-ratelimit-resource",
            "x-ratelimit-name",
        ],
        windows: &[
            "x-ratelimit-bucket",
            "x-ratelimit-period",
            "x-ratelimit-reset-after",
            "x-ratelimit-resource",
            "x-ratelimit-used",
        ],
    },
    // "Rate limits", X Developer Platform; "Rate Limits", RingCentral Developers.
    Family {
        limit: "x-rate-limit-limit",
        remaining: "x-rate-limit-remaining",
        resets: &["x-rate-limit-reset"],
        policy: "",
        window: "x-rate-limit-window",
        names: &["x-rate-limit-group"],
        windows: &[],
    },
];

pub(super) fn read(reader: &mut Reader<'_>) {
    if windows(reader) {
        return;
    }
    for family in &FAMILIES {
        let Some(remaining) = reader.read(family.remaining, list) else {
            continue;
        };
        let limits = reader.read(family.limit, list).unwrap_or_default();
        let policies = policies(reader, family);
        match remaining.as_slice() {
            [remaining] => one(reader, family, *remaining, &limits, &policies),
            remaining => several(reader, family, remaining, &limits, &policies),
        }
    }
}

/// Returns the policies of a family. Structured policies belong to `RateLimit`, and are not counted
/// as wrong.
fn policies(reader: &mut Reader<'_>, family: &Family) -> Vec<Item> {
    let known = if reader.has("ratelimit") {
        reader.single(family.policy).and_then(list)
    } else {
        reader.read(family.policy, list)
    };
    known.unwrap_or_default()
}

fn one(
    reader: &mut Reader<'_>,
    family: &Family,
    remaining: Item,
    limits: &[Item],
    policies: &[Item],
) {
    let remaining = remaining.count;
    let limit = limits.first().map(|item| item.count).or_else(|| {
        // Reddit sends the used count instead of a limit.
        let used = reader.count("x-ratelimit-used");
        used.map(|used| remaining.saturating_add(used))
    });
    let mut report = LimitReport::new(remaining);
    let listed = limits.iter().chain(policies);
    let listed = listed.filter(|item| item.window != Number::Absent);
    if let Some(limit) = limit {
        report = report.limit(limit);
        let policy = listed.clone().find(|item| item.count == limit);
        if let Some(seconds) = policy.and_then(|policy| reader.window(policy.window)) {
            report = report.window(Duration::from_secs(seconds));
        }
    }
    if let Some(nanos @ 1..) = reader.amount(family.window, SECOND) {
        report = report.window(Duration::from_nanos(nanos));
    }
    let reset = reader.reset(family.resets, SECOND);
    if let Some(reset) = reset {
        report = report.reset(reset);
    }
    let mut names = family.names.iter();
    if let Some(name) = names.find_map(|name| reader.headers.get(*name)) {
        report = report.policy(LimitName::new(name));
    } else if let Some(limit) = limit {
        // The tightest of several policies. The next response may show another.
        if listed.clone().any(|item| item.count != limit) {
            report = report.policy(by_limit(limit));
        }
    }
    let is_x = family.limit == "x-rate-limit-limit" && matches!(reset, Some(Reset::At(_)));
    if is_x || family.windows.iter().any(|name| reader.has(name)) {
        report = report.refills(false);
    }
    if let Some(window) = limit.and_then(|limit| filled(reader, limit)) {
        report = report.window(window).refills(true);
    }
    reader.push(report);
}

/// "Adjusting your code for rate limiting", Atlassian Data Center: a number of requests comes back
/// in each interval. Returns the time in which all come back.
fn filled(reader: &mut Reader<'_>, limit: u64) -> Option<Duration> {
    let fill = reader.count("x-ratelimit-fillrate")?;
    let interval = reader.amount("x-ratelimit-interval-seconds", SECOND)?;
    let nanos = u128::from(limit).saturating_mul(interval.into());
    let window = nanos
        .checked_div(fill.into())
        .and_then(|nanos| u64::try_from(nanos).ok());
    let window = window.filter(|nanos| *nanos > 0);
    if window.is_none() {
        reader.ignore();
    }
    window.map(Duration::from_nanos)
}

/// "Rate limiting", Brave Search API: the members of all lists belong together.
fn several(
    reader: &mut Reader<'_>,
    family: &Family,
    remaining: &[Item],
    limits: &[Item],
    policies: &[Item],
) {
    if limits.len() != remaining.len() {
        return reader.ignore();
    }
    let resets = family.resets.last().and_then(|name| reader.single(name));
    let resets = resets.unwrap_or_default().split(|byte| *byte == b',');
    let resets: Vec<_> = resets.filter(|reset| !reset.is_empty()).collect();
    let has_resets = resets.len() == remaining.len();
    if !has_resets && !resets.is_empty() {
        reader.ignore();
    }
    for (index, (remaining, limit)) in remaining.iter().zip(limits).enumerate() {
        let mut report = LimitReport::new(remaining.count).limit(limit.count);
        report = report.policy(by_limit(limit.count));
        let policy = policies.iter().find(|policy| policy.count == limit.count);
        let window = policy.map_or(limit.window, |policy| policy.window);
        if let Some(seconds) = reader.window(window) {
            report = report.window(Duration::from_secs(seconds));
        }
        let reset = resets.get(index).filter(|_| has_resets);
        if let Some(reset) = reset.and_then(|reset| reader.reset_of(reset)) {
            report = report.reset(reset);
        }
        if !reader.push(report) {
            reader.ignore();
        }
    }
}

fn by_limit(limit: u64) -> LimitName {
    LimitName::new(limit.to_string())
}

/// Makes a row of [`WINDOWS`].
macro_rules! window {
    ($name:literal, $seconds:expr) => {
        (
            $name,
            [
                concat!("x-ratelimit-limit-", $name),
                concat!("x-ratelimit-remaining-", $name),
            ],
            $seconds,
        )
    };
}

/// A window: its name, its headers, and its seconds. Months and years vary in length.
pub(super) const WINDOWS: [(&str, [&str; 2], Option<u64>); 6] = [
    window!("second", Some(1)),
    window!("minute", Some(60)),
    window!("hour", Some(3_600)),
    window!("day", Some(86_400)),
    window!("month", None),
    window!("year", None),
];

/// "Rate Limiting", Kong Docs: each window has its headers. `RateLimit-*` repeats the window with
/// the least left, and adds its reset. Returns `true` if there are any.
fn windows(reader: &mut Reader<'_>) -> bool {
    let mut left: Vec<LimitReport> = Vec::new();
    for (name, [limit, remaining], seconds) in WINDOWS {
        let Some(remaining) = reader.count(remaining) else {
            continue;
        };
        let name = LimitName::of(name.as_bytes());
        let mut report = LimitReport::new(remaining).policy(name).refills(false);
        if let Some(limit) = reader.count(limit) {
            report = report.limit(limit);
        }
        if let Some(seconds) = seconds {
            report = report.window(Duration::from_secs(seconds));
        }
        left.push(report);
    }
    if left.is_empty() {
        return false;
    }
    let least = (
        reader.count("ratelimit-limit"),
        reader.count("ratelimit-remaining"),
    );
    let is_least =
        |report: &LimitReport| (report.declared_limit(), Some(report.remaining())) == least;
    // Of two windows with the same numbers, the longer is repeated.
    let place = left.iter().rposition(is_least);
    let report = place.and_then(|place| left.get_mut(place));
    if let (Some(report), Some(reset)) = (report, reader.reset(&["ratelimit-reset"], SECOND)) {
        *report = report.reset(reset);
    }
    for report in left {
        reader.push(report);
    }
    true
}
