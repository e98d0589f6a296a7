//! The limiters that are compared, in the order of the tables.

use core::cell::Cell;

use paceline::{ControlLaw, SendPermit, SendRate, Timestamp, law::PacedSettings};

use crate::cycles::{Cycles, Third};
use crate::limiter::{Limited, Limiter, Retry, Seat, Unlimited, Want};
use crate::rivals::{Freeze, Gax, InFlight, Lance, OneMore, Polars, Rival, Vegas};
use crate::scene::Scene;
use crate::time::{MILLI, SECOND};

/// A limiter by its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    /// What it does, for people who do not know the name.
    pub(crate) means: &'static str,
    /// Creates the limiter of one client.
    pub(crate) limiter: fn(&Scene) -> Box<dyn Limiter>,
}

impl Entry {
    /// Returns whether it is played in a scene: two classes need requests of two kinds.
    pub(crate) fn fits(&self, scene: &Scene) -> bool {
        scene.people > 0 || self.name != CLASSES
    }
}

/// The limiter that lets background wait behind the line.
pub(crate) const CLASSES: &str = "Paced, two classes";

fn limited(scene: &Scene, classes: bool, rate: SendRate) -> Box<dyn Limiter> {
    let reask = Some(scene.reask_ms * MILLI);
    Box::new(Limited {
        rate,
        reask,
        classes,
    })
}

fn paced(scene: &Scene, settings: PacedSettings) -> Box<dyn Limiter> {
    limited(scene, false, SendRate::paced(settings, Timestamp::ZERO))
}

fn published() -> SendRate {
    SendRate::new(ControlLaw::Aws, Timestamp::ZERO)
}

/// Returns the limiter of a client of the AWS SDKs.
pub(crate) fn sdk(_: &Scene) -> Box<dyn Limiter> {
    sdk_alone()
}

pub(crate) fn sdk_alone() -> Box<dyn Limiter> {
    Box::new(Limited {
        rate: published(),
        reask: None,
        classes: false,
    })
}

/// Returns the limiter of a client whose waits may be hours, by the paced law, with a slow start or
/// without.
pub(crate) fn for_hours(slow: bool) -> Box<dyn Limiter> {
    let settings = PacedSettings::builder().slow_start(slow).build();
    let settings = settings.expect("10/s is above the floor");
    Box::new(Limited {
        rate: SendRate::paced(settings, Timestamp::ZERO),
        reask: Some(0),
        classes: false,
    })
}

/// What others have published: only if asked for.
#[rustfmt::skip]
pub(crate) const RIVALS: &[Entry] = &[
    Entry { name: "Polars", means: "the limiter of Polars' object stores", limiter: |_| Box::new(Rival::<Polars>::new()) },
    Entry { name: "Lance", means: "the limiter of Lance's object stores", limiter: |_| Box::new(Rival::<Lance>::new()) },
    Entry { name: "gax", means: "no limit, drops retries by chance", limiter: |_| Box::new(Gax::default()) },
    Entry { name: "throttle-net, Aimd", means: "throttle-net's limit on requests in flight", limiter: |_| Box::new(InFlight::<OneMore>::new()) },
    Entry { name: "throttle-net, Vegas", means: "the same, by the time that answers take", limiter: |_| Box::new(InFlight::<Vegas>::new()) },
    Entry { name: "cycles alone", means: "a sketch of a law that counts whole cycles, and no seconds", limiter: |_| Box::new(Cycles::<Third>::default()) },
    Entry { name: "ScyllaDB", means: "ScyllaDB's freeze of four seconds", limiter: |_| Box::new(Freeze::default()) },
];

/// All of them.
#[rustfmt::skip]
pub(crate) const LAWS: &[Entry] = &[
    Entry { name: "nothing", means: "no limit, asks again at once", limiter: |_| Box::new(Unlimited(Retry::AtOnce)) },
    Entry { name: "backoff only", means: "no limit, waits before a retry", limiter: |_| Box::new(Unlimited(Retry::Backoff)) },
    Entry { name: "Aws, asking again", means: "the published limiter, by polling", limiter: sdk },
    Entry { name: "Aws, in line", means: "the published limiter, in a queue", limiter: |scene| limited(scene, false, published()) },
    Entry { name: "Paced", means: "our limiter, in a queue", limiter: |scene| paced(scene, PacedSettings::new()) },
    Entry { name: "Paced, shared", means: "our limiter, set for a shared limit", limiter: |scene| paced(scene, PacedSettings::shared()) },
    Entry { name: "Paced, exclusive", means: "our limiter, set for one client alone", limiter: |scene| paced(scene, PacedSettings::exclusive()) },
    Entry { name: "Paced, bulk", means: "our limiter, with a slow start", limiter: |scene| {
        let settings = PacedSettings::builder().slow_start(true).build();
        paced(scene, settings.expect("10/s is above the floor"))
    } },
    Entry { name: CLASSES, means: "our limiter, the back-fill as background", limiter: |scene| limited(scene, true, SendRate::new(ControlLaw::Paced, Timestamp::ZERO)) },
    Entry { name: "told the limit", means: "an oracle: knows the true limit", limiter: |scene| Box::new(Told { scene: *scene, next: Cell::new(0) }) },
];

/// A fixed rate: each client knows its equal part of the limit, and every change.
#[derive(Debug)]
struct Told {
    scene: Scene,
    next: Cell<u64>,
}

impl Told {
    /// Takes the next slot.
    fn slot(&self, now: u64) -> u64 {
        let mut turn = self.next.get().max(now);
        if self.scene.limit_at(turn) == 0 {
            turn = self.scene.back(turn).unwrap_or(u64::MAX >> 1);
        }
        let limit = self.scene.limit_at(turn).max(1);
        let step = u64::from(self.scene.clients) * SECOND / limit;
        self.next.set(turn + step);
        turn
    }
}

impl Limiter for Told {
    fn ask(&self, now: u64, _: Want, seat: &mut Seat<'_>) -> Result<SendPermit, u64> {
        let turn = *seat.due.get_or_insert_with(|| self.slot(now));
        if turn > now {
            return Err(turn - now);
        }
        Ok(SendPermit::sent_at(Timestamp::from_nanos(now)))
    }
}
