//! What an attempt of a retry loop returns: its result, and what the service reported beside it.

use alloc::boxed::Box;
use core::fmt;

use super::{Attempts, Stop, Verdict};
use crate::{
    Clock, Failure, RetryAfter, RetryStrategy, law::LimitReports, set::Weights, strategy::Reports,
};

/// What the attempts of an [`Operation`](crate::Operation) return to its loop: [`Plain`] results,
/// or results with what the service reported beside them ([`Reporting`]).
pub trait Answers {
    /// What an attempt returns for a value `T` or an error `E`.
    type Output<T, E>;

    /// Returns the value or the error of an answer, and what was reported beside it.
    ///
    /// # Errors
    ///
    /// The error of the attempt.
    #[doc(hidden)]
    fn reported<T, E>(answer: Self::Output<T, E>) -> Result<Reported<T>, Reported<E>>;
}

/// Attempts that return a [`Result`] and report nothing. This is the default, unless an operation
/// is [`reporting`](crate::Operation::reporting).
#[derive(Debug)]
pub struct Plain;

impl Answers for Plain {
    type Output<T, E> = Result<T, E>;

    #[inline]
    fn reported<T, E>(answer: Result<T, E>) -> Result<Reported<T>, Reported<E>> {
        answer.map(Reported::from).map_err(Reported::from)
    }
}

/// Attempts of an operation that is [`reporting`](crate::Operation::reporting). They return what
/// the service reported beside the value or the error.
#[derive(Debug)]
pub struct Reporting;

impl Answers for Reporting {
    type Output<T, E> = Result<Reported<T>, Reported<E>>;

    #[inline]
    fn reported<T, E>(
        answer: Result<Reported<T>, Reported<E>>,
    ) -> Result<Reported<T>, Reported<E>> {
        answer
    }
}

/// A value or an error of an attempt, and what the service reported beside it, for the loop of an
/// operation that is [`reporting`](crate::Operation::reporting).
///
/// [`Reports::beside`] makes this value from a result and its reports. [`From`] makes a value that
/// reports nothing, so that `?` works where there is no response. A value allocates only if there
/// is something to report.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use paceline::{
///     Failure, RetryAfter, RetryStrategyExt, Standard, operation::{Reported, StopReason},
/// };
///
/// let hour = Duration::from_secs(3_600);
/// let stopped = Standard::new()
///     .operation()
///     .reporting()
///     .run(|_| {
///         let error = Reported::from(Failure::throttling());
///         Err::<Reported<()>, _>(error.retry_after(RetryAfter::AtLeast(hour)))
///     })
///     .unwrap_err();
/// let max = Duration::from_secs(60);
/// assert_eq!(stopped.why(), StopReason::RetryAfterTooLong { asked: hour, max });
/// ```
#[must_use = "it is for the loop: return it"]
pub struct Reported<T> {
    value: T,
    /// `None` if nothing was reported.
    heard: Option<Box<Heard>>,
}

/// The reports of an attempt.
#[derive(Clone, Copy, Default)]
struct Heard {
    limits: Option<LimitReports>,
    costs: Option<Weights>,
    hint: Option<RetryAfter>,
}

impl<T> Reported<T> {
    /// Adds the service's hint on when to come back. For an error, it replaces the hint of the
    /// classification. For a value, it is the [pause](Reports::pausing) that the service asks for.
    pub fn retry_after(mut self, hint: RetryAfter) -> Self {
        self.heard.get_or_insert_default().hint = Some(hint);
        self
    }

    /// Returns the value or the error alone.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// Returns the reports. `clock` has the time of the response.
    fn reports<'a>(&'a self, clock: &'a dyn Clock) -> Reports<'a> {
        let heard = self.heard.as_deref();
        Reports {
            clock: Some(clock),
            limits: heard.and_then(|heard| heard.limits.as_ref()),
            costs: heard.and_then(|heard| heard.costs.as_ref()),
            pause: self.hint().map(RetryAfter::span),
        }
    }

    fn hint(&self) -> Option<RetryAfter> {
        self.heard.as_ref()?.hint
    }
}

/// The value, and its reports if there are any.
impl<T: fmt::Debug> fmt::Debug for Reported<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Reported");
        shown.field("value", &self.value);
        if let Some(heard) = &self.heard {
            shown
                .field("limits", &heard.limits)
                .field("costs", &heard.costs)
                .field("retry_after", &heard.hint);
        }
        shown.finish()
    }
}

/// Reports nothing.
impl<T> From<T> for Reported<T> {
    #[inline]
    fn from(value: T) -> Self {
        Self { value, heard: None }
    }
}

impl Reports<'_> {
    /// Puts the reports beside the result of an attempt, to return both to the loop of an operation
    /// that is [`reporting`](crate::Operation::reporting). The loop reads the time.
    ///
    /// # Errors
    ///
    /// The error of `result`, with the reports.
    pub fn beside<T, E>(&self, result: Result<T, E>) -> Result<Reported<T>, Reported<E>> {
        let heard = Heard {
            limits: self.limits().copied(),
            costs: self.costs().copied(),
            hint: self.pause().map(RetryAfter::AtLeast),
        };
        let says_something =
            heard.limits.is_some() || heard.costs.is_some() || heard.hint.is_some();
        let heard = says_something.then(|| Box::new(heard));
        match result {
            Ok(value) => Ok(Reported { value, heard }),
            Err(value) => Err(Reported { value, heard }),
        }
    }
}

/// An attempt that failed: its error, unless the attempt was cut off, and the stop, unless another
/// attempt follows.
pub(super) type Failed<E> = (Option<E>, Option<Stop>);

impl<S: RetryStrategy> Attempts<S> {
    /// Records the answer to the attempt under way, or a timeout if there is no answer.
    pub(super) fn answered<A: Answers, T, E>(
        &mut self,
        answer: Option<A::Output<T, E>>,
        classify: impl Fn(&E) -> Failure,
        clock: &dyn Clock,
    ) -> Result<T, Failed<E>> {
        let (failure, reported) = match answer.map(A::reported) {
            Some(Ok(reported)) => {
                let _once = self.succeeded(reported.reports(clock));
                return Ok(reported.value);
            }
            Some(Err(reported)) => {
                let failure = classify(&reported.value);
                let hint = reported.hint();
                let hinted = hint.map(|hint| failure.with_retry_after(hint));
                (hinted.unwrap_or(failure), Some(reported))
            }
            None => (Failure::timeout(), None),
        };
        let reports = reported.as_ref().map(|reported| reported.reports(clock));
        let reports = reports.unwrap_or_else(|| Reports::at(clock));
        let stop = match self.failed(&failure, reports) {
            Ok(Verdict::Stop(stop)) => Some(stop),
            Ok(Verdict::Again(_)) | Err(_) => None,
        };
        Err((reported.map(Reported::into_inner), stop))
    }
}
