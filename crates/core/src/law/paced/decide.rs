//! The decisions on a throttle, and on a window that is over.

use super::curve::sloped;
use super::cut::{
    Cut, Evidence, Verdict, after_throttle, after_window, first_throttle, is_over, obeys_hint,
    proven, slow_again, started_at, unused,
};
use super::cut_state::CutState;
use super::cycle::{Cycle, Open, Seen};
use super::delivered::Reading;
use super::settings::PacedSettings;
use super::shut::Shut;
use crate::fixed::Rate;
use crate::law::{Counted, Decision, Event, Past, State};

pub(super) const fn cut_of(state: State) -> Cut {
    Cut {
        memory: CutState::from_bits(state.memory()),
        since: state.since(),
    }
}

/// Returns the decision to limit from `since` on, with `memory`.
pub(super) const fn limit(since: u64, memory: CutState) -> Decision {
    Decision::Limit {
        since,
        memory: memory.to_bits(),
        cycle: None,
    }
}

/// Returns the decision to limit from `since` on, with `memory` and `cycle`.
pub(super) const fn limit_anew(since: u64, memory: CutState, cycle: Cycle) -> Decision {
    Decision::Limit {
        since,
        memory: memory.to_bits(),
        cycle: Some(cycle.to_bits()),
    }
}

/// Returns the rate at `now`, after `calms`, for a service that opened at `since`.
pub(super) fn open_rate(
    settings: &PacedSettings,
    open: Open,
    since: u64,
    calms: u64,
    now: u64,
) -> Rate {
    let rate = open.rate_after(calms);
    let elapsed = now.saturating_sub(since);
    let slope = settings
        .slope()
        .map(|slope| sloped(open.rate, slope, elapsed));
    settings.within(slope.map_or(rate, |most| rate.min(most)))
}

/// Decides on a window that is over.
pub(super) fn on_window(
    settings: &PacedSettings,
    cut: Cut,
    event: &Event<'_>,
    past: Past,
) -> Option<Decision> {
    let Event { now, counted, .. } = *event;
    if let Some(open) = Open::of(cut.memory) {
        // A window of an earlier state began before the opening, and decides nothing.
        if past.began >> 16 < cut.since >> 16 {
            return None;
        }
        if past.idle > 0 {
            // The slope begins with the opening.
            let rested = open
                .rested(past.calms)
                .filter(|_| settings.slope().is_none());
            return Some(limit(cut.since, rested?));
        }
        let rate = open.rate_after(past.calms);
        return Some(match open.anew(rate) {
            Some(memory) => limit(cut.since, memory),
            None => limit(now, started_at(settings, rate)),
        });
    }
    if cut.memory.is_shut() {
        return None;
    }
    if let Some(memory) = after_window(settings, cut, now, past.done) {
        return Some(limit(now, memory));
    }
    if let Some(since) = unused(settings, cut, now, past) {
        return Some(limit(since, cut.memory));
    }
    if !is_over(settings, cut, now, past.done) {
        return None;
    }
    let delivered = Reading::from_bits(counted.reading).delivered(now, counted.sum)?;
    Some(if settings.starts_slowly() {
        limit(now, slow_again(settings, &delivered))
    } else {
        Decision::End
    })
}

fn evidence(event: &Event<'_>) -> Evidence {
    let Counted { reading, sum, .. } = event.counted;
    Evidence {
        now: event.now,
        sent: event.sent,
        hinted: event.until > event.now,
        since_cut: event.since_change,
        delivered: Reading::from_bits(reading).delivered(event.now, sum),
    }
}

/// Decides on an answer that did the request and asks for a pause: the rate stays, but begins
/// later.
pub(super) fn on_pause(
    settings: &PacedSettings,
    state: State,
    paused: &Event<'_>,
) -> Option<Decision> {
    if state.is_engaged() && state.since() >= paused.until {
        return None;
    }
    let memory = if state.is_engaged() {
        cut_of(state).memory
    } else {
        first_throttle(settings, &evidence(paused)).1
    };
    Some(limit(paused.until, memory.with_pause()))
}

/// Decides on a throttle.
pub(super) fn on_throttle(
    settings: &PacedSettings,
    state: State,
    throttled: &Event<'_>,
) -> Option<Decision> {
    let Event { now, until, .. } = *throttled;
    let last = state.is_engaged().then(|| cut_of(state));
    let heard = Seen::of(throttled, throttled.throttled);
    let reading = Reading::from_bits(throttled.counted.reading);
    if let Some(last) = last.filter(|last| last.memory.is_of_cycle()) {
        return refused(settings, last, reading, &heard);
    }
    let seen = evidence(throttled);
    let (verdict, last_cut) = if let Some(last) = last {
        (after_throttle(settings, last, &seen), last)
    } else {
        let (verdict, memory) = first_throttle(settings, &seen);
        (Some(verdict), Cut { memory, since: now })
    };
    let pauses = until > now && obeys_hint(settings, last, &seen);
    let is_limited =
        last.is_some_and(|last| settings.within(last.memory.peak()) > settings.lowest());
    let memory = match verdict {
        Some(Verdict::Shut) => return Some(shut(settings, last_cut, &heard)),
        _ if pauses && is_limited => return Some(shut(settings, last_cut, &heard)),
        Some(Verdict::Cut(memory)) => memory,
        // The throttle says nothing new, but its pause may.
        None if pauses && until > state.since() => last_cut.memory,
        None => return None,
    };
    Some(if pauses {
        limit(until, memory.with_pause())
    } else {
        limit(now, memory)
    })
}

/// Decides that the service is shut, where the law of seconds held until now.
fn shut(settings: &PacedSettings, last: Cut, heard: &Seen) -> Decision {
    let (since, memory, cycle) = Shut::first(settings, proven(last.memory), heard);
    limit_anew(since, memory, cycle)
}

/// Decides on a throttle while cycles are counted.
fn refused(
    settings: &PacedSettings,
    last: Cut,
    reading: Reading,
    heard: &Seen,
) -> Option<Decision> {
    if let Some(open) = Open::of(last.memory) {
        let calms = reading.calms(last.since).map_or(0, |(_, calms)| calms);
        return (heard.sent >= last.since).then(|| {
            let rate = open_rate(settings, open, last.since, calms, heard.sent);
            let (since, memory) = Shut::after(settings, open, rate, heard);
            limit(since, memory)
        });
    }
    let shut = Shut::of(last.memory)?;
    if let Some((since, memory, cycle)) = shut.knocked(settings, last.since, heard) {
        return Some(limit_anew(since, memory, cycle));
    }
    Shut::paused(last, heard).map(|(since, memory)| limit(since, memory))
}
