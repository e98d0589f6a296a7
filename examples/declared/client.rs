//! The limiters that are compared.

use core::time::Duration;

use paceline::{
    Class, ControlLaw, Outcome, Reservation, SendPermit, SendRate, Timestamp,
    law::{DeclaredSettings, Dimension, LimitReports, Spend},
};

use crate::scene::Scene;
use crate::throttle::Throttle;

/// What a client limits itself by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Law {
    Backoff,
    Published,
    Paced,
    Declared,
    Fast,
    Classes,
    ThrottleNet,
}

pub(crate) const LAWS: [Law; 7] = [
    Law::Backoff,
    Law::Published,
    Law::Paced,
    Law::Declared,
    Law::Fast,
    Law::Classes,
    Law::ThrottleNet,
];

impl Law {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Backoff => "backoff only",
            Self::Published => "Aws",
            Self::Paced => "Paced",
            Self::Declared => "Declared",
            Self::Fast => "Declared, fast",
            Self::Classes => "Declared, fast, two classes",
            Self::ThrottleNet => "throttle-net",
        }
    }

    /// Returns whether it is played in `scene`: two classes need requests of two kinds.
    pub(crate) fn fits(self, scene: &Scene) -> bool {
        match self {
            Self::Classes => scene.people > 0,
            Self::ThrottleNet => scene.people == 0 && Throttle::reads(scene),
            _ => true,
        }
    }

    pub(crate) fn limiter(self, scene: &Scene) -> Limiter {
        let start = Timestamp::ZERO;
        let settings = || {
            let dimension = if scene.weight > 1 {
                Dimension::Tokens
            } else {
                Dimension::Requests
            };
            DeclaredSettings::new().dimension(dimension)
        };
        let law = |law| Limiter::Rate(SendRate::new(law, start));
        let declared = |settings| Limiter::Rate(SendRate::declared(settings, start));
        match self {
            Self::Backoff => Limiter::None,
            Self::Published => law(ControlLaw::Aws),
            Self::Paced => law(ControlLaw::Paced),
            Self::Declared => declared(settings()),
            Self::Fast | Self::Classes => declared(settings().spend(Spend::Fast)),
            Self::ThrottleNet => Limiter::Throttle(Throttle::new(scene)),
        }
    }
}

/// What a client has of its law.
#[derive(Debug)]
pub(crate) enum Limiter {
    None,
    Rate(SendRate),
    Throttle(Throttle),
}

/// What a request has that waits for its turn.
#[derive(Debug, Default)]
pub(crate) struct Seat<'a> {
    place: Option<Reservation<'a>>,
    due: Option<u64>,
}

/// Asks for the turn of a request, and returns in how many nanoseconds to ask again if it has not
/// come.
pub(crate) fn ask<'a>(
    limiter: &'a Limiter,
    seat: &mut Seat<'a>,
    now: u64,
    weight: u32,
    class: Class,
) -> Result<SendPermit, u64> {
    let at = Timestamp::from_nanos(now);
    let rate = match limiter {
        Limiter::None => return Ok(SendPermit::sent_at(at)),
        Limiter::Throttle(throttle) => {
            throttle.ask(&mut seat.due, now, weight)?;
            return Ok(SendPermit::sent_at(at));
        }
        Limiter::Rate(rate) => rate,
    };
    let place = seat.place.get_or_insert_with(|| {
        // Laws that know nothing of weights count requests.
        let weight = if rate.law() == ControlLaw::Declared {
            weight
        } else {
            1
        };
        let place = match class {
            Class::Background => rate.background().reserve_n(at, weight),
            _ => rate.reserve_n(at, weight),
        };
        place.unwrap_or_else(|_| rate.reserve(at))
    });
    place.claim(at).map_err(nanos)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Tells the limiter what came back: the headers first.
pub(crate) fn record(
    limiter: &Limiter,
    now: u64,
    permit: SendPermit,
    throttled: Option<u64>,
    reports: &LimitReports,
) {
    let at = Timestamp::from_nanos(now);
    match limiter {
        Limiter::None => {}
        Limiter::Throttle(throttle) => throttle.hear(now, throttled, reports),
        Limiter::Rate(rate) => {
            rate.observe(at, permit, reports);
            let outcome = match throttled {
                None => Outcome::NotThrottled,
                Some(0) => Outcome::Throttled,
                Some(hint) => Outcome::ThrottledFor(Duration::from_nanos(hint)),
            };
            rate.record(at, permit, outcome);
        }
    }
}
