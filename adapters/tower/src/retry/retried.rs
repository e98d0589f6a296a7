//! Responses whose outcome is not recorded yet.

use alloc::sync::Arc;
use core::{fmt, time::Duration};

use paceline::{
    Failure, RetryStrategy,
    operation::{Attempts, Detached},
    set::Weights,
    strategy::{AttemptCharge, Reports},
};

use crate::Conclude;

/// An answered request whose outcome the strategy does not know yet.
pub struct Retried<S: RetryStrategy + ?Sized> {
    attempt: Detached<Arc<S>>,
    has_weights: bool,
    /// The true cost of the request, if the response says it.
    costs: Option<Weights>,
    /// The pause that the service asked for.
    pause: Option<Duration>,
}

impl<S: RetryStrategy + ?Sized> Retried<S> {
    /// Returns the outcome of the attempt under way, `None` if there is none.
    pub(super) fn new(
        attempts: Attempts<Arc<S>>,
        has_weights: bool,
        costs: Option<Weights>,
        pause: Option<Duration>,
    ) -> Option<Self> {
        let attempt = attempts.detach().ok()?;
        Some(Self {
            attempt,
            has_weights,
            costs,
            pause,
        })
    }
}

impl<S: RetryStrategy + ?Sized> Conclude for Retried<S> {
    fn conclude(self, failure: Option<&Failure>) {
        let reports = self
            .costs
            .as_ref()
            .map_or(Reports::new(), |costs| Reports::new().costing(costs));
        match failure {
            None => self.attempt.succeeded(match self.pause {
                Some(span) => reports.pausing(span),
                None => reports,
            }),
            Some(failure) => self.attempt.failed(failure, reports),
        }
    }

    fn charge(&self) -> Option<AttemptCharge> {
        if self.has_weights && self.costs.is_none() {
            self.attempt.charge()
        } else {
            None
        }
    }
}

impl<S: RetryStrategy + ?Sized> fmt::Debug for Retried<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Retried").field(&self.attempt).finish()
    }
}
