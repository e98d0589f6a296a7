//! Corners of the send rate that a hostile user found: hints, pauses, clocks that go back.
use core::{num::NonZeroU32, time::Duration};

use paceline::{ControlLaw, Outcome, SendPermit, SendRate, Timestamp, law::PacedSettings};

const SECOND: u64 = 1_000_000_000;
const PER: Duration = Duration::from_secs(1);

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

fn fixed(tokens: u32, per: Duration) -> SendRate {
    let settings = PacedSettings::fixed(tokens, per).expect("in range");
    SendRate::paced(settings, at(0))
}

fn record(rate: &SendRate, nanos: u64, outcome: Outcome) {
    rate.record(at(nanos), SendPermit::sent_at(at(nanos)), outcome);
}

/// The time of the next token is known from the last grant. What comes in between makes it another
/// one.
#[test]
fn a_known_time_is_forgotten_when_it_changes() {
    let noted = || {
        let rate = fixed(10, PER);
        record(&rate, 0, Outcome::NotThrottled);
        assert!(rate.try_acquire(at(1)).is_ok());
        assert_eq!(rate.try_acquire(at(1)), Err(Duration::from_millis(100)));
        rate
    };
    let wait = |rate: &SendRate| rate.try_acquire(at(1)).expect_err("it is empty");

    let rate = noted();
    let place = rate.reserve(at(1));
    assert_eq!(wait(&rate), Duration::from_millis(200), "behind a place");
    drop(place);
    assert_eq!(wait(&rate), Duration::from_millis(100), "given back");

    let faster = PacedSettings::fixed(1_000, PER).expect("in range");
    let rate = noted();
    assert_eq!(rate.set_paced(faster, at(1)), Ok(()));
    assert_eq!(wait(&rate), Duration::from_millis(1), "a higher rate");

    let rate = noted();
    rate.forget_throttles(at(1));
    assert_eq!(wait(&rate), Duration::from_millis(100), "nothing was owed");

    let rate = fixed(10, PER);
    assert!(rate.try_acquire(at(1)).is_ok());
    assert!(rate.try_acquire(at(1)).is_err());
    record(&rate, 1, Outcome::ThrottledFor(PER));
    assert!(wait(&rate) >= PER, "a pause");

    let rate = noted();
    let mut credit = rate.credit(NonZeroU32::new(4).expect("not 0"));
    assert!(credit.try_acquire(at(SECOND)).is_ok());
    let wait = rate.try_acquire(at(SECOND)).expect_err("it held one");
    assert!(wait > Duration::from_millis(99), "after a credit: {wait:?}");
}

/// However often the settings change while the first known time is still ahead.
#[test]
fn a_known_time_does_not_come_back() {
    let slow = PacedSettings::fixed(1, Duration::from_secs(1_000)).expect("in range");
    let rate = SendRate::paced(slow, at(0));
    record(&rate, 1, Outcome::NotThrottled);
    assert!(rate.try_acquire(at(2)).is_ok());
    for change in 0..600 {
        let now = 20_000_000 * (u64::from(change) + 1);
        record(&rate, now, Outcome::NotThrottled);
        let fast = PacedSettings::fixed(1_000 + change, PER).expect("in range");
        assert_eq!(rate.set_paced(fast, at(now)), Ok(()));
        if change > 0 {
            let shown = rate.snapshot(at(now + 1));
            assert!(shown.available > 1.0, "change {change}: {shown}");
            assert!(rate.try_acquire(at(now + 1)).is_ok(), "change {change}");
        }
    }
}

#[test]
fn a_wait_in_a_pause_is_exact() {
    let rate = fixed(1, PER);
    assert!(rate.try_acquire(at(17)).is_ok());
    let pause = Outcome::ThrottledFor(Duration::from_millis(5_123));
    record(&rate, SECOND / 3, pause);
    let now = 500_000_077;
    let wait = rate.try_acquire(at(now)).expect_err("a pause");
    let due = now + u64::try_from(wait.as_nanos()).expect("it is short");
    assert_eq!(
        rate.try_acquire(at(due - 1)),
        Err(Duration::from_nanos(1)),
        "{wait:?}"
    );
    assert!(rate.try_acquire(at(due)).is_ok());
}

#[test]
fn a_pause_that_is_over_shows_what_there_is() {
    let rate = fixed(10, PER);
    record(&rate, 0, Outcome::ThrottledFor(PER));
    let paused = rate.snapshot(at(SECOND / 2));
    assert_eq!((paused.fill_rate, paused.available), (0.0, 0.0));
    assert!(paused.to_string().starts_with("none"), "{paused}");
    assert!(format!("{paused:?}").contains("fill_rate: none"));
    let over = rate.snapshot(at(3 * SECOND));
    assert_eq!((over.capacity, over.available), (1.0, 1.0));
    assert!(rate.try_acquire(at(3 * SECOND)).is_ok());
}

/// What the bucket held when a pause began is gone, whoever looks when.
#[test]
fn a_pause_empties_the_bucket_for_a_snapshot_too() {
    let settings = PacedSettings::fixed(100, PER).expect("in range");
    let settings = settings.to_builder().burst(PER).build();
    let rate = SendRate::paced(settings.expect("in range"), at(0));
    record(&rate, SECOND, Outcome::ThrottledFor(PER));
    let now = at(2 * SECOND + SECOND / 4);
    let shown = rate.snapshot(now).available;
    assert!((24.9..25.1).contains(&shown), "{shown}");
    let granted = (0..200).filter(|_| rate.try_acquire(now).is_ok()).count();
    assert_eq!(granted, 25);
}

#[test]
fn settings_by_an_older_clock_than_the_last_cut_hold() {
    let settings = PacedSettings::builder().initial_rate(1_000, PER).build();
    let rate = SendRate::paced(settings.expect("in range"), at(0));
    for millis in 0..1_000 {
        record(&rate, millis * 1_000_000, Outcome::NotThrottled);
    }
    record(&rate, SECOND, Outcome::Throttled);
    let low = PacedSettings::builder().ceiling(10, PER).build();
    let low = low.expect("in range");
    assert_eq!(rate.set_paced(low, at(SECOND - 1)), Ok(()));
    let asked = (1..=1_000).map(|millis| at(SECOND + millis * 1_000_000));
    let granted = asked.filter(|now| rate.try_acquire(*now).is_ok()).count();
    assert!(granted <= 11, "{granted} in a second at 10/s");
}

/// The clock is read after the limiter was looked at. A pause that begins in between lets one token
/// go, and no more.
#[test]
fn a_pause_between_the_look_and_the_clock_costs_one_token() {
    let settings = PacedSettings::fixed(1_000, PER).expect("in range");
    let settings = settings.to_builder().burst(PER).build();
    let rate = SendRate::paced(settings.expect("in range"), at(0));
    let now = 10 * SECOND;
    let granted = rate.try_acquire_with(|| {
        record(&rate, now, Outcome::ThrottledFor(PER));
        at(now)
    });
    assert!(granted.is_ok(), "from the line that was looked at");
    assert!(rate.try_acquire_with(|| at(now)).is_err());
    assert!(rate.try_acquire(at(now + SECOND - 1)).is_err());
}

#[test]
fn an_older_clock_forgets_no_more_than_is_open() {
    let settings = PacedSettings::fixed(1_000, PER).expect("in range");
    let settings = settings.to_builder().burst(PER).build();
    let rate = SendRate::paced(settings.expect("in range"), at(0));
    let drain = |now| {
        (0..2_000)
            .filter(|_| rate.try_acquire(at(now)).is_ok())
            .count()
    };
    assert_eq!(drain(SECOND), 1_000);
    let later = SECOND + 900_000_000;
    assert_eq!(drain(later), 900);
    rate.forget_throttles(at(SECOND));
    assert_eq!(drain(later), 0, "they were used");
}

/// Idle for so long that positions in the line have wrapped: the bucket is full, and the snapshot
/// says so.
#[test]
fn a_line_that_has_wrapped_is_full() {
    let rate = fixed(1_000_000_000, PER);
    let full = rate.snapshot(at(0)).capacity;
    for days in [1, 30, 365, 10_000] {
        let now = at(days * 86_400 * SECOND);
        let before = rate.snapshot(now);
        assert_eq!((before.available, before.waiting), (full, 0));
        assert!(rate.try_acquire_n(now, 50_000_000).is_ok(), "{days} days");
        assert!(rate.try_acquire(now).is_err());
    }
}

#[test]
fn unlimited_is_a_word() {
    let rate = SendRate::new(ControlLaw::Paced, at(0));
    let shown = rate.snapshot(at(0));
    assert!(shown.to_string().starts_with("unlimited"), "{shown}");
    assert!(format!("{shown:?}").contains("fill_rate: unlimited"));
}
