//! Linearizability of the send rate's two lines and of its leases, from histories of real threads.
//!
//! Claims:
//! * Every history of the two lines, of foreground and background, at one reading of the clock while
//!   the rate stands still, is one that one thread could have made, each call at one moment between
//!   its beginning and its end. There are exceptions, which the documentation makes. Giving up a
//!   place is two steps: those behind it move up, then the token goes back to the bucket. A refusal
//!   may come before it sees what was given up during the call: it may be too long, a grant is
//!   never too early. A call that looks behind the line beside others may release tokens to it at
//!   any time, or not; two threads may take for one waiter, and the surplus goes back later. A
//!   refusal beside such a call says nothing, and a try passes no place but those that others take
//!   during the call.
//! * So is every history of takes that spend leases, of leases given back and of a pause: no token
//!   is granted twice, none after the pause, and a refusal leaves no more than other threads may
//!   have leased. No token is lost.
//!
//! The models are plain numbers and lists. Twins with known mistakes must fail.
//!
//! Run: `cargo test --release --test buckets linearizability`.

use crate::history::classes::ClassesObject;
use crate::history::leases::{LeaseObject, Lends};
use crate::history::{Call, Sequential, Shared, check, classes, leases, record};

/// How many calls a thread makes on one object.
const CALLS: usize = 7;
/// As [`CALLS`], where threads take leases: a thread needs two takes before its first one.
const TAKES: usize = 20;
/// How many objects one batch of threads works on.
const BATCH: u64 = 250;
/// How many histories with calls that overlap are enough. Few cores, or busy ones, show fewer of
/// them.
const ENOUGH: u64 = 4_000;

/// Records histories of `threads` threads on objects that `make` makes, and looks for an order of
/// each.
fn explore<O, S>(
    (threads, calls): (usize, usize),
    batches: u64,
    make: impl Fn(u64) -> O,
    model: impl Fn(&O, Vec<Call<O::Did>>) -> (S, Vec<Call<S::Step>>),
) where
    O: Shared,
    S: Sequential,
    S::Step: core::fmt::Debug,
{
    let mut overlapping = 0_u64;
    let mut recorded = 0;
    while recorded < batches * BATCH && overlapping < ENOUGH {
        let seed = recorded;
        recorded += BATCH;
        let objects: Vec<O> = (seed..seed + BATCH).map(&make).collect();
        let histories = record(&objects, threads, calls, seed);
        for (object, history) in objects.iter().zip(histories) {
            let (start, calls) = model(object, history);
            overlapping += u64::from(check(&start, &calls));
        }
    }
    println!("calls overlapped in {overlapping} of {recorded} histories");
}

fn explore_classes<L: classes::Classes>(batches: u64, make: impl Fn(classes::Pace, i64) -> L) {
    explore(
        (3, CALLS),
        batches,
        |seed| ClassesObject::new(&make, seed),
        |object, history| (object.model(), classes::steps(&history)),
    );
}

fn plain_classes(mistake: classes::Mistake) {
    explore_classes(4, |_, minted| classes::Plain::new(minted, mistake));
}

#[test]
fn two_lines_answer_three_threads_in_one_order() {
    explore_classes(if cfg!(debug_assertions) { 10 } else { 20 }, |pace, _| {
        pace.limiter()
    });
}

#[test]
fn the_plain_lines_have_an_order() {
    plain_classes(classes::Mistake::None);
}

#[test]
#[should_panic(expected = "no order of these calls explains their answers")]
fn background_that_passes_the_first_line_has_no_order() {
    plain_classes(classes::Mistake::PassesTheFirstLine);
}

#[test]
#[should_panic(expected = "no order of these calls explains their answers")]
fn a_second_line_in_which_the_last_goes_first_has_no_order() {
    plain_classes(classes::Mistake::LastComeFirst);
}

#[test]
#[should_panic(expected = "no order of these calls explains their answers")]
fn a_second_line_that_loses_a_token_has_no_order() {
    plain_classes(classes::Mistake::KeepsTheSurplus);
}

fn explore_leases<L: Lends>(threads: u32, batches: u64, make: impl Fn() -> L) {
    explore(
        (threads as usize, TAKES),
        batches,
        |seed| LeaseObject::new(make(), threads, seed),
        |object, history| (object.model(), history),
    );
}

#[test]
fn leases_of_three_threads_have_an_order() {
    explore_leases(3, 20, leases::limiter);
}

#[test]
fn leases_of_four_threads_have_an_order() {
    explore_leases(4, 10, leases::limiter);
}

#[test]
fn plain_leases_have_an_order() {
    explore_leases(3, 4, || leases::Plain::new(leases::Mistake::None));
}

#[test]
#[should_panic(expected = "no order of these calls explains their answers")]
fn leases_that_are_spent_after_they_went_back_have_no_order() {
    explore_leases(3, 4, || {
        leases::Plain::new(leases::Mistake::SpentAfterwards)
    });
}

#[test]
#[should_panic(expected = "no order of these calls explains their answers")]
fn leases_that_outlive_a_pause_have_no_order() {
    explore_leases(3, 4, || leases::Plain::new(leases::Mistake::OutlivesAPause));
}

#[test]
#[should_panic(expected = "no order of these calls explains their answers")]
fn leases_whose_rest_is_lost_have_no_order() {
    explore_leases(3, 4, || leases::Plain::new(leases::Mistake::Lost));
}
