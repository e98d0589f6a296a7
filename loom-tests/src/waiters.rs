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
    Class, Clock, ControlLaw, Outcome, SendLimiter, SendPermit, SendRate, Timestamp,
    law::PacedSettings,
    wait::{Acquire, PlaceInLine, Sleep, Timer},
};

use crate::explore;

/// A clock that the model sets, which is none of loom's business.
#[derive(Clone, Debug, Default)]
struct Hands(Arc<AtomicU64>);

impl Hands {
    fn set(&self, seconds: u64) {
        self.set_millis(seconds * 1_000);
    }

    fn set_millis(&self, millis: u64) {
        self.0.store(millis * 1_000_000, SeqCst);
    }
}

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.load(SeqCst))
    }
}

/// Timers that never fire, and remember for how long one was armed last.
#[derive(Clone, Debug, Default)]
struct Never(Arc<AtomicU64>);

impl Never {
    fn last(&self) -> Duration {
        Duration::from_nanos(self.0.load(SeqCst))
    }
}

impl Sleep for Never {
    type Timer = Self;

    fn timer(&self) -> Self {
        self.clone()
    }
}

impl Timer for Never {
    fn arm(&mut self, time: Duration) {
        let nanos = time.as_nanos().try_into().expect("hours at most");
        self.0.store(nanos, SeqCst);
    }

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

fn each_seconds(seconds: u64) -> PacedSettings {
    PacedSettings::fixed(1, Duration::from_secs(seconds)).expect("in range")
}

struct Scene {
    limiter: SendLimiter<Arc<SendRate>, Hands, Never>,
    rate: Arc<SendRate>,
    hands: Hands,
    timers: Never,
}

impl Scene {
    /// A limiter that was throttled at 0 with nothing measured: a token in two seconds.
    fn new() -> Self {
        let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
        let permit = SendPermit::sent_at(Timestamp::ZERO);
        rate.record(Timestamp::ZERO, permit, Outcome::Throttled);
        Self::of(rate)
    }

    /// A fixed rate: a token in two seconds, the first of which has been taken.
    fn fixed() -> Self {
        let rate = SendRate::paced(each_seconds(2), Timestamp::ZERO);
        assert!(rate.try_acquire(Timestamp::ZERO).is_ok());
        assert!(rate.try_acquire(Timestamp::ZERO).is_err());
        Self::of(rate)
    }

    fn of(rate: SendRate) -> Self {
        let (rate, hands, timers) = (Arc::new(rate), Hands::default(), Never::default());
        let limiter = SendLimiter::new(Arc::clone(&rate))
            .clock(hands.clone())
            .sleep_on(timers.clone());
        Self {
            limiter,
            rate,
            hands,
            timers,
        }
    }

    fn place(&self) -> PlaceInLine<Arc<SendRate>, Hands> {
        let place = self.limiter.clone().into_tokens(1).reserve();
        place.expect("there is no deadline")
    }

    /// One behind the line, which is there already.
    fn waiter_behind(&self) -> Waiter {
        assert!(self.rate.background().try_acquire(Timestamp::ZERO).is_err());
        let background = self.limiter.clone().into_tokens(1).class(Class::Background);
        Waiter {
            future: background.acquire(),
            woken: Arc::default(),
        }
    }

    fn waiter(&self) -> Waiter {
        Waiter {
            future: self.limiter.clone().into_tokens(1).acquire(),
            woken: Arc::default(),
        }
    }
}

/// The one ahead gives up while another begins to wait: its turn has come, and it knows.
fn a_place_given_up_meets(waiter: fn(&Scene) -> Waiter, preemptions: usize) {
    explore(Some(preemptions), move || {
        let scene = Scene::new();
        let ahead = scene.place();
        let mut waiter = waiter(&scene);
        scene.hands.set(2);
        let other = thread::spawn(move || drop(ahead));
        let ready = waiter.poll();
        other.join().expect("the thread returns");
        assert!(ready || waiter.was_woken(), "its turn has come");
    });
}

#[test]
#[ignore = "takes over 15 seconds: `ci/check.sh models` runs it"]
fn a_rise_is_seen_by_the_waiter_or_wakes_it() {
    a_place_given_up_meets(Scene::waiter, 2);
}

/// It has the token of the place in the first line, or is woken. The two swap no word in common, so
/// that only their fences order them.
#[test]
fn a_place_given_up_ahead_goes_to_background_or_wakes_it() {
    a_place_given_up_meets(Scene::waiter_behind, 1);
}

/// The rate rises while a waiter takes its stand: it is woken, or its timer is of the new rate.
fn a_faster_rate_meets(waiter: fn(&Scene) -> Waiter, preemptions: usize) {
    explore(Some(preemptions), move || {
        let scene = Scene::fixed();
        let mut waiter = waiter(&scene);
        let rate = Arc::clone(&scene.rate);
        let other = thread::spawn(move || rate.set_paced(each_seconds(1), Timestamp::ZERO));
        assert!(!waiter.poll());
        other.join().expect("the thread returns").expect("in range");
        assert!(waiter.was_woken() || scene.timers.last() <= Duration::from_secs(1));
    });
}

/// The fence of the waiter, before it swaps the head for itself, and the swap of the change order
/// the two.
#[test]
fn a_faster_rate_is_seen_by_the_waiter_or_wakes_it() {
    a_faster_rate_meets(Scene::waiter, 2);
}

/// The same of a waiter behind the line: its walk comes after that of the first one.
#[test]
fn a_faster_rate_is_seen_by_background_or_wakes_it() {
    a_faster_rate_meets(Scene::waiter_behind, 1);
}

/// A limiter that has measured 12.8 requests a second, with a throttle at 550 ms. Its fill rate is
/// 7.84 a second then, and 9.4 on the curve at 950 ms. The window ends at a second.
fn on_the_curve() -> SendRate {
    let at = |millis: u64| Timestamp::from_nanos(millis * 1_000_000);
    let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    for (millis, weight, outcome) in [
        (100, 7, Outcome::NotThrottled),
        (500, 1, Outcome::NotThrottled),
        (550, 1, Outcome::Throttled),
    ] {
        let permit = SendPermit::sent_at(at(millis)).costing(weight);
        rate.record(at(millis), permit, outcome);
    }
    rate
}

/// A response moves the rate along its curve while a waiter takes its stand behind five others: it
/// is woken, or its timer is of the new rate.
#[test]
fn a_response_is_seen_by_the_waiter_or_wakes_it() {
    explore(Some(2), || {
        let scene = Scene::of(on_the_curve());
        scene.hands.set_millis(550);
        let five = scene.limiter.clone().into_tokens(5).reserve();
        let mut waiter = scene.waiter();
        let rate = Arc::clone(&scene.rate);
        let other = thread::spawn(move || {
            let now = Timestamp::from_nanos(950_000_000);
            let permit = SendPermit::sent_at(now);
            rate.record(now, permit, Outcome::NotThrottled)
        });
        assert!(!waiter.poll());
        other.join().expect("the thread returns");
        // It is 670 ms by the old rate, and 625 by the new one.
        assert!(waiter.was_woken() || scene.timers.last() < Duration::from_millis(650));
        drop(five);
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
