//! The rate between two cuts, as a function of the time since the last one.

use super::cut_state::{CoarseRtt, CutState};
use super::settings::{PacedSettings, Profile};
use crate::fixed::{Rate, SECOND};

/// One, with 32 fraction bits.
const ONE: u64 = 1 << 32;
/// The least time from a cut back to the peak.
const SHORTEST_RETURN: u64 = SECOND.wrapping_mul(5).wrapping_div(2);
/// The least time for a client that has the limit alone. At lower peaks this is the time of so many
/// requests, up to [`SHORTEST_RETURN`].
const SHORTEST_EXCLUSIVE: u64 = SECOND.wrapping_mul(6).wrapping_div(5);
const EXCLUSIVE_REQUESTS: u64 = 125;
/// The longest time from a cut back to the peak. At low rates this leaves room for some requests
/// before the next throttle.
const LONGEST_RETURN: u64 = SECOND.wrapping_mul(12);
/// Between these two bounds, a return takes the time of so many requests at the peak rate.
const RETURN_REQUESTS: u64 = 15;
/// The fewest round trips of a return: the more trips, the less is sent too fast in one.
const RETURN_TRIPS: u64 = 8;
/// The fewest round trips in which the rate rises from its peak to twice the peak.
const DOUBLING_TRIPS: u64 = 4;
/// The time in which a starved rate doubles, on its way back to its peak.
const RAMP_STEP: u64 = SECOND.wrapping_div(4);
/// The most that one cut takes, usually and for a shared limit. 32 fraction bits.
const DEEPEST_CUT: u64 = percent(45);
const DEEPEST_SHARED: u64 = percent(30);
/// The most that a cut takes at very low rates: [`SHALLOWEST_CUT`], and [`DEEPER`] for each request
/// per second. 32 fraction bits.
const SHALLOWEST_CUT: u64 = percent(18);
const DEEPER: u64 = percent(6);
/// What a cut takes besides `1 − β` at one request per second, 32 fraction bits.
const EXTRA_CUT: u64 = ONE;
const EXTRA_SHARED: u64 = percent(65);
/// The cuts a second that a client of a shared limit aims at, at 10 requests per second. 32
/// fraction bits.
const CUTS: u64 = percent(55);
/// The square root of 10, the rate at which a client aims at the most cuts. 32 fraction bits.
const ROOT_OF_TEN: u64 = 13_581_879_131;
/// The rate of a shared limit is probed by a cube when a cut is so many times later than expected.
const CALM: u64 = 3;
/// The longest time that a straight line rises: 12 days.
const LONGEST_RISE: u64 = SECOND << 20;
/// The rate stops growing 2⁶ doubling times after the peak, at 250,000 times the peak.
const HORIZON: u32 = 6;
/// Times are rounded down to multiples of 2²⁴ ns, 17 ms, so that callers agree on the rate and
/// seldom change it.
pub(crate) const STEP_BITS: u32 = 24;
const GRID: u64 = !((1 << STEP_BITS) - 1);

/// Returns a percentage with 32 fraction bits.
const fn percent(percent: u64) -> u64 {
    ONE.wrapping_mul(percent).wrapping_div(100)
}

/// Returns β at `peak`, 32 fraction bits: `1 − min((1 − β) + 1/√peak, 0.45, 0.18 + 0.06·peak)`; of
/// a shared limit `1 − min((1 − β) + 0.65/√peak, 0.3)`. A cut takes `1 − β` in any case.
///
/// Rule 2. At low rates a cut is deeper: one throttled request of few says as much as many of many.
/// At very low rates a service's bucket cannot save up what a deep cut leaves unused.
fn beta(settings: &PacedSettings, peak: Rate) -> u64 {
    let (extra, deepest) = match settings.profile() {
        Profile::Usual | Profile::Exclusive => {
            let requests = u128::from(peak.raw()).wrapping_mul(u128::from(SECOND)) >> 32;
            let deeper = requests.wrapping_mul(u128::from(DEEPER)) >> 32;
            let deeper = u64::try_from(deeper).unwrap_or(u64::MAX);
            let deepest = SHALLOWEST_CUT.saturating_add(deeper);
            (EXTRA_CUT, deepest.min(DEEPEST_CUT))
        }
        Profile::Shared => (EXTRA_SHARED, DEEPEST_SHARED),
    };
    let root = square_root(peak).max(1);
    let extra = (u128::from(extra) << 32)
        .checked_div(u128::from(root))
        .map_or(ONE, |extra| u64::try_from(extra).unwrap_or(ONE));
    let cut = ONE
        .saturating_sub(settings.beta())
        .saturating_add(extra)
        .min(deepest.max(ONE.saturating_sub(settings.beta())));
    ONE.saturating_sub(cut)
}

/// Returns the rate that a cut at `peak` leads to.
pub(crate) fn after_cut(settings: &PacedSettings, peak: Rate) -> Rate {
    fraction_of(peak, beta(settings, peak))
}

/// Returns the peak from which a cut leads to `rate`.
pub(crate) fn before_cut(settings: &PacedSettings, rate: Rate) -> Rate {
    // Each round leaves at most 0.46 of the error.
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

/// Returns the time from a cut to its peak, in nanoseconds, if round trips are short.
fn return_time(profile: Profile, peak: Rate) -> u64 {
    let takes = |requests: u64| {
        let nanos = (u128::from(requests) << 64)
            .checked_div(u128::from(peak.raw()))
            .unwrap_or(u128::MAX);
        u64::try_from(nanos).unwrap_or(u64::MAX)
    };
    let shortest = match profile {
        Profile::Usual | Profile::Shared => SHORTEST_RETURN,
        Profile::Exclusive => takes(EXCLUSIVE_REQUESTS).clamp(SHORTEST_EXCLUSIVE, SHORTEST_RETURN),
    };
    takes(RETURN_REQUESTS).clamp(shortest, LONGEST_RETURN)
}

/// Returns the time from a cut to its peak, in nanoseconds.
fn time_to_peak(profile: Profile, peak: Rate, trip: CoarseRtt) -> u64 {
    return_time(profile, peak).max(trip.nanos().wrapping_mul(RETURN_TRIPS))
}

/// Returns the time in which the rate rises from its peak to twice the peak.
fn doubling_time(profile: Profile, peak: Rate, trip: CoarseRtt) -> u64 {
    let (shortest, trips) = match profile {
        Profile::Usual => (return_time(profile, peak), DOUBLING_TRIPS),
        Profile::Shared => (SHORTEST_RETURN, DOUBLING_TRIPS),
        Profile::Exclusive => (return_time(profile, peak), RETURN_TRIPS),
    };
    shortest.max(trip.nanos().wrapping_mul(trips))
}

/// Returns the time in which a starved rate doubles.
fn ramp_step(trip: CoarseRtt) -> u64 {
    RAMP_STEP.max(trip.nanos().saturating_mul(2))
}

/// Returns `true` if the rate is still starved at `now`.
pub(crate) fn is_starved(memory: CutState, since: u64, now: u64) -> bool {
    now.saturating_sub(since) < ramp_length(memory)
}

/// Returns the time until a starved rate has doubled back to β times the peak.
fn ramp_length(memory: CutState) -> u64 {
    ramp_step(memory.trip()).saturating_mul(u64::from(memory.ramp()))
}

/// Returns the rate at `now`, for a law that was cut last at `since`.
///
/// The rate is constant within a step of 17 ms, and kept between floor and ceiling.
pub(crate) fn rate_at(settings: &PacedSettings, memory: CutState, since: u64, now: u64) -> Rate {
    if memory.is_slow_start() {
        return settings.within(memory.peak());
    }
    let elapsed = (now & GRID).saturating_sub(since);
    let rate = along(settings, memory, elapsed);
    settings.within(match settings.slope() {
        None => rate,
        Some(slope) => rate.min(sloped(along(settings, memory, 0), slope, elapsed)),
    })
}

/// Returns the rate `elapsed` after a cut, without a longest slope.
fn along(settings: &PacedSettings, memory: CutState, elapsed: u64) -> Rate {
    let step = ramp_step(memory.trip());
    let ramp = ramp_length(memory);
    match elapsed.checked_sub(ramp) {
        None => starved(settings, memory.peak(), ramp.wrapping_sub(elapsed), step),
        Some(elapsed) => returning(settings, memory, elapsed),
    }
}

/// The longest slope: returns `low` plus a gain of `slope` a second over `elapsed`.
pub(super) fn sloped(low: Rate, slope: Rate, elapsed: u64) -> Rate {
    let gained = u128::from(slope.raw())
        .wrapping_mul(u128::from(elapsed))
        .wrapping_div(1_000_000_000);
    Rate::from_raw(u128::from(low.raw()).saturating_add(gained))
}

/// Rule 6: returns the starved rate `left` before its doublings end: `β·peak`, halved for each
/// step.
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

/// Rules 2 to 4: returns the rate `elapsed` after a cut. The rate returns to the peak by a fifth
/// power, and goes beyond by a cube. A line on top gives each client that shares a limit the same.
fn returning(settings: &PacedSettings, memory: CutState, elapsed: u64) -> Rate {
    let (profile, peak) = (settings.profile(), memory.peak());
    if profile == Profile::Shared {
        return straight(settings, memory, elapsed);
    }
    let until = time_to_peak(profile, peak, memory.trip());
    let factor = match elapsed.checked_sub(until) {
        None => {
            let left = ratio(until.wrapping_sub(elapsed), until);
            let square = product(left, left);
            let fifth = product(product(square, square), left);
            let cut = ONE.saturating_sub(beta(settings, peak));
            ONE.saturating_sub(product(cut, fifth))
        }
        Some(past) => away(past, doubling_time(profile, peak, memory.trip())),
    };
    let grown = u128::from(fraction_of(peak, factor).raw());
    Rate::from_raw(grown.saturating_add(risen(peak, elapsed)))
}

/// Rule 3: returns the factor on the peak, at the time `past` after reaching it: a cube of time.
fn away(past: u64, doubling: u64) -> u64 {
    let past = ratio(past.min(doubling.saturating_mul(1 << HORIZON)), doubling);
    ONE.saturating_add(product(product(past, past), past))
}

/// Rule 11: returns the rate `elapsed` after a cut of a shared limit: a straight line, later
/// multiplied by a cube of time.
fn straight(settings: &PacedSettings, memory: CutState, elapsed: u64) -> Rate {
    let peak = memory.peak();
    let left = beta(settings, peak);
    let cut = ONE.saturating_sub(left);
    // `λ·c` with 64 fraction bits, and `min(0.3, 0.05·peak)`, a raw rate per second, which each
    // client gets alike.
    let regained = cuts(peak).wrapping_mul(u128::from(cut)) >> 32;
    let alike = (peak.raw() / 20).min(Rate::from_ratio(3, SECOND.wrapping_mul(10)).raw());
    let slope = |rate: Rate| {
        let regained = u128::from(rate.raw()).wrapping_mul(regained) >> 64;
        regained.saturating_add(alike.into())
    };
    let low = fraction_of(peak, left);
    let risen = slope(low)
        .wrapping_mul(u128::from(elapsed.min(LONGEST_RISE)))
        .wrapping_div(1_000_000_000);
    let line = Rate::from_raw(u128::from(low.raw()).saturating_add(risen));
    let missing = u128::from(fraction_of(peak, cut).raw());
    let calm = missing
        .wrapping_mul(u128::from(CALM.wrapping_mul(SECOND)))
        .checked_div(slope(peak))
        .unwrap_or(u128::MAX);
    let past = elapsed.saturating_sub(u64::try_from(calm).unwrap_or(u64::MAX));
    let doubling = doubling_time(Profile::Shared, peak, memory.trip());
    fraction_of(line, away(past, doubling))
}

/// Returns λ, the cuts a second that a client of a shared limit aims at: `0.55·√min(peak/10,
/// 10/peak)`, 64 fraction bits.
fn cuts(peak: Rate) -> u128 {
    let root = square_root(peak).max(1);
    let (low, high) = (root.min(ROOT_OF_TEN), root.max(ROOT_OF_TEN));
    let ratio = (u128::from(low) << 64).checked_div(u128::from(high));
    ratio.map_or(0, |ratio| ratio.wrapping_mul(u128::from(CUTS)) >> 32)
}

/// Rule 4: returns the line's gain in `elapsed`, as a raw rate: `min(0.15·√peak, 0.06·peak)`
/// requests per second in each second.
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
