//! Leases by one thread, which changes nothing that can be seen, and by several.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "a test may overflow, and fail"
)]

use alloc::{format, string::String, vec, vec::Vec};
use core::time::Duration;
use std::{sync::Barrier, thread};

use super::*;
use crate::atomic::SendRate;
use crate::atomic::counter::cores;
use crate::fixed::{Rate, SECOND};
use crate::law::paced::PacedSettings;
use crate::{Outcome, SendPermit, Timestamp};

const MICRO: u64 = 1_000;

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

/// A limiter of so many tokens a second, with what its bucket holds in milliseconds.
fn fixed(tokens: u32, burst: u64) -> SendRate {
    let settings = PacedSettings::fixed(tokens, Duration::from_secs(1)).expect("in range");
    let settings = settings.to_builder().burst(Duration::from_millis(burst));
    SendRate::paced(settings.build().expect("in range"), Timestamp::ZERO)
}

/// The rate, in tokens a second, from which on leases of two tokens are taken.
fn least() -> u32 {
    let cores = u32::try_from(cores()).expect("few");
    cores * 7_630
}

fn take(rate: &SendRate, now: u64, most: u64) -> u64 {
    (0..most)
        .take_while(|_| rate.try_acquire(at(now)).is_ok())
        .count() as u64
}

/// Returns what is left of the calling thread's lease, in whole tokens.
fn left(rate: &SendRate) -> u64 {
    let engaged = rate.words().expect("it limits");
    engaged.lending().own().map_or(0, |lease| {
        lease.last().since(lease.cursor()).unsigned_abs() / TOKEN
    })
}

/// Takes tokens at `now` until the thread has a lease of `tokens` or more.
fn with_lease(rate: &SendRate, now: u64, tokens: u64) -> u64 {
    let mut taken = 0;
    while left(rate) < tokens {
        assert!(rate.try_acquire(at(now)).is_ok(), "after {taken}");
        taken += 1;
    }
    taken
}

/// A lone thread sees the same as if it took its tokens one by one.
#[test]
fn one_thread_cannot_tell_leases_from_single_tokens() {
    let second = Duration::from_secs(1);
    for seed in 0..300 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let tokens = rng.u32(least() / 2..4_000_000);
        let burst = rng.u64(1..100);
        let mut rates = [fixed(tokens, burst), fixed(tokens, burst)];
        rates[1].law.lend_nothing();
        let (mut now, mut latest) = (rng.u64(0..SECOND), 0);
        let mut permits = vec![];
        for step in 0..2_000 {
            let same = |seen: [String; 2]| {
                assert_eq!(seen[0], seen[1], "seed {seed}, step {step}, at {now}");
            };
            match rng.u32(0..1_000) {
                0 => {
                    let new = PacedSettings::fixed(rng.u32(1_000..4_000_000), second);
                    let new = new.expect("in range").to_builder();
                    let new = new.burst(Duration::from_millis(burst)).build();
                    let new = new.expect("in range");
                    same(
                        rates
                            .each_ref()
                            .map(|rate| format!("{:?}", rate.set_paced(new, at(now)))),
                    );
                }
                1 => {
                    let outcome = if rng.bool() {
                        Outcome::Throttled
                    } else {
                        Outcome::ThrottledFor(Duration::from_micros(rng.u64(0..500)))
                    };
                    let permit = SendPermit::sent_at(at(now));
                    same(
                        rates
                            .each_ref()
                            .map(|rate| format!("{:?}", rate.record(at(now), permit, outcome))),
                    );
                }
                2 => rates.iter().for_each(|rate| rate.reset(at(now))),
                3 => rates.iter().for_each(|rate| rate.forget_throttles(at(now))),
                4..=6 => {
                    let weight = rng.u32(1..40);
                    same(rates.each_ref().map(|rate| {
                        let mut place = rate.reserve_n(at(now), weight).ok();
                        let claimed = place.as_mut().map(|place| place.claim(at(now)));
                        format!("{claimed:?}")
                    }));
                }
                7..=9 => {
                    let weight = rng.u32(2..40);
                    let taken = rates
                        .each_ref()
                        .map(|rate| rate.try_acquire_n(at(now), weight));
                    same(taken.map(|taken| format!("{taken:?}")));
                    permits.extend(taken[0].ok());
                }
                10..=19 => {
                    if let Some(permit) = permits.pop() {
                        let cost = rng.u32(1..60);
                        same(
                            rates
                                .each_ref()
                                .map(|rate| format!("{:?}", rate.settle(at(now), permit, cost))),
                        );
                    }
                }
                20..=29 => {
                    same(rates.each_ref().map(|rate| {
                        format!("{:?} {}", rate.snapshot(at(now)), rate.is_idle(at(now)))
                    }));
                }
                30..=39 => now += rng.u64(0..400 * MICRO),
                40..=60 => same(rates.each_ref().map(|rate| {
                    let permit = SendPermit::sent_at(at(now));
                    format!("{:?}", rate.record(at(now), permit, Outcome::NotThrottled))
                })),
                61..=63 => now = now.saturating_sub(rng.u64(0..50 * MICRO)),
                64 => now += rng.u64(0..10 * SECOND),
                _ => {
                    // An older clock may find a hint of how long to wait, or none.
                    latest = now.max(latest);
                    same(rates.each_ref().map(|rate| {
                        let taken = rate.try_acquire(at(now));
                        let exact = taken.map_err(|wait| (now == latest).then_some(wait));
                        format!("{exact:?}")
                    }));
                    now += rng.u64(0..20) * rng.u64(0..200);
                }
            }
        }
    }
}

/// A spend by the age of the lease takes the same tokens as a spend that computes where a full
/// bucket stands.
#[test]
fn ages_decide_as_a_full_bucket_does() {
    for seed in 0..2_000 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let rate = Rate::from_raw(u128::from(rng.u64(Leases::LEAST_RATE..u64::MAX)));
        let minted = Minted::from_bits(u128::from(rng.u64(..)) << rng.u32(0..40));
        let full = Place::from_bits(rng.u64(..));
        let mut cursor = full.plus(TOKEN + rng.u64(0..4) * rng.u64(0..100 * TOKEN));
        let last = cursor.plus(rng.u64(1..MOST) * TOKEN);
        let lease = Lease::default();
        let terms = Terms {
            changes: 1,
            from: SECOND,
            full,
            minted,
            rate,
            cancelled: 0,
        };
        lease.ask(SECOND);
        lease.begin(terms, cursor, last);
        let fraction = minted.to_bits() & ((1 << FINER) - 1);
        let pause = rng.u64(1..4_000);
        let mut age = 0;
        for step in 0..500 {
            let since = u128::from(rate.raw()) * u128::from(age) + fraction;
            let now = full.plus(u64::try_from(since >> FINER).unwrap());
            let next = if now.since(cursor) > 0 { now } else { cursor }.plus(TOKEN);
            let goes = age < LONGEST && last.since(next) >= 0;
            if goes {
                cursor = next;
            }
            let at = SECOND + age;
            let taken = lease.spend(1, at) || lease.reckon(1, at, rng.bool());
            assert_eq!(taken, goes, "seed {seed}, step {step}");
            assert_eq!(lease.cursor(), cursor, "seed {seed}, step {step}");
            age += if rng.u8(0..4) == 0 {
                rng.u64(0..pause)
            } else {
                rng.u64(0..3)
            };
            age = age.saturating_sub(u64::from(rng.u8(0..50) == 0));
        }
    }
}

#[test]
fn a_busy_thread_takes_twice_as_many_each_time_and_a_slow_one_takes_none() {
    let rate = fixed(1_000_000, 50);
    let mut now = SECOND;
    let mut sizes = vec![];
    for _ in 0..200 {
        let before = left(&rate);
        assert!(rate.try_acquire(at(now)).is_ok());
        if left(&rate) > before {
            sizes.push(left(&rate) + 1);
        }
    }
    let most = (1_000_000_u64 << 18) / SECOND / cores() as u64;
    let doubled = [2, 4, 8, 16, 32, 64, 128];
    assert_eq!(sizes, doubled.map(|size: u64| size.min(most)));
    for _ in 0..3 {
        now += LONGEST;
        assert!(rate.try_acquire(at(now)).is_ok());
        assert_eq!(left(&rate), 0);
    }
    // A lease is used up in half of its time, and in all of its time.
    for (gap, next) in [(LONGEST / 2 - 1, 1), (LONGEST / 2, 1), (1, 0), (1, 3)] {
        now += gap;
        assert!(rate.try_acquire(at(now)).is_ok());
        assert_eq!(left(&rate), next, "after {gap} ns");
        now += 1;
        (0..next / 2 * 2).for_each(|_| assert!(rate.try_acquire(at(now)).is_ok()));
    }
}

#[test]
fn no_lease_is_taken_below_two_tokens_in_its_time_for_each_core() {
    let most = least() - 10 * u32::try_from(cores()).expect("few");
    for (tokens, leased) in [(1_000, false), (most, false), (least(), true)] {
        let rate = fixed(tokens, 1_000);
        take(&rate, SECOND, 10);
        let engaged = rate.words().expect("it limits");
        let own = engaged
            .lending()
            .own()
            .is_some_and(|lease| lease.rate.load(Relaxed) > 0);
        assert_eq!(own, leased, "{tokens}");
    }
}

#[test]
fn no_lease_has_more_than_the_most() {
    let lease = Lease::default();
    let most = (0..20).map(|_| lease.ask(0)).max();
    assert_eq!(most, Some(MOST));
}

/// In half of a lease's time the rate mints 128 tokens.
#[test]
fn a_lease_far_ahead_of_a_full_bucket_is_good_no_longer() {
    let full = Place::from_bits(0);
    let first = full.plus(3 * TOKEN);
    let terms = Terms {
        changes: 1,
        from: SECOND,
        full,
        minted: Minted::from_bits(0),
        rate: Rate::from_raw(1 << 54),
        cancelled: 0,
    };
    let lease = Lease::default();
    lease.ask(SECOND);
    lease.begin(terms, first, first.plus(1_000 * TOKEN));
    assert_eq!(lease.cursor(), first);
    assert!((0..600).all(|_| lease.spend(1, SECOND)));
    let half = SECOND + LONGEST / 2;
    assert!(!lease.spend(1, half) && lease.reckon(1, half, true));
    assert_eq!(lease.cursor(), first.plus(601 * TOKEN));
    let end = SECOND + LONGEST;
    assert!(lease.spend(1, end - 1));
    assert!(!lease.spend(1, end) && !lease.reckon(1, end, true));
}

#[test]
fn times_are_rounded_so_that_no_token_comes_early() {
    assert_eq!([1 << 60, 3 << 60].map(nanos_for_one), [16, 6]);
    // All bits left out of the division are set. Without these bits the division would have no
    // rest.
    let rate = (129 << 40) | ((1 << LONGEST_BITS) - 1);
    let nanos = nanos_within(129_000, rate);
    assert_eq!(nanos, 999);
    let brought = |nanos: u64| (u128::from(rate) * u128::from(nanos)) >> FINER;
    assert!(brought(nanos) <= 129_000 && u128::from(rate) * 1_000 > 129_000 << FINER);
}

#[test]
fn the_age_of_a_lease_is_by_the_time_of_its_callers() {
    let settings = fixed(1_000_000, 50).paced_settings();
    let rate = SendRate::paced(settings.expect("it has settings"), at(5 * SECOND));
    with_lease(&rate, 6 * SECOND, 6);
    let before = left(&rate);
    assert_eq!(take(&rate, 6 * SECOND, 2), 2);
    assert_eq!(left(&rate), before - 2);
}

#[test]
#[cfg_attr(target_family = "wasm", ignore = "needs threads")]
fn a_lease_is_good_for_a_quarter_of_a_millisecond() {
    for (age, goes_on) in [
        (0, true),
        (LONGEST - 1, true),
        (LONGEST, false),
        (SECOND, false),
    ] {
        // A bucket so large that none of its tokens are too old.
        let rate = fixed(1_000_000, 10_000);
        take(&rate, 0, 5_000_000);
        let now = SECOND;
        with_lease(&rate, now, 8);
        let before = left(&rate);
        assert!(rate.try_acquire(at(now + age)).is_ok());
        assert_eq!(left(&rate) + 1 == before, goes_on, "{age}");
    }
    let rate = fixed(1_000_000, 50);
    with_lease(&rate, SECOND, 8);
    let before = left(&rate);
    assert!(rate.try_acquire(at(SECOND - 1)).is_ok());
    assert_ne!(left(&rate) + 1, before, "by an older clock");
}

#[test]
fn a_full_bucket_is_exact_to_the_token_beside_a_lease() {
    for later in [0, 1, 700, 3_000, 5_500, 30_500, 90_000, LONGEST, SECOND] {
        let rate = fixed(1_000_000, 1);
        let now = 10 * SECOND;
        let before = with_lease(&rate, now, 4);
        let now = now + later;
        let held = (1_000 - before + later / MICRO).min(1_000);
        assert_eq!(take(&rate, now, 2_000), held, "after {later} ns");
        assert_eq!(take(&rate, now + MICRO, 2_000), 1, "after {later} ns");
    }
}

/// The grants to other threads beside a lease, and to its thread afterwards, are what the bucket
/// held.
#[test]
#[cfg_attr(target_family = "wasm", ignore = "needs threads")]
fn what_is_left_of_a_lease_goes_back() {
    let rate = fixed(1_000_000, 1);
    let now = SECOND;
    // The bucket is not full, since a full bucket would have lost these tokens first.
    let mut granted = take(&rate, now, 500) + with_lease(&rate, now, 6);
    let kept = left(&rate);
    let other = |now| thread::scope(|scope| scope.spawn(|| take(&rate, now, 5_000)).join());
    granted += other(now).expect("no panic");
    assert_eq!(granted + kept, 1_000);
    // The lease is too old later, but the bucket has kept its tokens.
    let rest = rate.snapshot(at(now)).available;
    assert_eq!(format!("{rest:.6}"), format!("{kept}.000000"));
    let later = now + LONGEST;
    let minted = LONGEST / MICRO;
    assert_eq!(other(later).expect("no panic"), minted);
    assert_eq!(take(&rate, later, 5_000), kept);
    // After a millisecond the bucket has not kept them.
    let now = now + SECOND;
    let mut granted = with_lease(&rate, now, 6);
    granted += other(now).expect("no panic");
    assert!(granted < 1_000);
    let later = now + 2 * SECOND;
    assert_eq!(other(later).expect("no panic"), 1_000);
    assert_eq!(take(&rate, later, 5_000), 0);
}

/// Gives back the lease of the calling thread.
fn give_back(rate: &SendRate, now: u64) {
    assert!(rate.try_acquire_n(at(now), 100_000).is_err());
    assert_eq!(left(rate), 0);
}

/// Returns what `call` returns on another thread.
fn elsewhere<T: Send>(call: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(call).join().expect("no panic"))
}

/// Nothing is minted, so every token is there again, even if a lease goes back after leases that
/// were taken later.
#[test]
#[cfg_attr(target_family = "wasm", ignore = "needs threads")]
fn leases_of_a_full_bucket_go_back_in_any_order() {
    let rate = fixed(1_000_000, 1);
    let now = SECOND;
    let lease = |later: &(dyn Fn() -> u64 + Sync)| {
        let granted = with_lease(&rate, now, 6) + elsewhere(later);
        give_back(&rate, now);
        granted
    };
    let granted = lease(&|| lease(&|| lease(&|| take(&rate, now, 1))));
    assert_eq!(granted + take(&rate, now, 5_000), 1_000);
}

/// Tokens that go back ahead of a lease fill the bucket sooner. Tokens of the lease that do not fit
/// are not given back.
#[test]
#[cfg_attr(target_family = "wasm", ignore = "needs threads")]
fn a_lease_before_another_leaves_room_for_fewer_of_its_tokens() {
    let rate = fixed(1_000_000, 1);
    let now = SECOND;
    let barrier = Barrier::new(2);
    let spent = with_lease(&rate, now, 6);
    let granted = thread::scope(|scope| {
        let later = scope.spawn(|| {
            let spent = spent + with_lease(&rate, now, 6) + elsewhere(|| take(&rate, now, 1));
            barrier.wait();
            barrier.wait();
            // Enough tokens to fill the bucket, and three more.
            let now = now + (spent + 3) * MICRO;
            let granted = elsewhere(|| take(&rate, now, 5_000));
            give_back(&rate, now);
            granted + take(&rate, now, 5_000)
        });
        barrier.wait();
        give_back(&rate, now);
        barrier.wait();
        later.join().expect("no panic")
    });
    // The token that was taken behind the lease is not there either.
    assert_eq!(granted, 999);
}

#[test]
#[cfg_attr(target_family = "wasm", ignore = "needs threads")]
fn what_is_left_is_lost_after_a_cut_by_another_thread() {
    let rate = fixed(1_000_000, 1);
    let now = SECOND;
    with_lease(&rate, now, 6);
    thread::scope(|scope| {
        scope.spawn(|| {
            take(&rate, now, 5_000);
            let hint = Outcome::ThrottledFor(Duration::from_micros(500));
            rate.record(at(now), SendPermit::sent_at(at(now)), hint)
        });
    });
    assert_eq!(take(&rate, now, 5_000), 0);
    assert_eq!(left(&rate), 0);
}

#[test]
#[cfg_attr(target_family = "wasm", ignore = "needs threads")]
fn what_is_left_is_lost_after_new_settings() {
    let rate = fixed(1_000_000, 1);
    let now = SECOND;
    with_lease(&rate, now, 6);
    thread::scope(|scope| {
        scope.spawn(|| {
            take(&rate, now, 5_000);
            let same = rate.paced_settings().expect("it has settings");
            rate.set_paced(same, at(now)).expect("the same");
        });
    });
    assert_eq!(take(&rate, now, 5_000), 0);
}

/// Ends all leases, by another thread.
fn end_leases(rate: &SendRate, now: u64) {
    let same = rate.paced_settings().expect("it has settings");
    elsewhere(|| rate.set_paced(same, at(now)).expect("the same"));
}

#[test]
#[cfg_attr(target_family = "wasm", ignore = "needs threads")]
fn a_lease_behind_which_others_took_tokens_stays() {
    let rate = fixed(1_000_000, 1);
    with_lease(&rate, SECOND, 6);
    let before = left(&rate);
    assert_eq!(elsewhere(|| take(&rate, SECOND, 1)), 1);
    rate.words().expect("it limits").lending().hand_back_last();
    assert_eq!(left(&rate), before);
}

#[test]
#[cfg_attr(target_family = "wasm", ignore = "needs threads")]
fn a_lease_that_was_ended_goes_back_no_more() {
    let rate = fixed(1_000_000, 1);
    with_lease(&rate, SECOND, 6);
    end_leases(&rate, SECOND);
    let engaged = rate.words().expect("it limits");
    let issued = engaged.line().issued();
    engaged.lending().hand_back_last();
    assert_eq!(engaged.line().issued(), issued);
}

#[test]
#[cfg_attr(target_family = "wasm", ignore = "needs threads")]
fn what_is_left_of_a_lease_that_was_ended_is_not_shown() {
    let rate = fixed(1_000_000, 1);
    take(&rate, SECOND, 500);
    with_lease(&rate, SECOND, 6);
    end_leases(&rate, SECOND);
    let shown = elsewhere(|| rate.snapshot(at(SECOND)).available);
    let held = elsewhere(|| take(&rate, SECOND, 5_000));
    assert_eq!(format!("{shown:.6}"), format!("{held}.000000"));
}

/// Up to as many changes as wrap the version of the gate.
#[test]
#[cfg_attr(target_family = "wasm", ignore = "needs threads")]
fn no_lease_outlives_a_change_of_settings() {
    let now = SECOND;
    let timed = |rate: &SendRate| take(rate, now, 100);
    let untimed = |rate: &SendRate| u64::from(rate.try_acquire_with(|| at(now)).is_ok());
    let asks: [&dyn Fn(&SendRate) -> u64; 2] = [&timed, &untimed];
    let changes = [1, 127, 128, 129, 256];
    for (changes, ask) in changes
        .into_iter()
        .flat_map(|many| asks.map(|ask| (many, ask)))
    {
        let rate = fixed(1_000_000, 50);
        with_lease(&rate, now, 6);
        thread::scope(|scope| {
            scope.spawn(|| {
                take(&rate, now, 100_000);
                let slow = PacedSettings::fixed(1, Duration::from_secs(1)).expect("in range");
                for _ in 0..changes {
                    rate.set_paced(slow, at(now)).expect("only the rate");
                }
                while rate.try_acquire(at(now)).is_ok() {}
            });
        });
        assert_eq!(ask(&rate), 0, "after {changes}");
    }
}

#[test]
#[cfg_attr(target_family = "wasm", ignore = "needs threads")]
fn a_thread_that_ends_gives_its_tokens_back() {
    let rate = fixed(1_000_000, 1);
    let now = SECOND;
    let mut granted = thread::scope(|scope| {
        scope
            .spawn(|| with_lease(&rate, now, 6))
            .join()
            .expect("no panic")
    });
    granted += take(&rate, now, 5_000);
    let engaged = rate.words().expect("it limits");
    // The thread of another test may have its number for a while.
    for _ in 0..10_000_000 {
        if granted == 1_000 {
            break;
        }
        thread::yield_now();
        engaged.lending().collect(now);
        granted += take(&rate, now, 5_000);
    }
    assert_eq!(granted, 1_000);
    assert!(rate.snapshot(at(now)).available < 1e-6);
}

/// The next response that looks, after at most 50 ms, brings back what an ended thread had left.
#[test]
#[cfg_attr(target_family = "wasm", ignore = "needs threads")]
fn a_response_brings_back_what_a_thread_had_left() {
    let rate = fixed(1_000_000, 100);
    let now = SECOND;
    take(&rate, now, 60_000);
    let record = |now| {
        let permit = SendPermit::sent_at(at(now));
        rate.record(at(now), permit, Outcome::NotThrottled)
    };
    record(now);
    thread::scope(|scope| {
        let thread = scope.spawn(|| with_lease(&rate, now, 6));
        thread.join().expect("no panic")
    });
    let engaged = rate.words().expect("it limits");
    let all_left = || -> u64 {
        let leases = engaged.leases.get().into_iter().flat_map(Leases::all);
        leases
            .map(|lease| lease.last().since(lease.cursor()).unsigned_abs() / TOKEN)
            .sum()
    };
    assert!(all_left() >= 6);
    // The thread of another test may have its number for a while.
    for looks in 1..1_000_000 {
        record(now + looks * 50_000 * MICRO);
        if all_left() == 0 {
            break;
        }
        thread::yield_now();
    }
    assert_eq!(all_left(), 0);
}

#[test]
fn seven_tokens_are_spent_at_the_time_of_the_one_before() {
    let rate = fixed(1_000_000, 50);
    with_lease(&rate, SECOND, 60);
    let mut read = 0;
    let mut now = SECOND;
    let mut trips = vec![];
    for _ in 0..25 {
        now += 10;
        let permit = rate.try_acquire_with(|| {
            read += 1;
            at(now)
        });
        let permit = permit.expect("there are many");
        trips.push(now - permit.time().as_nanos());
        assert!(permit.is_charged() && permit.is_earlier() == (permit.time() < at(now)));
    }
    assert_eq!(read, 3);
    assert_eq!(trips[..9], [10, 20, 30, 40, 50, 60, 70, 0, 10]);
    // Then the next look at the clock finds the age of the lease.
    now += SECOND;
    let times: Vec<_> = (0..8)
        .map(|_| {
            rate.try_acquire_with(|| at(now))
                .expect("there are many")
                .time()
        })
        .collect();
    assert!(times.contains(&at(now)), "{times:?}");
}

/// Eight threads whose clocks differ by up to 100 us take what they can, while another thread cuts,
/// pauses, changes settings, settles and takes places. They never get more than was minted.
#[test]
#[cfg_attr(target_family = "wasm", ignore = "needs threads")]
fn eight_threads_whose_clocks_differ_are_granted_what_was_minted() {
    const THREADS: u64 = 8;
    const STEPS: u64 = 20_000;
    const SKEW: u64 = 100 * MICRO;
    let rate = fixed(1_000_000, 2);
    // The threads begin with an empty bucket, so that the bound is tight.
    let start = SECOND;
    take(&rate, start, 5_000);
    let barrier = Barrier::new(8);
    let granted: u64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let (rate, barrier) = (&rate, &barrier);
                scope.spawn(move || {
                    let mut rng = fastrand::Rng::with_seed(number);
                    let ahead = number * SKEW / (THREADS - 1);
                    let mut granted = 0;
                    for step in 0..STEPS {
                        if step % 1_000 == 0 {
                            barrier.wait();
                        }
                        // All of them together ask for more than is minted.
                        let now = start + ahead + step * 4 * MICRO;
                        match rng.u32(0..2_000) {
                            0 => {
                                let mut place = rate.reserve(at(now));
                                granted += u64::from(place.claim(at(now)).is_ok());
                            }
                            1 => {
                                let taken = rate.try_acquire_n(at(now), 5);
                                granted += taken.map_or(0, |permit| permit.weight().into());
                            }
                            2 => drop(rate.reserve_n(at(now), 3)),
                            _ => granted += u64::from(rate.try_acquire(at(now)).is_ok()),
                        }
                    }
                    granted
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .sum()
    });
    let span = STEPS * 4 * MICRO + SKEW;
    let minted = span / MICRO + 1;
    assert!(granted <= minted, "{granted} of {minted}");
    assert!(granted > minted / 2, "{granted} of {minted}");
}
