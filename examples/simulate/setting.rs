//! What a scene is, in a sentence for people who did not write it.

#![expect(clippy::float_arithmetic, reason = "for people to read")]

use crate::number::number;
use crate::scene::{Load, Policer, Scene};
use crate::words::short;

/// Returns the sentence.
pub(crate) fn setting(scene: &Scene) -> String {
    let far = match scene.far {
        1 => String::new(),
        far => format!(" (every second client: {})", scene.trip_us * far / 1_000),
    };
    let trip = format!("an answer takes {} ms{far}", scene.trip_us / 1_000);
    let (clients, limits) = (clients(scene), limits(scene));
    format!(
        "{clients}; {trip}; the service allows {limits}, {}.",
        counting(scene)
    )
}

fn clients(scene: &Scene) -> String {
    let many = short(scene.clients.into());
    let load = match scene.load {
        Load::Closed(workers) => short(workers.into()),
        Load::Open(rate) => short(rate),
    };
    match (scene.clients, scene.load) {
        (1, Load::Closed(_)) if scene.people > 0 => {
            format!(
                "One client with {load} workers, and people who ask for {} a second",
                scene.people
            )
        }
        (1, Load::Closed(_)) => format!("One client with {load} workers"),
        (1, Load::Open(_)) => format!("One client that wants {load} a second"),
        (_, Load::Closed(_)) if scene.mixed => {
            format!("{many} clients with {load} workers each, every second one of the AWS SDKs")
        }
        (_, Load::Closed(_)) => format!("{many} clients with {load} workers each"),
        (_, Load::Open(_)) => format!("{many} clients that want {load} a second each"),
    }
}

fn limits(scene: &Scene) -> String {
    let limits = scene.limit.iter().map(|(ms, limit)| match (ms, limit) {
        (0, 0) => "nothing".to_owned(),
        (0, 1) => "1 request a second".to_owned(),
        (0, limit) => format!("{} requests a second", short(*limit)),
        (ms, 0) => format!("from {} s on nothing", number(*ms) / 1_000.0),
        (ms, limit) => format!("from {} s on {}", number(*ms) / 1_000.0, short(*limit)),
    });
    limits.collect::<Vec<_>>().join(", ")
}

fn counting(scene: &Scene) -> String {
    match scene.policer {
        Policer::Bucket(most) => format!("and saves at most {} unused ones", short(most)),
        Policer::Window => "counted anew in each second of the clock".to_owned(),
        Policer::Sliding => "counted over the last second".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::setting;
    use crate::scenes::SCENES;

    #[test]
    fn a_scene_is_a_sentence() {
        let scene = SCENES.iter().find(|scene| scene.name == "outage");
        let sentence = "One client with 64 workers; an answer takes 50 ms; the service allows 500 requests a second, \
                        from 20 s on nothing, from 30 s on 500, and saves at most 100 unused ones.";
        assert_eq!(scene.map(setting).as_deref(), Some(sentence));
    }
}
