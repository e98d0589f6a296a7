//! How many cache lines an operation reads and writes that other threads write too: counted, not
//! timed.
//!
//! Two threads do the same on one object, in turn. A line that both write is shared; one that a
//! single thread writes is its own, as a count of sends in stripes is. Lines are pairs of 64 bytes,
//! which processors fetch together. On a machine with one core there is one stripe, and these fail.
//!
//! Out of reach: a lost compare-and-swap, which needs the other thread at the same instant; a retry
//! costs as much as the first try. And locks and allocations, of which the hot paths have none.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use core::cell::RefCell;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::thread;

use paceline::{
    Adaptive, Clock, ControlLaw, Outcome, RetryQuota, RetryStrategy, SendLimiter, SendPermit,
    SendRate, Standard, Timestamp,
    law::PacedSettings,
    strategy::{Reports, SendRequest, SendTurn},
    wait::{Sleep, Timer},
};
use paceline_core::stall::{Access, Kind, set_watch};

const LINE: usize = 128;
const SECOND: u64 = 1_000_000_000;

std::thread_local! {
    static SEEN: RefCell<Vec<Access>> = const { RefCell::new(Vec::new()) };
}

fn watch(access: Access) {
    SEEN.with_borrow_mut(|seen| seen.push(access));
}

/// What one operation does, apart from what another thread does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    /// Loads of any line.
    loads: usize,
    /// Writes to lines that both threads write.
    shared_writes: usize,
    /// Different lines among those.
    shared_lines: usize,
    /// Writes to lines that only this thread writes.
    own_writes: usize,
    /// Compare-and-swaps that found something else.
    lost: usize,
}

/// How often each thread does the operation before it is watched: until all that is made once is
/// made, and threads that meet at a count have counts of their own.
const BEFORE: usize = 256;

/// One test at a time: threads are numbered, and the lowest numbers have counts of their own.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does `work` on a new thread, whose number is free again afterwards.
fn apart<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| scope.spawn(work).join()).expect("the work does not panic")
}

fn watched(operation: impl Fn()) -> Vec<Access> {
    set_watch(watch);
    operation();
    set_watch(|_| {});
    SEEN.take()
}

/// Returns the lines of the accesses that write, one for each.
fn written(accesses: &[Access]) -> impl Iterator<Item = usize> {
    let writes = accesses.iter().filter(|access| access.kind != Kind::Load);
    writes.map(|access| access.address / LINE)
}

/// Counts what the second of two threads does that do `operation` on the same object.
fn count(operation: impl Fn() + Sync) -> Counts {
    let phase = Barrier::new(2);
    let work = |turn: usize| {
        let mut seen = Vec::new();
        // In turn, one operation each: so they meet.
        for round in 0..2 * BEFORE {
            if round % 2 == turn {
                operation();
            }
            phase.wait();
        }
        for watch in 0..2 {
            if watch == turn {
                seen = watched(&operation);
            }
            phase.wait(); // both are there to the end
        }
        seen
    };
    let (first, second) = thread::scope(|scope| {
        let workers = [0, 1].map(|turn| scope.spawn(move || work(turn)));
        let [first, second] = workers.map(|worker| worker.join().expect("it does not panic"));
        (first, second)
    });
    let first: BTreeSet<_> = written(&first).collect();
    let (to_shared, to_own): (Vec<_>, Vec<_>) =
        written(&second).partition(|line| first.contains(line));
    let of = |kind| second.iter().filter(|access| access.kind == kind).count();
    Counts {
        loads: of(Kind::Load),
        shared_writes: to_shared.len(),
        shared_lines: to_shared.iter().collect::<BTreeSet<_>>().len(),
        own_writes: to_own.len(),
        lost: of(Kind::LostSwap),
    }
}

/// Fails if an operation on the path `name` does more or less than it may.
fn assert_counts(name: &str, counts: Counts, shared_writes: usize, own_writes: usize) {
    println!("{name}: {counts:?}");
    let found = (counts.shared_writes, counts.own_writes, counts.lost);
    assert_eq!(found, (shared_writes, own_writes, 0), "{name}");
}

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

/// What a test measures is what it says: a twin that writes one line for all is found out.
#[test]
fn a_line_that_both_threads_write_is_shared() {
    let _alone = alone();
    let quota = RetryQuota::new(5_000);
    let counts = count(|| {
        let _spent = quota.try_acquire(1);
    });
    assert_counts("one token", counts, 1, 0);
    assert_eq!((counts.shared_lines, counts.loads), (1, 1));
}

/// A success told to a full quota is one load, and a refusal two: who takes looks at the capacity
/// as well.
#[test]
fn a_quota_writes_only_what_changes() {
    let _alone = alone();
    let quota = RetryQuota::new(500);
    let full = count(|| quota.credit(1));
    assert_counts("quota, success when full", full, 0, 0);
    assert_eq!(full.loads, 1);
    let pair = count(|| {
        let permit = quota.try_acquire(5).expect("it is full");
        quota.release(permit);
    });
    assert_counts("quota, pair", pair, 2, 0);
    assert_eq!(pair.shared_lines, 1);
    drop(quota.try_acquire(500));
    let empty = count(|| assert!(quota.try_acquire(5).is_none()));
    assert_counts("quota, refused", empty, 0, 0);
    assert_eq!(empty.loads, 1);
}

/// A clock that stands still, so that no window ends.
#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        at(SECOND)
    }
}

fn request(strategy: &dyn RetryStrategy) {
    let mut token = strategy.acquire_initial_token(None).expect("always given");
    let request = SendRequest::new().token(&token);
    let permit = strategy.admit(&mut SendTurn::new(), request);
    token.sent(permit.expect("its turn has come"));
    strategy
        .record_success(token, Reports::new())
        .expect("its own token");
}

/// A healthy request writes no line that another thread writes.
#[test]
fn a_healthy_request_writes_nothing_shared() {
    let _alone = alone();
    let standard = Standard::new();
    assert_counts("standard, healthy", count(|| request(&standard)), 0, 0);
    let published = Adaptive::builder()
        .law(ControlLaw::Aws)
        .clock(Arc::new(Still));
    for builder in [published.clone(), published.paced(PacedSettings::new())] {
        let adaptive = builder.clone().build().expect("the defaults are in range");
        assert_counts("adaptive, healthy", count(|| request(&adaptive)), 0, 1);
        let exact = builder.exact_timing(true).build().expect("in range");
        assert_counts("the same, exact timing", count(|| request(&exact)), 0, 1);
    }
}

/// At the lowest rate, with a full bucket of one token or none.
fn throttled(law: ControlLaw) -> SendRate {
    let rate = SendRate::new(law, Timestamp::ZERO);
    let sent = SendPermit::sent_at(Timestamp::ZERO);
    apart(|| rate.record(at(SECOND), sent, Outcome::Throttled));
    rate
}

/// A refusal writes nothing.
#[test]
fn a_refusal_writes_nothing() {
    let _alone = alone();
    for law in [ControlLaw::Aws, ControlLaw::Paced] {
        let rate = throttled(law);
        while rate.try_acquire(at(SECOND)).is_ok() {}
        let counts = count(|| {
            assert!(rate.try_acquire(at(SECOND)).is_err());
        });
        assert_counts("refused", counts, 0, 0);
    }
}

/// A million a second at most, from the start.
fn at_its_ceiling() -> SendRate {
    let second = Duration::from_secs(1);
    let settings = PacedSettings::builder().ceiling(1_000_000, second).build();
    SendRate::paced(settings.expect("in range"), Timestamp::ZERO)
}

/// A limited acquire moves one word: its own while its thread has a lease, else the line's.
#[test]
fn a_limited_acquire_writes_one_word() {
    let _alone = alone();
    let rate = at_its_ceiling();
    let counts = count(|| {
        let _permit = rate.try_acquire(at(SECOND)).expect("the bucket is full");
    });
    assert_counts("limited acquire, of a lease", counts, 0, 1);
    let published = throttled(ControlLaw::Aws);
    let seconds = AtomicU64::new(10);
    let published = count(|| {
        // Two seconds after the one before: a token each time.
        let now = at(seconds.fetch_add(2, Relaxed) * SECOND);
        let _permit = published.try_acquire(now).expect("a token is minted");
    });
    assert_counts("limited acquire, published law", published, 1, 0);
}

/// What a response writes while the limiter limits: within a window and at a rate that stays, its
/// own count.
#[test]
fn a_response_at_a_steady_rate_writes_its_own_count() {
    let _alone = alone();
    let rate = at_its_ceiling();
    let sent = |now| SendPermit::sent_at(at(now));
    apart(|| rate.record(at(SECOND), sent(SECOND), Outcome::NotThrottled));
    let counts = count(|| {
        let now = SECOND + 1_000_000;
        rate.record(at(now), sent(now), Outcome::NotThrottled);
    });
    assert_counts("paced, response", counts, 0, 1);
}

/// On its curve the published law moves the rate with every response.
#[test]
fn a_response_on_the_published_curve_moves_the_rate() {
    let _alone = alone();
    let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    let record = |millis: u64, outcome| {
        let now = at(millis * (SECOND / 1_000));
        rate.record(now, SendPermit::sent_at(now), outcome);
    };
    // A thousand a second are measured, before the throttle and long after it: twice that is more
    // than the curve has.
    apart(|| {
        (10_000..11_000).for_each(|millis| record(millis, Outcome::NotThrottled));
        record(11_000, Outcome::Throttled);
        (20_000..21_600).for_each(|millis| record(millis, Outcome::NotThrottled));
    });
    let next = AtomicU64::new(21_600);
    let counts = count(|| record(next.fetch_add(1, Relaxed), Outcome::NotThrottled));
    let seen = rate.snapshot(at(23 * SECOND));
    assert!(
        seen.fill_rate < 1.5 * seen.measured_rate,
        "on the curve: {seen:?}"
    );
    println!("published, response on the curve: {counts:?}");
    assert_eq!(counts.own_writes, 1);
    assert!(counts.shared_writes <= 4, "{counts:?}");
}

/// Timers that never fire.
impl Sleep for Still {
    type Timer = Self;

    fn timer(&self) -> Self {
        Self
    }
}

impl Timer for Still {
    fn arm(&mut self, _: Duration) {}

    fn poll_elapsed(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

/// Returns how many of `waiting` are pending after a poll of each.
fn poll_all<F: Future>(waiting: &mut [Pin<Box<F>>]) -> usize {
    let mut cx = Context::from_waker(Waker::noop());
    let polled = waiting.iter_mut().map(|place| place.as_mut().poll(&mut cx));
    polled.filter(Poll::is_pending).count()
}

/// Returns how many accesses a new rate takes that wakes the waiters of a line, of whom three in
/// eight have given up.
fn accesses_of_a_new_rate(waiters: usize) -> usize {
    let fixed = |rate| PacedSettings::fixed(rate, Duration::from_secs(1)).expect("in range");
    let rate = Arc::new(SendRate::paced(fixed(1), Timestamp::ZERO));
    let limiter = SendLimiter::new(rate.clone()).clock(Still).sleep_on(Still);
    let limiter = &limiter;
    let waiting = (0..=waiters).map(|_| Box::pin(async move { limiter.token().acquire().await }));
    let mut waiting: Vec<_> = waiting.collect();
    assert_eq!(poll_all(&mut waiting), waiters, "one goes at once");
    drop(waiting.remove(0));
    let mut numbers = (1..=waiting.len()).map(|number| number % 8);
    waiting.retain(|_| numbers.next().is_some_and(|number| number > 2));
    assert_eq!(poll_all(&mut waiting), waiting.len(), "each stands again");
    let seen = watched(|| {
        rate.set_paced(fixed(2), at(SECOND)).expect("it is paced");
    });
    seen.len()
}

/// In proportion to the waiters, not to their square.
#[test]
fn a_new_rate_counts_the_places_given_up_once() {
    let _alone = alone();
    let few = accesses_of_a_new_rate(400);
    for waiters in [800, 1_600] {
        let many = accesses_of_a_new_rate(waiters);
        println!("a new rate: {few} of 400 waiters, {many} of {waiters}");
        assert!(many <= few * waiters / 400 * 5 / 4, "{waiters}");
    }
}
