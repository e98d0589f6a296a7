//! Tokens that time pays into a quota: each of them is handed out once.

use core::time::Duration;

use super::sync::{AtomicU64, Ordering::Relaxed};
use crate::Timestamp;
use crate::budget::QuotaSettingsError;
use crate::fixed::Rate;

/// A source of tokens at a fixed rate.
///
/// What is remembered is how many tokens have been handed out since the start, not when: the next number follows
/// from the time alone, so that no fraction is dropped and no two callers are given the same token.
#[derive(Debug)]
pub(super) struct Refill {
    tokens: u32,
    /// In so many nanoseconds.
    per: u64,
    start: Timestamp,
    handed_out: AtomicU64,
}

impl Refill {
    /// Creates a source of `tokens` in each `per`, from `start` on.
    pub(super) fn new(
        tokens: u32,
        per: Duration,
        start: Timestamp,
    ) -> Result<Self, QuotaSettingsError> {
        Rate::settable(tokens, per).ok_or(QuotaSettingsError::RefillRate { tokens, per })?;
        Ok(Self {
            tokens,
            per: u64::try_from(per.as_nanos()).unwrap_or(u64::MAX),
            start,
            handed_out: AtomicU64::new(0),
        })
    }

    /// Returns the whole tokens of so many nanoseconds.
    fn minted_in(&self, nanos: u64) -> u64 {
        // Cannot overflow: 64 bits by 32. At most one token a nanosecond, and `per` is not 0.
        let parts = u128::from(nanos).wrapping_mul(u128::from(self.tokens));
        let minted = parts.checked_div(u128::from(self.per)).unwrap_or(0);
        u64::try_from(minted).unwrap_or(u64::MAX)
    }

    /// Hands out the tokens that have been minted by `now` and not yet handed out.
    pub(super) fn due(&self, now: Timestamp) -> u64 {
        let nanos = now.as_nanos().saturating_sub(self.start.as_nanos());
        let minted = self.minted_in(nanos);
        // Relaxed throughout: a number that only grows, moved by read-modify-writes; whoever moves it from `a` to `b`
        // hands out the tokens from `a` to `b`. Model: `quota::time_pays_each_token_once`.
        let mut seen = self.handed_out.load(Relaxed);
        while seen < minted {
            match self
                .handed_out
                .compare_exchange_weak(seen, minted, Relaxed, Relaxed)
            {
                Ok(_) => return minted.wrapping_sub(seen),
                Err(actual) => seen = actual,
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_on_the_nanosecond_whatever_the_rate() {
        let span = Duration::from_nanos(7_000_000_003);
        let refill = Refill::new(3, span, Timestamp::ZERO).expect("in range");
        assert_eq!(refill.due(Timestamp::from_nanos(7_000_000_002)), 2);
        assert_eq!(refill.due(Timestamp::from_nanos(7_000_000_003)), 1);
    }

    #[test]
    fn no_fraction_of_a_token_is_dropped_and_none_comes_twice() {
        let start = Timestamp::from_nanos(7);
        let refill = Refill::new(1, Duration::from_nanos(8), start).expect("in range");
        let due = |nanos| refill.due(Timestamp::from_nanos(nanos));
        let asked = [0, 7, 14, 15, 15, 23, 12, 39, 40].map(due);
        assert_eq!(asked, [0, 0, 0, 1, 0, 1, 0, 2, 0]);
        assert_eq!(due(u64::MAX), (1 << 61) - 1 - 4);
        assert_eq!(due(u64::MAX), 0);
    }
}
