//! A [`SendRate`] and [`AwsModel`] side by side: every call goes to both, every answer is compared.
//!
//! A field agrees if it is within 10⁻⁶ of the model's, relative to it or to 1 where that is more.
//! While the limiter is not enabled, `capacity` and `available` are not compared: no token is
//! taken then. At the throttle that enables it the bucket may start anywhere between empty and
//! full, and the model goes on from there. Where the model holds one token to within 10⁻⁶ and
//! rounding decides, it does as the limiter did.

use core::time::Duration;

use paceline::{ControlLaw, Outcome, SendPermit, SendRate, SendRateSnapshot, Timestamp};

use super::aws_model::AwsModel;

/// How far a field may be from the model's.
pub(crate) const TOLERANCE: f64 = 1e-6;

/// A limiter with its model. `now` never goes back.
#[derive(Debug)]
pub(crate) struct CheckedRate {
    pub(crate) limiter: SendRate,
    pub(crate) model: AwsModel,
}

impl CheckedRate {
    pub(crate) fn new(start: u64) -> Self {
        Self {
            limiter: SendRate::new(ControlLaw::Aws, Timestamp::from_nanos(start)),
            model: AwsModel::new(start),
        }
    }

    /// Records one response in both, and compares.
    pub(crate) fn record(&mut self, now: u64, permit: SendPermit, throttled: bool) {
        let outcome = if throttled {
            Outcome::Throttled
        } else {
            Outcome::NotThrottled
        };
        let enabling = throttled && !self.model.enabled;
        let at = Timestamp::from_nanos(now);
        self.limiter.record(at, permit, outcome);
        self.model.record(now, throttled);
        let got = self.limiter.snapshot(at);
        if enabling {
            self.take_over(&got);
        }
        self.compare_with(now, &got);
    }

    /// Asks both for a token, and compares the answers and what they left.
    pub(crate) fn try_acquire(&mut self, now: u64) -> Result<SendPermit, Duration> {
        let answer = self.limiter.try_acquire(Timestamp::from_nanos(now));
        self.model.refill_if_enabled(now);
        match answer {
            Ok(_) => self.model.grant(now),
            Err(wait) => self.model.refuse(now, wait),
        }
        self.compare(now);
        answer
    }

    /// Compares every field at `now`.
    pub(crate) fn compare(&mut self, now: u64) {
        let got = self.limiter.snapshot(Timestamp::from_nanos(now));
        self.model.refill_if_enabled(now);
        self.compare_with(now, &got);
    }

    fn take_over(&mut self, got: &SendRateSnapshot) {
        let (start, capacity) = (got.available, self.model.capacity);
        assert!(
            (0.0..=capacity + TOLERANCE * capacity).contains(&start),
            "an enabled bucket starts between empty and full: {start} of {capacity}"
        );
        self.model.available = start;
    }

    fn compare_with(&self, now: u64, got: &SendRateSnapshot) {
        let want = &self.model;
        assert_eq!(got.enabled, want.enabled, "enabled at {now} ns");
        let field = |name: &str, got: f64, want: f64| {
            let off = (got - want).abs();
            assert!(
                off <= TOLERANCE * want.abs().max(1.0),
                "{name} at {now} ns: got {got}, want {want}, off by {off:e}; {:?}",
                self.model
            );
        };
        field("measured_rate", got.measured_rate, want.measured_rate);
        field("last_max_rate", got.last_max_rate, want.last_max_rate);
        if want.enabled {
            field("fill_rate", got.fill_rate, want.fill_rate);
            field("capacity", got.capacity, want.capacity);
            field("available", got.available, want.available.max(0.0));
        } else {
            field("fill_rate", got.fill_rate, want.curve(now));
        }
    }
}

impl AwsModel {
    /// Mints what is due, unless the limiter is off: then nothing is touched.
    fn refill_if_enabled(&mut self, now: u64) {
        if self.enabled {
            self.refill(now);
        }
    }

    /// The limiter let one go: there must have been a token, give or take the rounding.
    fn grant(&mut self, now: u64) {
        if !self.enabled {
            return;
        }
        assert!(
            self.available >= 1.0 - TOLERANCE,
            "granted at {now} ns with {} tokens; {self:?}",
            self.available
        );
        self.available = (self.available - 1.0).max(0.0);
    }

    /// The limiter refused: there must have been less than a token, and `wait` is what is missing.
    fn refuse(&self, now: u64, wait: Duration) {
        assert!(self.enabled, "refused at {now} ns while not enabled");
        assert!(!wait.is_zero(), "a refusal at {now} ns with no wait");
        let missing = 1.0 - self.available;
        assert!(
            missing >= -TOLERANCE,
            "refused at {now} ns with {} tokens; {self:?}",
            self.available
        );
        // Tokens minted during the wait. Each of the two terms of the wait may be off by the
        // tolerance, and it is rounded up to a nanosecond.
        let minted = wait.as_secs_f64() * self.fill_rate;
        let slack = 3.0 * TOLERANCE + 2e-9 * self.fill_rate;
        assert!(
            (minted - missing).abs() <= slack,
            "refused at {now} ns with a wait of {wait:?}: that mints {minted} of {missing}; {self:?}"
        );
    }
}
