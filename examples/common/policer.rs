//! How a service counts what it allows: a bucket that refills, a window of the clock, or any span.

use alloc::collections::VecDeque;
use core::time::Duration;

use paceline::law::{LimitReport, Reset};

/// A token in the unit that a bucket counts in, and a second in nanoseconds.
const TOKEN: i128 = 1_000_000_000;

/// When what was used comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counting {
    /// All the time.
    Refill,
    /// A window's worth at once, at whole windows of the clock, into a bucket.
    Steps,
    /// All at once, at whole windows of the clock.
    Window,
    /// All at once, one window after the first use that began it.
    FirstUse,
    /// One window after it was used.
    Sliding,
}

/// A count of what is used of a limit. Times are in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Policer {
    counting: Counting,
    window: u64,
    /// What a bucket holds, if not a window's worth.
    burst: Option<u64>,
    /// Billionths of tokens: of a bucket those that are left, which may be less than none; else
    /// those that are used.
    level: i128,
    at: u64,
    /// When the window began that the first use began.
    begun: Option<u64>,
    recent: VecDeque<(u64, u64)>,
}

impl Policer {
    /// Creates the count of a limit per `window`; a bucket is full of `level` tokens.
    pub(crate) fn new(counting: Counting, window: u64, burst: Option<u64>, level: u64) -> Self {
        let refills = matches!(counting, Counting::Refill | Counting::Steps);
        Self {
            counting,
            window,
            burst,
            level: if refills {
                i128::from(level) * TOKEN
            } else {
                0
            },
            at: 0,
            begun: None,
            recent: VecDeque::new(),
        }
    }

    /// Brings the count up to `now`, over a time in which `limit` held, and returns what is left.
    pub(crate) fn look(&mut self, now: u64, limit: u64) -> u64 {
        let begun = self.at;
        self.at = begun.max(now);
        match self.counting {
            Counting::Refill => {
                let passed = i128::from(self.at - begun);
                let gain = i128::from(limit) * passed * TOKEN / i128::from(self.window);
                let full = i128::from(self.burst.unwrap_or(limit)) * TOKEN;
                self.level = (self.level + gain).min(full);
            }
            Counting::Steps => {
                let steps = self.at / self.window - begun / self.window;
                let gain = i128::from(limit) * i128::from(steps) * TOKEN;
                let full = i128::from(self.burst.unwrap_or(limit)) * TOKEN;
                self.level = (self.level + gain).min(full);
            }
            Counting::Window if now / self.window != begun / self.window => self.level = 0,
            Counting::Window => {}
            Counting::FirstUse => {
                if self.begun.is_some_and(|begun| begun + self.window <= now) {
                    (self.begun, self.level) = (None, 0);
                }
            }
            Counting::Sliding => {
                while let Some((at, tokens)) = self.recent.front().copied() {
                    if at + self.window > now {
                        break;
                    }
                    self.level -= i128::from(tokens) * TOKEN;
                    self.recent.pop_front();
                }
            }
        }
        self.left(limit)
    }

    /// Returns what is left of `limit`, in whole tokens.
    pub(crate) fn left(&self, limit: u64) -> u64 {
        let left = match self.counting {
            Counting::Refill | Counting::Steps => self.level,
            Counting::Window | Counting::FirstUse | Counting::Sliding => {
                i128::from(limit) * TOKEN - self.level
            }
        };
        u64::try_from(left.max(0) / TOKEN).unwrap_or(u64::MAX)
    }

    /// Returns what is left of `limit`, until when, and how it counts, as a service declares it.
    pub(crate) fn report(&self, limit: u64) -> LimitReport {
        let reset = Duration::from_nanos(self.until(limit, limit));
        LimitReport::new(self.left(limit))
            .limit(limit)
            .window(Duration::from_nanos(self.window))
            .refills(self.counting == Counting::Refill)
            .reset(Reset::In(reset))
    }

    /// Takes tokens, or gives them back to a bucket, which is in order again with the next look.
    pub(crate) fn take(&mut self, tokens: impl Into<i128>) {
        let tokens = tokens.into();
        if self.counting == Counting::FirstUse && tokens > 0 {
            self.begun.get_or_insert(self.at);
        }
        if matches!(self.counting, Counting::Refill | Counting::Steps) {
            self.level -= tokens * TOKEN;
        } else {
            self.level += tokens * TOKEN;
        }
        if let (Counting::Sliding, Ok(tokens)) = (self.counting, u64::try_from(tokens)) {
            self.recent.push_back((self.at, tokens));
        }
    }

    /// Takes one token if there is one.
    pub(crate) fn admits(&mut self, now: u64, limit: u64) -> bool {
        let admitted = self.look(now, limit) > 0;
        self.take(admitted);
        admitted
    }

    /// Returns how long it takes until a bucket has `tokens`, or a window something.
    pub(crate) fn until(&self, tokens: u64, limit: u64) -> u64 {
        match self.counting {
            Counting::Refill => {
                let lacking = (i128::from(tokens) * TOKEN - self.level).max(0);
                let span = lacking * i128::from(self.window) / (i128::from(limit.max(1)) * TOKEN);
                u64::try_from(span).unwrap_or(u64::MAX)
            }
            Counting::Window | Counting::Steps => self.window - self.at % self.window,
            Counting::FirstUse => {
                let begun = self.begun.unwrap_or(self.at);
                (begun + self.window).saturating_sub(self.at)
            }
            Counting::Sliding => {
                let oldest = self.recent.front().map_or(self.at, |(at, _)| *at);
                (oldest + self.window).saturating_sub(self.at)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Counting, Policer};

    const SECOND: u64 = 1_000_000_000;

    fn bucket(burst: u64) -> Policer {
        Policer::new(Counting::Refill, SECOND, Some(burst), burst)
    }

    #[test]
    fn a_token_is_back_after_one_period_and_not_a_nanosecond_before() {
        let mut policer = bucket(1);
        let admitted = [0, 333_333_333, 333_333_334].map(|now| policer.admits(now, 3));
        assert_eq!(admitted, [true, false, true]);
    }

    #[test]
    fn refusals_in_between_cost_no_part_of_a_token() {
        let mut policer = bucket(1_000);
        let count = (0..2_000).filter(|_| policer.admits(0, 100)).count();
        let times = (0..=10_000).map(|step| step * 997_000);
        let more = times.filter(|now| policer.admits(*now, 100)).count();
        assert_eq!((count, more), (1_000, 997)); // 9.97 s at 100/s
        assert_eq!(policer.look(86_400 * SECOND, 100), 1_000);
    }

    #[test]
    fn a_time_that_went_backwards_mints_nothing() {
        let mut policer = bucket(1);
        let times = [10_000, 9_000, 10_000, 10_001].map(|millis| millis * (SECOND / 1_000));
        let admitted = times.map(|now| policer.admits(now, 1_000));
        assert_eq!(admitted, [true, false, false, true]);
    }

    #[test]
    fn a_debt_is_paid_before_anything_is_left() {
        let mut policer = Policer::new(Counting::Refill, 60 * SECOND, None, 600);
        policer.take(660_u64);
        let waits = [0, 10, 600].map(|tokens| policer.until(tokens, 600) / SECOND);
        assert_eq!((policer.left(600), waits), (0, [6, 7, 66]));
        assert_eq!(policer.look(7 * SECOND, 600), 10);
        policer.take(-10_000_i64);
        assert_eq!(policer.look(7 * SECOND, 600), 600);
    }

    #[test]
    fn a_window_begins_with_the_clock_and_a_sliding_one_with_each_request() {
        let admitted = |counting| {
            let mut policer = Policer::new(counting, SECOND, None, 0);
            let times = [900, 950, 1_000, 1_100, 1_899, 1_900].map(|millis| millis * 1_000_000);
            times.map(|now| policer.admits(now, 2))
        };
        let (yes, no) = (true, false);
        assert_eq!(admitted(Counting::FirstUse), [yes, yes, no, no, no, yes]);
        assert_eq!(admitted(Counting::Window), [yes, yes, yes, yes, no, no]);
        assert_eq!(admitted(Counting::Sliding), [yes, yes, no, no, no, yes]);
    }

    #[test]
    fn a_window_from_first_use_begins_with_the_use_after_its_end() {
        let mut policer = Policer::new(Counting::FirstUse, 60 * SECOND, None, 0);
        let times = [5, 6, 64, 65, 90, 124, 125, 190].map(|at| at * SECOND);
        let admitted = times.map(|now| policer.admits(now, 2));
        let (yes, no) = (true, false);
        assert_eq!(admitted, [yes, yes, no, yes, yes, no, yes, yes]);
        assert_eq!(policer.until(1, 2), 60 * SECOND);
    }

    #[test]
    fn a_bucket_filled_in_steps_gets_a_windows_worth_at_each_whole_window() {
        let mut policer = Policer::new(Counting::Steps, 60 * SECOND, Some(50), 50);
        let count =
            |policer: &mut Policer, now| (0..99).filter(|_| policer.admits(now, 40)).count();
        let counts = [0, 59, 60, 119, 300].map(|at| count(&mut policer, at * SECOND));
        assert_eq!(counts, [50, 0, 40, 0, 50]);
        assert_eq!(policer.until(1, 40), 60 * SECOND);
    }

    #[test]
    fn a_log_of_an_hour_forgets_each_request_one_hour_after_it() {
        let mut policer = Policer::new(Counting::Sliding, 3_600 * SECOND, None, 0);
        let times = [0, 1_800, 1_801, 3_599, 3_600, 3_601, 5_400].map(|at| at * SECOND);
        let admitted = times.map(|now| policer.admits(now, 2));
        let (yes, no) = (true, false);
        assert_eq!(admitted, [yes, yes, no, no, yes, no, yes]);
    }
}
