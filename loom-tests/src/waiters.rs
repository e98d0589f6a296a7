//! Models of waiters in line, and of the threads that wake them.
//!
//! Claim: if a thread moves the line while another begins to wait, the waiter either sees it or is
//! woken; and however walks, comings and goings meet, the next walk finds all who wait. A waiter
//! who was told nothing still has its timer, so that none of these models has one that fires.

use core::{
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    task::{Context, Poll, Waker},
    time::Duration,
};

use alloc::{sync::Arc, task::Wake};
use loom::thread;
use paceline::{
    Clock, ControlLaw, Outcome, SendLimiter, SendPermit, SendRate, Timestamp,
    wait::{Acquire, PlaceInLine, Sleep, Timer},
};

use crate::explore;

/// A clock that the model sets, which is none of loom's business.
#[derive(Clone, Debug, Default)]
struct Hands(Arc<AtomicU64>);

impl Hands {
    fn set(&self, seconds: u64) {
        self.0.store(seconds * 1_000_000_000, SeqCst);
    }
}

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.load(SeqCst))
    }
}

/// Timers that never fire.
#[derive(Clone, Debug)]
struct Never;

impl Sleep for Never {
    type Timer = Self;

    fn timer(&self) -> Self {
        Self
    }
}

impl Timer for Never {
    fn arm(&mut self, _: Duration) {}

    fn poll_elapsed(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

/// How often a waiter was woken.
#[derive(Default)]
struct Woken(AtomicU64);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

struct Waiter {
    future: Acquire<Arc<SendRate>, Hands, Never>,
    woken: Arc<Woken>,
}

impl Waiter {
    /// Polls it. `true` if its turn has come.
    fn poll(&mut self) -> bool {
        let waker = Waker::from(Arc::clone(&self.woken));
        let polled = Pin::new(&mut self.future).poll(&mut Context::from_waker(&waker));
        polled.is_ready()
    }

    fn was_woken(&self) -> bool {
        self.woken.0.load(SeqCst) > 0
    }
}

struct Scene {
    limiter: SendLimiter<Arc<SendRate>, Hands, Never>,
    hands: Hands,
}

impl Scene {
    /// A limiter that was throttled at 0 with nothing measured: a token in two seconds.
    fn new() -> Self {
        let hands = Hands::default();
        let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
        let permit = SendPermit::sent_at(Timestamp::ZERO);
        rate.record(Timestamp::ZERO, permit, Outcome::Throttled);
        let limiter = SendLimiter::new(Arc::new(rate))
            .clock(hands.clone())
            .sleep_on(Never);
        Self { limiter, hands }
    }

    fn place(&self) -> PlaceInLine<Arc<SendRate>, Hands> {
        let place = self.limiter.clone().into_tokens(1).reserve();
        place.expect("there is no deadline")
    }

    fn waiter(&self) -> Waiter {
        Waiter {
            future: self.limiter.clone().into_tokens(1).acquire(),
            woken: Arc::default(),
        }
    }
}

/// The one ahead gives up while the one behind begins to wait: its turn has come, and it knows.
#[test]
fn a_rise_is_seen_by_the_waiter_or_wakes_it() {
    explore(Some(2), || {
        let scene = Scene::new();
        let ahead = scene.place();
        let mut waiter = scene.waiter();
        scene.hands.set(2);
        let other = thread::spawn(move || drop(ahead));
        let ready = waiter.poll();
        other.join().expect("the thread returns");
        assert!(ready || waiter.was_woken(), "its turn has come");
    });
}

/// A walk that begins before the waiter has its stand, and ends afterwards, does not leave it
/// behind.
#[test]
fn a_walk_finds_who_came_before_it_or_walks_again() {
    explore(Some(2), || {
        let scene = Scene::new();
        let (mut first, mut waiter) = (scene.waiter(), scene.waiter());
        let (_between, behind) = (first.poll(), scene.place());
        scene.hands.set(2);
        // The first leaves the line, and looks after those behind.
        let other = thread::spawn(move || assert!(first.poll(), "due"));
        assert!(!waiter.poll(), "due at 6 s");
        other.join().expect("the thread returns");
        let before = waiter.was_woken();
        scene.hands.set(4);
        drop(behind);
        assert!(waiter.was_woken() && !before, "the next walk finds it");
    });
}

/// Two who are ahead give up at once, one of them a waiter: the one behind is woken.
#[test]
fn who_gives_up_leaves_no_waiter_behind() {
    explore(Some(1), || {
        let scene = Scene::new();
        let place = scene.place();
        let (mut ahead, mut behind) = (scene.waiter(), scene.waiter());
        assert!(!ahead.poll() && !behind.poll());
        scene.hands.set(2);
        let other = thread::spawn(move || drop(place));
        drop(ahead);
        other.join().expect("the thread returns");
        assert!(behind.was_woken(), "its turn has come");
        assert!(behind.poll());
    });
}

/// Two begin to wait at once, in one table: both are found.
#[test]
fn two_who_come_at_once_are_both_found() {
    explore(Some(2), || {
        let scene = Scene::new();
        let ahead = scene.place();
        let (mut one, mut two) = (scene.waiter(), scene.waiter());
        let other = thread::spawn(move || {
            assert!(!one.poll());
            one
        });
        assert!(!two.poll());
        let one = other.join().expect("the thread returns");
        scene.hands.set(4);
        drop(ahead);
        assert!(one.was_woken() && two.was_woken(), "both are due");
    });
}
