//! The error codes of services.

use core::str;

use super::{Refusal, RefusalScope, text};
use crate::{
    Execution, Failure,
    classify::json::{self, Member},
};

/// Names of members whose values are error codes.
const NAMES: [&[u8]; 11] = [
    b"code",
    b"type",
    b"status",
    b"reason",
    b"error",
    b"errorCode",
    b"error_code",
    b"error_name",
    b"errorNum",
    b"error_subcode",
    b"__type",
];

/// Returns the refusal by a member of a body, or `None` if the member does not decide.
pub(super) fn member(member: &Member<'_>, status: u16) -> Option<Refusal> {
    if !NAMES.contains(&member.name) {
        return None;
    }
    let value = str::from_utf8(member.value).ok()?;
    if member.is_text {
        return refusal(value, status);
    }
    if status >= 500 || member.name != b"code" {
        return None;
    }
    // "Rate Limits", Graph API, Marketing API and those like it; "Error Codes", WhatsApp Cloud API.
    Some(throttled(match value {
        "4" | "17" | "32" | "341" | "613" | "80000" | "80001" | "80002" | "80003" | "80004"
        | "80005" | "80006" | "80007" | "80008" | "80009" | "80014" | "130429" | "131048"
        | "133016" => RefusalScope::Caller,
        "131056" => RefusalScope::Resource,
        _ => return None,
    }))
}

/// Returns the refusal by an error code, or `None` if the code does not decide.
pub(super) fn refusal(code: &str, status: u16) -> Option<Refusal> {
    use RefusalScope::{Caller, Request, Resource, Service};
    Some(match code {
        // The caller's money, plan or month is used up, so no wait helps.
        "insufficient_quota"
        | "credit_balance_exhausted"
        | "organization_spend_limit_exceeded"
        | "project_spend_limit_exceeded"
        | "organization_usage_limit_exceeded"
        | "enforced_spend_limit_reached"
        | "access_terminated"
        | "account_deactivated"
        | "accountLimitExceeded"
        | "dailyLimitExceeded"
        | "dailyLimitExceededUnreg"
        | "accessNotConfigured"
        | "quotaExceeded"
        | "monthly_quota_exceeded"
        | "usage_limit_exceeded"
        | "exceeded_current_quota_error"
        | "max_usage_count" => finally(Caller),
        // Salesforce means a day. Databricks sends 429 and means a minute.
        "REQUEST_LIMIT_EXCEEDED" if status != 429 => finally(Caller),
        // The caller sent too many requests or tokens.
        "RESOURCE_EXHAUSTED"
        | "activityLimitReached"
        | "concurrency_limit_exceeded"
        | "too_many_concurrent_requests" => throttled(Caller),
        // A resource that is throttled separately.
        "SlowDown"
        | "slow_down"
        | "ServerBusy"
        | "too_many_write_operations"
        | "ProvisionedThroughputExceededException" => throttled(Resource),
        // All callers are refused.
        "overloaded_error"
        | "engine_overloaded"
        | "engine_overloaded_error"
        | "model_overloaded"
        | "server_is_overloaded"
        | "OVERLOADED" => {
            let failure = Failure::throttling().with_execution(Execution::Maybe);
            Refusal::new(failure, Service)
        }
        // A lock on the object, not a rate.
        "lock_timeout" | "idempotency_key_in_use" => {
            let failure = Failure::transient().with_execution(Execution::Rejected);
            Refusal::new(failure, Resource)
        }
        "OperationTimedOut" | "backendError" | "UNAVAILABLE" | "INTERNAL" => {
            Refusal::new(Failure::transient(), Service)
        }
        "InternalError" if status < 400 => Refusal::new(Failure::transient(), Service),
        "context_length_exceeded" | "model_not_found" => finally(Request),
        _ => match Failure::from_error_code(code) {
            Some(failure) if failure.is_throttle() => Refusal::new(failure, Caller),
            Some(failure) => Refusal::new(failure, Request),
            None => by_words(code, status)?,
        },
    })
}

/// Returns the refusal by the words in a code, in any spelling: `jobRateLimitExceeded`,
/// `TOO_MANY_REQUESTS_PER_SECOND`. A success may contain such words for another reason.
fn by_words(code: &str, status: u16) -> Option<Refusal> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if !code.bytes().all(is_part) {
        return None;
    }
    let mut words = code.to_ascii_lowercase();
    words.retain(|letter| letter.is_ascii_alphanumeric());
    if status < 400 && !SUCCESSES.contains(&words.as_str()) {
        return None;
    }
    if status < 500 && words.contains("billing") {
        return Some(SPENT);
    }
    let mut rates = ["ratelimit", "toomanyrequests", "throttl"].into_iter();
    let is_rate = rates.any(|rate| words.contains(rate));
    is_rate.then(|| throttled(RefusalScope::Caller))
}

/// Words of codes that refuse in a response of success, too.
const SUCCESSES: [&str; 7] = [
    "ratelimit",
    "ratelimited",
    "ratelimiterror",
    "ratelimitexceeded",
    "userratelimitexceeded",
    "toomanyrequests",
    "throttled",
];

/// The refusal when the caller's money, plan, month or day is used up.
pub(super) const SPENT: Refusal = finally(RefusalScope::Caller);
/// The refusal of a request that is larger than its limit.
pub(super) const TOO_LARGE: Refusal = finally(RefusalScope::Request);

/// Returns `true` if a throttling body also says that a quota of a day or more is used up. The
/// details of Anthropic's `rate_limit_error` may say so, or the quota's name in a
/// `google.rpc.QuotaFailure` or `google.rpc.ErrorInfo`. The `RetryInfo` beside these still asks for
/// seconds.
pub(super) fn is_spent(body: &[u8], status: u16) -> bool {
    json::members(body).any(|found| {
        let is_quota = matches!(found.name, b"quotaId" | b"quota_limit");
        is_quota && text::read(found.value).is_of_hours() || member(&found, status) == Some(SPENT)
    })
}

pub(super) const fn throttled(scope: RefusalScope) -> Refusal {
    Refusal::new(Failure::throttling(), scope)
}

const fn finally(scope: RefusalScope) -> Refusal {
    Refusal::new(Failure::not_retryable(), scope)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_a_code_refuse() {
        let is_rate = |code, status| {
            let refusal = by_words(code, status);
            refusal.is_some_and(|refusal| refusal.failure().is_throttle())
        };
        for code in [
            "jobRateLimitExceeded",
            "TOO_MANY_REQUESTS",
            "throttle_violation",
        ] {
            assert!(is_rate(code, 400), "{code}");
        }
        assert!(is_rate("ratelimited", 200));
        let spent = by_words("PUBLIC_API_BILLING_LIMIT_EXCEEDED", 429);
        assert_eq!(spent, Some(SPENT));
        // A text, an address, an event of a success, and another code.
        for (code, status) in [
            ("the rate limit of a key cannot be changed", 400),
            ("https://example.com/rate-limit", 400),
            ("rate_limit_event", 200),
            ("billing_updated", 200),
            ("billing_unavailable", 503),
            ("limit_exceeded", 400),
        ] {
            assert_eq!(by_words(code, status), None, "{code}");
        }
    }
}
