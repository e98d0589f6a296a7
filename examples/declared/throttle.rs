//! throttle-net 2.0.0, from its rules (`src/throttle.rs`, `src/wait.rs`, `src/provider.rs`): a
//! bucket of a rate that it is told, which each response corrects.

use core::cell::Cell;

use paceline::law::{LimitReport, LimitReports, Reset};
use paceline::{SendPermit, Timestamp};

use crate::limiter::{Limiter, Reply, Seat, Want};
use crate::number::nanos;
use crate::scene::{Scene, Style};
use crate::time::SECOND;

/// The longest that a response makes it wait.
const LONGEST_PAUSE: u64 = 300 * SECOND;

/// A `Throttle` of the limit that the service has at first, and a window.
#[derive(Debug)]
pub(crate) struct Throttle {
    limit: i128,
    window: i128,
    /// What is there, in windows of a token: less than nothing is owed to places in line.
    held: Cell<i128>,
    filled: Cell<u64>,
    paused: Cell<u64>,
}

impl Throttle {
    pub(crate) fn new(scene: &Scene) -> Self {
        let (limit, window) = (scene.limit_at(0).into(), scene.window_nanos().into());
        Self {
            limit,
            window,
            held: Cell::new(limit * window),
            filled: Cell::new(0),
            paused: Cell::new(0),
        }
    }

    /// Returns whether its profiles of headers have the style of `scene`.
    pub(crate) const fn reads(scene: &Scene) -> bool {
        !matches!(scene.style, Style::Used | Style::Renamed)
    }

    fn refill(&self, now: u64) -> i128 {
        let passed = now - self.filled.replace(now);
        let held = self.held.get() + i128::from(passed) * self.limit;
        self.held.set(held.min(self.limit * self.window));
        self.held.get()
    }
}

impl Limiter for Throttle {
    /// Takes a place unless the seat has one, and returns in how many nanoseconds to ask again if
    /// it is not due, or held up by a pause.
    fn ask(&self, now: u64, want: Want, seat: &mut Seat<'_>) -> Result<SendPermit, u64> {
        if let Some(pause) = self.paused.get().checked_sub(now).filter(|left| *left > 0) {
            return Err(pause);
        }
        let due = *seat.due.get_or_insert_with(|| {
            let left = self.refill(now) - i128::from(want.weight) * self.window;
            self.held.set(left);
            now + u64::try_from((-left).max(0) / self.limit).unwrap_or(u64::MAX)
        });
        if due > now {
            return Err(due - now);
        }
        Ok(SendPermit::sent_at(Timestamp::from_nanos(now)))
    }

    /// Goes down to what a response says is left, and pauses until the reset if that is nothing, or
    /// for as long as it asks.
    fn record(&self, now: u64, _: SendPermit, reply: Reply, reports: &LimitReports) {
        let pause = |nanos: u64| {
            let until = now + nanos.min(LONGEST_PAUSE);
            self.paused.set(self.paused.get().max(until));
        };
        for report in reports.iter() {
            let left = report.remaining();
            let held = self.refill(now);
            self.held.set(held.min(i128::from(left) * self.window));
            if left == 0 {
                pause(until_reset(report, reports));
            }
        }
        if let Reply::Throttled(Some(hint)) = reply {
            pause(hint);
        }
    }
}

/// The time to the reset, by the service's own clock.
fn until_reset(report: &LimitReport, reports: &LimitReports) -> u64 {
    let span = match report.declared_reset() {
        Some(Reset::In(span)) => span,
        Some(Reset::At(time)) => time.saturating_sub(reports.date().unwrap_or(time)),
        _ => return 0,
    };
    nanos(span)
}

#[cfg(test)]
mod tests {
    use paceline::Class;

    use super::*;
    use crate::scene::SCENES;

    /// 600 a minute.
    fn throttle() -> Throttle {
        let scene = SCENES.iter().find(|scene| scene.name == "a7");
        Throttle::new(scene.expect("the scene is there"))
    }

    fn ask_for<'a>(
        throttle: &'a Throttle,
        seat: &mut Seat<'a>,
        now: u64,
        weight: u32,
    ) -> Result<(), u64> {
        let class = Class::Foreground;
        throttle.ask(now, Want { weight, class }, seat).map(drop)
    }

    fn ask(throttle: &Throttle, now: u64, weight: u32) -> Result<(), u64> {
        ask_for(throttle, &mut Seat::default(), now, weight)
    }

    fn hear(throttle: &Throttle, reply: Reply, reports: &LimitReports) {
        throttle.record(0, SendPermit::sent_at(Timestamp::ZERO), reply, reports);
    }

    #[test]
    fn a_place_is_due_when_its_tokens_have_come() {
        let throttle = throttle();
        assert_eq!(ask(&throttle, 0, 600), Ok(()));
        let mut seat = Seat::default();
        assert_eq!(ask_for(&throttle, &mut seat, 0, 10), Err(SECOND));
        assert_eq!(ask(&throttle, 0, 5), Err(SECOND * 3 / 2), "behind it");
        assert_eq!(ask_for(&throttle, &mut seat, SECOND, 10), Ok(()));
    }

    #[test]
    fn a_response_takes_down_and_never_up() {
        let throttle = throttle();
        for left in [3, 100] {
            hear(&throttle, Reply::Done, &LimitReport::new(left).into());
        }
        assert_eq!(ask(&throttle, 0, 3), Ok(()));
        assert_eq!(ask(&throttle, 0, 1), Err(SECOND / 10));
    }

    #[test]
    fn nothing_left_pauses_until_the_reset_at_most_five_minutes() {
        let report = |seconds| {
            let span = core::time::Duration::from_secs(seconds);
            LimitReports::from(LimitReport::new(0).reset(Reset::In(span)))
        };
        let throttle = throttle();
        hear(&throttle, Reply::Throttled(Some(SECOND)), &report(20));
        assert_eq!(ask(&throttle, SECOND, 1), Err(19 * SECOND));
        hear(&throttle, Reply::Throttled(None), &report(1_000));
        assert_eq!(ask(&throttle, SECOND, 1), Err(299 * SECOND));
    }
}
