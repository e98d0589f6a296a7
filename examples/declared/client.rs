//! The limiters that are compared.

use core::time::Duration;

use paceline::{
    Class, ControlLaw, Outcome, Reservation, SendPermit, SendRate, Timestamp,
    law::{DeclaredSettings, Dimension, LimitReports, Spend},
};

use crate::scene::Scene;

/// What a client limits itself by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Law {
    Backoff,
    Published,
    Paced,
    Declared,
    Fast,
    Classes,
}

pub(crate) const LAWS: [Law; 6] = [
    Law::Backoff,
    Law::Published,
    Law::Paced,
    Law::Declared,
    Law::Fast,
    Law::Classes,
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
        }
    }

    /// Returns whether it is played in `scene`: two classes need requests of two kinds.
    pub(crate) fn fits(self, scene: &Scene) -> bool {
        self != Self::Classes || scene.people > 0
    }

    pub(crate) fn limiter(self, scene: &Scene) -> Option<SendRate> {
        let start = Timestamp::ZERO;
        let settings = || {
            let dimension = if scene.weight > 1 {
                Dimension::Tokens
            } else {
                Dimension::Requests
            };
            DeclaredSettings::new().dimension(dimension)
        };
        let declared = |settings| SendRate::declared(settings, start);
        match self {
            Self::Backoff => None,
            Self::Published => Some(SendRate::new(ControlLaw::Aws, start)),
            Self::Paced => Some(SendRate::new(ControlLaw::Paced, start)),
            Self::Declared => Some(declared(settings())),
            Self::Fast | Self::Classes => Some(declared(settings().spend(Spend::Fast))),
        }
    }
}

/// Asks for the turn of a request, and returns in how many nanoseconds to ask again if it has not
/// come.
pub(crate) fn ask<'a>(
    limiter: Option<&'a SendRate>,
    seat: &mut Option<Reservation<'a>>,
    now: u64,
    weight: u32,
    class: Class,
) -> Result<SendPermit, u64> {
    let now = Timestamp::from_nanos(now);
    let Some(rate) = limiter else {
        return Ok(SendPermit::sent_at(now));
    };
    if seat.is_none() {
        // Laws that know nothing of weights count requests.
        let weight = if rate.law() == ControlLaw::Declared {
            weight
        } else {
            1
        };
        let place = match class {
            Class::Background => rate.background().reserve_n(now, weight),
            _ => rate.reserve_n(now, weight),
        };
        *seat = Some(place.unwrap_or_else(|_| rate.reserve(now)));
    }
    let Some(place) = seat else {
        return Err(1);
    };
    let permit = place.claim(now).map_err(nanos)?;
    *seat = None;
    Ok(permit)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Tells the limiter what came back: the headers first.
pub(crate) fn record(
    limiter: Option<&SendRate>,
    now: u64,
    permit: SendPermit,
    throttled: Option<u64>,
    reports: &LimitReports,
) {
    let now = Timestamp::from_nanos(now);
    if let Some(rate) = limiter {
        rate.observe(now, permit, reports);
        let outcome = match throttled {
            None => Outcome::NotThrottled,
            Some(0) => Outcome::Throttled,
            Some(hint) => Outcome::ThrottledFor(Duration::from_nanos(hint)),
        };
        rate.record(now, permit, outcome);
    }
}
