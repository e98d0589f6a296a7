//! The rate curve of the published adaptive mode: CUBIC with the window read as a rate.
//!
//! Constants and equations are those of the AWS SDKs' adaptive retry mode (botocore's
//! `retries/throttling.py`, `CubicCalculator`): β = 0.7, C = 0.4, and `K` by RFC 8312 equation 2.
//! RFC 9438 computes `K` from the window after the cut instead.

use crate::fixed::{Rate, SECOND, cube_root, multiply_high, shift_right_rounding, to_signed};

/// The elapsed time after which the curve is far above every possible rate: 2⁴² ns, or 73 minutes.
const HORIZON: u64 = 1 << 42;
/// The fraction bits of a time inside the curve.
const TIME_FRACTION: u32 = 20;
/// `∛(0.75 × 10³⁶ / 2⁴) × 2²⁵`: the factor from the cube root of a rate to `K` in 2⁻²⁰ ns, see
/// [`time_to_peak`].
const PEAK_SCALE: u64 = 12_098_466_283_477_288_415;
/// `C × 10⁻³⁶ × 2¹⁸⁴`, with `C` = 0.4: the factor from cubed nanoseconds to a rate, see [`rise`].
const CUBE_SCALE: u64 = 9_807_971_461_541_688_693;

/// The lowest fill rate of the published law, 0.5 tokens/s.
const FLOOR: Rate = Rate::from_ratio(1, SECOND << 1);

//= botocore: bucket.TokenBucket
pub(crate) fn at_least_floor(rate: Rate) -> Rate {
    rate.max(FLOOR)
}

/// Returns β × `peak`: the rate right after a throttle at `peak`.
//= botocore: throttling.CubicCalculator
pub(crate) fn reduced(peak: Rate) -> Rate {
    peak.scaled(7, 10)
}

/// Returns the rate `elapsed` nanoseconds after a throttle at `peak`, before the limit of twice
/// the measured rate: `C·(t − K)³ + peak`, with `K` of [`time_to_peak`].
///
/// The error is at most one unit, or 2⁻⁴³ of the result if that is more. The result saturates at
/// [`Rate::MAX`], and is flat after 73 minutes, far beyond every possible peak.
//= botocore: throttling.CubicCalculator
pub(crate) fn rate_at(peak: Rate, peak_time: u64, elapsed: u64) -> Rate {
    let elapsed = elapsed.min(HORIZON) << TIME_FRACTION;
    let after = elapsed.wrapping_sub(peak_time);
    let raw = peak.raw();
    Rate::rounded(if to_signed(after) < 0 {
        raw.saturating_sub(rise(after.wrapping_neg()))
    } else {
        raw.saturating_add(rise(after))
    })
}

/// Returns `K = ∛(peak·(1 − β)/C)`, the time from a throttle to the peak, in 2⁻²⁰ ns.
///
/// With `R` the raw rate, `K·2²⁰ = ∛(0.75·R·10⁹/2⁶⁴)·10⁹·2²⁰ = ∛R · ∛(0.75·10³⁶/2⁴)`.
//= botocore: throttling.CubicCalculator
pub(crate) fn time_to_peak(peak: Rate) -> u64 {
    let (root, exponent) = cube_root(peak.raw());
    // `multiply_high` drops 64 bits, and the constant has 25 fraction bits.
    let shift = exponent.wrapping_add(25).saturating_sub(64);
    let scaled = shift_right_rounding(u128::from(multiply_high(root, PEAK_SCALE)), shift);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// Returns `C·span³` as a raw rate, for a span in 2⁻²⁰ ns. Saturates.
#[inline]
const fn rise(span: u64) -> u64 {
    if span == 0 {
        return 0;
    }
    // Block floating point: the significand keeps its top bit set, so that no step loses precision.
    let zeros = span.leading_zeros();
    let significand = span << zeros;
    let cube = multiply_high(multiply_high(significand, significand), significand);
    let product = multiply_high(cube, CUBE_SCALE);
    // span³ = cube·2^(128 − 3·zeros) in 2⁻⁶⁰ ns³; times 2⁶⁴ tokens and the constant's 2⁻¹⁸⁴.
    let drop = zeros.wrapping_mul(3);
    if drop <= 12 {
        let more = 12_u32.wrapping_sub(drop);
        if product.leading_zeros() >= more {
            product << more
        } else {
            u64::MAX
        }
    } else if drop <= 76 {
        let below = product >> drop.wrapping_sub(13); // one bit more
        (below >> 1).wrapping_add(below & 1)
    } else {
        0
    }
}

#[cfg(test)]
#[expect(
    clippy::float_arithmetic,
    reason = "the published tables are in floating point"
)]
mod tests {
    use super::*;

    fn rate_at(peak: Rate, elapsed: u64) -> Rate {
        super::rate_at(peak, time_to_peak(peak), elapsed)
    }

    /// One unit of a rate, per second.
    const UNIT: f64 = 1e9 / 18_446_744_073_709_551_616.0;

    fn rate(per_second: f64) -> Rate {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a positive rate"
        )]
        Rate::from_raw((per_second * 2_f64.powi(64) / 1e9).round() as u128)
    }

    fn per_second(rate: Rate) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "44 significant bits")]
        let raw = rate.raw() as f64;
        raw / 2_f64.powi(64) * 1e9
    }

    fn assert_close(got: f64, want: f64) {
        assert!(
            (got - want).abs() <= UNIT + 1e-13 * want,
            "got {got}, want {want}"
        );
    }

    /// Source: aws-sdk-go-v2 `adaptive_ratelimit_test.go`, smithy-rs `client_rate_limiter.rs`.
    #[test]
    fn success_follows_the_published_table() {
        let want = [
            7.0,
            9.648_936_009_66,
            10.000_030_849_917_364,
            10.453_284_520_772_092,
            13.408_697_022_224_185,
            21.266_268_354_273_64,
            36.425_998_516_920_465,
        ];
        for (second, want) in want.into_iter().enumerate() {
            let elapsed = u64::try_from(second).expect("small") * SECOND;
            assert_close(per_second(rate_at(rate(10.0), elapsed)), want);
        }
    }

    /// Source: the table of smithy-kotlin, where the peak is the rate before the cut.
    #[test]
    fn a_chain_of_throttles_follows_the_published_table() {
        let (mut peak, mut since) = (rate(10.0), 5);
        let mut last = Rate::ZERO;
        let steps = [
            (5, false, 7.0),
            (6, false, 9.648_936_009_66),
            (7, true, 6.754_255_206_761_999),
            (8, true, 4.727_978_644_733_399),
            (9, false, 6.606_547_753_887_045),
            (10, false, 6.763_279_816_944_947),
            (11, false, 7.598_174_833_907_107),
            (12, false, 11.511_232_804_773_524),
        ];
        for (second, throttled, want) in steps {
            if throttled {
                (peak, since) = (last, second);
                last = reduced(peak);
            } else {
                last = rate_at(peak, (second - since) * SECOND);
            }
            assert_close(per_second(last), want);
        }
    }

    /// Source: botocore `tests/unit/retries/test_throttling.py`.
    #[test]
    fn the_calculator_agrees_with_botocore() {
        let k = time_to_peak(rate(10.0));
        #[expect(clippy::cast_precision_loss, reason = "51 bits")]
        let seconds = |k: u64| k as f64 / f64::from(1 << TIME_FRACTION) / 1e9;
        assert_close(seconds(k), 1.957_433_820_584_431_7);
        assert_close(per_second(rate_at(rate(10.0), k >> TIME_FRACTION)), 10.0);
        assert_close(per_second(reduced(rate(8.0))), 5.6);
        assert_close(seconds(time_to_peak(rate(8.0))), 1.817_120_592_832_139_7);
    }

    #[test]
    fn the_curve_saturates_instead_of_wrapping() {
        for elapsed in [HORIZON - 1, HORIZON, HORIZON + 1, u64::MAX] {
            assert_eq!(rate_at(Rate::ZERO, elapsed), Rate::MAX);
            assert_eq!(rate_at(Rate::MAX, elapsed), Rate::MAX);
        }
        assert_eq!(rate_at(Rate::ZERO, 0), Rate::ZERO);
    }

    #[test]
    fn the_curve_starts_at_the_reduced_rate_for_every_peak() {
        for step in 0..400_i32 {
            let peak = rate(0.5 * 1.05_f64.powi(step));
            let start = per_second(rate_at(peak, 0));
            let want = per_second(reduced(peak));
            assert!(
                (start - want).abs() <= UNIT + 1e-13 * want,
                "peak {}",
                per_second(peak)
            );
        }
    }
}
