//! What has been computed of the curve already.

use super::bits::{Field, TIME_BITS};
use super::sync::{AtomicU64, AtomicU128, Ordering::Relaxed};
use super::throttle::Throttle;
use super::tuning::EDITION_BITS;
use crate::cubic::time_to_peak;
use crate::fixed::Rate;
use crate::paced::STEP_BITS;

/// Two hints, which save the computation and decide nothing.
#[derive(Debug)]
pub(super) struct Followed {
    /// Of the paced law: the version of a throttle, above the edition of the settings and the number of the step for
    /// which the rate was brought up to its curve.
    step: AtomicU64,
    /// Of the published law: a peak, and how long after the cut it is reached.
    peak: AtomicU128,
}

const STEP: Field = Field::lowest(TIME_BITS.wrapping_sub(STEP_BITS));
const EDITION: Field = STEP.above(EDITION_BITS);
const VERSION: Field = EDITION.above(16);

const PEAK: Field = Field::lowest(Rate::BITS);
const TIME: Field = PEAK.above(64);

impl Followed {
    pub(super) fn new() -> Self {
        Self {
            step: AtomicU64::new(0),
            // The peak of zero, reached at once.
            peak: AtomicU128::new(0),
        }
    }

    /// Whether the rate has been brought up to the curve of `throttle` by `edition` in the step of `now`.
    ///
    /// It may since have been set back, by a thread that had stopped since an earlier step: until the next one.
    pub(super) fn is_at(&self, throttle: Throttle, edition: u64, now: u64) -> bool {
        // Relaxed, here and below: the word says all by itself. Who reads it has loaded `throttle` before, and the head
        // follows that one, or a later one, once the word says so.
        u128::from(self.step.load(Relaxed)) == step_of(throttle, edition, now)
    }

    /// Notes that it has.
    pub(super) fn note(&self, throttle: Throttle, edition: u64, now: u64) {
        if !self.is_at(throttle, edition, now) {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "its fields fill less than 64 bits"
            )]
            self.step
                .store(step_of(throttle, edition, now) as u64, Relaxed);
        }
    }

    /// Returns [`time_to_peak`] of `peak`, which is a cube root, and computed once for each throttle.
    pub(super) fn time_to_peak(&self, peak: Rate) -> u64 {
        // Relaxed: a pure function's argument and value, in one word.
        let known = self.peak.load(Relaxed);
        if PEAK.get(known) == peak.to_bits() {
            return TIME.get(known);
        }
        let time = time_to_peak(peak);
        let next = PEAK.put(peak.to_bits()) | TIME.put(time);
        let _ = self.peak.compare_exchange(known, next, Relaxed, Relaxed);
        time
    }
}

/// The version wraps past 0, so that a word of zero is of no throttle.
fn step_of(throttle: Throttle, edition: u64, now: u64) -> u128 {
    STEP.put(now >> STEP_BITS) | EDITION.put(edition) | VERSION.put(throttle.version())
}

#[cfg(test)]
mod tests {
    use super::super::bits::LAST_TIME;
    use super::*;
    use crate::fixed::SECOND;

    #[test]
    fn a_step_is_known_for_one_throttle_and_until_it_ends() {
        let followed = Followed::new();
        let one = Throttle::NONE.next_with(0, 5);
        assert!(!followed.is_at(one, 0, 0));
        let step = 1 << STEP_BITS;
        followed.note(one, 31, 3 * step);
        assert!(followed.is_at(one, 31, 3 * step) && followed.is_at(one, 31, 4 * step - 1));
        assert!(!followed.is_at(one, 31, 3 * step - 1) && !followed.is_at(one, 31, 4 * step));
        assert!(!followed.is_at(one.next_with(0, 5), 31, 3 * step));
        assert!(!followed.is_at(one, 30, 3 * step), "by other settings");
        followed.note(one, 31, LAST_TIME);
        assert!(followed.is_at(one, 31, LAST_TIME) && !followed.is_at(one, 0, LAST_TIME));
    }

    #[test]
    fn the_time_to_a_peak_is_that_of_the_curve_whichever_was_asked_for_before() {
        let followed = Followed::new();
        assert_eq!(followed.time_to_peak(Rate::ZERO), time_to_peak(Rate::ZERO));
        for tokens in [10, 10, 700, 10] {
            let peak = Rate::from_ratio(tokens, SECOND);
            assert_eq!(followed.time_to_peak(peak), time_to_peak(peak));
            assert!(followed.time_to_peak(peak) > 0);
        }
        let most = followed.time_to_peak(Rate::MAX);
        assert_eq!(most, time_to_peak(Rate::MAX));
    }
}
