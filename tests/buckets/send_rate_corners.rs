//! Corners of the send rate that a hostile user found: hints, pauses, clocks that go back.
use core::time::Duration;

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

/// A nanosecond sooner it is refused, for one nanosecond more; then it is granted.
fn is_exact(rate: &SendRate, now: u64) {
    let Err(wait) = rate.try_acquire(at(now)) else {
        panic!("there is a token at {now}");
    };
    let due = at(now).saturating_add(wait);
    if let Some(shorter) = wait
        .checked_sub(Duration::from_nanos(1))
        .filter(|left| !left.is_zero())
    {
        let sooner = rate.try_acquire(at(now).saturating_add(shorter));
        assert_eq!(sooner, Err(Duration::from_nanos(1)), "{wait:?} at {now}");
    }
    assert!(rate.try_acquire(due).is_ok(), "{wait:?} at {now}");
}

const SLOW: Duration = Duration::from_secs(1_000);

#[test]
fn a_wait_in_a_pause_is_exact() {
    let mut rng = fastrand::Rng::with_seed(1);
    for _ in 0..2_000 {
        let per = [PER, SLOW][rng.usize(..2)];
        let rate = fixed(rng.u32(1..2_000), per);
        assert!(rate.try_acquire(at(17)).is_ok());
        let begun = rng.u64(18..SECOND);
        let pause = Duration::from_nanos(rng.u64(1..60 * SECOND));
        record(&rate, begun, Outcome::ThrottledFor(pause));
        let left = u64::try_from(pause.as_nanos()).expect("it is short");
        is_exact(&rate, begun + rng.u64(..left));
    }
}

/// A caller whose clock is behind the last change of rate, by more than a second or less.
#[test]
fn a_wait_told_to_an_older_clock_is_exact() {
    let mut rng = fastrand::Rng::with_seed(2);
    for _ in 0..2_000 {
        let per = [PER, SLOW][rng.usize(..2)];
        let [first, second] = [0; 2].map(|_| PacedSettings::fixed(rng.u32(1..2_000), per));
        let rate = SendRate::paced(first.expect("in range"), at(0));
        let second = second.expect("in range");
        let changed = rng.u64(5 * SECOND..6 * SECOND);
        while rate.try_acquire(at(changed)).is_ok() {}
        assert_eq!(rate.set_paced(second, at(changed)), Ok(()));
        is_exact(&rate, changed - rng.u64(..3 * SECOND));
    }
}

/// The bucket holds what it was given, from the start on.
#[test]
fn a_full_bucket_grants_all_that_its_ceiling_gives_it() {
    for tokens in [1, 2, 5, 10, 1_000, 61_043, 10_000_000] {
        for nanos in [0, 1, 17_000_000, 10 * SECOND] {
            let settings = PacedSettings::builder().ceiling(tokens, PER).burst(PER);
            let rate = SendRate::paced(settings.build().expect("in range"), at(0));
            let taken = rate.try_acquire_n(at(nanos), tokens);
            assert!(taken.is_ok(), "{tokens} at {nanos}: {taken:?}");
            assert!(rate.try_acquire(at(nanos)).is_err());
        }
    }
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

/// What the bucket held when a pause began is gone, whenever a caller looks.
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

/// The last nanosecond stands for a request without a time.
#[test]
fn the_last_nanosecond_counts_as_the_one_before() {
    let last = SendPermit::sent_at(Timestamp::from_nanos(u64::MAX));
    assert_eq!(last.time(), Timestamp::from_nanos(u64::MAX - 1));
}

/// On other targets a call holds a lock for some instructions. The other tests pass there too.
#[test]
fn it_is_lock_free_where_there_are_128_bit_atomics() {
    let there_are = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
    assert_eq!(SendRate::is_lock_free(), there_are);
}
