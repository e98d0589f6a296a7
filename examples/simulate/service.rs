//! The service: it counts requests, and throttles those above its limit.

use alloc::collections::VecDeque;

use crate::scene::{Hint, MILLI, Policer, Scene};

/// What the service answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// It did what was asked.
    Done,
    /// It failed, for another reason.
    Failed,
    /// It throttled the request, and may have said for how many nanoseconds.
    Throttled(Option<u64>),
}

/// A service.
#[derive(Debug)]
pub(crate) struct Service {
    scene: Scene,
    /// Of a bucket: billionths of requests left. Of a window: requests so far.
    level: u64,
    /// Of a bucket: when it was filled last. Of a window: its second.
    mark: u64,
    /// When the requests of the last second came.
    recent: VecDeque<u64>,
}

const SECOND: u64 = 1_000 * MILLI;

impl Service {
    /// Creates the service of a scene.
    pub(crate) fn new(scene: &Scene) -> Self {
        let level = scene.first_level() * SECOND;
        Self {
            scene: *scene,
            level,
            mark: 0,
            recent: VecDeque::new(),
        }
    }

    /// Answers a request that comes at `now`.
    pub(crate) fn answer(&mut self, now: u64, rng: &mut fastrand::Rng) -> Reply {
        let limit = self.scene.limit_at(now);
        let allowed = match self.scene.policer {
            Policer::Bucket(burst) => self.take(now, burst),
            Policer::Window => self.count(now, limit),
            Policer::Sliding => self.slide(now, limit),
        };
        if !allowed {
            return Reply::Throttled(self.hint(now));
        }
        if rng.u64(0..1_000) < self.scene.errors_permille {
            return Reply::Failed;
        }
        Reply::Done
    }

    fn take(&mut self, now: u64, burst: u64) -> bool {
        // What came in while the limit was another one is counted at that one.
        let begun = self.mark;
        let changes = self.scene.limit.iter().map(|(ms, _)| ms * MILLI);
        let changes = changes.filter(|at| *at > begun && *at < now);
        for end in changes.chain([now]) {
            let gain = self.scene.limit_at(self.mark) * (end - self.mark);
            self.level = (self.level + gain).min(burst * SECOND);
            self.mark = end;
        }
        let left = self.level.checked_sub(SECOND);
        self.level = left.unwrap_or(self.level);
        left.is_some()
    }

    fn count(&mut self, now: u64, limit: u64) -> bool {
        if now / SECOND != self.mark {
            (self.mark, self.level) = (now / SECOND, 0);
        }
        let allowed = self.level < limit;
        self.level += u64::from(allowed);
        allowed
    }

    fn slide(&mut self, now: u64, limit: u64) -> bool {
        while self.recent.front().is_some_and(|at| at + SECOND <= now) {
            self.recent.pop_front();
        }
        let allowed = (self.recent.len() as u64) < limit;
        if allowed {
            self.recent.push_back(now);
        }
        allowed
    }

    fn hint(&self, now: u64) -> Option<u64> {
        match self.scene.hint {
            Hint::None => None,
            Hint::Second => Some(SECOND),
            Hint::Return if self.scene.limit_at(now) > 0 => None,
            Hint::Return => {
                let mut later = self
                    .scene
                    .limit
                    .iter()
                    .map(|(ms, limit)| (ms * MILLI, limit));
                let (back, _) = later.find(|(at, limit)| *at > now && **limit > 0)?;
                Some((back - now).div_ceil(SECOND) * SECOND)
            }
        }
    }
}
