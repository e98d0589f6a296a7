//! A service that counts what is used of its limit, and says what is left.

use std::collections::VecDeque;

use super::system::System;
use super::told::Told;
use super::{MILLI, SECOND};

/// The service's clock at the start, in nanoseconds since 1970.
const EPOCH: u64 = 1_800_000_000 * SECOND;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Window,
    Refill,
    Sliding,
}

/// The service. Levels are in tokens times the window in nanoseconds, so that a refill is exact.
#[derive(Debug)]
pub(super) struct Service {
    kind: Kind,
    window: u64,
    phase: u64,
    limit: u64,
    level: i128,
    at: u64,
    /// Its clock at the start, in nanoseconds since 1970.
    epoch: u64,
    /// Of a sliding window: when it was used, and how much.
    used: VecDeque<(u64, u64)>,
    /// What was left, for reports that are old.
    past: VecDeque<(u64, u64)>,
}

impl Service {
    pub(super) fn new(system: &System, limit: u64, window: u64) -> Self {
        let mut this = Self {
            kind: match system.kind {
                0 => Kind::Window,
                1 => Kind::Refill,
                _ => Kind::Sliding,
            },
            window: window * MILLI,
            phase: system.phase * MILLI,
            limit,
            level: 0,
            at: 0,
            epoch: EPOCH,
            used: VecDeque::new(),
            past: VecDeque::new(),
        };
        this.restart();
        this
    }

    fn units(&self, tokens: u64) -> i128 {
        i128::from(tokens) * i128::from(self.window)
    }

    fn whole(&self) -> i128 {
        self.units(self.limit)
    }

    /// Everything is whole again.
    pub(super) fn restart(&mut self) {
        self.level = self.whole();
        self.used.clear();
    }

    pub(super) fn change(&mut self, now: u64, limit: u64) {
        self.advance(now);
        // What is used stays used.
        let used = self.whole() - self.level;
        self.limit = limit;
        self.level = match self.kind {
            Kind::Refill => self.level.min(self.whole()),
            Kind::Window | Kind::Sliding => self.whole() - used,
        };
    }

    pub(super) const fn limit(&self) -> u64 {
        self.limit
    }

    fn advance(&mut self, now: u64) {
        let before = core::mem::replace(&mut self.at, now);
        match self.kind {
            Kind::Refill => {
                let back = i128::from(self.limit) * i128::from(now - before);
                self.level = (self.level + back).min(self.whole());
            }
            Kind::Window => {
                let number = |at| (at + self.phase) / self.window;
                if number(now) != number(before) {
                    self.level = self.whole();
                }
            }
            Kind::Sliding => {
                while let Some((at, tokens)) = self.used.front().copied() {
                    if at + self.window > now {
                        break;
                    }
                    self.used.pop_front();
                    self.level = (self.level + self.units(tokens)).min(self.whole());
                }
            }
        }
    }

    /// Whether a request of `tokens` would be let go.
    pub(super) fn has(&mut self, now: u64, tokens: u64) -> bool {
        self.advance(now);
        self.level >= self.units(tokens)
    }

    /// Takes `tokens`; below zero if they are not there.
    pub(super) fn charge(&mut self, now: u64, tokens: u64) {
        self.advance(now);
        self.level -= self.units(tokens);
        if self.kind == Kind::Sliding {
            self.used.push_back((now, tokens));
        }
    }

    /// Gives back what was charged in excess.
    pub(super) fn refund(&mut self, now: u64, tokens: u64) {
        self.advance(now);
        self.level = (self.level + self.units(tokens)).min(self.whole());
        if let Some((_, used)) = self.used.back_mut() {
            *used = used.saturating_sub(tokens);
        }
    }

    /// Returns the whole tokens left.
    pub(super) fn left(&mut self, now: u64) -> u64 {
        self.advance(now);
        u64::try_from(self.level.max(0) / i128::from(self.window)).unwrap_or(u64::MAX)
    }

    /// Returns when the window began.
    pub(super) const fn begun(&self, now: u64) -> u64 {
        now.saturating_sub((now + self.phase) % self.window)
    }

    /// Whether a window has lasted so long that every client knows that it has begun.
    pub(super) fn is_settled(&self, system: &System, now: u64) -> bool {
        let age = now - self.begun(now);
        self.kind != Kind::Window || age > system.rounding() + 2 * system.longest_trip()
    }

    /// Returns the time until a reset, of a refill until all is back.
    fn whole_in(&self, now: u64) -> u64 {
        match self.kind {
            Kind::Refill => {
                let back = (self.whole() - self.level) / i128::from(self.limit.max(1));
                u64::try_from(back).unwrap_or(0)
            }
            Kind::Window => self.window - (now + self.phase) % self.window,
            Kind::Sliding => match self.used.front() {
                Some((at, _)) => (at + self.window).saturating_sub(now),
                None => 0,
            },
        }
    }

    /// Returns the time after which a request of `tokens` is worth trying, in whole seconds.
    pub(super) fn back_in(&mut self, now: u64, tokens: u64) -> u64 {
        self.advance(now);
        let nanos = match self.kind {
            Kind::Refill => {
                let lacking = (self.units(tokens) - self.level).max(0);
                u64::try_from(lacking / i128::from(self.limit.max(1))).unwrap_or(0)
            }
            Kind::Window | Kind::Sliding => self.whole_in(now),
        };
        nanos.div_ceil(SECOND).max(1) * SECOND
    }

    /// The service's clock jumps.
    pub(super) const fn jump(&mut self, by: u64) {
        self.epoch += by;
    }

    /// Returns what a response at `now` says, of a node of `nodes`.
    pub(super) fn told(&mut self, system: &System, now: u64) -> Told {
        let mut left = self.left(now);
        if system.late > 0 {
            left = self.left_before(now, left, system.late * MILLI);
        }
        let more = self.limit * system.over / 100;
        let left = (left + more).min(self.limit.max(left));
        Told {
            limit: self.limit * system.nodes,
            left: left * system.nodes,
            window: self.window,
            refills: (self.kind != Kind::Sliding).then_some(self.kind == Kind::Refill),
            whole_in: self.whole_in(now),
            date: self.epoch + now,
        }
    }

    /// Returns what was left some time before, of the same window.
    fn left_before(&mut self, now: u64, left: u64, age: u64) -> u64 {
        self.past.push_back((now, left));
        let then = now.saturating_sub(age);
        while self.past.len() > 1 && self.past[1].0 <= then {
            self.past.pop_front();
        }
        let (at, old) = self.past[0];
        let number = |at| (at + self.phase) / self.window;
        if self.kind == Kind::Window && number(at) != number(now) {
            return self.limit;
        }
        old
    }
}
