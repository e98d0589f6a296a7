//! Hyper's client, which has no timer, for the stores of `object_store`.

use async_trait::async_trait;
use http_body_util::BodyExt as _;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector as Plain},
    rt::TokioExecutor,
};
use object_store::{
    ClientOptions, RetryConfig,
    aws::{AmazonS3, AmazonS3Builder},
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
        HttpResponse, HttpResponseBody, HttpService,
    },
};

#[derive(Debug)]
pub(crate) struct Hyper;

#[derive(Debug)]
struct Sender(Client<Plain, HttpRequestBody>);

impl HttpConnector for Hyper {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = Client::builder(TokioExecutor::new()).build_http();
        Ok(HttpClient::new(Sender(client)))
    }
}

#[async_trait]
impl HttpService for Sender {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let response = self.0.request(request).await.map_err(|error| {
            let kind = if error.is_connect() {
                HttpErrorKind::Connect
            } else {
                HttpErrorKind::Request
            };
            HttpError::new(kind, error)
        })?;
        Ok(response.map(|body| {
            let broken = |error| HttpError::new(HttpErrorKind::Interrupted, error);
            HttpResponseBody::new(body.map_err(broken))
        }))
    }
}

/// Returns a store for S3 at `url` that does not retry.
pub(crate) fn store_at(url: &str, connector: impl HttpConnector) -> AmazonS3 {
    let store = AmazonS3Builder::new()
        .with_endpoint(url)
        .with_bucket_name("logs")
        .with_skip_signature(true)
        .with_allow_http(true)
        .with_http_connector(connector)
        .with_retry(RetryConfig {
            max_retries: 0,
            ..RetryConfig::default()
        });
    store.build().expect("a store")
}
