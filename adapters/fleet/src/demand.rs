//! What a member would send if it were let.

use paceline::Timestamp;

use crate::pool::{Backlog, nanos_since};
use crate::wire::Milli;

/// An estimate that rises at once and falls by a quarter at each look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    taken: u64,
    /// Those that waited at the last look: they were counted then.
    waiting: u64,
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
            waiting: 0,
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

    /// Looks at the time since it last did. With a `backlog` the demand is at least twice the
    /// `share`.
    ///
    /// A request counts once: when it takes a token, or when it is first seen waiting. Refusals do
    /// not count, since a request that is refused may ask again many times: any number of them is
    /// one request.
    pub(crate) fn look(&mut self, now: Timestamp, backlog: Backlog, share: Milli) -> Milli {
        let elapsed = nanos_since(self.since, now).max(SHORTEST);
        let Backlog { waiting, refused } = backlog;
        let came = self
            .taken
            .saturating_add(waiting)
            .saturating_sub(self.waiting);
        let tokens = if refused { came.max(1) } else { came };
        let seen = u128::from(tokens)
            .saturating_mul(MILLI_NANOS)
            .checked_div(u128::from(elapsed));
        let mut seen = u64::try_from(seen.unwrap_or(0)).unwrap_or(u64::MAX);
        if refused || waiting > 0 {
            seen = seen.max(share.saturating_mul(2));
        }
        let fallen = self.rate.saturating_sub(self.rate.div_ceil(4));
        *self = Self {
            taken: 0,
            waiting,
            since: now,
            rate: seen.max(fallen).min(1_000_000_000_000),
        };
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::{Backlog, Demand, Timestamp};

    const NONE: Backlog = waiting(0);
    const POLLS: Backlog = Backlog {
        waiting: 0,
        refused: true,
    };

    const fn waiting(waiting: u64) -> Backlog {
        Backlog {
            waiting,
            refused: false,
        }
    }

    const fn at(millis: u64) -> Timestamp {
        Timestamp::from_nanos(millis.wrapping_mul(1_000_000))
    }

    #[test]
    fn it_rises_at_once_and_falls_by_quarters() {
        let mut demand = Demand::new(at(0));
        demand.took(10);
        assert_eq!(demand.look(at(100), NONE, 0), 100_000);
        assert_eq!(demand.look(at(200), NONE, 0), 75_000);
        demand.took(20);
        assert_eq!(demand.look(at(300), NONE, 0), 200_000);
    }

    #[test]
    fn it_falls_to_nothing() {
        let mut demand = Demand::new(at(0));
        demand.took(1);
        let rates = (1..=60).map(|look| demand.look(at(100 * look), NONE, 0));
        assert_eq!(rates.last(), Some(0));
    }

    #[test]
    fn who_is_held_back_wants_more_than_the_share() {
        let mut demand = Demand::new(at(0));
        demand.took(10);
        assert_eq!(demand.look(at(100), waiting(1), 300_000), 600_000);
        assert_eq!(demand.look(at(200), waiting(91), 0), 900_000);
    }

    #[test]
    fn a_request_that_waits_is_counted_once() {
        let mut demand = Demand::new(at(0));
        assert_eq!(demand.look(at(100), waiting(10), 0), 100_000);
        // It waits still: only a backlog, and its share is too small.
        assert_eq!(demand.look(at(200), waiting(10), 50_000), 100_000);
        // Served in the end, with one that came since.
        demand.took(11);
        assert_eq!(demand.look(at(300), NONE, 0), 75_000);
        demand.took(1);
        assert_eq!(demand.look(at(400), NONE, 0), 56_250);
    }

    #[test]
    fn a_request_that_polls_is_counted_once() {
        let mut demand = Demand::new(at(0));
        assert_eq!(demand.look(at(1_000), POLLS, 0), 1_000);
        demand.took(1);
        assert_eq!(demand.look(at(2_000), POLLS, 100), 1_000);
    }
}
