//! Models of the second line, in which background stands.
//!
//! Claim: what is released to background was taken from the first line, each token goes to one
//! request, and none is lost but by a thread that stops. Exhaustive over two threads unless a model
//! says otherwise.

use core::time::Duration;

use crate::explore;
use loom::{
    model,
    sync::{
        Arc,
        atomic::{
            AtomicU64,
            Ordering::{Relaxed, SeqCst},
            fence,
        },
    },
    thread,
};
use paceline_core::modelled::SecondLine;
use paceline_core::{ControlLaw, Outcome, SendPermit, SendRate, Timestamp, law::PacedSettings};

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_nanos(seconds * 1_000_000_000)
}

/// 0.5 tokens/s from 0 on, at most one: tokens are two seconds apart. The second line is there.
fn at_the_floor() -> Arc<SendRate> {
    let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    rate.record(at(0), SendPermit::sent_at(at(0)), Outcome::Throttled);
    assert!(rate.background().try_acquire(at(0)).is_err());
    Arc::new(rate)
}

/// Two tokens/s, in a bucket of 20 that is empty at 0.
fn twenty_taken() -> SendRate {
    let settings = PacedSettings::fixed(2, Duration::from_secs(1)).expect("in range");
    let settings = settings.to_builder().burst(Duration::from_secs(10)).build();
    let rate = SendRate::paced(settings.expect("in range"), Timestamp::ZERO);
    assert!(rate.try_acquire_n(at(0), 20).is_ok());
    rate
}

/// Of a foreground and a background request one gets the token that is there.
#[test]
fn a_token_goes_to_one_of_two_classes() {
    explore(Some(3), || {
        let rate = at_the_floor();
        let shared = Arc::clone(&rate);
        let other = thread::spawn(move || shared.try_acquire(at(2)).is_ok());
        let ours = rate.background().try_acquire(at(2)).is_ok();
        let theirs = other.join().expect("the other thread returns");
        assert!(ours != theirs, "one token, one grant");
    });
}

/// Two places behind the line are never due by one token.
#[test]
fn one_token_is_released_once() {
    explore(Some(2), || {
        let rate = at_the_floor();
        let mut first = rate.background().reserve(at(0));
        let shared = Arc::clone(&rate);
        let other = thread::spawn(move || shared.background().try_acquire(at(2)).is_ok());
        let ours = first.claim(at(2)).is_ok();
        let theirs = other.join().expect("the other thread returns");
        assert!(!(ours && theirs), "one token, one grant");
    });
}

/// A place that is given up beside its release: its token passes on, or goes back.
#[test]
fn a_place_given_up_beside_its_release_loses_nothing() {
    explore(Some(2), || {
        let rate = at_the_floor();
        let place = rate.background().reserve(at(0));
        let shared = Arc::clone(&rate);
        let other = thread::spawn(move || shared.background().try_acquire(at(2)).is_ok());
        drop(place);
        let theirs = other.join().expect("the other thread returns");
        let left = (0..2)
            .filter(|_| rate.background().try_acquire(at(2)).is_ok())
            .count();
        assert_eq!(left + usize::from(theirs), 1, "the token is not lost");
    });
}

/// Two threads that find the trickle due put one place into the first line.
#[test]
fn two_threads_put_one_trickle() {
    explore(Some(2), || {
        let rate = at_the_floor();
        let _place = rate.background().reserve(at(0));
        let line: Vec<_> = (0..20).map(|_| rate.reserve(at(0))).collect();
        let shared = Arc::clone(&rate);
        let other = thread::spawn(move || shared.background().try_acquire(at(0)).is_ok());
        assert!(rate.background().try_acquire(at(0)).is_err());
        assert_eq!(other.join().ok(), Some(false));
        let wait = rate.reserve(at(0)).claim(at(0)).expect_err("it waits");
        assert_eq!(wait.as_secs(), 2 * 22, "behind 20 and the trickle");
        drop(line);
    });
}

/// A trickle that is due is one token, whichever threads find it so.
#[test]
fn a_due_trickle_is_released_once() {
    explore(Some(2), || {
        let rate = at_the_floor();
        let mut places = [(); 2].map(|()| rate.background().reserve(at(0)));
        let _line: Vec<_> = (0..20).map(|_| rate.reserve(at(0))).collect();
        assert!(rate.background().try_acquire(at(0)).is_err(), "it puts it");
        let shared = Arc::clone(&rate);
        let other = thread::spawn(move || shared.background().try_acquire(at(42)).is_ok());
        assert!(rate.background().try_acquire(at(42)).is_err());
        assert_eq!(other.join().ok(), Some(false), "two came before it");
        let due = places.each_mut().map(|place| place.claim(at(42)).is_ok());
        assert_eq!(due, [true, false]);
    });
}

/// A thread that stops before it puts the trickle puts none where another one stands by then.
#[test]
fn a_late_trickle_replaces_none() {
    explore(Some(1), || {
        let rate = Arc::new(twenty_taken());
        let twenty = || rate.reserve_n(at(0), 20).expect("the bucket holds them");
        let _place = rate.background().reserve(at(0));
        let _line = twenty();
        let shared = Arc::clone(&rate);
        let other = thread::spawn(move || shared.background().try_acquire(at(0)).is_ok());
        let _more = twenty();
        assert!(rate.background().try_acquire(at(0)).is_err());
        assert_eq!(other.join().ok(), Some(false));
        let wait = rate.reserve(at(0)).claim(at(0)).expect_err("it waits");
        // Behind 40 and one trickle; the rate is rounded.
        assert!(wait.abs_diff(Duration::from_secs(42 / 2)) <= Duration::from_nanos(1));
    });
}

/// What a thread does to the counts of the second line.
#[derive(Clone, Copy)]
enum Step {
    Promise,
    GiveUp,
    Release,
    TakeSurplus,
    Claim,
    Unclaim,
    Grant,
}

impl Step {
    const ALL: [Self; 7] = [
        Self::Promise,
        Self::GiveUp,
        Self::Release,
        Self::TakeSurplus,
        Self::Claim,
        Self::Unclaim,
        Self::Grant,
    ];

    /// Does it to one token, and returns by how much that moves what waits, what is unclaimed and
    /// what was granted. `place` is one that may be given up.
    fn run(self, line: &SecondLine, place: u64) -> [i64; 3] {
        match self {
            Self::Promise => {
                assert!(line.promise(1).is_some(), "there is room");
                [1, 0, 0]
            }
            Self::GiveUp => {
                line.give_up(place, 1);
                [-1, 0, 0]
            }
            Self::Release => {
                line.add(1);
                [-1, 1, 0]
            }
            Self::TakeSurplus => {
                let surplus = i64::try_from(line.take_surplus()).expect("few");
                [surplus, -surplus, 0]
            }
            Self::Claim => {
                line.claim(1);
                [0, -1, 0]
            }
            Self::Unclaim => {
                line.unclaim(1, 0);
                [0, 1, -1]
            }
            Self::Grant => {
                line.grant(1);
                [0, 0, 1]
            }
        }
    }
}

/// Both steps of two threads are counted.
fn at_once(first: Step, second: Step) {
    model(move || {
        let line = Arc::new(SecondLine::new());
        let places = [(); 2].map(|()| line.promise(1).expect("there is room"));
        line.add(3); // one too much
        line.grant(2);
        let before = line.counts();
        let shared = Arc::clone(&line);
        let other = thread::spawn(move || second.run(&shared, places[1]));
        let one = first.run(&line, places[0]);
        let two = other.join().expect("the other thread returns");
        let sum = [0, 1, 2].map(|count| before[count] + one[count] + two[count]);
        assert_eq!(line.counts(), sum, "waiting, unclaimed, granted");
    });
}

#[test]
fn two_steps_at_once_are_both_counted() {
    for first in Step::ALL {
        for second in Step::ALL {
            at_once(first, second);
        }
    }
}

/// The end of the limit beside a claim: it goes, and no phantom waits afterwards.
#[test]
fn the_end_of_the_limit_lets_background_go() {
    explore(Some(2), || {
        let rate = at_the_floor();
        let mut place = rate.background().reserve(at(0));
        let shared = Arc::clone(&rate);
        let other = thread::spawn(move || shared.forget_throttles(at(1)));
        let ours = place.claim(at(1)).is_ok();
        other.join().expect("the other thread returns");
        assert!(ours || place.claim(at(1)).is_ok(), "nothing is limited");
        rate.record(at(2), SendPermit::sent_at(at(2)), Outcome::Throttled);
        assert_eq!(rate.snapshot(at(2)).background.waiting, 0);
    });
}

/// The steps of a release, with mistakes made on purpose.
#[derive(Default)]
struct Twin {
    /// Tokens of the first line that are there.
    there: AtomicU64,
    asked: AtomicU64,
    released: AtomicU64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mistake {
    None,
    AddBeforeTaking,
    KeepSurplus,
    NoSecondLook,
}

impl Twin {
    fn with(there: u64) -> Arc<Self> {
        let twin = Self::default();
        twin.there.store(there, SeqCst);
        Arc::new(twin)
    }

    fn take(&self) -> bool {
        let taken = self
            .there
            .fetch_update(SeqCst, SeqCst, |there| there.checked_sub(1));
        taken.is_ok()
    }

    fn give_surplus_back(&self) {
        let asked = self.asked.load(SeqCst);
        let surplus = self.released.load(SeqCst).saturating_sub(asked);
        let moved = self
            .asked
            .compare_exchange(asked, asked + surplus, SeqCst, SeqCst);
        if moved.is_ok() {
            self.there.fetch_add(surplus, SeqCst);
        }
    }

    fn release(&self, mistake: Mistake) {
        let waits = self.released.load(SeqCst) < self.asked.load(SeqCst);
        if waits && mistake == Mistake::AddBeforeTaking {
            self.released.fetch_add(1, SeqCst);
            self.take();
        } else if mistake == Mistake::NoSecondLook {
            self.give_surplus_back();
            if waits && self.take() {
                self.released.fetch_add(1, SeqCst);
            }
            return;
        } else if waits && self.take() {
            self.released.fetch_add(1, SeqCst);
        }
        if mistake != Mistake::KeepSurplus {
            self.give_surplus_back();
        }
    }
}

/// One request waits, and two threads look. Of `there` tokens it gets one, and the others stay.
fn released_by_two(there: u64, mistake: Mistake) {
    model(move || {
        let twin = Twin::with(there);
        twin.asked.store(1, SeqCst);
        let shared = Arc::clone(&twin);
        let other = thread::spawn(move || shared.release(mistake));
        twin.release(mistake);
        other.join().expect("the other thread returns");
        let got = u64::from(twin.released.load(SeqCst) >= 1);
        let left = twin.there.load(SeqCst);
        assert!(got <= there, "no token is released that was not there");
        assert_eq!(got + left, there, "no token is lost");
    });
}

/// A rise beside a waiter behind the line: how it takes its stand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stand {
    /// It stands, and then looks at the rate.
    ThenLooks,
    /// It has looked before.
    HasLooked,
    /// It stands, and then looks, and neither thread has a fence between the two.
    NoFence,
}

/// A rate rises and the thread looks for waiters. The waiter's timer is of the new rate, or it is
/// woken.
fn rise_beside(stand: Stand) {
    model(move || {
        let words = Arc::new((AtomicU64::new(1), AtomicU64::new(0)));
        let shared = Arc::clone(&words);
        let fence = move || {
            if stand != Stand::NoFence {
                fence(SeqCst);
            }
        };
        let other = thread::spawn(move || {
            let (rate, stands) = &*shared;
            rate.store(2, Relaxed);
            fence();
            stands.load(Relaxed) == 1
        });
        let (rate, stands) = &*words;
        let before = rate.load(Relaxed);
        stands.store(1, Relaxed);
        fence();
        let after = rate.load(Relaxed);
        let seen = if stand == Stand::HasLooked {
            before
        } else {
            after
        };
        let woken = other.join().expect("the other thread returns");
        assert!(woken || seen == 2, "it sleeps by the old rate");
    });
}

#[test]
fn a_waiter_that_stands_and_then_looks_sees_a_rise() {
    rise_beside(Stand::ThenLooks);
}

#[test]
#[should_panic(expected = "it sleeps by the old rate")]
fn a_waiter_that_looks_and_then_stands_misses_a_rise() {
    rise_beside(Stand::HasLooked);
}

#[test]
#[should_panic(expected = "it sleeps by the old rate")]
fn a_waiter_without_a_fence_misses_a_rise() {
    rise_beside(Stand::NoFence);
}

#[test]
fn the_twin_without_a_mistake_holds() {
    for there in 0..=2 {
        released_by_two(there, Mistake::None);
    }
}

#[test]
#[should_panic(expected = "no token is released that was not there")]
fn a_release_before_the_take_grants_what_is_not_there() {
    released_by_two(0, Mistake::AddBeforeTaking);
}

#[test]
#[should_panic(expected = "no token is lost")]
fn a_surplus_that_is_kept_is_lost() {
    released_by_two(2, Mistake::KeepSurplus);
}

#[test]
#[should_panic(expected = "no token is lost")]
fn a_surplus_looked_for_only_before_the_release_is_lost() {
    released_by_two(2, Mistake::NoSecondLook);
}
