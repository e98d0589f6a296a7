//! Counts of requests, and the law's reading of them.

use crate::Outcome;
use crate::atomic::counter::{Stripe, Stripes};
use crate::atomic::sync::{
    AtomicU64, AtomicU128,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::law::{Controller, Counted, State, Window};

/// Counts requests, and keeps the law's reading of the counts.
pub(super) struct Meter {
    reading: AtomicU128,
    /// The law's cycle.
    cycle: AtomicU128,
    counts: Stripes,
    /// The failed requests of this window, in tokens. They are few, so one word is enough.
    failed: AtomicU64,
}

impl Meter {
    /// Creates the meter of a law, and returns the end of the first window.
    pub(super) fn new(law: &Controller) -> (Self, u64) {
        // Just before the wrap, so that every test crosses the wrap.
        let count = u64::MAX.wrapping_sub(1);
        let (reading, end) = law.begin(None, count, 0);
        let meter = Self {
            reading: AtomicU128::new(reading),
            cycle: AtomicU128::new(0),
            counts: Stripes::new(count),
            failed: AtomicU64::new(0),
        };
        (meter, end)
    }

    /// Counts a request that took `weight` tokens: the measured rate counts tokens.
    pub(super) fn count(&self, weight: u32) {
        self.counts.add(u64::from(weight));
    }

    /// Counts a request that failed or was given up. In a window, failures do not count as
    /// delivered.
    pub(super) fn count_unserved(&self, weight: u32, outcome: Outcome) {
        if outcome == Outcome::Failed {
            // Relaxed, here and where `failed` is read and set to zero. It is a part of the count
            // that is only looked at, and a window that ends at the same time may miss it. There is
            // nothing weaker, so no model. It is raised before the count, so it seldom lacks a
            // failure that the sum has.
            self.failed.fetch_add(weight.into(), Relaxed);
        }
        self.count(weight);
    }

    /// Counts one request at `now`, and may allow some more without the time.
    pub(super) fn count_at(&self, now: u64) {
        match self.counts.stripe() {
            Some(stripe) => stripe.add_one_at(now),
            None => self.counts.add(1),
        }
    }

    /// Counts one request if the calling thread need not look at the clock for it.
    pub(super) fn count_untimed(&self) -> bool {
        self.counts.stripe().is_some_and(Stripe::try_add_one)
    }

    /// Returns `true` if the calling thread need not look at the clock for its next request.
    pub(super) fn is_ahead(&self) -> bool {
        self.counts.stripe().is_some_and(Stripe::is_ahead)
    }

    pub(super) fn reading(&self) -> u128 {
        // Acquire, with the release in `replace`. If this load comes before a replacement, the base
        // is the old base, and each later sum is above it. If the load comes after, a sum must have
        // at least the counts that went into the new base. Otherwise the difference would wrap.
        // Model: `send_rate::a_window_never_counts_below_zero`.
        self.reading.load(Acquire)
    }

    /// Returns the sum of all counts, wrapping.
    pub(super) fn sum(&self) -> u64 {
        self.counts.sum()
    }

    pub(super) fn counted(&self) -> Counted {
        let reading = self.reading();
        // The sum after the reading: see `reading`.
        let sum = self.sum();
        let cycle = self.cycle.load(Relaxed);
        Counted {
            reading,
            sum,
            cycle,
        }
    }

    /// Replaces `seen` by `next`. False if another thread has replaced `seen` first.
    fn replace(&self, seen: u128, next: u128) -> bool {
        // Release publishes the counts behind the base to the next thread that sums. Of two threads
        // that replace one reading the first succeeds, and the second loads all words again.
        // Strong, because a lone caller must never fail. Models:
        // `send_rate::a_window_never_counts_below_zero`, `send_rate::no_count_is_lost_at_a_turn`.
        let replaced = self
            .reading
            .compare_exchange(seen, next, Release, Relaxed)
            .is_ok();
        if replaced {
            self.counts.forget_meetings();
            self.failed.store(0, Relaxed);
        }
        replaced
    }

    /// Returns the law's reading, and the cycle.
    pub(super) fn seen(&self) -> (u128, u128) {
        (self.reading(), self.cycle.load(Relaxed))
    }

    /// Returns the sum of all counts, and how many in this window failed. Called after
    /// [`seen`](Self::seen): see `reading`.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.sum(), self.failed.load(Relaxed))
    }

    /// Ends the window that was `seen`, if `window` says so. The first thread ends the window for
    /// all threads: its sum is the base of the next window. `false` if another thread was first.
    pub(super) fn take_turn(&self, seen: (u128, u128), window: &Window) -> bool {
        let Some(next) = window.next else { return true };
        let is_first = self.replace(seen.0, next);
        if let (true, Some(next)) = (is_first, window.cycle) {
            self.change_cycle(seen.1, next);
        }
        is_first
    }

    /// Ends the window if it is over at `now`, after a response was counted while nothing has ever
    /// been limited.
    pub(super) fn turn(&self, law: &Controller, state: State, now: u64, sent: u64) -> Window {
        loop {
            let seen = self.seen();
            let window = law.turn(seen.0, seen.1, || self.counts(), state, now, sent);
            if self.take_turn(seen, &window) {
                return window;
            }
        }
    }

    /// Replaces the cycle, unless another thread has done so. Called after the swap of the state
    /// that goes with the cycle.
    pub(super) fn change_cycle(&self, seen: u128, next: u128) {
        // Relaxed, here and where the cycle is read: the word is complete, and guards no other
        // word. There is nothing weaker. The swap comes after the state, so a call that lost the
        // state leaves no cycle. With a state beside an older cycle, the next mean is over two
        // cycles. Model: `paced::an_opening_and_a_refusal_leave_the_state_and_the_cycle_of_one`.
        let _ = self.cycle.compare_exchange(seen, next, Relaxed, Relaxed);
    }

    /// Forgets the cycle.
    pub(super) fn forget_cycle(&self) {
        // Relaxed: see `change_cycle`.
        self.cycle.store(0, Relaxed);
    }

    /// Begins a window at `now`, from zero, and returns its end; 0 if no window has begun before.
    /// Forgets the cycle.
    pub(super) fn restart(&self, law: &Controller, now: u64) -> u64 {
        self.forget_cycle();
        loop {
            let counted = self.counted();
            let (next, end) = law.begin(Some(counted.reading), counted.sum, now);
            if self.replace(counted.reading, next) {
                return end;
            }
        }
    }
}
