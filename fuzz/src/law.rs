//! `law_vs_f64`: one caller on the published law against its equations in `f64`.

use arbitrary::{Arbitrary, Unstructured};
use paceline::{SendPermit, Timestamp};

use crate::{Clock, Gap, law_check::CheckedRate, steps};

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Step {
    Advance(Gap),
    TryAcquire,
    Success,
    Throttle,
    /// Responses at even gaps, so that short inputs reach high rates.
    Stream {
        gap: Gap,
        responses: u8,
    },
    /// Asks, and if it is refused waits for just as long as it must: then it must be granted.
    WaitOut,
}

/// Runs the sequence that `data` encodes on a limiter and on the equations.
///
/// # Panics
///
/// Panics if a field, a wait or a grant of the limiter is not the equations'.
pub fn law_vs_f64(data: &[u8]) {
    let mut data = Unstructured::new(data);
    let Ok(mut clock) = Clock::arbitrary(&mut data) else {
        return;
    };
    let mut rate = CheckedRate::new(clock.now());
    for step in steps(&mut data) {
        apply(step, &mut rate, &mut clock);
    }
}

fn apply(step: Step, rate: &mut CheckedRate, clock: &mut Clock) {
    match step {
        Step::Advance(gap) => {
            clock.advance(gap);
            rate.compare(clock.now());
        }
        Step::TryAcquire => {
            let _answer = rate.try_acquire(clock.now());
        }
        Step::Success => record(rate, clock, false),
        Step::Throttle => record(rate, clock, true),
        Step::Stream { gap, responses } => {
            for _ in 0..u32::from(responses) * 4 {
                clock.advance(gap);
                record(rate, clock, false);
            }
        }
        Step::WaitOut => {
            if let Err(wait) = rate.try_acquire(clock.now()) {
                clock.wait(wait);
                let answer = rate.try_acquire(clock.now());
                assert!(answer.is_ok(), "refused after the wait of {wait:?}");
            }
        }
    }
}

fn record(rate: &mut CheckedRate, clock: &Clock, throttled: bool) {
    let now = clock.now();
    rate.record(
        now,
        SendPermit::sent_at(Timestamp::from_nanos(now)),
        throttled,
    );
}
