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

/// Returns what errors of the type `E` mean, as far as it knows.
///
/// Closures are classifiers too: `|error: &E| -> Option<Failure>`. In a pair the first that knows
/// decides. [`IoErrorClassifier`] is built in, and with the feature `http` `HttpClassifier`,
/// `RefusalClassifier` and [`BodyRefusals`].
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
    /// Not to be confused with [`Failure::not_retryable`], which is an answer: the second of a
    /// pair is not asked then.
    fn classify(&self, error: &E) -> Option<Failure>;

    /// Returns whether the body of the response `error` would say more. `false` by default.
    ///
    /// The adapters then read it, up to `MAX_REFUSAL_BODY` (64 KiB), and ask
    /// [`classify`](Self::classify) with it.
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

/// Asks the first, and the second if that does not know.
impl<E: ?Sized, A: Classifier<E>, B: Classifier<E>> Classifier<E> for (A, B) {
    fn classify(&self, error: &E) -> Option<Failure> {
        let known = self.0.classify(error);
        known.or_else(|| self.1.classify(error))
    }

    fn wants_body(&self, error: &E) -> bool {
        self.0.wants_body(error) || self.1.wants_body(error)
    }
}
