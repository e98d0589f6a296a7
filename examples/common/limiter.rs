//! What decides when a request may be sent: the limiters that the simulations compare.

use core::time::Duration;

use paceline::{
    Class, ControlLaw, Outcome, Reservation, SendPermit, SendRate, Timestamp, law::LimitReports,
};

use super::number::nanos;

/// What a service answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// It did what was asked.
    Done,
    /// It failed, for another reason.
    Failed,
    /// It throttled the request, and may have said for how many nanoseconds.
    Throttled(Option<u64>),
}

/// What an operation does about a failure that may be retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// Asks again at once, for nothing.
    AtOnce,
    /// Pays the retry quota and sleeps.
    Backoff,
    /// Sleeps, and uses up an attempt without a request where [`Limiter::rejects_retry`] says so.
    Throttled,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    pub(crate) weight: u32,
    /// Background only counts for limiters that know of classes.
    pub(crate) class: Class,
}

/// What a request has that waits for its turn.
#[derive(Debug, Default)]
pub(crate) struct Seat<'a> {
    pub(crate) place: Option<Reservation<'a>>,
    pub(crate) due: Option<u64>,
}

/// A client's limiter.
pub(crate) trait Limiter {
    /// Asks whether a request may go, and if not, in how many nanoseconds to ask again.
    fn ask<'a>(&'a self, now: u64, want: Want, seat: &mut Seat<'a>) -> Result<SendPermit, u64>;

    /// Takes in what came back: what the service declares first, then the outcome.
    fn record(&self, _now: u64, _permit: SendPermit, _reply: Reply, _reports: &LimitReports) {}

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
#[derive(Debug)]
pub(crate) struct Unlimited(pub(crate) Retry);

impl Limiter for Unlimited {
    fn ask(&self, now: u64, _: Want, _: &mut Seat<'_>) -> Result<SendPermit, u64> {
        Ok(SendPermit::sent_at(Timestamp::from_nanos(now)))
    }

    fn retry(&self) -> Retry {
        self.0
    }
}

/// A law of the crate.
#[derive(Debug)]
pub(crate) struct Limited {
    pub(crate) rate: SendRate,
    /// The longest that a waiter with a place in line sleeps; 0: an eighth of its wait. `None`:
    /// there is no line, as in the AWS SDKs; a refused request sleeps and asks again.
    pub(crate) reask: Option<u64>,
    /// Whether requests that can wait are background.
    pub(crate) classes: bool,
}

impl Limited {
    fn reserve(&self, at: Timestamp, want: Want) -> Reservation<'_> {
        // Laws that know nothing of weights count requests.
        let weight = match self.rate.law() {
            ControlLaw::Declared => want.weight,
            _ => 1,
        };
        let place = match want.class {
            Class::Background if self.classes => self.rate.background().reserve_n(at, weight),
            _ => self.rate.reserve_n(at, weight),
        };
        place.unwrap_or_else(|_| self.rate.reserve(at))
    }
}

impl Limiter for Limited {
    fn ask<'a>(&'a self, now: u64, want: Want, seat: &mut Seat<'a>) -> Result<SendPermit, u64> {
        let at = Timestamp::from_nanos(now);
        let Some(reask) = self.reask else {
            return self.rate.try_acquire(at).map_err(nanos);
        };
        let place = seat.place.get_or_insert_with(|| self.reserve(at, want));
        place.claim(at).map_err(|wait| match reask {
            0 => nanos(wait) / 8 + 1_000_000,
            longest => nanos(wait).min(longest),
        })
    }

    fn record(&self, now: u64, permit: SendPermit, reply: Reply, reports: &LimitReports) {
        let at = Timestamp::from_nanos(now);
        self.rate.observe(at, permit, reports);
        let outcome = match reply {
            Reply::Throttled(None) => Outcome::Throttled,
            Reply::Throttled(Some(hint)) => Outcome::ThrottledFor(Duration::from_nanos(hint)),
            Reply::Done => Outcome::NotThrottled,
            Reply::Failed => Outcome::Failed,
        };
        self.rate.record(at, permit, outcome);
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
