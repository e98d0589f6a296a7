//! Smaller systems that fail in the same way.

use super::summary::caught;
use super::system::System;

/// How many runs a search may take.
const MOST_RUNS: u32 = 400;

impl System {
    /// Returns whether it is a system: a limit that holds what is asked for, and spans that are
    /// not empty.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let node = self.limit / self.nodes.max(1);
        let change = self.limit * self.change_to / 100 / self.nodes.max(1);
        let least = if self.change > 0 {
            node.min(change)
        } else {
            node
        };
        let weights = [self.light, self.heavy, self.set_weight, self.poll_weight];
        let counts = [
            self.window,
            self.limit,
            self.clients,
            self.workers,
            self.nodes,
            self.trip,
        ];
        counts.iter().all(|count| *count > 0)
            && weights.iter().all(|weight| (1..=least).contains(weight))
            && self.light <= self.heavy
            && self.cost_low <= self.cost_high
            && self.run >= 12 * self.window
            && self.phase < self.window
            && self.window2 > 0
            && self.limit2 > 0
            && (![2, 4].contains(&self.shape) || self.heavy <= self.limit2)
            && (self.shape != 4 || self.clients <= 8)
    }

    /// Returns a smaller system with a fault called `fault`, as small as a greedy search finds.
    #[must_use]
    pub fn shrunk(&self, fault: &str) -> Self {
        let mut best = self.clone();
        let mut runs = 0;
        let mut fails = |system: &Self| {
            runs += 1;
            let played = (runs <= MOST_RUNS && system.is_sound()).then(|| caught(system));
            played.is_some_and(|played| played.faults.iter().any(|found| found.name() == fault))
        };
        loop {
            let before = best.clone();
            for (name, plain) in Self::NAMES.iter().zip(Self::PLAIN) {
                if ["seed", "shape", "law", "kind"].contains(name) {
                    continue;
                }
                best = best.nearer(name, *plain, &mut fails);
            }
            if best == before {
                return best;
            }
        }
    }

    /// Moves the number called `name` towards `plain`, as far as it still fails.
    fn nearer(self, name: &str, plain: u64, fails: &mut impl FnMut(&Self) -> bool) -> Self {
        let mut best = self;
        let get = |system: &Self| system.clone().number(name).map_or(0, |number| *number);
        // All the way, half, an eighth, and one step: what is left out first is what matters least.
        // A span between two events is left out or stays: shorter ones are more work, not less.
        let is_span = ["polls", "sets", "restart", "change", "jump"].contains(&name);
        let parts: &[u64] = if is_span { &[1] } else { &[1, 2, 8, u64::MAX] };
        for part in parts {
            let now = get(&best);
            let step = (now.abs_diff(plain) / part).max(1).min(now.abs_diff(plain));
            let next = if now > plain { now - step } else { now + step };
            let mut smaller = best.clone();
            if let Some(number) = smaller.number(name) {
                *number = next;
            }
            if next != now && fails(&smaller) {
                best = smaller;
            }
        }
        best
    }
}
