//! The send rate under real threads: conservation, whatever the order of calls and of clocks.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use paceline::{ControlLaw, Outcome, Reservation, SendPermit, SendRate, Timestamp};

const THREADS: u64 = 8;
const MILLI: u64 = 1_000_000;

/// Creates a limiter that was throttled once, at 0.5 s: it fills at 0.7 × 0.8 × 2,000 = 1,120
/// tokens/s.
fn throttled_at_half_a_second() -> SendRate {
    let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    for _ in 0..999 {
        record(&rate, 0, Outcome::NotThrottled);
    }
    record(&rate, 500 * MILLI, Outcome::NotThrottled);
    record(&rate, 500 * MILLI, Outcome::Throttled);
    rate
}

fn record(rate: &SendRate, nanos: u64, outcome: Outcome) {
    let now = Timestamp::from_nanos(nanos);
    rate.record(now, SendPermit::sent_at(now), outcome);
}

/// Runs `work` on eight threads and returns the sum of what they return.
fn on_eight_threads(work: impl Fn(u64) -> u64 + Sync) -> u64 {
    thread::scope(|scope| {
        let handles: Vec<_> = (0..THREADS)
            .map(|i| {
                scope.spawn({
                    let work = &work;
                    move || work(i)
                })
            })
            .collect();
        handles
            .into_iter()
            .map(|handle| handle.join().expect("no thread panics"))
            .sum()
    })
}

/// The whole tokens minted from the throttle to `nanos`, at 1,120/s.
const fn minted(nanos: u64) -> u64 {
    (nanos - 500 * MILLI) * 1_120 / 1_000_000_000
}

#[test]
fn clocks_that_differ_by_50_ms_are_granted_what_was_minted_and_no_more() {
    const STEP: u64 = 100_000;
    const TRIES: u64 = 20_000;
    let rate = throttled_at_half_a_second();
    let clock = AtomicU64::new(500 * MILLI);
    let granted = on_eight_threads(|thread| {
        // Each thread's clock is behind the leading one by its own amount, up to 50 ms.
        let behind = thread * 50 * MILLI / (THREADS - 1);
        let tries = (0..TRIES).map(|_| clock.fetch_add(STEP, Relaxed).saturating_sub(behind));
        tries
            .filter(|nanos| rate.try_acquire(Timestamp::from_nanos(*nanos)).is_ok())
            .count() as u64
    });
    let end = clock.load(Relaxed);
    assert!(
        granted <= minted(end),
        "granted {granted} of {}",
        minted(end)
    );
    let rest = (0..2_000)
        .filter(|_| rate.try_acquire(Timestamp::from_nanos(end)).is_ok())
        .count();
    assert_eq!(
        granted + rest as u64,
        minted(end),
        "no token is lost: demand never let it overflow"
    );
}

#[test]
fn places_claimed_given_up_and_tried_for_add_up_to_what_was_minted() {
    const STEP: u64 = 50_000;
    const ROUNDS: u64 = 4_000;
    let rate = throttled_at_half_a_second();
    let clock = AtomicU64::new(500 * MILLI);
    let tick = || Timestamp::from_nanos(clock.fetch_add(STEP, Relaxed));
    let granted = on_eight_threads(|thread| {
        let mut random = fastrand::Rng::with_seed(thread);
        let mut places: Vec<Reservation<'_>> = Vec::new();
        let mut granted = 0;
        for _ in 0..ROUNDS {
            match random.u8(0..4) {
                0 if places.len() < 40 => places.push(rate.reserve(tick())),
                1 if !places.is_empty() => drop(places.swap_remove(random.usize(0..places.len()))),
                2 => granted += u64::from(rate.try_acquire(tick()).is_ok()),
                _ => places.retain_mut(|place| {
                    let due = place.claim(tick()).is_ok();
                    granted += u64::from(due);
                    !due
                }),
            }
        }
        granted
    });
    let end = clock.load(Relaxed);
    assert!(
        granted <= minted(end),
        "granted {granted} of {}",
        minted(end)
    );
    let rest = (0..3_000)
        .filter(|_| rate.try_acquire(Timestamp::from_nanos(end)).is_ok())
        .count() as u64;
    let capacity = 1_120;
    let left = minted(end) - granted;
    assert_eq!(
        rest,
        left.min(capacity),
        "what was not granted is there, up to the capacity"
    );
}

#[test]
fn throttles_of_eight_threads_are_all_answered() {
    let rate = throttled_at_half_a_second();
    on_eight_threads(|_| {
        for _ in 0..2 {
            record(&rate, 600 * MILLI, Outcome::Throttled);
        }
        0
    });
    // Seventeen cuts in all, each from the rate that the one before it left: 1,600 × 0.7¹⁷.
    let snapshot = rate.snapshot(Timestamp::from_nanos(600 * MILLI));
    let want = 1_600.0 * 0.7_f64.powi(17);
    assert!(
        (snapshot.fill_rate - want).abs() < 1e-6,
        "{snapshot:?}, want {want}"
    );
}
