//! A waker that panics, as one of a runtime that has shut down may: those behind it are woken all the
//! same, and so is the thread spared that wakes them.

use alloc::{sync::Arc, task::Wake};
use core::{
    future::Future,
    pin::pin,
    sync::atomic::{AtomicU32, Ordering::SeqCst},
    task::{Context, Waker},
};

use crate::{
    steady::fixed,
    world::{World, limiter},
};

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("the runtime is gone");
    }
}

#[derive(Default)]
struct Counts(AtomicU32);

impl Wake for Counts {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn those_behind_a_waker_that_panics_are_woken() {
    let world = World::default();
    let limiter = limiter(fixed(10), &world.hands);
    let ahead: Vec<_> = (0..20)
        .map(|_| limiter.tokens(1).reserve().expect("no deadline"))
        .collect();
    let counts = Arc::new(Counts::default());
    let panics = Waker::from(Arc::new(Panics));
    let counted = Waker::from(Arc::clone(&counts));
    let (first, second) = (limiter.tokens(1).acquire(), limiter.tokens(1).acquire());
    let (mut first, mut second) = (pin!(first), pin!(second));
    let mut poll = |waker| first.as_mut().poll(&mut Context::from_waker(waker));
    assert!(poll(&panics).is_pending());
    let mut poll = |waker| second.as_mut().poll(&mut Context::from_waker(waker));
    assert!(poll(&counted).is_pending());
    drop(ahead);
    assert_eq!(counts.0.load(SeqCst), 1);
}
