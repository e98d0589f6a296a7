//! Tokens that a thread has taken in advance.
#![expect(clippy::float_arithmetic, reason = "what a snapshot shows is a float")]

extern crate alloc;

use alloc::sync::Arc;
use core::num::NonZeroU32;
use core::time::Duration;

use paceline::{
    ControlLaw, Outcome, SendCredit, SendPermit, SendRate, Timestamp, law::PacedSettings,
};

const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLI;

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

/// A limiter of 1,000/s whose bucket holds 50 and is full.
fn limiter() -> SendRate {
    let settings = PacedSettings::fixed(1_000, Duration::from_secs(1)).expect("in range");
    SendRate::paced(settings, Timestamp::ZERO)
}

fn batch(tokens: u32) -> NonZeroU32 {
    NonZeroU32::new(tokens).expect("not 0")
}

/// Returns the tokens in the bucket, in thousandths.
fn available(rate: &SendRate, now: u64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a small positive number"
    )]
    let thousandths = (rate.snapshot(at(now)).available * 1_000.0).round() as u64;
    thousandths
}

#[test]
fn a_batch_is_taken_at_once_and_spent_one_by_one() {
    let rate = limiter();
    let mut credit = rate.credit(batch(8));
    for spent in 1..=8_u32 {
        assert!(credit.try_acquire(at(0)).is_ok());
        assert_eq!(credit.held(), 8 - spent);
        assert_eq!(available(&rate, 0), 42_000);
    }
    assert!(credit.try_acquire(at(0)).is_ok());
    assert_eq!((credit.held(), available(&rate, 0)), (7, 34_000));
}

#[test]
fn what_is_held_goes_back_when_the_credit_is_dropped_and_nothing_is_minted_by_it() {
    let rate = limiter();
    let mut credit = rate.credit(batch(30));
    assert!(credit.try_acquire(at(0)).is_ok());
    assert_eq!(available(&rate, 0), 20_000);
    drop(credit);
    assert_eq!(available(&rate, 0), 49_000);
    let mut empty = rate.credit(batch(1));
    empty.give_back();
    drop(empty);
    assert_eq!(available(&rate, 0), 49_000);
}

#[test]
fn a_batch_is_as_many_as_there_are_and_an_empty_bucket_tells_the_wait() {
    let rate = limiter();
    let mut credit = rate.credit(batch(64));
    for _ in 0..50 {
        assert!(credit.try_acquire(at(0)).is_ok());
    }
    assert_eq!(credit.try_acquire(at(0)), Err(Duration::from_millis(1)));
    assert_eq!(credit.held(), 0);
    assert_eq!(
        credit.try_acquire(at(MILLI - 1)),
        Err(Duration::from_nanos(1))
    );
    assert!(credit.try_acquire(at(3 * MILLI)).is_ok());
    assert_eq!(credit.held(), 2);
}

#[test]
fn tokens_are_kept_for_fifty_milliseconds() {
    let rate = limiter();
    let mut credit = rate.credit(batch(10));
    assert!(credit.try_acquire(at(0)).is_ok());
    assert!(credit.try_acquire(at(50 * MILLI)).is_ok());
    assert_eq!(credit.held(), 8);
    // Eight go back to a bucket that has filled up meanwhile, and ten are taken.
    assert!(credit.try_acquire(at(50 * MILLI + 1)).is_ok());
    assert_eq!(
        (credit.held(), available(&rate, 50 * MILLI + 1)),
        (9, 40_000)
    );
}

#[test]
fn a_throttle_that_anyone_records_ends_what_is_held() {
    let settings = PacedSettings::builder()
        .initial_rate(1_000, Duration::from_secs(1))
        .build()
        .expect("in range");
    let rate = SendRate::paced(settings, Timestamp::ZERO);
    let mut credit = rate.credit(batch(40));
    let permit = credit.try_acquire(at(SECOND)).expect("the bucket is full");
    assert_eq!(credit.held(), 39);
    let pause = Outcome::ThrottledFor(Duration::from_secs(2));
    rate.record(at(SECOND + MILLI), permit, pause);
    assert!(credit.try_acquire(at(SECOND + 2 * MILLI)).is_err());
    assert_eq!(credit.held(), 0);
}

/// At every moment no more has been granted than the bucket held and was minted, whichever credit
/// holds what.
#[test]
fn credits_together_never_grant_more_than_was_minted() {
    let rate = limiter();
    let mut credits: Vec<_> = [1, 3, 17, 64]
        .map(|tokens| rate.credit(batch(tokens)))
        .into();
    let mut granted = 0;
    for step in 0..200_000_u64 {
        let now = step * 10_000;
        let credit = &mut credits[fastrand::usize(..4)];
        granted += u64::from(credit.try_acquire(at(now)).is_ok());
        let held: u64 = credits.iter().map(|credit| u64::from(credit.held())).sum();
        assert!(
            (granted + held) * MILLI <= 50 * MILLI + now,
            "{granted} and {held} at {now}"
        );
    }
    // Two seconds, at five times what is allowed: all of it but what is held was used.
    assert!(granted + 64 + 17 + 3 >= 2_050, "{granted}");
}

#[test]
fn no_count_is_lost_and_the_law_is_looked_at_every_millisecond() {
    let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    let exact = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    let mut credit = rate.credit(batch(16));
    let request = |credit: &mut SendCredit<&SendRate>, now, outcome| {
        let permit = SendPermit::sent_at(at(now));
        credit.record(at(now), permit, outcome);
        exact.record(at(now), permit, outcome);
    };
    for step in 0..30_000_u64 {
        request(&mut credit, step * MILLI / 10, Outcome::NotThrottled);
    }
    request(&mut credit, 3 * SECOND, Outcome::Throttled);
    let (got, want) = (
        rate.snapshot(at(3 * SECOND)),
        exact.snapshot(at(3 * SECOND)),
    );
    assert_eq!(got.measured_rate.to_bits(), want.measured_rate.to_bits());
    assert_eq!(got.last_max_rate.to_bits(), want.last_max_rate.to_bits());
    for step in 1..5_000_u64 {
        request(
            &mut credit,
            3 * SECOND + step * MILLI / 10,
            Outcome::NotThrottled,
        );
    }
    let now = 3 * SECOND + 499 * MILLI;
    let (got, want) = (rate.snapshot(at(now)), exact.snapshot(at(now)));
    assert!(
        (want.fill_rate - got.fill_rate).abs() <= want.fill_rate / 1_000.0,
        "{} instead of {}",
        got.fill_rate,
        want.fill_rate
    );
}

#[test]
fn nothing_is_held_while_nothing_is_limited() {
    let rate = SendRate::new(ControlLaw::Paced, Timestamp::ZERO);
    let mut credit = rate.credit(batch(100));
    for now in 0..1_000 {
        assert!(credit.try_acquire(at(now)).is_ok());
        assert_eq!(credit.held(), 0);
    }
}

#[test]
fn a_credit_can_own_its_part_of_the_limiter() {
    let rate = Arc::new(limiter());
    let mut credit = SendCredit::new(Arc::clone(&rate), batch(8));
    let worker = std::thread::spawn(move || credit.try_acquire(at(0)).map(|_| credit.held()));
    assert_eq!(worker.join().unwrap(), Ok(7));
    assert_eq!(
        available(&rate, 0),
        49_000,
        "the others went back with the thread"
    );
}

#[test]
fn a_reset_after_a_wrong_timestamp_reaches_what_is_held_and_the_law() {
    let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    let exact = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    let mut credit = rate.credit(batch(4));
    let far = at(1_000_000 * SECOND);
    credit.record(far, SendPermit::sent_at(far), Outcome::Throttled);
    exact.record(far, SendPermit::sent_at(far), Outcome::Throttled);
    rate.reset(at(SECOND));
    exact.reset(at(SECOND));
    for millis in 1..20_000 {
        let now = at(SECOND + millis * MILLI);
        credit.record(now, SendPermit::sent_at(now), Outcome::NotThrottled);
        exact.record(now, SendPermit::sent_at(now), Outcome::NotThrottled);
    }
    let now = at(22 * SECOND);
    let (seen, expected) = (rate.snapshot(now), exact.snapshot(now));
    assert_eq!(
        seen.measured_rate.to_bits(),
        expected.measured_rate.to_bits()
    );
    assert_eq!(seen.fill_rate.to_bits(), expected.fill_rate.to_bits());
}

#[test]
fn a_response_counts_for_as_much_as_its_request_took() {
    let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    let exact = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    let mut credit = rate.credit(batch(16));
    for step in 0..30_000_u64 {
        let now = at(step * MILLI / 10);
        let permit = exact.try_acquire_n(now, 3).expect("nothing is limited");
        credit.record(now, permit, Outcome::NotThrottled);
        exact.record(now, permit, Outcome::NotThrottled);
    }
    let permit = SendPermit::sent_at(at(3 * SECOND));
    let throttle = |rate: &SendRate| {
        rate.record(at(3 * SECOND), permit, Outcome::Throttled);
        rate.snapshot(at(3 * SECOND)).measured_rate
    };
    assert_eq!(throttle(&rate).to_bits(), throttle(&exact).to_bits());
}
