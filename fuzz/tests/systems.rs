//! Whole systems with fixed seeds: what the declared law promises.

use std::{fs, path::Path};

use paceline_fuzz::systems::{self, Range, Summary, System, draw};

/// The seeds of each test begin at this one.
const SEED: u64 = 1_000_003;

/// What holds without exception.
const HARD: [&str; 18] = [
    "panic",
    "stopped",
    "not back",
    "trickle",
    "overtaken",
    "door",
    "snapshot",
    "accepted",
    "quota",
    "attempts",
    "late",
    "minted",
    "drought",
    "unused",
    "throttled",
    "refused",
    "account",
    "starved",
];

/// Systems that an old fault would break, each by its number in `ci/planted.sh`, and what they use
/// at least.
const DIRECTED: [(&str, &str, f64); 22] = [
    (
        "D1, D5: places that are forgotten",
        "window=1000 workers=16 forget=10",
        0.95,
    ),
    (
        "D2: sets that wait for each other",
        "seed=11 shape=1 window=60000 limit=60 window2=60000 limit2=60 trip=5000000 light=40 heavy=40 \
         forget=100 cancel=50",
        0.6,
    ),
    ("D3: more than what is left", "window=1000 workers=16", 0.98),
    (
        "D4: tries that another limit refuses",
        "kind=1 window=60000 limit=60000 run=720000 trip=3000000 pause=20000000 light=500 heavy=500 \
         sets=20 set_weight=500",
        0.02,
    ),
    (
        "D6: weights above the limit",
        "window=60000 limit=60 workers=4 above=20",
        0.98,
    ),
    (
        "D13: debits after their reports",
        "limit=12 run=300000 workers=4 trip=2000000 cost=1 cost_low=300 cost_high=300 settle=1",
        0.95,
    ),
    (
        "D19: reports that never come",
        "kind=1 window=60000 limit=60 workers=2 trip=100000 lost=990 run=3600000",
        0.6,
    ),
    (
        "D21: heavy tries",
        "window=60000 limit=60000 trip=3000000 light=500 heavy=500 polls=100 poll_weight=500",
        0.3,
    ),
    (
        "K1: an idle time",
        "shape=3 law=6 kind=1 window=1000 run=2010000 workers=8 trip=50000 patience=600000 outage=1000 cancel=1000",
        0.4,
    ),
    (
        "K4: sends that are given up",
        "shape=3 law=3 kind=1 window=1000 limit=50 run=300000 workers=16 trip=50000 pause=10000 forget=500",
        0.9,
    ),
    (
        "K7: a quiet tenant at a fixed rate",
        "shape=2 law=1 kind=1 window=1000 window2=60000 limit2=20 clients=2 workers=200 pause=1000 \
         patience=60000",
        0.0,
    ),
    (
        "K7: of a declared limit",
        "seed=1000087 shape=2 kind=1 window=2000 limit=40 window2=60000 limit2=88 clients=4 workers=300 \
         trip=250301 pause=1000 reset=1 patience=50152",
        0.0,
    ),
    (
        "K8: backoffs that are given up",
        "shape=3 law=2 kind=1 window=1000 limit=20 run=300000 workers=16 trip=50000 pause=10000 lost=100 \
         cancel=1000",
        0.9,
    ),
    (
        "Q1, Q2: failures that are retried",
        "shape=3 law=2 kind=1 window=1000 limit=20 run=120000 workers=16 trip=50000 pause=10000 lost=300",
        0.5,
    ),
    (
        "Q3: operations that have little time",
        "shape=3 law=1 kind=1 window=1000 limit=20 run=120000 workers=16 trip=50000 pause=10000 lost=300 \
         deadline=700 max_wait=400",
        0.5,
    ),
    (
        "Q4: more than the longest wait lets in line",
        "shape=3 law=2 kind=1 window=1000 limit=20 run=120000 workers=60 trip=50000 pause=10000 max_wait=2000",
        0.5,
    ),
    (
        "Q5: tokens that a thread takes ahead",
        "shape=3 law=1 kind=1 window=50 limit=5000 run=600 workers=300 trip=2000 pause=1000 heavy=100 heavies=20",
        0.5,
    ),
    (
        "a heavy place that is forgotten before the first report",
        "window=60000 limit=60 workers=2 light=60 heavy=60 forget=100",
        0.8,
    ),
    (
        "a window of 59 seconds, which is taken for a minute",
        "seed=2 window=59000 phase=58853 limit=40 run=2360000 trip=111139 pause=155643 heavy=40 \
         heavies=197 no_window=1 no_kind=1 reset=1",
        0.55,
    ),
    (
        "a heavy request of a refill that a light one overtakes after a silent window",
        "seed=5 kind=1 window=4000 phase=1298 limit=300 run=800000 workers=11 trip=84335 spread=300 \
         pause=113716 heavy=300 heavies=124 reset=2 sets=400 cost=1 cost_low=80 cost_high=121 settle=1",
        0.8,
    ),
    (
        "a request that is overtaken over a reset",
        "seed=13 window=48277 limit=176 workers=3 trip=388581 spread=258",
        0.86,
    ),
    (
        "a limit of one, without its kind or window",
        "window=5000 limit=1 run=200000 trip=100000 no_window=1 no_kind=1 reset=1 workers=3",
        0.95,
    ),
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
fn systems_that_old_faults_would_break() {
    let mut broken = Vec::new();
    for (number, (name, text, least)) in (0..).zip(DIRECTED) {
        let system: System = text.parse().expect("it is a system");
        let mut summary = Summary::default();
        let played = summary.play(number, system.clone());
        let worst = match played.worst() {
            "" if played.share() < least => "unused",
            worst => worst,
        };
        if !worst.is_empty() {
            println!("{worst}: {name}, used {:.3}: {system}", played.share());
            broken.push(name);
        }
    }
    assert!(broken.is_empty(), "{broken:?}");
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

/// Headers without a reset, as those of api.data.gov (<https://api.data.gov/docs/rate-limits/>),
/// and all other forms of reports of which nothing can be made.
#[test]
fn reports_that_cannot_be_used_are_as_good_as_none() {
    let summary = played(Range::Unusable, 100);
    for name in HARD {
        assert_eq!(summary.count(name), 0, "{name}");
    }
    let more = summary.mean_throttled_more();
    assert!(more <= 0.01, "{more}");
}

#[test]
fn two_classes_keep_what_they_are_promised() {
    let summary = played(Range::Classes, 40);
    for name in HARD {
        assert_eq!(summary.count(name), 0, "{name}");
    }
    assert!(summary.mean_used() >= 0.93, "{}", summary.mean_used());
}

/// Two to eight members, with places that are cancelled and forgotten.
#[test]
fn pools_use_all_members_and_never_stop() {
    let summary = played(Range::Pools, 20);
    for name in HARD {
        assert_eq!(summary.count(name), 0, "{name}");
    }
    assert_eq!(summary.count("gap"), 0);
    assert!(summary.mean_used() >= 0.97, "{}", summary.mean_used());
}

#[test]
fn wide_systems_never_stop() {
    let summary = played(Range::Wide, 100);
    for name in HARD {
        assert_eq!(summary.count(name), 0, "{name}");
    }
}

#[test]
fn operations_keep_what_they_are_promised() {
    let summary = played(Range::Operations, 60);
    for name in HARD {
        assert_eq!(summary.count(name), 0, "{name}");
    }
}

#[test]
fn a_system_reads_as_it_prints() {
    for seed in 0..1_000 {
        for range in [
            Range::Narrow,
            Range::Untold,
            Range::Classes,
            Range::Wide,
            Range::Operations,
            Range::Unusable,
        ] {
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
