//! The retry loop: one state machine without input and output, and its drivers.

mod answer;
mod attempt;
mod attempts;
mod blocking;
mod bounds;
pub(crate) mod builder;
mod detached;
mod error;
pub(crate) mod ext;
mod next;
mod open;
mod outer;
mod spent;
mod task;
mod waiter;

pub use crate::strategy::refusal::StopReason;
pub use crate::wait::waiter::Waiter;
pub use answer::{Answers, Plain, Reported, Reporting};
pub use attempt::Attempt;
pub use attempts::Attempts;
pub use detached::Detached;
pub use error::{RunError, Stop};
pub use next::{Next, NotSending, Verdict};
pub use outer::{OuterAttempt, within, within_async};

#[cfg(feature = "tokio")]
use crate::wait::DefaultSleep;
use crate::wait::Sleep;

/// Implemented if tasks can sleep by default: with the feature `tokio`. `S` is the strategy.
///
/// The trait exists for its compiler message.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "tasks have no timer to sleep by",
    label = "needs the feature `tokio` of paceline",
    note = "enable the feature `tokio`, or use `strategy.operation().sleep_on(...)` with another runtime's timer"
)]
pub trait TaskSleep<S: ?Sized> {
    /// The way to sleep.
    type Sleep: Sleep;

    /// The way to sleep.
    const SLEEP: Self::Sleep;
}

#[cfg(feature = "tokio")]
impl<S: ?Sized> TaskSleep<S> for DefaultSleep {
    type Sleep = Self;

    const SLEEP: Self = Self::new();
}
