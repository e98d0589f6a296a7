//! What a strategy looks like from outside.

use core::fmt;

use crate::atomic::RetryQuotaSnapshot;
use crate::atomic::cells::{Counts, Tally};
use crate::set::MOST_RATES;
use crate::{ControlLaw, SendRateSnapshot};

/// The state of a strategy, for diagnostics:
/// [`RetryStrategy::snapshot`](crate::RetryStrategy::snapshot). `{}` prints one line for
/// logs, `{:?}` all of it.
///
/// Taking one does not slow other threads: it only loads. Counts are written where an operation
/// fails or waits, in cache lines that a request that succeeds at once does not touch. Each field
/// was true at some moment of the call, not necessarily the same one for all.
///
/// # Examples
///
/// ```
/// use paceline::{Failure, RetryStrategy, RetryStrategyExt, Standard};
///
/// let strategy = Standard::new();
/// let _failed = strategy.run(|_| Err::<(), _>(Failure::not_retryable()));
/// let seen = strategy.snapshot();
/// assert_eq!((seen.quota.available, seen.counts.refused_safety), (500, 1));
/// assert!(seen.rate.is_none()); // Standard has no send rate
/// ```
#[derive(Clone, Copy, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct StrategySnapshot {
    /// What retries are paid from.
    pub quota: RetryQuotaSnapshot,
    /// The law of the send rate, if there is one.
    pub law: Option<ControlLaw>,
    /// The send rate, if there is one.
    pub rate: Option<SendRateSnapshot>,
    /// The [further](crate::config::StrategyBuilder::also) send rates, in order; `None` beyond the
    /// last one.
    pub further_rates: [Option<SendRateSnapshot>; MOST_RATES - 1],
    /// What has happened since the strategy was built.
    pub counts: StrategyCounts,
}

/// Each send rate that there is as a snapshot of it reads.
impl fmt::Debug for StrategySnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("StrategySnapshot");
        shown.field("quota", &self.quota);
        if let Some(law) = &self.law {
            shown.field("law", law);
        }
        for rate in self.rate.iter().chain(self.further_rates.iter().flatten()) {
            shown.field("rate", &format_args!("{rate}"));
        }
        shown.field("counts", &self.counts).finish()
    }
}

/// One line: what is left of the quota, each send rate, and what has happened at least once.
impl fmt::Display for StrategySnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RetryQuotaSnapshot {
            available,
            capacity,
        } = self.quota;
        write!(f, "quota {available} of {capacity}")?;
        if let Some(law) = self.law {
            write!(f, "; law {law}")?;
        }
        for rate in self.rate.iter().chain(self.further_rates.iter().flatten()) {
            write!(f, "; rate {rate}")?;
        }
        for (name, count) in self.counts.named().into_iter().filter(|(_, n)| *n > 0) {
            write!(f, "; {count} {name}")?;
        }
        Ok(())
    }
}

/// How often something happened since a strategy was built. Each count wraps after 2⁶⁴.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct StrategyCounts {
    /// Retries granted.
    pub granted: u64,
    /// Sends that had to wait when their turn was first looked at.
    pub delayed: u64,
    /// Those of them that are [background](crate::Class::Background).
    pub delayed_background: u64,
    /// Sends refused because they would have had to wait: for longer than the deadline of their
    /// operation or [`max_wait`](crate::config::StrategyBuilder::max_wait) allows, or
    /// [at all](crate::config::StrategyBuilder::fail_fast).
    pub refused_sends: u64,
    /// Retries refused because all attempts were made.
    pub refused_attempts: u64,
    /// Retries refused because the failure was not to be retried, or the work not to be done
    /// twice.
    pub refused_safety: u64,
    /// Retries refused by the quota.
    pub refused_quota: u64,
    /// Retries refused because there was no time left for them, or everything was throttled for too
    /// long.
    pub refused_time: u64,
    /// Retries refused for any other reason.
    pub refused_other: u64,
    /// Failures that were throttling.
    pub throttled: u64,
    /// Throttles that lowered the send rate.
    pub cuts: u64,
    /// Tokens that successes paid into the quota.
    pub credited: u64,
}

/// What has happened at least once.
impl fmt::Debug for StrategyCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.named();
        let mut shown = f.debug_struct("StrategyCounts");
        for (name, count) in counts.iter().filter(|(_, count)| *count > 0) {
            shown.field(name, count);
        }
        shown.finish_non_exhaustive()
    }
}

impl StrategyCounts {
    const fn named(&self) -> [(&'static str, u64); 12] {
        [
            ("granted", self.granted),
            ("delayed", self.delayed),
            ("delayed_background", self.delayed_background),
            ("refused_sends", self.refused_sends),
            ("refused_attempts", self.refused_attempts),
            ("refused_safety", self.refused_safety),
            ("refused_quota", self.refused_quota),
            ("refused_time", self.refused_time),
            ("refused_other", self.refused_other),
            ("throttled", self.throttled),
            ("cuts", self.cuts),
            ("credited", self.credited),
        ]
    }

    pub(super) fn of(counts: &Counts) -> Self {
        Self {
            granted: counts.get(Tally::Granted),
            delayed: counts.get(Tally::Delayed),
            delayed_background: counts.get(Tally::DelayedBackground),
            refused_sends: counts.get(Tally::RefusedSend),
            refused_attempts: counts.get(Tally::RefusedAttempts),
            refused_safety: counts.get(Tally::RefusedSafety),
            refused_quota: counts.get(Tally::RefusedQuota),
            refused_time: counts.get(Tally::RefusedTime),
            refused_other: counts.get(Tally::RefusedOther),
            throttled: counts.get(Tally::Throttled),
            cuts: counts.get(Tally::Cut),
            credited: counts.get(Tally::Credited),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;

    use crate::{
        Adaptive, Clock, ControlLaw, Failure, RetryStrategy, Standard, Timestamp,
        strategy::{Reports, SendRequest, SendTurn},
    };

    fn succeed(strategy: &impl RetryStrategy) {
        let mut token = strategy.acquire_initial_token(None).expect("never refused");
        let permit = strategy.admit(&mut SendTurn::new(), SendRequest::new().token(&token));
        token.sent(permit.expect("nothing is limited"));
        strategy
            .record_success(token, Reports::new())
            .expect("our own token");
    }

    #[test]
    fn requests_that_succeed_at_once_write_no_count() {
        let (standard, adaptive) = (Standard::new(), Adaptive::paced());
        let exact = Adaptive::builder()
            .law(ControlLaw::Aws)
            .exact_timing(true)
            .build_checked();
        for _ in 0..300 {
            succeed(&standard);
            succeed(&adaptive);
            succeed(&exact);
        }
        let counts = [
            &standard.engine.counts,
            &adaptive.engine.counts,
            &exact.engine.counts,
        ];
        assert!(counts.iter().all(|counts| counts.is_untouched()));
        let token = standard.acquire_initial_token(None).expect("never refused");
        let refused =
            standard.refresh_retry_token(token, &Failure::not_retryable(), Reports::new());
        assert!(refused.is_err() && !counts[0].is_untouched());
    }

    #[derive(Debug)]
    struct Still;

    impl Clock for Still {
        fn now(&self) -> Timestamp {
            Timestamp::ZERO
        }
    }

    #[test]
    fn a_send_that_waits_by_its_place_is_counted_as_delayed_once() {
        let builder = Adaptive::builder()
            .law(ControlLaw::Aws)
            .clock(Arc::new(Still));
        let strategy = builder.build_checked();
        let delayed = || strategy.snapshot().counts.delayed;
        let admit = |turn: &mut SendTurn| strategy.admit(turn, SendRequest::new());
        assert!(admit(&mut SendTurn::new()).is_ok());
        assert_eq!(delayed(), 0, "its turn has come");
        let token = strategy.acquire_initial_token(None).expect("never refused");
        drop(strategy.refresh_retry_token(token, &Failure::throttling(), Reports::new()));
        let mut turn = SendTurn::new();
        assert!(admit(&mut turn).is_err() && admit(&mut turn).is_err());
        assert_eq!(delayed(), 1);
    }
}
