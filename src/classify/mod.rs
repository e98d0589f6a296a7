//! Classifiers: what errors and responses of other crates mean to a strategy.

#[cfg(feature = "http")]
mod beginning;
mod body;
mod code;
#[cfg(feature = "http")]
mod http;
mod io;
mod json;
#[cfg(feature = "http")]
mod limits;
#[cfg(feature = "http")]
mod parts;
#[cfg(feature = "http")]
mod refusal;
#[cfg(feature = "http")]
mod request;
mod status;
mod success;

#[cfg(feature = "http")]
pub use self::{
    beginning::{BodyBeginning, BodyEnd, may_fail_late},
    http::HttpClassifier,
    limits::HeaderLimits,
    parts::HttpResponseParts,
    refusal::{MAX_REFUSAL_BODY, Refusal, RefusalClassifier, RefusalScope},
    request::is_conditional,
    success::{graphql_cost, graphql_limits, pause_after},
};
pub use body::aws_error_code;
pub use io::IoErrorClassifier;
pub use status::ServiceUnavailable;
pub use success::{BodyRefusals, RefusedItems};

use crate::Failure;

/// Says what errors of the type `E` mean for a retry.
///
/// Closures are classifiers too: `|error: &E| -> Option<Failure>`. A pair asks its second
/// classifier only if the first returns `None`. [`IoErrorClassifier`] is built in, and with the
/// feature `http` `HttpClassifier`, `RefusalClassifier` and [`BodyRefusals`].
///
/// # Examples
///
/// ```
/// use std::io;
/// use paceline::{
///     Failure, RetryStrategyExt, Standard,
///     classify::{Classifier, IoErrorClassifier},
/// };
///
/// // A share that vanishes now and then; of the rest the built-in classifier knows more.
/// let mine = |error: &io::Error| match error.kind() {
///     io::ErrorKind::NotFound => Some(Failure::transient()),
///     _ => None,
/// };
/// let chain = (mine, IoErrorClassifier);
/// let classify = |error: &io::Error| chain.classify(error).unwrap_or(Failure::not_retryable());
///
/// let result = Standard::new().run_with(classify, |attempt| match attempt.number() {
///     1 => Err(io::Error::from(io::ErrorKind::NotFound)),
///     2 => Err(io::Error::from(io::ErrorKind::ConnectionReset)),
///     _ => Ok("there it is"),
/// });
/// assert_eq!(result.unwrap(), "there it is");
/// ```
pub trait Classifier<E: ?Sized> {
    /// Returns what `error` means, or `None` if this classifier does not know.
    ///
    /// [`Failure::not_retryable`] is an answer too. After it, the second classifier of a pair is
    /// not asked.
    fn classify(&self, error: &E) -> Option<Failure>;

    /// Returns `true` if the classifier needs the body of the response `error`. The default is
    /// `false`.
    ///
    /// Adapters then read up to `MAX_REFUSAL_BODY` (64 KiB) of the body, and pass it to
    /// [`classify`](Self::classify).
    fn wants_body(&self, error: &E) -> bool {
        let _ = error;
        false
    }
}

impl<E: ?Sized, F: Fn(&E) -> Option<Failure>> Classifier<E> for F {
    fn classify(&self, error: &E) -> Option<Failure> {
        self(error)
    }
}

/// Asks the first classifier, and the second if the first returns `None`.
impl<E: ?Sized, A: Classifier<E>, B: Classifier<E>> Classifier<E> for (A, B) {
    fn classify(&self, error: &E) -> Option<Failure> {
        let known = self.0.classify(error);
        known.or_else(|| self.1.classify(error))
    }

    fn wants_body(&self, error: &E) -> bool {
        self.0.wants_body(error) || self.1.wants_body(error)
    }
}
