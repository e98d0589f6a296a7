//! Bodies that decide what a response means.

use core::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::Response;
use http_body::Body;
use paceline::{
    Failure,
    classify::{BodyBeginning, BodyEnd, Classifier, HttpResponseParts},
    wait::DefaultSleep,
};
use tower_layer::Layer;
use tower_service::Service;

use super::Replayed;

/// Reads at most 64 KiB of each body that a classifier [wants](Classifier::wants_body), for an
/// [`HttpResults`] above it.
///
/// The layer belongs under a [`RetryLayer::http`](crate::RetryLayer::http), whose table decides if
/// the classifier does not. The caller still gets the whole body. A strategy that obeys declared
/// limits gets the limits of [`graphql_limits`](paceline::classify::graphql_limits) too.
///
/// # Examples
///
/// A client of a GraphQL service, which refuses with status 200:
///
/// ```
/// use paceline::classify::BodyRefusals;
/// use paceline_tower::{ReadBodies, RetryLayer};
/// use tower::ServiceBuilder;
///
/// let client = ServiceBuilder::new()
///     .layer(RetryLayer::bulk())
///     .layer(ReadBodies::new(BodyRefusals::GraphQl));
/// ```
///
/// With a pair `(BodyRefusals::GraphQl, RefusalClassifier::new())` the bodies of other statuses
/// count as well.
///
/// [`HttpResults`]: super::HttpResults
#[derive(Clone, Copy, Debug)]
pub struct ReadBodies<C> {
    classifier: C,
}

impl<C> ReadBodies<C> {
    /// Lets `classifier` say which bodies are read, and what responses mean.
    pub const fn new(classifier: C) -> Self {
        Self { classifier }
    }
}

impl<Svc, C: Clone> Layer<Svc> for ReadBodies<C> {
    type Service = BodyReader<Svc, C>;

    fn layer(&self, inner: Svc) -> Self::Service {
        let classifier = self.classifier.clone();
        BodyReader { inner, classifier }
    }
}

/// A service that reads bodies, from [`ReadBodies`].
#[derive(Clone)]
pub struct BodyReader<Svc, C> {
    inner: Svc,
    classifier: C,
}

/// What a response means, by a classifier that may have read its body.
#[derive(Clone)]
pub(super) struct Judged {
    pub(super) failure: Option<Failure>,
    /// The bytes that were read, shared with the body of the response.
    pub(super) read: Bytes,
}

impl<Svc, Req, B, C> Service<Req> for BodyReader<Svc, C>
where
    Svc: Service<Req, Response = Response<B>>,
    Svc::Future: Send + 'static,
    B: Body<Data = Bytes, Error: Send> + Send + Unpin + 'static,
    C: for<'a> Classifier<HttpResponseParts<'a>> + Clone + Send + Sync + 'static,
{
    type Response = Response<Replayed<B>>;
    type Error = Svc::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Svc::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Svc::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        let (sending, classifier) = (self.inner.call(request), self.classifier.clone());
        Box::pin(async move {
            let response = sending.await?;
            Ok(judge(response, &classifier).await)
        })
    }
}

async fn judge<B: Body<Data = Bytes> + Unpin>(
    response: Response<B>,
    classifier: &impl for<'a> Classifier<HttpResponseParts<'a>>,
) -> Response<Replayed<B>> {
    let (mut head, mut body) = response.into_parts();
    let parts = HttpResponseParts::new(head.status, &head.headers);
    let (failure, read, body) = if classifier.wants_body(&parts) {
        let mut trailers = None;
        let poll_piece = |context: &mut Context<'_>| {
            let frame = Pin::new(&mut body).poll_frame(context)?;
            frame.map(|frame| {
                Some(Ok(frame?.into_data().unwrap_or_else(|frame| {
                    trailers = frame.into_trailers().ok();
                    Bytes::new()
                })))
            })
        };
        let beginning = BodyBeginning::read(DefaultSleep::new(), None, poll_piece).await;
        let failure = beginning.classify(classifier, parts);
        let read = Bytes::from(beginning.bytes);
        let body = Replayed::after(read.clone(), beginning.end, trailers, body);
        (failure, read, body)
    } else {
        let unread = Replayed::after(Bytes::new(), BodyEnd::Long, None, body);
        (classifier.classify(&parts), Bytes::new(), unread)
    };
    head.extensions.insert(Judged { failure, read });
    Response::from_parts(head, body)
}

impl<Svc: fmt::Debug, C> fmt::Debug for BodyReader<Svc, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyReader")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
