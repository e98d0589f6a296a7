//! Additive increase, multiplicative decrease: a law for tests, which shows that one more is one
//! file and one variant.

use super::{Counted, Decision, Law, Shown, State, Throttled, Window};
use crate::fixed::{Rate, SECOND};

/// A first throttle limits to `first`, each further one halves the rate, and each second adds one
/// token a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Aimd {
    pub(crate) first: Rate,
}

impl Law for Aimd {
    const COUNTS_THROTTLES: bool = false;
    const MOVES_BY_ITSELF: bool = true;

    fn burst(&self) -> u64 {
        SECOND
    }

    fn initial(&self) -> Option<u64> {
        None
    }

    fn held(&self) -> Option<u64> {
        None
    }

    fn first_reading(&self, _sum: u64) -> (u128, u64) {
        (0, u64::MAX)
    }

    fn rate(&self, state: State, now: u64, _: u128, _: impl Fn(Rate) -> u64) -> Rate {
        let seconds = u32::try_from(now.saturating_sub(state.since()) / SECOND).unwrap_or(u32::MAX);
        let more = Rate::from_ratio(seconds, SECOND);
        Rate::from_raw(
            u128::from(Rate::from_bits(state.memory()).raw()).wrapping_add(more.raw().into()),
        )
    }

    fn steady_until(&self, state: State, now: u64, _: Rate, _: u128) -> u64 {
        let seconds = now.saturating_sub(state.since()) / SECOND;
        state
            .since()
            .saturating_add(seconds.saturating_add(1).saturating_mul(SECOND))
    }

    fn turn(&self, _: u128, _: impl Fn() -> u64, _: State, now: u64, _: u64) -> Window {
        Window {
            next: None,
            end: u64::MAX,
            counted: None,
            at: now,
        }
    }

    fn window_end(&self, _reading: u128) -> u64 {
        u64::MAX
    }

    fn after_window(&self, _: State, _: u64, _: Rate, _: Counted) -> Option<Decision> {
        None
    }

    fn after_throttle(&self, state: State, throttled: &Throttled) -> Option<Decision> {
        let rate = if state.is_engaged() {
            throttled.fill.scaled(1, 2)
        } else {
            self.first
        };
        Some(Decision::Limit {
            since: throttled.now,
            memory: rate.to_bits(),
        })
    }

    fn restarted(&self, _: Counted, _: u64) -> Option<(u128, u64)> {
        None
    }

    fn shown(&self, state: State, _: Counted, _: u64) -> Shown {
        Shown {
            measured: Rate::ZERO,
            peak: Rate::from_bits(state.memory()),
            idle: Rate::MAX,
        }
    }

    fn is_at_start(&self, _: State, _: u64) -> bool {
        false
    }

    fn to_word(&self) -> u128 {
        0
    }

    fn with_word(&self, _word: u128) -> Self {
        *self
    }
}
