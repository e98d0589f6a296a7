//! Systems from bytes, for a fuzzer.

use arbitrary::{Arbitrary, Unstructured};

use super::draw::{Range, draw};
use super::system::System;
use super::world::play;

/// The longest run of a fuzzer in windows, the most requests, and the most waiters.
const WINDOWS: u64 = 30;
const MOST_REQUESTS: u64 = 4_000;
const MOST_WAITERS: u64 = 64;

/// A number of a system, and what it is to be instead.
#[derive(Arbitrary, Debug)]
struct Change {
    which: u8,
    mantissa: u16,
    exponent: u8,
}

impl System {
    /// Returns the system that `data` encodes: one at random, and changes to its numbers. Those
    /// that make none are left out.
    #[must_use]
    pub fn from_bytes(data: &[u8]) -> Self {
        let mut data = Unstructured::new(data);
        let seed = u64::arbitrary(&mut data).unwrap_or(0);
        let range = if seed % 2 == 0 {
            Range::Wide
        } else {
            Range::Narrow
        };
        let mut system = draw(range, seed).shortened();
        for change in crate::steps::<Change>(&mut data) {
            let name = Self::NAMES[usize::from(change.which) % Self::NAMES.len()];
            let value = u64::from(change.mantissa) << (change.exponent % 12);
            let mut changed = system.clone();
            if let Some(number) = changed.number(name) {
                *number = value;
            }
            let changed = changed.shortened();
            if changed.is_sound() && changed.is_in_range() {
                system = changed;
            }
        }
        system
    }

    /// Returns the system with a run that a fuzzer has time for.
    fn shortened(mut self) -> Self {
        let longest = self.window.max(self.window2);
        let limit = self.limit.max(self.limit2) * self.change_to.max(100) / 100;
        let requests = self.window * MOST_REQUESTS * self.light / limit.max(1);
        let trip = (self.trip + self.pause) / 1_000;
        let by_trips = (trip + 1) * MOST_REQUESTS / (self.clients * self.workers).max(1);
        if self.shape == 3 && self.window < 1_000 {
            return self;
        }
        if self.shape == 3 {
            self.patience = self.patience.min(400_000);
            self.outage = self.outage.min(5_000);
            self.run = 2 * (60_000 + self.patience) + 30_000;
            self.workers = self.workers.min(MOST_WAITERS);
            return self;
        }
        let most = requests.max(by_trips).min(WINDOWS * longest);
        self.run = most.max(12 * longest).max(60_000);
        self.workers = self.workers.min(MOST_WAITERS);
        self
    }

    /// Of operations: with a service that they can use up.
    const fn like_drawn(mut self) -> Self {
        (self.kind, self.window) = (1, 1_000);
        let most = self.workers * 500_000 / (2 * self.trip + self.pause + 1);
        if self.limit > most {
            self.limit = most;
        }
        self
    }

    /// Whether each number is one that the generator may choose.
    fn is_in_range(&self) -> bool {
        let kinds = self.kind < 3
            && self.shape < 5
            && self.law < 7
            && (self.law < 4 || self.shape == 3)
            && self.family < 12
            && self.unusable < 8
            && (self.unusable == 0 || (self.heavy == 1 && self.shape == 0 && self.family == 0));
        let shares = [
            self.lost,
            self.forget,
            self.cancel,
            self.over,
            self.leave,
            self.silent,
        ];
        // Shorter spans are more of the same.
        let spans = [
            self.polls,
            self.sets,
            self.restart,
            self.change,
            self.jump,
            self.amnesia,
        ];
        let least = 10 + self.run / 4_000;
        let by_law = match self.law {
            1 => {
                (self.heavy == 1 || self.shape == 3)
                    && self.window <= 3_600_000
                    && self.window2 <= 3_600_000
            }
            2.. => self.heavy == 1 && self.limit >= self.window / 1_000,
            _ => true,
        };
        if self.shape == 3 && *self != self.clone().like_drawn() {
            return false;
        }
        kinds
            && by_law
            && shares.iter().all(|share| *share <= 500)
            && spans.iter().all(|span| *span == 0 || *span >= least)
            && (self.restart == 0 || self.restart >= 3 * self.window)
            && (self.change == 0 || self.change >= 3 * self.window)
            && (self.jump == 0 || self.jump >= self.window)
            && self.jump_by <= 10 * self.window
            && self.forget * self.heavy <= 20 * self.light.max(1)
            && self.late <= self.window / 4
            && self.settle_late <= 3 * self.window
            && self.cost < 3
            && self.cost_high <= 300
            && self.clients <= 5
            && self.background < self.workers.max(1)
            && self.nodes <= 4
            && self.limit <= 1_000_000
            && self.limit2 <= 1_000_000
            && (1_000..=86_400_000).contains(&self.window)
            && (1_000..=86_400_000).contains(&self.window2)
            && self.longest_trip() / 1_000_000 <= self.window
            && self.spread <= 500
            && self.pause <= self.window * 1_000
    }
}

/// Plays the system that `data` encodes.
///
/// # Panics
///
/// If it breaks a promise that holds without exception.
pub fn systems(data: &[u8]) {
    let system = System::from_bytes(data);
    let played = play(&system);
    let broken: Vec<_> = played
        .faults
        .iter()
        .filter(|fault| fault.is_hard())
        .collect();
    assert!(broken.is_empty(), "{broken:?}: {system}");
}
