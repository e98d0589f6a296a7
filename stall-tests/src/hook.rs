//! What happens before each atomic access of a thread: counted, stopped at, or overtaken by
//! another thread.

use core::cell::{Cell, RefCell};
use core::panic::AssertUnwindSafe;
use std::panic::{catch_unwind, resume_unwind};

/// The most atomic steps that an operation may take that meets no thread at work, beside stopped
/// ones or not.
///
/// The longest here, a throttle or a reset that first finishes what others left and looks at
/// thirteen waiters more than once, takes over a hundred.
pub(crate) const MOST: u64 = 200;

#[derive(Clone, Copy)]
struct Count {
    taken: u64,
    stop_at: u64,
    most: u64,
}

const FREE: Count = Count {
    taken: 0,
    stop_at: u64::MAX,
    most: u64::MAX,
};

type Interruption = (u64, Box<dyn FnOnce()>);

std::thread_local! {
    static COUNT: Cell<Count> = const { Cell::new(FREE) };
    static INTERRUPTION: RefCell<Option<Interruption>> = const { RefCell::new(None) };
}

/// What a stopped thread unwinds with.
struct Stopped;

/// The hook: called before each atomic access.
pub(crate) fn step() {
    let Count {
        taken,
        stop_at,
        most,
    } = COUNT.get();
    let due = INTERRUPTION.with_borrow_mut(|slot| slot.take_if(|(step, _)| *step == taken));
    if let Some((_, other)) = due {
        bounded(MOST, other);
        COUNT.set(Count {
            taken,
            stop_at,
            most,
        });
    }
    if taken == stop_at {
        COUNT.set(FREE);
        resume_unwind(Box::new(Stopped));
    }
    if taken == most {
        COUNT.set(FREE);
        panic!("not finished after {most} steps");
    }
    COUNT.set(Count {
        taken: taken + 1,
        stop_at,
        most,
    });
}

fn counting<R>(count: Count, operation: impl FnOnce() -> R) -> (R, u64) {
    paceline_core::stall::set_hook(step);
    COUNT.set(count);
    let result = operation();
    (result, COUNT.replace(FREE).taken)
}

/// Runs `operation`, which fails if it takes more than `most` steps.
pub(crate) fn bounded<R>(most: u64, operation: impl FnOnce() -> R) -> R {
    counting(Count { most, ..FREE }, operation).0
}

/// Runs `operation` until its step number `step`, from 0, and stops there: `None`, or its
/// result if it finished before.
pub(crate) fn stopped_at<R>(step: u64, operation: impl FnOnce() -> R) -> Option<R> {
    stopped_within(2 * MOST, step, operation)
}

/// As [`stopped_at`], of an operation that takes `most` steps.
pub(crate) fn stopped_within<R>(most: u64, step: u64, operation: impl FnOnce() -> R) -> Option<R> {
    let count = Count {
        stop_at: step,
        most,
        ..FREE
    };
    let run = AssertUnwindSafe(|| counting(count, operation).0);
    match catch_unwind(run) {
        Ok(result) => Some(result),
        Err(payload) if payload.is::<Stopped>() => None,
        Err(payload) => resume_unwind(payload),
    }
}

/// As [`stopped_at`], but before step number `overtaken` all of `other` happens.
pub(crate) fn overtaken_and_stopped_at<R>(
    overtaken: u64,
    other: impl FnOnce() + 'static,
    step: u64,
    operation: impl FnOnce() -> R,
) -> Option<R> {
    INTERRUPTION.set(Some((overtaken, Box::new(other))));
    let result = stopped_at(step, operation);
    INTERRUPTION.take();
    result
}
