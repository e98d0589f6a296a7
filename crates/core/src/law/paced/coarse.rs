//! Numbers packed to few bits, and powers of numbers with 16 fraction bits.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "times are below 2⁶², counts and factors below 2⁴⁵, and products are made in 128 bits"
)]

use crate::fixed::{Rate, SECOND};

/// One, with 16 fraction bits.
pub(super) const ONE: u64 = 1 << 16;

/// Returns `value` rounded down to `bits` significant bits. The exponent stands above `bits - 1`
/// bits.
pub(super) fn pack(value: u64, bits: u32) -> u64 {
    let exponent = (u64::BITS - value.leading_zeros()).saturating_sub(bits);
    (u64::from(exponent) << (bits - 1)) + (value >> exponent)
}

pub(super) fn unpack(code: u64, bits: u32) -> u64 {
    let top = 1 << (bits - 1);
    match code >> (bits - 1) {
        0 | 1 => code,
        exponent => ((code & (top - 1)) | top) << (exponent - 1),
    }
}

/// The code of [`pack`], but rounded up.
pub(super) fn pack_up(value: u64, bits: u32) -> u64 {
    let down = pack(value, bits);
    down + u64::from(unpack(down, bits) < value)
}

/// The significant bits of a rate, a calm and the time of earlier cycles, a wait, and growth.
pub(super) const OF_RATE: u32 = 14;
pub(super) const OF_CALM: u32 = 6;
pub(super) const OF_WAIT: u32 = 5;
pub(super) const OF_GROWTH: u32 = 4;

pub(super) fn ratio(tokens: u64, nanos: u64) -> Rate {
    Rate::from_raw((u128::from(tokens) << 64) / u128::from(nanos.max(1)))
}

pub(super) fn narrow(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// Returns `base` to the power of `exponent`, both with 16 fraction bits, the exponent at most
/// three. By straight lines between powers of two, 16 % too low to 7 % too high.
pub(super) fn power(base: u64, exponent: u64) -> u64 {
    let Some(top) = base.checked_ilog2() else {
        return 0;
    };
    let fraction = narrow((u128::from(base) << 16) >> top) & (ONE - 1);
    let log = i128::from((u64::from(top) << 16) | fraction) - (16 << 16);
    let log = (log * i128::from(exponent)) >> 16;
    let significand = u128::from(ONE) | (log & 0xffff).unsigned_abs();
    match log >> 16 {
        whole @ 0..=64 => narrow(significand << whole),
        whole @ -16..0 => narrow(significand >> -whole),
        whole if whole > 0 => u64::MAX,
        _ => 0,
    }
}

/// Returns the rate in tokens a second to the power of three quarters, at most 1, with 16 fraction
/// bits.
pub(super) fn three_quarters(rate: Rate) -> u64 {
    // 32 fraction bits.
    let rate = (u128::from(rate.raw()) * u128::from(SECOND)) >> 32;
    let rate = rate.min(1 << 32) as u64;
    let root = rate.isqrt();
    (root * (root << 16).isqrt()) >> 16
}
