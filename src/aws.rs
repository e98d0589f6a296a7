//! The published control law: what the AWS SDKs' adaptive mode makes of each response.
//!
//! Source: the AWS SDKs and Tools reference guide, "Retry behavior", and botocore's
//! `retries/adaptive.py`; the curve itself is in [`cubic`](crate::cubic).

use crate::cubic::{rate_at, reduced};
use crate::fixed::{Rate, SECOND};

/// Returns the lowest fill rate there is, 0.5 tokens/s.
fn at_least_floor(rate: Rate) -> Rate {
    rate.max(Rate::from_ratio(1, SECOND << 1))
}

/// Returns the rate that a throttle is taken to have come at: the measured one, and not more than the
/// limiter allowed if it limited.
pub(crate) fn peak(measured: Rate, fill: Option<Rate>) -> Rate {
    fill.map_or(measured, |fill| measured.min(fill))
}

/// Returns the fill rate after a throttle at `peak`.
///
/// No limit by the measured rate: the peak is at most that, and 0.7 times it below twice it.
pub(crate) fn after_throttle(peak: Rate) -> Rate {
    at_least_floor(reduced(peak))
}

/// Returns the fill rate after a success, `elapsed` nanoseconds after the last throttle at `peak`.
pub(crate) fn after_success(peak: Rate, elapsed: u64, measured: Rate) -> Rate {
    at_least_floor(rate_at(peak, elapsed).min(measured.doubled()))
}
