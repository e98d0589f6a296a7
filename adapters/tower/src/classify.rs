//! What the result of an attempt means.

use core::{any::Any, error::Error, time::Duration};
use std::io;

use paceline::{
    Failure,
    classify::{Classifier, IoErrorClassifier},
    law::LimitReports,
    operation::Stop,
    set::Weights,
};

use crate::{BoxError, Conclude, Refused};

/// Decides what the result of an attempt means.
///
/// Closures are classifiers: `|result: Result<&Response<_>, &BoxError>| -> Option<Failure>`. Built
/// in are `HttpResults` and `GrpcResults`. `E` is [`BoxError`], since the layers box the errors of
/// their service.
///
/// # Examples
///
/// ```
/// use paceline::{Failure, Standard};
/// use paceline_tower::{BoxError, RetryLayer};
///
/// // A service that says 7 when it is busy.
/// let classify = |result: Result<&u32, &BoxError>| match result {
///     Ok(7) => Some(Failure::throttling()),
///     Ok(_) => None,
///     Err(_) => Some(Failure::transient()),
/// };
/// let layer = RetryLayer::new(Standard::new(), classify);
/// ```
pub trait Classify<Res, E> {
    /// What the caller gets for a response. If the outcome comes later, [`Conclude`] gets it.
    type Answer<O: Conclude>;

    /// Returns the failure, or `None` for a success. It is also `None` if the outcome comes later,
    /// with the [`answer`](Self::answer).
    fn classify(&self, result: Result<&Res, &E>) -> Option<Failure>;

    /// Returns the limits that a response declares. The default is none.
    fn limits(&self, response: &Res) -> LimitReports {
        let _ = response;
        LimitReports::new()
    }

    /// Returns the true cost of a response's request at each send rate, in tokens. The default is
    /// none.
    fn costs(&self, response: &Res) -> Option<Weights> {
        let _ = response;
        None
    }

    /// Returns the pause that a success asks for. The default is none.
    fn pause(&self, response: &Res) -> Option<Duration> {
        let _ = response;
        None
    }

    /// Adds to the last response why its operation stopped, and after how many attempts. The
    /// default changes nothing.
    fn stopped(&self, response: Res, stop: Stop) -> Res {
        let _ = stop;
        response
    }

    /// Returns what the caller gets for a request that a layer ended without an answer. The default
    /// is the error; `GrpcResults` answers with a status.
    ///
    /// # Errors
    ///
    /// `refused`, unless the caller gets an answer.
    fn refused<O: Conclude>(&self, refused: Refused) -> Result<Self::Answer<O>, BoxError> {
        Err(refused.into())
    }

    /// Hands on the last response.
    ///
    /// `outcome` is `Some` if [`classify`](Self::classify) returned `None`. It must be concluded
    /// now, or when the outcome is known.
    fn answer<O: Conclude>(&self, response: Res, outcome: Option<O>) -> Self::Answer<O>;
}

impl<Res, E, F> Classify<Res, E> for F
where
    F: Fn(Result<&Res, &E>) -> Option<Failure>,
{
    type Answer<O: Conclude> = Res;

    fn classify(&self, result: Result<&Res, &E>) -> Option<Failure> {
        self(result)
    }

    fn answer<O: Conclude>(&self, response: Res, outcome: Option<O>) -> Res {
        succeeded(outcome);
        response
    }
}

/// Concludes `outcome` as a success.
pub(crate) fn succeeded(outcome: Option<impl Conclude>) {
    if let Some(outcome) = outcome {
        outcome.conclude(None);
    }
}

/// The most errors of a chain that are examined. An error may be its own cause.
const DEEPEST: usize = 16;

/// Returns the failure of a service's error, by its type and its causes.
///
/// | error | failure |
/// |---|---|
/// | [`Refused`] | not retryable: nothing was sent, and it waited as long as it may |
/// | the `Overloaded` of tower's `load_shed`, with the feature `policy` | not retryable, and not sent |
/// | tower's `Elapsed`, with the feature `policy` | timeout |
/// | [`std::io::Error`] | as [`IoErrorClassifier`] says |
/// | any other | transient: a transport's error; the work may have been done |
///
/// # Examples
///
/// ```
/// use std::io;
/// use paceline::{Execution, Failure};
/// use paceline_tower::{BoxError, failure_of};
///
/// let refused: BoxError = io::Error::from(io::ErrorKind::ConnectionRefused).into();
/// assert_eq!(failure_of(&refused).execution(), Execution::NotSent);
/// assert_eq!(failure_of(&BoxError::from("lost")), Failure::transient());
/// ```
pub fn failure_of<E: 'static>(error: &E) -> Failure {
    let error: &dyn Any = error;
    let error: &(dyn Error + 'static) = if let Some(error) = error.downcast_ref::<BoxError>() {
        &**error
    } else if let Some(error) = error.downcast_ref::<io::Error>() {
        error
    } else {
        return Failure::transient();
    };
    let known = ours(error).or_else(|| IoErrorClassifier.classify(error));
    known.unwrap_or(Failure::transient())
}

/// Returns the failure of an error of this crate or of tower, or of an error that it caused.
fn ours(error: &(dyn Error + 'static)) -> Option<Failure> {
    let mut next = Some(error);
    for _ in 0..DEEPEST {
        let error = next?;
        if error.is::<Refused>() {
            return Some(Failure::not_retryable());
        }
        #[cfg(feature = "policy")]
        if error.is::<tower::load_shed::error::Overloaded>() {
            return Some(Failure::not_retryable().with_execution(paceline::Execution::NotSent));
        }
        #[cfg(feature = "policy")]
        if error.is::<tower::timeout::error::Elapsed>() {
            return Some(Failure::timeout());
        }
        next = error.source();
    }
    None
}
