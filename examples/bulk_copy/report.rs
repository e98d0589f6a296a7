//! What one mode came to.

#![expect(clippy::float_arithmetic, reason = "shares and seconds for people")]

use core::time::Duration;

use crate::{
    ledger::Ledger,
    mode::Mode,
    number::{number, share},
    settings::Settings,
    tally::{Counts, Mismatch, mismatches},
};

/// The outcome of one mode: what the client and the service counted.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) mode: Mode,
    /// The most sends that one operation was allowed.
    pub(crate) attempts: u32,
    pub(crate) objects: u32,
    /// Objects that the client saw copied.
    pub(crate) copied: u64,
    /// Objects that it gave up on, with why it stopped.
    pub(crate) failures: Failures,
    /// Right copies that the service holds.
    pub(crate) stored: u64,
    pub(crate) elapsed: Duration,
    pub(crate) client: Counts,
    pub(crate) service: Ledger,
}

/// Objects that were given up, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failures {
    pub(crate) attempts: u64,
    pub(crate) quota: u64,
    pub(crate) other: u64,
}

impl Failures {
    /// Returns the objects that were given up.
    pub(crate) const fn total(self) -> u64 {
        let retried = self.attempts.saturating_add(self.quota);
        retried.saturating_add(self.other)
    }
}

impl Report {
    /// Returns whether every object was copied.
    pub(crate) fn is_complete(&self) -> bool {
        self.copied == u64::from(self.objects)
    }

    /// Returns every count on which the two sides, or the parts and the whole, differ.
    pub(crate) fn mismatches(&self) -> Vec<Mismatch> {
        let mut found = mismatches(&self.client, &self.service, self.copied, self.stored);
        let finished = self.copied.saturating_add(self.failures.total());
        if finished != self.objects.into() {
            let objects = self.objects.into();
            found.push(Mismatch::new("objects finished", finished, objects));
        }
        found
    }

    /// Returns the share of the requests that were throttled, from 0 to 1.
    pub(crate) fn throttled_share(&self) -> f64 {
        share(self.client.throttled, self.client.sent)
    }

    /// Returns the objects copied as a share of those that the limit allowed in the time it took.
    ///
    /// The limit allows its burst at once and its rate from then on.
    pub(crate) fn goodput_share(&self, settings: &Settings) -> f64 {
        let rate = f64::from(settings.objects_per_second());
        let allowed = rate.mul_add(self.elapsed.as_secs_f64(), settings.limits().burst.into());
        number(self.copied) / allowed
    }
}
