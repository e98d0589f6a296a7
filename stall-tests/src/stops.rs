//! Stops of one thread and of two, everywhere, and what the next one who comes finds.

use core::time::Duration;

use paceline_core::SendRate;

use crate::hook::{MOST, overtaken_and_stopped_at};
use crate::scene::{Operation, Stage, at};
use crate::workload::{check, close, look, take};

/// Calls `scenario` with each stage and operation, and each step until it returns false: the
/// operation has finished before that step.
pub(crate) fn everywhere(mut scenario: impl FnMut(Stage, Operation, u64) -> bool) {
    for stage in Stage::ALL {
        for operation in Operation::ALL {
            let steps = (0..=2 * MOST).find(|step| !scenario(stage, operation, *step));
            let steps = steps.expect("the operation finishes");
            assert!(
                steps > 0 || stage == Stage::Quiet,
                "{operation:?} has no step at all"
            );
            println!("{stage:?} {operation:?}: {steps} steps");
        }
    }
}

/// Wherever a thread stops, everybody else goes on.
#[test]
fn a_stopped_thread_stops_no_other() {
    everywhere(|stage, operation, step| {
        let rate = stage.limiter();
        let places = stage.queue(&rate);
        let stopped = operation.stops_at(step, &rate);
        check(&rate, places, operation.holds());
        stopped
    });
}

/// Wherever two threads stop, one after the other, everybody else goes on.
#[test]
fn two_stopped_threads_stop_no_other() {
    everywhere(|stage, first, first_step| {
        let mut first_stopped = false;
        for second in Operation::ALL {
            for step in 0..=2 * MOST {
                let rate = stage.limiter();
                let places = stage.queue(&rate);
                first_stopped = first.stops_at(first_step, &rate);
                let second_stopped = second.stops_at(step, &rate);
                check(&rate, places, first.holds() + second.holds());
                if !second_stopped {
                    break;
                }
            }
        }
        first_stopped
    });
}

/// A thread that was overtaken, so that it finishes what is no longer to be done, or does it again,
/// and stops while it does, stops no other.
#[test]
fn a_thread_overtaken_and_stopped_stops_no_other() {
    everywhere(|stage, operation, overtaken| {
        let mut reached = false;
        for other in Operation::ALL {
            for step in overtaken + 1..=2 * MOST {
                let rate = stage.limiter();
                let places = stage.queue(&rate);
                let shared = alloc::sync::Arc::clone(&rate);
                let overtake = move || other.run(&shared);
                let finished = operation.stopped(&rate, |work| {
                    overtaken_and_stopped_at(overtaken, overtake, step, work).is_some()
                });
                check(&rate, places, operation.holds() + other.holds());
                if finished {
                    break;
                }
                reached = true;
            }
        }
        reached
    });
}

/// What others can tell of a limiter: its rates, and the tokens that it grants at 1.1 s and the
/// time to the next.
#[derive(Debug)]
struct Found {
    rates: [f64; 3],
    granted: u32,
    wait: Duration,
}

impl Found {
    fn of(rate: &SendRate) -> Self {
        let seen = look(rate, at(1_100));
        let mut granted = 0;
        let wait = loop {
            match take(rate, at(1_100)) {
                Err(wait) => break wait,
                Ok(()) if granted == 1_000 => break Duration::ZERO,
                Ok(()) => granted += 1,
            }
        };
        Self {
            rates: [seen.fill_rate, seen.measured_rate, seen.last_max_rate],
            granted,
            wait,
        }
    }

    fn is(&self, other: &Self) -> bool {
        let mut rates = self.rates.iter().zip(other.rates);
        rates.all(|(mine, theirs)| close(*mine, theirs))
            && (self.granted, self.wait) == (other.granted, other.wait)
    }

    /// Whether others get at least as much, at least as soon.
    fn is_at_least(&self, other: &Self) -> bool {
        (self.granted, other.wait) >= (other.granted, self.wait)
    }
}

/// An operation that stops has happened or it has not: what it held is all that is lost. A place
/// that is given up may be in between, noted but not yet counted: that is no more than if it had
/// been.
#[test]
fn a_stopped_operation_has_happened_or_not() {
    everywhere(|stage, operation, step| {
        let (rate, with, without) = (stage.limiter(), stage.limiter(), stage.limiter());
        for rate in [&rate, &with, &without] {
            core::mem::forget(stage.queue(rate));
        }
        let stopped = operation.stops_at(step, &rate);
        operation.run(&with);
        core::mem::forget(operation.prepared(&without));
        let [found, with, without] = [&rate, &with, &without].map(|rate| Found::of(rate));
        let right = match operation {
            Operation::TryAcquire | Operation::Reserve | Operation::Claim | Operation::Snapshot => {
                found.is(&with) || found.is(&without)
            }
            Operation::GiveUp => found.is_at_least(&without) && with.is_at_least(&found),
            // These are several facts. What each makes of the others is checked by the workload.
            _ => true,
        };
        assert!(
            right,
            "{stage:?} {operation:?} at {step}: {found:?}, {with:?}, {without:?}"
        );
        stopped
    });
}
