//! Additive increase, multiplicative decrease: a law for tests, which shows that one more is one
//! file and one variant.

use super::{Counted, Decision, Event, Law, Quiet, Shown, State, Unthrottled, Window};
use crate::fixed::{Rate, SECOND};

/// A first throttle limits to `first`, each further one halves the rate, and each second adds one
/// token a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Aimd {
    pub(crate) first: Rate,
}

impl Law for Aimd {
    fn moves_with_time(&self) -> bool {
        true
    }

    fn burst(&self) -> u64 {
        SECOND
    }

    fn unthrottled(&self) -> Unthrottled {
        Unthrottled::default()
    }

    fn begin(&self, _: Option<u128>, _: u64, _: u64) -> (u128, u64) {
        (0, u64::MAX)
    }

    fn turn(
        &self,
        _: u128,
        _: u128,
        _: impl Fn() -> (u64, u64),
        _: State,
        now: u64,
        _: u64,
    ) -> Window {
        Window {
            next: None,
            end: u64::MAX,
            counted: None,
            at: now,
            cycle: None,
        }
    }

    fn rate(&self, state: State, now: u64, _: Option<u128>, _: impl Fn(Rate) -> u64) -> Rate {
        let seconds = u32::try_from(now.saturating_sub(state.since()) / SECOND).unwrap_or(u32::MAX);
        let more = Rate::from_ratio(seconds, SECOND);
        Rate::from_raw(
            u128::from(Rate::from_bits(state.memory()).raw()).wrapping_add(more.raw().into()),
        )
    }

    fn quiet(&self, state: State, now: u64, _: Rate, _: u128) -> Quiet {
        let seconds = now.saturating_sub(state.since()) / SECOND;
        let next = seconds.saturating_add(1).saturating_mul(SECOND);
        Quiet {
            rate: state.since().saturating_add(next),
            window: u64::MAX,
            each: false,
        }
    }

    fn decide(&self, state: State, event: Event) -> Option<Decision> {
        let Event::Throttle(throttled) = event else {
            return None;
        };
        let rate = if state.is_engaged() {
            throttled.fill.scaled(1, 2)
        } else {
            self.first
        };
        Some(Decision::Limit {
            since: throttled.now,
            memory: rate.to_bits(),
            cycle: None,
        })
    }

    fn shown(&self, state: State, _: Counted, _: u64) -> Shown {
        Shown {
            measured: Rate::ZERO,
            is_measured: true,
            is_peak_seen: true,
            is_shut: false,
            peak: Rate::from_bits(state.memory()),
            idle: Rate::MAX,
            cycle: None,
        }
    }
}
