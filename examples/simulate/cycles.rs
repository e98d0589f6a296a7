//! A law that counts over whole cycles alone, from one opening of a shut limit to the next, in
//! floating point. `crates/core/src/law/paced/README.md` derives it.

#![expect(
    clippy::float_arithmetic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a sketch of a law"
)]

use core::cell::RefCell;

use paceline::{SendPermit, Timestamp, law::LimitReports};

use crate::limiter::{Limiter, Reply, Seat, Want};

/// A law. Times are in seconds.
pub(crate) trait Law {
    /// May a request be sent at `now`? Else how long until another look.
    fn ask(&mut self, now: f64) -> Result<(), f64>;

    /// Takes in the answer to a request that was sent at `sent`.
    fn hear(&mut self, now: f64, sent: f64, reply: Reply);
}

/// A client that goes by such a law.
#[derive(Debug, Default)]
pub(crate) struct Cycles<L>(RefCell<L>);

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

impl<L: Law> Limiter for Cycles<L> {
    fn ask(&self, now: u64, _: Want, _: &mut Seat<'_>) -> Result<SendPermit, u64> {
        match self.0.borrow_mut().ask(seconds(now)) {
            Ok(()) => Ok(SendPermit::sent_at(Timestamp::from_nanos(now))),
            Err(wait) => Err((wait * 1e9) as u64 + 1),
        }
    }

    fn record(&self, now: u64, permit: SendPermit, reply: Reply, _: &LimitReports) {
        let sent = seconds(permit.time().as_nanos());
        self.0.borrow_mut().hear(seconds(now), sent, reply);
    }
}

/// The mean of round trips, a tenth of each.
#[derive(Debug)]
struct Trip(f64);

impl Trip {
    fn hear(&mut self, trip: f64) {
        self.0 += (trip - self.0) / 10.0;
    }
}

/// A rate, and the cycle that is under way.
#[derive(Debug)]
struct Cycle {
    /// A second; none: no refusal yet.
    rate: Option<f64>,
    /// Answers in which growth comes to be felt.
    calm: f64,
    due: f64,
    open: bool,
    /// The last opening, moved on by what was idle, and what was accepted since.
    start: Option<f64>,
    accepted: f64,
    /// The send that opened: older refusals say nothing.
    opened_by: f64,
    /// When the refusal was heard that shut it: older sends say nothing of an opening.
    heard: f64,
    /// The send that was refused last.
    refused: f64,
    knock: f64,
    gap: f64,
    trip: Trip,
}

impl Default for Cycle {
    fn default() -> Self {
        Self {
            rate: None,
            calm: 1.0,
            due: 0.0,
            open: true,
            start: None,
            accepted: 0.0,
            opened_by: -1.0,
            heard: 0.0,
            refused: 0.0,
            knock: 0.0,
            gap: 0.0,
            trip: Trip(0.05),
        }
    }
}

/// Parts of the law, each of which can be left out to see what it is for.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(crate) enum Part {
    /// Idle time enters no mean, and ends growth.
    Idle = 1,
    /// Failures that are no throttles grow nothing.
    Errors,
    /// The mean of a short cycle counts those before it.
    Memory,
    /// A cycle halves at most.
    Half,
    /// After a rise the next rate lies near the one that was refused.
    Leap,
    /// What few answers grow is a line, not a cube.
    Line,
    /// Calm is shorter at low rates.
    Share,
    /// Calm grows with what is in flight.
    Flight,
    /// Calm grows with what a cycle accepted.
    Count,
    /// Knocks come the closer the more a cycle accepted.
    Knocks,
    /// The longest gap grows with the cycle.
    Late,
    /// The first wait of a client without a rate is its own spacing.
    Own,
    /// A cycle of two answers or fewer is no slower than its last wait.
    Few,
    /// After a long dark, growth is felt sooner.
    Dark,
    /// Not a part: half of what a cycle accepted is saved up while idle.
    Saved,
}

/// The law. It leaves out a [`Part`], or none: 0.
#[derive(Debug, Default)]
pub(crate) struct Third<const WITHOUT: u8 = 0> {
    cycle: Cycle,
    /// Answers since the opening, or since it was idle.
    busy: f64,
    /// Sends, while there is no rate.
    sends: f64,
    /// Accepted in the cycles before, and how long they took.
    before: (f64, f64),
    saved: f64,
}

/// Answers until growth is felt, at one a second and more.
const CALM: f64 = 40.0;
/// Of the answers of a cycle, the part in which growth is felt: of one below [`CALM`], of any.
const SHORT: f64 = 1.5;
const WHOLE: f64 = 2.0;
/// The least growth in a calm.
const GROWTH: f64 = 0.01;
/// Answers in a cycle, with which the gaps between knocks grow by half.
const KNOCKS: f64 = 400.0;
/// The longest between two knocks, and the longest first wait.
const LONGEST: f64 = 150.0;
const FIRST: f64 = 60.0;

impl<const WITHOUT: u8> Third<WITHOUT> {
    const fn has(part: Part) -> bool {
        WITHOUT != part as u8
    }

    /// What a calm adds to the rate, the power of its growth, and how many calms have passed.
    fn growth(&self) -> (f64, f64, f64) {
        let calm = self.cycle.calm;
        let line = if Self::has(Part::Line) {
            (calm / CALM).min(1.0)
        } else {
            1.0
        };
        (GROWTH.max(1.0 / calm), 1.0 + 2.0 * line, self.busy / calm)
    }

    fn rate(&self) -> Option<f64> {
        let (growth, power, calms) = self.growth();
        Some(self.cycle.rate? * (1.0 + growth * calms.powf(power)))
    }

    /// The rate was not used: of what it grew, the mean is kept.
    fn rests(&mut self) {
        let (growth, power, calms) = self.growth();
        if calms > 1.0 {
            let mean = 1.0 + growth * calms.powf(power) / (power + 1.0);
            self.cycle.rate = self.cycle.rate.map(|rate| rate * mean.min(2.0));
        }
        self.busy = 0.0;
    }

    fn opens(&mut self, now: f64, sent: f64) {
        let last = self.rate();
        let it = &mut self.cycle;
        let n = it.accepted.max(1.0);
        let at = f64::midpoint(it.refused, sent);
        let span = (at - it.start.unwrap_or(at)).max(1e-3);
        let lasted = n.max(it.rate.unwrap_or(0.0) * span);
        let kept = if Self::has(Part::Memory) {
            (1.0 - lasted / (2.0 * it.calm)).max(0.0)
        } else {
            0.0
        };
        let (count, time) = (n + kept * self.before.0, span + kept * self.before.1);
        let mut mean = count / time;
        if n <= 2.0 && Self::has(Part::Few) {
            mean = mean.max(1.0 / (sent - it.refused).max(1e-3));
        }
        if Self::has(Part::Half) {
            mean = mean.max(it.rate.unwrap_or(0.0) / 2.0);
        }
        let dark = at - it.heard > span / 5.0 && it.calm >= CALM / 2.0;
        let own = n / span;
        let rate = match (it.rate, last) {
            (Some(rate), Some(last))
                if n >= 20.0 && own > 1.3 * rate && last > own && Self::has(Part::Leap) =>
            {
                own * (last / own).powf(0.8)
            }
            (Some(_), Some(last)) => mean.min(last),
            _ => mean,
        };
        self.before = (rate * time, time);
        self.saved = if n > 2.0 { n.min(it.calm) } else { 0.0 };
        it.rate = Some(rate);
        let flight = if Self::has(Part::Flight) {
            rate * it.trip.0
        } else {
            0.0
        };
        let share = if Self::has(Part::Share) {
            rate.min(1.0).powf(0.8)
        } else {
            1.0
        };
        let calm = CALM * (1.0 + flight);
        it.calm = (calm * share).max(1.0);
        if Self::has(Part::Count) {
            it.calm = it.calm.max((count / SHORT).min(calm)).max(count / WHOLE);
        }
        if dark && Self::has(Part::Dark) {
            it.calm = (it.calm / 4.0).max(1.0);
        }
        (it.open, it.start, it.accepted, it.opened_by) = (true, Some(at), 1.0, sent);
        self.busy = 1.0;
        self.cycle.due = now + 1.0 / self.rate().unwrap_or(rate);
    }
}

impl<const WITHOUT: u8> Law for Third<WITHOUT> {
    fn ask(&mut self, now: f64) -> Result<(), f64> {
        let rate = self.rate();
        let it = &mut self.cycle;
        let start = *it.start.get_or_insert(now);
        if !it.open {
            if now < it.knock {
                return Err(it.knock - now);
            }
            it.knock = now + it.gap;
            let more = if Self::has(Part::Knocks) {
                1.0 / (1.0 + it.accepted / KNOCKS)
            } else {
                0.5
            };
            let late = if Self::has(Part::Late) {
                (now - start) / 32.0
            } else {
                0.0
            };
            it.gap = (it.gap * (1.0 + more)).min(LONGEST.max(late));
            return Ok(());
        }
        let Some(rate) = rate else {
            if now - start > 60.0 {
                (it.start, it.accepted, self.sends) = (Some(now), 0.0, 0.0);
            }
            self.sends += 1.0;
            return Ok(());
        };
        let saved = if Self::has(Part::Saved) {
            0.0
        } else {
            self.saved / 2.0
        };
        let idle = now - (1.0 + saved) / rate - it.due;
        if idle > 0.0 {
            it.due += idle;
            if Self::has(Part::Idle) {
                it.start = Some(start + idle);
                self.rests();
            }
        }
        if self.cycle.due > now {
            return Err(self.cycle.due - now);
        }
        self.cycle.due += 1.0 / self.rate().unwrap_or(rate);
        Ok(())
    }

    fn hear(&mut self, now: f64, sent: f64, reply: Reply) {
        let rate = self.rate();
        let it = &mut self.cycle;
        it.trip.hear(now - sent);
        let hint = match reply {
            Reply::Throttled(hint) => hint.map(|hint| now + seconds(hint)),
            Reply::Done if !it.open && sent > it.heard => return self.opens(now, sent),
            Reply::Done | Reply::Failed => {
                it.accepted += 1.0;
                if it.open && (reply == Reply::Done || !Self::has(Part::Errors)) {
                    self.busy += 1.0;
                }
                return;
            }
        };
        if it.open && sent >= it.opened_by {
            (it.open, it.heard, it.refused) = (false, now, sent);
            // The first of all requests has no spacing yet, which is the longest first wait.
            let own = (now - it.start.unwrap_or(now)) / (self.sends - 1.0);
            let first = if Self::has(Part::Own) { FIRST } else { 1.0 };
            let step = rate.map_or(own.clamp(0.0, first), |rate| 1.0 / rate);
            it.gap = step.max(it.trip.0 / 2.0);
            it.knock = now + it.gap;
            it.gap *= 2.0;
        } else if !it.open && sent > it.heard {
            it.refused = it.refused.max(sent);
        } else {
            return;
        }
        if let Some(until) = hint {
            it.knock = it.knock.max(until);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Law, Third};
    use crate::limiter::Reply;

    const THROTTLED: Reply = Reply::Throttled(None);

    /// Sends ten in ten seconds, is shut from then on, and knocks until 60 s.
    fn minute(law: &mut impl Law) -> f64 {
        (0..10).for_each(|second| {
            let now = f64::from(second);
            assert_eq!(law.ask(now), Ok(()));
            law.hear(now, now, Reply::Done);
        });
        assert_eq!(law.ask(10.0), Ok(()));
        law.hear(10.0, 10.0, THROTTLED);
        let mut now = 10.0;
        loop {
            match law.ask(now) {
                Err(wait) => now += wait,
                Ok(()) if now < 60.0 => law.hear(now, now, THROTTLED),
                Ok(()) => break,
            }
        }
        law.hear(now, now, Reply::Done);
        now
    }

    #[test]
    fn the_rate_after_a_cycle_is_what_it_accepted_by_its_length() {
        // Own spacing 1 s, and then the gaps grow by 1 + 1/(1 + 10/400).
        let mut third = Third::<0>::default();
        let now = minute(&mut third);
        let opened = f64::midpoint(third.cycle.refused, now);
        assert_eq!(third.cycle.rate, Some(10.0 / opened));
    }

    /// A client that knows 1/s since `now`.
    fn known(now: f64) -> Third {
        let mut law = Third::default();
        law.cycle.rate = Some(1.0);
        law.cycle.calm = 40.0;
        (law.cycle.start, law.cycle.due) = (Some(now), now);
        law
    }

    #[test]
    fn idle_time_and_failures_grow_nothing() {
        let mut law = known(0.0);
        for second in 0..40 {
            assert_eq!(law.ask(f64::from(second)), Ok(()));
            law.hear(f64::from(second), f64::from(second), Reply::Failed);
        }
        assert_eq!((law.rate(), law.cycle.accepted), (Some(1.0), 40.0));
        assert_eq!(law.ask(3_600.0), Ok(()));
        assert_eq!((law.rate(), law.cycle.start), (Some(1.0), Some(3_559.0)));
    }

    #[test]
    fn a_calm_of_answers_grows_a_fortieth_and_twice_that_eight_times_as_much() {
        let mut law = known(0.0);
        for answers in [40, 80] {
            while law.busy < f64::from(answers) {
                law.hear(0.0, 0.0, Reply::Done);
            }
            let calms = f64::from(answers) / 40.0;
            let error = law.rate().expect("it is known") - (1.0 + calms.powi(3) / 40.0);
            assert!(error.abs() < 1e-12, "{error}");
        }
    }

    #[test]
    fn a_hint_is_the_time_of_the_next_knock() {
        let mut law = known(0.0);
        for second in 0..30 {
            law.hear(f64::from(second), f64::from(second), Reply::Done);
        }
        law.hear(30.0, 30.0, Reply::Throttled(Some(30_000_000_000)));
        assert_eq!(law.ask(31.0), Err(29.0));
        assert_eq!(law.ask(60.0), Ok(()));
        law.hear(60.0, 60.0, Reply::Done);
        assert_eq!((law.cycle.start, law.cycle.open), (Some(45.0), true));
    }
}
