//! Where a cycle of the paced law begins.

use paceline::{ControlLaw, Outcome, SendPermit, SendRate, Timestamp};

const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLI;

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

fn record(rate: &SendRate, nanos: u64, outcome: Outcome) {
    rate.record(at(nanos), SendPermit::sent_at(at(nanos)), outcome);
}

/// The fill rate once the pause is over that began at `nanos`.
fn rate_after_pause(rate: &SendRate, nanos: u64) -> f64 {
    let paused = rate.snapshot(at(nanos)).fill_rate;
    assert_eq!(paused.to_bits(), 0, "a pause");
    rate.snapshot(at(nanos + 60 * SECOND)).fill_rate
}

/// Nothing was delivered before the first knock that was done, which could have gone 8 s after the
/// last: that is the only gap there is.
#[test]
fn a_service_that_is_shut_at_first_is_opened_at_the_gap() {
    let rate = SendRate::new(ControlLaw::Paced, at(0));
    for nanos in [SECOND, 3 * SECOND, 20 * SECOND] {
        record(&rate, nanos, Outcome::Throttled);
    }
    assert!(rate_after_pause(&rate, 20 * SECOND) < 0.2);
    record(&rate, 60 * SECOND, Outcome::NotThrottled);
    let opened = rate.snapshot(at(60 * SECOND)).fill_rate;
    assert!((0.12..0.13).contains(&opened), "{opened}");
}

/// What was delivered before is forgotten with the throttles, and counted anew from the next window
/// on: at 10 a second the first knock comes after about 0.1 s.
#[test]
fn a_cycle_begins_anew_once_throttles_are_forgotten() {
    let rate = SendRate::new(ControlLaw::Paced, at(0));
    record(&rate, 0, Outcome::Throttled);
    rate.forget_throttles(at(0));
    for tenth in 0..100 {
        record(&rate, tenth * 100 * MILLI, Outcome::NotThrottled);
    }
    rate.forget_throttles(at(10 * SECOND));
    // Nothing was counted yet.
    let unheard = |nanos| {
        record(&rate, nanos, Outcome::Throttled);
        record(&rate, nanos + SECOND, Outcome::Throttled);
        rate_after_pause(&rate, nanos + SECOND)
    };
    let first = unheard(10 * SECOND);
    assert!((0.26..0.27).contains(&first), "{first}");
    rate.forget_throttles(at(20 * SECOND));
    for tenth in 200..300 {
        record(&rate, tenth * 100 * MILLI, Outcome::NotThrottled);
    }
    let first = unheard(30 * SECOND);
    assert!((5.0..11.0).contains(&first), "{first}");
}

/// What a knock takes is of the cycle that it begins, not of the one before.
#[test]
fn a_heavy_knock_opens_at_the_rate_that_a_light_one_opens_at() {
    let [light, heavy] = [1, 5].map(|weight| {
        let rate = SendRate::new(ControlLaw::Paced, at(0));
        for second in 0..40 {
            record(&rate, second * 100 * MILLI, Outcome::NotThrottled);
        }
        for second in 4..60 {
            record(&rate, second * SECOND, Outcome::Throttled);
        }
        let sent = SendPermit::sent_at(at(150 * SECOND)).costing(weight);
        rate.record(at(151 * SECOND), sent, Outcome::NotThrottled);
        rate.snapshot(at(151 * SECOND)).last_max_rate
    });
    assert_eq!(light.to_bits(), heavy.to_bits());
}

/// One in a minute for an hour, and no limit from then on. The growth of a state is counted up to
/// 64 calms, which is 0.8 a second.
#[test]
fn growth_goes_on_until_the_law_of_seconds_takes_over() {
    let rate = SendRate::new(ControlLaw::Paced, at(0));
    let (mut now, mut window, mut sends) = (0, u64::MAX, 0);
    while now < 4 * 3_600 * SECOND {
        let mut place = rate.reserve(at(now));
        while let Err(wait) = place.claim(at(now)) {
            now += u64::try_from(wait.as_nanos()).expect("a day at most");
        }
        let permit = place.claim(at(now)).expect("its turn has come");
        let is_free = now > 3_600 * SECOND;
        let outcome = if is_free || now / (60 * SECOND) != window {
            Outcome::NotThrottled
        } else {
            Outcome::Throttled
        };
        window = now / (60 * SECOND);
        now += SECOND / 10;
        sends += u32::from(now > 3 * 3_600 * SECOND);
        rate.record(at(now), permit, outcome);
    }
    // One worker has ten in a second at most.
    assert!(sends > 35_000, "{sends} in the last hour");
}
