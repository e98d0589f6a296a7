//! What operations are held to.
//!
//! - *Quota*: it is what a plain ledger says, after each answer: a retry is paid before it is sent,
//!   paid back if its operation succeeds or is given up before it is sent, and spent otherwise.
//! - *Attempts*: there are no more than the most; in bulk those that were throttled do not count.
//! - *Late*: nothing is sent, or waits, beyond the deadline of an operation or the longest wait.
//! - *Minted*: at a fixed rate no more is let go than was minted, whatever was taken ahead.

use paceline::{Adaptive, Failure};

use super::system::System;
use super::{MILLI, bounds};

/// The most attempts of an operation.
pub(super) const ATTEMPTS: u64 = 3;

/// The retry quota, once more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ledger {
    capacity: u64,
    available: u64,
    throttling: u64,
    timeout: u64,
    other: u64,
}

impl Ledger {
    pub(super) fn of(strategy: &Adaptive) -> Self {
        let capacity = u64::from(strategy.quota().capacity());
        Self {
            capacity,
            available: capacity,
            throttling: 5,
            timeout: 14,
            other: 14,
        }
    }

    pub(super) const fn available(&self) -> u64 {
        self.available
    }

    /// Pays for a retry after `failure`, and returns its cost.
    pub(super) fn pay(&mut self, failure: &Failure) -> u64 {
        let cost = if failure.is_throttle() {
            self.throttling
        } else if failure.is_timeout() {
            self.timeout
        } else {
            self.other
        };
        // What is not there leaves a ledger that no quota agrees with.
        self.available = self.available.wrapping_sub(cost);
        cost
    }

    /// An operation succeeded whose last retry had `paid`.
    pub(super) fn succeed(&mut self, paid: u64) {
        self.put(if paid > 0 { paid } else { 1 });
    }

    pub(super) fn put(&mut self, tokens: u64) {
        self.available = (self.available + tokens).min(self.capacity);
    }
}

/// A fixed rate, once more: when the bucket would be full again.
#[derive(Debug, Default)]
pub(super) struct Line {
    full: u64,
}

impl Line {
    /// Lets `weight` go at `now`, whose turn came at `due`. Returns how many tokens have gone by
    /// now that are not minted yet.
    pub(super) fn goes(&mut self, system: &System, due: u64, now: u64, weight: u64) -> Option<u64> {
        let window = u128::from(system.window_nanos());
        let limit = u128::from(system.limit);
        let burst = System::burst(system.window) * MILLI;
        let span = u64::try_from(u128::from(weight) * window / limit).unwrap_or(u64::MAX);
        self.full = self.full.max(due) + span;
        // A thread takes some ahead, seven of them with an old time, and one token is rounded up.
        let ahead = bounds::LEASE + u64::try_from(8 * window / limit).unwrap_or(0);
        let early = self.full.checked_sub(now + burst + ahead)?;
        let tokens = u128::from(early) * limit / window;
        u64::try_from(tokens).ok().filter(|tokens| *tokens > 0)
    }
}
