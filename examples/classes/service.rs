//! A service with one limit, which it may declare.

use paceline::law::LimitReports;

use crate::policer::Policer;
use crate::scene::Scene;
use crate::time::SECOND;

/// A service.
#[derive(Debug)]
pub(crate) struct Service {
    scene: Scene,
    count: Policer,
}

impl Service {
    pub(crate) fn new(scene: &Scene) -> Self {
        let (window, full) = (scene.window * SECOND, scene.burst.unwrap_or(scene.limit));
        Self {
            scene: *scene,
            count: Policer::new(scene.counting, window, scene.burst, full),
        }
    }

    /// Answers a request of `weight` at `now`: whether it is done, and what is declared.
    pub(crate) fn answer(&mut self, now: u64, weight: u64) -> (bool, Option<LimitReports>) {
        let limit = self.scene.limit;
        let done = self.count.look(now, limit) >= weight;
        if done {
            self.count.take(weight);
        }
        let report = || LimitReports::from(self.count.report(limit));
        (done, self.scene.declares().then(report))
    }
}
