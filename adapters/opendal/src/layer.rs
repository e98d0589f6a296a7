//! The layer and its settings.

use alloc::{boxed::Box, sync::Arc};
use core::{fmt, time::Duration};

use http::{Method, Request};
use opendal_core::Buffer;
use paceline::{
    Failure, RetryStrategy,
    classify::{Classifier, HttpResponseParts, RefusalClassifier, ServiceUnavailable},
    headers::AttemptHeader,
};

use crate::{Lanes, bounds::Bounds, host::HttpTransporter, transport::Paced};

type Answers = dyn for<'a> Classifier<HttpResponseParts<'a>> + Send + Sync;
type Choose = dyn Fn(&Request<Buffer>) -> Lanes + Send + Sync;

/// Returns the strategy for requests with this method.
fn lane(lanes: Lanes, method: &Method) -> Arc<dyn RetryStrategy> {
    match method.as_str() {
        "GET" | "HEAD" | "OPTIONS" | "PROPFIND" => lanes.read,
        _ => lanes.write,
    }
}

/// The layer. Every HTTP request of a service waits for its turn, and failed requests are sent
/// again as a strategy decides.
///
/// Requests with the methods GET, HEAD and OPTIONS are reads, as is PROPFIND; all others are
/// writes. Clones, and the operators that use them, share quotas and rates.
///
/// Like `RetryLayer`, it repeats every request after a retryable answer or a failure of the
/// transport. But if no answer came, it does not repeat an append, or a request with a
/// [condition](paceline::classify::is_conditional).
///
/// Parts of an upload share the lane's retry quota. If many uploads run at once, use
/// [`bulk`](Self::bulk), which loses no upload to throttling.
///
/// Leave out `OpenDAL`'s own `RetryLayer`, which would repeat requests that this layer has given
/// up. Inside of an attempt of another loop of paceline, requests are sent once
/// ([`OuterAttempt`](paceline::operation::OuterAttempt)). A loop around a whole `write` or `list`
/// should be [composite](paceline::Operation::composite).
///
/// # Examples
///
/// ```
/// use opendal::{Operator, services::S3};
/// use paceline::Adaptive;
/// use paceline_opendal::PacingLayer;
///
/// # fn main() -> opendal::Result<()> {
/// let operator = Operator::new(S3::default().bucket("logs").region("eu-central-1"))?
///     .layer(PacingLayer::new(Adaptive::paced(), Adaptive::paced()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PacingLayer(Arc<Settings>);

/// The choice of lanes for a request, and the meaning of answers.
pub(crate) struct Settings {
    choose: Box<Choose>,
    pub(crate) answers: Box<Answers>,
    pub(crate) bounds: Bounds,
    pub(crate) tells: Option<AttemptHeader>,
}

impl PacingLayer {
    /// Uses one strategy for all reads and one for all writes.
    #[must_use]
    pub fn new(read: impl RetryStrategy + 'static, write: impl RetryStrategy + 'static) -> Self {
        let lanes = Lanes::new(read, write);
        Self::by(move |_| lanes.clone())
    }

    /// Uses one [`Adaptive::bulk`](paceline::Adaptive::bulk) for all reads and one for all writes.
    /// It is for pipelines that may lose no object to throttling. A 503 is throttling, as with the
    /// other constructors.
    #[must_use]
    pub fn bulk() -> Self {
        let lanes = Lanes::bulk();
        Self::by(move |_| lanes.clone())
    }

    /// Asks `choose` for the lanes of each request: by its host or path, from a map of your own.
    ///
    /// `choose` has to keep the lanes. Clones of [`Lanes`] share their strategies.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{Adaptive, Standard};
    /// use paceline_opendal::{Lanes, PacingLayer};
    ///
    /// let (hot, rest) = (Lanes::new(Adaptive::paced(), Adaptive::paced()), Lanes::new(Standard::new(), Standard::new()));
    /// let layer = PacingLayer::by(move |request| match request.uri().path().starts_with("/logs/hot/") {
    ///     true => hot.clone(),
    ///     false => rest.clone(),
    /// });
    /// ```
    pub fn by(choose: impl Fn(&Request<Buffer>) -> Lanes + Send + Sync + 'static) -> Self {
        let answers = RefusalClassifier::new().with_unavailable(ServiceUnavailable::Throttle);
        Self(Arc::new(Settings {
            choose: Box::new(choose),
            answers: Box::new(answers),
            bounds: Bounds::default(),
            tells: None,
        }))
    }

    /// Lets `classifier` say what answers mean; `None` is a success. Call this before the layer is
    /// cloned, since a clone keeps its settings.
    ///
    /// The default is [`RefusalClassifier`], for which a 503 is throttling, as storage services
    /// mean it. A classifier that wants the body of a refusal gets up to 64 KiB. Reading the body
    /// is part of the attempt.
    #[must_use]
    pub fn classifier(
        self,
        classifier: impl for<'a> Classifier<HttpResponseParts<'a>> + Send + Sync + 'static,
    ) -> Self {
        self.with(move |settings| settings.answers = Box::new(classifier))
    }

    /// Gives each request `span`, with all its attempts and waits. No limit by default. Call this
    /// before the layer is cloned.
    ///
    /// No backoff or wait begins that would use up the rest of the time, and no attempt begins
    /// after the deadline. An attempt under way is cut off.
    #[must_use]
    pub fn deadline(self, span: Duration) -> Self {
        self.with(|settings| settings.bounds.deadline = Some(span))
    }

    /// Accepts no longer wait than `span` from the service: 60 s by default. A response that asks
    /// for more is returned at once. Call this before the layer is cloned.
    #[must_use]
    pub fn max_retry_after(self, span: Duration) -> Self {
        self.with(|settings| settings.bounds.max_retry_after = Some(span))
    }

    /// Sends the number of each attempt in `header`. By default no header is sent. Call this before
    /// the layer is cloned.
    #[must_use]
    pub fn tell_attempts(self, header: AttemptHeader) -> Self {
        self.with(|settings| settings.tells = Some(header))
    }

    /// Returns the transport in which requests wait for their turn.
    pub(crate) fn around(&self, inner: HttpTransporter) -> Paced {
        let settings = Arc::clone(&self.0);
        Paced { settings, inner }
    }

    /// Changes a copy of the settings, so that clones keep theirs.
    fn with(self, change: impl FnOnce(&mut Settings)) -> Self {
        let before = self.0;
        let mut settings = Settings {
            bounds: before.bounds,
            tells: before.tells,
            choose: {
                let before = Arc::clone(&before);
                Box::new(move |request| (before.choose)(request))
            },
            answers: Box::new(Answered(before)),
        };
        change(&mut settings);
        Self(Arc::new(settings))
    }
}

/// The classifier of shared settings.
struct Answered(Arc<Settings>);

impl Classifier<HttpResponseParts<'_>> for Answered {
    fn classify(&self, parts: &HttpResponseParts<'_>) -> Option<Failure> {
        self.0.answers.classify(parts)
    }

    fn wants_body(&self, parts: &HttpResponseParts<'_>) -> bool {
        self.0.answers.wants_body(parts)
    }
}

impl Settings {
    pub(crate) fn strategy(&self, request: &Request<Buffer>) -> Arc<dyn RetryStrategy> {
        lane((self.choose)(request), request.method())
    }
}

impl fmt::Debug for PacingLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacingLayer")
            .field("deadline", &self.0.bounds.deadline)
            .field("max_retry_after", &self.0.bounds.max_retry_after)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_503_is_throttling_in_bulk_and_reads_and_writes_begin_slowly() {
        let settings = PacingLayer::bulk().0;
        let headers = http::HeaderMap::new();
        let unavailable = HttpResponseParts::new(http::StatusCode::SERVICE_UNAVAILABLE, &headers);
        let failure = settings.answers.classify(&unavailable);
        assert!(failure.is_some_and(|failure| failure.is_throttle()));
        for method in [Method::GET, Method::PUT] {
            let request = Request::builder().method(method).body(Buffer::new());
            let strategy = settings.strategy(&request.expect("a request"));
            let token = strategy.acquire_initial_token(None).expect("never refused");
            assert_eq!(token.max_attempts(), None, "throttles do not count");
            assert!(strategy.snapshot().rate.is_some_and(|rate| rate.enabled));
        }
    }
}
