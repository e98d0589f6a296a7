//! The limiters that are compared.

use paceline::law::{DeclaredSettings, Spend};
use paceline::{ControlLaw, SendRate, Timestamp};

use crate::limiter::{Limited, Limiter, Retry, Unlimited};
use crate::scene::Scene;
use crate::throttle::Throttle;

/// A limiter by its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Law {
    pub(crate) name: &'static str,
    /// Creates the limiter of one client.
    pub(crate) limiter: fn(&Scene) -> Box<dyn Limiter>,
}

/// The limiter that lets background wait behind the line.
const CLASSES: &str = "Declared, fast, two classes";
/// One that is given the limit.
const THROTTLE: &str = "throttle-net";

#[rustfmt::skip]
pub(crate) const LAWS: [Law; 7] = [
    Law { name: "backoff only", limiter: |_| Box::new(Unlimited(Retry::Backoff)) },
    Law { name: "Aws", limiter: |_| limited(SendRate::new(ControlLaw::Aws, Timestamp::ZERO), false) },
    Law { name: "Paced", limiter: |_| limited(SendRate::new(ControlLaw::Paced, Timestamp::ZERO), false) },
    Law { name: "Declared", limiter: |scene| limited(declared(scene, Spend::Even), false) },
    Law { name: "Declared, fast", limiter: |scene| limited(declared(scene, Spend::Fast), false) },
    Law { name: CLASSES, limiter: |scene| limited(declared(scene, Spend::Fast), true) },
    Law { name: THROTTLE, limiter: |scene| Box::new(Throttle::new(scene)) },
];

impl Law {
    /// Returns whether it is played in `scene`: two classes need requests of two kinds.
    pub(crate) fn fits(&self, scene: &Scene) -> bool {
        match self.name {
            CLASSES => scene.people > 0,
            THROTTLE => scene.people == 0 && Throttle::reads(scene),
            _ => true,
        }
    }
}

fn declared(scene: &Scene, spend: Spend) -> SendRate {
    let settings = DeclaredSettings::new().dimension(scene.dimension());
    SendRate::declared(settings.spend(spend), Timestamp::ZERO)
}

fn limited(rate: SendRate, classes: bool) -> Box<dyn Limiter> {
    let reask = Some(u64::MAX);
    Box::new(Limited {
        rate,
        reask,
        classes,
    })
}
