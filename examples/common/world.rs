//! What the tasks of a simulation share.

use alloc::rc::Rc;
use core::cell::RefCell;
use core::ops::RangeBounds;

use fastrand::Rng;
use paceline::SendPermit;

use super::limiter::{Limiter, Seat, Want};
use super::time;

/// A scene, its clients' limiters, the service, and what is counted.
#[derive(Debug)]
pub(crate) struct World<S, L, V, T> {
    pub(crate) scene: S,
    pub(crate) limiters: Vec<L>,
    pub(crate) service: RefCell<V>,
    pub(crate) rng: RefCell<Rng>,
    pub(crate) tally: RefCell<T>,
}

impl<S, L, V, T> World<S, L, V, T> {
    /// Plays the tasks that `begin` spawns until `end`, and returns what was counted.
    pub(crate) fn play(
        (scene, limiters): (S, impl Iterator<Item = L>),
        (service, tally): (V, T),
        (seed, end): (u64, u64),
        begin: impl FnOnce(&Rc<Self>),
    ) -> T {
        let world = Rc::new(Self {
            scene,
            limiters: limiters.collect(),
            service: RefCell::new(service),
            rng: RefCell::new(Rng::with_seed(seed)),
            tally: RefCell::new(tally),
        });
        time::run(seed, end, || begin(&world));
        let world = Rc::into_inner(world).expect("its tasks have ended");
        world.tally.into_inner()
    }

    /// Returns a number from this range.
    pub(crate) fn draw(&self, range: impl RangeBounds<u64>) -> u64 {
        self.rng.borrow_mut().u64(range)
    }
}

/// Waits for the turn of a request, by sleeps of so long at most as the limiter says.
pub(crate) async fn turn(
    limiter: &dyn Limiter,
    want: Want,
    sleep: impl AsyncFn(u64),
) -> SendPermit {
    let mut seat = Seat::default();
    loop {
        match limiter.ask(time::now(), want, &mut seat) {
            Ok(permit) => return permit,
            Err(span) => sleep(span).await,
        }
    }
}
