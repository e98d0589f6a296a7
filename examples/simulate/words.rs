//! The third sketch as a limiter can keep it: in three words of 128 bits, with times and rates as
//! coarse as they fit, growth in steps of a sixteenth of a calm, and idle time by the window.

#![expect(
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a sketch of a law"
)]

use crate::cycles::Law;
use crate::limiter::Reply;

/// Answers until growth is felt, at one a second and more.
const CALM: f64 = 40.0;
/// The part of a calm in which growth makes a step.
const STEP: f64 = 16.0;
const SHORT: f64 = 1.5;
const WHOLE: f64 = 2.0;
const GROWTH: f64 = 0.01;
const KNOCKS: f64 = 400.0;
const LONGEST: f64 = 150.0;
const FIRST: f64 = 60.0;
/// What a bucket holds, in seconds at its rate, and one token at least.
const BURST: f64 = 0.05;

/// Rounds to so many significant bits.
fn coarse(value: f64, bits: i32) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    let unit = 2_f64.powi(value.log2().floor() as i32 + 1 - bits);
    (value / unit).round() * unit
}

#[derive(Debug, Default)]
pub(crate) struct Words {
    // The state, 49 bits and a time: since when it is open or shut, by the last answer that showed
    // it; the rate, 18 significant bits and 6 of exponent; while shut how far that had grown (6),
    // the knocks (6), and the wait for the next (10).
    since: f64,
    shut: bool,
    rate: Option<f64>,
    grown: f64,
    knocks: i32,
    wait: f64,
    // The reading: when the window began (46), the count then (45), failures since (16), and
    // calms (16).
    began: Option<f64>,
    base: u64,
    failed: u64,
    calms: f64,
    // The cycle: when it began (46), the count then (45), the calm (10), and how long those before
    // count for (10).
    start: f64,
    from: u64,
    calm: f64,
    before: f64,
    // Not the law's: the count, the line, and the mean trip.
    sum: u64,
    due: f64,
    trip: f64,
}

impl Words {
    fn growth(&self) -> (f64, f64) {
        (
            GROWTH.max(1.0 / self.calm),
            1.0 + 2.0 * (self.calm / CALM).min(1.0),
        )
    }

    fn grown(&self) -> f64 {
        let (growth, power) = self.growth();
        1.0 + growth * self.calms.powf(power)
    }

    fn rate(&self) -> Option<f64> {
        Some(self.rate? * self.grown())
    }

    /// Ends the window if it is over.
    fn turn(&mut self, now: f64) {
        let Some(rate) = self.rate().filter(|_| !self.shut) else {
            return;
        };
        let count = (self.sum - self.base) as f64;
        if count < (self.calm / STEP).max(1.0) {
            return;
        }
        let idle = now - self.began.unwrap_or(now) - count / rate;
        if idle > 1.0 / rate {
            self.start += idle;
            let (growth, power) = self.growth();
            if self.calms > 1.0 {
                let mean = 1.0 + growth * self.calms.powf(power) / (power + 1.0);
                self.rate = self.rate.map(|rate| coarse(rate * mean.min(2.0), 18));
            }
            self.calms = 0.0;
        } else {
            let done = (self.sum - self.base - self.failed) as f64;
            self.calms += (done / self.calm * 1024.0).round() / 1024.0;
        }
        (self.began, self.base, self.failed) = (Some(now), self.sum, 0);
    }

    /// The wait for the next knock after a refusal: the first one, or longer than the last.
    fn next_wait(&self, now: f64, trip: f64) -> f64 {
        let n = (self.sum - self.from) as f64;
        let wait = match self.knocks {
            0 => {
                let own = if n > 0.0 {
                    (now - self.start) / n
                } else {
                    FIRST
                };
                self.rate
                    .map_or(own.min(FIRST), |rate| 1.0 / rate)
                    .max(trip / 2.0)
            }
            1 => self.wait * 2.0,
            _ => self.wait * (1.0 + 1.0 / (1.0 + n / KNOCKS)),
        };
        coarse(wait.min(LONGEST.max((now - self.start) / 32.0)), 8)
    }

    fn opens(&mut self, now: f64, sent: f64) {
        self.sum += 1;
        let n = ((self.sum - 1 - self.from) as f64).max(1.0);
        let at = f64::midpoint(self.since - (now - sent), sent).max(self.start);
        let span = (at - self.start).max(1e-3);
        let old = self.rate.unwrap_or(0.0);
        let kept = (1.0 - n.max(old * span) / (2.0 * self.calm.max(1.0))).max(0.0);
        let (count, time) = (n + kept * old * self.before, span + kept * self.before);
        let mut mean = count / time;
        if n <= 2.0 {
            mean = mean.max(1.0 / (sent - self.since + (now - sent)).max(1e-3));
        }
        mean = mean.max(old / 2.0);
        let (own, last) = (n / span, old * self.grown);
        let rate = match self.rate {
            Some(rate) if n >= 20.0 && own > 1.3 * rate && last > own => {
                own * (last / own).powf(0.8)
            }
            Some(_) => mean.min(last),
            None => mean,
        };
        self.before = coarse(time, 7);
        self.rate = Some(coarse(rate, 18));
        let calm = CALM * (1.0 + rate * self.trip);
        let share = (calm * rate.min(1.0).powf(0.8)).max(1.0);
        self.calm = coarse(share.max((count / SHORT).min(calm)).max(count / WHOLE), 7);
        (self.start, self.from) = (at, self.sum - 1);
        (self.began, self.base, self.failed, self.calms) = (Some(now), self.sum - 1, 0, 0.0);
        (self.shut, self.since, self.due) = (false, now, now + 1.0 / rate);
    }
}

impl Law for Words {
    fn ask(&mut self, now: f64) -> Result<(), f64> {
        if self.shut {
            if now < self.due {
                return Err(self.due - now);
            }
            self.due = now + self.wait;
            return Ok(());
        }
        let Some(rate) = self.rate() else {
            if self.began.is_none_or(|began| now - began > 60.0) {
                (self.began, self.start, self.from) = (Some(now), now, self.sum);
            }
            return Ok(());
        };
        self.due = self.due.max(now - BURST.max(1.0 / rate));
        if self.due > now {
            return Err(self.due - now);
        }
        self.due += 1.0 / rate;
        Ok(())
    }

    fn hear(&mut self, now: f64, sent: f64, reply: Reply) {
        self.trip += (now - sent - self.trip) / 8.0;
        let hint = match reply {
            Reply::Throttled(hint) => hint.map_or(0.0, |hint| hint as f64 / 1e9),
            Reply::Done if self.shut && sent > self.since => return self.opens(now, sent),
            Reply::Done | Reply::Failed => {
                self.sum += 1;
                self.failed += u64::from(reply == Reply::Failed);
                return self.turn(now);
            }
        };
        if self.shut && sent > self.since {
            self.knocks += 1;
        } else if !self.shut && sent >= self.since {
            (self.shut, self.knocks, self.grown) = (true, 0, coarse(self.grown(), 6));
        } else {
            // Another one that was sent before the first refusal was heard shows how close
            // requests come.
            if self.shut && self.rate.is_none() && self.knocks == 0 {
                self.wait = coarse(self.wait.min((now - self.start).max((now - sent) / 2.0)), 8);
                self.due = self.since + self.wait.max(hint);
            }
            return;
        }
        self.since = now;
        self.wait = self.next_wait(now, now - sent).max(hint);
        self.due = now + self.wait;
    }
}

#[cfg(test)]
mod tests {
    use super::{Words, coarse};
    use crate::cycles::Law as _;
    use crate::limiter::Reply;

    #[test]
    fn significant_bits_are_kept() {
        for (value, bits, kept) in [
            (1.0 / 3.0, 4, 11.0 / 32.0),
            (1_023.0, 9, 1_024.0),
            (5.0, 3, 5.0),
            (0.0, 8, 0.0),
        ] {
            assert!((coarse(value, bits) - kept).abs() < 1e-12, "{value}");
        }
    }

    /// Ten in ten seconds, shut from then on, and opened by the first knock after 60 s.
    #[test]
    fn the_rate_after_a_cycle_is_what_it_accepted_by_its_length() {
        let mut law = Words::default();
        for second in 0..=10 {
            let now = f64::from(second);
            assert_eq!(law.ask(now), Ok(()));
            let refused = Reply::Throttled(None);
            law.hear(now, now, if second < 10 { Reply::Done } else { refused });
        }
        let (mut now, mut refused) = (10.0, 10.0);
        while now < 60.0 {
            if let Err(wait) = law.ask(now) {
                now += wait;
            } else {
                law.hear(now, now, Reply::Throttled(None));
                refused = now;
            }
        }
        law.hear(now, now, Reply::Done);
        let mean = 10.0 / f64::midpoint(refused, now);
        assert_eq!((law.shut, law.rate), (false, Some(coarse(mean, 18))));
    }
}
