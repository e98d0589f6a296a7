//! How many requests to have under way: the rate, a round trip, and some room.

use core::time::Duration;

use paceline::{
    Clock, ControlLaw, Outcome, SendLimiter, SendPermit, SendRate, Timestamp, law::PacedSettings,
};
use tokio::time::{Instant, advance, timeout};

const SECOND: Duration = Duration::from_secs(1);
const MILLI: u64 = 1_000_000;

fn fixed(rate: u32) -> PacedSettings {
    PacedSettings::fixed(rate, SECOND).unwrap()
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_nanos(millis * MILLI)
}

/// Records a response at `now` to a request sent `trip` before, both in milliseconds.
fn respond(rate: &SendRate, now: u64, trip: u64) {
    rate.record(
        at(now),
        SendPermit::sent_at(at(now - trip)),
        Outcome::NotThrottled,
    );
}

#[test]
fn it_is_the_rate_for_one_and_a_half_trips_and_one_more() {
    for (tokens, trip, expected) in [
        (1, 100, 1),
        (10, 100, 2),   // 1.5 and one
        (100, 100, 16), // 15 and one
        (100, 200, 32), // 30 and one, of four bits
        (1_000, 200, 320),
        (10_000, 30, 480), // 450 and one
    ] {
        let rate = SendRate::paced(fixed(tokens), Timestamp::ZERO);
        assert_eq!(rate.snapshot(at(1_000)).in_flight, None, "no trip is known");
        respond(&rate, 1_000, trip);
        let seen = rate.snapshot(at(1_000)).in_flight;
        assert_eq!(seen, Some(expected), "{tokens}/s, {trip} ms");
    }
}

#[test]
fn trips_are_averaged_and_untimed_ones_left_out() {
    let rate = SendRate::paced(fixed(1_000), Timestamp::ZERO);
    respond(&rate, 1_000, 80);
    assert_eq!(rate.snapshot(at(1_000)).in_flight, Some(128)); // 121
    respond(&rate, 1_100, 0); // an eighth of it: 70 ms
    assert_eq!(rate.snapshot(at(1_100)).in_flight, Some(112)); // 106
    let free = SendRate::new(ControlLaw::Paced, Timestamp::ZERO);
    let ask = || {
        let mut timed = false;
        let permit = free.try_acquire_with(|| {
            timed = true;
            at(0)
        });
        free.record_with(|| at(0), permit.unwrap(), Outcome::NotThrottled);
        (!timed).then_some(permit.unwrap())
    };
    let untimed = (0..100).find_map(|_| ask()).expect("most are not timed");
    for millis in [1_200, 1_300, 1_400] {
        rate.record(at(millis), untimed, Outcome::NotThrottled);
    }
    assert_eq!(rate.snapshot(at(1_400)).in_flight, Some(112));
}

#[test]
fn it_follows_the_rate_and_is_one_in_a_pause() {
    let rate = SendRate::new(ControlLaw::Paced, Timestamp::ZERO);
    respond(&rate, 100, 100);
    assert_eq!(rate.snapshot(at(100)).in_flight, None, "nothing is limited");
    let hint = Outcome::ThrottledFor(SECOND);
    let nothing = SendRate::new(ControlLaw::Paced, Timestamp::ZERO);
    nothing.record(at(100), SendPermit::sent_at(at(0)), hint);
    respond(&nothing, 150, 100);
    let paused = nothing.snapshot(at(150));
    assert_eq!((paused.fill_rate.to_bits(), paused.in_flight), (0, Some(1)));
}

/// tokio's time, which the test moves.
#[derive(Debug)]
struct Paused(Instant);

impl Clock for Paused {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(u64::try_from(self.0.elapsed().as_nanos()).unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_is_told_when_it_changes() {
    let rate = SendRate::paced(fixed(100), Timestamp::ZERO);
    advance(SECOND).await;
    respond(&rate, 1_000, 100);
    let begun = Instant::now();
    let limiter = SendLimiter::new(&rate).clock(Paused(begun.checked_sub(SECOND).unwrap()));
    let first = limiter.in_flight_changed(None).await;
    assert_eq!((first, begun.elapsed()), (Some(16), Duration::ZERO));
    let next = limiter.in_flight_changed(first);
    assert!(timeout(SECOND, next).await.is_err(), "it has not changed");
    let begun = Instant::now();
    let next = limiter.in_flight_changed(first);
    let (next, ()) = tokio::join!(next, async {
        tokio::time::sleep(SECOND / 10 + SECOND / 100).await;
        rate.set_paced(fixed(10), limiter_now(&begun)).unwrap();
    });
    assert_eq!(
        (next, begun.elapsed()),
        (Some(2), Duration::from_millis(150))
    );
}

/// The time of the limiter in the test above, 2 s after which `begun` was.
fn limiter_now(begun: &Instant) -> Timestamp {
    let millis = u64::try_from(begun.elapsed().as_millis()).unwrap();
    at(2_000 + millis)
}
