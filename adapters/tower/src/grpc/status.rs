//! The status in gRPC's headers and trailers.

use alloc::vec::Vec;
use core::{str, time::Duration};

use http::{HeaderMap, StatusCode};
use paceline::{
    Failure, Fault, RetryAfter, RetrySafety,
    classify::{Classifier, HttpResponseParts, RefusalClassifier},
};

pub(super) const STATUS: &str = "grpc-status";
const PUSHBACK: &str = "grpc-retry-pushback-ms";
const MESSAGE: &str = "grpc-message";
const DETAILS: &str = "grpc-status-details-bin";

const UNKNOWN: u32 = 2;
pub(super) const DEADLINE_EXCEEDED: u32 = 4;
const RESOURCE_EXHAUSTED: u32 = 8;
pub(super) const UNAVAILABLE: u32 = 14;
const LAST: u32 = 16;

/// Codes after which the caller has to change something.
const CLIENTS_FAULT: [u32; 7] = [3, 5, 6, 7, 9, 11, 16];

/// Returns the code in `headers`, or `None` if they have none. Another value is UNKNOWN, by the
/// protocol.
pub(super) fn code(headers: &HeaderMap) -> Option<u32> {
    let value = headers.get(STATUS)?;
    let code = str::from_utf8(value.as_bytes()).ok();
    let code = code.and_then(|code| code.parse().ok());
    Some(code.filter(|code| *code <= LAST).unwrap_or(UNKNOWN))
}

/// Returns the failure of a code, or `None` for success. `retryable` has a bit for each code. A
/// pushback counts before the delay of a `RetryInfo`.
pub(super) fn failure(code: u32, headers: &HeaderMap, retryable: u32) -> Option<Failure> {
    let failure = match code {
        0 => return None,
        RESOURCE_EXHAUSTED => exhausted(headers),
        _ if retryable & bit(code) != 0 => Failure::transient(),
        _ => Failure::not_retryable(),
    };
    let fault = if CLIENTS_FAULT.contains(&code) {
        Fault::Client
    } else {
        Fault::Server
    };
    let failure = failure
        .with_fault(fault)
        .with_timeout(code == DEADLINE_EXCEEDED);
    Some(match pushback(headers) {
        None => match headers
            .get(DETAILS)
            .and_then(RetryAfter::parse_status_details)
        {
            Some(hint) => failure.with_retry_after(hint),
            None => failure,
        },
        Some(Some(wait)) => failure.with_retry_after(RetryAfter::AtLeast(wait)),
        Some(None) => failure.with_retry_safety(RetrySafety::No),
    })
}

/// Classifies `RESOURCE_EXHAUSTED` as a 429 with its message. A used-up day and a message too large
/// for the server have this code too.
fn exhausted(headers: &HeaderMap) -> Failure {
    let message = headers.get(MESSAGE).map(|value| decoded(value.as_bytes()));
    let message = message.unwrap_or_default();
    let parts = HttpResponseParts::new(StatusCode::TOO_MANY_REQUESTS, headers);
    let failure = RefusalClassifier::new().classify(&parts.with_refusal(&message));
    failure.unwrap_or(Failure::throttling())
}

/// Decodes a message, in which `%` and two digits are a byte. Other text stays.
fn decoded(message: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(message.len());
    let mut rest = message;
    while let Some((byte, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *byte == b'%');
        let digits = digits.and_then(|digits| str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        decoded.push(escaped.unwrap_or(*byte));
        rest = if escaped.is_some() {
            &after[2..]
        } else {
            after
        };
    }
    decoded
}

pub(super) const fn bit(code: u32) -> u32 {
    match 1_u32.checked_shl(code) {
        Some(bit) => bit,
        None => 0,
    }
}

/// Returns when to send the request again. `Some(None)` forbids a retry. A negative number, a value
/// that is no number of 31 bits, and two values mean this ("gRPC Retry Design", A6).
#[expect(clippy::option_option, reason = "nothing said is not a no")]
fn pushback(headers: &HeaderMap) -> Option<Option<Duration>> {
    let mut values = headers.get_all(PUSHBACK).iter();
    let value = values.next()?;
    let millis = str::from_utf8(value.as_bytes()).ok();
    let millis = millis.and_then(|millis| millis.parse::<i32>().ok());
    let millis = millis.and_then(|millis| u64::try_from(millis).ok());
    Some(
        millis
            .filter(|_| values.next().is_none())
            .map(Duration::from_millis),
    )
}
