//! Refusals inside of successes, as a classifier of responses over HTTP.

use core::time::Duration;

use http::header;

use super::BodyRefusals;
use crate::{
    Failure, RetryAfter, RetrySafety,
    classify::{Classifier, HttpResponseParts, MAX_REFUSAL_BODY, json, refusal},
    headers::time::{SECOND, When, when},
};

/// Knows successes only. In a pair with another classifier it must be the first.
///
/// It wants the body of a success whose `Content-Type` is JSON or missing, unless its
/// `Content-Length` is above 64 KiB. A body that turns out to be longer counts as no report.
impl Classifier<HttpResponseParts<'_>> for BodyRefusals {
    fn classify(&self, parts: &HttpResponseParts<'_>) -> Option<Failure> {
        let body = parts.refusal().filter(|_| parts.status().is_success())?;
        let failure = self.read(body)?.failure()?;
        if failure.part().is_some() {
            // The whole request sent again would repeat the items that succeeded.
            return Some(failure.with_retry_safety(RetrySafety::No));
        }
        let failure = refusal::throttled(parts).failure();
        if failure.retry_safety() != RetrySafety::Yes || failure.retry_after().is_some() {
            return Some(failure);
        }
        let hint = self.wait(parts, body).map(RetryAfter::AtLeast);
        Some(hint.map_or(failure, |hint| failure.with_retry_after(hint)))
    }

    fn wants_body(&self, parts: &HttpResponseParts<'_>) -> bool {
        let headers = parts.headers();
        let is_json = headers.get(header::CONTENT_TYPE).is_none_or(|kind| {
            let kind = kind.as_bytes();
            kind.windows(4)
                .any(|part| part.eq_ignore_ascii_case(b"json"))
        });
        let length = headers.get(header::CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        parts.status().is_success()
            && parts.refusal().is_none()
            && is_json
            && length.is_none_or(|length: usize| length <= MAX_REFUSAL_BODY)
    }
}

impl BodyRefusals {
    /// Returns the wait that a service declares in a form that no other service has.
    fn wait(self, parts: &HttpResponseParts<'_>, body: &[u8]) -> Option<Duration> {
        match self {
            Self::GraphQl => super::graphql::wait(parts),
            // Both times are of the service's clock, in milliseconds.
            Self::Bybit => {
                let reset = parts.headers().get("x-bapi-limit-reset-timestamp")?;
                let mut members = json::members(body);
                let time = members.find(|member| member.depth == 1 && member.name == b"time");
                let now = match time.and_then(|time| when(time.value, SECOND)) {
                    Some(When::At(time)) => time,
                    _ => parts.now(),
                };
                Some(when(reset.as_bytes(), SECOND)?.from(now))
            }
            // `EService: Throttled: 1663344000`
            Self::Kraken => {
                let mut found = None;
                json::walk(body, |path, value| {
                    if json::leads_to(path, &["error", "[]"]) {
                        let last =
                            value.and_then(|value| value.rsplit(|byte| *byte == b':').next());
                        found = found.or_else(|| when(last?, SECOND));
                    }
                })?;
                Some(found?.from(parts.now()))
            }
            _ => None,
        }
    }
}
