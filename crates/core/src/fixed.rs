//! Fixed-point rates, and the roots and products that the control laws need.

use core::time::Duration;

/// One second, in nanoseconds.
pub(crate) const SECOND: u64 = 1_000_000_000;

/// A rate: tokens per nanosecond × 2⁶⁴, with at most 44 significant bits.
///
/// With this unit a refill is one multiplication and a shift. Rates range from 5.4e-11 tokens/s to
/// just under 1e9 tokens/s. The floor of the published law, 0.5/s, is 9,223,372,037 units and off
/// by 1.6e-11. The limit of 44 bits lets a rate share a word with a time. Rounding to 44 bits moves
/// a rate by at most 2⁻⁴⁴ of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rate(u64);

impl Rate {
    /// The significant bits of a rate.
    const SIGNIFICANT: u32 = 44;
    /// The bits of a packed rate: 44 of significand below 5 of exponent.
    pub(crate) const BITS: u32 = Self::SIGNIFICANT.wrapping_add(5);

    pub(crate) const ZERO: Self = Self(0);
    /// The least rate above zero: one token in 584 years.
    pub(crate) const LEAST: Self = Self(1);
    /// The largest rate, 2⁻⁴⁴ under one token per nanosecond.
    pub(crate) const MAX: Self = Self(u64::MAX << (u64::BITS.wrapping_sub(Self::SIGNIFICANT)));

    /// Returns half of the rate, rounded down.
    pub(crate) const fn half(self) -> Self {
        Self(self.0 >> 1)
    }

    /// Returns the rate of `tokens` in `nanos` nanoseconds, rounded to nearest.
    pub(crate) const fn from_ratio(tokens: u32, nanos: u64) -> Self {
        let scaled = (tokens as u128) << 64;
        let half = (nanos >> 1) as u128;
        match scaled.saturating_add(half).checked_div(nanos as u128) {
            Some(raw) => Self::from_raw(raw),
            None => Self::from_raw(scaled), // as in one nanosecond
        }
    }

    /// Returns the rate of `tokens` in `per`, or `None` if settings may not have it: outside one
    /// token a day to one in a nanosecond.
    pub(crate) fn settable(tokens: u32, per: Duration) -> Option<Self> {
        const SLOWEST: u64 = SECOND.wrapping_mul(86_400);
        let nanos = u64::try_from(per.as_nanos()).ok()?;
        let slowest = u64::from(tokens).saturating_mul(SLOWEST);
        let in_range = tokens > 0 && nanos >= u64::from(tokens) && nanos <= slowest;
        in_range.then(|| Self::from_ratio(tokens, nanos))
    }

    /// Returns the rate of `raw` units, rounded to nearest and at most [`MAX`](Self::MAX).
    #[expect(
        clippy::cast_possible_truncation,
        reason = "what is larger is too much"
    )]
    pub(crate) const fn from_raw(raw: u128) -> Self {
        if raw >> u64::BITS == 0 {
            Self::rounded(raw as u64)
        } else {
            Self::MAX
        }
    }

    /// Returns the rate of [`from_raw`](Self::from_raw), computed in 64 bits.
    pub(crate) const fn rounded(raw: u64) -> Self {
        let excess = Self::excess(raw);
        match raw.checked_add((1 << excess) >> 1) {
            Some(sum) => Self((sum >> excess) << excess),
            None => Self::MAX,
        }
    }

    /// Returns how many low bits of `raw` are beyond the 44 significant bits.
    const fn excess(raw: u64) -> u32 {
        let bits = u64::BITS.wrapping_sub(raw.leading_zeros());
        bits.saturating_sub(Self::SIGNIFICANT)
    }

    /// Returns the rate in its units, tokens per nanosecond × 2⁶⁴.
    pub(crate) const fn raw(self) -> u64 {
        self.0
    }

    /// Returns the value of the rate's lowest significant bit.
    pub(crate) const fn last_place(self) -> u64 {
        1 << Self::excess(self.0)
    }

    /// Packs the rate into the low [`BITS`](Self::BITS) bits.
    pub(crate) const fn to_bits(self) -> u64 {
        let excess = Self::excess(self.0);
        ((excess as u64) << Self::SIGNIFICANT) | (self.0 >> excess)
    }

    /// Unpacks what [`to_bits`](Self::to_bits) packed.
    pub(crate) const fn from_bits(bits: u64) -> Self {
        let significand = bits & (1_u64 << Self::SIGNIFICANT).wrapping_sub(1);
        Self(significand.wrapping_shl((bits >> Self::SIGNIFICANT) as u32))
    }

    /// Returns twice the rate, at most [`MAX`](Self::MAX).
    pub(crate) const fn doubled(self) -> Self {
        if self.0 > Self::MAX.0 >> 1 {
            Self::MAX
        } else {
            Self(self.0 << 1)
        }
    }

    /// Returns `2^power` times the rate, at most [`MAX`](Self::MAX).
    pub(crate) fn times_two_to(self, power: u32) -> Self {
        Self::from_raw(u128::from(self.0) << power.min(64))
    }

    /// Returns the rate less `other`, at least zero.
    pub(crate) fn minus(self, other: Self) -> Self {
        Self::from_raw(u128::from(self.0.saturating_sub(other.0)))
    }

    /// Returns how many times the rate must be halved to be `other` or less, at most 64.
    pub(crate) const fn halvings_to(self, other: Self) -> u32 {
        let mut halvings = 0;
        while halvings < u64::BITS && (self.0 >> halvings) > other.0 {
            halvings = halvings.wrapping_add(1);
        }
        halvings
    }

    /// Returns the nanoseconds that one token takes, rounded up.
    pub(crate) const fn nanos_per_token(self) -> u64 {
        match u64::MAX.checked_div(self.raw()) {
            Some(nanos) => nanos.saturating_add(1),
            None => u64::MAX,
        }
    }

    /// Returns the whole tokens in `nanos` nanoseconds.
    pub(crate) const fn tokens_in(self, nanos: u64) -> u64 {
        multiply_high(self.0, nanos)
    }

    /// Returns `numerator / denominator` of the rate, rounded to nearest.
    pub(crate) fn scaled(self, numerator: u32, denominator: u32) -> Self {
        let product = u128::from(self.0).wrapping_mul(u128::from(numerator));
        let half = u128::from(denominator >> 1);
        let divisor = u128::from(denominator.max(1));
        Self::from_raw(product.wrapping_add(half).checked_div(divisor).unwrap_or(0))
    }
}

/// Returns the same 64 bits as a two's complement number.
pub(crate) const fn to_signed(bits: u64) -> i64 {
    i64::from_ne_bytes(bits.to_ne_bytes())
}

/// Returns `value / 2^shift`, rounded to nearest; 0 for a shift of all the bits or more.
pub(crate) const fn shift_right_rounding(value: u128, shift: u32) -> u128 {
    match shift {
        0 => value,
        1..=127 => {
            let below = shift.wrapping_sub(1);
            (value >> shift).wrapping_add((value >> below) & 1)
        }
        _ => 0,
    }
}

/// Returns the high half of the 128-bit product of `a` and `b`.
pub(crate) const fn multiply_high(a: u64, b: u64) -> u64 {
    ((a as u128).wrapping_mul(b as u128) >> 64) as u64
}

/// Returns the cube root of `value` as `(root, exponent)`: `∛value = root × 2^-exponent`.
///
/// The root has 62 to 64 significant bits (0 for 0). It is at most 2 units too small or 1 too
/// large, a relative error under 2⁻⁶⁰. An integer root gives 21 bits, a Newton step 42 bits, and
/// the first term of the remainder's series the rest.
pub(crate) fn cube_root(value: u64) -> (u64, u32) {
    if value == 0 {
        return (0, 0);
    }
    // Normalize by a multiple of three bits, so that the root moves by whole bits.
    let third = value.leading_zeros().wrapping_div(3);
    let normal = value << third.wrapping_mul(3);
    let cube = u128::from(normal) << 63;
    let guess = u128::from(cube_root_floor(normal)) << 21;
    let newton = guess
        .wrapping_mul(2)
        .wrapping_add(divide(cube, guess.wrapping_mul(guess)));
    // From a guess below, the step lands at the root, or above it by two at most.
    let mut root = newton.wrapping_div(3);
    while cubed(root) > cube {
        root = root.wrapping_sub(1);
    }
    let rest = cube.wrapping_sub(cubed(root)) << 21;
    let slope = root.wrapping_mul(root).wrapping_mul(3);
    let fraction = divide(rest, slope);
    let scaled = (root << 21).wrapping_add(fraction);
    (
        u64::try_from(scaled).unwrap_or(u64::MAX),
        third.wrapping_add(42),
    )
}

const fn cubed(x: u128) -> u128 {
    x.wrapping_mul(x).wrapping_mul(x)
}

fn divide(numerator: u128, divisor: u128) -> u128 {
    numerator.checked_div(divisor).unwrap_or(0)
}

/// Returns the integer part of the cube root, at most 2,642,245, by Newton's steps from above,
/// which fall until they reach it.
fn cube_root_floor(value: u64) -> u64 {
    let mut root = 2_642_246_u64;
    loop {
        let quotient = value.checked_div(root.wrapping_mul(root)).unwrap_or(0);
        let next = root.wrapping_mul(2).wrapping_add(quotient).wrapping_div(3);
        if next >= root {
            return root;
        }
        root = next;
    }
}

#[cfg(test)]
#[expect(
    clippy::arithmetic_side_effects,
    reason = "a test may overflow, and fail"
)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_rate_unpacks_to_itself_at_every_size() {
        for shift in 0..64 {
            for low in [0_u64, 1, 0x5555_5555_5555_5555, u64::MAX] {
                let rate = Rate::from_raw(u128::from((1_u64 << shift) | (low >> (63 - shift))));
                assert_eq!(
                    Rate::from_bits(rate.to_bits()),
                    rate,
                    "shift {shift}, low {low:x}"
                );
                assert!(
                    rate.to_bits() >> Rate::BITS == 0,
                    "a packed rate fits its bits"
                );
            }
        }
        assert_eq!(Rate::from_bits(Rate::MAX.to_bits()), Rate::MAX);
        assert_eq!(Rate::from_raw(u128::MAX), Rate::MAX);
    }

    #[test]
    fn a_rate_rounds_to_the_nearest_44_bits() {
        let exact = 0xfff_ffff_ffff_u128; // 44 bits
        assert_eq!(u128::from(Rate::from_raw(exact).raw()), exact);
        assert_eq!(
            u128::from(Rate::from_raw((exact << 4) | 7).raw()),
            exact << 4
        );
        assert_eq!(
            u128::from(Rate::from_raw((exact << 4) | 8).raw()),
            (exact + 1) << 4
        );
        assert_eq!(Rate::from_ratio(1, 2 * SECOND).raw(), 9_223_372_037);
    }

    /// Rounding in 64 bits agrees with rounding in 128 bits, on both sides of each step.
    #[test]
    fn a_rate_is_rounded_in_64_bits_as_in_128() {
        let by_definition = |raw: u128| {
            let bits = 128 - raw.leading_zeros();
            let excess = bits.saturating_sub(Rate::SIGNIFICANT);
            let value = shift_right_rounding(raw, excess) << excess;
            u64::try_from(value).map_or(Rate::MAX, |value| Rate(value.min(Rate::MAX.0)))
        };
        for bits in 0..64_u32 {
            for low in [0_u64, 1, 0x5555_5555_5555_5555, u64::MAX >> 1, u64::MAX] {
                let top = (1_u64 << bits) | (low & ((1 << bits) - 1));
                for near in -1..=1_i64 {
                    for half in [0, 1_u64 << bits.saturating_sub(44)] {
                        let raw = top.wrapping_add_signed(near).wrapping_add(half);
                        assert_eq!(Rate::rounded(raw), by_definition(raw.into()), "{raw:x}");
                    }
                }
                let rate = Rate::rounded(top);
                let twice = by_definition(u128::from(rate.0) << 1);
                assert_eq!(rate.doubled(), twice, "{rate:?}");
            }
        }
    }

    #[test]
    fn a_rate_doubled_many_times_saturates_and_a_difference_stops_at_zero() {
        let (three, seven) = (Rate::from_raw(3), Rate::from_raw(7));
        assert_eq!(three.times_two_to(0), three);
        assert_eq!(three.times_two_to(5).raw(), 96);
        assert_eq!(three.times_two_to(1), three.doubled());
        for power in [63, 64, 65, 128, u32::MAX] {
            assert_eq!(three.times_two_to(power), Rate::MAX, "power {power}");
            assert_eq!(Rate::ZERO.times_two_to(power), Rate::ZERO);
        }
        assert_eq!(seven.minus(three).raw(), 4);
        assert_eq!(three.minus(seven), Rate::ZERO);
    }

    #[test]
    fn halvings_are_the_fewest_that_bring_one_rate_down_to_another() {
        for (rate, other, halvings) in [
            (8, 9, 0),
            (8, 8, 0),
            (8, 7, 1),
            (9, 4, 1),
            (9, 3, 2),
            (9, 0, 4),
            (0, 0, 0),
        ] {
            let (rate, other) = (Rate::from_raw(rate), Rate::from_raw(other));
            assert_eq!(rate.halvings_to(other), halvings, "{rate:?} to {other:?}");
        }
        assert_eq!(Rate::MAX.halvings_to(Rate::ZERO), 64);
        assert_eq!(Rate::MAX.halvings_to(Rate::LEAST), 63);
    }

    #[test]
    fn tokens_are_counted_when_they_are_whole() {
        let rate = Rate::from_raw(1 << 62); // one token in 4 ns
        for (nanos, tokens) in [
            (0, 0),
            (3, 0),
            (4, 1),
            (7, 1),
            (8, 2),
            (u64::MAX, (1 << 62) - 1),
        ] {
            assert_eq!(rate.tokens_in(nanos), tokens, "{nanos} ns");
        }
    }

    #[test]
    fn a_cube_root_is_within_two_to_the_minus_60() {
        let mut value = 1_u64;
        for step in 0..4_000_u64 {
            value = value
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(step);
            let sample = value >> (step % 64);
            let (root, exponent) = cube_root(sample);
            // Compare root³ with sample × 2^(3·exponent), through 21-bit limbs of a wide product.
            assert!(
                root_error_below(root, exponent, sample),
                "cube root of {sample}"
            );
        }
        for hard in [
            1_073_741_821,
            281_474_976_710_653,
            1_960_600_990_452_446_889,
            8_652_610_905_681_769_206,
        ] {
            let (root, exponent) = cube_root(hard);
            assert!(
                root_error_below(root, exponent, hard),
                "cube root of {hard}"
            );
        }
        assert_eq!(cube_root(0), (0, 0));
        assert_eq!(cube_root(27), (3 << 61, 61));
    }

    /// Returns `true` if `root·2^-exponent` is within 2 units of its last place of the cube root.
    fn root_error_below(root: u64, exponent: u32, sample: u64) -> bool {
        sample == 0 || {
            let target = shifted(u128::from(sample), 3 * exponent);
            cube_wide(root.saturating_sub(2)) <= target
                && cube_wide(root.saturating_add(2)) >= target
        }
    }

    /// A 256-bit number, high half first.
    fn shifted(value: u128, shift: u32) -> (u128, u128) {
        if shift >= 128 {
            (value << (shift - 128), 0)
        } else {
            (value >> (128 - shift), value << shift)
        }
    }

    fn cube_wide(x: u64) -> (u128, u128) {
        let square = u128::from(x) * u128::from(x);
        let low = (square & u128::from(u64::MAX)) * u128::from(x);
        let high = (square >> 64) * u128::from(x) + (low >> 64);
        (high >> 64, (high << 64) | (low & u128::from(u64::MAX)))
    }
}
