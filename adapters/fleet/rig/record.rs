//! What the service has seen: who sent what, when.

use std::time::Duration;

/// One request, as the service saw it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Duration,
    pub(crate) member: u8,
    pub(crate) throttled: bool,
}

/// Everything that was seen, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record(pub(crate) Vec<Arrival>);

impl Record {
    /// Returns the part from `from` to `to`.
    pub(crate) fn within(&self, from: Duration, to: Duration) -> Self {
        let inside = |seen: &&Arrival| (from..to).contains(&seen.at);
        Self(self.0.iter().filter(inside).copied().collect())
    }

    pub(crate) fn sent(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn throttled(&self) -> usize {
        self.0.iter().filter(|seen| seen.throttled).count()
    }

    pub(crate) fn delivered(&self) -> usize {
        self.sent() - self.throttled()
    }

    pub(crate) fn throttled_share(&self) -> f64 {
        number(self.throttled()) / number(self.sent()).max(1.0)
    }

    /// Returns what was delivered of each of `members`.
    pub(crate) fn by_member(&self, members: u8) -> Vec<f64> {
        let of = |member| {
            self.0
                .iter()
                .filter(move |seen| seen.member == member && !seen.throttled)
        };
        (0..members)
            .map(|member| number(of(member).count()))
            .collect()
    }

    /// Returns Jain's index of what was delivered: 1 if all got the same.
    pub(crate) fn jain(&self, members: u8) -> f64 {
        let got = self.by_member(members);
        let (sum, squares) = got.iter().fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
        if squares == 0.0 {
            0.0
        } else {
            sum * sum / (number(got.len()) * squares)
        }
    }

    /// Returns the longest time between `from` and `to` in which one of `members` sent nothing.
    pub(crate) fn longest_gap(&self, members: u8, from: Duration, to: Duration) -> Duration {
        let mut last = vec![from; usize::from(members)];
        let mut longest = Duration::ZERO;
        let inside = self.within(from, to);
        let ends = (0..members).map(|member| (member, to));
        let times = inside.0.iter().map(|seen| (seen.member, seen.at));
        for (member, at) in times.chain(ends) {
            let last = &mut last[usize::from(member)];
            longest = longest.max(at.saturating_sub(*last));
            *last = at;
        }
        longest
    }

    /// Returns the most by which any window was above `rate`: the burst that a bucket of that rate
    /// would have needed.
    pub(crate) fn excess(&self, rate: f64) -> f64 {
        let (mut level, mut most, mut last) = (0.0_f64, 0.0_f64, Duration::ZERO);
        for seen in &self.0 {
            let passed = seen.at.saturating_sub(last).as_secs_f64();
            level = (level - rate * passed).max(0.0) + 1.0;
            most = most.max(level);
            last = seen.at;
        }
        most
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of a test")]
pub(crate) fn number(count: usize) -> f64 {
    count as f64
}
