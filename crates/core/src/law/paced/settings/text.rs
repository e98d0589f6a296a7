//! The text form of the settings: rates as tokens in a time. The builder finds what is wrong.

use core::num::NonZeroU64;
use core::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, de::Error};

use super::{LONGEST_CYCLE, PacedSettings, PacedSettingsError, Profile, cycle, rate};
use crate::fixed::Rate;
use crate::law::paced::LearnedRate;
use crate::text::by_name;

/// A rate: `tokens` in each `per`.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RateText {
    tokens: u32,
    per: Duration,
}

/// The settings that a file may have; a missing setting has its default.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PacedText {
    preset: Option<Profile>,
    floor: Option<RateText>,
    ceiling: Option<RateText>,
    initial_rate: Option<RateText>,
    cycle: Option<Duration>,
    slow_start: Option<bool>,
    max_slope: Option<RateText>,
    beta_permille: Option<u16>,
    burst: Option<Duration>,
    max_pause: Option<Duration>,
}

impl<'de> Deserialize<'de> for PacedSettings {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text: PacedText = by_name(from)?;
        Self::try_from(text).map_err(D::Error::custom)
    }
}

/// Passes the present values to their setters.
macro_rules! set {
    ($settings:ident, $text:ident: $($rate:ident)+; $($value:ident)+) => {
        $(if let Some(RateText { tokens, per }) = $text.$rate {
            $settings = $settings.$rate(tokens, per);
        })+
        $(if let Some(value) = $text.$value {
            $settings = $settings.$value(value);
        })+
    };
}

impl TryFrom<PacedText> for PacedSettings {
    type Error = PacedSettingsError;

    fn try_from(text: PacedText) -> Result<Self, PacedSettingsError> {
        let mut settings = Self::builder();
        if let Some(preset) = text.preset {
            settings.settings.profile = preset;
        }
        set!(settings, text: floor ceiling initial_rate max_slope; slow_start beta_permille burst max_pause);
        if let Some(length) = text.cycle {
            settings.settings.cycle = settings.noted(cycle(length));
        }
        settings.build()
    }
}

const fn span(cycle: NonZeroU64) -> Duration {
    Duration::from_nanos(cycle.get())
}

/// The text form of [`LearnedRate`]: tokens in a time, and the length of a cycle, if known.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::law::paced) struct LearnedText {
    tokens: u32,
    per: Duration,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cycle: Option<Duration>,
    #[serde(default, skip_serializing_if = "Duration::is_zero")]
    shut: Duration,
}

impl From<LearnedRate> for LearnedText {
    fn from(learned: LearnedRate) -> Self {
        let RateText { tokens, per } = learned.rate.into();
        let cycle = learned.cycle.map(span);
        Self {
            tokens,
            per,
            cycle,
            shut: Duration::from_nanos(learned.shut),
        }
    }
}

impl TryFrom<LearnedText> for LearnedRate {
    type Error = PacedSettingsError;

    fn try_from(text: LearnedText) -> Result<Self, PacedSettingsError> {
        let rate = rate("learned rate", text.tokens, text.per)?;
        let learned = Self::new(rate, text.cycle.map(cycle).transpose()?);
        let shut = u64::try_from(text.shut.as_nanos()).ok();
        let shut = shut.filter(|_| text.shut <= LONGEST_CYCLE);
        let cycle = text.shut;
        Ok(learned.shut_for(shut.ok_or(PacedSettingsError::Cycle { cycle })?))
    }
}

impl From<Rate> for RateText {
    /// Returns the simplest numbers that round to `rate`: the numbers that it was made of, or
    /// smaller ones.
    fn from(rate: Rate) -> Self {
        if rate == Rate::MAX {
            // A faster rate saturates at one token in a nanosecond.
            let per = Duration::from_nanos(1);
            return Self { tokens: 1, per };
        }
        // Bounds are in quarters of a unit. A rate is off by half a unit, and above 44 bits by half
        // of the last place too, as it is rounded twice. Below a power of two the places are half
        // as far apart, but the simplest numbers are still those of the power: one token.
        let raw = u128::from(rate.raw()) << 2;
        let place = u128::from(rate.last_place());
        let half = place.wrapping_mul(2);
        let (below, above) = match place {
            1 => (2, 2),
            _ => (half.wrapping_add(2), half.wrapping_sub(2)),
        };
        // The ends of the outer range may round to the next rate; the inner range does not.
        [(below, above), (place, place.wrapping_sub(1))]
            .into_iter()
            .map(|(below, above)| {
                simplest(raw.wrapping_sub(below), raw.wrapping_add(above), 1 << 66)
            })
            .find_map(|(tokens, nanos)| {
                let tokens = u32::try_from(tokens).ok()?;
                let nanos = u64::try_from(nanos).ok()?;
                (Rate::from_ratio(tokens, nanos) == rate).then_some(Self {
                    tokens,
                    per: Duration::from_nanos(nanos),
                })
            })
            .unwrap_or(Self {
                tokens: 0,
                per: Duration::ZERO,
            })
    }
}

/// Returns the fraction between `low / unit` and `high / unit` with the smallest numbers.
fn simplest(low: u128, high: u128, unit: u128) -> (u128, u128) {
    /// Returns the simplest fraction between two others, by continued fractions.
    fn between(low: (u128, u128), high: (u128, u128)) -> (u128, u128) {
        let whole = low.0.checked_div(low.1).unwrap_or(0);
        let rest = |(top, bottom): (u128, u128)| top.wrapping_sub(whole.wrapping_mul(bottom));
        if rest(low) == 0 {
            return (whole, 1);
        }
        if rest(high) >= high.1 {
            return (whole.wrapping_add(1), 1);
        }
        let (bottom, top) = between((high.1, rest(high)), (low.1, rest(low)));
        (whole.wrapping_mul(bottom).wrapping_add(top), bottom)
    }
    between((low, unit), (high, unit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed::SECOND;

    #[test]
    fn a_rate_is_shown_as_the_simplest_numbers_that_make_it() {
        for (tokens, nanos, shown) in [
            (100, SECOND, (1, 10_000_000)),
            (1, SECOND * 2, (1, SECOND * 2)),
            (3, SECOND, (3, SECOND)),
            (2_000, SECOND * 1_000, (1, SECOND >> 1)),
            (7, 11, (7, 11)),
            (1, 1, (1, 1)),
        ] {
            let text = RateText::from(Rate::from_ratio(tokens, nanos));
            let nanos = Duration::from_nanos(shown.1);
            assert_eq!(
                (text.tokens, text.per),
                (shown.0, nanos),
                "{tokens} in {nanos:?}"
            );
        }
    }

    #[test]
    fn a_power_of_two_is_one_token() {
        for bits in 32..64 {
            let text = RateText::from(Rate::from_raw(1 << bits));
            let nanos = Duration::from_nanos(1 << (64 - bits));
            assert_eq!((text.tokens, text.per), (1, nanos), "2^{bits}");
        }
    }

    #[test]
    fn every_rate_that_can_be_set_comes_back_as_it_was() {
        let mut seed = 1_u64;
        for _ in 0..20_000 {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(99);
            let tokens = u32::try_from(seed >> 32).unwrap_or(1) >> (seed % 32);
            let nanos = (seed.rotate_left(17) >> (seed % 40)).max(u64::from(tokens));
            let Some(rate) = Rate::settable(tokens, Duration::from_nanos(nanos)) else {
                continue;
            };
            let text = RateText::from(rate);
            assert_eq!(
                Rate::settable(text.tokens, text.per),
                Some(rate),
                "{tokens} in {nanos}"
            );
            assert!(text.tokens <= tokens, "{tokens} in {nanos}");
        }
    }
}
