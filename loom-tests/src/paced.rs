//! Models of [`SendRate`] under the paced law: what its cuts, its windows, its end and the waiters
//! that ask do to each other.
//!
//! Claim: the words end as some order of the calls leaves them. Each model compares with both
//! orders, run by one thread.

use crate::explore;
use alloc::sync::Arc;
use core::time::Duration;
use std::sync::OnceLock;

use loom::sync::Arc as LoomArc;
use loom::thread;
use paceline_core::{ControlLaw, Outcome, SendPermit, SendRate, Timestamp, law::PacedSettings};

const MILLI: u64 = 1_000_000;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_nanos(millis * MILLI)
}

fn record(rate: &SendRate, now: u64, sent: u64, outcome: Outcome) {
    rate.record(at(now), SendPermit::sent_at(at(sent)), outcome);
}

/// A limiter whose first response of all was a throttle, after two seconds: half a token per
/// second, and a ramp.
fn blind() -> SendRate {
    let rate = SendRate::new(ControlLaw::Paced, Timestamp::ZERO);
    record(&rate, 2_000, 0, Outcome::Throttled);
    rate
}

/// What there is to see at `now`: the law's state and cycle, and what the line makes a caller wait,
/// who then goes.
fn seen(rate: &SendRate, now: u64) -> (bool, u64, u64, u128, Result<SendPermit, Duration>) {
    let state = rate.snapshot(at(now));
    let asked = rate.try_acquire(at(now));
    if let Err(wait) = asked {
        let later = at(now).saturating_add(wait);
        assert!(rate.try_acquire(later).is_ok(), "{wait:?} of {state:?}");
    }
    (
        state.enabled,
        state.fill_rate.to_bits(),
        state.last_max_rate.to_bits(),
        rate.cycle(),
        asked,
    )
}

type Call = fn(&SendRate);

/// Runs both calls beside each other, after `setup`, and asserts that the outcome is that of an
/// order.
fn either_order(bound: usize, setup: fn() -> SendRate, one: Call, two: Call, now: u64) {
    // In a model of their own, once: a model must do the same in every run.
    let orders = Arc::new(OnceLock::new());
    let result = Arc::clone(&orders);
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 20_000;
    builder.check(move || {
        let in_order = |first: Call, second: Call| {
            let rate = setup();
            first(&rate);
            second(&rate);
            seen(&rate, now)
        };
        result.get_or_init(|| [in_order(one, two), in_order(two, one)]);
    });
    explore(Some(bound), move || {
        let rate = LoomArc::new(setup());
        let threads = [one, two].map(|call| {
            let rate = LoomArc::clone(&rate);
            thread::spawn(move || call(&rate))
        });
        for thread in threads {
            thread.join().expect("the thread returns");
        }
        let (got, wanted) = (
            seen(&rate, now),
            orders.get().expect("both orders were run"),
        );
        assert!(wanted.contains(&got), "{got:?} is none of {wanted:?}");
    });
}

/// Two throttles of one overshoot are one cut, whichever comes first.
#[test]
fn an_overshoot_is_cut_once() {
    fn setup() -> SendRate {
        let rate = blind();
        record(&rate, 3_500, 3_450, Outcome::NotThrottled);
        rate
    }
    either_order(
        2,
        setup,
        |rate| record(rate, 4_000, 3_950, Outcome::Throttled),
        |rate| record(rate, 4_010, 3_960, Outcome::Throttled),
        4_100,
    );
}

/// A window that lifts the rate and a throttle that cuts it: neither is lost, neither comes back.
#[test]
fn a_window_never_undoes_a_throttle() {
    fn setup() -> SendRate {
        let rate = blind();
        for _ in 0..39 {
            record(&rate, 2_600, 2_100, Outcome::NotThrottled);
        }
        rate
    }
    either_order(
        1,
        setup,
        |rate| record(rate, 3_140, 3_000, Outcome::Throttled),
        |rate| record(rate, 3_150, 3_100, Outcome::NotThrottled),
        3_200,
    );
}

/// A limiter whose service was shut at 8 s, and refused a knock at 16.5 s. The next one may go at
/// 32.5 s.
fn shut() -> SendRate {
    let rate = SendRate::new(ControlLaw::Paced, Timestamp::ZERO);
    record(&rate, 100, 50, Outcome::NotThrottled);
    for refused in [2_000, 8_000, 16_500] {
        record(&rate, refused, refused - 50, Outcome::Throttled);
    }
    rate
}

/// Of a knock that is done and another one that is refused, the first to be heard says whether the
/// service is open, and begins or moves the cycle. Of the other one nothing is left.
#[test]
fn an_opening_and_a_refusal_leave_the_state_and_the_cycle_of_one() {
    either_order(
        1,
        shut,
        |rate| record(rate, 33_100, 33_000, Outcome::NotThrottled),
        |rate| record(rate, 33_100, 33_050, Outcome::Throttled),
        33_200,
    );
}

/// A law that has come to its end, and a throttle: afterwards it limits.
#[test]
#[ignore = "takes over 15 seconds: `ci/check.sh models` runs it"]
fn a_throttle_outlives_the_end() {
    /// Throttled at a hundred a second, and used for half a minute since, more than half.
    fn setup() -> SendRate {
        let rate = SendRate::new(ControlLaw::Paced, Timestamp::ZERO);
        record_many(&rate, 1_000, 10, 100);
        record(&rate, 1_100, 1_050, Outcome::Throttled);
        for now in (1_600..31_000).step_by(1_900) {
            use_most(&rate, now, 1.9);
        }
        use_most(&rate, 31_100, 1.0);
        use_most(&rate, 31_500, 1.0);
        rate
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a part of a rate"
    )]
    fn use_most(rate: &SendRate, now: u64, seconds: f64) {
        let fill = rate.snapshot(at(now)).fill_rate.min(1e6);
        record_many(rate, now, now - 50, (fill * seconds * 0.6) as u32);
    }
    // Without the throttle it ends there.
    explore(Some(1), || {
        let rate = LoomArc::new(setup());
        let other = LoomArc::clone(&rate);
        let ask = thread::spawn(move || other.try_acquire(at(32_099)));
        let ended = LoomArc::clone(&rate);
        let end = thread::spawn(move || record(&ended, 32_100, 32_000, Outcome::NotThrottled));
        end.join().expect("the thread returns");
        let _ = ask.join().expect("the thread returns");
        assert!(!rate.snapshot(at(32_100)).enabled);
    });
    explore(Some(1), || {
        let rate = LoomArc::new(setup());
        let other = LoomArc::clone(&rate);
        let throttle = thread::spawn(move || record(&other, 32_101, 32_100, Outcome::Throttled));
        record(&rate, 32_100, 32_000, Outcome::NotThrottled);
        throttle.join().expect("the thread returns");
        assert!(rate.snapshot(at(32_200)).enabled);
    });
}

/// A caller moves the rate along, but never back over a throttle.
#[test]
fn who_asks_never_undoes_a_throttle() {
    fn setup() -> SendRate {
        let rate = blind();
        record(&rate, 3_500, 3_450, Outcome::NotThrottled);
        let _ = rate.try_acquire(at(3_500));
        rate
    }
    either_order(
        2,
        setup,
        |rate| record(rate, 4_000, 3_950, Outcome::Throttled),
        |rate| {
            let _ = rate.reserve(at(4_000)).claim(at(4_000));
        },
        4_100,
    );
}

/// Once a pause is recorded no request is let go before it ends.
#[test]
fn a_pause_stops_everybody() {
    explore(Some(2), || {
        let rate = LoomArc::new(blind());
        let (one, two) = (LoomArc::clone(&rate), LoomArc::clone(&rate));
        let pause = thread::spawn(move || {
            let hint = Outcome::ThrottledFor(Duration::from_secs(1));
            record(&one, 6_000, 5_950, hint);
            one.try_acquire(at(6_000)).is_err()
        });
        let other = thread::spawn(move || two.try_acquire(at(6_000)).is_ok());
        assert!(
            pause.join().expect("the thread returns"),
            "the bucket is paused"
        );
        let _ = other.join().expect("the thread returns");
        assert!(rate.try_acquire(at(6_999)).is_err());
    });
}

/// Settings with a ceiling of so many tokens a second.
fn ceiling(tokens: u32) -> PacedSettings {
    let settings = PacedSettings::builder()
        .ceiling(tokens, Duration::from_secs(1))
        .build();
    settings.expect("in range")
}

/// A ceiling that is lowered while something is recorded is obeyed by the next response at the
/// latest, and the record is not lost.
#[test]
fn a_lower_ceiling_is_obeyed() {
    for outcome in [Outcome::NotThrottled, Outcome::Throttled] {
        explore(Some(1), move || {
            let rate = SendRate::paced(ceiling(100), Timestamp::ZERO);
            let rate = LoomArc::new(rate);
            let (one, two) = (LoomArc::clone(&rate), LoomArc::clone(&rate));
            let tune = thread::spawn(move || one.set_paced(ceiling(10), at(1_000)));
            let other = thread::spawn(move || record(&two, 1_000, 990, outcome));
            assert_eq!(tune.join().expect("the thread returns"), Ok(()));
            other.join().expect("the thread returns");
            record(&rate, 1_000, 990, Outcome::NotThrottled);
            let seen = rate.snapshot(at(1_000));
            assert!(seen.enabled && seen.fill_rate < 10.01, "{seen:?}");
            // Whatever the bucket held, tokens come at the new rate.
            while rate.try_acquire(at(1_000)).is_ok() {}
            let wait = rate.try_acquire(at(1_000)).expect_err("it is empty");
            let later = 1_001 + u64::try_from(wait.as_millis()).expect("it is short");
            assert!(rate.try_acquire(at(later)).is_ok());
            let wait = rate.try_acquire(at(later)).expect_err("it held one token");
            assert!(wait > Duration::from_millis(90), "{wait:?}");
        });
    }
}

/// What a refused thread notes of the time of the next token is void once the rate has risen.
#[test]
fn a_rate_that_rises_voids_what_refused_threads_noted() {
    explore(Some(2), || {
        let fixed =
            |tokens| PacedSettings::fixed(tokens, Duration::from_secs(1)).expect("in range");
        let rate = LoomArc::new(SendRate::paced(fixed(1), Timestamp::ZERO));
        while rate.try_acquire(at(0)).is_ok() {}
        let (one, two) = (LoomArc::clone(&rate), LoomArc::clone(&rate));
        let tune = thread::spawn(move || one.set_paced(fixed(1_000), at(10)));
        let other = thread::spawn(move || two.try_acquire(at(10)).is_ok());
        assert_eq!(tune.join().expect("the thread returns"), Ok(()));
        assert!(
            !other.join().expect("the thread returns"),
            "none has come yet"
        );
        assert!(
            rate.try_acquire(at(12)).is_ok(),
            "one comes each millisecond"
        );
    });
}

/// A limiter that gets a ceiling while it is throttled for the first time limits afterwards,
/// whichever begins it.
#[test]
fn a_ceiling_and_a_throttle_both_engage() {
    explore(Some(1), || {
        let rate = SendRate::new(ControlLaw::Paced, Timestamp::ZERO);
        let rate = LoomArc::new(rate);
        let (one, two) = (LoomArc::clone(&rate), LoomArc::clone(&rate));
        let tune = thread::spawn(move || one.set_paced(ceiling(10), at(2_000)));
        let other = thread::spawn(move || record(&two, 2_000, 0, Outcome::Throttled));
        assert_eq!(tune.join().expect("the thread returns"), Ok(()));
        other.join().expect("the thread returns");
        let seen = rate.snapshot(at(2_100));
        assert!(seen.enabled && seen.fill_rate < 10.01, "{seen:?}");
        let _ = rate.try_acquire(at(2_000));
        assert!(rate.try_acquire(at(2_000)).is_err());
    });
}

/// Settings with a floor and a ceiling, in tokens a second.
fn between(floor: u32, ceiling: u32) -> PacedSettings {
    let second = Duration::from_secs(1);
    let settings = PacedSettings::builder().ceiling(ceiling, second);
    let settings = settings.floor(floor, second).build();
    settings.expect("in range")
}

/// Of two changes at once one is the last, and the rate is that one's, though both are made in one
/// step of the curve.
#[test]
fn two_changes_at_once_leave_the_rate_of_one() {
    explore(Some(2), || {
        let rate = SendRate::paced(ceiling(100), Timestamp::ZERO);
        let rate = LoomArc::new(rate);
        let (one, two) = (LoomArc::clone(&rate), LoomArc::clone(&rate));
        let (first, second) = (between(5, 10), between(15, 20));
        let one = thread::spawn(move || one.set_paced(first, at(1_000)));
        let two = thread::spawn(move || two.set_paced(second, at(1_000)));
        assert_eq!(one.join().expect("the thread returns"), Ok(()));
        assert_eq!(two.join().expect("the thread returns"), Ok(()));
        record(&rate, 1_000, 990, Outcome::NotThrottled);
        while rate.try_acquire(at(1_000)).is_ok() {}
        let wait = rate.try_acquire(at(1_000)).expect_err("it is empty");
        let later = at(1_000).saturating_add(wait);
        assert!(rate.try_acquire(later).is_ok());
        let wait = rate.try_acquire(later).expect_err("it held one token");
        let seen = rate.paced_settings().expect("the law has settings");
        assert!(seen == first || seen == second, "a mix of two: {seen:?}");
        let slower = seen == first;
        let apart = if slower { 100 } else { 50 };
        assert!(wait.as_millis().abs_diff(apart) <= 1, "{wait:?}, {apart}");
    });
}

/// A change by an older clock than the last one's begins when that began, at whatever step the
/// other thread is: it mints nothing for the time in between a second time.
#[test]
fn a_change_by_an_older_clock_mints_nothing() {
    // Buckets so large that they hide no token that comes twice.
    fn held(tokens: u32) -> PacedSettings {
        let settings = ceiling(tokens).to_builder();
        settings
            .burst(Duration::from_secs(10))
            .build()
            .expect("in range")
    }
    explore(Some(1), || {
        let rate = SendRate::paced(held(1_000), Timestamp::ZERO);
        let full = rate.try_acquire_n(at(1_000), 10_000);
        assert!(full.is_ok(), "it is full: {full:?}");
        let rate = LoomArc::new(rate);
        let (one, two) = (LoomArc::clone(&rate), LoomArc::clone(&rate));
        let newer = thread::spawn(move || {
            assert_eq!(one.set_paced(held(900), at(1_500)), Ok(()));
            assert_eq!(one.set_paced(held(500), at(2_000)), Ok(()));
        });
        let older = thread::spawn(move || two.set_paced(held(1_000), at(1_200)));
        newer.join().expect("the thread returns");
        assert_eq!(older.join().expect("the thread returns"), Ok(()));
        // From 1 s to 2 s, at 1,000/s at most.
        let available = rate.snapshot(at(2_000)).available;
        assert!(available < 1_000.001, "{available}");
    });
}

/// Responses to so many tokens' worth of requests.
fn record_many(rate: &SendRate, now: u64, sent: u64, weight: u32) {
    // While nothing is limited anything is granted.
    let free = SendRate::new(ControlLaw::Paced, Timestamp::ZERO);
    let permit = free.try_acquire_n(at(sent), weight).expect("not limited");
    rate.record(at(now), permit, Outcome::NotThrottled);
}

/// A limiter before its first throttle, with 64 responses to its first requests.
fn before_the_first_throttle() -> SendRate {
    let rate = SendRate::new(ControlLaw::Paced, Timestamp::ZERO);
    record_many(&rate, 60, 10, 64);
    rate
}

fn first_throttle(rate: &SendRate) {
    record(rate, 70, 20, Outcome::Throttled);
}

/// What was sent before the first throttle comes back: so many done, and one throttled.
fn come_back(rate: &SendRate, done: u32) {
    record_many(rate, 110, 50, done);
    record(rate, 110, 50, Outcome::Throttled);
}

/// The response to the first request that was sent later.
fn later_response(rate: &SendRate) {
    record(rate, 130, 80, Outcome::NotThrottled);
}

/// A response that comes after the first throttle is known counts for the correction: without it
/// there are too few.
#[test]
fn no_response_after_the_first_throttle_goes_uncounted() {
    explore(Some(1), || {
        let rate = LoomArc::new(before_the_first_throttle());
        let (one, two) = (LoomArc::clone(&rate), LoomArc::clone(&rate));
        let throttle = thread::spawn(move || first_throttle(&one));
        let response = thread::spawn(move || {
            let known = two.snapshot(at(90)).enabled;
            record(&two, 90, 50, Outcome::NotThrottled);
            known
        });
        throttle.join().expect("the thread returns");
        let known = response.join().expect("the thread returns");
        let first = rate.snapshot(at(110)).last_max_rate;
        come_back(&rate, 14);
        later_response(&rate);
        let corrected = rate.snapshot(at(130)).last_max_rate < first;
        assert!(corrected || !known, "it was counted");
    });
}

/// Of two responses that come back at once both count for the correction: without either there
/// are too few.
#[test]
fn responses_that_come_back_at_once_all_count() {
    explore(Some(2), || {
        let rate = before_the_first_throttle();
        first_throttle(&rate);
        come_back(&rate, 13);
        let first = rate.snapshot(at(110)).last_max_rate;
        let rate = LoomArc::new(rate);
        let threads = [115, 116].map(|now| {
            let rate = LoomArc::clone(&rate);
            thread::spawn(move || record(&rate, now, 60, Outcome::NotThrottled))
        });
        for thread in threads {
            thread.join().expect("the thread returns");
        }
        later_response(&rate);
        assert!(rate.snapshot(at(130)).last_max_rate < first, "both count");
    });
}

/// The correction of the first throttle never undoes a second one, which cuts to 604/s at most: the
/// corrected peak is 1,000/s.
#[test]
fn a_correction_never_undoes_a_throttle() {
    explore(Some(1), || {
        let rate = before_the_first_throttle();
        first_throttle(&rate);
        come_back(&rate, 15);
        let rate = LoomArc::new(rate);
        let shared = LoomArc::clone(&rate);
        let throttle = thread::spawn(move || record(&shared, 200, 180, Outcome::Throttled));
        later_response(&rate);
        throttle.join().expect("the thread returns");
        let peak = rate.snapshot(at(210)).last_max_rate;
        assert!(peak < 700.0, "{peak}");
    });
}
