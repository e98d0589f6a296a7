//! What outlives a process: the rate that a limiter has found.

use core::time::Duration;

use crate::fixed::Rate;

/// How soon half of what was learned is forgotten.
const HALF_LIFE: Duration = Duration::from_secs(3_600);
/// When all of it is.
const LIFE: Duration = Duration::from_secs(24 * 3_600);

/// A rate that a limiter has found, for the limiter of the next process to begin at.
///
/// From [`SendRate::learned`](crate::SendRate::learned), into
/// [`PacedSettingsBuilder::learned`](crate::law::PacedSettingsBuilder::learned); in between it is a
/// text (feature `serde`): `{"tokens":100,"per":{"secs":1,"nanos":0}}`. What it belongs to, and how
/// old it is, is the caller's to know.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(
        try_from = "super::settings::text::RateText",
        into = "super::settings::text::RateText"
    )
)]
pub struct LearnedRate(pub(super) Rate);

impl LearnedRate {
    pub(crate) const fn new(rate: Rate) -> Self {
        Self(rate)
    }

    /// Returns what is left of it at this age: half after each hour, in straight lines between, and
    /// nothing after a day. Less than `unknown`, at which a limiter begins that has learned
    /// nothing, is left only if it was less to begin with.
    pub(super) fn aged(self, age: Duration, unknown: Rate) -> Option<Rate> {
        if age > LIFE {
            return None;
        }
        let life = HALF_LIFE.as_nanos();
        let halvings = age.as_nanos().checked_div(life)?;
        let rest = age.as_nanos().checked_rem(life)?;
        let left = life.wrapping_mul(2).wrapping_sub(rest);
        let raw = u128::from(self.0.raw())
            .wrapping_mul(left)
            .wrapping_div(7_200_000_000_000);
        let left = raw.checked_shr(u32::try_from(halvings).ok()?).unwrap_or(0);
        Some(Rate::from_raw(left).max(unknown.min(self.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed::SECOND;

    #[test]
    fn half_is_forgotten_in_an_hour_and_all_in_a_day() {
        let learned = LearnedRate::new(Rate::from_ratio(4_096, SECOND));
        let left = |seconds| {
            let left = learned.aged(Duration::from_secs(seconds), Rate::ZERO);
            left.map(|rate| rate.tokens_in(SECOND + 1))
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
            let aged = LearnedRate::new(Rate::from_ratio(learned, SECOND)).aged(age, unknown);
            assert_eq!(aged, Some(Rate::from_ratio(left, SECOND)), "{learned}/s");
        }
    }
}
