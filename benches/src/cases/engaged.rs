//! A send rate that answers to throttling: a token is taken, and its response recorded.
//!
//! Time is the caller's and moves on with each operation, a million of them a second, so that there
//! are tokens to take. The published law is met where it is dearest: on its curve, where every
//! response moves the rate.

use alloc::sync::Arc;
use core::time::Duration;
use std::sync::Mutex;

use paceline::{
    Adaptive, Clock, ControlLaw, Outcome, RetryStrategy, SendPermit, SendRate, Timestamp,
    law::PacedSettings,
};

use super::twin::{Lock, Rate};
use super::{adaptive::request, aws};
use crate::caller::{CallerTime, STEP, SharedTime, tell, told};
use crate::case::{
    Case, Stage,
    Whose::{Ours, Peer, Twin},
    stage,
};
use crate::path::Path::{Engaged, EngagedRequest};
use crate::target::Bound::Nanos;

const SECOND: u64 = 1_000_000_000;

/// How long after its throttle a curve is met: near its plateau, at 1.4 million a second, of which
/// twice the measured rate is more and what is asked for less.
pub(super) const ON_THE_CURVE: u64 = 103 * SECOND;

/// As [`ON_THE_CURVE`], but so late that twice the measured rate is all that holds.
const ABOVE_THE_CURVE: u64 = 600 * SECOND;

/// A limiter under the published law to which responses are reported.
pub(super) trait Drive {
    /// Records a response.
    fn record(&self, now: u64, throttled: bool);
}

/// Lets `limiter` measure 1.4 million responses a second and throttles it, then a million a second
/// at a time `after` that, and returns the time when it has measured those.
pub(super) fn throttle_once(limiter: &impl Drive, after: u64) -> u64 {
    // The window's rate is smoothed: four fifths of this count are measured.
    const COUNT: u64 = 875_000;
    let start = 10 * SECOND;
    for count in 0..COUNT {
        limiter.record(start + count * (SECOND / 2) / COUNT, false);
    }
    let throttled = start + SECOND / 2;
    limiter.record(throttled, true);
    // Half a second of them, and some more: the window that began before the pause ends too.
    let (start, count) = (throttled + after, SECOND / STEP * 5 / 8);
    for count in 0..count {
        limiter.record(start + count * STEP, false);
    }
    start + count * STEP
}

impl Drive for SendRate {
    fn record(&self, now: u64, throttled: bool) {
        let outcome = if throttled {
            Outcome::Throttled
        } else {
            Outcome::NotThrottled
        };
        let now = Timestamp::from_nanos(now);
        self.record(now, SendPermit::sent_at(now), outcome);
    }
}

/// A send rate under a mutex.
pub(super) struct Locked<L>(pub(super) L);

impl<L: Lock<Rate>> Drive for Locked<L> {
    fn record(&self, now: u64, throttled: bool) {
        self.0.with(|rate| rate.record(now, throttled));
    }
}

/// Returns the cases.
pub(super) fn cases() -> Vec<Case> {
    let case = |whose, name, writes, make| Case::new(Engaged, whose, name, writes, make);
    let request = |whose, name, writes, make| Case::new(EngagedRequest, whose, name, writes, make);
    vec![
        case(Ours, "paceline SendRate, published law", 5, || {
            published(ON_THE_CURVE)
        })
        .target(
            &[Nanos(100.0)],
            "each response moves the rate: it goes the way of all laws, where the twin stores a few words between two \
             swaps; on two threads `since` and `head` change hands",
        ),
        case(
            Ours,
            "paceline SendRate, published law off its curve",
            1,
            || published(ABOVE_THE_CURVE),
        )
        .target(&[Nanos(14.0)], OFF_THE_CURVE),
        case(Ours, "paceline SendRate, paced law", 1, paced)
            .target(
                &[Nanos(6.0)],
                "a token of a lease with its age, and a count of responses in a word that the thread shares",
            ),
        case(Twin, STD_MUTEX, 4, twin::<Mutex<Rate>>),
        case(
            Twin,
            PARKING_LOT,
            4,
            twin::<parking_lot::Mutex<Rate>>,
        ),
        request(Ours, "paceline Adaptive, published law", 5, || {
            strategy(Some(ON_THE_CURVE))
        })
        .target(
            &[Nanos(57.0)],
            "a token and its response, which moves the rate, are half of it: see `engaged`; the rest is that of the paced law",
        ),
        request(Ours, "paceline Adaptive, paced law", 1, || strategy(None)).target(
            &[Nanos(30.0)],
            "a token is made, moved twice and dropped, 320 instructions beside `engaged`; each move loads 16 bytes of a permit \
             that was stored in parts, and waits for the stores",
        ),
        request(Peer, "aws-smithy-runtime", 18, aws::engaged),
    ]
}

const STD_MUTEX: &str = "std mutex";
const PARKING_LOT: &str = "parking_lot mutex";
const OFF_THE_CURVE: &str = "a token, and a count of responses in a word that the thread shares";
/// Returns whether a limiter limits at `start`.
fn assert_engaged(rate: &SendRate, start: u64) {
    let seen = rate.snapshot(Timestamp::from_nanos(start));
    assert!(seen.enabled, "it answers to throttling: {seen:?}");
}

fn published(after: u64) -> Stage {
    let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    let start = throttle_once(&rate, after);
    acquire_and_record(rate, start)
}

/// Four million a second at most, from the start.
fn ceiling() -> PacedSettings {
    let (most, second) = (4_000_000, Duration::from_secs(1));
    let settings = PacedSettings::builder().ceiling(most, second);
    settings
        .initial_rate(most, second)
        .build()
        .expect("the rates are in range")
}

fn paced() -> Stage {
    let rate = SendRate::paced(ceiling(), Timestamp::ZERO);
    acquire_and_record(rate, SECOND)
}

fn acquire_and_record(rate: SendRate, start: u64) -> Stage {
    assert_engaged(&rate, start);
    let time = SharedTime::new(start);
    stage(
        rate,
        move |_, seat| time.at(seat),
        |rate, time: &mut CallerTime| {
            let now = Timestamp::from_nanos(time.tick());
            match rate.try_acquire(now) {
                Ok(permit) => {
                    rate.record(now, permit, Outcome::NotThrottled);
                    true
                }
                Err(_) => false,
            }
        },
    )
}

fn twin<L: Lock<Rate>>() -> Stage {
    let rate = Locked(L::of(Rate::new()));
    let start = throttle_once(&rate, ON_THE_CURVE);
    let time = SharedTime::new(start);
    stage(
        rate,
        move |_, seat| time.at(seat),
        |Locked(rate), time: &mut CallerTime| {
            let now = time.tick();
            let granted = rate.with(|rate| rate.take(now));
            if granted {
                rate.with(|rate| rate.record(now, false));
            }
            granted
        },
    )
}

/// A clock that says what the thread was told.
#[derive(Debug)]
struct Told;

impl Clock for Told {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(told())
    }
}

/// The published law so long after its throttle, or the paced one at its ceiling.
fn strategy(after: Option<u64>) -> Stage {
    tell(0);
    let builder = Adaptive::builder()
        .law(ControlLaw::Aws)
        .clock(Arc::new(Told));
    let builder = match after {
        Some(_) => builder,
        None => builder.paced(ceiling()),
    };
    let strategy = builder.build().expect("the settings are in range");
    let start = after.map_or(SECOND, |after| throttle_once(strategy.send_rate(), after));
    assert_engaged(strategy.send_rate(), start);
    let time = SharedTime::new(start);
    stage(
        strategy,
        move |_, seat| time.at(seat),
        |strategy, time: &mut CallerTime| {
            tell(time.tick());
            request(strategy as &dyn RetryStrategy)
        },
    )
}

#[cfg(test)]
mod tests {
    use super::{ABOVE_THE_CURVE, ON_THE_CURVE, STEP, throttle_once};
    use paceline::{ControlLaw, Outcome, SendPermit, SendRate, Timestamp};

    /// How many of a thousand responses move the rate.
    fn moves(after: u64) -> usize {
        let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
        let start = throttle_once(&rate, after);
        let mut last = None;
        let mut moved = 0;
        for step in 0..1_000 {
            let now = Timestamp::from_nanos(start + step * STEP);
            rate.record(now, SendPermit::sent_at(now), Outcome::NotThrottled);
            let seen = rate.snapshot(now).fill_rate.to_bits();
            moved += usize::from(last.replace(seen).is_some_and(|last| last != seen));
        }
        moved
    }

    #[test]
    fn every_response_moves_the_rate_on_the_curve_and_none_above_it() {
        assert_eq!((moves(ON_THE_CURVE), moves(ABOVE_THE_CURVE)), (999, 0));
    }
}
