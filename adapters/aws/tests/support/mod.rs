//! What S3 says, and clients of it that sleep as the tests want.

#![allow(dead_code, reason = "each test program uses a part")]

extern crate alloc;

use alloc::sync::Arc;
use core::{
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    time::Duration,
};
use std::{io, sync::Mutex};

use aws_sdk_s3::{
    Client,
    config::{
        BehaviorVersion, Builder, Credentials, IdentityCache, Region,
        StalledStreamProtectionConfig, timeout::TimeoutConfig,
    },
    error::DisplayErrorContext,
};
use aws_smithy_async::rt::sleep::{AsyncSleep, Sleep};
use aws_smithy_runtime::client::{
    orchestrator::operation::Operation, retries::classifiers::HttpStatusCodeClassifier,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, OrchestratorError};
use kit::{OK, OVERLOADED, Said, Server};
use paceline::{Clock, RetryStrategy, Timestamp};
use paceline_aws::{Pacing, PacingPlugin};
use tokio::sync::Notify;

/// A copy's result.
pub(crate) const COPIED: Said = OK.body("<CopyObjectResult><ETag>\"x\"</ETag></CopyObjectResult>");
/// Throttling in the body, as S3 says it once it has begun to answer.
pub(crate) const LATE: Said =
    OK.body("<Error><Code>SlowDown</Code><Message>as told</Message></Error>");
/// A 503 as S3 says it.
pub(crate) const SLOW_DOWN: Said =
    OVERLOADED.body("<Error><Code>SlowDown</Code><Message>as told</Message></Error>");
/// A 503 with a code that says nothing of throttling.
pub(crate) const UNAVAILABLE: Said =
    OVERLOADED.body("<Error><Code>Unavailable</Code><Message>as told</Message></Error>");
pub(crate) const BROKEN: Said =
    kit::BROKEN.body("<Error><Code>InternalError</Code><Message>as told</Message></Error>");
pub(crate) const MISSING: Said =
    Said::new(404).body("<Error><Code>NoSuchKey</Code><Message>as told</Message></Error>");

/// Returns the configuration of a client of `server` without paceline, that sleeps as `sleep` does.
pub(crate) fn bare(server: &Server, sleep: impl AsyncSleep + 'static) -> Builder {
    config(sleep)
        .endpoint_url(server.endpoint())
        .http_client(aws_smithy_http_client::Builder::new().build_http())
}

/// Returns what all clients here have in common. Nothing else of them sleeps: no time limits, no
/// watch over bodies.
pub(crate) fn config(sleep: impl AsyncSleep + 'static) -> Builder {
    Builder::new()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "testtest", None, None, "test"))
        .force_path_style(true)
        .sleep_impl(sleep)
        .identity_cache(IdentityCache::no_cache())
        .timeout_config(TimeoutConfig::disabled())
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
}

/// Returns the same with paceline.
pub(crate) fn paced(server: &Server, sleep: impl AsyncSleep + 'static, pacing: &Pacing) -> Builder {
    bare(server, sleep)
        .http_client(pacing.http_client(aws_smithy_http_client::Builder::new().build_http()))
        .interceptor(pacing.interceptor())
        .retry_classifier(pacing.classifier())
}

/// Returns an operation of a client without a model that asks `server` for nothing in particular.
pub(crate) fn get(
    server: &Server,
    sleep: impl AsyncSleep + 'static,
    strategy: Arc<dyn RetryStrategy>,
) -> Operation<(), (), io::Error> {
    let http_client = aws_smithy_http_client::Builder::new().build_http();
    let plugin = Pacing::shared(strategy).plugin(http_client);
    operation(server.endpoint(), sleep, plugin)
}

/// Returns the same of any endpoint.
pub(crate) fn operation(
    url: &str,
    sleep: impl AsyncSleep + 'static,
    plugin: PacingPlugin,
) -> Operation<(), (), io::Error> {
    Operation::builder()
        .service_name("test")
        .operation_name("Get")
        .behavior_version(BehaviorVersion::latest())
        .endpoint_url(url)
        .no_auth()
        .sleep_impl(sleep)
        .timeout_config(TimeoutConfig::disabled())
        .retry_classifier(HttpStatusCodeClassifier::default())
        .runtime_plugin(plugin)
        .serializer(|()| Ok(HttpRequest::get("/")?))
        .deserializer(|response| {
            let failed = || OrchestratorError::operation(io::Error::other("no success"));
            response
                .status()
                .is_success()
                .then_some(())
                .ok_or_else(failed)
        })
        .build()
}

/// Copies an object, and says what came of it.
pub(crate) async fn copy(client: &Client) -> Result<(), String> {
    let copy = client.copy_object().bucket("b").key("to");
    let sent = copy.copy_source("b/from").send().await;
    sent.map(drop)
        .map_err(|error| DisplayErrorContext(error).to_string())
}

/// A sleep that takes no time, and remembers for how long it was asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Naps(Arc<Mutex<Vec<Duration>>>);

impl Naps {
    pub(crate) fn taken(&self) -> Vec<Duration> {
        self.0.lock().expect("no test panicked in here").clone()
    }
}

impl AsyncSleep for Naps {
    fn sleep(&self, span: Duration) -> Sleep {
        self.0.lock().expect("no test panicked in here").push(span);
        Sleep::new(core::future::ready(()))
    }
}

/// A sleep that never ends, and says when one has begun.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trance(pub(crate) Arc<Notify>);

impl AsyncSleep for Trance {
    fn sleep(&self, _span: Duration) -> Sleep {
        self.0.notify_one();
        Sleep::new(core::future::pending())
    }
}

/// A sleep that ends when the server has a request, so that a time limit strikes neither sooner nor
/// later.
#[derive(Clone, Debug, Default)]
pub(crate) struct UntilAsked(pub(crate) Arc<Notify>);

impl AsyncSleep for UntilAsked {
    fn sleep(&self, span: Duration) -> Sleep {
        let asked = self.0.clone();
        Sleep::new(async move {
            if !span.is_zero() {
                asked.notified().await;
            }
        })
    }
}

/// A clock that stands still until it is moved.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stopped(Arc<AtomicU64>);

impl Stopped {
    pub(crate) fn advance(&self, span: Duration) {
        let nanos = u64::try_from(span.as_nanos()).expect("a test is short");
        self.0.fetch_add(nanos, SeqCst);
    }
}

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.load(SeqCst))
    }
}

/// A sleep that moves the clock on instead, and remembers for how long.
#[derive(Clone, Debug, Default)]
pub(crate) struct Skips {
    pub(crate) clock: Stopped,
    pub(crate) naps: Naps,
}

impl AsyncSleep for Skips {
    fn sleep(&self, span: Duration) -> Sleep {
        self.clock.advance(span);
        self.naps.sleep(span)
    }
}
