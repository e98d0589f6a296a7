//! The service's own limit: a token bucket that refuses what it cannot serve at once.
//!
//! Claims, each held by a test below: a full bucket admits its burst and no more; tokens come back
//! at the rate, to the nanosecond; a bucket never holds more than its burst; a time that went
//! backwards mints nothing.

use core::time::Duration;

/// One token in the unit that the bucket counts in.
///
/// A rate in tokens per second is the same number of these per nanosecond, so no refill is rounded.
const TOKEN: u128 = 1_000_000_000;

/// A token bucket, full at the start.
#[derive(Debug)]
pub(crate) struct Policer {
    rate: u32,
    burst: u32,
    level: u128,
    refilled_at: Duration,
}

impl Policer {
    /// Creates a full bucket of `burst` tokens that mints `rate` tokens a second.
    pub(crate) const fn new(rate: u32, burst: u32) -> Self {
        Self {
            rate,
            burst,
            level: (burst as u128).saturating_mul(TOKEN),
            refilled_at: Duration::ZERO,
        }
    }

    /// Takes one token, or tells that there is none. `now` counts from when the bucket was made.
    pub(crate) fn admits(&mut self, now: Duration) -> bool {
        self.refill(now);
        let Some(left) = self.level.checked_sub(TOKEN) else {
            return false;
        };
        self.level = left;
        true
    }

    fn refill(&mut self, now: Duration) {
        let elapsed = now.saturating_sub(self.refilled_at);
        let minted = elapsed.as_nanos().saturating_mul(self.rate.into());
        let full = u128::from(self.burst).saturating_mul(TOKEN);
        self.level = self.level.saturating_add(minted).min(full);
        self.refilled_at = self.refilled_at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::Policer;

    fn admitted(policer: &mut Policer, now: Duration, asked: u32) -> usize {
        (0..asked).filter(|_| policer.admits(now)).count()
    }

    #[test]
    fn a_full_bucket_admits_its_burst_and_no_more() {
        let mut policer = Policer::new(100, 7);
        assert_eq!(admitted(&mut policer, Duration::ZERO, 50), 7);
    }

    #[test]
    fn a_token_is_back_after_one_period_and_not_a_nanosecond_before() {
        let mut policer = Policer::new(3, 1);
        assert!(policer.admits(Duration::ZERO));
        assert!(!policer.admits(Duration::from_nanos(333_333_333)));
        assert!(policer.admits(Duration::from_nanos(333_333_334)));
    }

    #[test]
    fn refusals_in_between_cost_no_part_of_a_token() {
        let mut policer = Policer::new(100, 1_000);
        assert_eq!(admitted(&mut policer, Duration::ZERO, 2_000), 1_000);
        let admitted = (0..=10_000_u64)
            .map(|step| Duration::from_micros(step.saturating_mul(997)))
            .filter(|now| policer.admits(*now))
            .count();
        assert_eq!(admitted, 997); // 9.97 s at 100/s
    }

    #[test]
    fn a_long_pause_fills_the_bucket_to_its_burst() {
        let mut policer = Policer::new(100, 5);
        assert_eq!(admitted(&mut policer, Duration::from_secs(86_400), 50), 5);
    }

    #[test]
    fn a_time_that_went_backwards_mints_nothing() {
        let mut policer = Policer::new(1_000, 1);
        assert!(policer.admits(Duration::from_secs(10)));
        assert!(!policer.admits(Duration::from_secs(9)));
        assert!(!policer.admits(Duration::from_secs(10)));
        assert!(policer.admits(Duration::from_millis(10_001)));
    }

    #[test]
    fn a_rate_of_zero_never_mints() {
        let mut policer = Policer::new(0, 2);
        assert_eq!(admitted(&mut policer, Duration::from_secs(1), 9), 2);
        assert!(!policer.admits(Duration::from_secs(1_000_000)));
    }
}
