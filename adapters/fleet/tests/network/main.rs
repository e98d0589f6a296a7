//! The code of a fleet over a simulated network: partitions, lost messages, engines that restart
//! with and without their memory, members that are killed, all drawn from a seed.
//!
//! `ci/check.sh network` runs it for three minutes: `RUSTFLAGS="--cfg turmoil" cargo test --test
//! network`. The engine is the script of the real one behind the real protocol, in virtual time.
#![cfg(turmoil)]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::float_arithmetic,
    reason = "a test may overflow, and fail"
)]

#[allow(dead_code, reason = "shared with other tests")]
#[path = "../../rig/record.rs"]
mod record;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "../../rig/script.rs"]
mod script;

mod engine;
mod member;
mod trial;

use std::time::{Duration, Instant};

use trial::{Faults, Trial};

/// Plays trials with seeds from `first` on: four, or as many as fit into `PACELINE_SECONDS`.
fn play(faults: Faults, first: u64) {
    let seconds = std::env::var("PACELINE_SECONDS").ok();
    let seconds = seconds.map(|text| text.parse().expect("whole seconds"));
    let began = Instant::now();
    for count in 0.. {
        let is_over = match seconds {
            Some(seconds) => began.elapsed() >= Duration::from_secs(seconds),
            None => count == 4,
        };
        if is_over {
            println!("{faults:?}: {count} trials");
            return;
        }
        if let Err(fault) = Trial::draw(faults, first + count).play() {
            panic!("{fault}: {faults:?}, seed {}", first + count);
        }
    }
}

#[test]
fn members_that_are_killed_leave_no_gap() {
    play(Faults::Kills, 1_000);
}

#[test]
fn a_partition_lets_no_more_through_than_stated() {
    play(Faults::Partitions, 2_000);
}

#[test]
fn an_engine_that_restarts_with_its_memory_grants_nothing_twice() {
    play(Faults::Restarts, 3_000);
}

#[test]
fn an_engine_that_forgets_grants_what_is_stated_once_more() {
    play(Faults::Forgets, 4_000);
}

#[test]
fn all_faults_at_once_are_survived() {
    play(Faults::Mixed, 5_000);
}

#[test]
fn members_that_differ_have_their_parts() {
    play(Faults::Differences, 6_000);
}

/// Plays a trial with an engine whose clock counts `pace` thousandths for a second.
fn play_at(pace: u32) {
    let mut trial = Trial::draw(Faults::Kills, 1);
    trial.pace = pace;
    trial.play().unwrap();
}

#[test]
#[should_panic(expected = " above ")]
fn an_engine_with_a_fast_clock_is_seen() {
    play_at(1_500);
}

#[test]
#[should_panic(expected = "of the allowance afterwards")]
fn an_engine_with_a_slow_clock_is_seen() {
    play_at(900);
}
