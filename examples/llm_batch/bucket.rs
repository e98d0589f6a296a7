//! A limit as the service keeps it: a bucket that refills all the time.

#![expect(clippy::float_arithmetic, reason = "a service may count as it likes")]

use core::time::Duration;

/// A limit per minute, with a bucket that holds a minute's worth.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    limit: f64,
    level: f64,
    minute: Duration,
    at: Duration,
}

impl Bucket {
    /// Creates a full bucket of `limit` in `minute`.
    pub(crate) fn new(limit: u32, minute: Duration) -> Self {
        Self {
            limit: limit.into(),
            level: limit.into(),
            minute,
            at: Duration::ZERO,
        }
    }

    /// Lets come back what has come back by `now`.
    pub(crate) fn refill(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        let gain = self.limit * passed / self.minute.as_secs_f64();
        self.level = (self.level + gain).min(self.limit);
        self.at = self.at.max(now);
    }

    /// Returns how long it takes until `amount` is there: zero if it is there now.
    pub(crate) fn wait(&self, amount: u32) -> Duration {
        let lacking = (f64::from(amount) - self.level).max(0.0);
        self.minute.mul_f64(lacking / self.limit)
    }

    /// Takes `amount`, which may leave less than nothing.
    pub(crate) fn take(&mut self, amount: i64) {
        #[expect(clippy::cast_precision_loss, reason = "a few thousand tokens")]
        let amount = amount as f64;
        self.level = (self.level - amount).min(self.limit);
    }

    /// Returns what is left, in whole numbers.
    pub(crate) fn left(&self) -> f64 {
        self.level.max(0.0).floor()
    }

    /// Returns how long it takes until the bucket is full.
    pub(crate) fn reset(&self) -> Duration {
        self.minute.mul_f64((self.limit - self.level) / self.limit)
    }

    pub(crate) const fn limit(&self) -> f64 {
        self.limit
    }
}

/// Returns a duration as these services write it: `120ms`, `1.5s`, `6m0s`.
pub(crate) fn written(span: Duration) -> String {
    let millis = span.as_millis();
    let (minutes, rest) = (millis / 60_000, millis % 60_000);
    #[expect(clippy::cast_precision_loss, reason = "less than a minute")]
    let seconds = rest as f64 / 1_000.0;
    match (minutes, rest) {
        (0, 0..1_000) => format!("{rest}ms"),
        (0, _) => format!("{seconds}s"),
        _ => format!("{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::{Bucket, written};

    #[test]
    fn durations_are_written_as_in_the_documentation() {
        let texts = [0, 120, 1_000, 1_500, 360_000, 252_172];
        let texts = texts.map(|millis| written(Duration::from_millis(millis)));
        assert_eq!(texts, ["0ms", "120ms", "1s", "1.5s", "6m0s", "4m12.172s"]);
    }

    #[test]
    fn a_debt_is_paid_before_anything_is_left() {
        let minute = Duration::from_secs(60);
        let mut bucket = Bucket::new(600, minute);
        bucket.take(660);
        assert_eq!(bucket.left().to_string(), "0");
        assert_eq!(bucket.wait(0).as_secs(), 6);
        assert_eq!(
            (bucket.wait(10).as_secs(), bucket.reset().as_secs()),
            (7, 66)
        );
        bucket.refill(Duration::from_secs(7));
        assert_eq!(bucket.wait(10), Duration::ZERO);
        bucket.take(-10_000);
        assert_eq!(bucket.left().to_string(), "600");
    }
}
