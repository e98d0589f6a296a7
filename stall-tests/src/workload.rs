//! What the other threads do, each call within its number of steps and checked against what was
//! there before.

use core::mem::ManuallyDrop;
use core::time::Duration;

use paceline_core::{Outcome, Reservation, SendRate, SendRateSnapshot, Timestamp};

use crate::hook::{MOST, bounded};
use crate::scene::{at, record};

/// Runs all operations on `rate` from 1.1 s on, and checks what each makes of the state before it,
/// where stopped threads hold at most `held` tokens. First gives up or claims `places`, which are
/// in line.
pub(crate) fn check(rate: &SendRate, places: Vec<Reservation<'_>>, held: u32) {
    leave_the_line(places, at(1_100));
    let now = take_what_there_is(rate, at(1_100));
    for _ in 0..2 {
        throttle(rate, now);
    }
    let now = stand_in_line(rate, now, held);
    let now = turn_a_window(rate, later(now, Duration::from_millis(600)));
    start_anew(rate, now);
    throttle(rate, now);
    take_what_there_is(rate, later(now, Duration::from_millis(100)));
}

pub(crate) fn later(now: Timestamp, wait: Duration) -> Timestamp {
    now.checked_add(wait).expect("within the range")
}

pub(crate) fn close(got: f64, want: f64) -> bool {
    (got - want).abs() < 1e-6
}

pub(crate) fn look(rate: &SendRate, now: Timestamp) -> SendRateSnapshot {
    let snapshot = bounded(MOST, || rate.snapshot(now));
    let SendRateSnapshot {
        available,
        capacity,
        ..
    } = snapshot;
    assert!(
        available >= 0.0 && capacity >= 1.0,
        "the bucket is within its range: {snapshot:?}"
    );
    snapshot
}

/// As [`look`], after a call that lets every throttle take effect: the bucket holds at most its
/// capacity.
fn look_after(rate: &SendRate, now: Timestamp) -> SendRateSnapshot {
    let snapshot = look(rate, now);
    assert!(
        snapshot.available <= snapshot.capacity,
        "the bucket is within its range: {snapshot:?}"
    );
    snapshot
}

pub(crate) fn take(rate: &SendRate, now: Timestamp) -> Result<(), Duration> {
    bounded(MOST, || rate.try_acquire(now)).map(drop)
}

/// Gives up every other place, and claims the rest if they are due.
fn leave_the_line(places: Vec<Reservation<'_>>, now: Timestamp) {
    // A test that fails must not go on to drop the rest: that might never finish.
    let places: Vec<_> = places.into_iter().map(ManuallyDrop::new).collect();
    let mut due = Vec::new();
    for (number, mut place) in places.into_iter().enumerate() {
        if number % 2 == 1 {
            due.push(bounded(MOST, || place.claim(now)).is_ok());
        }
        bounded(MOST, || drop(ManuallyDrop::into_inner(place)));
    }
    assert!(
        due.is_sorted_by(|before, after| before >= after),
        "first come, first served: {due:?}"
    );
}

/// Takes tokens until there are none: exactly those that were there, and the next when it is said
/// to come. Returns when that was.
fn take_what_there_is(rate: &SendRate, now: Timestamp) -> Timestamp {
    // The first one may let a throttle take effect that a stopped thread has left.
    let first = take(rate, now);
    let before = look(rate, now);
    if !before.enabled {
        if first.is_err() {
            // Throttles were forgotten by a thread that stopped before that took effect: the next
            // response sees to it.
            bounded(MOST, || record(rate, now, Outcome::NotThrottled));
            assert_eq!(take(rate, now), Ok(()), "nothing is limited");
        }
        return now;
    }
    let mut granted = 0_u32;
    let wait = loop {
        match take(rate, now) {
            Ok(()) => granted += 1,
            Err(wait) => break wait,
        }
        assert!(granted < 1_000, "no end of tokens: {before:?}");
    };
    let left = before.available - f64::from(granted);
    assert!(
        (-1e-6..1.0 + 1e-6).contains(&left),
        "granted {granted} of {before:?}"
    );
    let due = later(now, wait);
    assert!(
        take(rate, Timestamp::from_nanos(due.as_nanos() - 1)).is_err(),
        "no token before it is there"
    );
    assert_eq!(
        take(rate, due),
        Ok(()),
        "the token is there when it was said"
    );
    due
}

/// Records a throttle: it cuts what was there before, whatever that was.
pub(crate) fn throttle(rate: &SendRate, now: Timestamp) {
    let before = look(rate, now);
    bounded(MOST, || record(rate, now, Outcome::Throttled));
    let after = look_after(rate, now);
    let peak = if before.enabled {
        after.measured_rate.min(before.fill_rate)
    } else {
        after.measured_rate
    };
    assert!(after.enabled, "a throttle limits: {after:?}");
    assert!(
        close(after.last_max_rate, peak) && close(after.fill_rate, (0.7 * peak).max(0.5)),
        "no throttle is lost: {before:?}, {after:?}"
    );
    assert!(
        after.available <= before.available.max(after.capacity) + 1e-6,
        "a throttle mints nothing: {before:?}, {after:?}"
    );
}

/// Takes three places, gives up the middle one, and claims the others when they are due. Returns
/// when that was.
fn stand_in_line(rate: &SendRate, now: Timestamp, held: u32) -> Timestamp {
    let reserve = || ManuallyDrop::new(bounded(MOST, || rate.reserve(now)));
    let mut first = reserve();
    // What a stopped thread was about to give back is there for those in line, though not for who
    // tries.
    for _ in 0..held {
        if bounded(MOST, || first.claim(now)).is_ok() {
            first = reserve();
        }
    }
    let (mut second, mut third) = (reserve(), reserve());
    let wait = |place: &mut Reservation<'_>| {
        bounded(MOST, || place.claim(now)).expect_err("the bucket is empty")
    };
    let waits = [&mut *first, &mut *second, &mut *third].map(wait);
    assert!(waits.is_sorted(), "first come, first served: {waits:?}");
    let apart = 1.0 / look(rate, now).fill_rate;
    for pair in waits.windows(2) {
        let between = pair[1].as_secs_f64() - pair[0].as_secs_f64();
        assert!(close(between, apart), "one token each: {waits:?}");
    }
    bounded(MOST, || drop(ManuallyDrop::into_inner(second)));
    assert_eq!(wait(&mut first), waits[0], "no place ahead notices");
    assert_eq!(wait(&mut third), waits[1], "those behind move up by one");
    let (early, due) = (later(now, waits[0]), later(now, waits[1]));
    assert!(
        bounded(MOST, || third.claim(early)).is_err(),
        "no place jumps"
    );
    assert!(bounded(MOST, || first.claim(early)).is_ok(), "its turn");
    assert!(bounded(MOST, || third.claim(due)).is_ok(), "its turn");
    due
}

/// Records a success in another window, which moves the rate along the curve.
fn turn_a_window(rate: &SendRate, now: Timestamp) -> Timestamp {
    bounded(MOST, || record(rate, now, Outcome::NotThrottled));
    let after = look_after(rate, now);
    assert!(after.enabled, "what is limited stays limited");
    assert!(
        after.fill_rate <= (2.0 * after.measured_rate).max(0.5) + 1e-6,
        "at most twice what is measured: {after:?}"
    );
    now
}

/// Writes off what was promised, and keeps the rest.
fn start_anew(rate: &SendRate, now: Timestamp) {
    let before = look(rate, now);
    bounded(MOST, || rate.reset(now));
    let after = look_after(rate, now);
    assert!(
        after.enabled
            && close(after.fill_rate, before.fill_rate)
            && close(after.measured_rate, before.measured_rate),
        "a reset keeps the rates: {before:?}, {after:?}"
    );
    assert!(
        after.available <= before.available + 1e-6,
        "a reset mints nothing: {before:?}, {after:?}"
    );
}
