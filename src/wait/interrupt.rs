//! A stop for everything that blocks a thread.

use alloc::{sync::Arc, vec::Vec};
use core::{
    cell::{Cell, RefCell},
    fmt,
    time::Duration,
};

use super::LOOK_AGAIN;
use crate::seam::Sequence;

std::thread_local! {
    /// Whether the thread is within an interrupt. A thread outside reads only this flag.
    static IS_WITHIN: Cell<bool> = const { Cell::new(false) };

    /// The interrupts that this thread is within, the innermost last.
    static CURRENT: RefCell<Vec<Interrupt>> = const { RefCell::new(Vec::new()) };
}

/// A stop for everything of paceline that blocks a thread: for Ctrl-C, and for a service that shuts
/// down.
///
/// The caller owns the signal handler, and calls [`set`](Self::set) in it. Everything that blocks
/// [within](Self::within) the interrupt then ends in 50 ms, however long it had to wait:
///
/// | what | ends |
/// |---|---|
/// | `run` and `run_with` of strategies and operations, `wait_blocking` of [`Attempts`] | with [`StopReason::Interrupted`], before the next attempt. Its quota and its place in line go back |
/// | `acquire_blocking` | with an error that is not in time, as if its deadline were now |
///
/// So loops inside of loops end together. An attempt under way is not cut off. Tasks need no
/// interrupt; drop their futures.
///
/// A clone is a handle on the same interrupt. An interrupt stays set.
///
/// [`Attempts`]: crate::operation::Attempts
/// [`StopReason::Interrupted`]: crate::operation::StopReason::Interrupted
///
/// # Examples
///
/// ```
/// use std::{thread, time::Duration};
/// use paceline::{Adaptive, Failure, RetryStrategyExt, law::PacedSettings};
/// use paceline::{operation::StopReason, wait::Interrupt};
///
/// let slow = PacedSettings::fixed(1, Duration::from_secs(600))?;
/// let strategy = Adaptive::builder().paced(slow).build()?;
/// let interrupt = Interrupt::new();
/// let handler = interrupt.clone();
/// // In a program: `ctrlc::set_handler(move || handler.set())?`
/// thread::spawn(move || handler.set());
///
/// let stopped = interrupt.within(|| loop {
///     if let Err(stopped) = strategy.run(|_| Ok::<_, Failure>("sent")) {
///         break stopped; // not ten minutes later
///     }
/// });
/// assert_eq!(stopped.why(), StopReason::Interrupted);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Interrupt(Arc<Sequence>);

impl Interrupt {
    /// Creates an interrupt that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Sequence::starting_at(0)))
    }

    /// Ends all blocking calls within the interrupt, on all threads. The call allocates nothing and
    /// takes no lock, so a signal handler may make it.
    pub fn set(&self) {
        if !self.is_set() {
            self.0.next();
        }
    }

    /// Returns `true` if the interrupt was set.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.peek() != 0
    }

    /// Calls `work`, whose blocking calls on this thread can then be interrupted. Threads that
    /// `work` starts need a separate call.
    ///
    /// Inside another interrupt, either of the two ends a blocking call. A thread that waits within
    /// an interrupt looks every 50 ms.
    pub fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        /// Takes the interrupt out again, also when a panic passes.
        struct Entered;

        impl Drop for Entered {
            fn drop(&mut self) {
                let _ended = CURRENT.try_with(|all| {
                    let mut all = all.borrow_mut();
                    all.pop();
                    IS_WITHIN.set(!all.is_empty());
                });
            }
        }

        let entered = CURRENT.try_with(|all| all.borrow_mut().push(self.clone()));
        IS_WITHIN.set(entered.is_ok());
        let _entered = entered.ok().map(|()| Entered);
        work()
    }
}

/// Returns `true` if an interrupt of this thread is set.
#[inline]
pub(crate) fn is_interrupted() -> bool {
    IS_WITHIN.get() && is_one_set()
}

// Cold, because most threads are within no interrupt.
#[cold]
fn is_one_set() -> bool {
    // A thread that ends is within no interrupt.
    let set = CURRENT.try_with(|all| all.borrow().iter().any(Interrupt::is_set));
    set.unwrap_or(false)
}

/// Returns the part of `span` to rest before the next look at the interrupts.
pub(crate) fn slice(span: Duration) -> Duration {
    if IS_WITHIN.get() {
        span.min(LOOK_AGAIN)
    } else {
        span
    }
}

/// Sleeps for `span` by `sleep`, or until the thread is interrupted.
pub(crate) fn sleep(span: Duration, mut sleep: impl FnMut(Duration)) {
    let mut left = span;
    while !left.is_zero() && !is_interrupted() {
        let part = slice(left);
        sleep(part);
        left = left.saturating_sub(part);
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Interrupt").field(&self.is_set()).finish()
    }
}
