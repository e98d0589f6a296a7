//! The retry strategy of the AWS SDK for Rust, asked as the SDK's orchestrator asks it.
//!
//! Its limiter and its bucket have no public operations of their own.

use core::fmt;
use core::time::Duration;
use std::time::SystemTime;

use aws_smithy_async::time::{SystemTimeSource, TimeSource};
use aws_smithy_runtime::client::retries::strategy::StandardRetryStrategy;
use aws_smithy_runtime::client::retries::{ClientRateLimiter, RetryPartition, TokenBucket};
use aws_smithy_runtime_api::client::interceptors::context::{Input, InterceptorContext, Output};
use aws_smithy_runtime_api::client::orchestrator::OrchestratorError;
use aws_smithy_runtime_api::client::retries::classifiers::{ClassifyRetry, RetryAction};
use aws_smithy_runtime_api::client::retries::{RequestAttempts, RetryStrategy, ShouldAttempt};
use aws_smithy_runtime_api::client::runtime_components::{
    RuntimeComponents, RuntimeComponentsBuilder,
};
use aws_smithy_types::config_bag::{ConfigBag, Layer};
use aws_smithy_types::retry::RetryConfig;

use super::engaged::{self, Drive};
use crate::caller::{SharedTime, tell, told};
use crate::case::{Stage, stage};

/// A clock that says what the thread was told.
#[derive(Debug)]
struct Told;

impl TimeSource for Told {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_nanos(told())
    }
}

/// Takes every failure for a throttle.
#[derive(Debug)]
struct AllThrottles;

impl ClassifyRetry for AllThrottles {
    fn classify_retry(&self, _: &InterceptorContext) -> RetryAction {
        RetryAction::throttling_error()
    }

    fn name(&self) -> &'static str {
        "all throttles"
    }
}

/// What belongs to a client.
struct Client {
    strategy: StandardRetryStrategy,
    config: RetryConfig,
    partition: RetryPartition,
    bucket: TokenBucket,
    components: RuntimeComponents,
}

/// What belongs to one operation. Made once for each thread: it is not what is measured.
struct Call {
    components: RuntimeComponents,
    config: ConfigBag,
    succeeded: InterceptorContext,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Client {
    fn new(
        config: RetryConfig,
        partition: RetryPartition,
        time: impl TimeSource + 'static,
    ) -> Self {
        Self {
            strategy: StandardRetryStrategy::new(),
            config,
            partition,
            bucket: TokenBucket::default(),
            components: components(time).build().expect("all components are there"),
        }
    }

    fn call(&self) -> Call {
        let mut layer = Layer::new("call");
        layer.store_put(self.config.clone());
        layer.store_put(self.partition.clone());
        layer.store_put(self.bucket.clone());
        layer.store_put(RequestAttempts::new(1));
        let mut succeeded = InterceptorContext::new(Input::doesnt_matter());
        succeeded.set_output_or_error(Ok(Output::doesnt_matter()));
        Call {
            components: self.components.clone(),
            config: ConfigBag::of_layers(vec![layer]),
            succeeded,
        }
    }

    /// A whole request that succeeds at once.
    #[inline]
    fn request(&self, call: &Call) -> bool {
        let Call {
            components,
            config,
            succeeded,
        } = call;
        let first = self
            .strategy
            .should_attempt_initial_request(components, config);
        if !matches!(first, Ok(ShouldAttempt::Yes)) {
            return false;
        }
        let again = self
            .strategy
            .should_attempt_retry(succeeded, components, config);
        matches!(again, Ok(ShouldAttempt::No))
    }
}

fn components(time: impl TimeSource + 'static) -> RuntimeComponentsBuilder {
    RuntimeComponentsBuilder::for_tests().with_time_source(Some(time))
}

/// A healthy request in standard mode.
pub(super) fn standard() -> Stage {
    let partition = RetryPartition::custom("benches").build();
    healthy(RetryConfig::standard(), partition)
}

/// A healthy request in adaptive mode, in the partition that a client has by default.
pub(super) fn adaptive() -> Stage {
    healthy(RetryConfig::adaptive(), RetryPartition::new("benches"))
}

/// As [`adaptive`], in a partition made for it, which is not looked up in a map.
pub(super) fn adaptive_custom() -> Stage {
    let partition = RetryPartition::custom("benches").build();
    healthy(RetryConfig::adaptive(), partition)
}

fn healthy(config: RetryConfig, partition: RetryPartition) -> Stage {
    let client = Client::new(config, partition, SystemTimeSource::new());
    stage(
        client,
        |client, _| client.call(),
        |client, call| client.request(call),
    )
}

/// A request in adaptive mode after a throttle, by a clock that costs nothing.
pub(super) fn engaged() -> Stage {
    let partition = RetryPartition::custom("benches")
        .client_rate_limiter(ClientRateLimiter::builder().build())
        .build();
    let client = Client::new(RetryConfig::adaptive(), partition, Told);
    let start = engaged::throttle_once(&Throttled::of(&client), engaged::ON_THE_CURVE);
    let time = SharedTime::new(start);
    stage(
        client,
        move |client, seat| (client.call(), time.at(seat)),
        |client, (call, time)| {
            tell(time.tick());
            client.request(call)
        },
    )
}

/// A client to which responses are reported.
struct Throttled<'a> {
    client: &'a Client,
    call: Call,
    failed: InterceptorContext,
    components: RuntimeComponents,
}

impl<'a> Throttled<'a> {
    fn of(client: &'a Client) -> Self {
        let mut failed = InterceptorContext::new(Input::doesnt_matter());
        failed.set_output_or_error(Err(OrchestratorError::other("slow down")));
        let components = components(Told).with_retry_classifier(AllThrottles);
        Self {
            client,
            call: client.call(),
            failed,
            components: components.build().expect("all components are there"),
        }
    }
}

impl Drive for Throttled<'_> {
    fn record(&self, now: u64, throttled: bool) {
        tell(now);
        let (strategy, call) = (&self.client.strategy, &self.call);
        let answer = if throttled {
            strategy.should_attempt_retry(&self.failed, &self.components, &call.config)
        } else {
            strategy.should_attempt_retry(&call.succeeded, &call.components, &call.config)
        };
        assert!(answer.is_ok(), "a strategy answers");
    }
}
