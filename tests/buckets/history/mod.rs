//! Histories of concurrent calls, and the search for an order of them that a sequential model
//! allows.
//!
//! The search is Wing and Gong's, with the states that were tried remembered (Lowe): of the calls
//! left, any may come next that began before each of the others ended.

pub(crate) mod classes;
pub(crate) mod leases;

use core::{
    fmt::Debug,
    hash::Hash,
    hint,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst},
};
use std::{collections::HashSet, thread};

use fastrand::Rng;

/// One call: what it did and answered, and when it began and ended on a clock that all threads
/// share.
#[derive(Clone, Debug)]
pub(crate) struct Call<O> {
    /// `None`: before the threads began, or after they ended.
    pub(crate) thread: Option<usize>,
    pub(crate) began: u64,
    pub(crate) ended: u64,
    pub(crate) did: O,
}

impl<O> Call<O> {
    pub(crate) fn overlaps<P>(&self, other: &Call<P>) -> bool {
        self.began < other.ended && other.began < self.ended
    }
}

/// What one thread at a time could do.
pub(crate) trait Sequential: Clone + Eq + Hash {
    type Step;

    /// Returns the state after `step`, or `None` if it would not have answered so.
    fn after(&self, step: &Self::Step) -> Option<Self>;

    /// Returns the states that the other threads may have left when `step` comes next.
    fn meanwhile(&self, _step: &Self::Step) -> Vec<Self> {
        Vec::new()
    }
}

/// So many states are tried for one history at most. A few thousand are usual.
const MOST_STATES: usize = 500_000;

/// Whether the calls have an order that respects their times and that the model allows.
pub(crate) fn has_an_order<S: Sequential>(start: &S, calls: &[Call<S::Step>]) -> bool {
    assert!(calls.len() < 128, "one bit for each call");
    let all = (1_u128 << calls.len()) - 1;
    let mut open = vec![(0_u128, start.clone())];
    let mut tried = HashSet::new();
    while let Some((done, state)) = open.pop() {
        if done == all {
            return true;
        }
        if !tried.insert((done, state.clone())) {
            continue;
        }
        assert!(
            tried.len() < MOST_STATES,
            "no order of these calls was found"
        );
        let left = || (0..calls.len()).filter(|i| done & (1 << i) == 0);
        let first_end = left().map(|i| calls[i].ended).min().unwrap_or(0);
        let (mut next, mut first) = (Vec::new(), Vec::new());
        for index in left().filter(|i| calls[*i].began < first_end) {
            let step = &calls[index].did;
            if let Some(after) = state.after(step) {
                // One that changes nothing here is tried first. It need not come now: in another
                // state it might change something.
                let is_idle = after == state;
                let list = if is_idle { &mut first } else { &mut next };
                list.push((done | (1 << index), after));
            }
            open.extend(state.meanwhile(step).into_iter().map(|state| (done, state)));
        }
        open.extend(next);
        open.extend(first);
    }
    false
}

/// An object that several threads use at once.
pub(crate) trait Shared: Sync {
    type Did: Send + Debug;
    /// What one thread holds.
    type Hand<'a>: Send
    where
        Self: 'a;

    /// Makes some calls, and deals each of `threads` a hand.
    fn deal(&self, threads: usize, rng: &mut Rng) -> (Vec<Self::Hand<'_>>, Vec<Self::Did>);

    /// Makes a call of the thread's choosing.
    fn call<'a>(&'a self, hand: &mut Self::Hand<'a>, rng: &mut Rng) -> Self::Did;

    /// Makes the calls that show the state which all of it ends in.
    fn close(&self) -> Vec<Self::Did>;
}

/// Has `threads` threads make `calls` calls each on every one of `objects`, one object after the
/// other, and returns what happened to each object.
pub(crate) fn record<S: Shared>(
    objects: &[S],
    threads: usize,
    calls: usize,
    seed: u64,
) -> Vec<Vec<Call<S::Did>>> {
    let (clock, arrived) = (AtomicU64::new(0), AtomicUsize::new(0));
    let mut histories = Vec::new();
    let mut hands: Vec<Vec<_>> = (0..threads).map(|_| Vec::new()).collect();
    for (object, seed) in objects.iter().zip(seed..) {
        let (dealt, did) = object.deal(threads, &mut Rng::with_seed(seed));
        histories.push(in_order(&clock, did));
        for (hand, all) in dealt.into_iter().zip(&mut hands) {
            all.push(hand);
        }
    }
    let mut kept = Vec::new(); // what is still held: dropped once all is written down
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .zip(hands)
            .map(|(thread, mut hands)| {
                let (clock, arrived) = (&clock, &arrived);
                scope.spawn(move || {
                    let mut rng = Rng::with_seed(seed ^ (thread as u64) << 32);
                    let mut logs = Vec::new();
                    for ((object, hand), round) in objects.iter().zip(&mut hands).zip(1..) {
                        meet(arrived, round * threads);
                        let one = |_| {
                            let began = clock.fetch_add(1, SeqCst);
                            if rng.u8(..8) == 0 {
                                thread::yield_now(); // on few cores little overlaps
                            }
                            let did = object.call(hand, &mut rng);
                            let ended = clock.fetch_add(1, SeqCst);
                            Call {
                                thread: Some(thread),
                                began,
                                ended,
                                did,
                            }
                        };
                        logs.push((0..calls).map(one).collect::<Vec<_>>());
                    }
                    (logs, hands)
                })
            })
            .collect();
        for worker in workers {
            let (logs, hands) = worker.join().expect("the worker returns");
            for (history, log) in histories.iter_mut().zip(logs) {
                history.extend(log);
            }
            kept.push(hands);
        }
    });
    for (object, history) in objects.iter().zip(&mut histories) {
        history.extend(in_order(&clock, object.close()));
    }
    histories
}

/// Returns the calls of one thread while no other made any.
fn in_order<O>(clock: &AtomicU64, did: Vec<O>) -> Vec<Call<O>> {
    did.into_iter()
        .map(|did| Call {
            thread: None,
            began: clock.fetch_add(1, SeqCst),
            ended: clock.fetch_add(1, SeqCst),
            did,
        })
        .collect()
}

/// Waits until `all` have come: by spinning, so that they leave together.
fn meet(arrived: &AtomicUsize, all: usize) {
    arrived.fetch_add(1, SeqCst);
    let mut spins = 0_u32;
    while arrived.load(SeqCst) < all {
        spins += 1;
        if spins % 200 == 0 {
            thread::yield_now();
        } else {
            hint::spin_loop();
        }
    }
}

/// Fails, with the history, if no order explains it. Returns whether any two calls overlapped.
pub(crate) fn check<S: Sequential>(start: &S, calls: &[Call<S::Step>]) -> bool
where
    S::Step: Debug,
{
    let overlap = calls.iter().enumerate().any(|(i, one)| {
        calls[..i]
            .iter()
            .any(|other| other.thread != one.thread && one.overlaps(other))
    });
    if !has_an_order(start, calls) {
        let mut sorted: Vec<_> = calls.iter().collect();
        sorted.sort_by_key(|call| call.began);
        for call in sorted {
            let Call {
                thread,
                began,
                ended,
                did,
            } = call;
            println!("{began:>6}..{ended:<6} thread {thread:?}: {did:?}");
        }
        panic!("no order of these calls explains their answers");
    }
    overlap
}
