//! What a limiter looks like to people: the only floating point of the crate.

use super::law::{Law, cut_of};
use super::send_rate::SendRate;
use super::sync::Ordering::Relaxed;
use crate::Timestamp;
use crate::fixed::Rate;
use crate::line::Place;

/// The state of a [`SendRate`], for people to read.
///
/// Each field was true at some moment of the call that made it, not necessarily the same one for all; with
/// nobody else at work they belong together. The state itself is in fixed point.
#[derive(Clone, Copy, Debug, PartialEq)]
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
}

impl SendRate {
    /// Returns the state at `now`, and changes nothing.
    #[must_use]
    pub fn snapshot(&self, now: Timestamp) -> SendRateSnapshot {
        let elapsed = self.elapsed(now);
        let (head, mut line) = self.segments.read();
        let throttle = self.throttle.load();
        let (measured, peak) = match self.law {
            Law::Aws => (self.meter.measured(), throttle.peak()),
            Law::Paced(_) => (
                self.meter
                    .delivered(elapsed)
                    .map_or(Rate::ZERO, |delivered| delivered.rate(0)),
                cut_of(throttle).memory.peak(),
            ),
        };
        let follows = head.follows(throttle.version());
        let fill = match self.law {
            Law::Aws if throttle.is_engaged() && follows => head.rate(),
            Law::Aws if throttle.is_engaged() => self.law.first_rate(throttle, elapsed).1,
            Law::Aws => self.law.rate(throttle, elapsed, || measured),
            Law::Paced(_) if !throttle.is_engaged() => Rate::MAX,
            Law::Paced(_) => self.law.rate(throttle, elapsed, || measured),
        };
        let cancelled = self.cancellations.total();
        // Relaxed, after `cancelled`: see `issue`.
        let issued = Place::from_bits(self.issued.load(Relaxed));
        let available = line.available(elapsed, issued, cancelled);
        line.rate = fill;
        let capacity = units_to_tokens(u128::from(line.capacity()) << 40);
        SendRateSnapshot {
            enabled: throttle.is_engaged(),
            fill_rate: per_second(fill),
            capacity,
            available: if throttle.is_engaged() {
                units_to_tokens(available)
            } else {
                capacity
            },
            measured_rate: per_second(measured),
            last_max_rate: per_second(peak),
        }
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
