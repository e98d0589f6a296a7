//! What services mean by their refusals: one table of statuses, hints and error codes.

mod codes;
mod hints;
mod text;

use core::fmt;

use http::Response;

use self::text::Told;
use super::{Classifier, HttpResponseParts, aws_error_code, json};
use crate::{Execution, Failure, RetrySafety, classify::ServiceUnavailable};

/// The longest body of a refusal that adapters read for a classifier, in bytes.
pub const MAX_REFUSAL_BODY: usize = 65_536;

/// Classifies responses over HTTP as the services document their refusals: by the error code in the
/// body, else by the status and the headers.
///
/// The table of all adapters but that of the AWS SDKs, which goes by [`HttpClassifier`]. It knows
/// what that one knows, and what others say of their refusals.
///
/// | status | failure |
/// |---|---|
/// | 429, 509 | throttling |
/// | 403, and a status from 418 on that has no meaning of its own, with `Retry-After` or a text that says so | throttling |
/// | the same, and 503, with nothing left by the headers of [`HeaderLimits`] | throttling |
/// | 503 | overload, or as [`with_unavailable`](Self::with_unavailable) says |
/// | 529 | overload: the service throttles everybody |
/// | 503 with `x-envoy-overloaded` | throttling: nothing was done |
/// | 425 | transient: nothing was done |
/// | 500, 502, 504, 520, 522 to 524, 530, 598, 599 | transient; 504, 522, 524, 598 and 599 are timeouts |
/// | 521 | transient: the origin refused the connection |
/// | 408 | transient, timeout |
/// | another above 399 | not retryable |
/// | 409, and another above 499, for [language models](Self::language_models) | transient |
///
/// | hint | when |
/// |---|---|
/// | `retry-after-ms`, `x-ms-retry-after-ms`, `x-amz-retry-after`, `grpc-retry-pushback-ms` | milliseconds, with a fraction or without |
/// | `Retry-After` | as [`parse_http`](crate::RetryAfter::parse_http) reads it |
/// | `x-retry-after`, `x-ratelimit-retry-after`, `x-rate-limit-retry-after-seconds` | the same |
/// | `retryDelay` of a `google.rpc.RetryInfo`, `retry_after`, `resets_in_seconds` and the like in a JSON body | the same, in the unit of the name |
/// | `estimated_time_to_regain_access` in `x-business-use-case-usage` | the longest, in minutes |
/// | the limits of [`HeaderLimits`] of which nothing is left | the latest reset |
/// | `try again in 10 minutes` and the like in the body's text | as it says |
///
/// Some refusals below 500 no wait can mend. These are not retryable and throttle nothing:
///
/// | the body says | by |
/// |---|---|
/// | the request asks for more than the limit has | `Limit 30000, Requested 36278` |
/// | the limit is zero | `limit: 0`, `"quota_limit_value": "0"` |
/// | a day's or a month's quota is used up, whatever hint there is | a `google.rpc.QuotaFailure` or `ErrorInfo`, a code such as `insufficient_quota` |
/// | the same, and there is no hint | a text whose windows are all longer than an hour, `usage limit` |
///
/// A 413 is final too, whatever its code, unless it has a hint in its headers.
///
/// Of hints the first that is valid counts. A `Retry-After` that is a thousand times the reset of a
/// limit that is used up is in milliseconds. `x-should-retry` and `Stripe-Should-Retry` have the
/// last word on whether there is to be a retry, and without them a `grpc-retry-pushback-ms` that is
/// negative, or no number, says that there is none. A body counts if the caller
/// [adds](HttpResponseParts::with_refusal) it; adapters do for the statuses that
/// [want](Classifier::wants_body) it.
///
/// [`HttpClassifier`]: super::HttpClassifier
/// [`HeaderLimits`]: super::HeaderLimits
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "http")] {
/// use paceline::{RetrySafety, classify::{Classifier, HttpResponseParts, RefusalClassifier}};
///
/// let response = http::Response::builder().status(429).body(()).unwrap();
/// let parts = HttpResponseParts::of(&response);
/// let table = RefusalClassifier::new();
/// assert!(table.classify(&parts).unwrap().is_throttle());
///
/// // The month's quota is used up: waiting is no use.
/// let parts = parts.with_refusal(br#"{"error": {"code": "insufficient_quota"}}"#);
/// assert_eq!(table.classify(&parts).unwrap().retry_safety(), RetrySafety::No);
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusalClassifier {
    unavailable: ServiceUnavailable,
    language_models: bool,
}

/// A refusal: the failure that it is, and what was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Refusal {
    failure: Failure,
    scope: RefusalScope,
}

/// What a service refuses when it refuses a request: what else would be refused now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusalScope {
    /// This request, from any client.
    Request,
    /// Requests to the same resource: an object, a prefix, a route, a model.
    Resource,
    /// Requests of the same caller: its key, user, address or account.
    Caller,
    /// All requests: the service, or what stands before it.
    Service,
}

impl fmt::Display for RefusalScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Request => "request",
            Self::Resource => "resource",
            Self::Caller => "caller",
            Self::Service => "service",
        })
    }
}

impl Refusal {
    /// Returns the failure: whether to send the request again, when, and whether it is a rate that
    /// was exceeded.
    pub const fn failure(&self) -> Failure {
        self.failure
    }

    /// Returns what was refused.
    #[must_use]
    pub const fn scope(&self) -> RefusalScope {
        self.scope
    }

    const fn new(failure: Failure, scope: RefusalScope) -> Self {
        Self { failure, scope }
    }

    /// Returns this refusal with all that the response says besides: whether a wait helps, when to
    /// come back, and what was refused. `told` is the text of the body.
    fn completed(self, parts: &HttpResponseParts<'_>, told: &Told) -> Self {
        let status = parts.status().as_u16();
        let body = parts.refusal().unwrap_or_default();
        let hint = hints::hint(parts, told);
        let refusal = match self.failure.is_throttle() {
            true if status >= 500 => self,
            true if told.is_too_large => codes::TOO_LARGE,
            true if told.is_nothing || codes::is_spent(body, status) => codes::SPENT,
            true if told.is_of_hours() && hint.is_none() => codes::SPENT,
            _ => self,
        };
        let scope = scope_by_headers(parts).unwrap_or(refusal.scope);
        let failure = refusal.failure.with_fault(parts.fault());
        let failure = match hints::should_retry(parts.headers()) {
            Some(true) if failure.retry_safety() != RetrySafety::Yes => {
                failure.with_retry_safety(RetrySafety::Yes)
            }
            Some(false) => failure.with_retry_safety(RetrySafety::No),
            _ => failure,
        };
        let late = matches!(status, 408 | 504 | 522 | 524 | 598 | 599) && !failure.is_throttle();
        let failure = failure.with_timeout(late);
        if failure.retry_safety() != RetrySafety::Yes {
            return Self::new(failure, scope);
        }
        let failure = hint.map_or(failure, |hint| failure.with_retry_after(hint));
        Self::new(failure, scope)
    }
}

/// Returns the refusal of a caller's request that says so in a success.
pub(super) fn throttled(parts: &HttpResponseParts<'_>) -> Refusal {
    let told = text::read(parts.refusal().unwrap_or_default());
    codes::throttled(RefusalScope::Caller).completed(parts, &told)
}

impl RefusalClassifier {
    /// Creates the table by which a bare 503 is [overload](ServiceUnavailable::Overloaded).
    #[must_use]
    pub const fn new() -> Self {
        Self {
            unavailable: ServiceUnavailable::Overloaded,
            language_models: false,
        }
    }

    /// Creates the table for the APIs of language models: a 409 and every status above 499 are
    /// retried, as the SDKs of `OpenAI` and Anthropic do.
    ///
    /// These SDKs also send a POST again that may have been carried out:
    /// [`Idempotency::Idempotent`](crate::Idempotency::Idempotent).
    ///
    /// ```
    /// # #[cfg(feature = "http")] {
    /// use paceline::{RetrySafety, classify::{Classifier, RefusalClassifier}};
    ///
    /// let conflict = http::Response::builder().status(409).body(()).unwrap();
    /// let safety = |table: RefusalClassifier| table.classify(&conflict).unwrap().retry_safety();
    /// assert_eq!(safety(RefusalClassifier::new()), RetrySafety::No);
    /// assert_eq!(safety(RefusalClassifier::language_models()), RetrySafety::Yes);
    /// # }
    /// ```
    #[must_use]
    pub const fn language_models() -> Self {
        Self {
            language_models: true,
            ..Self::new()
        }
    }

    /// Sets what a bare 503 means.
    #[must_use]
    pub const fn with_unavailable(mut self, unavailable: ServiceUnavailable) -> Self {
        self.unavailable = unavailable;
        self
    }

    /// Returns the refusal that a response is, or `None` if it is none.
    #[must_use]
    pub fn read(&self, parts: &HttpResponseParts<'_>) -> Option<Refusal> {
        let status = parts.status().as_u16();
        let body = parts.refusal().unwrap_or_default();
        let code = parts.code().or_else(|| aws_error_code(body));
        let by_code = code
            .and_then(|code| codes::refusal(code, status))
            .or_else(|| json::members(body).find_map(|member| codes::member(&member, status)));
        let told = text::read(body);
        let refusal = match by_code {
            // A 413 is about the request, unless it is to be sent again later (RFC 9110, 15.5.14).
            Some(refusal) if status != 413 || hints::in_headers(parts).is_some() => refusal,
            _ if status >= 400 => self.by_status(parts, &told),
            _ => return None,
        };
        Some(refusal.completed(parts, &told))
    }

    fn by_status(self, parts: &HttpResponseParts<'_>, told: &Told) -> Refusal {
        use RefusalScope::{Caller, Request, Resource, Service};
        let headers = parts.headers();
        let status = parts.status().as_u16();
        let (failure, scope) = match status {
            429 | 509 => (Failure::throttling(), Caller),
            status if says_elsewhere(status) && is_throttle(parts, told) => {
                (Failure::throttling(), Caller)
            }
            503 if hints::is_used_up(parts) => (Failure::throttling(), Caller),
            503 if headers.contains_key("x-envoy-overloaded") => (Failure::throttling(), Service),
            503 => (Failure::from_http_status(503, self.unavailable), Service),
            529 => (
                Failure::throttling().with_execution(Execution::Maybe),
                Service,
            ),
            425 => (
                Failure::transient().with_execution(Execution::Rejected),
                Request,
            ),
            521 => (
                Failure::transient().with_execution(Execution::NotSent),
                Service,
            ),
            408 => (Failure::timeout(), Request),
            500 | 502 | 504 | 520 | 522..=524 | 530 | 598 | 599 => (Failure::transient(), Service),
            409 if self.language_models => (Failure::transient(), Request),
            501.. if self.language_models => (Failure::transient(), Service),
            401 | 402 | 407 => (Failure::not_retryable(), Caller),
            403 | 404 | 409 | 410 | 423 | 451 => (Failure::not_retryable(), Resource),
            _ => (Failure::not_retryable(), Request),
        };
        Refusal::new(failure, scope)
    }
}

/// Returns `true` for a status that services use for throttling too, and for other refusals: 403, and
/// those that have no meaning of their own (HTTP Status Code Registry, IANA).
const fn says_elsewhere(status: u16) -> bool {
    matches!(status, 403 | 418..=420 | 427 | 430 | 432..=450 | 452..=499)
}

/// Returns whether a response with such a status throttles: it says when to come back, that nothing
/// is left, or that there were too many requests.
fn is_throttle(parts: &HttpResponseParts<'_>, told: &Told) -> bool {
    told.is_too_fast || hints::in_headers(parts).is_some() || hints::is_used_up(parts)
}

/// Returns what Discord and Envoy say of the scope.
fn scope_by_headers(parts: &HttpResponseParts<'_>) -> Option<RefusalScope> {
    match parts.headers().get("x-ratelimit-scope")?.as_bytes() {
        b"user" | b"global" => Some(RefusalScope::Caller),
        b"shared" => Some(RefusalScope::Resource),
        _ => None,
    }
}

impl Classifier<HttpResponseParts<'_>> for RefusalClassifier {
    fn classify(&self, parts: &HttpResponseParts<'_>) -> Option<Failure> {
        self.read(parts).map(|refusal| refusal.failure())
    }

    /// For the statuses by which services refuse for more reasons than one.
    fn wants_body(&self, parts: &HttpResponseParts<'_>) -> bool {
        let status = parts.status().as_u16();
        (says_elsewhere(status) || matches!(status, 400 | 409 | 429 | 500 | 503 | 529))
            && parts.refusal().is_none()
    }
}

impl<B> Classifier<Response<B>> for RefusalClassifier {
    fn classify(&self, response: &Response<B>) -> Option<Failure> {
        self.classify(&HttpResponseParts::of(response))
    }
}
