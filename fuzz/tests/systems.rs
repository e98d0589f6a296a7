//! Whole systems with fixed seeds: what the declared law promises.

use std::{fs, path::Path};

use paceline_fuzz::systems::{self, Range, Summary, System, draw};

/// The seeds of each test begin at this one.
const SEED: u64 = 1_000_003;

/// What holds without exception.
const HARD: [&str; 11] = [
    "panic",
    "stopped",
    "not back",
    "trickle",
    "overtaken",
    "door",
    "snapshot",
    "accepted",
    "leak",
    "drought",
    "unused",
];

fn played(range: Range, systems: u64) -> Summary {
    let mut summary = Summary::default();
    for number in 0..systems {
        summary.play(number, draw(range, SEED + number));
    }
    for (_, system, played) in summary.failed() {
        println!("{}: {system}", played.worst());
    }
    println!("{summary}");
    summary
}

#[test]
fn narrow_systems_never_stop() {
    let summary = played(Range::Narrow, 300);
    for name in HARD {
        assert_eq!(summary.count(name), 0, "{name}");
    }
    assert!(summary.count("gap") <= 2);
    assert!(summary.mean_used() >= 0.92, "{}", summary.mean_used());
}

#[test]
fn systems_that_are_not_told_never_stop() {
    let summary = played(Range::Untold, 100);
    for name in HARD {
        assert_eq!(summary.count(name), 0, "{name}");
    }
    assert!(summary.mean_used() >= 0.88, "{}", summary.mean_used());
}

#[test]
fn two_classes_keep_what_they_are_promised() {
    let summary = played(Range::Classes, 40);
    for name in HARD {
        assert_eq!(summary.count(name), 0, "{name}");
    }
    assert!(summary.mean_used() >= 0.93, "{}", summary.mean_used());
}

#[test]
fn wide_systems_never_stop() {
    let summary = played(Range::Wide, 200);
    for name in HARD {
        assert_eq!(summary.count(name), 0, "{name}");
    }
}

#[test]
fn a_system_reads_as_it_prints() {
    for seed in 0..1_000 {
        for range in [Range::Narrow, Range::Untold, Range::Classes, Range::Wide] {
            let system = draw(range, seed);
            assert!(system.is_sound(), "{system}");
            assert_eq!(system.to_string().parse(), Ok(system));
        }
    }
    assert!("window=ten".parse::<System>().is_err());
}

#[test]
fn the_corpus_of_systems() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/systems");
    let mut entries: Vec<_> = fs::read_dir(&folder)
        .expect("the target has a corpus")
        .map(|entry| entry.expect("the corpus is readable").path())
        .collect();
    entries.sort();
    assert!(!entries.is_empty());
    for path in entries {
        let bytes = fs::read(&path).expect("the corpus is readable");
        println!("{}: {}", path.display(), System::from_bytes(&bytes));
        systems::systems(&bytes);
    }
}
