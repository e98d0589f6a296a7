//! When to come back, and whether to.

use core::time::Duration;

use http::{HeaderMap, HeaderValue};

use crate::{
    RetryAfter,
    classify::{HeaderLimits, HttpResponseParts, json},
    headers::{
        decimal,
        time::{SECOND, When, when},
    },
    law::Reset,
};

use super::text::Told;

/// Headers that say when to come back, with the nanoseconds of their unit. `EXACT` comes before
/// `Retry-After`, and `OTHERS` after it.
const EXACT: [(&str, u64); 3] = [
    ("retry-after-ms", MILLISECOND),
    ("x-ms-retry-after-ms", MILLISECOND),
    (PUSHBACK, MILLISECOND),
];
const OTHERS: [(&str, u64); 3] = [
    ("x-retry-after", SECOND),
    ("x-ratelimit-retry-after", SECOND),
    ("x-rate-limit-retry-after-seconds", SECOND),
];
/// The hint of gRPC. A value that is no number of milliseconds forbids a retry ("gRPC Retry
/// Design", A6).
const PUSHBACK: &str = "grpc-retry-pushback-ms";
/// Headers that say whether to retry at all.
const SHOULD_RETRY: [&str; 2] = ["stripe-should-retry", "x-should-retry"];
/// Members of a JSON body, with the nanoseconds of their unit. Spans stand before times, which need
/// clocks that agree.
const MEMBERS: [(&[u8], u64); 10] = [
    (b"retryDelay", SECOND),
    (b"retry_after", SECOND),
    (b"retryAfter", SECOND),
    (b"retry_after_seconds", SECOND),
    (b"retryAfterSeconds", SECOND),
    (b"retry_after_ms", MILLISECOND),
    (b"retryAfterMs", MILLISECOND),
    (b"resets_in_seconds", SECOND),
    (b"resets_at", SECOND),
    (b"reset_at", SECOND),
];
/// "Rate Limits", Graph API: JSON with a list of times in minutes for each business.
const USAGE: (&str, &[u8]) = (
    "x-business-use-case-usage",
    b"estimated_time_to_regain_access",
);
const MILLISECOND: u64 = SECOND / 1_000;

/// Returns whether the service wants a retry, if it says so.
pub(super) fn should_retry(headers: &HeaderMap) -> Option<bool> {
    let said = SHOULD_RETRY.into_iter().find_map(|name| headers.get(name));
    match said.map(HeaderValue::as_bytes) {
        Some(b"true") => Some(true),
        Some(b"false") => Some(false),
        _ => {
            let pushback = headers.get(PUSHBACK)?;
            let is_wait = decimal(pushback.as_bytes(), MILLISECOND).is_some();
            (!is_wait).then_some(false)
        }
    }
}

/// Returns the service's hint when to come back. The headers come first, then the members of the
/// body, the resets of used-up limits, and the body's text in `told`.
pub(super) fn hint(parts: &HttpResponseParts<'_>, told: &Told) -> Option<RetryAfter> {
    let reset = last_reset(parts).or_else(|| bare_reset(parts));
    if let Some(hint) = in_headers(parts) {
        return Some(in_millis(hint, reset).unwrap_or(hint));
    }
    let now = parts.now();
    let span = in_body(parts.refusal().unwrap_or_default(), now);
    let span = span.or_else(|| in_usage(parts.headers())).or(reset);
    let span = span.or(told.again.map(|when| when.from(now)));
    span.map(RetryAfter::AtLeast)
}

/// Returns the true hint if a header of seconds was sent in milliseconds. The `reset` beside such a
/// hint is about a thousandth of the hint:
/// <https://github.com/fastify/fastify-rate-limit/issues/301>.
fn in_millis(hint: RetryAfter, reset: Option<Duration>) -> Option<RetryAfter> {
    let (RetryAfter::AtLeast(span), reset) = (hint, reset?) else {
        return None;
    };
    let span = span.checked_div(1_000)?;
    let is_close = span.abs_diff(reset) <= reset.checked_div(8)?;
    (is_close && reset > Duration::from_secs(1)).then_some(RetryAfter::AtLeast(span))
}

/// Returns the hint in the headers that contain nothing else.
pub(super) fn in_headers(parts: &HttpResponseParts<'_>) -> Option<RetryAfter> {
    let read = |(name, unit): (&str, u64)| {
        let when = when(parts.headers().get(name)?.as_bytes(), unit)?;
        Some(RetryAfter::AtLeast(when.from(parts.now())))
    };
    let exact = EXACT.into_iter().find_map(read);
    exact
        .or_else(|| parts.retry_after())
        .or_else(|| OTHERS.into_iter().find_map(read))
}

/// Returns `true` if a limit that the headers declare is used up.
pub(super) fn is_used_up(parts: &HttpResponseParts<'_>) -> bool {
    let limits = HeaderLimits::new().read(parts);
    limits.iter().any(|limit| limit.remaining() == 0)
}

/// Returns the longest time until a used-up limit comes back.
fn last_reset(parts: &HttpResponseParts<'_>) -> Option<Duration> {
    let limits = HeaderLimits::new().read(parts);
    let empty = limits.iter().filter(|limit| limit.remaining() == 0);
    let reset = empty.filter_map(|limit| match limit.declared_reset()? {
        Reset::In(span) => Some(span),
        Reset::At(time) => Some(time.saturating_sub(parts.now())),
        _ => None,
    });
    reset.max()
}

/// Returns the time until a reset without a header of what is left. Mapbox sends such a reset.
fn bare_reset(parts: &HttpResponseParts<'_>) -> Option<Duration> {
    let headers = parts.headers();
    let is_bare = |name: &&str| !headers.contains_key(format!("{name}remaining"));
    let mut bare = ["x-ratelimit-", "x-rate-limit-", "ratelimit-"]
        .into_iter()
        .filter(is_bare);
    let reset = bare.find_map(|name| headers.get(format!("{name}reset")))?;
    Some(when(reset.as_bytes(), SECOND)?.from(parts.now()))
}

fn in_body(body: &[u8], now: Duration) -> Option<Duration> {
    let read = |member: json::Member<'_>| {
        let is_named = |(name, _): &(&[u8], u64)| *name == member.name;
        let (_, unit) = MEMBERS.into_iter().find(is_named)?;
        when(member.value, unit)
    };
    let is_span = |when: &When| matches!(when, When::In(_));
    let mut found = json::members(body).filter_map(read);
    let span = found.find(is_span);
    let found = span.or_else(|| json::members(body).find_map(read))?;
    Some(found.from(now))
}

/// Returns the longest time until a business has access again.
fn in_usage(headers: &HeaderMap) -> Option<Duration> {
    let (header, name) = USAGE;
    let members = json::members(headers.get(header)?.as_bytes());
    let minutes = members.filter(|member| member.name == name);
    let spans = minutes.filter_map(|member| decimal(member.value, 60 * SECOND));
    spans.max().filter(|longest| !longest.is_zero())
}
