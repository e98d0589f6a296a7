//! [`SendRate`] under the paced law and five threads.

use alloc::sync::Arc;
use core::time::Duration;

use paceline_core::{ControlLaw, Outcome, SendPermit, SendRate, Timestamp};

use crate::send_rate::at;
use crate::{explore, on_threads};

fn record(rate: &SendRate, now: u64, sent: u64, outcome: Outcome) {
    rate.record(at(now), SendPermit::sent_at(at(sent)), outcome);
}

/// A limiter that has delivered 400 in two fifths of a second when it was throttled, and then some
/// more.
fn limited() -> Arc<SendRate> {
    let rate = SendRate::new(ControlLaw::Paced, Timestamp::ZERO);
    for millis in 0..400 {
        record(&rate, 50 + millis, millis, Outcome::NotThrottled);
    }
    record(&rate, 450, 400, Outcome::Throttled);
    Arc::new(rate)
}

/// Five threads throttle, deliver, ask and stand in line at one moment: they get no more than there
/// was.
#[test]
fn no_more_is_granted_than_was_minted() {
    let hint = Outcome::ThrottledFor(Duration::from_millis(300));
    explore(1_500, move || {
        let rate = limited();
        let before = rate.snapshot(at(600));
        let granted = on_threads(5, &rate, move |rate, thread| match thread {
            // Nothing has got through since the first cut, so that the hint is for all.
            0 => {
                record(rate, 600, 500, hint);
                0
            }
            1 => {
                record(rate, 600, 461, hint);
                record(rate, 600, 460, Outcome::NotThrottled);
                0
            }
            2 => {
                drop(rate.reserve(at(600)));
                u32::from(rate.reserve(at(600)).claim(at(600)).is_ok())
            }
            _ => (0..12)
                .map(|_| u32::from(rate.try_acquire(at(600)).is_ok()))
                .sum(),
        });
        let granted: u32 = granted.iter().sum();
        assert!(
            f64::from(granted) <= before.available,
            "granted {granted} of {before:?}"
        );
        // The pause has begun, whatever came after it.
        assert!(rate.snapshot(at(899)).enabled);
        assert!(rate.try_acquire(at(899)).is_err(), "a pause until 900 ms");
    });
}

/// Five threads record throttles of one overshoot: it is cut once, to the same rate whichever
/// thread was first.
#[test]
fn five_throttles_of_one_overshoot_cut_once() {
    explore(1_500, || {
        let rate = limited();
        on_threads(5, &rate, |rate, thread| {
            record(rate, 700 + u64::from(thread), 550, Outcome::Throttled);
        });
        let once = limited();
        record(&once, 700, 550, Outcome::Throttled);
        let (got, wanted) = (rate.snapshot(at(800)), once.snapshot(at(800)));
        // Who was first has measured up to five milliseconds more. A shut service is asked after
        // half of a trip, which is kept in six bits.
        let near = |got: f64, wanted: f64| (got / wanted - 1.0).abs() < 0.06;
        assert!(
            near(got.last_max_rate, wanted.last_max_rate) && near(got.fill_rate, wanted.fill_rate),
            "{got:?}, alone {wanted:?}"
        );
    });
}
