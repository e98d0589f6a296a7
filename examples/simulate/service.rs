//! The service: it counts requests, and throttles those above its limit.

use crate::limiter::Reply;
use crate::policer::{Counting, Policer as Count};
use crate::scene::{Hint, Policer, Scene};
use crate::time::{MILLI, SECOND};

/// A service.
#[derive(Debug)]
pub(crate) struct Service {
    scene: Scene,
    count: Count,
    /// Up to when the changes of the limit have been counted.
    at: u64,
}

impl Service {
    /// Creates the service of a scene.
    pub(crate) fn new(scene: &Scene) -> Self {
        let (counting, burst) = match scene.policer {
            Policer::Bucket(burst) => (Counting::Refill, Some(burst)),
            Policer::Window => (Counting::Window, None),
            Policer::Sliding => (Counting::Sliding, None),
        };
        Self {
            scene: *scene,
            count: Count::new(counting, SECOND, burst, scene.first_level()),
            at: 0,
        }
    }

    /// Answers a request that comes at `now`.
    pub(crate) fn answer(&mut self, now: u64, rng: &mut fastrand::Rng) -> Reply {
        // What came in while the limit was another one is counted at that one.
        let (scene, begun) = (self.scene, core::mem::replace(&mut self.at, now));
        let changes = scene.limit.iter().map(|(ms, _)| ms * MILLI);
        let mut held = begun;
        for change in changes.filter(|at| *at > begun && *at < now) {
            self.count.look(change, scene.limit_at(held));
            held = change;
        }
        let limit = match scene.policer {
            Policer::Bucket(_) => scene.limit_at(held),
            Policer::Window | Policer::Sliding => scene.limit_at(now),
        };
        if !self.count.admits(now, limit) {
            return Reply::Throttled(self.hint(now));
        }
        if rng.u64(0..1_000) < scene.errors_permille {
            return Reply::Failed;
        }
        Reply::Done
    }

    fn hint(&self, now: u64) -> Option<u64> {
        match self.scene.hint {
            Hint::None => None,
            Hint::Second => Some(SECOND),
            Hint::Return if self.scene.limit_at(now) > 0 => None,
            Hint::Return => {
                let back = self.scene.back(now)?;
                Some((back - now).div_ceil(SECOND) * SECOND)
            }
        }
    }
}
