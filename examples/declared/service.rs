//! A service that counts what is used of its limit, and declares what is left.

use alloc::collections::VecDeque;
use core::time::Duration;

use fastrand::Rng;
use paceline::law::{LimitName, LimitReport, LimitReports, Reset};

use crate::limiter::Reply;
use crate::policer::{Counting as Policer, Policer as Count};
use crate::scene::{Fault, Scene, Style};
use crate::time::{MILLI, SECOND};

/// The service's clock when the run begins, in nanoseconds since 1970: on a whole window of every
/// scene. The clients' own clocks play no part.
const EPOCH: u64 = 1_800_000_000 * SECOND;

/// A service.
#[derive(Debug)]
pub(crate) struct Service {
    scene: Scene,
    count: Count,
    /// The limit that is not told.
    untold: Count,
    /// What was left, and when.
    history: VecDeque<(u64, u64)>,
}

/// The window of the limit that is not told.
const UNTOLD: u64 = 10 * SECOND;

impl Service {
    pub(crate) fn new(scene: &Scene) -> Self {
        let (window, full) = (scene.window_nanos(), scene.limit_at(0));
        Self {
            scene: *scene,
            count: Count::new(scene.policer, window, None, full),
            untold: Count::new(Policer::Window, UNTOLD, None, 0),
            history: VecDeque::new(),
        }
    }

    /// Answers a request of `weight` that comes at `now`, and says what is left.
    pub(crate) fn answer(&mut self, now: u64, weight: u64, rng: &mut Rng) -> (Reply, LimitReports) {
        let left = self.count.look(now, self.scene.limit_at(now));
        let most = match self.scene.fault {
            Fault::Untold(most) | Fault::Unhinted(most) => most,
            _ => u64::MAX >> 1,
        };
        let untold = self.untold.look(now, most) == 0;
        let throttled = left < weight || untold;
        if !throttled || (self.scene.fault == Fault::Refused && left >= weight) {
            self.untold.take(weight);
            self.count.take(weight);
        }
        let reply = if throttled {
            Reply::Throttled(self.hint(now, weight, untold))
        } else {
            Reply::Done
        };
        (reply, self.reports(now, rng))
    }

    /// Returns when it is worth coming back, in whole seconds, if the service says so.
    fn hint(&self, now: u64, weight: u64, untold: bool) -> Option<u64> {
        if matches!(self.scene.fault, Fault::Unhinted(_) | Fault::End) {
            return None;
        }
        let wait = if untold {
            self.untold.until(1, 1)
        } else {
            self.count.until(weight, self.scene.limit_at(now))
        };
        Some(wait.div_ceil(SECOND).max(1) * SECOND)
    }

    /// Returns what the headers of a response say.
    fn reports(&mut self, now: u64, rng: &mut Rng) -> LimitReports {
        let (limit, window) = (self.scene.limit_at(now), self.scene.window_nanos());
        let mut left = self.count.left(limit);
        self.history.push_back((now, left));
        match self.scene.fault {
            Fault::Missing if rng.u8(0..3) == 0 => return LimitReports::new(),
            Fault::End if now >= self.scene.end() / 2 => return LimitReports::new(),
            Fault::Factor => left = left * 6 / 5,
            Fault::More(until) if now / SECOND < until => left += limit / 5,
            Fault::Noise => {
                let noise = limit * 3 / 100;
                left = (left + rng.u64(0..=2 * noise))
                    .saturating_sub(noise)
                    .min(limit);
            }
            Fault::Lag => {
                let old = now.saturating_sub(3 * SECOND);
                while self.history.len() > 1 && self.history[1].0 <= old {
                    self.history.pop_front();
                }
                // What was counted three seconds ago of this window.
                let (at, then) = self.history[0];
                let begun = self.scene.policer == Policer::Window && at / window != now / window;
                left = if begun { limit } else { then };
            }
            _ => {}
        }
        let whole = self.count.until(limit, limit);
        let seconds = Reset::In(Duration::from_secs(whole.div_ceil(SECOND)));
        let stamp = Duration::from_secs((EPOCH + now + whole).div_ceil(SECOND));
        let dimension = self.scene.dimension();
        let millis = Reset::In(Duration::from_millis(whole.div_ceil(MILLI)));
        let report = LimitReport::new(left).dimension(dimension).limit(limit);
        let told = report.window(Duration::from_secs(self.scene.window));
        let report = match self.scene.style {
            Style::Silent => return LimitReports::new(),
            Style::Span => report.reset(millis),
            Style::Told => told.reset(millis),
            Style::Seconds => report.reset(seconds),
            Style::Ietf => told.reset(seconds),
            Style::Renamed => {
                let name = format!("policy {}", left % 7);
                told.reset(seconds).policy(LimitName::new(&name))
            }
            Style::Epoch => report.reset(Reset::At(stamp)),
            Style::Stamp => report.reset(Reset::At(stamp)).refills(true),
            Style::Used => told,
        };
        let date = Duration::from_secs((EPOCH + now) / SECOND);
        LimitReports::from(report).with_date(date)
    }

    /// Returns what may be used from `from` to `to`, both at whole windows.
    pub(crate) fn offered(scene: &Scene, from: u64, to: u64, whole_run: bool) -> u64 {
        let windows = (from..to).step_by(scene.window_nanos() as usize);
        let sum: u64 = windows.map(|at| scene.limit_at(at)).sum();
        let full_bucket = scene.policer == Policer::Refill && whole_run;
        sum + if full_bucket { scene.limit_at(0) } else { 0 }
    }
}
