//! One operation that is about to run, and its settings.

use core::{any::type_name, fmt, time::Duration};
use std::thread;

/// An operation that is about to run, from [`RetryStrategyExt::operation`].
///
/// `S` is its strategy and `Z` what puts its thread to sleep.
///
/// [`RetryStrategyExt::operation`]: crate::RetryStrategyExt::operation
#[must_use = "an operation does nothing until it is run"]
pub struct Operation<'a, S: ?Sized, Z = fn(Duration)> {
    pub(super) strategy: &'a S,
    pub(super) scope: Option<&'a str>,
    pub(super) sleep: Z,
}

impl<'a, S: ?Sized> Operation<'a, S> {
    pub(super) fn new(strategy: &'a S) -> Self {
        Self {
            strategy,
            scope: None,
            sleep: thread::sleep,
        }
    }
}

impl<'a, S: ?Sized, Z> Operation<'a, S, Z> {
    /// Names what the operation goes to. Our own strategies ignore it.
    pub fn scope(self, scope: &'a str) -> Self {
        Self {
            scope: Some(scope),
            ..self
        }
    }

    /// Sleeps by `sleep` instead of on the thread, so that tests can move a clock of their own.
    ///
    /// For the blocking loop: the asynchronous one sleeps by tokio's timer, which tests can pause.
    pub fn sleep_by<Y: FnMut(Duration)>(self, sleep: Y) -> Operation<'a, S, Y> {
        Operation {
            strategy: self.strategy,
            scope: self.scope,
            sleep,
        }
    }
}

impl<S: fmt::Debug + ?Sized, Z> fmt::Debug for Operation<'_, S, Z> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation")
            .field("strategy", &self.strategy)
            .field("scope", &self.scope)
            .field("sleep", &type_name::<Z>())
            .finish()
    }
}
