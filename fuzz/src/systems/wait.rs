//! Who waits, since when a request could have gone, and how long the longest wait was.

use std::collections::BTreeMap;

/// The requests in line, and the longest time in which one could have gone and none went.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// How many there are of each weight, and their sum.
    weights: BTreeMap<u64, u64>,
    pub(super) sum: u64,
    /// Since when a waiting request could have gone.
    could: Option<u64>,
    /// The longest such time, and when it ended.
    pub(super) gap: (u64, u64),
    pub(super) last_send: u64,
}

impl Waiting {
    pub(super) fn join(&mut self, weight: u64) {
        *self.weights.entry(weight).or_default() += 1;
        self.sum += weight;
    }

    pub(super) fn leave(&mut self, weight: u64) {
        if let Some(count) = self.weights.get_mut(&weight) {
            *count -= 1;
            if *count == 0 {
                self.weights.remove(&weight);
            }
            self.sum -= weight;
        }
    }

    pub(super) fn lightest(&self) -> Option<u64> {
        self.weights.keys().next().copied()
    }

    /// Notes whether a waiting request could go at `now`. Before `first` no time counts.
    pub(super) fn note(&mut self, now: u64, could: bool, first: u64) {
        if !could || now < first {
            self.could = None;
            return;
        }
        let since = *self.could.get_or_insert(now);
        if now - since > self.gap.0 {
            self.gap = (now - since, now);
        }
    }

    /// A request goes.
    pub(super) fn sent(&mut self, now: u64) {
        self.could = None;
        self.last_send = now;
    }

    /// Returns since when a request could have gone, if one could.
    pub(super) const fn could_since(&self) -> Option<u64> {
        self.could
    }
}
