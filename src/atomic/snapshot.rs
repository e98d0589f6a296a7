//! What a limiter looks like to people: the only floating point of the crate.

use super::law::{Law, cut_of};
use super::segments::Head;
use super::send_rate::SendRate;
use super::throttle::Throttle;
use crate::Timestamp;
use crate::cubic::time_to_peak;
use crate::fixed::Rate;
use crate::line::capacity;

/// The state of a [`SendRate`], for people to read.
///
/// Each field was true at some moment of the call that made it, not necessarily the same one for all; with
/// nobody else at work they belong together. The state itself is in fixed point.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct SendRateSnapshot {
    /// Whether the limiter limits: there has been a throttle.
    pub enabled: bool,
    /// Tokens per second; under [`ControlLaw::Paced`](crate::ControlLaw::Paced) those of the law at this moment, none
    /// during a pause. While not enabled, the rate that the published law would fill at, and of the paced one the
    /// highest there is.
    pub fill_rate: f64,
    /// The most tokens that the bucket holds.
    pub capacity: f64,
    /// The tokens in the bucket, 0 if there is a line. While not enabled, the capacity. More than that only while the
    /// thread that recorded a throttle is stopped before it takes effect, which the next one to record sees to.
    pub available: f64,
    /// The measured rate of requests, per second; of the paced law, of those that were not throttled.
    pub measured_rate: f64,
    /// The rate that the last throttle was taken to have come at, per second; 0 before the first one. Of the paced law
    /// the peak it returns to.
    pub last_max_rate: f64,
    /// The tokens promised and not minted yet: one for each who stands in line and has not given up, or its weight. A turn that
    /// has come counts no longer, though nobody may have claimed it. While not enabled, 0.
    pub waiting: u64,
}

impl SendRate {
    /// Returns the state at `now`, and changes nothing.
    #[must_use]
    pub fn snapshot(&self, now: Timestamp) -> SendRateSnapshot {
        let elapsed = self.elapsed(now);
        let limited = self.limited();
        let segment = limited.map(|limited| limited.segments.read());
        let throttle = limited.map_or(Throttle::NONE, |limited| limited.throttle.load());
        let (measured, peak) = match self.law {
            Law::Aws => (self.meter.measured(), throttle.peak()),
            Law::Paced(_) => (
                self.meter
                    .delivered(elapsed)
                    .map_or(Rate::ZERO, |delivered| delivered.rate(0)),
                cut_of(throttle).memory.peak(),
            ),
        };
        let engaged = throttle.is_engaged();
        let fill = self.fill(throttle, segment.map(|(head, _)| head), elapsed);
        let capacity = units_to_tokens(u128::from(capacity(fill, self.law.burst())) << 40);
        let (available, waiting) = match (limited, segment) {
            (Some(limited), Some((_, line))) if engaged => (
                units_to_tokens(limited.available(&line, elapsed)),
                limited.waiting(&line, elapsed),
            ),
            _ => (capacity, 0),
        };
        SendRateSnapshot {
            enabled: engaged,
            fill_rate: per_second(fill),
            capacity,
            available,
            measured_rate: per_second(measured),
            last_max_rate: per_second(peak),
            waiting,
        }
    }

    fn fill(&self, throttle: Throttle, head: Option<Head>, elapsed: u64) -> Rate {
        let engaged = throttle.is_engaged();
        match (&self.law, head) {
            (Law::Aws, Some(head)) if engaged && head.follows(throttle.version()) => head.rate(),
            (Law::Aws, _) if engaged => self.law.first_rate(throttle, elapsed).1,
            (Law::Paced(_), _) if !engaged => Rate::MAX,
            _ => (self.law).rate(throttle, elapsed, || self.meter.measured(), time_to_peak),
        }
    }

    /// Returns the rate that sends are limited to at `now`: the highest there is while they are not limited.
    #[cfg(feature = "std")]
    pub(crate) fn limit_at(&self, now: Timestamp) -> Rate {
        let Some(limited) = self.engaged() else {
            return Rate::MAX;
        };
        let head = limited.segments.head();
        let throttle = limited.throttle.load();
        if throttle.is_engaged() {
            self.fill(throttle, Some(head), self.elapsed(now))
        } else {
            Rate::MAX
        }
    }

    /// Whether sends are limited.
    #[cfg(feature = "tracing")]
    pub(crate) fn is_limiting(&self) -> bool {
        let throttle = self.engaged().map(|limited| limited.throttle.load());
        throttle.is_some_and(Throttle::is_engaged)
    }
}

#[expect(
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    reason = "for people to read"
)]
fn per_second(rate: Rate) -> f64 {
    rate.raw() as f64 / TWO_TO_64 * 1e9
}

#[expect(
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    reason = "for people to read"
)]
fn units_to_tokens(units: u128) -> f64 {
    units as f64 / TWO_TO_64
}

const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

#[cfg(test)]
#[expect(clippy::float_arithmetic, reason = "for people to read")]
mod tests {
    use super::*;
    use crate::fixed::SECOND;
    use crate::{ControlLaw, Outcome, SendPermit};

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    fn record(rate: &SendRate, nanos: u64, outcome: Outcome) {
        rate.record(at(nanos), SendPermit::sent_at(at(nanos)), outcome);
    }

    fn assert_close(got: f64, want: f64) {
        assert!((got - want).abs() < 1e-6 * want, "got {got}, want {want}");
    }

    #[test]
    fn before_the_first_throttle_it_shows_what_the_law_would_fill_at() {
        let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
        for _ in 0..10 {
            record(&rate, 0, Outcome::NotThrottled);
        }
        record(&rate, SECOND >> 1, Outcome::NotThrottled);
        let early = rate.snapshot(at(2 * SECOND));
        assert!(!early.enabled);
        assert_close(early.fill_rate, 3.2); // 0.4 · 2³
        let late = rate.snapshot(at(10 * SECOND));
        assert_close(late.measured_rate, 17.6);
        assert_close(late.fill_rate, 35.2); // twice that
        assert_close(late.capacity, 35.2);
        assert_close(late.available, 35.2);
        assert_eq!(late.last_max_rate.to_bits(), 0);
        let paced = SendRate::new(ControlLaw::Paced, Timestamp::ZERO).snapshot(at(SECOND));
        assert!(!paced.enabled);
        assert_close(paced.fill_rate, 1e9);
    }

    /// As if the thread that recorded it had stopped right after its compare-and-swap.
    #[test]
    fn a_throttle_that_has_yet_to_take_effect_is_shown_as_if_it_had() {
        let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
        record(&rate, 0, Outcome::Throttled);
        let limited = rate.about_to_limit();
        let last = limited.throttle.load();
        let next = last.next(SECOND, Rate::from_ratio(10, SECOND));
        assert!(limited.throttle.replace(last, next));
        let shown = rate.snapshot(at(5 * SECOND));
        assert!(shown.enabled);
        assert_close(shown.fill_rate, 7.0);
        assert_close(shown.capacity, 7.0);
        assert_close(shown.last_max_rate, 10.0);
        limited.apply_throttle(5 * SECOND);
        assert_eq!(
            rate.snapshot(at(5 * SECOND)).fill_rate.to_bits(),
            shown.fill_rate.to_bits()
        );
    }
}
