//! The published adaptive limiter, in `f64` and for one caller.
//!
//! Written after botocore's `retries/adaptive.py` (`ClientRateLimiter`, `RateClocker`),
//! `retries/throttling.py` (`CubicCalculator`) and `retries/bucket.py` (`TokenBucket`), with its
//! order of operations. It differs in three points. Time is whole nanoseconds, of which only
//! differences become seconds: a clock in seconds as `f64` is too coarse for 10⁶ requests a second.
//! Half-second windows count from the clock's zero, the first from `start` rounded down to a
//! second. And a clock that steps back makes no time pass, where botocore's takes tokens away.

/// What a throttle leaves of the rate.
const BETA: f64 = 0.7;
/// The scale of the cubic curve.
const C: f64 = 0.4;
/// The weight of the newest window in the measured rate.
const SMOOTH: f64 = 0.8;
/// The lowest fill rate, in tokens per second.
const MIN_FILL_RATE: f64 = 0.5;
/// The smallest capacity, in tokens.
const MIN_CAPACITY: f64 = 1.0;
const NANOS_PER_SECOND: u64 = 1_000_000_000;
const NANOS_PER_WINDOW: u64 = NANOS_PER_SECOND / 2;

/// The limiter's whole state. Rates are per second, instants in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct AwsModel {
    pub(crate) enabled: bool,
    pub(crate) fill_rate: f64,
    pub(crate) capacity: f64,
    /// Tokens in the bucket; below zero while more places are reserved than tokens minted.
    pub(crate) available: f64,
    pub(crate) measured_rate: f64,
    pub(crate) last_max_rate: f64,
    start: u64,
    refilled_at: Option<u64>,
    window: u64,
    count: u64,
    throttled_at: u64,
}

impl AwsModel {
    pub(crate) fn new(start: u64) -> Self {
        Self {
            enabled: false,
            fill_rate: 0.0,
            capacity: 0.0,
            available: 0.0,
            measured_rate: 0.0,
            last_max_rate: 0.0,
            start,
            refilled_at: None,
            window: start / NANOS_PER_SECOND * 2,
            count: 0,
            throttled_at: start,
        }
    }

    /// Notes one response, and moves the rate.
    pub(crate) fn record(&mut self, now: u64, throttled: bool) {
        let now = now.max(self.start);
        self.measure(now);
        let calculated = if throttled {
            self.throttle(now)
        } else {
            self.cubic(now)
        };
        self.set_rate(now, calculated.min(2.0 * self.measured_rate));
    }

    /// Mints what is due at `now`, and returns how much that is before the capacity cuts it off.
    pub(crate) fn refill(&mut self, now: u64) -> f64 {
        let now = now.max(self.start);
        let minted = self
            .refilled_at
            .map_or(0.0, |last| seconds(now, last) * self.fill_rate);
        self.available = self.capacity.min(self.available + minted);
        self.refilled_at = self.refilled_at.max(Some(now));
        minted
    }

    /// The rate that a success at `now` would set, in tokens per second.
    pub(crate) fn curve(&self, now: u64) -> f64 {
        let calculated = self.cubic(now.max(self.start));
        calculated.min(2.0 * self.measured_rate).max(MIN_FILL_RATE)
    }

    /// `RateClocker.record`: the current response counts into the window that it closes.
    fn measure(&mut self, now: u64) {
        self.count += 1;
        let window = now / NANOS_PER_WINDOW;
        if window > self.window {
            let rate = self.count as f64 / ((window - self.window) as f64 * 0.5);
            self.measured_rate = SMOOTH * rate + (1.0 - SMOOTH) * self.measured_rate;
            self.count = 0;
            self.window = window;
        }
    }

    /// `CubicCalculator.error_received`, and the bucket turned on.
    fn throttle(&mut self, now: u64) -> f64 {
        let rate_to_use = if self.enabled {
            self.measured_rate.min(self.fill_rate)
        } else {
            self.measured_rate
        };
        self.last_max_rate = rate_to_use;
        self.throttled_at = self.throttled_at.max(now);
        self.enabled = true;
        rate_to_use * BETA
    }

    /// `CubicCalculator.success_received`: `C·(t − K)³ + w_max`, where
    /// `K = ∛(w_max·(1 − β)/C)`.
    fn cubic(&self, now: u64) -> f64 {
        let k = (self.last_max_rate * (1.0 - BETA) / C).cbrt();
        C * (seconds(now, self.throttled_at) - k).powi(3) + self.last_max_rate
    }

    /// `TokenBucket.max_rate`: refills at the rate that ends before it sets the new one.
    fn set_rate(&mut self, now: u64, rate: f64) {
        self.refill(now);
        self.fill_rate = rate.max(MIN_FILL_RATE);
        self.capacity = rate.max(MIN_CAPACITY);
        self.available = self.available.min(self.capacity);
    }
}

/// The seconds from `earlier` to `later`, or zero if `earlier` is later.
fn seconds(later: u64, earlier: u64) -> f64 {
    later.saturating_sub(earlier) as f64 / NANOS_PER_SECOND as f64
}
