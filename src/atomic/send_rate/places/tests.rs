//! The places given up, by one thread, against a plain set of them.

use alloc::collections::BTreeSet;

use fastrand::Rng;

use super::*;

/// A ring of 16 words: it reaches 512 places back.
const WORDS: usize = 16;
const REACH: u64 = WORDS as u64 * BLOCK;

fn place(number: u64) -> Place {
    Place::from_bits(number.wrapping_mul(TOKEN))
}

/// The first number of a line whose places, blocks and laps soon wrap.
const FIRST: u64 = (1 << 40) - 70;

#[test]
fn counts_are_those_of_a_plain_set_over_many_laps() {
    for seed in 0..40 {
        let mut random = Rng::with_seed(seed);
        let ring = Cancellations::new(place(FIRST), 5, WORDS);
        let (mut gone, mut front, mut end) = (BTreeSet::new(), FIRST, FIRST);
        for _ in 0..400 {
            end = (end + random.u64(..60)).min(front + REACH - BLOCK);
            for _ in 0..random.u8(..8) {
                let number = random.u64(FIRST.max(end.saturating_sub(700))..=end);
                if gone.insert(number) {
                    ring.cancel(place(number), 1);
                }
                let asked = random.u64(front..=end);
                let want = 5 + gone.range(..asked).count() as u64;
                assert_eq!(
                    ring.before(place(asked)),
                    want,
                    "seed {seed}, place {asked}"
                );
                assert_eq!(ring.total(), 5 + gone.len() as u64);
            }
            let due = random.u64(front..=end);
            ring.retire(|_| place(due));
            front = due / BLOCK * BLOCK; // whole blocks only
        }
        assert!(end > FIRST + 4 * REACH, "over four laps");
    }
}

/// Places of several tokens, given up whole, over blocks that are retired, open and not yet
/// reached.
#[test]
fn a_weighted_place_is_as_many_places() {
    for seed in 0..40 {
        let mut random = Rng::with_seed(seed);
        let (ring, plain) = (
            Cancellations::new(place(FIRST), 5, WORDS),
            Cancellations::new(place(FIRST), 5, WORDS),
        );
        let (mut end, mut front) = (FIRST, FIRST);
        while end < FIRST + 4 * REACH {
            let weight = random.u32(1..100);
            let last = end + u64::from(weight) - 1;
            let due = |_| place(front);
            ring.retire(due);
            plain.retire(due);
            ring.cancel(place(last), weight);
            (end..=last).for_each(|number| plain.cancel(place(number), 1));
            assert_eq!(ring.total(), plain.total(), "seed {seed}");
            assert_eq!(ring.before(place(end)), plain.before(place(end)));
            assert_eq!(ring.before(place(last + 1)), plain.before(place(last + 1)));
            assert_eq!(ring.front(), plain.front());
            end = last + random.u64(1..20);
            // Also into the middle of what is given up next.
            front = front.max(end.saturating_sub(random.u64(..REACH / 2)) + random.u64(..60));
        }
    }
}

#[test]
fn of_a_weighted_place_what_the_ring_does_not_reach_is_forgotten() {
    let ring = Cancellations::new(place(0), 0, WORDS);
    ring.cancel(place(REACH + 9), 15);
    assert_eq!(ring.total(), 5, "the rest is too far back");
    ring.cancel(place(REACH - 10), u32::try_from(REACH).unwrap());
    ring.retire(|_| place(3 * REACH));
    ring.cancel(place(2 * REACH), u32::MAX);
    assert_eq!(ring.total(), 5 + REACH + u64::from(u32::MAX));
}

#[test]
fn in_a_retired_block_all_are_due_and_giving_up_counts_on() {
    let ring = Cancellations::new(place(0), 0, WORDS);
    ring.cancel(place(3), 1);
    ring.cancel(place(40), 1);
    ring.retire(|given_up| {
        assert_eq!(given_up, 0);
        place(32)
    });
    assert_eq!(ring.before(place(0)), 1, "all of the retired block");
    assert_eq!(ring.before(place(40)), 1, "its own place does not count");
    assert_eq!(ring.before(place(41)), 2);
    ring.cancel(place(4), 1);
    assert_eq!((ring.before(place(40)), ring.total()), (2, 3));
    ring.retire(|given_up| {
        assert_eq!(given_up, 2);
        place(63)
    });
    assert_eq!(ring.front().first(), 1, "place 63 is not before 63");
    ring.retire(|_| place(10));
    assert_eq!(ring.front().first(), 1, "the front never goes back");
}

#[test]
fn a_place_beyond_the_ring_is_forgotten_and_moves_nobody() {
    let ring = Cancellations::new(place(0), 0, WORDS);
    ring.cancel(place(REACH - 1), 1);
    assert_eq!(ring.total(), 1);
    ring.cancel(place(REACH), 1);
    ring.cancel(place(3 * REACH), 1);
    assert_eq!(ring.total(), 1, "too far back");
    assert_eq!(ring.before(place(3 * REACH + 1)), 1);
    ring.cancel(place(0), 1);
    assert_eq!(
        ring.before(place(3 * REACH + 1)),
        2,
        "the slot of the first word is its own"
    );
    // A jump of several rings, as after a long time without a line.
    ring.retire(|_| place(5 * REACH));
    assert_eq!(ring.front(), Front::new(5 * WORDS as u64, 2));
    ring.cancel(place(5 * REACH), 1);
    assert_eq!(ring.before(place(5 * REACH + 1)), 3);
}

#[test]
fn half_full_is_half_the_ring_behind_the_front() {
    let ring = Cancellations::new(place(0), 0, WORDS);
    assert!(!ring.is_half_full(place(REACH / 2 - 1)));
    assert!(ring.is_half_full(place(REACH / 2)));
    ring.retire(|_| place(BLOCK));
    assert!(!ring.is_half_full(place(REACH / 2)));
    assert!(!ring.is_half_full(place(0)), "retired");
}

#[test]
fn a_stale_writer_of_an_earlier_lap_changes_nothing() {
    let ring = Cancellations::new(place(0), 0, WORDS);
    ring.cancel(place(1), 1);
    ring.retire(|_| place(REACH + BLOCK));
    ring.cancel(place(REACH + BLOCK + 2), 1);
    ring.cancel(place(2 * REACH + 5), 1); // the slot of block 0, two laps later
    let (before, front) = (ring.before(place(3 * REACH)), ring.front());
    assert!(
        matches!(ring.mark(0, 1 << 7), Mark::Again),
        "block 0 is long retired"
    );
    assert_eq!(ring.close(0), None);
    assert!(
        ring.marked_before(Front::new(0, 0), 20, 0).is_none(),
        "that front has moved on"
    );
    assert!(!ring.advance(Front::new(0, 0), Front::new(1, 1)));
    ring.retire_through(0);
    assert_eq!(
        (ring.before(place(3 * REACH)), ring.front()),
        (before, front)
    );
}

#[test]
fn a_word_that_another_thread_closed_is_retired_first() {
    let ring = Cancellations::new(place(0), 0, WORDS);
    ring.cancel(place(1), 1);
    let closed = ring.close(0).expect("the first block is open");
    assert!(closed.is_closed());
    assert_eq!(ring.close(0), Some(closed), "closing twice is closing once");
    assert!(matches!(ring.mark(0, 1 << 2), Mark::Closed));
    assert_eq!(ring.before(place(2)), 1, "a closed word still counts");
    ring.cancel(place(2), 1); // finishes what the other thread began
    assert_eq!(ring.front(), Front::new(1, 2));
    assert_eq!(ring.total(), 2);
}

#[test]
fn what_is_written_off_counts_before_every_place() {
    let ring = Cancellations::new(place(0), 0, WORDS);
    ring.cancel(place(9), 1);
    ring.write_off(7);
    assert_eq!(ring.total(), 8);
    assert_eq!((ring.before(place(0)), ring.before(place(10))), (7, 8));
}

#[test]
fn a_ring_has_a_power_of_two_of_words() {
    for (asked, words) in [(1, 1), (2, 2), (3, 4), (16, 16), (17, 32)] {
        assert_eq!(Cancellations::new(place(0), 0, asked).ring.len(), words);
    }
    let bits = |words| Cancellations::new(place(0), 0, words).lap_bits();
    assert_eq!(
        (bits(8), bits(16), bits(32), bits(1 << 10)),
        (31, 31, 30, 25)
    );
}
