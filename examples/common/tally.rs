//! What a client and a service count, and the check of one against the other.

use core::{
    ops::{Add, AddAssign},
    time::Duration,
};

/// Requests by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) sent: u64,
    pub(crate) done: u64,
    pub(crate) throttled: u64,
    /// Answered with another error.
    pub(crate) rejected: u64,
    /// Sent and not answered. The service may have counted them, or not.
    pub(crate) lost: u64,
}

impl Counts {
    /// Returns the counts on which a client and its service differ, in words.
    pub(crate) fn differences(self, service: Self) -> Vec<String> {
        let answered = self.done + self.throttled + self.rejected;
        let pairs = [
            ("requests", self.sent, service.sent, 0),
            ("successes", self.done, service.done, self.lost),
            ("throttles", self.throttled, service.throttled, self.lost),
            ("other errors", self.rejected, service.rejected, self.lost),
            ("answers", self.sent, answered + self.lost, 0),
        ];
        let differ = |(what, client, service, slack): (&str, u64, u64, u64)| {
            // A request that never arrived is counted by the client alone.
            let least = if what == "requests" {
                client - self.lost.min(client)
            } else {
                client
            };
            let agree = (least..=client + slack).contains(&service);
            (!agree).then(|| format!("{what}: the client counted {client}, the service {service}"))
        };
        pairs.into_iter().filter_map(differ).collect()
    }
}

impl Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            done: self.done + other.done,
            throttled: self.throttled + other.throttled,
            rejected: self.rejected + other.rejected,
            lost: self.lost + other.lost,
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// What happened in one bin of a time line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bin {
    pub(crate) admitted: u64,
    pub(crate) refused: u64,
    /// How many in a thousand seconds the limiter allowed at its start, if it limited.
    pub(crate) allowed: Option<u64>,
    /// The longest that a request waited that began in it, and that someone waited for.
    pub(crate) longest: u64,
}

impl Bin {
    pub(crate) const fn of(admitted: u64, refused: u64) -> Self {
        Self {
            admitted,
            refused,
            allowed: None,
            longest: 0,
        }
    }
}

/// Enters something that happened at `now` into the time line of bins of this `width`.
pub(crate) fn enter(timeline: &mut Vec<Bin>, width: Duration, now: Duration, of: Bin) {
    let index = now.as_nanos() / width.as_nanos().max(1);
    let index = usize::try_from(index).unwrap_or(0);
    if timeline.len() <= index {
        timeline.resize(index + 1, Bin::default());
    }
    timeline[index].admitted += of.admitted;
    timeline[index].refused += of.refused;
}

/// Returns the value below which so many thousandths of the others lie, or none's.
pub(crate) fn quantile<T: Copy + Default>(sorted: &[T], permille: usize) -> T {
    let last = sorted.len().saturating_sub(1);
    let value = sorted.get((sorted.len() * permille / 1_000).min(last));
    value.copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::{Bin, Counts, enter};

    const AGREED: Counts = Counts {
        sent: 6,
        done: 3,
        throttled: 2,
        rejected: 1,
        lost: 0,
    };

    #[test]
    fn every_count_that_differs_is_named() {
        assert_eq!(AGREED.differences(AGREED), [""; 0]);
        let service = Counts {
            sent: 7,
            throttled: 3,
            ..AGREED
        };
        let named = AGREED.differences(service);
        assert!(named[0].starts_with("requests: ") && named[1].starts_with("throttles: "));
        assert_eq!(named.len(), 2);
    }

    #[test]
    fn a_lost_answer_excuses_one_count_and_no_more() {
        let client = Counts {
            sent: 7,
            lost: 1,
            ..AGREED
        };
        let arrived = Counts {
            sent: 7,
            done: 4,
            ..AGREED
        };
        assert_eq!(client.differences(AGREED), [""; 0]);
        assert_eq!(client.differences(arrived), [""; 0]);
        assert_eq!(AGREED.differences(arrived).len(), 2);
        let one_more = Counts { done: 5, ..arrived };
        assert_eq!(client.differences(one_more).len(), 1);
    }

    #[test]
    fn an_entry_belongs_to_the_bin_of_its_time() {
        let mut timeline = Vec::new();
        for (millis, admitted) in [(99, 1), (300, 2), (399, 4)] {
            let now = Duration::from_millis(millis);
            let of = Bin::of(admitted, 1);
            enter(&mut timeline, Duration::from_millis(100), now, of);
        }
        let bins: Vec<_> = timeline
            .iter()
            .map(|bin| (bin.admitted, bin.refused))
            .collect();
        assert_eq!(bins, [(1, 1), (0, 0), (0, 0), (6, 2)]);
    }
}
