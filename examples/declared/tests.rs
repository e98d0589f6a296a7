//! What the declared law promises, in scenes short enough for a test.

use crate::Figures;
use crate::laws::LAWS;
use crate::play::play;
use crate::scene::{SCENES, Scene};

/// A scene takes seconds where nothing is optimized: there the first of each list stand for all.
const PLAYED: usize = if cfg!(debug_assertions) {
    3
} else {
    usize::MAX
};

fn scene(name: &str) -> Scene {
    let scene = SCENES.iter().find(|scene| scene.name == name);
    *scene.expect("the scene is there")
}

fn played(scene: &Scene, law: &str, seed: u64) -> Figures {
    let law = LAWS.iter().find(|other| other.name == law);
    let law = law.expect("the law is there");
    Figures::of(scene, &play(scene, law, seed))
}

fn figures(name: &str, law: &str, seed: u64) -> Figures {
    played(&scene(name), law, seed)
}

#[test]
fn a_declared_limit_is_used_without_throttles() {
    let names = [
        "a7", "c1", "d1", "b3", "b5", "d3", "d4", "e3", "e6", "e8", "ea", "eb",
    ];
    for name in names.into_iter().take(PLAYED) {
        let declared = figures(name, "Declared", 7);
        assert!(declared.used >= 0.97, "{name}: {declared:?}");
        assert!(declared.throttled <= 0.002, "{name}: {declared:?}");
        assert!(declared.failed < 1.0, "{name}: {declared:?}");
    }
}

#[test]
fn four_clients_come_to_equal_parts_without_throttles() {
    let names = [
        "a8", "c2", "d2", "a6", "b4", "b6", "f3", "g4", "g5", "gb", "h4",
    ];
    for name in names.into_iter().take(PLAYED) {
        let declared = figures(name, "Declared", 7);
        assert!(declared.used >= 0.97, "{name}: {declared:?}");
        assert!(declared.throttled <= 0.001, "{name}: {declared:?}");
        assert!(declared.jain >= 0.97, "{name}: {declared:?}");
        assert!(declared.failed < 1.0, "{name}: {declared:?}");
    }
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "minutes where nothing is optimized; tests in release run it"
)]
fn few_first_minutes_throttle() {
    for name in ["f8", "g3"] {
        let declared: Vec<_> = (800..816)
            .map(|seed| figures(name, "Declared", seed))
            .collect();
        let mean = |of: fn(&Figures) -> f64| {
            let sum: f64 = declared.iter().map(of).sum();
            sum / 16.0
        };
        assert!(mean(|one| one.throttled) <= 0.001, "{name}: {declared:?}");
        assert!(mean(|one| one.jain) >= 0.95, "{name}: {declared:?}");
        assert!(mean(|one| one.used) >= 0.99, "{name}: {declared:?}");
    }
}

#[test]
fn a_limit_that_is_not_told_throttles_little() {
    for name in ["h1", "h2", "h3"] {
        let declared: Vec<_> = (1..=8)
            .map(|seed| figures(name, "Declared", seed))
            .collect();
        let mean = |of: fn(&Figures) -> f64| declared.iter().map(of).sum::<f64>() / 8.0;
        assert!(mean(|one| one.throttled) <= 0.015, "{name}: {declared:?}");
        assert!(mean(|one| one.jain) >= 0.97, "{name}: {declared:?}");
    }
}

#[test]
fn a_sliding_window_is_used_with_few_throttles() {
    for name in ["ha", "hb"] {
        let declared = figures(name, "Declared", 7);
        assert!(declared.used >= 0.92, "{name}: {declared:?}");
        assert!(declared.throttled <= 0.005, "{name}: {declared:?}");
        assert!(declared.failed < 1.0, "{name}: {declared:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_numbers() {
    let run = |seed| format!("{:?}", figures("d1", "Declared", seed));
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

#[test]
fn people_wait_little_before_background() {
    for name in ["p1", "p3"] {
        let scene = Scene {
            windows: 6,
            ..scene(name)
        };
        let laws = ["Declared, fast", "Declared, fast, two classes"];
        let [line, classes] = laws.map(|law| played(&scene, law, 7));
        assert!(
            classes.p99 * 10.0 < line.p99,
            "{name}: {classes:?}, {line:?}"
        );
        assert!(classes.used >= 0.97, "{name}: {classes:?}");
        assert!(classes.throttled <= 0.002, "{name}: {classes:?}");
    }
}
