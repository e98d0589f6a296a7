//! What a member would send if it were let.

use paceline::Timestamp;

use crate::pool::nanos_since;
use crate::wire::Milli;

/// An estimate that rises at once and falls by a quarter at each look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    taken: u64,
    since: Timestamp,
    rate: Milli,
}

/// A thousandth of a token per second, in tokens per nanosecond.
const MILLI_NANOS: u128 = 1_000_000_000_000;
/// The shortest time that an estimate is made of.
const SHORTEST: u64 = 5_000_000;

impl Demand {
    pub(crate) const fn new(now: Timestamp) -> Self {
        Self {
            taken: 0,
            since: now,
            rate: 0,
        }
    }

    pub(crate) const fn rate(&self) -> Milli {
        self.rate
    }

    /// Counts tokens that were spent.
    pub(crate) fn took(&mut self, tokens: u32) {
        self.taken = self.taken.saturating_add(u64::from(tokens));
    }

    /// Looks at the time since it last did. With a `backlog` the demand is at least twice the `share`.
    pub(crate) fn look(&mut self, now: Timestamp, backlog: u64, share: Milli) -> Milli {
        let elapsed = nanos_since(self.since, now).max(SHORTEST);
        let tokens = u128::from(self.taken.saturating_add(backlog));
        let seen = tokens
            .saturating_mul(MILLI_NANOS)
            .checked_div(u128::from(elapsed));
        let mut seen = u64::try_from(seen.unwrap_or(0)).unwrap_or(u64::MAX);
        if backlog > 0 {
            seen = seen.max(share.saturating_mul(2));
        }
        let fallen = self.rate.saturating_sub(self.rate.div_ceil(4));
        *self = Self {
            taken: 0,
            since: now,
            rate: seen.max(fallen).min(1_000_000_000_000),
        };
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::{Demand, Timestamp};

    const fn at(millis: u64) -> Timestamp {
        Timestamp::from_nanos(millis.wrapping_mul(1_000_000))
    }

    #[test]
    fn it_rises_at_once_and_falls_by_quarters() {
        let mut demand = Demand::new(at(0));
        demand.took(10);
        assert_eq!(demand.look(at(100), 0, 0), 100_000);
        assert_eq!(demand.look(at(200), 0, 0), 75_000);
        demand.took(20);
        assert_eq!(demand.look(at(300), 0, 0), 200_000);
    }

    #[test]
    fn it_falls_to_nothing() {
        let mut demand = Demand::new(at(0));
        demand.took(1);
        let rates = (1..=60).map(|look| demand.look(at(100 * look), 0, 0));
        assert_eq!(rates.last(), Some(0));
    }

    #[test]
    fn who_is_held_back_wants_more_than_the_share() {
        let mut demand = Demand::new(at(0));
        demand.took(10);
        assert_eq!(demand.look(at(100), 1, 300_000), 600_000);
        assert_eq!(demand.look(at(200), 90, 0), 900_000);
    }
}
