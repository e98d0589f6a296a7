//! The limiters that are compared, in the order of the tables.

use paceline::{ControlLaw, SendRate, Timestamp, law::PacedSettings};

use crate::law::{Law, Limited, Retry, Told, Unlimited};
use crate::rivals::{Freeze, Gax, InFlight, Lance, OneMore, OpenDal, Polars, Rival, Vegas};
use crate::scene::Scene;
use crate::time::MILLI;

/// A limiter by its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    /// What it does, for people who do not know the name.
    pub(crate) means: &'static str,
    /// Creates the limiter of one client.
    pub(crate) limiter: fn(&Scene) -> Box<dyn Law>,
}

impl Entry {
    /// Returns whether it is played in a scene: two classes need requests of two kinds.
    pub(crate) fn fits(&self, scene: &Scene) -> bool {
        scene.people > 0 || self.name != CLASSES
    }
}

/// The limiter that lets background wait behind the line.
pub(crate) const CLASSES: &str = "Paced, two classes";

const fn entry(
    name: &'static str,
    means: &'static str,
    limiter: fn(&Scene) -> Box<dyn Law>,
) -> Entry {
    Entry {
        name,
        means,
        limiter,
    }
}

fn in_line(scene: &Scene, rate: SendRate) -> Box<dyn Law> {
    limited(scene, rate, false)
}

fn limited(scene: &Scene, rate: SendRate, classes: bool) -> Box<dyn Law> {
    let reask = Some(scene.reask_ms * MILLI);
    Box::new(Limited {
        rate,
        reask,
        classes,
    })
}

fn paced(scene: &Scene, settings: PacedSettings) -> Box<dyn Law> {
    in_line(scene, SendRate::paced(settings, Timestamp::ZERO))
}

fn published() -> SendRate {
    SendRate::new(ControlLaw::Aws, Timestamp::ZERO)
}

/// Returns the limiter of a client of the AWS SDKs.
pub(crate) fn sdk(_: &Scene) -> Box<dyn Law> {
    Box::new(Limited {
        rate: published(),
        reask: None,
        classes: false,
    })
}

/// What others have published: only if asked for.
#[rustfmt::skip]
pub(crate) const RIVALS: &[Entry] = &[
    entry("Polars", "the limiter of Polars' object stores", |_| Rival::<Polars>::boxed()),
    entry("Lance", "the limiter of Lance's object stores", |_| Rival::<Lance>::boxed()),
    entry("OpenDAL", "OpenDAL's AimdLayer", |_| Rival::<OpenDal>::boxed()),
    entry("gax", "no limit, drops retries by chance", |_| Box::new(Gax::default())),
    entry("throttle-net, Aimd", "throttle-net's limit on requests in flight", |_| InFlight::<OneMore>::boxed()),
    entry("throttle-net, Vegas", "the same, by the time that answers take", |_| InFlight::<Vegas>::boxed()),
    entry("ScyllaDB", "ScyllaDB's freeze of four seconds", |_| Box::new(Freeze::default())),
];

/// All of them.
#[rustfmt::skip]
pub(crate) const LAWS: &[Entry] = &[
    entry("nothing", "no limit, asks again at once", |_| Box::new(Unlimited(Retry::AtOnce))),
    entry("backoff only", "no limit, waits before a retry", |_| Box::new(Unlimited(Retry::Backoff))),
    entry("Aws, asking again", "the published limiter, by polling", sdk),
    entry("Aws, in line", "the published limiter, in a queue", |scene| in_line(scene, published())),
    entry("Paced", "our limiter, in a queue", |scene| paced(scene, PacedSettings::new())),
    entry("Paced, shared", "our limiter, set for a shared limit", |scene| paced(scene, PacedSettings::shared())),
    entry("Paced, exclusive", "our limiter, set for one client alone", |scene| paced(scene, PacedSettings::exclusive())),
    entry("Paced, bulk", "our limiter, with a slow start", |scene| {
        let settings = PacedSettings::builder().slow_start(true).build();
        paced(scene, settings.expect("10/s is above the floor"))
    }),
    entry(CLASSES, "our limiter, the back-fill as background", |scene| limited(scene, SendRate::new(ControlLaw::Paced, Timestamp::ZERO), true)),
    entry("told the limit", "an oracle: knows the true limit", |scene| Box::new(Told::new(scene))),
];
