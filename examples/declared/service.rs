//! A service that counts what is used of its limit, and declares what is left.

use alloc::collections::VecDeque;
use core::time::Duration;

use fastrand::Rng;
use paceline::law::{Dimension, LimitReport, LimitReports, Reset};

use crate::scene::{Fault, MILLI, Policer, SECOND, Scene, Style};

/// The service's clock when the run begins, in nanoseconds since 1970: on a whole window of every
/// scene. The clients' own clocks play no part.
const EPOCH: u64 = 1_800_000_000 * SECOND;

/// What a service answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Response {
    /// `None` if it was done, else how long the client should wait.
    pub(crate) throttled: Option<u64>,
    pub(crate) reports: LimitReports,
}

/// A service.
#[derive(Debug)]
pub(crate) struct Service {
    scene: Scene,
    /// Of a refill: billionths of tokens left. Of a window: tokens used.
    level: u64,
    mark: u64,
    recent: VecDeque<(u64, u64)>,
    /// The window of ten seconds of the limit that is not told, and what it was used.
    untold: (u64, u64),
    /// What was left, and when.
    history: VecDeque<(u64, u64)>,
}

impl Service {
    pub(crate) fn new(scene: &Scene) -> Self {
        let level = match scene.policer {
            Policer::Refill => scene.limit_at(0) * SECOND,
            Policer::Window | Policer::Sliding => 0,
        };
        Self {
            scene: *scene,
            level,
            mark: 0,
            recent: VecDeque::new(),
            untold: (0, 0),
            history: VecDeque::new(),
        }
    }

    /// Brings the count up to `now`, and returns what is left.
    fn left(&mut self, now: u64) -> u64 {
        let (limit, window) = (self.scene.limit_at(now), self.scene.window_nanos());
        match self.scene.policer {
            Policer::Refill => {
                let gain = u128::from(limit) * u128::from(now - self.mark) * u128::from(SECOND)
                    / u128::from(window);
                self.level = (self.level + gain as u64).min(limit * SECOND);
                self.mark = now;
                self.level / SECOND
            }
            Policer::Window => {
                if now / window != self.mark / window {
                    self.level = 0;
                }
                self.mark = now;
                limit.saturating_sub(self.level)
            }
            Policer::Sliding => {
                while let Some((at, weight)) = self.recent.front().copied() {
                    if at + window > now {
                        break;
                    }
                    self.level -= weight;
                    self.recent.pop_front();
                }
                limit.saturating_sub(self.level)
            }
        }
    }

    /// Answers a request of `weight` that comes at `now`.
    pub(crate) fn answer(&mut self, now: u64, weight: u64, rng: &mut Rng) -> Response {
        let left = self.left(now);
        let untold = match self.scene.fault {
            Fault::Untold(most) => {
                if now / (10 * SECOND) != self.untold.0 {
                    self.untold = (now / (10 * SECOND), 0);
                }
                self.untold.1 >= most
            }
            _ => false,
        };
        let throttled = left < weight || untold;
        let charged = !throttled || (self.scene.fault == Fault::Refused && left >= weight);
        if charged {
            self.untold.1 += weight;
            match self.scene.policer {
                Policer::Refill => self.level -= weight * SECOND,
                Policer::Window => self.level += weight,
                Policer::Sliding => {
                    self.level += weight;
                    self.recent.push_back((now, weight));
                }
            }
        }
        let hint = throttled.then(|| self.hint(now, weight, untold));
        Response {
            throttled: hint,
            reports: self.reports(now, rng),
        }
    }

    /// Returns when it is worth coming back, in whole seconds.
    fn hint(&self, now: u64, weight: u64, untold: bool) -> u64 {
        let window = self.scene.window_nanos();
        let wait = match self.scene.policer {
            _ if untold => 10 * SECOND - now % (10 * SECOND),
            Policer::Refill => {
                let lacking = (weight * SECOND).saturating_sub(self.level);
                lacking * self.scene.window / self.scene.limit_at(now).max(1)
            }
            Policer::Window => window - now % window,
            Policer::Sliding => {
                let oldest = self.recent.front().map_or(now, |(at, _)| *at);
                (oldest + window).saturating_sub(now)
            }
        };
        wait.div_ceil(SECOND).max(1) * SECOND
    }

    /// Returns what the headers of a response say.
    fn reports(&mut self, now: u64, rng: &mut Rng) -> LimitReports {
        let (limit, window) = (self.scene.limit_at(now), self.scene.window_nanos());
        let mut left = self.left(now);
        self.history.push_back((now, left));
        match self.scene.fault {
            Fault::Missing if rng.u8(0..3) == 0 => return LimitReports::new(),
            Fault::Factor => left = left * 6 / 5,
            Fault::More => left += limit / 5,
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
        let whole = match self.scene.policer {
            Policer::Refill => {
                let used = (limit * SECOND).saturating_sub(self.level);
                (u128::from(used) * u128::from(window) / u128::from(limit * SECOND)) as u64
            }
            Policer::Window => window - now % window,
            Policer::Sliding => {
                let oldest = self.recent.front().map_or(now, |(at, _)| *at);
                (oldest + window).saturating_sub(now)
            }
        };
        let seconds = Reset::In(Duration::from_secs(whole.div_ceil(SECOND)));
        let stamp = Duration::from_secs((EPOCH + now + whole).div_ceil(SECOND));
        let dimension = if self.scene.weight > 1 {
            Dimension::Tokens
        } else {
            Dimension::Requests
        };
        let left = LimitReport::new(left).dimension(dimension);
        let report = match self.scene.style {
            Style::Silent => return LimitReports::new(),
            Style::Span => {
                let millis = whole.div_ceil(MILLI);
                left.limit(limit)
                    .reset(Reset::In(Duration::from_millis(millis)))
            }
            Style::Told => left
                .limit(limit)
                .window(Duration::from_secs(self.scene.window))
                .reset(Reset::In(Duration::from_millis(whole.div_ceil(MILLI)))),
            Style::Seconds => left.limit(limit).reset(seconds),
            Style::Ietf => left
                .limit(limit)
                .window(Duration::from_secs(self.scene.window))
                .reset(seconds),
            Style::Epoch => left.limit(limit).reset(Reset::At(stamp)),
            Style::Stamp => left.limit(limit).reset(Reset::At(stamp)).refills(true),
            Style::Used => left
                .limit(limit)
                .window(Duration::from_secs(self.scene.window)),
        };
        let date = Duration::from_secs((EPOCH + now) / SECOND);
        LimitReports::from(report).with_date(date)
    }

    /// Returns what may be used from `from` to `to`, both at whole windows.
    pub(crate) fn offered(scene: &Scene, from: u64, to: u64, whole_run: bool) -> u64 {
        let window = scene.window_nanos();
        let mut sum = 0;
        let mut at = from;
        while at < to {
            sum += scene.limit_at(at);
            at += window;
        }
        if scene.policer == Policer::Refill && whole_run {
            sum += scene.limit_at(0);
        }
        sum
    }
}
