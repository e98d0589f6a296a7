//! A response whose outcome is still to be recorded.

use alloc::sync::Arc;
use core::fmt;

use paceline::{
    Failure, RetryStrategy,
    operation::{Attempts, Detached},
    strategy::Reports,
};

use crate::Settle;

/// A request that was answered: its strategy is still to hear the outcome.
pub struct Retried<S: ?Sized>(Detached<Arc<S>>);

impl<S: RetryStrategy + ?Sized> Retried<S> {
    /// Returns the outcome of the attempt under way, `None` if there is none.
    pub(super) fn new(attempts: Attempts<Arc<S>>) -> Option<Self> {
        attempts.detach().ok().map(Self)
    }
}

impl<S: RetryStrategy + ?Sized> Settle for Retried<S> {
    fn settle(self, failure: Option<&Failure>) {
        match failure {
            None => self.0.succeeded(Reports::new()),
            Some(failure) => self.0.failed(failure, Reports::new()),
        }
    }
}

impl<S: fmt::Debug + ?Sized> fmt::Debug for Retried<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Retried").field(&self.0).finish()
    }
}
