//! Each case does what its name says, on one thread and on two: it is granted every time, or never.

use paceline_benches::case::Seat;
use paceline_benches::cases::{all, matching};
use paceline_benches::path::Path;
use paceline_benches::pool::measure;

const TIMES: u64 = 1_000;

#[test]
fn each_case_is_granted_every_time_or_never() {
    for case in all() {
        let stage = (case.stage)();
        let mut runner = stage(Seat {
            thread: 0,
            threads: 1,
        });
        let granted = runner(TIMES);
        assert_eq!(granted, TIMES * u64::from(case.granted), "{case:?}");
        // It loses tokens when two threads meet in it (udoprog/leaky-bucket#39), sometimes all of
        // them.
        if case.name == "leaky-bucket, unfair" {
            continue;
        }
        // Its time passes so fast that the clocks of two threads are a bucket apart.
        if case.name == "paceline SendRate, 1,000/s" {
            continue;
        }
        // A thread that lost its core may ask with a time long past, or hold what others then fail
        // to get.
        let both = measure(&stage, 2, TIMES, 3, &[]);
        let expected = f64::from(u8::from(case.granted));
        assert!(
            both.disturbed || (both.granted - expected).abs() < 0.05,
            "{case:?}: {both:?}"
        );
    }
}

#[test]
fn the_names_of_cases_differ_and_targets_name_others() {
    let cases = all();
    for (index, case) in cases.iter().enumerate() {
        let same = cases.iter().position(|other| other.id() == case.id());
        assert_eq!(same, Some(index), "{case:?}");
        let Some(target) = case.target else { continue };
        for name in target.bounds.iter().filter_map(|bound| bound.names()) {
            let mut cases = cases.iter();
            let found = cases.any(|other| other.path == case.path && other.name == name);
            assert!(found, "{case:?} names {name}");
        }
    }
}

#[test]
fn each_path_has_a_case() {
    for path in Path::ALL {
        assert!(!matching(path.key()).is_empty(), "{path:?}");
    }
}
