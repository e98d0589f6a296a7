//! Models of the short way of a response, along what one thread has kept of the curve.

use loom::sync::Arc;
use loom::thread;
use paceline::modelled::go_by;
use paceline::{ControlLaw, Outcome, SendPermit, SendRate, Timestamp, law::Recorded};

use crate::explore;

const fn at(millis: u64) -> Timestamp {
    Timestamp::from_nanos(millis * 1_000_000)
}

fn respond(rate: &SendRate, millis: u64) -> Recorded {
    let now = at(millis);
    rate.record(now, SendPermit::sent_at(now), Outcome::NotThrottled)
}

fn throttle(rate: &SendRate, millis: u64) {
    let now = at(millis);
    rate.record(now, SendPermit::sent_at(now), Outcome::Throttled);
}

/// A limiter that has measured 12.8 requests a second, with a throttle at 550 ms. Its fill rate is
/// 7.84 a second then, and 9.4 on the curve at 950 ms. The window ends at a second.
pub(crate) fn on_the_curve() -> SendRate {
    let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    let seven = SendPermit::sent_at(at(100)).costing(7);
    rate.record(at(100), seven, Outcome::NotThrottled);
    respond(&rate, 500);
    throttle(&rate, 550);
    rate
}

fn fill_rate(rate: &SendRate) -> f64 {
    rate.snapshot(at(960)).fill_rate
}

/// What a thread has kept goes with the state that it was worked out from, whenever that is: after
/// two cuts the version of the head is the one of before.
#[test]
#[ignore = "takes over 15 seconds: `ci/check.sh models` runs it"]
fn two_cuts_end_what_a_thread_has_kept() {
    explore(Some(1), || {
        let rate = Arc::new(on_the_curve());
        let other = {
            let rate = Arc::clone(&rate);
            thread::spawn(move || {
                throttle(&rate, 920);
                throttle(&rate, 930);
            })
        };
        go_by(0);
        respond(&rate, 910);
        other.join().expect("the thread returns");
        let seen = fill_rate(&rate);
        assert!(seen < 6.0, "cut twice: {seen}");
        respond(&rate, 950);
        let seen = fill_rate(&rate);
        assert!(seen < 6.0, "along the curve of the second: {seen}");
    });
}
