//! The cost of a query and the rest of a limit, as GraphQL services declare them.

use core::time::Duration;

use crate::{
    classify::{HttpResponseParts, json},
    headers::{
        number,
        time::{SECOND, When, when},
    },
    law::{Dimension, LimitName, LimitReport, LimitReports, Reset},
};

/// The window of GitHub's points.
const HOUR: Duration = Duration::from_secs(3_600);

/// What a body says. Fractions of numbers are dropped.
#[derive(Default)]
struct Said<'a> {
    /// Shopify: `extensions.cost`.
    requested: Option<u64>,
    actual: Option<u64>,
    most: Option<u64>,
    left: Option<u64>,
    a_second: Option<u64>,
    /// GitHub: `data.rateLimit`.
    limit: Option<u64>,
    cost: Option<u64>,
    remaining: Option<u64>,
    reset_at: Option<&'a [u8]>,
}

fn said<'a>(parts: &HttpResponseParts<'a>) -> Option<Said<'a>> {
    let mut said = Said::default();
    json::walk(parts.refusal()?, |path, value| {
        let place = |pattern: &[&str]| json::leads_to(path, pattern);
        let whole = || whole(value?);
        if place(&["extensions", "cost", "requestedQueryCost"]) {
            said.requested = whole();
        } else if place(&["extensions", "cost", "actualQueryCost"]) {
            said.actual = whole();
        } else if place(&["extensions", "cost", "throttleStatus", "maximumAvailable"]) {
            said.most = whole();
        } else if place(&["extensions", "cost", "throttleStatus", "currentlyAvailable"]) {
            said.left = whole();
        } else if place(&["extensions", "cost", "throttleStatus", "restoreRate"]) {
            said.a_second = whole().filter(|rate| *rate > 0);
        } else if place(&["data", "rateLimit", "limit"]) {
            said.limit = whole();
        } else if place(&["data", "rateLimit", "cost"]) {
            said.cost = whole();
        } else if place(&["data", "rateLimit", "remaining"]) {
            said.remaining = whole();
        } else if place(&["data", "rateLimit", "resetAt"]) {
            said.reset_at = value;
        }
    })?;
    Some(said)
}

/// Returns the limit that a GraphQL service declares in the body of a response.
///
/// | members | from |
/// |---|---|
/// | `extensions.cost.throttleStatus`: `maximumAvailable`, `currentlyAvailable`, `restoreRate` | [Shopify](https://shopify.dev/docs/api/usage/limits) |
/// | `data.rateLimit`: `limit`, `remaining`, `resetAt`, if the query asks for them | [GitHub](https://docs.github.com/en/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api) |
///
/// The limit counts points ([`Dimension::Tokens`]) and not requests, so a strategy obeys it if its
/// settings name that dimension. The body counts if the caller
/// [adds](HttpResponseParts::with_refusal) it. Adapters add it if
/// [`BodyRefusals::GraphQl`](super::BodyRefusals::GraphQl) classifies their responses.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "http")] {
/// use paceline::classify::{HttpResponseParts, graphql_cost, graphql_limits};
///
/// let response = http::Response::new(r#"{"data": {}, "extensions": {"cost": {
///     "requestedQueryCost": 101, "actualQueryCost": 46, "throttleStatus":
///     {"maximumAvailable": 1000, "currentlyAvailable": 954, "restoreRate": 50}}}}"#);
/// let parts = HttpResponseParts::of(&response).with_refusal(response.body());
/// assert_eq!(graphql_cost(&parts), Some(46));
/// let limits = graphql_limits(&parts);
/// assert_eq!(limits.iter().next().unwrap().remaining(), 954);
/// # }
/// ```
pub fn graphql_limits(parts: &HttpResponseParts<'_>) -> LimitReports {
    let mut reports = LimitReports::new();
    let Some(said) = said(parts) else {
        return reports;
    };
    let points = |left, limit, cost: Option<u64>| {
        let report = LimitReport::new(left)
            .dimension(Dimension::Tokens)
            .policy(LimitName::of(b"graphql"))
            .limit(limit);
        cost.map_or(report, |cost| report.cost(cost))
    };
    if let (Some(most @ 1..), Some(left), Some(a_second)) = (said.most, said.left, said.a_second) {
        let full = |points: u64| seconds(points, a_second);
        let report = points(left, most, said.actual.or(said.requested)).refills(true);
        let report = report.window(full(most));
        reports.push(report.reset(Reset::In(full(most.saturating_sub(left)))));
    }
    if let (Some(limit @ 1..), Some(remaining)) = (said.limit, said.remaining) {
        let report = points(remaining, limit, said.cost);
        let report = report.window(HOUR).refills(false);
        reports.push(match said.reset_at.and_then(|time| when(time, SECOND)) {
            Some(When::At(time)) => report.reset(Reset::At(time)),
            Some(When::In(span)) => report.reset(Reset::In(span)),
            None => report,
        });
    }
    reports.with_date(parts.now())
}

/// Returns the true cost of a query in points, from the body of a response:
/// `extensions.cost.actualQueryCost` of Shopify, or `data.rateLimit.cost` of GitHub.
///
/// The cost of a refused query is not known.
#[must_use]
pub fn graphql_cost(parts: &HttpResponseParts<'_>) -> Option<u32> {
    let said = said(parts)?;
    said.actual.or(said.cost)?.try_into().ok()
}

/// Returns the time until a query that Shopify refused has enough points.
pub(super) fn wait(parts: &HttpResponseParts<'_>) -> Option<Duration> {
    let said = said(parts)?;
    let lacks = said.requested?.checked_sub(said.left?)?;
    Some(seconds(lacks, said.a_second?))
}

/// Returns the time in which `points` come back, rounded up to a millisecond.
fn seconds(points: u64, a_second: u64) -> Duration {
    let millis = u128::from(points).saturating_mul(1_000);
    let millis = millis.div_ceil(u128::from(a_second.max(1)));
    Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}

/// Reads a number without its fraction. Shopify writes `1000.0`.
fn whole(value: &[u8]) -> Option<u64> {
    let digits = value.split(|byte| *byte == b'.').next()?;
    let is_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    number(digits).filter(|_| is_digits)
}
