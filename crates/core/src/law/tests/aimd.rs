//! Additive increase, multiplicative decrease: a law for tests. This file shows that a new law is
//! one file and one variant of `Controller`.

use super::{Counted, Decision, Event, Law, Quiet, Shown, State};
use crate::fixed::{Rate, SECOND};

/// The first throttle limits to `first`. Each further throttle halves the rate, and each second
/// adds one token a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Aimd {
    pub(crate) first: Rate,
}

impl Law for Aimd {
    fn moves_with_time(&self) -> bool {
        true
    }

    fn rate(&self, state: State, now: u64, _: Option<u128>) -> Rate {
        let seconds = u32::try_from(now.saturating_sub(state.since()) / SECOND).unwrap_or(u32::MAX);
        let (cut, more) = (
            Rate::from_bits(state.memory()),
            Rate::from_ratio(seconds, SECOND),
        );
        Rate::from_raw(u128::from(cut.raw()).wrapping_add(more.raw().into()))
    }

    fn quiet(&self, state: State, now: u64, _: Rate, _: u128) -> Quiet {
        let seconds = now.saturating_sub(state.since()) / SECOND;
        let next = seconds.saturating_add(1).saturating_mul(SECOND);
        Quiet {
            rate: state.since().saturating_add(next),
            ..Quiet::UNTIL_A_THROTTLE
        }
    }

    fn decide(&self, state: State, event: &Event<'_>) -> Option<Decision> {
        if event.throttled == 0 {
            return None;
        }
        let half = event.fill.scaled(1, 2);
        let rate = if state.is_engaged() { half } else { self.first };
        Some(Decision::Limit {
            since: event.now,
            memory: rate.to_bits(),
            cycle: None,
        })
    }

    fn shown(&self, state: State, _: Counted, _: u64) -> Shown {
        let peak = Rate::from_bits(state.memory());
        Shown {
            is_measured: true,
            is_peak_seen: true,
            peak,
            idle: Rate::MAX,
            ..Shown::default()
        }
    }
}
