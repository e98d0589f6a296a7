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
/// All adapters use this table, except the adapter of the AWS SDKs, which uses [`HttpClassifier`].
/// The table knows the refusals of AWS and of other services.
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
/// | `X-RateLimit-Reset` and the like, without a header of what is left | as it says |
/// | `try again in 10 minutes`, `available in 12 seconds` and the like in the body's text | as it says |
///
/// After some refusals below 500 no wait helps. They are not retryable and do not throttle:
///
/// | the body says | by |
/// |---|---|
/// | the request asks for more than the limit has | `Limit 30000, Requested 36278` |
/// | the limit is zero | `limit: 0`, `"quota_limit_value": "0"` |
/// | a day's or a month's quota is used up, whatever hint there is | a `google.rpc.QuotaFailure` or `ErrorInfo`, a code such as `insufficient_quota` |
/// | the same, and there is no hint | a text whose windows are all longer than an hour, `usage limit` |
///
/// A 413 is not retryable either, whatever its code, unless its headers have a hint.
///
/// [`read`](Self::read) also says what was refused: this request, a resource, the caller, or all
/// ([`RefusalScope`]). A text such as `high traffic` means all.
///
/// The first valid hint counts. A `Retry-After` is in milliseconds if it is about a thousand times
/// the reset of a used-up limit. `x-should-retry` and `Stripe-Should-Retry` decide in the end
/// whether to retry. Without these, a `grpc-retry-pushback-ms` that is negative or no number
/// forbids a retry. A body counts if the caller [adds](HttpResponseParts::with_refusal) it.
/// Adapters add it for the statuses that [want](Classifier::wants_body) it.
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

/// A refused request: its failure, and what was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Refusal {
    failure: Failure,
    scope: RefusalScope,
}

/// What a refusal covers: the other requests that the service would refuse now.
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
    /// Returns the failure: whether and when to send the request again, and whether a rate was
    /// exceeded.
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

    /// Completes this refusal by the rest of the response: whether a wait helps, when to come back,
    /// and what was refused. `told` is the meaning of the body's text.
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
        let scope = match scope_by_headers(parts) {
            Some(scope) => scope,
            // A text of overload widens only the caller's scope. A resource that a code names
            // stays.
            None if told.is_overloaded && refusal == codes::throttled(RefusalScope::Caller) => {
                RefusalScope::Service
            }
            None => refusal.scope,
        };
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

/// Returns the refusal in a success whose body reports throttling.
pub(super) fn throttled(parts: &HttpResponseParts<'_>) -> Refusal {
    let told = text::read(parts.refusal().unwrap_or_default());
    codes::throttled(RefusalScope::Caller).completed(parts, &told)
}

impl RefusalClassifier {
    /// Creates the table. A bare 503 is [overload](ServiceUnavailable::Overloaded).
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
    /// These SDKs also repeat a POST that may have been carried out. To do the same, choose
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

    /// Returns the refusal in a response, or `None` if the response refuses nothing.
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
            // A 413 is final, unless a hint says when to send the request again (RFC 9110,
            // 15.5.14).
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

/// Returns `true` for a status that services use for throttling and for other refusals. These are
/// 403, and the statuses without an assigned meaning (HTTP Status Code Registry, IANA).
const fn says_elsewhere(status: u16) -> bool {
    matches!(status, 403 | 418..=420 | 427 | 430 | 432..=450 | 452..=499)
}

/// Returns `true` if a response with such a status throttles. Its text or headers then name too
/// many requests, a wait, or a used-up limit.
fn is_throttle(parts: &HttpResponseParts<'_>, told: &Told) -> bool {
    told.is_too_fast || hints::in_headers(parts).is_some() || hints::is_used_up(parts)
}

/// Returns the scope in the header of Discord and Envoy.
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

    /// Returns `true` for the statuses that services send for several reasons.
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
