//! Limiters that others have published, from their rules. Each is the rule alone, in the
//! simulator's queue and with its retries.

#![expect(
    clippy::float_arithmetic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "their rules are in floating point"
)]

use core::cell::Cell;

use paceline::{SendPermit, Timestamp};

use crate::law::Law;
use crate::scene::{MILLI, Scene};
use crate::service::Reply;

const SECOND: u64 = 1_000 * MILLI;

/// A rule that is looked at by the first response after a second.
pub(crate) trait Rule: Copy {
    const NAME: &'static str;
    const MEANS: &'static str;
    const FIRST: Self;

    fn rate(&self) -> f64;
    /// How many tokens the bucket holds.
    fn burst(&self) -> f64;
    /// A second or more has passed, so many of them by `now`.
    fn tick(&mut self, now: u64, seconds: f64, of: &Second);
    /// A request was throttled.
    fn throttled(&mut self, _now: u64) {}
}

/// What came back since the last look.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Second {
    sent: f64,
    done: f64,
    throttled: f64,
}

/// A client that goes by a rule.
#[derive(Debug)]
pub(crate) struct Rival<R: Copy> {
    rule: Cell<R>,
    second: Cell<Second>,
    /// When the rule was looked at last.
    looked: Cell<u64>,
    tokens: Cell<f64>,
    filled: Cell<u64>,
}

/// How often waiters ask at least, and at most.
const ASK: (u64, u64) = (MILLI, 20 * MILLI);

impl<R: Rule + 'static> Law for Rival<R> {
    type Seat<'a> = ();
    const NAME: &'static str = R::NAME;
    const MEANS: &'static str = R::MEANS;

    fn new(_: &Scene) -> Self {
        Self {
            rule: Cell::new(R::FIRST),
            second: Cell::new(Second::default()),
            looked: Cell::new(0),
            tokens: Cell::new(R::FIRST.burst()),
            filled: Cell::new(0),
        }
    }

    fn ask(&self, now: u64, _: &mut Option<()>) -> Result<SendPermit, u64> {
        let rule = self.rule.get();
        let seconds = (now - self.filled.replace(now)) as f64 / SECOND as f64;
        let most = rule.burst().max(1.0);
        let tokens = (self.tokens.get() + rule.rate() * seconds).min(most);
        if tokens < 1.0 {
            self.tokens.set(tokens);
            let wait = (1.0 - tokens) / rule.rate() * SECOND as f64;
            return Err((wait as u64).clamp(ASK.0, ASK.1));
        }
        self.tokens.set(tokens - 1.0);
        let mut second = self.second.get();
        second.sent += 1.0;
        self.second.set(second);
        Ok(SendPermit::sent_at(Timestamp::from_nanos(now)))
    }

    fn record(&self, now: u64, _: SendPermit, reply: Reply) {
        let (mut rule, mut second) = (self.rule.get(), self.second.get());
        let throttled = matches!(reply, Reply::Throttled(_));
        if throttled {
            second.throttled += 1.0;
        } else {
            second.done += 1.0;
        }
        if now >= self.looked.get() + SECOND {
            let seconds = (now - self.looked.replace(now)) as f64 / SECOND as f64;
            rule.tick(now, seconds, &second);
            second = Second::default();
        }
        if throttled {
            rule.throttled(now);
        }
        self.rule.set(rule);
        self.second.set(second);
    }

    fn allowed(&self, _: u64) -> Option<u64> {
        Some((self.rule.get().rate() * 1e3) as u64)
    }
}

/// Polars, August 2026 (PR 28591, `http_rate_limit.rs`): search from 1,000/s by doubling, cut to
/// 0.7 of the smaller of the rate and what was delivered, hold 2 s, double up to where it was cut,
/// then a tenth of that each second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Polars {
    rate: f64,
    /// What is delivered, four fifths of it in the last second.
    delivered: f64,
    /// The rate that was cut, if one was.
    anchor: Option<f64>,
    cut_at: u64,
}

impl Polars {
    const FIRST_RATE: f64 = 1_000.0;
    const LOWEST: f64 = 10.0;
    const HIGHEST: f64 = 50_000.0;
}

impl Rule for Polars {
    const NAME: &'static str = "Polars";
    const MEANS: &'static str = "the limiter of Polars' object stores";
    const FIRST: Self = Self {
        rate: Self::FIRST_RATE,
        delivered: 0.0,
        anchor: None,
        cut_at: 0,
    };

    fn rate(&self) -> f64 {
        self.rate
    }

    fn burst(&self) -> f64 {
        (self.rate / 100.0).min(512.0)
    }

    fn throttled(&mut self, now: u64) {
        if self.anchor.is_some() && now < self.cut_at + SECOND {
            return;
        }
        let (anchor, left) = if self.delivered > 0.0 {
            (self.rate.min(self.delivered.max(Self::LOWEST)), 0.7)
        } else {
            (self.rate, 0.5)
        };
        self.rate = (anchor * left).max(Self::LOWEST);
        self.anchor = Some(anchor);
        self.cut_at = now;
    }

    fn tick(&mut self, now: u64, seconds: f64, of: &Second) {
        if of.done > 0.0 {
            let kept = if self.delivered > 0.0 { 0.2 } else { 0.0 };
            self.delivered = kept * self.delivered + (1.0 - kept) * of.done / seconds;
        }
        if of.sent == 0.0 {
            let above = (self.rate - Self::FIRST_RATE).max(0.0);
            self.rate -= above * (1.0 - 0.9_f64.powi(seconds as i32));
            return;
        }
        if of.sent < 0.8 * self.rate * seconds {
            return;
        }
        self.rate = match self.anchor {
            None if of.throttled > 0.0 => self.rate,
            None => self.rate * 2.0,
            Some(_) if now <= self.cut_at + 2 * SECOND => self.rate,
            Some(anchor) if self.rate < anchor => (self.rate * 2.0).min(anchor),
            Some(anchor) => self.rate + (0.1 * anchor).max(5.0),
        }
        .min(Self::HIGHEST);
    }
}

/// Lance, March 2026 (`lance_aimd_*`): from 2,000/s, half after a second with a throttle, else
/// 300/s more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lance(f64);

impl Rule for Lance {
    const NAME: &'static str = "Lance";
    const MEANS: &'static str = "the limiter of Lance's object stores";
    const FIRST: Self = Self(2_000.0);

    fn rate(&self) -> f64 {
        self.0
    }

    fn burst(&self) -> f64 {
        100.0
    }

    fn tick(&mut self, _: u64, _: f64, of: &Second) {
        let next = if of.throttled > 0.0 {
            self.0 / 2.0
        } else if of.done > 0.0 {
            self.0 + 300.0
        } else {
            self.0
        };
        self.0 = next.clamp(1.0, 5_000.0);
    }
}
