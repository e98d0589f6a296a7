//! When to come back, and whether to.

use core::time::Duration;

use http::{HeaderMap, HeaderValue};

use crate::{
    RetryAfter,
    classify::{HeaderLimits, HttpResponseParts, json},
    headers::decimal,
    law::Reset,
};

/// Headers in milliseconds.
const MILLIS: [&str; 3] = ["retry-after-ms", "x-ms-retry-after-ms", PUSHBACK];
/// gRPC's: what is no number of milliseconds means that there is to be no retry ("gRPC Retry
/// Design", A6).
const PUSHBACK: &str = "grpc-retry-pushback-ms";
/// Headers that say whether to retry at all.
const SHOULD_RETRY: [&str; 2] = ["stripe-should-retry", "x-should-retry"];
/// Members of a JSON body, and how many nanoseconds one of their units has.
const MEMBERS: [(&[u8], u64); 5] = [
    (b"retryDelay", SECOND),
    (b"retry_after", SECOND),
    (b"retryAfter", SECOND),
    (b"retry_after_seconds", SECOND),
    (b"retry_after_ms", MILLISECOND),
];
const SECOND: u64 = 1_000_000_000;
const MILLISECOND: u64 = 1_000_000;

/// Returns what the service says on whether to retry.
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

/// Returns the service's hint on when to come back.
pub(super) fn hint(parts: &HttpResponseParts<'_>) -> Option<RetryAfter> {
    let headers = parts.headers();
    let millis = |name| decimal(headers.get(name)?.as_bytes(), MILLISECOND);
    let span = MILLIS.into_iter().find_map(millis);
    span.map(RetryAfter::AtLeast)
        .or_else(|| parts.retry_after())
        .or_else(|| in_body(parts.refusal()?).map(RetryAfter::AtLeast))
        .or_else(|| last_reset(parts).map(RetryAfter::AtLeast))
}

/// Returns `true` if nothing is left of one of the limits that the headers declare.
pub(super) fn is_used_up(parts: &HttpResponseParts<'_>) -> bool {
    let limits = HeaderLimits::new().read(parts);
    limits.iter().any(|limit| limit.remaining() == 0)
}

/// Returns the time until the last of the limits comes back of which nothing is left.
fn last_reset(parts: &HttpResponseParts<'_>) -> Option<Duration> {
    let limits = HeaderLimits::new().read(parts);
    let empty = limits.iter().filter(|limit| limit.remaining() == 0);
    let reset = empty.filter_map(|limit| match limit.declared_reset()? {
        Reset::In(span) => Some(span),
        Reset::At(time) => Some(time.saturating_sub(parts.now())),
    });
    reset.max()
}

fn in_body(body: &[u8]) -> Option<Duration> {
    json::members(body).find_map(|member| {
        let is_named = |(name, _): &(&[u8], u64)| *name == member.name;
        let (_, unit) = MEMBERS.into_iter().find(is_named)?;
        let value = member.value;
        decimal(value.strip_suffix(b"s").unwrap_or(value), unit)
    })
}
