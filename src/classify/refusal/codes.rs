//! The error codes of services.

use core::str;

use super::{Refusal, RefusalScope, text};
use crate::{
    Execution, Failure,
    classify::json::{self, Member},
};

/// Names of members whose values are error codes.
const NAMES: [&[u8]; 10] = [
    b"code",
    b"type",
    b"status",
    b"reason",
    b"error",
    b"errorCode",
    b"error_code",
    b"errorNum",
    b"error_subcode",
    b"__type",
];

/// Returns what a member of a body says, or `None` if it does not decide.
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

/// Returns what an error code says, or `None` if it does not decide.
pub(super) fn refusal(code: &str, status: u16) -> Option<Refusal> {
    use RefusalScope::{Caller, Request, Resource, Service};
    Some(match code {
        // The caller's money, plan or month is used up: no wait of a client's helps.
        "insufficient_quota"
        | "credit_balance_exhausted"
        | "organization_spend_limit_exceeded"
        | "project_spend_limit_exceeded"
        | "organization_usage_limit_exceeded"
        | "enforced_spend_limit_reached"
        | "billing_hard_limit_reached"
        | "billing_not_active"
        | "access_terminated"
        | "account_deactivated"
        | "accountLimitExceeded"
        | "dailyLimitExceeded"
        | "dailyLimitExceededUnreg"
        | "billingNotEnabled"
        | "accessNotConfigured"
        | "quotaExceeded"
        | "monthly_quota_exceeded"
        | "usage_limit_exceeded"
        | "exceeded_current_quota_error"
        | "max_usage_count"
        | "REQUEST_LIMIT_EXCEEDED" => finally(Caller),
        // Too many requests or tokens of a caller's.
        "rate_limit_exceeded"
        | "rate_limit_error"
        | "rate_limited"
        | "ratelimited"
        | "rate_limit"
        | "rateLimited"
        | "rateLimitExceeded"
        | "userRateLimitExceeded"
        | "RATE_LIMIT_EXCEEDED"
        | "RATE_LIMITED"
        | "RATELIMITED"
        | "RESOURCE_EXHAUSTED"
        | "THROTTLED"
        | "TooManyRequests"
        | "too_many_requests"
        | "activityLimitReached"
        | "concurrency_limit_exceeded"
        | "too_many_concurrent_requests" => throttled(Caller),
        // A resource that is throttled on its own.
        "SlowDown"
        | "slow_down"
        | "ServerBusy"
        | "too_many_write_operations"
        | "ProvisionedThroughputExceededException" => throttled(Resource),
        // Everybody is refused.
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
        _ => {
            let failure = Failure::from_error_code(code)?;
            let scope = if failure.is_throttle() {
                Caller
            } else {
                Request
            };
            Refusal::new(failure, scope)
        }
    })
}

/// What the caller's money, plan, month or day is used up for.
pub(super) const SPENT: Refusal = finally(RefusalScope::Caller);
/// A request that is larger than any window.
pub(super) const TOO_LARGE: Refusal = finally(RefusalScope::Request);

/// Returns `true` if a body that says that it throttles says elsewhere that the caller has used up
/// a day or more: in the details of Anthropic's `rate_limit_error`, or by the name of the quota in a
/// `google.rpc.QuotaFailure` or `google.rpc.ErrorInfo`. The `RetryInfo` beside those says seconds
/// all the same.
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
