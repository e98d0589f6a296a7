//! What the client counts, and the check of it against what the service counted.

use core::{
    fmt,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use crate::ledger::Ledger;

/// The client's counters, shared by the workers of one mode.
///
/// Relaxed throughout: each counter is read for good only after the workers have been joined.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    sent: AtomicU64,
    succeeded: AtomicU64,
    throttled: AtomicU64,
    rejected: AtomicU64,
    unanswered: AtomicU64,
}

/// What came of one request, seen from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Success,
    Throttled,
    Rejected,
    /// The connection failed before the answer was there.
    None,
}

impl Tally {
    /// Counts a request that is about to be sent.
    pub(crate) fn sending(&self) {
        self.sent.fetch_add(1, Relaxed);
    }

    /// Counts what came of it.
    pub(crate) fn answered(&self, answer: Answer) {
        let counter = match answer {
            Answer::Success => &self.succeeded,
            Answer::Throttled => &self.throttled,
            Answer::Rejected => &self.rejected,
            Answer::None => &self.unanswered,
        };
        counter.fetch_add(1, Relaxed);
    }

    /// Returns the counts as they are now.
    pub(crate) fn counts(&self) -> Counts {
        Counts {
            sent: self.sent.load(Relaxed),
            succeeded: self.succeeded.load(Relaxed),
            throttled: self.throttled.load(Relaxed),
            rejected: self.rejected.load(Relaxed),
            unanswered: self.unanswered.load(Relaxed),
        }
    }
}

/// The client's counts of one mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) sent: u64,
    pub(crate) succeeded: u64,
    pub(crate) throttled: u64,
    pub(crate) rejected: u64,
    pub(crate) unanswered: u64,
}

/// Two counts of the same thing that differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    what: &'static str,
    client: u64,
    service: u64,
}

impl Mismatch {
    /// Creates the finding that `what` was counted differently.
    pub(crate) const fn new(what: &'static str, client: u64, service: u64) -> Self {
        Self {
            what,
            client,
            service,
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what,
            client,
            service,
        } = self;
        write!(
            f,
            "{what}: the client counted {client}, the service {service}"
        )
    }
}

/// Returns every count on which the client and the service differ.
///
/// `copied` is the operations that the client saw succeed, `stored` the right copies that the
/// service holds. A request whose answer was lost may or may not have reached the service, so with
/// `n` of them a count of the service may be above the client's by up to `n`, and no more.
pub(crate) fn mismatches(
    client: &Counts,
    service: &Ledger,
    copied: u64,
    stored: u64,
) -> Vec<Mismatch> {
    let timeline = service.timeline.iter();
    let (requests, refused) = timeline.fold((0_u64, 0_u64), |(requests, refused), bin| {
        let requests = requests.saturating_add(bin.requests);
        (requests, refused.saturating_add(bin.throttled))
    });
    let answers = [client.succeeded, client.throttled, client.rejected];
    let answers: u64 = answers.iter().sum();
    let lost = client.unanswered;
    let pairs = [
        ("answers", answers, service.answered(), lost),
        (
            "successes",
            client.succeeded,
            service.wrote.saturating_add(service.read),
            lost,
        ),
        ("throttles", client.throttled, service.throttled, lost),
        ("other errors", client.rejected, service.rejected, lost),
        (
            "requests sent",
            client.sent,
            answers.saturating_add(lost),
            0,
        ),
        ("requests in the time line", service.answered(), requests, 0),
        ("throttles in the time line", service.throttled, refused, 0),
        ("objects copied", copied, stored, lost),
    ];
    let differ = |(what, client, service, slack): (&'static str, u64, u64, u64)| {
        let range = client..=client.saturating_add(slack);
        (!range.contains(&service)).then_some(Mismatch::new(what, client, service))
    };
    pairs.into_iter().filter_map(differ).collect()
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::{Answer, Counts, Tally, mismatches};
    use crate::ledger::{Ledger, Verdict};

    fn agreeing() -> (Counts, Ledger) {
        let (tally, mut ledger) = (Tally::default(), Ledger::default());
        let answers = [
            (Answer::Success, Verdict::Wrote),
            (Answer::Throttled, Verdict::Throttled),
            (Answer::Rejected, Verdict::Rejected),
        ];
        for (answer, verdict) in answers {
            tally.sending();
            tally.answered(answer);
            ledger.enter(Duration::ZERO, verdict);
        }
        (tally.counts(), ledger)
    }

    #[test]
    fn counts_that_agree_have_no_mismatch() {
        let (counts, ledger) = agreeing();
        assert_eq!(mismatches(&counts, &ledger, 1, 1), []);
    }

    #[test]
    fn every_count_that_differs_is_named() {
        let (counts, mut ledger) = agreeing();
        ledger.enter(Duration::ZERO, Verdict::Throttled);
        let named = mismatches(&counts, &ledger, 1, 0);
        let named: Vec<_> = named.iter().map(|mismatch| mismatch.what).collect();
        assert_eq!(named, ["answers", "throttles", "objects copied"]);
    }

    #[test]
    fn a_time_line_that_misses_a_request_is_a_mismatch() {
        let (counts, mut ledger) = agreeing();
        ledger.timeline.clear();
        assert_eq!(mismatches(&counts, &ledger, 1, 1).len(), 2);
    }

    #[test]
    fn a_lost_answer_excuses_one_count_of_the_service_and_no_more() {
        let (mut counts, mut ledger) = agreeing();
        counts.sent = counts.sent.saturating_add(1);
        assert_eq!(mismatches(&counts, &ledger, 1, 1).len(), 1);
        counts.unanswered = 1;
        assert_eq!(mismatches(&counts, &ledger, 1, 1), []);
        ledger.enter(Duration::ZERO, Verdict::Wrote);
        assert_eq!(mismatches(&counts, &ledger, 1, 2), []);
        ledger.enter(Duration::ZERO, Verdict::Wrote);
        assert!(!mismatches(&counts, &ledger, 1, 2).is_empty());
    }
}
