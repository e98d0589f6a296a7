//! What a member grants itself while the engine is away.

use core::time::Duration;

use paceline::Timestamp;

use crate::pool::since;
use crate::wire::Milli;

/// A plain bucket at what the engine last allowed a member alone, lowered by throttles.
///
/// No more than that: what the service allows is learned by the fleet, and this is for the time
/// until it is back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alone {
    share: Milli,
    rate: Milli,
    last: Timestamp,
    cut: Timestamp,
    /// A part of a token, in thousandths of a billionth.
    carry: u64,
}

/// In so long without the engine, what a member sends halves.
const HALVES: u128 = 300_000_000_000;

/// Returns what is left of `part` after `span` without the engine: straight lines between halves.
pub(crate) fn left_of(part: Milli, span: Duration) -> Milli {
    let nanos = span.as_nanos();
    let halves = u32::try_from(nanos / HALVES).unwrap_or(u32::MAX);
    let part = u128::from(part.checked_shr(halves).unwrap_or(0));
    let gone = part.saturating_mul(nanos % HALVES) / (2 * HALVES);
    u64::try_from(part.saturating_sub(gone)).unwrap_or(u64::MAX)
}

/// One token, in the units of `carry`.
const TOKEN: u64 = 1_000_000_000_000;
/// Throttles so soon after a cut belong to it.
const SAME_CUT: Duration = Duration::from_secs(1);

impl Alone {
    pub(crate) const fn new(now: Timestamp, share: Milli) -> Self {
        Self {
            share,
            rate: share,
            last: now,
            cut: Timestamp::ZERO,
            carry: 0,
        }
    }

    /// Makes `share` what it returns to after throttles, and goes no faster than that.
    pub(crate) fn set_share(&mut self, share: Milli) {
        self.share = share;
        self.rate = self.rate.min(share);
    }

    pub(crate) const fn rate(&self) -> Milli {
        self.rate
    }

    /// Returns how long it is from the last look until the next token.
    pub(crate) fn next(&self) -> Duration {
        let rest = TOKEN.saturating_sub(self.carry);
        Duration::from_nanos(rest.checked_div(self.rate).unwrap_or(u64::MAX))
    }

    /// Returns the whole tokens since the last time.
    pub(crate) fn mint(&mut self, now: Timestamp) -> u32 {
        let elapsed = since(self.last, now);
        self.last = now;
        let nanos = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        let minted = nanos.saturating_mul(self.rate).saturating_add(self.carry);
        self.carry = minted.wrapping_rem(TOKEN);
        // A tenth of the share comes back in each second.
        let back = u128::from(self.share).saturating_mul(u128::from(nanos));
        let back = u64::try_from(back.div_ceil(10_000_000_000)).unwrap_or(u64::MAX);
        self.rate = self.rate.saturating_add(back).min(self.share);
        u32::try_from(minted.wrapping_div(TOKEN)).unwrap_or(u32::MAX)
    }

    /// Takes three tenths of the rate, once a second.
    pub(crate) fn throttle(&mut self, now: Timestamp) {
        if since(self.cut, now) >= SAME_CUT || self.cut == Timestamp::ZERO {
            self.rate = self.rate.div_ceil(10).saturating_mul(7);
            self.cut = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Alone, Duration, Timestamp, left_of};

    const fn at(millis: u64) -> Timestamp {
        Timestamp::from_nanos(millis.wrapping_mul(1_000_000))
    }

    #[test]
    fn it_mints_the_share_and_drops_no_part_of_a_token() {
        let mut alone = Alone::new(at(1_000), 3_000);
        assert_eq!(alone.next(), Duration::from_nanos(333_333_333));
        let minted: Vec<u32> = (0..=10)
            .map(|step| alone.mint(at(100 * step + 1_000)))
            .collect();
        assert_eq!(minted, [0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1]);
    }

    #[test]
    fn without_the_engine_a_part_halves_every_five_minutes() {
        let left = [0, 150, 300, 450, 900, 1_000_000]
            .map(|seconds| left_of(8_000, Duration::from_secs(seconds)));
        assert_eq!(left, [8_000, 6_000, 4_000, 3_000, 1_000, 0]);
    }

    #[test]
    fn a_lower_share_lowers_the_rate_and_a_higher_one_does_not_undo_a_cut() {
        let mut alone = Alone::new(at(1_000), 10_000);
        alone.throttle(at(1_000));
        alone.set_share(9_000);
        assert_eq!(alone.rate(), 7_000);
        alone.set_share(6_000);
        assert_eq!(alone.rate(), 6_000);
    }

    #[test]
    fn a_throttle_takes_three_tenths_once_a_second_and_they_come_back() {
        let mut alone = Alone::new(at(1_000), 10_000);
        alone.throttle(at(1_000));
        alone.throttle(at(1_999));
        assert_eq!(alone.rate(), 7_000);
        alone.throttle(at(2_000));
        assert_eq!(alone.rate(), 4_900);
        assert_eq!(alone.mint(at(2_000)), 4);
        assert_eq!(alone.rate(), 5_900);
        assert_eq!(alone.mint(at(60_000)), 343);
        assert_eq!(alone.rate(), 10_000);
    }
}
