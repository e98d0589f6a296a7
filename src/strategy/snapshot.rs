//! Snapshots of a strategy.

use core::fmt;

use crate::cells::{Counts, Tally};
use crate::set::MOST_RATES;
use crate::snapshot::RetryQuotaSnapshot;
use crate::{ControlLaw, SendRateSnapshot};

/// The state of a strategy, for diagnostics, from
/// [`RetryStrategy::snapshot`](crate::RetryStrategy::snapshot). `{}` prints one line for logs, and
/// `{:?}` prints all fields.
///
/// A snapshot only loads, so it does not slow other threads. Counts are written when an operation
/// fails or waits, in cache lines that other requests do not touch. Each field was true at some
/// moment of the call, but not all fields at the same moment.
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
#[derive(Clone, Copy, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct StrategySnapshot {
    /// The quota that pays for retries.
    pub quota: RetryQuotaSnapshot,
    /// The law of the send rate, if there is one.
    pub law: Option<ControlLaw>,
    /// The send rate, if there is one.
    pub rate: Option<SendRateSnapshot>,
    /// The [further](crate::config::StrategyBuilder::also) send rates, in order; `None` beyond the
    /// last rate.
    pub further_rates: [Option<SendRateSnapshot>; MOST_RATES - 1],
    /// The counts since the strategy was built.
    pub counts: StrategyCounts,
}

/// Shows each send rate in one line, as its snapshot prints.
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

/// Prints one line: the tokens left of the quota, each send rate, and the counts above zero.
impl fmt::Display for StrategySnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RetryQuotaSnapshot {
            available,
            capacity,
            ..
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

/// Declares the fields of [`StrategyCounts`], each with the tally that the field is read from.
macro_rules! counts {
    ($($(#[$doc:meta])+ $name:ident: $tally:ident;)+) => {
        /// How often something happened since a strategy was built. Each count wraps after 2⁶⁴.
        #[derive(Clone, Copy, Default, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        #[non_exhaustive]
        pub struct StrategyCounts {
            $($(#[$doc])+ pub $name: u64,)+
        }

        impl StrategyCounts {
            const fn named(&self) -> [(&'static str, u64); 12] {
                [$((stringify!($name), self.$name)),+]
            }

            pub(super) fn of(counts: &Counts) -> Self {
                Self { $($name: counts.get(Tally::$tally)),+ }
            }
        }
    };
}

counts! {
    /// Retries granted.
    granted: Granted;
    /// Sends that had to wait when their turn was first looked at.
    delayed: Delayed;
    /// Delayed sends that are [background](crate::Class::Background).
    delayed_background: DelayedBackground;
    /// Sends refused because they would have had to wait: for longer than the deadline of their
    /// operation or [`max_wait`](crate::config::StrategyBuilder::max_wait) allows, or
    /// [at all](crate::config::StrategyBuilder::fail_fast).
    refused_sends: RefusedSend;
    /// Retries refused because all attempts were made.
    refused_attempts: RefusedAttempts;
    /// Retries refused because the failure must not be retried, or the work must not be done twice.
    refused_safety: RefusedSafety;
    /// Retries refused by the quota.
    refused_quota: RefusedQuota;
    /// Retries refused because there was no time left for them, or everything was throttled for too
    /// long.
    refused_time: RefusedTime;
    /// Retries refused for any other reason.
    refused_other: RefusedOther;
    /// Failures that were throttling.
    throttled: Throttled;
    /// Throttles that lowered the send rate.
    cuts: Cut;
    /// Tokens that successes paid into the quota.
    credited: Credited;
}

/// Shows the counts above zero.
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
