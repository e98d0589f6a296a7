//! What outlives a process: the rate that a limiter has found, and how long its cycles are.

use core::num::NonZeroU64;
use core::time::Duration;

use crate::fixed::Rate;

/// The age at which half of a learned rate is forgotten.
const HALF_LIFE: Duration = Duration::from_secs(3_600);
/// The age at which all of it is forgotten.
const LIFE: Duration = Duration::from_secs(24 * 3_600);

/// A rate that a limiter has found, for the limiter of the next process to begin at.
///
/// [`SendRate::learned`](crate::SendRate::learned) returns the rate, and
/// [`PacedSettingsBuilder::learned`](crate::law::PacedSettingsBuilder::learned) takes it. As text
/// (feature `serde`) the rate is `{"tokens":100,"per":{"secs":1,"nanos":0}}`. For a service that
/// counts windows, the text adds the time of whole cycles:
/// `{"tokens":2,"per":{"secs":3,"nanos":0},"cycle":{"secs":60,"nanos":0}}`. `cycle` may be missing.
/// If a declared limit is spent, the text adds the time without sends:
/// `"shut":{"secs":7200,"nanos":0}`. The caller has to know the rate's service and age.
#[derive(Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(
        try_from = "super::settings::text::LearnedText",
        into = "super::settings::text::LearnedText"
    )
)]
pub struct LearnedRate {
    pub(super) rate: Rate,
    /// The length of a cycle, in nanoseconds; `None` if no cycles were counted.
    pub(super) cycle: Option<NonZeroU64>,
    /// For how long nothing is to be sent, in nanoseconds.
    pub(super) shut: u64,
}

impl LearnedRate {
    pub(crate) const fn new(rate: Rate, cycle: Option<NonZeroU64>) -> Self {
        let shut = 0;
        Self { rate, cycle, shut }
    }

    /// Returns the same rate, for a service that is shut for `shut` more nanoseconds.
    pub(crate) const fn shut_for(self, shut: u64) -> Self {
        Self { shut, ..self }
    }

    /// Returns what is left of the rate at this age. Half is left after each hour, in straight
    /// lines between, and nothing after a day, or after four longer cycles. At least `unknown` is
    /// left, the rate of a limiter without a learned rate, unless the rate was lower.
    pub(super) fn aged(self, age: Duration, unknown: Rate) -> Option<Self> {
        let cycle = Duration::from_nanos(self.cycle.map_or(0, NonZeroU64::get));
        let shut = Duration::from_nanos(self.shut).saturating_sub(age);
        if shut.is_zero() && age > LIFE.max(cycle.saturating_mul(4)) {
            return None;
        }
        let life = HALF_LIFE.as_nanos();
        let halvings = age.as_nanos().checked_div(life)?;
        let rest = age.as_nanos().checked_rem(life)?;
        let left = life.wrapping_mul(2).wrapping_sub(rest);
        let raw = u128::from(self.rate.raw())
            .wrapping_mul(left)
            .wrapping_div(7_200_000_000_000);
        let left = raw.checked_shr(u32::try_from(halvings).ok()?).unwrap_or(0);
        let rate = Rate::from_raw(left).max(unknown.min(self.rate));
        let shut = u64::try_from(shut.as_nanos()).unwrap_or(u64::MAX);
        Some(Self { rate, shut, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed::SECOND;

    #[test]
    fn half_is_forgotten_in_an_hour_and_all_in_a_day() {
        let learned = LearnedRate::new(Rate::from_ratio(4_096, SECOND), None);
        let left = |seconds| {
            let left = learned.aged(Duration::from_secs(seconds), Rate::ZERO);
            left.map(|left| left.rate.tokens_in(SECOND + 1))
        };
        for (hours, tokens) in [(0, 4_096), (1, 2_048), (2, 1_024), (12, 1)] {
            assert_eq!(left(3_600 * hours), Some(tokens), "after {hours} h");
        }
        assert_eq!(left(1_800), Some(3_072));
        assert_eq!(left(86_400), Some(0));
        assert_eq!(left(86_401), None);
    }

    #[test]
    fn no_less_is_left_than_a_limiter_begins_at_that_knows_nothing() {
        let unknown = Rate::from_ratio(10, SECOND);
        for (learned, hours, left) in [(80, 2, 20), (80, 3, 10), (80, 24, 10), (4, 24, 4)] {
            let age = Duration::from_secs(3_600 * hours);
            let aged = LearnedRate::new(Rate::from_ratio(learned, SECOND), None).aged(age, unknown);
            let left = LearnedRate::new(Rate::from_ratio(left, SECOND), None);
            assert_eq!(aged, Some(left), "{learned}/s");
        }
    }

    #[test]
    fn cycles_of_more_than_six_hours_are_kept_for_four() {
        for (hours, days) in [(6, 1), (24, 4)] {
            let cycle = NonZeroU64::new(SECOND * 3_600 * hours);
            let learned = LearnedRate::new(Rate::from_ratio(1, SECOND * 60), cycle);
            let age = Duration::from_secs(86_400 * days);
            let aged = |age| learned.aged(age, Rate::from_ratio(10, SECOND));
            assert_eq!(aged(age), Some(learned));
            assert_eq!(aged(age + Duration::from_nanos(1)), None);
        }
    }
}
