//! Places in the line of a [`SendRate`] under four threads and more.

use core::time::Duration;

use paceline::{Outcome, Reservation, SendRate};
use shuttle::thread::scope;

use crate::explore;
use crate::send_rate::{at, limited, record};

fn wait(place: &mut Reservation<'_>) -> Duration {
    place.claim(at(600)).expect_err("nothing is due at 0.6 s")
}

/// Takes four places, gives one up, and sees that the others stay in order.
fn come_and_go(rate: &SendRate, given_up: usize) -> Vec<Reservation<'_>> {
    let mut places: Vec<_> = (0..4).map(|_| rate.reserve(at(600))).collect();
    // From the back: no wait grows while the rate stays.
    let mut waits: Vec<_> = places.iter_mut().rev().map(wait).collect();
    waits.reverse();
    assert!(
        waits.is_sorted_by(|a, b| a < b),
        "first come, first served: {waits:?}"
    );
    drop(places.remove(given_up));
    waits.remove(given_up);
    for (place, before) in places.iter_mut().zip(waits) {
        assert!(wait(place) <= before, "no place moves back");
    }
    places
}

/// Four threads take places and give some up: those that stay are one token's time apart, without
/// holes, between the one who came before them all and the one who came after.
#[test]
fn places_that_stay_are_in_order_and_without_holes() {
    explore(1_000, || {
        let rate = limited();
        let mut first = rate.reserve(at(600));
        let mut others = scope(|scope| {
            let rate = &rate;
            let threads: Vec<_> = (0..4)
                .map(|thread| scope.spawn(move || come_and_go(rate, thread)))
                .collect();
            let places = threads
                .into_iter()
                .map(|thread| thread.join().expect("returns"));
            places.collect::<Vec<_>>()
        });
        let mut last = rate.reserve(at(600));
        let mut waits: Vec<_> = others.iter_mut().flatten().map(wait).collect();
        waits.sort_unstable();
        waits.insert(0, wait(&mut first));
        waits.push(wait(&mut last));
        for (wait, number) in waits.iter().zip(1_u32..) {
            let due = f64::from(number) / 22.4;
            assert!(
                (wait.as_secs_f64() - due).abs() < 1e-6,
                "no hole, no jump: {waits:?}"
            );
        }
    });
}

/// While places come due and their block retires, others are given up and taken: each is counted
/// once.
#[test]
fn places_given_up_while_their_block_retires_count_once() {
    explore(1_000, || {
        let rate = limited();
        let mut ahead: Vec<_> = (0..33).map(|_| rate.reserve(at(600))).collect();
        let mut last = rate.reserve(at(600));
        scope(|scope| {
            let rate = &rate;
            for _ in 0..3 {
                let given_up = ahead.swap_remove(0);
                scope.spawn(move || drop(given_up));
            }
            // 35 places are due at 2.2 s: the first blocks retire.
            scope.spawn(move || record(rate, 2_200, Outcome::NotThrottled));
            scope.spawn(move || drop(rate.reserve(at(2_200))));
        });
        assert!(last.claim(at(2_200)).is_ok(), "its turn");
        // What was minted by then, less the 31 that are out: the next one who tries gets what is
        // left.
        let available = rate.snapshot(at(2_200)).available;
        let minted = 1.6 * 22.4 - 31.0;
        assert!(
            (available - minted).abs() < 1e-6,
            "{available} are there, not {minted}"
        );
    });
}
