//! The settings of the paced law, as they may be changed while others go by them.

use super::bits::Field;
use super::sync::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::fixed::Rate;
use crate::paced::{PacedSettings, PacedSettingsError};

/// How many bits number the changes.
pub(super) const EDITION_BITS: u32 = 5;

/// The settings in two words, and those that stay.
///
/// | word | bits | field |
/// |---|---|---|
/// | `floor` | 49 | the lowest rate |
/// | | 10 | β in thousandths |
/// | | 5 | edition: counts the changes, and wraps |
/// | `ceiling` | 49 | the highest rate; zero if there is none |
///
/// The ceiling is written first. Who reads one before a change and the other after it goes by the old floor and the new
/// ceiling, for the one call that overlaps the change, and says so by the old edition.
#[derive(Debug)]
pub(super) struct Tuning {
    /// Of these, the initial rate and the burst.
    made_with: PacedSettings,
    floor: AtomicU64,
    ceiling: AtomicU64,
}

impl Tuning {
    const FLOOR: Field = Field::lowest(Rate::BITS);
    const BETA: Field = Self::FLOOR.above(10);
    const EDITION: Field = Self::BETA.above(EDITION_BITS);

    pub(super) fn new(settings: PacedSettings) -> Self {
        let (floor, ceiling) = Self::words(&settings);
        Self {
            made_with: settings,
            floor: AtomicU64::new(floor),
            ceiling: AtomicU64::new(ceiling),
        }
    }

    fn words(settings: &PacedSettings) -> (u64, u64) {
        let beta = Self::BETA.put(u64::from(settings.permille()));
        let floor =
            Field::lowest(u64::BITS).get(Self::FLOOR.put(settings.lowest().to_bits()) | beta);
        (floor, settings.highest().map_or(0, Rate::to_bits))
    }

    /// Returns the settings as they are at the moment.
    pub(super) fn get(&self) -> PacedSettings {
        // Relaxed: who notes an edition has asked for it before.
        let floor = u128::from(self.floor.load(Relaxed));
        let ceiling = Rate::from_bits(self.ceiling.load(Relaxed));
        let beta = u16::try_from(Self::BETA.get(floor)).unwrap_or(u16::MAX);
        let ceiling = (ceiling != Rate::ZERO).then_some(ceiling);
        self.made_with.tuned(Self::FLOOR.rate(floor), ceiling, beta)
    }

    /// Whether the settings are those that the limiter was made with.
    #[cfg(feature = "std")]
    pub(super) fn is_as_made(&self) -> bool {
        self.get() == self.made_with
    }

    /// Returns which settings these are. Those that are got afterwards are of this edition, or a later one.
    pub(super) fn edition(&self) -> u64 {
        // Acquire, with the release below: who has seen an edition must not go by the ceiling of the one before, and
        // note that the rate is up to date. Who has seen an older one is noted under that, so that the next response
        // sets right what it leaves. Model: `paced::a_lower_ceiling_is_obeyed`.
        Self::EDITION.get(u128::from(self.floor.load(Acquire)))
    }

    /// Replaces the settings, unless they change one that stays.
    pub(super) fn set(&self, settings: &PacedSettings) -> Result<(), PacedSettingsError> {
        settings.starts_like(&self.made_with)?;
        let (floor, ceiling) = Self::words(settings);
        self.ceiling.store(ceiling, Relaxed);
        let mut seen = self.floor.load(Relaxed);
        loop {
            let edition = Self::EDITION.put(Self::EDITION.next(u128::from(seen)));
            let next = floor | Field::lowest(u64::BITS).get(edition);
            // Release: see `edition`. A swap, so that two changes at once make two editions.
            match self
                .floor
                .compare_exchange_weak(seen, next, Release, Relaxed)
            {
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
