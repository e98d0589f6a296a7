//! One strategy, and the parts that put it into a client.

use alloc::{sync::Arc, vec::Vec};
use core::{fmt, time::Duration};

use aws_smithy_runtime_api::client::http::HttpClient;
use paceline::{Adaptive, RetryStrategy, classify::ServiceUnavailable};

use crate::{
    batch::Batch,
    classifier::PacingClassifier,
    http_client::{PacedHttpClient, default_http_client},
    interceptor::{Host, PacingInterceptor},
    plugin::PacingPlugin,
};

/// Puts a [`Pacing`] into the configuration of an `aws-sdk-*` client. The macro takes a builder,
/// and returns it with the [HTTP client](Pacing::default_http_client) that the SDK would have used,
/// the [interceptor](Pacing::interceptor) and the [classifier](Pacing::classifier).
///
/// It is a macro, since the builders of the SDK's crates have no type or trait in common.
///
/// # Examples
///
/// ```
/// use paceline::Adaptive;
/// use paceline_aws::{Pacing, with_pacing};
///
/// let pacing = Pacing::new(Adaptive::paced());
/// let config = with_pacing!(aws_sdk_s3::config::Builder::new(), pacing).build();
/// ```
#[macro_export]
macro_rules! with_pacing {
    ($builder:expr, $pacing:expr $(,)?) => {{
        let (builder, pacing): (_, &$crate::Pacing) = ($builder, &$pacing);
        builder
            .http_client(pacing.default_http_client())
            .interceptor(pacing.interceptor())
            .retry_classifier(pacing.classifier())
    }};
}

/// One of paceline's strategies, ready to be put into Smithy clients.
///
/// An `aws-sdk-*` client takes three parts, [`http_client`](Self::http_client),
/// [`interceptor`](Self::interceptor) and [`classifier`](Self::classifier), and needs all three.
/// [`with_pacing`](crate::with_pacing) puts them in. A client that accepts runtime plugins takes
/// only [`plugin`](Self::plugin).
///
/// Clones, and all clients configured from them, share the strategy: its quota and its send rate.
/// Make one `Pacing` for each resource that the service throttles separately.
///
/// # Examples
///
/// ```
/// use aws_sdk_s3::config::Builder;
/// use paceline::Adaptive;
/// use paceline_aws::Pacing;
///
/// let pacing = Pacing::new(Adaptive::paced());
/// let config = Builder::new()
///     .http_client(pacing.default_http_client())
///     .interceptor(pacing.interceptor())
///     .retry_classifier(pacing.classifier())
///     .build();
/// let client = aws_sdk_s3::Client::from_conf(config);
/// ```
#[derive(Clone, Debug)]
pub struct Pacing {
    strategy: Arc<dyn RetryStrategy>,
    scope: Option<Arc<str>>,
    max_retry_after: Option<Duration>,
    unavailable: ServiceUnavailable,
    batches: Vec<Batch>,
}

impl Pacing {
    /// Wraps a strategy.
    pub fn new(strategy: impl RetryStrategy + 'static) -> Self {
        Self::shared(Arc::new(strategy))
    }

    /// Wraps [`Adaptive::bulk`], for pipelines that may lose no object to throttling. A 503 is
    /// throttling.
    ///
    /// For other settings build the strategy with
    /// [`bulk`](paceline::config::StrategyBuilder::bulk), and call
    /// [`unavailable`](Self::unavailable).
    ///
    /// # Examples
    ///
    /// ```
    /// use aws_sdk_s3::config::Builder;
    /// use paceline_aws::Pacing;
    ///
    /// let pacing = Pacing::bulk();
    /// let config = Builder::new()
    ///     .http_client(pacing.default_http_client())
    ///     .interceptor(pacing.interceptor())
    ///     .retry_classifier(pacing.classifier())
    ///     .build();
    /// ```
    #[must_use]
    pub fn bulk() -> Self {
        Self::new(Adaptive::bulk()).unavailable(ServiceUnavailable::Throttle)
    }

    /// Wraps a shared strategy, whose state can be read or used outside of the client.
    #[must_use]
    pub fn shared(strategy: Arc<dyn RetryStrategy>) -> Self {
        Self {
            strategy,
            scope: None,
            max_retry_after: None,
            unavailable: ServiceUnavailable::default(),
            batches: Vec::new(),
        }
    }

    /// Sets the meaning of a 503 without an error code of throttling. It is transient by default,
    /// as in the SDKs.
    #[must_use]
    pub const fn unavailable(mut self, unavailable: ServiceUnavailable) -> Self {
        self.unavailable = unavailable;
        self
    }

    /// Names the scope of the operations, for strategies with a state for each scope.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<Arc<str>>) -> Self {
        self.scope = Some(scope.into());
        self
    }

    /// Accepts no longer wait than `span` from the service: 60 s by default.
    ///
    /// A service that asks for more gets no retry. The rules of the SDKs bound hints well below 60
    /// s.
    #[must_use]
    pub const fn max_retry_after(mut self, span: Duration) -> Self {
        self.max_retry_after = Some(span);
        self
    }

    /// Counts the items of a batch operation, of which the service may refuse some inside a
    /// success. Call this once for each such operation.
    ///
    /// `items` counts the items of an input, and the request takes as many tokens. `refused` counts
    /// the refused items of an output, and this part counts as throttled. Send these items again
    /// yourself, as without paceline.
    ///
    /// | operation | items of the input | refused by the output |
    /// |---|---|---|
    /// | [`BatchWriteItem`](https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html) | the requests of all tables | those in `UnprocessedItems` |
    /// | [`BatchGetItem`](https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html) | the keys of all tables | those in `UnprocessedKeys` |
    /// | [`PutRecords`](https://docs.aws.amazon.com/kinesis/latest/APIReference/API_PutRecords.html) | `Records` | `FailedRecordCount` |
    /// | [`PutRecordBatch`](https://docs.aws.amazon.com/firehose/latest/APIReference/API_PutRecordBatch.html) | `Records` | `FailedPutCount` |
    /// | [`SendMessageBatch`](https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html) | `Entries` | those in `Failed` whose code is one of throttling |
    ///
    /// If a strategy holds fewer tokens than a request has items, the request takes all that it
    /// holds.
    ///
    /// # Examples
    ///
    /// ```
    /// use aws_sdk_s3::operation::delete_objects::{DeleteObjectsInput, DeleteObjectsOutput};
    /// use paceline_aws::Pacing;
    ///
    /// let pacing = Pacing::bulk().batch(
    ///     |input: &DeleteObjectsInput| input.delete().map_or(1, |delete| delete.objects().len()),
    ///     |output: &DeleteObjectsOutput| {
    ///         let slow = |error: &&aws_sdk_s3::types::Error| error.code() == Some("SlowDown");
    ///         output.errors().iter().filter(slow).count()
    ///     },
    /// );
    /// ```
    #[must_use]
    pub fn batch<I, O>(
        mut self,
        items: impl Fn(&I) -> usize + Send + Sync + 'static,
        refused: impl Fn(&O) -> usize + Send + Sync + 'static,
    ) -> Self
    where
        I: fmt::Debug + Send + Sync + 'static,
        O: fmt::Debug + Send + Sync + 'static,
    {
        self.batches.push(Batch::new(items, refused));
        self
    }

    /// Returns the strategy.
    #[must_use]
    pub fn strategy(&self) -> &Arc<dyn RetryStrategy> {
        &self.strategy
    }

    /// Wraps an HTTP client, in which requests then wait for their turn.
    ///
    /// If the turn has come already, the request goes straight through. The time limit of an
    /// attempt (`operation_attempt_timeout`) begins when the turn has come.
    pub fn http_client(&self, inner: impl HttpClient + 'static) -> PacedHttpClient {
        PacedHttpClient::new(inner)
    }

    /// Wraps the HTTP client that the SDK would have used.
    ///
    /// The features of the SDK's crates decide which client that is. Without a client (see the
    /// feature `default-https-client`) every operation fails, as without paceline, with
    /// [`Misconfigured::NoDefaultClient`](crate::Misconfigured::NoDefaultClient).
    #[must_use]
    pub fn default_http_client(&self) -> PacedHttpClient {
        default_http_client()
    }

    /// Returns the part that follows each operation of an `aws-sdk-*` client.
    #[must_use]
    pub fn interceptor(&self) -> PacingInterceptor {
        PacingInterceptor::new(self.clone(), Host::Sdk)
    }

    /// Returns the part that hands the decision to an `aws-sdk-*` client's own retry strategy.
    #[must_use]
    pub fn classifier(&self) -> PacingClassifier {
        PacingClassifier::new()
    }

    /// Returns everything at once, for clients that accept a runtime plugin. `inner` sends the
    /// requests.
    pub fn plugin(&self, inner: impl HttpClient + 'static) -> PacingPlugin {
        PacingPlugin::new(self, inner)
    }

    pub(crate) fn batches(&self) -> &[Batch] {
        &self.batches
    }

    pub(crate) const fn longest_hint(&self) -> Option<Duration> {
        self.max_retry_after
    }

    pub(crate) const fn meaning_of_503(&self) -> ServiceUnavailable {
        self.unavailable
    }

    pub(crate) fn scope_name(&self) -> Option<&str> {
        self.scope.as_deref()
    }
}
