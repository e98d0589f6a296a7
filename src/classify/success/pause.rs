//! Successes that ask for a pause.

use core::time::Duration;

use crate::{
    RetryAfter,
    classify::{HttpResponseParts, json},
    headers::{decimal, time::SECOND},
};

/// Returns the pause that a success asks for, or `None` if it asks for none.
///
/// | where | from |
/// |---|---|
/// | the header `Retry-After`, in any form | [Azure DevOps](https://learn.microsoft.com/en-us/azure/devops/integrate/concepts/rate-limits), and others |
/// | the header `Backoff`, seconds | [Zotero](https://www.zotero.org/support/dev/web_api/v3/basics#rate_limiting) |
/// | the member `backoff` of the outermost object, seconds | [Stack Exchange](https://api.stackexchange.com/docs/throttle) |
///
/// Of several the first in this table counts. The body counts if the caller
/// [adds](HttpResponseParts::with_refusal) it. A status other than 2xx gives `None`. So do 201 and
/// 202, whose `Retry-After` says when to ask for the result ([Azure Resource
/// Manager](https://learn.microsoft.com/en-us/azure/azure-resource-manager/management/async-operations)).
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "http")] {
/// use std::time::Duration;
/// use paceline::classify::{HttpResponseParts, pause_after};
///
/// let response = http::Response::new(r#"{"items": [], "backoff": 10}"#);
/// let parts = HttpResponseParts::of(&response);
/// assert_eq!(pause_after(&parts), None);
/// let parts = parts.with_refusal(response.body());
/// assert_eq!(pause_after(&parts), Some(Duration::from_secs(10)));
/// # }
/// ```
#[must_use]
pub fn pause_after(parts: &HttpResponseParts<'_>) -> Option<Duration> {
    if !parts.status().is_success() || matches!(parts.status().as_u16(), 201 | 202) {
        return None;
    }
    let hint = parts.retry_after().map(|hint| match hint {
        RetryAfter::AtLeast(span) | RetryAfter::Clamped(span) => span,
    });
    let in_header = || decimal(parts.headers().get("backoff")?.as_bytes(), SECOND);
    let span = hint.or_else(in_header).or_else(|| {
        let mut found = None;
        json::walk(parts.refusal()?, |path, value| {
            if json::leads_to(path, &["backoff"]) {
                found = value.and_then(|value| decimal(value, SECOND));
            }
        })?;
        found
    });
    span.filter(|span| !span.is_zero())
}
