//! A service with one limit, which it may declare.

use core::time::Duration;

use paceline::law::{LimitReport, LimitReports, Reset};

use crate::scene::{Policer, SECOND, Scene};

/// A service.
#[derive(Debug)]
pub(crate) struct Service {
    policer: Policer,
    limit: u64,
    /// Of a bucket: billionths of tokens left. Of a window: tokens used.
    level: u64,
    mark: u64,
}

impl Service {
    pub(crate) fn new(scene: &Scene) -> Self {
        let level = match scene.policer {
            Policer::Bucket(burst) => burst * SECOND,
            Policer::Window(_) => 0,
            Policer::Refill(_) => scene.limit * SECOND,
        };
        Self {
            policer: scene.policer,
            limit: scene.limit,
            level,
            mark: 0,
        }
    }

    /// Answers a request of `weight` at `now`: whether it is done, and what is declared.
    pub(crate) fn answer(&mut self, now: u64, weight: u64) -> (bool, Option<LimitReports>) {
        let limit = self.limit;
        match self.policer {
            Policer::Bucket(burst) => (self.take(now, weight, limit, SECOND, burst), None),
            Policer::Refill(window) => {
                let done = self.take(now, weight, limit, window, limit);
                let left = self.level / SECOND;
                let missing = u128::from(limit * SECOND - self.level);
                let whole = missing * u128::from(window) / u128::from(limit * SECOND);
                let reset = u64::try_from(whole).unwrap_or(0);
                (done, Some(report(left, limit, window, reset, true)))
            }
            Policer::Window(window) => {
                if now / window != self.mark / window {
                    self.level = 0;
                }
                self.mark = now;
                let done = self.level + weight <= limit;
                self.level += if done { weight } else { 0 };
                let reset = window - now % window;
                let left = limit - self.level;
                (done, Some(report(left, limit, window, reset, false)))
            }
        }
    }

    fn take(&mut self, now: u64, weight: u64, limit: u64, window: u64, burst: u64) -> bool {
        let gain = u128::from(limit) * u128::from(now - self.mark) * u128::from(SECOND);
        let gain = u64::try_from(gain / u128::from(window)).unwrap_or(u64::MAX);
        self.level = (self.level + gain).min(burst * SECOND);
        self.mark = now;
        let left = self.level.checked_sub(weight * SECOND);
        self.level = left.unwrap_or(self.level);
        left.is_some()
    }
}

fn report(left: u64, limit: u64, window: u64, reset: u64, refills: bool) -> LimitReports {
    let report = LimitReport::new(left)
        .limit(limit)
        .window(Duration::from_nanos(window))
        .refills(refills)
        .reset(Reset::In(Duration::from_nanos(reset)));
    LimitReports::from(report)
}
