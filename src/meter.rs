//! The measured rate: half-second windows and their smoothing.
//!
//! Source: botocore's `retries/adaptive.py`, `RateClocker`: smoothing 0.8, windows of half a second
//! aligned to the origin of time.

use crate::fixed::{Rate, SECOND};

/// The length of a window, in nanoseconds.
const WINDOW: u64 = SECOND.wrapping_div(2);

/// Where one limiter's windows lie.
///
/// Windows are aligned to the origin of the caller's time; here they are numbered from the start of the
/// limiter, rounded down to a whole second, and times are counted from the start itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows {
    /// The nanoseconds from the beginning of window 0 to the start, under one second.
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
    pub(crate) const fn index(self, elapsed: u64) -> u64 {
        let elapsed = elapsed.saturating_add(self.lead as u64);
        elapsed.wrapping_div(WINDOW)
    }

    /// Returns window `index`.
    pub(crate) const fn window(self, index: u64) -> Window {
        let start = index.saturating_mul(WINDOW);
        let lead = self.lead as u64;
        Window {
            start: start.saturating_sub(lead),
            end: start.saturating_add(WINDOW).saturating_sub(lead),
        }
    }
}

/// A window, in nanoseconds after the start; what lies before the start counts as the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// Returns the measured rate after `count` requests in `windows` windows, at least one.
///
/// `0.8 · count/(windows · 0.5 s) + 0.2 · measured`, rounded to nearest. Exact for counts under 2⁴⁵ and
/// under 2³² windows, 68 years; saturates beyond.
pub(crate) fn smoothed(measured: Rate, count: u64, windows: u64) -> Rate {
    let span = u128::from(SECOND).wrapping_mul(u128::from(windows.max(1)));
    // Both terms over the common denominator of ten spans: 16·count·2⁶⁴ and 2·measured·span.
    let counted = (u128::from(count) << 64).saturating_mul(16);
    let kept = u128::from(measured.raw()).saturating_mul(span.wrapping_mul(2));
    let divisor = span.wrapping_mul(10);
    let sum = counted.saturating_add(kept).saturating_add(divisor >> 1);
    Rate::from_raw(sum.checked_div(divisor).unwrap_or(0))
}

#[cfg(test)]
#[expect(
    clippy::float_arithmetic,
    clippy::arithmetic_side_effects,
    reason = "the published tables are in floating point"
)]
mod tests {
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
