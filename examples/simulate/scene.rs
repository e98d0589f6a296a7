//! What a scene is: a service, its clients, and what goes on between them.

use crate::counts::BIN;
use crate::time::MILLI;

/// How the service decides whom it throttles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policer {
    /// A token bucket, full at the start, that holds this many requests.
    Bucket(u64),
    /// As many as the limit in each whole second.
    Window,
    /// As many as the limit in every span of one second.
    Sliding,
}

/// What each client wants to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// So many workers, each of which begins an operation when it has finished one.
    Closed(u32),
    /// So many operations per second, however the earlier ones ended.
    Open(u64),
}

/// What the service says with a throttle about when to come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hint {
    /// Nothing.
    None,
    /// Always "in one second", as many services do.
    Second,
    /// When the limit is above zero again, in whole seconds; nothing while it is.
    Return,
}

/// One scene. Rates are per second, for all clients together unless said otherwise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene {
    /// What it is called on the command line.
    pub(crate) name: &'static str,
    /// What happens in it.
    pub(crate) title: &'static str,
    /// How the service counts.
    pub(crate) policer: Policer,
    /// From which millisecond on which limit holds.
    pub(crate) limit: &'static [(u64, u64)],
    /// How many clients there are.
    pub(crate) clients: u32,
    /// Whether every second client is one of the AWS SDKs, beside those under test.
    pub(crate) mixed: bool,
    /// Milliseconds from one client's start to the next one's.
    pub(crate) stagger_ms: u64,
    /// What each client wants.
    pub(crate) load: Load,
    /// How many requests a second of each client someone waits for, beside its load, which can
    /// wait. 0: there is one kind of request.
    pub(crate) people: u64,
    /// Milliseconds of wanting, then of not wanting anything. `(0, 0)`: always.
    pub(crate) pulse_ms: (u64, u64),
    /// The mean round trip in microseconds, of every second client `far` times that.
    pub(crate) trip_us: u64,
    /// How much further away every second client is.
    pub(crate) far: u64,
    /// A round trip lies within so many percent of the mean.
    pub(crate) jitter_percent: u64,
    /// Whether a throttle uses up no attempt and no quota: a pipeline that may lose nothing.
    pub(crate) patient: bool,
    /// How many of a thousand requests that were not throttled fail otherwise, and may be retried.
    pub(crate) errors_permille: u64,
    /// What comes with a throttle.
    pub(crate) hint: Hint,
    /// The capacity of each client's retry quota.
    pub(crate) quota: u32,
    /// The longest that a waiter sleeps before asking again.
    pub(crate) reask_ms: u64,
    /// How long it goes on.
    pub(crate) seconds: u64,
}

impl Scene {
    /// Returns the limit at `now` nanoseconds.
    pub(crate) fn limit_at(&self, now: u64) -> u64 {
        let past = self.limit.iter().rev().find(|(ms, _)| ms * MILLI <= now);
        past.map_or(0, |(_, limit)| *limit)
    }

    /// Returns when after `now` the limit is above zero again.
    pub(crate) fn back(&self, now: u64) -> Option<u64> {
        let mut later = self.limit.iter().map(|(ms, limit)| (ms * MILLI, *limit));
        later
            .find(|(at, limit)| *at > now && *limit > 0)
            .map(|(at, _)| at)
    }

    /// Returns the mean round trip of `client`.
    pub(crate) fn trip(&self, client: u32) -> u64 {
        let factor = if client % 2 == 1 { self.far } else { 1 };
        self.trip_us * 1_000 * factor
    }

    /// Returns the first instant, from `now` on, at which a client wants to send.
    pub(crate) fn wanting(&self, now: u64) -> u64 {
        let (on, off) = (self.pulse_ms.0 * MILLI, self.pulse_ms.1 * MILLI);
        if off == 0 || now % (on + off) < on {
            return now;
        }
        now - now % (on + off) + on + off
    }

    /// Returns what the service's bucket holds at the start: all it can, unless nothing is allowed
    /// then.
    pub(crate) fn first_level(&self) -> u64 {
        match self.policer {
            Policer::Bucket(burst) if self.limit_at(0) > 0 => burst,
            _ => 0,
        }
    }

    /// Returns from which bin to which each limit holds that allows something.
    pub(crate) fn phases(&self) -> impl Iterator<Item = (u64, u64)> {
        let starts = self.limit.iter().map(|(ms, _)| *ms);
        let ends = starts.skip(1).chain([self.seconds * 1_000]);
        let open = self
            .limit
            .iter()
            .zip(ends)
            .filter(|((_, limit), _)| *limit > 0);
        open.map(|((from, _), to)| (from * MILLI / BIN, to * MILLI / BIN))
    }

    /// Returns how many requests an oracle that knows the limit gets through in each millisecond's
    /// end.
    ///
    /// It sends as much as is wanted and allowed, and nothing else. Millionths of requests.
    pub(crate) fn ideal(&self) -> Vec<u64> {
        let mut level = self.first_level() * MICRO;
        let (mut backlog, mut sum) = (0, 0);
        let first = self.trip(0) / 2;
        let sums = (0..self.seconds * 1_000).map(|ms| {
            let now = ms * MILLI;
            level = self.refilled(level, ms);
            if now >= first {
                let wanted = self.demand(now - first);
                // A worker that was not served waits with its one request; a client that is open
                // has more.
                let asked = match self.load {
                    Load::Open(_) => backlog + wanted,
                    Load::Closed(_) => wanted,
                };
                let served = asked.min(level);
                (backlog, level, sum) = (asked - served, level - served, sum + served);
            }
            sum
        });
        sums.collect()
    }

    /// Returns what the oracle may use, after `level` was left of it.
    fn refilled(&self, level: u64, ms: u64) -> u64 {
        let gain = self.limit_at(ms * MILLI) * 1_000;
        match self.policer {
            Policer::Bucket(burst) => (level + gain).min((burst * MICRO).max(gain)),
            Policer::Window | Policer::Sliding if ms % 1_000 == 0 => gain * 1_000,
            Policer::Window | Policer::Sliding => level.min(gain * 1_000),
        }
    }

    /// Returns the millionths of requests that all clients want in the millisecond from `now` on.
    fn demand(&self, now: u64) -> u64 {
        if self.wanting(now) != now {
            return 0;
        }
        let stagger = self.stagger_ms * MILLI;
        let wants = |client: u32| {
            let load = match self.load {
                Load::Closed(workers) => u64::from(workers) * MILLI * MICRO / self.trip(client),
                Load::Open(rate) => rate * 1_000,
            };
            load + self.people * 1_000
        };
        if stagger == 0 {
            let pairs = u64::from(self.clients / 2) * (wants(0) + wants(1));
            return pairs + u64::from(self.clients % 2) * wants(0);
        }
        let here = (0..self.clients).filter(|client| u64::from(*client) * stagger <= now);
        here.map(wants).sum()
    }
}

/// A million.
pub(crate) const MICRO: u64 = 1_000_000;
