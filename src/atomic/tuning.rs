//! The settings of the paced law, as they may be changed while others go by them.

use super::bits::Field;
use super::sync::{AtomicU128, Ordering::Relaxed};
use crate::fixed::Rate;
use crate::paced::{PacedSettings, PacedSettingsError};

/// How many bits number the changes.
pub(super) const EDITION_BITS: u32 = 5;

/// The settings in one word, and those that stay. Low bits first:
///
/// | bits | field |
/// |---|---|
/// | 49 | the lowest rate |
/// | 10 | β in thousandths |
/// | 49 | the highest rate; zero if there is none |
/// | 5 | edition: counts the changes, and wraps |
#[derive(Debug)]
pub(super) struct Tuning {
    /// Of these, the initial rate and the burst.
    made_with: PacedSettings,
    word: AtomicU128,
}

impl Tuning {
    const FLOOR: Field = Field::lowest(Rate::BITS);
    const BETA: Field = Self::FLOOR.above(10);
    const CEILING: Field = Self::BETA.above(Rate::BITS);
    const EDITION: Field = Self::CEILING.above(EDITION_BITS);

    pub(super) fn new(settings: PacedSettings) -> Self {
        Self {
            made_with: settings,
            word: AtomicU128::new(Self::word_of(&settings)),
        }
    }

    fn word_of(settings: &PacedSettings) -> u128 {
        Self::FLOOR.put(settings.lowest().to_bits())
            | Self::BETA.put(u64::from(settings.permille()))
            | Self::CEILING.put(settings.highest().map_or(0, Rate::to_bits))
    }

    // Relaxed, here and below: the word is all there is to the settings, so they are always those of one call. Whoever
    // reads it twice gets no older ones the second time, whatever the ordering.
    // Models: `paced::a_lower_ceiling_is_obeyed`, `paced::two_changes_at_once_leave_the_rate_of_one`.

    /// Returns the settings as they are at the moment.
    pub(super) fn get(&self) -> PacedSettings {
        let word = self.word.load(Relaxed);
        let ceiling = Self::CEILING.rate(word);
        let beta = u16::try_from(Self::BETA.get(word)).unwrap_or(u16::MAX);
        let ceiling = (ceiling != Rate::ZERO).then_some(ceiling);
        self.made_with.tuned(Self::FLOOR.rate(word), ceiling, beta)
    }

    /// Whether the settings are those that the limiter was made with.
    #[cfg(feature = "std")]
    pub(super) fn is_as_made(&self) -> bool {
        self.get() == self.made_with
    }

    /// Returns which settings these are. Those that are got afterwards are of this edition, or a later one.
    pub(super) fn edition(&self) -> u64 {
        Self::EDITION.get(self.word.load(Relaxed))
    }

    /// Replaces the settings, unless they change one that stays.
    pub(super) fn set(&self, settings: &PacedSettings) -> Result<(), PacedSettingsError> {
        settings.starts_like(&self.made_with)?;
        let mut seen = self.word.load(Relaxed);
        loop {
            let next = Self::word_of(settings) | Self::EDITION.put(Self::EDITION.next(seen));
            // A swap, so that two changes at once make two editions: see `ci/orderings.txt`.
            match self.word.compare_exchange(seen, next, Relaxed, Relaxed) {
                Ok(_) => return Ok(()),
                Err(actual) => seen = actual,
            }
        }
    }

    /// Returns how much a bucket holds, in nanoseconds at its rate.
    pub(super) const fn burst(&self) -> u64 {
        self.made_with.burst_nanos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn what_is_set_comes_back_at_both_ends_of_the_ranges() {
        let tuning = Tuning::new(PacedSettings::new());
        assert_eq!(tuning.get(), PacedSettings::new());
        for settings in [
            PacedSettings::fixed(1, Duration::from_secs(1_000)),
            PacedSettings::fixed(1, Duration::from_nanos(1)),
            PacedSettings::new().beta_permille(500),
            PacedSettings::new()
                .beta_permille(990)
                .and_then(|settings| settings.ceiling(77, SECOND)),
        ] {
            let settings = settings.expect("in range");
            assert_eq!(tuning.set(&settings), Ok(()));
            assert_eq!(tuning.get(), settings);
            assert_eq!(Tuning::new(settings).get(), settings);
        }
    }

    #[test]
    fn each_change_is_an_edition_of_its_own_until_they_wrap() {
        let settings = PacedSettings::fixed(1, Duration::from_nanos(1)).expect("in range");
        let tuning = Tuning::new(settings);
        for change in 0..40 {
            assert_eq!(tuning.edition(), change % 32);
            assert_eq!(tuning.set(&settings), Ok(()));
            assert_eq!(tuning.get(), settings);
        }
    }

    #[test]
    fn what_stays_cannot_be_changed_and_nothing_else_is_then() {
        let settings = PacedSettings::new().initial_rate(7, SECOND);
        let settings = settings.expect("in range");
        let tuning = Tuning::new(settings);
        let other = settings.ceiling(9, SECOND).expect("in range");
        for (wrong, setting) in [
            (other.burst(SECOND), "burst"),
            (other.initial_rate(8, SECOND), "initial rate"),
        ] {
            let wrong = tuning.set(&wrong.expect("in range"));
            assert_eq!(wrong, Err(PacedSettingsError::Unchangeable { setting }));
            assert_eq!(tuning.get(), settings);
        }
        assert_eq!(tuning.set(&other), Ok(()));
    }
}
