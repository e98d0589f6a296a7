//! The published control law: the effect of each response in the AWS SDKs' adaptive mode.
//!
//! Source: the AWS SDKs and Tools reference guide, "Retry behavior", and botocore's
//! `retries/adaptive.py`; the curve itself is in [`cubic`](crate::law::cubic).

use super::cubic::{at_least_floor, rate_at, reduced, time_to_peak};
use super::{Counted, Decision, Event, Law, Quiet, Shown, State, Unthrottled, Window};
use crate::bits::Field;
use crate::fixed::{Rate, SECOND};

/// Returns the rate at which a throttle is taken to have come: the measured rate, but at most the
/// fill rate if the limiter limited.
pub(crate) fn peak(measured: Rate, fill: Option<Rate>) -> Rate {
    fill.map_or(measured, |fill| measured.min(fill))
}

/// Returns the fill rate after a throttle at `peak`.
///
/// The limit of twice the measured rate cannot bind here, because the peak is at most the measured
/// rate.
//= AWS: However, after a throttled response is detected, the client rate-of-request is then limited
//= accordingly.
//= botocore: throttling.CubicCalculator
pub(crate) fn after_throttle(peak: Rate) -> Rate {
    at_least_floor(reduced(peak))
}

/// Returns the fill rate after a success, `elapsed` nanoseconds after the last throttle at `peak`.
/// The curve is back at the peak after `peak_time`
/// ([`time_to_peak`](crate::law::cubic::time_to_peak)).
//= AWS: The token allowance is also increased accordingly if successful responses are received.
pub(crate) fn after_success(peak: Rate, peak_time: u64, elapsed: u64, measured: Rate) -> Rate {
    at_least_floor(rate_at(peak, peak_time, elapsed).min(measured.doubled()))
}

/// The length of a window, in nanoseconds.
const WINDOW: u64 = SECOND.wrapping_div(2);

/// The times of one limiter's windows.
///
/// Windows are aligned to the origin of the caller's time. Window 0 begins at the limiter's start,
/// rounded down to a whole second. Times are counted from the start itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Windows {
    /// The nanoseconds from the beginning of window 0 to the limiter's start, less than a second.
    lead: u32,
}

impl Windows {
    /// Returns the windows of a limiter that starts at `start` nanoseconds.
    #[expect(clippy::cast_possible_truncation, reason = "under a second")]
    pub(crate) const fn new(start: u64) -> Self {
        Self {
            lead: start.wrapping_rem(SECOND) as u32,
        }
    }

    /// Returns the number of the window that holds the instant `elapsed` after the start.
    const fn index(self, elapsed: u64) -> u64 {
        let elapsed = elapsed.saturating_add(self.lead as u64);
        elapsed.wrapping_div(WINDOW)
    }

    /// Returns window `index`.
    const fn window(self, index: u64) -> HalfSecond {
        let start = index.saturating_mul(WINDOW);
        let lead = self.lead as u64;
        HalfSecond {
            start: start.saturating_sub(lead),
            end: start.saturating_add(WINDOW).saturating_sub(lead),
        }
    }
}

/// A window, in nanoseconds after the limiter's start. Times before the start count as the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HalfSecond {
    start: u64,
    end: u64,
}

/// Returns the measured rate after `count` requests in `windows` windows, at least one.
///
/// `0.8 · count/(windows · 0.5 s) + 0.2 · measured`, rounded to nearest. The result is exact for
/// fewer than 2⁴⁵ requests and 2³² windows, 68 years, and saturates beyond.
//= botocore: adaptive.RateClocker
pub(crate) fn smoothed(measured: Rate, count: u64, windows: u64) -> Rate {
    let span = u128::from(SECOND).wrapping_mul(u128::from(windows.max(1)));
    // Both terms over the common denominator of ten spans: `16·count·2⁶⁴` and `2·measured·span`.
    let counted = (u128::from(count) << 64).saturating_mul(16);
    let kept = u128::from(measured.raw()).saturating_mul(span.wrapping_mul(2));
    let divisor = span.wrapping_mul(10);
    let sum = counted.saturating_add(kept).saturating_add(divisor >> 1);
    Rate::from_raw(sum.checked_div(divisor).unwrap_or(0))
}

/// The published law of one limiter. It has no settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Aws {
    pub(crate) windows: Windows,
}

/// What the law has counted. Low bits first:
///
/// | bits | field |
/// |---|---|
/// | 49 | the measured rate |
/// | 34 | the window that is being counted |
/// | 45 | base: the sum of the counts when that window began, wrapping |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reading(u128);

impl Reading {
    const MEASURED: Field = Field::lowest(Rate::BITS);
    const WINDOW: Field = Self::MEASURED.above(34);
    const BASE: Field = Self::WINDOW.above(45);

    const fn new(measured: Rate, window: u64, base: u64) -> Self {
        Self(
            Self::MEASURED.put(measured.to_bits())
                | Self::WINDOW.put(window)
                | Self::BASE.put(base),
        )
    }

    const fn measured(self) -> Rate {
        Rate::from_bits(Self::MEASURED.get(self.0))
    }

    const fn window(self) -> u64 {
        Self::WINDOW.get(self.0)
    }

    /// Returns the counts between the window's beginning and `sum`.
    const fn counted(self, sum: u64) -> u64 {
        Self::BASE.wrapped(sum.wrapping_sub(Self::BASE.get(self.0)))
    }
}

const _: () = assert!(Reading::BASE.is_last(), "the fields fill the word");

impl Law for Aws {
    fn moves_with_time(&self) -> bool {
        false
    }

    fn burst(&self) -> u64 {
        SECOND
    }

    //= AWS: Client Side Rate Limiting is an algorithm that initially lets requests be made at any
    //= rate up to the token allowance.
    fn unthrottled(&self) -> Unthrottled {
        Unthrottled::default()
    }

    fn begin(&self, last: Option<u128>, sum: u64, now: u64) -> (u128, u64) {
        let (measured, index) = last.map_or((Rate::ZERO, 0), |last| {
            (Reading(last).measured(), self.windows.index(now))
        });
        let next = Reading::new(measured, index, sum);
        (next.0, self.windows.window(index).end)
    }

    fn turn(
        &self,
        reading: u128,
        _: u128,
        counts: impl Fn() -> (u64, u64),
        _state: State,
        now: u64,
        _sent: u64,
    ) -> Window {
        let before = Reading(reading);
        let index = self.windows.index(now);
        if index <= before.window() {
            let window = self.windows.window(before.window());
            return Window {
                next: None,
                end: window.end,
                counted: None,
                at: now.max(window.start),
                cycle: None,
            };
        }
        let (sum, _) = counts();
        let passed = index.wrapping_sub(before.window());
        let measured = smoothed(before.measured(), before.counted(sum), passed);
        let window = self.windows.window(index);
        Window {
            next: Some(Reading::new(measured, index, sum).0),
            end: window.end,
            counted: None,
            at: now.max(window.start),
            cycle: None,
        }
    }

    fn rate(&self, state: State, now: u64, reading: Option<u128>) -> Rate {
        let peak = Rate::from_bits(state.memory());
        let Some(reading) = reading else {
            return after_throttle(peak);
        };
        let elapsed = now.saturating_sub(state.since());
        let measured = Reading(reading).measured();
        after_success(peak, time_to_peak(peak), elapsed, measured)
    }

    fn quiet(&self, _: State, now: u64, rate: Rate, reading: u128) -> Quiet {
        let reading = Reading(reading);
        // The curve only rises. Where the limit of twice the measured rate binds, the curve changes
        // nothing before a window ends.
        let is_bound = rate == at_least_floor(reading.measured().doubled());
        Quiet {
            rate: if is_bound {
                self.windows.window(self.windows.index(now)).end
            } else {
                now
            },
            window: self.windows.window(reading.window()).end,
            each: false,
        }
    }

    //= AWS: Tokens in the bucket are refilled at a rate that is determined dynamically, based on
    //= the number of throttling responses received by the client.
    //= botocore: adaptive.ClientRateLimiter.on_receiving_response
    fn decide(&self, state: State, event: &Event<'_>) -> Option<Decision> {
        if event.throttled == 0 {
            return None;
        }
        let fill = state.is_engaged().then_some(event.fill);
        let peak = peak(Reading(event.counted.reading).measured(), fill);
        Some(Decision::Limit {
            since: event.now,
            memory: peak.to_bits(),
            cycle: None,
        })
    }

    fn shown(&self, state: State, counted: Counted, now: u64) -> Shown {
        let measured = Reading(counted.reading).measured();
        Shown {
            measured,
            is_measured: measured != Rate::ZERO,
            peak: Rate::from_bits(state.memory()),
            is_peak_seen: state.memory() != 0,
            is_shut: false,
            idle: self.rate(state, now, Some(counted.reading)),
            cycle: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// The reading must be read before the sum: a sum older than the base would wrap to 2⁴⁵
    /// requests.
    #[test]
    fn counts_are_the_difference_to_the_base_across_its_wrap() {
        let reading = Reading::new(Rate::MAX, (1 << 34) - 1, u64::MAX);
        assert_eq!(reading.counted(u64::MAX.wrapping_add(4)), 4);
        assert_eq!(reading.counted(u64::MAX), 0);
        assert_eq!(
            (reading.measured(), reading.window()),
            (Rate::MAX, (1 << 34) - 1)
        );
    }

    /// Turns the window of `reading` at `now`, if it is over.
    fn turned(reading: u128, sum: u64, now: u64) -> (u128, Window) {
        let law = Aws {
            windows: Windows::new(0),
        };
        let window = law.turn(reading, 0, || (sum, 0), State::NONE, now, now);
        (window.next.unwrap_or(reading), window)
    }

    #[test]
    fn each_count_is_in_one_window() {
        let law = Aws {
            windows: Windows::new(0),
        };
        let first = law.begin(None, u64::MAX, 0).0;
        let five = 4; // from u64::MAX
        assert!(turned(first, five, SECOND / 2 - 1).1.next.is_none());
        let (second, window) = turned(first, five, SECOND / 2);
        assert_eq!((window.end, window.at), (SECOND, SECOND / 2));
        assert_eq!(
            Reading(second).measured(),
            per_second(8),
            "0.8 × 5 in half a second"
        );
        let (same, older) = turned(second, five, 0);
        assert_eq!((same, older.end, older.at), (second, SECOND, SECOND / 2));
        // Two windows with one count, and 0.2 of the rate before.
        let (third, _) = turned(second, five + 1, 3 * SECOND / 2);
        assert_eq!(Reading(third).measured(), Rate::from_ratio(24, 10 * SECOND));
        let (restarted, end) = law.begin(Some(third), 77, SECOND);
        assert_eq!(end, 3 * SECOND / 2);
        let (after, _) = turned(restarted, 77, 3 * SECOND / 2);
        let measured = Reading(third).measured();
        assert_eq!(Reading(after).measured(), measured.scaled(1, 5));
    }
}

#[cfg(test)]
#[expect(
    clippy::float_arithmetic,
    clippy::arithmetic_side_effects,
    reason = "the published tables are in floating point"
)]
mod meter_tests {
    extern crate alloc;

    use alloc::vec::Vec;

    use super::*;

    /// Replays `record()` at `times` (ms) and returns the measured rate, per second.
    ///
    /// Source of the vectors: botocore `tests/unit/retries/test_adaptive.py`.
    fn measured_after(times: &[u64]) -> f64 {
        let windows = Windows::new(0);
        let (mut measured, mut last, mut count) = (Rate::ZERO, 0, 0);
        for time in times {
            let window = windows.index(time * 1_000_000);
            count += 1;
            if window > last {
                measured = smoothed(measured, count, window - last);
                (last, count) = (window, 0);
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "44 significant bits")]
        let raw = measured.raw() as f64;
        raw / 2_f64.powi(64) * 1e9
    }

    fn assert_close(got: f64, want: f64) {
        assert!((got - want).abs() < 1e-9, "got {got}, want {want}");
    }

    #[test]
    fn the_meter_agrees_with_botocore() {
        assert_close(measured_after(&[1_000]), 0.8);
        let seconds: Vec<u64> = (1..=20).map(|s| s * 1_000).collect();
        assert!((measured_after(&seconds) - 1.0).abs() < 1e-7);
        let mut halves: Vec<u64> = (2..=8).map(|h| h * 500).collect();
        assert_close(measured_after(&halves), 1.999_923_2);
        halves.push(14_000);
        assert_close(measured_after(&halves), 0.479_984_64);
        assert_close(measured_after(&[1_000, 1_000, 1_000, 2_000, 3_000]), 1.312);
        let mut first = alloc::vec![100, 200, 300, 400, 490];
        assert_close(measured_after(&first), 0.0);
        first.push(500);
        assert_close(measured_after(&first), 9.6);
    }

    #[test]
    fn a_measured_rate_is_rounded_to_nearest() {
        for (units, fifth) in [(2, 0), (3, 1), (7, 1), (8, 2)] {
            assert_eq!(smoothed(Rate::from_raw(units), 0, 1).raw(), fifth);
        }
    }

    #[test]
    fn windows_are_aligned_to_the_origin_and_numbered_from_a_whole_second() {
        let windows = Windows::new(7 * SECOND + 700_000_000);
        assert_eq!(
            windows.index(0),
            1,
            "7.7 s lies in the second window from 7 s"
        );
        assert_eq!(
            windows.window(0).end,
            0,
            "the first window ended before the start"
        );
        assert_eq!(Windows::new(7 * SECOND + 1).window(0).end, SECOND / 2 - 1);
        assert_eq!(windows.window(1).end, 300_000_000);
        assert_eq!(windows.index(299_999_999), 1);
        assert_eq!(windows.index(300_000_000), 2);
    }
}
