//! The rate between two cuts, as a function of the time since the last one.

use super::memory::{Memory, Trip};
use super::settings::PacedSettings;
use crate::fixed::{Rate, SECOND};

/// One, with 32 fraction bits.
const ONE: u64 = 1 << 32;
/// How long the rate takes from a cut back to its peak, for all but very low peaks.
const SHORTEST_RETURN: u64 = SECOND.wrapping_mul(5).wrapping_div(2);
/// How long it takes at most: at low rates there must be some requests before the next throttle.
const LONGEST_RETURN: u64 = SECOND.wrapping_mul(12);
/// How many requests at the peak rate a return takes, between the two.
const RETURN_REQUESTS: u64 = 15;
/// How long the rate takes from its peak to twice that.
const DOUBLING: u64 = SHORTEST_RETURN;
/// How long a starved rate takes to double, on its way back to its peak.
const RAMP_STEP: u64 = SECOND.wrapping_div(4);
/// The most that one cut takes, and what it takes of one request per second besides `1 − β`, 32 fraction bits.
const DEEPEST_CUT: u64 = ONE.wrapping_mul(45).wrapping_div(100);
/// Time since the peak beyond which the rate grows no more; by then it is 250,000 times the peak.
const HORIZON: u32 = 6;
/// Times are rounded down to multiples of 2²⁴ ns, 17 ms, so that callers agree on the rate and seldom move it.
pub(crate) const STEP_BITS: u32 = 24;
const GRID: u64 = !((1 << STEP_BITS) - 1);

/// Returns β at `peak`, 32 fraction bits: `1 − min(0.45, (1 − β) + 1/√peak)`.
///
/// Rule 2. At low rates a cut is deeper: one throttled request of few says as much as many of many.
fn beta(settings: &PacedSettings, peak: Rate) -> u64 {
    let root = square_root(peak).max(1);
    let extra = (u128::from(ONE) << 32)
        .checked_div(u128::from(root))
        .map_or(ONE, |extra| u64::try_from(extra).unwrap_or(ONE));
    let cut = ONE
        .saturating_sub(settings.beta())
        .saturating_add(extra)
        .min(DEEPEST_CUT.max(ONE.saturating_sub(settings.beta())));
    ONE.saturating_sub(cut)
}

/// Returns the rate that a cut at `peak` leads to.
pub(crate) fn after_cut(settings: &PacedSettings, peak: Rate) -> Rate {
    fraction_of(peak, beta(settings, peak))
}

/// Returns the peak from which a cut leads to `rate`.
pub(crate) fn before_cut(settings: &PacedSettings, rate: Rate) -> Rate {
    // Each round leaves at most 0.4 of the error.
    (0..24).fold(rate, |peak, _| {
        let raw = (u128::from(rate.raw()) << 32).checked_div(u128::from(beta(settings, peak)));
        Rate::from_raw(raw.unwrap_or(0))
    })
}

/// Returns the square root of a rate in requests per second, 32 fraction bits.
fn square_root(rate: Rate) -> u64 {
    // √(raw·10⁹/2⁶⁴)·2³²; at most 94 bits under the root.
    let root = u128::from(rate.raw())
        .wrapping_mul(u128::from(SECOND))
        .isqrt();
    u64::try_from(root).unwrap_or(u64::MAX)
}

/// Returns `rate · factor`, for a factor with 32 fraction bits.
fn fraction_of(rate: Rate, factor: u64) -> Rate {
    Rate::from_raw(u128::from(rate.raw()).wrapping_mul(u128::from(factor)) >> 32)
}

/// Returns the time from a cut to its peak, in nanoseconds.
fn time_to_peak(peak: Rate) -> u64 {
    let requests = u128::from(RETURN_REQUESTS) << 64;
    let nanos = requests
        .checked_div(u128::from(peak.raw()))
        .unwrap_or(u128::MAX);
    u64::try_from(nanos)
        .unwrap_or(u64::MAX)
        .clamp(SHORTEST_RETURN, LONGEST_RETURN)
}

/// Returns how long the rate takes to double on its way out of starvation.
fn ramp_step(trip: Trip) -> u64 {
    RAMP_STEP.max(trip.nanos().saturating_mul(2))
}

/// Whether the rate is still on its way out of starvation at `now`.
pub(crate) fn is_starved(memory: Memory, since: u64, now: u64) -> bool {
    now.saturating_sub(since) < ramp_length(memory)
}

/// Returns how long the ramp out of starvation takes.
fn ramp_length(memory: Memory) -> u64 {
    ramp_step(memory.trip()).saturating_mul(u64::from(memory.ramp()))
}

/// Returns the rate at `now`, for a law that was cut last at `since`.
///
/// The same for all of a step of 17 ms. Never under the floor, nor over the ceiling.
pub(crate) fn rate_at(settings: &PacedSettings, memory: Memory, since: u64, now: u64) -> Rate {
    let elapsed = (now & GRID).saturating_sub(since);
    let step = ramp_step(memory.trip());
    let ramp = ramp_length(memory);
    let rate = match elapsed.checked_sub(ramp) {
        None => starved(settings, memory.peak(), ramp.wrapping_sub(elapsed), step),
        Some(elapsed) => returning(settings, memory, elapsed),
    };
    settings.within(rate)
}

/// Rule 6: returns the rate `left` before the end of a ramp: half of `β·peak` for each step.
fn starved(settings: &PacedSettings, peak: Rate, left: u64, step: u64) -> Rate {
    let steps = (u128::from(left) << 32)
        .checked_div(u128::from(step))
        .unwrap_or(0);
    // Straight lines between powers of two.
    let whole = steps.div_ceil(u128::from(ONE));
    let fraction = whole.wrapping_shl(32).saturating_sub(steps);
    let low = after_cut(settings, peak);
    let line = u128::from(ONE).saturating_add(fraction);
    let halvings = u32::try_from(whole).unwrap_or(u32::MAX).saturating_add(32);
    Rate::from_raw(
        u128::from(low.raw())
            .saturating_mul(line)
            .checked_shr(halvings)
            .unwrap_or(0),
    )
}

/// Rules 2 to 4: returns the rate `elapsed` after a cut: a fifth-power return to the peak, then a cubic one away from it, and a
/// line on top of both that gives each of those who share a limit the same.
fn returning(settings: &PacedSettings, memory: Memory, elapsed: u64) -> Rate {
    let peak = memory.peak();
    let until = time_to_peak(peak);
    let factor = match elapsed.checked_sub(until) {
        None => {
            let left = ratio(until.wrapping_sub(elapsed), until);
            let square = product(left, left);
            let fifth = product(product(square, square), left);
            let cut = ONE.saturating_sub(beta(settings, peak));
            ONE.saturating_sub(product(cut, fifth))
        }
        Some(past) => {
            let doubling = DOUBLING.max(memory.trip().nanos().saturating_mul(2));
            let past = ratio(past.min(doubling.saturating_mul(1 << HORIZON)), doubling);
            ONE.saturating_add(product(product(past, past), past))
        }
    };
    let grown = u128::from(fraction_of(peak, factor).raw());
    Rate::from_raw(grown.saturating_add(risen(peak, elapsed)))
}

/// Returns the line: `min(0.15·√peak, 0.06·peak)` requests per second, each second. In units of a rate.
fn risen(peak: Rate, elapsed: u64) -> u128 {
    let elapsed = elapsed.min(SECOND << 12);
    let gentle = u128::from(peak.raw()).wrapping_mul(6).wrapping_div(100);
    // 0.15·√peak per second is (root/2³²)·0.15·2⁶⁴/10⁹ units.
    let steep = (u128::from(square_root(peak)) << 32)
        .wrapping_mul(15)
        .wrapping_div(100_000_000_000);
    gentle
        .min(steep)
        .wrapping_mul(u128::from(elapsed))
        .wrapping_div(1_000_000_000)
}

/// Returns `part / whole`, 32 fraction bits.
fn ratio(part: u64, whole: u64) -> u64 {
    let ratio = (u128::from(part) << 32)
        .checked_div(u128::from(whole))
        .unwrap_or(0);
    u64::try_from(ratio).unwrap_or(u64::MAX)
}

/// Returns the product of two numbers with 32 fraction bits.
fn product(a: u64, b: u64) -> u64 {
    let product = u128::from(a).wrapping_mul(u128::from(b)) >> 32;
    u64::try_from(product).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[expect(
    clippy::arithmetic_side_effects,
    reason = "a test may overflow, and fail"
)]
mod tests;
