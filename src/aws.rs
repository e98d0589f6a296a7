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

/// Returns the fill rate after a success, `elapsed` nanoseconds after the last throttle at `peak`, which the curve is
/// back at after `peak_time` ([`time_to_peak`](crate::cubic::time_to_peak)).
pub(crate) fn after_success(peak: Rate, peak_time: u64, elapsed: u64, measured: Rate) -> Rate {
    at_least_floor(rate_at(peak, peak_time, elapsed).min(measured.doubled()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cubic::time_to_peak;

    fn per_second(tokens: u32) -> Rate {
        Rate::from_ratio(tokens, SECOND)
    }

    #[test]
    fn the_first_throttle_comes_at_the_measured_rate_and_later_ones_at_most_at_the_fill_rate() {
        let (slow, fast) = (per_second(10), per_second(20));
        assert_eq!(peak(fast, None), fast);
        assert_eq!(peak(fast, Some(slow)), slow);
        assert_eq!(peak(slow, Some(fast)), slow);
    }

    #[test]
    fn a_throttle_leaves_seven_tenths_and_never_less_than_one_in_two_seconds() {
        assert_eq!(after_throttle(per_second(10)), per_second(7));
        let floor = Rate::from_ratio(1, 2 * SECOND);
        assert_eq!(after_throttle(Rate::ZERO), floor);
        assert_eq!(after_throttle(Rate::from_ratio(7, 10 * SECOND)), floor);
    }

    #[test]
    fn a_success_gets_the_curve_up_to_twice_the_measured_rate_and_down_to_the_floor() {
        let peak = per_second(100);
        assert_eq!(
            after_success(peak, time_to_peak(peak), 0, per_second(60)),
            per_second(70)
        );
        assert_eq!(
            after_success(peak, time_to_peak(peak), 0, per_second(20)),
            per_second(40)
        );
        assert_eq!(
            after_success(peak, time_to_peak(peak), 0, Rate::ZERO),
            Rate::from_ratio(1, 2 * SECOND)
        );
    }
}
