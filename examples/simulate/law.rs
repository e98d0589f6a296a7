//! What decides when a request may be sent: the limiters that are compared.

use core::cell::Cell;
use core::marker::PhantomData;
use core::time::Duration;

use paceline::{
    ControlLaw, Outcome, Reservation, SendPermit, SendRate, Timestamp, law::PacedSettings,
};

use crate::scene::{MILLI, Scene};
use crate::service::Reply;

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

/// A client's limiter.
pub(crate) trait Law: Sized {
    /// What a waiter holds.
    type Seat<'a>
    where
        Self: 'a;

    /// Its name in the tables.
    const NAME: &'static str;
    /// The same for people who do not know the name, in a few words.
    const MEANS: &'static str = "";
    /// What its clients do about failures.
    const RETRY: Retry = Retry::Backoff;

    /// What a client with this limiter does about failures.
    fn retry(&self) -> Retry {
        Self::RETRY
    }

    /// Returns whether a retry is not sent, given a number drawn from 0 to 2³² − 1.
    fn rejects_retry(&self, _draw: u32) -> bool {
        false
    }

    /// Creates the limiter of one client.
    fn new(scene: &Scene) -> Self;

    /// Asks whether a request may go, and if not, in how many nanoseconds to ask again.
    fn ask<'a>(&'a self, now: u64, seat: &mut Option<Self::Seat<'a>>) -> Result<SendPermit, u64>;

    /// Records the outcome of a request.
    fn record(&self, now: u64, permit: SendPermit, reply: Reply);

    /// Returns how many requests it allows in a thousand seconds, unless it does not limit; only
    /// for the charts.
    fn allowed(&self, _now: u64) -> Option<u64> {
        None
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

fn outcome(reply: Reply) -> Outcome {
    match reply {
        Reply::Throttled(None) => Outcome::Throttled,
        Reply::Throttled(Some(hint)) => Outcome::ThrottledFor(Duration::from_nanos(hint)),
        Reply::Done | Reply::Failed => Outcome::NotThrottled,
    }
}

/// No limiter, no backoff, no quota.
#[derive(Debug)]
pub(crate) struct Nothing;

impl Law for Nothing {
    type Seat<'a> = ();
    const NAME: &'static str = "nothing";
    const MEANS: &'static str = "no limit, asks again at once";
    const RETRY: Retry = Retry::AtOnce;

    fn new(_: &Scene) -> Self {
        Self
    }

    fn ask(&self, now: u64, _: &mut Option<()>) -> Result<SendPermit, u64> {
        Ok(SendPermit::sent_at(Timestamp::from_nanos(now)))
    }

    fn record(&self, _: u64, _: SendPermit, _: Reply) {}
}

/// Backoff and retry quota alone.
#[derive(Debug)]
pub(crate) struct Backoff;

impl Law for Backoff {
    type Seat<'a> = ();
    const NAME: &'static str = "backoff only";
    const MEANS: &'static str = "no limit, waits before a retry";

    fn new(_: &Scene) -> Self {
        Self
    }

    fn ask(&self, now: u64, _: &mut Option<()>) -> Result<SendPermit, u64> {
        Ok(SendPermit::sent_at(Timestamp::from_nanos(now)))
    }

    fn record(&self, _: u64, _: SendPermit, _: Reply) {}
}

fn send_rate(law: ControlLaw) -> SendRate {
    SendRate::new(law, Timestamp::ZERO)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::float_arithmetic,
    reason = "a rate for the eye"
)]
fn allowed(rate: &SendRate, now: u64) -> Option<u64> {
    let state = rate.snapshot(Timestamp::from_nanos(now));
    state
        .enabled
        .then_some((state.fill_rate * 1e3).round() as u64)
}

/// The published law as the AWS SDKs use it: who is refused sleeps and asks again.
#[derive(Debug)]
pub(crate) struct AwsAsking(SendRate);

impl Law for AwsAsking {
    type Seat<'a> = ();
    const NAME: &'static str = "Aws, asking again";
    const MEANS: &'static str = "the published limiter, by polling";

    fn new(_: &Scene) -> Self {
        Self(send_rate(ControlLaw::Aws))
    }

    fn ask(&self, now: u64, _: &mut Option<()>) -> Result<SendPermit, u64> {
        self.0
            .try_acquire(Timestamp::from_nanos(now))
            .map_err(nanos)
    }

    fn record(&self, now: u64, permit: SendPermit, reply: Reply) {
        self.0
            .record(Timestamp::from_nanos(now), permit, outcome(reply));
    }

    fn allowed(&self, now: u64) -> Option<u64> {
        allowed(&self.0, now)
    }
}

/// A law of the crate with its settings.
pub(crate) trait Kind {
    const NAME: &'static str;
    const MEANS: &'static str;
    fn rate() -> SendRate;
}

/// A law of the crate, with places in line.
#[derive(Debug)]
pub(crate) struct InLine<K> {
    rate: SendRate,
    reask: u64,
    kind: PhantomData<K>,
}

/// The published law.
#[derive(Debug)]
pub(crate) struct Published;

impl Kind for Published {
    const NAME: &'static str = "Aws, in line";
    const MEANS: &'static str = "the published limiter, in a queue";
    fn rate() -> SendRate {
        send_rate(ControlLaw::Aws)
    }
}

/// The paced law.
#[derive(Debug)]
pub(crate) struct Usual;

impl Kind for Usual {
    const NAME: &'static str = "Paced";
    const MEANS: &'static str = "our limiter, in a queue";
    fn rate() -> SendRate {
        send_rate(ControlLaw::Paced)
    }
}

/// The paced law for a limit that many clients share.
#[derive(Debug)]
pub(crate) struct Shared;

impl Kind for Shared {
    const NAME: &'static str = "Paced, shared";
    const MEANS: &'static str = "our limiter, set for a shared limit";
    fn rate() -> SendRate {
        SendRate::paced(PacedSettings::shared(), Timestamp::ZERO)
    }
}

/// The paced law for a client that has its limit alone.
#[derive(Debug)]
pub(crate) struct Exclusive;

impl Kind for Exclusive {
    const NAME: &'static str = "Paced, exclusive";
    const MEANS: &'static str = "our limiter, set for one client alone";
    fn rate() -> SendRate {
        SendRate::paced(PacedSettings::exclusive(), Timestamp::ZERO)
    }
}

/// The paced law as a bulk strategy begins with it.
#[derive(Debug)]
pub(crate) struct Bulk;

impl Kind for Bulk {
    const NAME: &'static str = "Paced, bulk";
    const MEANS: &'static str = "our limiter, with a slow start";
    fn rate() -> SendRate {
        let settings = PacedSettings::builder().slow_start(true).build();
        let settings = settings.expect("10/s is above the floor");
        SendRate::paced(settings, Timestamp::ZERO)
    }
}

impl<K: Kind + 'static> Law for InLine<K> {
    type Seat<'a> = Reservation<'a>;
    const NAME: &'static str = K::NAME;
    const MEANS: &'static str = K::MEANS;

    fn new(scene: &Scene) -> Self {
        Self {
            rate: K::rate(),
            reask: scene.reask_ms * MILLI,
            kind: PhantomData,
        }
    }

    fn ask<'a>(&'a self, now: u64, seat: &mut Option<Reservation<'a>>) -> Result<SendPermit, u64> {
        let now = Timestamp::from_nanos(now);
        let place = seat.get_or_insert_with(|| self.rate.reserve(now));
        place.claim(now).map_err(|wait| nanos(wait).min(self.reask))
    }

    fn record(&self, now: u64, permit: SendPermit, reply: Reply) {
        self.rate
            .record(Timestamp::from_nanos(now), permit, outcome(reply));
    }

    fn allowed(&self, now: u64) -> Option<u64> {
        allowed(&self.rate, now)
    }
}

/// A fixed rate: each client knows its equal part of the limit, and every change.
#[derive(Debug)]
pub(crate) struct Told {
    scene: Scene,
    next: Cell<u64>,
}

impl Law for Told {
    type Seat<'a> = u64;
    const NAME: &'static str = "told the limit";
    const MEANS: &'static str = "an oracle: knows the true limit";

    fn new(scene: &Scene) -> Self {
        Self {
            scene: *scene,
            next: Cell::new(0),
        }
    }

    fn ask(&self, now: u64, seat: &mut Option<u64>) -> Result<SendPermit, u64> {
        let turn = *seat.get_or_insert_with(|| self.slot(now));
        if turn > now {
            return Err(turn - now);
        }
        Ok(SendPermit::sent_at(Timestamp::from_nanos(now)))
    }

    fn record(&self, _: u64, _: SendPermit, _: Reply) {}
}

impl Told {
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

/// One of the clients of a mixed scene.
#[derive(Debug)]
pub(crate) enum Beside<L> {
    /// A client under test.
    Tested(L),
    /// A client of the AWS SDKs.
    Sdk(AwsAsking),
}

impl<L: Law> Beside<L> {
    /// Returns the limiters of the clients of a mixed scene: every second one is under test.
    pub(crate) fn all(scene: &Scene) -> Vec<Self> {
        let law = |client| match client % 2 {
            0 => Self::Tested(L::new(scene)),
            _ => Self::Sdk(AwsAsking::new(scene)),
        };
        (0..scene.clients).map(law).collect()
    }
}

impl<L: Law + 'static> Law for Beside<L> {
    type Seat<'a> = L::Seat<'a>;
    const NAME: &'static str = L::NAME;

    fn retry(&self) -> Retry {
        match self {
            Self::Tested(law) => law.retry(),
            Self::Sdk(law) => law.retry(),
        }
    }

    fn rejects_retry(&self, draw: u32) -> bool {
        match self {
            Self::Tested(law) => law.rejects_retry(draw),
            Self::Sdk(law) => law.rejects_retry(draw),
        }
    }

    fn new(scene: &Scene) -> Self {
        Self::Tested(L::new(scene))
    }

    fn ask<'a>(&'a self, now: u64, seat: &mut Option<L::Seat<'a>>) -> Result<SendPermit, u64> {
        match self {
            Self::Tested(law) => law.ask(now, seat),
            Self::Sdk(law) => law.ask(now, &mut None),
        }
    }

    fn record(&self, now: u64, permit: SendPermit, reply: Reply) {
        match self {
            Self::Tested(law) => law.record(now, permit, reply),
            Self::Sdk(law) => law.record(now, permit, reply),
        }
    }
}
