//! What decides when a request may be sent: the limiters that are compared.

use core::cell::Cell;
use core::time::Duration;

use paceline::{Outcome, Reservation, SendPermit, SendRate, Timestamp};

use crate::scene::Scene;
use crate::service::Reply;
use crate::time::MILLI;

/// What an operation does about a failure that may be retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// Asks again at once, for nothing.
    AtOnce,
    /// Pays the retry quota and sleeps.
    Backoff,
    /// Sleeps, and uses up an attempt without a request where [`Law::rejects_retry`] says so.
    Throttled,
}

/// What a waiter holds.
#[derive(Debug)]
pub(crate) enum Seat<'a> {
    Place(Reservation<'a>),
    Slot(u64),
}

/// A client's limiter.
pub(crate) trait Law {
    /// Asks whether a request may go, and if not, in how many nanoseconds to ask again.
    fn ask<'a>(&'a self, now: u64, seat: &mut Option<Seat<'a>>) -> Result<SendPermit, u64>;

    /// As [`ask`](Self::ask), for a request that can wait, if the limiter knows of classes.
    fn ask_behind<'a>(&'a self, now: u64, seat: &mut Option<Seat<'a>>) -> Result<SendPermit, u64> {
        self.ask(now, seat)
    }

    /// Records the outcome of a request.
    fn record(&self, _now: u64, _permit: SendPermit, _reply: Reply) {}

    /// Returns how many requests it allows in a thousand seconds, unless it does not limit; only
    /// for the charts.
    fn allowed(&self, _now: u64) -> Option<u64> {
        None
    }

    /// What a client with this limiter does about failures.
    fn retry(&self) -> Retry {
        Retry::Backoff
    }

    /// Returns whether a retry is not sent, given a number drawn from 0 to 2³² − 1.
    fn rejects_retry(&self, _draw: u32) -> bool {
        false
    }
}

/// No limiter.
pub(crate) struct Unlimited(pub(crate) Retry);

impl Law for Unlimited {
    fn ask(&self, now: u64, _: &mut Option<Seat<'_>>) -> Result<SendPermit, u64> {
        Ok(SendPermit::sent_at(Timestamp::from_nanos(now)))
    }

    fn retry(&self) -> Retry {
        self.0
    }
}

/// A law of the crate.
pub(crate) struct Limited {
    pub(crate) rate: SendRate,
    /// The longest that a waiter with a place in line sleeps. `None`: there is no line, as in the
    /// AWS SDKs; a refused request sleeps and asks again.
    pub(crate) reask: Option<u64>,
    /// Whether requests that can wait are background.
    pub(crate) classes: bool,
}

impl Law for Limited {
    fn ask<'a>(&'a self, now: u64, seat: &mut Option<Seat<'a>>) -> Result<SendPermit, u64> {
        let now = Timestamp::from_nanos(now);
        let Some(reask) = self.reask else {
            return self.rate.try_acquire(now).map_err(nanos);
        };
        match seat.get_or_insert_with(|| Seat::Place(self.rate.reserve(now))) {
            Seat::Place(place) => place.claim(now).map_err(|wait| nanos(wait).min(reask)),
            Seat::Slot(_) => Err(reask),
        }
    }

    fn ask_behind<'a>(&'a self, now: u64, seat: &mut Option<Seat<'a>>) -> Result<SendPermit, u64> {
        if self.classes && seat.is_none() {
            let behind = self.rate.background();
            *seat = Some(Seat::Place(behind.reserve(Timestamp::from_nanos(now))));
        }
        self.ask(now, seat)
    }

    fn record(&self, now: u64, permit: SendPermit, reply: Reply) {
        let outcome = match reply {
            Reply::Throttled(None) => Outcome::Throttled,
            Reply::Throttled(Some(hint)) => Outcome::ThrottledFor(Duration::from_nanos(hint)),
            Reply::Done | Reply::Failed => Outcome::NotThrottled,
        };
        self.rate
            .record(Timestamp::from_nanos(now), permit, outcome);
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::float_arithmetic,
        reason = "a rate for the eye"
    )]
    fn allowed(&self, now: u64) -> Option<u64> {
        let state = self.rate.snapshot(Timestamp::from_nanos(now));
        let rate = (state.fill_rate * 1e3).round() as u64;
        state.enabled.then_some(rate)
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// A fixed rate: each client knows its equal part of the limit, and every change.
pub(crate) struct Told {
    scene: Scene,
    next: Cell<u64>,
}

impl Told {
    pub(crate) fn new(scene: &Scene) -> Self {
        Self {
            scene: *scene,
            next: Cell::new(0),
        }
    }

    /// Takes the next slot.
    fn slot(&self, now: u64) -> u64 {
        let mut turn = self.next.get().max(now);
        if self.scene.limit_at(turn) == 0 {
            let mut later = self.scene.limit.iter();
            let back = later.find(|(ms, limit)| ms * MILLI > turn && *limit > 0);
            turn = back.map_or(u64::MAX >> 1, |(ms, _)| ms * MILLI);
        }
        let limit = self.scene.limit_at(turn).max(1);
        let step = u64::from(self.scene.clients) * 1_000 * MILLI / limit;
        self.next.set(turn + step);
        turn
    }
}

impl Law for Told {
    fn ask(&self, now: u64, seat: &mut Option<Seat<'_>>) -> Result<SendPermit, u64> {
        match seat.get_or_insert_with(|| Seat::Slot(self.slot(now))) {
            Seat::Slot(turn) if *turn > now => Err(*turn - now),
            _ => Ok(SendPermit::sent_at(Timestamp::from_nanos(now))),
        }
    }
}
