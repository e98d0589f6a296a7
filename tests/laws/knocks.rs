//! A service that lets nothing through for a time, and a caller that asks for nothing meanwhile.

use paceline::{Outcome, SendPermit, SendRate, Timestamp, law::PacedSettings};

const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLI;
const TRIP: u64 = 100 * MILLI;
/// When the service shuts.
const SHUT: u64 = 60 * SECOND;

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

/// Sends one at `sent`, which is answered a trip later.
fn send(rate: &SendRate, sent: u64, outcome: Outcome) {
    rate.record(at(sent + TRIP), SendPermit::sent_at(at(sent)), outcome);
}

/// Asks until a request may go, and returns when.
fn next(rate: &SendRate, mut now: u64) -> u64 {
    while let Err(wait) = rate.try_acquire(at(now)) {
        now += u64::try_from(wait.as_nanos()).expect("it is short");
    }
    now
}

/// A limiter that was refused from a minute on, after ten requests a second, and when the next
/// request may go.
fn shut() -> (SendRate, u64) {
    let rate = SendRate::paced(PacedSettings::new(), at(0));
    for sent in (0..SHUT).step_by(100_000_000) {
        send(&rate, sent, Outcome::NotThrottled);
    }
    let mut now = SHUT;
    for _ in 0..4 {
        send(&rate, now, Outcome::Throttled);
        now = next(&rate, now + TRIP);
    }
    (rate, now)
}

/// What the rate is after a knock that is refused, and one that is done, each `late` after it could
/// have gone.
fn found(late: u64) -> u64 {
    let (rate, mut due) = shut();
    send(&rate, due + late, Outcome::Throttled);
    due = next(&rate, due + late + TRIP);
    send(&rate, due + late, Outcome::NotThrottled);
    let shown = rate.snapshot(at(due + late + TRIP));
    assert!(shown.enabled && shown.fill_rate < 1e6, "{shown:?}");
    shown.last_max_rate.to_bits()
}

#[test]
fn a_time_in_which_nothing_is_asked_for_says_nothing_of_a_shut_service() {
    assert_eq!(found(0), found(3_600 * SECOND));
}

/// Of a client that got one answer before the service shut, the answer to a knock makes no rate
/// that was never seen.
#[test]
fn a_knock_after_few_answers_leaves_the_rate_that_was_seen() {
    let rate = SendRate::paced(PacedSettings::new(), at(0));
    send(&rate, 0, Outcome::NotThrottled);
    let mut now = SECOND;
    for _ in 0..2 {
        send(&rate, now, Outcome::Throttled);
        now = next(&rate, now + TRIP);
    }
    send(&rate, now, Outcome::NotThrottled);
    let shown = rate.snapshot(at(now + TRIP));
    assert!(shown.enabled && shown.fill_rate < 10.0, "{shown:?}");
}

/// The law of seconds goes on: what has little to send is not measured by one throttle.
#[test]
fn a_throttle_of_a_client_that_sends_little_does_not_shut_it() {
    let rate = SendRate::paced(PacedSettings::new(), at(0));
    for sent in (0..SHUT).step_by(10_000_000) {
        send(&rate, sent, Outcome::NotThrottled);
    }
    send(&rate, SHUT, Outcome::Throttled);
    let light = SHUT + 600 * SECOND;
    for sent in (SHUT + 30 * SECOND..light).step_by(30_000_000_000) {
        send(&rate, sent, Outcome::NotThrottled);
    }
    send(&rate, light, Outcome::Throttled);
    let shown = rate.snapshot(at(light + 2 * TRIP));
    assert!(shown.fill_rate > 1.0, "{shown:?}");
}

/// A server's fault is no delivery, though a window that delivered as much lifts the rate.
#[test]
fn failures_do_not_lift_a_rate() {
    let lifted = |outcome| {
        let rate = SendRate::paced(PacedSettings::new(), at(0));
        for sent in (0..SHUT).step_by(100_000_000) {
            send(&rate, sent, Outcome::NotThrottled);
        }
        send(&rate, SHUT, Outcome::Throttled);
        for sent in (SHUT + SECOND..SHUT + 3 * SECOND).step_by(5_000_000) {
            send(&rate, sent, outcome);
        }
        rate.snapshot(at(SHUT + 3 * SECOND)).last_max_rate
    };
    let (failed, done) = (lifted(Outcome::Failed), lifted(Outcome::NotThrottled));
    assert!(failed < 12.0 && done > 100.0, "{failed}, {done}");
}

/// A reset forgets when the cycle began. The answer to a knock that was sent within a trip of the
/// refusal then makes no rate of a moment.
#[test]
fn an_opening_after_a_reset_takes_the_rate_that_was_known() {
    let trip = 10 * SECOND;
    let rate = SendRate::paced(PacedSettings::new(), at(0));
    let heard = |sent, outcome| {
        rate.record(at(sent + trip), SendPermit::sent_at(at(sent)), outcome);
    };
    for sent in (0..SHUT).step_by(2_000_000_000) {
        heard(sent, Outcome::NotThrottled);
    }
    heard(SHUT, Outcome::Throttled);
    heard(SHUT + 5 * trip, Outcome::Throttled);
    rate.reset(at(SHUT + 6 * trip));
    let knock = next(&rate, SHUT + 6 * trip);
    heard(knock, Outcome::NotThrottled);
    let shown = rate.snapshot(at(knock + trip));
    assert!(shown.enabled && shown.fill_rate < 1.0, "{shown:?}");
}

/// A plain limiter is never shut, whatever is throttled: its peak is kept above its rate.
#[test]
fn a_fixed_rate_is_not_shut_by_throttles() {
    let settings = PacedSettings::fixed(1, core::time::Duration::from_secs(2)).expect("in range");
    let rate = SendRate::paced(settings, at(0));
    for second in 1..40 {
        rate.record(
            at(second * 3 * SECOND),
            SendPermit::sent_at(at(second * 3 * SECOND)),
            Outcome::Throttled,
        );
        let fill = rate.snapshot(at(second * 3 * SECOND)).fill_rate;
        assert!((0.499..0.501).contains(&fill), "{fill}");
    }
}
