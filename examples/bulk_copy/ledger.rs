//! What the service counts: every answer it gave, and when the request came in.

use core::time::Duration;

/// The width of one entry of the time line.
pub(crate) const BIN: Duration = Duration::from_millis(100);

/// What a request was answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// 200: an object was written, by upload or by copy.
    Wrote,
    /// 200: an object was read.
    Read,
    /// 503 `SlowDown`: over the limit.
    Throttled,
    /// Any other answer: no such object, or a request that is not understood.
    Rejected,
}

/// The requests that came in during one [`BIN`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bin {
    pub(crate) requests: u64,
    pub(crate) throttled: u64,
}

/// The totals and the time line of one service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ledger {
    pub(crate) wrote: u64,
    pub(crate) read: u64,
    pub(crate) throttled: u64,
    pub(crate) rejected: u64,
    pub(crate) timeline: Vec<Bin>,
}

impl Ledger {
    /// Enters one answer to a request that came in at `now`.
    pub(crate) fn enter(&mut self, now: Duration, verdict: Verdict) {
        let total = match verdict {
            Verdict::Wrote => &mut self.wrote,
            Verdict::Read => &mut self.read,
            Verdict::Throttled => &mut self.throttled,
            Verdict::Rejected => &mut self.rejected,
        };
        *total = total.saturating_add(1);
        let bin = self.bin(now);
        bin.requests = bin.requests.saturating_add(1);
        if verdict == Verdict::Throttled {
            bin.throttled = bin.throttled.saturating_add(1);
        }
    }

    /// Returns the number of answers.
    pub(crate) fn answered(&self) -> u64 {
        [self.wrote, self.read, self.throttled, self.rejected]
            .iter()
            .sum()
    }

    fn bin(&mut self, now: Duration) -> &mut Bin {
        let index = now.as_nanos().checked_div(BIN.as_nanos()).unwrap_or(0);
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        if index >= self.timeline.len() {
            self.timeline
                .resize(index.saturating_add(1), Bin::default());
        }
        &mut self.timeline[index]
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::{Bin, Ledger, Verdict};

    #[test]
    fn an_answer_is_entered_in_the_tenth_of_a_second_its_request_came_in() {
        let mut ledger = Ledger::default();
        ledger.enter(Duration::from_millis(99), Verdict::Wrote);
        ledger.enter(Duration::from_millis(300), Verdict::Throttled);
        ledger.enter(Duration::from_millis(399), Verdict::Read);
        let bin = |requests, throttled| Bin {
            requests,
            throttled,
        };
        assert_eq!(
            ledger.timeline,
            [bin(1, 0), bin(0, 0), bin(0, 0), bin(2, 1)]
        );
    }

    #[test]
    fn every_answer_is_counted_once() {
        let mut ledger = Ledger::default();
        let verdicts = [
            Verdict::Wrote,
            Verdict::Read,
            Verdict::Throttled,
            Verdict::Rejected,
        ];
        for verdict in verdicts {
            ledger.enter(Duration::ZERO, verdict);
        }
        assert_eq!(ledger.answered(), 4);
        let requests: u64 = ledger.timeline.iter().map(|bin| bin.requests).sum();
        assert_eq!(requests, 4);
    }
}
