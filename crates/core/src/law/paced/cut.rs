//! The curve's decisions on throttles and on what is delivered.

use super::curve::{STEP_BITS, after_cut, before_cut, rate_at};
use super::cut_state::{CoarseRtt, CutState};
use super::cycle::FEW_A_SECOND;
use super::delivered::Delivered;
use super::settings::{PacedSettings, Profile};
use crate::fixed::{Rate, SECOND};
use crate::law::Past;

/// The last cut: the memory of the cut, and its time in nanoseconds after the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) memory: CutState,
    pub(crate) since: u64,
}

/// What the law knows when a throttle is recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence {
    pub(crate) now: u64,
    /// When the request was sent.
    pub(crate) sent: u64,
    /// Whether the service said how long to wait.
    pub(crate) hinted: bool,
    /// The responses delivered since the last cut, if counted from there.
    pub(crate) since_cut: Option<u64>,
    /// What was delivered; `None` before the first response.
    pub(crate) delivered: Option<Delivered>,
}

impl Evidence {
    /// Rule 6: returns whether `count`, what was delivered since the last cut, is so much less than
    /// `expected` that the service is shut.
    fn is_next_to_nothing(&self, last: Cut, count: u64, expected: u64) -> bool {
        let trips = self.now.saturating_sub(self.sent).saturating_mul(4);
        // After that time a client that got few responses may have sent few requests.
        let is_recent = self.now.saturating_sub(last.since) < RECENT.max(trips);
        (expected >= NOTHING_OF && count == 0)
            || (is_recent && expected >= FEW && count.saturating_mul(8) < expected)
    }
}

/// Fewer expected responses than this say little.
const FEW: u64 = 32;
/// If none came of so many expected responses, the service is shut.
const NOTHING_OF: u64 = 4;
/// How many responses make a first estimate.
pub(super) const FIRST_FEW: u64 = 8;
/// How many responses make a measured peak.
const MEASURED: u64 = 6;
/// The halvings after an outage, or where nothing was delivered.
pub(super) const STARVED_STEP: u32 = 2;
/// The halvings of a first cut that knew next to nothing: the peak is 2¹⁰ times what was delivered.
pub(crate) const BLIND_RAMP: u32 = 10;
/// Throttles within this time after a cut belong to the cut, if few responses were expected.
const SAME_CUT: u64 = SECOND.wrapping_div(10);
/// With fewer requests under way than this the rate doubles in a step of slow start: TCP's initial
/// window (RFC 6928).
const INITIAL_WINDOW: u64 = 10;
/// The shortest step of slow start.
const SHORTEST_STEP: u64 = SECOND.wrapping_div(40);
/// For this long after a cut, the count since the cut says more than the windows.
const RECENT: u64 = SECOND.wrapping_mul(2);

/// Returns the verdict on the first throttle, and the memory of the first cut: rules 6 and 8.
pub(crate) fn first_throttle(settings: &PacedSettings, seen: &Evidence) -> (Verdict, CutState) {
    let memory = first_cut(settings, seen);
    let is_above = settings.within(memory.peak()) > settings.lowest();
    let verdict = match seen.delivered {
        Some(_) if is_slow(proven(memory)) && is_above => Verdict::Shut,
        _ => Verdict::Cut(memory),
    };
    (verdict, memory)
}

/// Returns whether a law of seconds has too few answers at this rate.
fn is_slow(rate: Rate) -> bool {
    rate < Rate::from_ratio(FEW_A_SECOND, SECOND)
}

/// Returns the memory of the first cut: rule 8.
fn first_cut(settings: &PacedSettings, seen: &Evidence) -> CutState {
    let trip = seen.now.saturating_sub(seen.sent);
    let at_once = seen.delivered.and_then(|delivered| delivered.at_once());
    let (rate, doubt) = match (seen.delivered, at_once) {
        // Refused requests are silent until the time of the hint, and silence proves nothing.
        (Some(_), Some(rate)) if seen.hinted => (rate, Some(0)),
        (Some(delivered), _) => {
            let known = delivered.responses() >= FIRST_FEW;
            (delivered.rate(1), known.then(|| delivered.doubt()))
        }
        // The service did at least one request in a round trip.
        (None, _) => (
            Rate::from_ratio(1, trip.max(SECOND.wrapping_div(1_000))),
            None,
        ),
    };
    let trip = CoarseRtt::new(trip);
    let Some(doubt) = doubt else {
        let peak = settings.within(rate.times_two_to(BLIND_RAMP));
        return CutState::new(peak, BLIND_RAMP, trip).blind();
    };
    CutState::new(settings.within(rate), doubt, trip)
}

/// Returns the memory of the next step of slow start, or `None` if no step is due: rule 14. The
/// response came at `now`, to a request sent at `sent`.
pub(crate) fn after_step(
    settings: &PacedSettings,
    last: Cut,
    now: u64,
    sent: u64,
) -> Option<CutState> {
    let rate = last.memory.peak();
    let higher = settings.within(
        if rate.tokens_in(now.saturating_sub(sent)) < INITIAL_WINDOW {
            rate.doubled()
        } else {
            rate.scaled(9, 8)
        },
    );
    let steps = last.memory.is_slow_start()
        && sent >= last.since
        && now.saturating_sub(last.since) >= SHORTEST_STEP;
    let next = CutState::slow_start(higher);
    (steps && next != last.memory).then_some(next)
}

/// Returns the memory of the first cut after slow start: rule 14.
fn end_of_slow_start(settings: &PacedSettings, rate: Rate, seen: &Evidence) -> CutState {
    let delivered = seen.delivered.map(|delivered| delivered.rate(1));
    let ramp = delivered.map_or(STARVED_STEP, |delivered| rate.halvings_to(delivered));
    remember(settings, rate, ramp, seen.now.saturating_sub(seen.sent))
}

/// The verdict on a throttle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The rate was too high: the memory of the next cut.
    Cut(CutState),
    /// The service lets nothing through at the moment: rule 6.
    Shut,
}

/// Returns the verdict on a throttle, or `None` if it says nothing new.
pub(crate) fn after_throttle(
    settings: &PacedSettings,
    last: Cut,
    seen: &Evidence,
) -> Option<Verdict> {
    if last.memory.is_slow_start() {
        let next = end_of_slow_start(settings, last.memory.peak(), seen);
        return Some(Verdict::Cut(next));
    }
    // Rule 1: requests from before the cut are known to have been sent too fast. Nothing is sent in
    // a pause, so a request sent when the pause ended was sent after the cut.
    if seen.sent < last.since || (seen.sent == last.since && !last.memory.has_pause()) {
        return None;
    }
    let trip = seen.now.saturating_sub(seen.sent);
    let span = seen.now.saturating_sub(last.since);
    let (peak, ramp) = (last.memory.peak(), last.memory.ramp());
    let sustained = rate_at(settings, last.memory, last.since, seen.now).min(peak);
    let expected = sustained.tokens_in(span);
    let count = seen.since_cut.unwrap_or(expected);
    // Rule 1. After a pause every throttled request was sent after the cut.
    let is_dead = !last.memory.has_pause() && span < dead_time(settings, trip);
    let is_starved =
        (ramp > 0 && count == 0) || (ramp == 0 && seen.is_next_to_nothing(last, count, expected));
    let known = |delivered: &Delivered| delivered.responses() >= MEASURED;
    let seconds = seen
        .delivered
        .filter(known)
        .map(|delivered| delivered.rate(0));
    let is_slow = !is_dead && is_slow(seconds.map_or(peak, |rate| rate.min(peak)));
    if (is_starved || is_slow) && settings.within(peak) > settings.lowest() {
        return Some(Verdict::Shut);
    }
    if (expected < FEW && span < SAME_CUT) || is_dead {
        return None;
    }
    let average = Rate::from_ratio(
        u32::try_from(count.saturating_add(2)).unwrap_or(u32::MAX),
        span,
    );
    let window = |seen_in: Delivered| (seen.now.saturating_sub(seen_in.elapsed), seen_in.before);
    let sent_at = rate_within(settings, last, seen.delivered.map(window), seen.sent);
    let peak = if ramp > 0 {
        average.max(sent_at.scaled(7, 10)).min(sent_at)
    } else if average < sustained.scaled(3, 4) && span < RECENT {
        average
    } else {
        match settings.profile() {
            Profile::Usual | Profile::Exclusive => measured_peak(seen.delivered, sent_at),
            // What many clients get is no measure of one client's part.
            Profile::Shared => sent_at,
        }
    };
    // Rule 6: a rate that was refused twice in a row is starved for a step.
    let ramp = u32::from(seen.since_cut == Some(0));
    let next = CutState::new(settings.within(peak), ramp, CoarseRtt::new(trip));
    Some(Verdict::Cut(next))
}

/// Rule 1: returns for how long after a cut a throttle belongs to it. For a shared limit that is
/// one trip, which the check of the sending time covers already.
const fn dead_time(settings: &PacedSettings, trip: u64) -> u64 {
    match settings.profile() {
        Profile::Usual | Profile::Exclusive => trip.saturating_mul(2),
        Profile::Shared => 0,
    }
}

/// Rule 9: returns whether the hint of this throttle pauses everything. `last` is the last cut, if
/// there was one.
///
/// A client of many, or one that is a little too fast, is throttled now and then. Its hint is for
/// that request only. Where nothing gets through, the hint is for all requests.
pub(crate) fn obeys_hint(settings: &PacedSettings, last: Option<Cut>, seen: &Evidence) -> bool {
    let ever = seen
        .delivered
        .is_some_and(|delivered| delivered.responses() > 0);
    let Some(last) = last.filter(|last| !last.memory.is_slow_start()) else {
        return !ever;
    };
    let span = seen.now.saturating_sub(last.since);
    let sustained = rate_at(settings, last.memory, last.since, seen.now).min(last.memory.peak());
    let expected = sustained.tokens_in(span);
    let nothing_before = last.memory.has_pause() || last.memory.ramp() > 0;
    let starves =
        |count| (nothing_before && count == 0) || seen.is_next_to_nothing(last, count, expected);
    seen.since_cut.map_or(!ever, starves)
}

/// Rule 5: returns the rate that was delivered, at most `sent_at`, the rate at which the request
/// was sent. Returns `sent_at` if the rate delivered is not known.
fn measured_peak(delivered: Option<Delivered>, sent_at: Rate) -> Rate {
    let Some(delivered) = delivered.filter(|delivered| delivered.responses() >= MEASURED) else {
        return sent_at;
    };
    let rate = delivered.rate(0);
    // Far less was delivered, so the client did not use its rate.
    if rate < sent_at.scaled(57, 100) {
        return sent_at;
    }
    rate.min(sent_at)
}

/// Returns the memory of a cut. The halvings end at the floor.
pub(super) fn remember(settings: &PacedSettings, peak: Rate, ramp: u32, trip: u64) -> CutState {
    let peak = settings.within(peak);
    let most = peak.halvings_to(settings.lowest());
    CutState::new(peak, ramp.min(most), CoarseRtt::new(trip))
}

/// Rule 7: returns the memory of a cut that lifts the rate to what the last window delivered, if
/// that is more.
///
/// A fixed window that was found empty, or an outage, leaves a rate far too low. What is delivered
/// then proves a higher one.
pub(crate) fn after_window(
    settings: &PacedSettings,
    last: Cut,
    now: u64,
    counted: Rate,
) -> Option<CutState> {
    // The count may be wrong by three responses a second.
    let proven = counted.minus(Rate::from_ratio(3, SECOND));
    let rate = rate_at(settings, last.memory, last.since, now);
    let steps = last.memory.is_slow_start() || settings.slope().is_some();
    if steps || now < last.since || after_cut(settings, proven) <= rate {
        return None;
    }
    let (peak, trip) = (last.memory.peak(), last.memory.trip());
    if last.memory.ramp() == 0 || proven >= peak {
        return Some(CutState::new(settings.within(proven), 0, trip));
    }
    // While starved, the client sends less than the service allows. The old peak stays if a good
    // part of the peak is proven.
    if proven > peak.scaled(1, 4) {
        let ramp = u32::from(proven <= peak.scaled(6, 10));
        return Some(CutState::new(peak, ramp, trip));
    }
    let peak = settings.within(proven.max(peak.scaled(1, 5)));
    Some(CutState::new(peak, 0, trip))
}

/// Rule 15: returns the rate at `now`. `window` is when the window began, and the rate of the
/// window before, zero if there was none.
pub(crate) fn rate_within(
    settings: &PacedSettings,
    last: Cut,
    window: Option<(u64, Rate)>,
    now: u64,
) -> Rate {
    let rate = rate_at(settings, last.memory, last.since, now);
    let proven = proven(last.memory);
    let Some((began, before)) = window.filter(|_| rate > proven) else {
        return rate;
    };
    let doublings = if last.memory.is_blind() { 4 } else { 1 };
    let first = rate_at(settings, last.memory, last.since, began);
    let most = match before {
        Rate::ZERO => Rate::MAX,
        before => before.max(proven).doubled(),
    };
    settings.within(rate.min(first.times_two_to(doublings).min(most).max(proven)))
}

/// Returns the rate up to which time alone leads the rate back.
pub(super) fn proven(memory: CutState) -> Rate {
    match memory.peak() {
        peak if memory.is_blind() => Rate::from_raw(u128::from(peak.raw()) >> BLIND_RAMP),
        peak => peak,
    }
}

/// Rule 10: returns whether a window delivered twice the peak, while the rate is four times the
/// peak.
fn is_refuted(peak: Rate, rate: Rate, delivered: Rate) -> bool {
    delivered >= peak.doubled() && rate >= peak.times_two_to(2)
}

/// Rule 15: returns the rate at `now`, if the rate has grown beyond the peak in this window.
pub(crate) fn grown(
    settings: &PacedSettings,
    last: Cut,
    window: (u64, Rate),
    now: u64,
) -> Option<Rate> {
    let at = |time| rate_at(settings, last.memory, last.since, time);
    let peak = last.memory.peak();
    // A peak near [`Rate::MAX`] limits nothing.
    let has_grown = at(now) > peak.max(at(window.0)) && peak < Rate::MAX.half();
    has_grown.then(|| rate_within(settings, last, Some(window), now))
}

/// Rule 15: returns the new time of the last cut, if the window used less than half of a rate
/// beyond the peak. The time moves on by the unused part of the window.
pub(crate) fn unused(settings: &PacedSettings, last: Cut, now: u64, past: Past) -> Option<u64> {
    let rate = grown(settings, last, (past.began, past.before), now)?;
    let peak = last.memory.peak();
    let is_used = past.done >= rate.half() || is_refuted(peak, rate, past.done);
    if is_used || last.memory.is_blind() {
        return None;
    }
    // Time up to the peak counts, used or not. Halvings find when the peak was reached, to a step
    // of the curve.
    let is_beyond = |at| rate_at(settings, last.memory, last.since, at) > peak;
    let (mut from, mut to) = (past.began.max(last.since), now);
    while !is_beyond(from) && to.saturating_sub(from) > 1 << STEP_BITS {
        match from.midpoint(to) {
            at if is_beyond(at) => to = at,
            at => from = at,
        }
    }
    Some(last.since.saturating_add(now.saturating_sub(from)))
}

/// Rule 10: returns whether the limit has ended.
pub(crate) fn is_over(settings: &PacedSettings, last: Cut, now: u64, delivered: Rate) -> bool {
    let calm = now.saturating_sub(last.since) > SECOND.wrapping_mul(30);
    let rate = rate_at(settings, last.memory, last.since, now);
    settings.may_end()
        && calm
        && !last.memory.is_blind()
        && is_refuted(last.memory.peak(), rate, delivered)
}

/// Returns the memory of a slow start that begins anew where the limit would end.
pub(crate) fn slow_again(settings: &PacedSettings, delivered: &Delivered) -> CutState {
    CutState::slow_start(settings.within(delivered.rate(2).doubled()))
}

/// Returns the memory of a limiter that begins at `rate`.
pub(crate) fn started_at(settings: &PacedSettings, rate: Rate) -> CutState {
    if settings.starts_slowly() {
        return CutState::slow_start(rate);
    }
    CutState::new(
        CutState::rounded_up(before_cut(settings, rate)),
        0,
        CoarseRtt::default(),
    )
}

#[cfg(test)]
#[expect(
    clippy::arithmetic_side_effects,
    reason = "a test may overflow, and fail"
)]
mod tests;
