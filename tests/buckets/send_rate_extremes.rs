//! The send rate where time and counts end: idle weeks, wrong timestamps, long lines.

use core::time::Duration;

use paceline::{ControlLaw, Outcome, Reservation, SendPermit, SendRate, Timestamp, law::Recorded};

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 24 * 3_600 * SECOND;

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

fn record(rate: &SendRate, nanos: u64, outcome: Outcome) {
    rate.record(at(nanos), SendPermit::sent_at(at(nanos)), outcome);
}

/// Creates a limiter that fills at 1.12 × `requests` per second from 0.5 s on, and holds as many.
fn throttled_after(requests: u32) -> SendRate {
    let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    for _ in 1..requests {
        record(&rate, 0, Outcome::NotThrottled);
    }
    record(&rate, SECOND / 2, Outcome::NotThrottled);
    record(&rate, SECOND / 2, Outcome::Throttled);
    rate
}

fn drain(rate: &SendRate, now: u64) -> usize {
    let mut granted = 0;
    while rate.try_acquire(at(now)).is_ok() {
        granted = usize::wrapping_add(granted, 1);
    }
    granted
}

#[test]
fn a_limiter_that_idles_for_any_time_is_full_and_no_more() {
    for days in [1, 3, 7, 9, 10, 14, 100, 20_000, 200_000] {
        let rate = throttled_after(875_000);
        let now = DAY.saturating_mul(days);
        assert_eq!(drain(&rate, now), 980_000, "after {days} days");
        assert!(rate.try_acquire(at(now)).is_err());
    }
}

#[test]
fn idling_between_every_two_requests_loses_nothing() {
    let rate = throttled_after(875_000);
    for step in 1..400 {
        assert!(
            rate.try_acquire(at(step * DAY / 4)).is_ok(),
            "quarter day {step}"
        );
    }
}

#[test]
fn those_ahead_of_a_gap_stay_after_a_week_without_a_line() {
    let rate = throttled_after(875_000);
    for hour in 1..24 * 8 {
        assert!(rate.try_acquire(at(hour * 3_600 * SECOND)).is_ok());
    }
    let now = 8 * DAY;
    drain(&rate, now);
    let mut places: Vec<Reservation<'_>> = (0..2_000).map(|_| rate.reserve(at(now))).collect();
    places.truncate(1_000);
    let early = places
        .iter_mut()
        .filter_map(|place| place.claim(at(now)).ok())
        .count();
    assert_eq!(
        early, 0,
        "giving up the last thousand lets no place ahead of them go"
    );
}

#[test]
fn a_wrong_timestamp_lets_no_request_go_at_true_time() {
    let mut rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    record(&rate, 0, Outcome::Throttled);
    {
        let mut places: Vec<_> = (0..200).map(|_| rate.reserve(at(0))).collect();
        let mut odd = rate.reserve(at(0));
        assert!(
            odd.claim(at(u64::MAX)).is_ok(),
            "by that clock it is long due"
        );
        places.truncate(100);
        let early = places
            .iter_mut()
            .filter_map(|place| place.claim(at(1)).ok())
            .count();
        assert_eq!(early, 0);
    }
    rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    record(&rate, 0, Outcome::Throttled);
    assert!(rate.try_acquire(at(100 * 365 * DAY)).is_ok());
    let wait = rate
        .try_acquire(at(2 * SECOND))
        .expect_err("that token was the bucket's only one");
    assert!(wait > Duration::from_secs(99 * 365 * 86_400), "{wait:?}");
}

#[test]
fn reset_brings_a_limiter_back_from_a_wrong_timestamp() {
    let rate = throttled_after(100);
    let fill = rate.snapshot(at(SECOND)).fill_rate;
    record(&rate, u64::MAX, Outcome::NotThrottled);
    record(&rate, u64::MAX, Outcome::Throttled);
    assert!(rate.try_acquire(at(u64::MAX)).is_ok());
    let cut = rate.snapshot(at(u64::MAX)).fill_rate;
    assert!(cut < fill, "the throttle counted");
    let wait = rate
        .try_acquire(at(2 * SECOND))
        .expect_err("the line has gone ahead");
    assert!(wait > Duration::from_secs(86_400), "{wait:?}");

    rate.reset(at(2 * SECOND));
    assert_eq!(
        rate.snapshot(at(2 * SECOND)).fill_rate.to_bits(),
        cut.to_bits()
    );
    assert!(
        drain(&rate, 2 * SECOND) <= 112,
        "no more than the bucket holds"
    );
    assert!(
        rate.try_acquire(at(5 * SECOND)).is_ok(),
        "and time goes on from there"
    );
    for step in 0..100 {
        record(
            &rate,
            5 * SECOND + step * SECOND / 100,
            Outcome::NotThrottled,
        );
    }
    let measured = rate.snapshot(at(6 * SECOND)).measured_rate;
    assert!(
        (10.0..200.0).contains(&measured),
        "the meter measures again: {measured}"
    );
}

/// What was promised and not minted, ten places here, is written off by whole tokens.
#[test]
fn a_reset_writes_off_what_a_wrong_timestamp_has_promised() {
    let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    record(&rate, 0, Outcome::Throttled);
    for _ in 0..9 {
        let mut place = rate.reserve(at(0));
        assert!(place.claim(at(u64::MAX)).is_ok(), "by that clock it is due");
    }
    let mut open = rate.reserve(at(0));
    let half = SECOND;
    assert_eq!(open.claim(at(half)), Err(Duration::from_secs(19)));

    rate.reset(at(half));
    // Half of the first token has been minted, so that half a token is still owed.
    assert_eq!(open.claim(at(half)), Err(Duration::from_secs(1)));
    assert_eq!(rate.try_acquire(at(half)), Err(Duration::from_secs(3)));
    assert!(open.claim(at(half + SECOND)).is_ok());
    assert!(rate.try_acquire(at(half + 3 * SECOND)).is_ok());
    rate.reset(at(half + 3 * SECOND));
    assert_eq!(
        rate.try_acquire(at(half + 3 * SECOND)),
        Err(Duration::from_secs(2)),
        "with nothing owed nothing is written off"
    );
}

/// A long line leaves no choice but to go by that clock: for waiters in it, not for callers
/// who come later.
#[test]
fn a_wrong_timestamp_moves_no_later_caller() {
    let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    record(&rate, 0, Outcome::Throttled);
    let mut before: Vec<_> = (0..320).map(|_| rate.reserve(at(0))).collect();
    let last = before.last_mut().expect("a line");
    assert!(last.claim(at(u64::MAX)).is_ok(), "by that clock it is due");
    let mut after: Vec<_> = (0..100).map(|_| rate.reserve(at(0))).collect();
    let waits = |places: &mut [Reservation<'_>]| -> Vec<_> {
        places.iter_mut().map(|place| place.claim(at(0))).collect()
    };
    let want = waits(&mut after[..50]);
    assert!(want.iter().all(Result::is_err), "their turn is to come");
    after.truncate(50);
    assert_eq!(waits(&mut after), want, "giving up the last 50 moves none");
}

#[test]
fn unix_time_works_from_an_origin_of_zero() {
    let now = 1_795_000_000 * SECOND;
    let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    record(&rate, now, Outcome::Throttled);
    assert_eq!(rate.try_acquire(at(now)), Err(Duration::from_secs(2)));
    assert!(rate.try_acquire(at(now + 2 * SECOND)).is_ok());
}

#[test]
fn a_wait_is_counted_from_the_callers_clock_before_the_start_and_behind_the_line() {
    let start = 100 * SECOND;
    let rate = SendRate::new(ControlLaw::Aws, at(start));
    record(&rate, start, Outcome::Throttled);
    let early = 50 * SECOND;
    assert_eq!(rate.try_acquire(at(early)), Err(Duration::from_secs(52)));
    assert!(rate.try_acquire(at(early + 52 * SECOND)).is_ok());

    // A caller over a second behind the last change waits until it is not.
    let rate = throttled_after(100);
    record(&rate, 100 * SECOND, Outcome::NotThrottled);
    let wait = rate
        .try_acquire(at(10 * SECOND))
        .expect_err("its clock is 90 s behind");
    let then = at(10 * SECOND).saturating_add(wait);
    let sooner = Timestamp::from_nanos(then.as_nanos() - 1);
    assert_eq!(rate.try_acquire(sooner), Err(Duration::from_nanos(1)));
    assert!(rate.try_acquire(then).is_ok());
}

#[test]
fn a_record_that_comes_late_does_not_take_back_what_was_minted() {
    let rate = throttled_after(1_000);
    for half in 2..120 {
        record(&rate, half * SECOND / 2, Outcome::NotThrottled);
    }
    let now = 60 * SECOND;
    record(&rate, now, Outcome::NotThrottled);
    assert!(rate.try_acquire(at(now)).is_ok());
    record(&rate, SECOND, Outcome::Throttled);
    let wait = rate.try_acquire(at(now)).err().unwrap_or_default();
    assert!(wait <= Duration::from_secs(2), "{wait:?}");
}

/// Another thread's clock may be ahead when it sends, and this one's behind when it is answered.
#[test]
fn a_request_sent_after_its_answer_counts_as_sent_then() {
    for law in [ControlLaw::Aws, ControlLaw::Paced] {
        let play = |ahead: u64| {
            let rate = SendRate::new(law, Timestamp::ZERO);
            let mut seen = Vec::new();
            for step in 1..400_u64 {
                let now = Timestamp::from_nanos(step * 10_000_000);
                let sent = Timestamp::from_nanos(step * 10_000_000 + ahead);
                let outcome = match step % 40 {
                    30..33 => Outcome::Throttled,
                    _ => Outcome::NotThrottled,
                };
                let recorded = rate.record(now, SendPermit::sent_at(sent), outcome);
                seen.push((recorded, format!("{:?}", rate.snapshot(now))));
            }
            seen
        };
        let exact = play(0);
        assert!(exact.iter().any(|(recorded, _)| *recorded == Recorded::Cut));
        assert_eq!(play(1_000_000_000), exact);
    }
}
