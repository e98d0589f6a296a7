//! The part that follows each operation. It begins the operation, takes its turns, and asks the
//! strategy after each attempt.

use core::{fmt, time::Duration};

use aws_smithy_runtime::client::retries::TokenBucket;
use aws_smithy_runtime_api::{
    box_error::BoxError,
    client::{
        interceptors::{
            Intercept,
            context::{
                BeforeSerializationInterceptorContextRef, BeforeTransmitInterceptorContextMut,
                FinalizerInterceptorContextMut, FinalizerInterceptorContextRef,
            },
        },
        orchestrator::OrchestratorError,
        runtime_components::RuntimeComponents,
        stalled_stream_protection::StalledStreamProtectionConfig,
    },
};
use aws_smithy_types::{
    config_bag::ConfigBag,
    retry::{RetryConfig, RetryMode},
    timeout::TimeoutConfig,
};

use crate::{
    Misconfigured, Pacing, batch,
    classifier::{Decision, leave},
    failure,
    limit::{self, Limit},
    operation::{Bounds, Operation, Verdict},
    parts,
};

/// The least grace period of the protection against stalled uploads, for a request that waits for
/// its turn.
///
/// While the request waits its body is not read, which looks like a stalled upload. A line should
/// never be as long as a minute.
const FORGIVEN: Duration = Duration::from_mins(1);

/// The part that follows each operation of a client.
///
/// [`Pacing::interceptor`](crate::Pacing::interceptor) makes one.
pub struct PacingInterceptor {
    pacing: Pacing,
    host: Host,
    /// The SDK's quota once the decision has been made. It costs nothing.
    unlimited: TokenBucket,
}

/// The strategy that carries out the decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    /// The SDK's own strategy, which reads the decisions from its configuration and a classifier.
    Sdk,
    /// This crate's strategy, which reads the decisions from the bag.
    Plugin,
}

impl fmt::Debug for PacingInterceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacingInterceptor")
            .field("pacing", &self.pacing)
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}

impl PacingInterceptor {
    pub(crate) const NAME: &str = "paceline";

    pub(crate) fn new(pacing: Pacing, host: Host) -> Self {
        let unlimited = TokenBucket::unlimited();
        Self {
            pacing,
            host,
            unlimited,
        }
    }

    /// Returns the operation in `bag`, if this interceptor began it.
    fn operation<'a>(&self, bag: &'a mut ConfigBag) -> Option<&'a mut Operation> {
        Operation::of(bag).filter(|operation| operation.begun_by() == parts::address(self))
    }

    /// Makes the SDK's own strategy carry `verdict` out.
    fn steer(
        &self,
        verdict: Verdict,
        context: &FinalizerInterceptorContextRef<'_>,
        bag: &mut ConfigBag,
    ) {
        let decision = match verdict {
            Verdict::Retry {
                delay,
                max_attempts,
            } => {
                let config = standard(bag, max_attempts).with_max_backoff(Duration::MAX);
                let state = bag.interceptor_state();
                state.store_put(config).store_put(self.unlimited.clone());
                Decision::Retry(delay)
            }
            Verdict::None | Verdict::Stop => Decision::Forbid,
        };
        leave(context.inner(), decision);
    }
}

/// Returns the SDK's standard mode with the user's reconnect mode.
///
/// The mode has no retry specification. With the newest specification the SDK would cut the decided
/// delay to five seconds.
fn standard(bag: &ConfigBag, max_attempts: u32) -> RetryConfig {
    let config = RetryConfig::standard().with_max_attempts(max_attempts);
    match bag.load::<RetryConfig>() {
        Some(users) => config.with_reconnect_mode(users.reconnect_mode()),
        None => config,
    }
}

/// Switches the SDK's own limiter off, and sets the most attempts in its header.
///
/// Does nothing if the client's configuration agrees already.
fn quieten(bag: &mut ConfigBag, max_attempts: u32) {
    let agrees = bag.load::<RetryConfig>().is_some_and(|config| {
        config.mode() == RetryMode::Standard && config.max_attempts() == max_attempts
    });
    if !agrees {
        let config = standard(bag, max_attempts);
        bag.interceptor_state().store_put(config);
    }
}

/// Returns `true` if the client or the operation is configured to send once.
fn is_disabled(bag: &ConfigBag) -> bool {
    let config = bag.load::<RetryConfig>();
    config.is_some_and(|config| config.max_attempts() <= 1)
}

/// Extends the grace period of a request that is about to wait.
fn forgive_waiting(bag: &mut ConfigBag) {
    let Some(config) = bag.load::<StalledStreamProtectionConfig>() else {
        return;
    };
    if config.upload_enabled() {
        let forgiving = StalledStreamProtectionConfig::enabled()
            .upload_enabled(true)
            .download_enabled(config.download_enabled())
            .grace_period(config.grace_period().max(FORGIVEN))
            .build();
        bag.interceptor_state().store_put(forgiving);
    }
}

impl Intercept for PacingInterceptor {
    fn name(&self) -> &'static str {
        parts::answer(self);
        Self::NAME
    }

    /// Counts the items of a batch, since the serialized request does not show them.
    fn read_before_serialization(
        &self,
        context: &BeforeSerializationInterceptorContextRef<'_>,
        components: &RuntimeComponents,
        bag: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let items = batch::items(self.pacing.batches(), context.input());
        if let Some(items) = items.filter(|_| parts::is_last(self, components)) {
            bag.interceptor_state().store_put(items);
        }
        Ok(())
    }

    fn modify_before_retry_loop(
        &self,
        context: &mut BeforeTransmitInterceptorContextMut<'_>,
        components: &RuntimeComponents,
        bag: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if !parts::is_last(self, components) {
            return Ok(());
        }
        let body = context.request().body();
        let operation_timeout = bag
            .load::<TimeoutConfig>()
            .and_then(TimeoutConfig::operation_timeout);
        // Other clients of Smithy have retries disabled by default.
        let once = self.host == Host::Sdk && is_disabled(bag);
        let bounds = Bounds {
            items: bag.load::<batch::Items>().map_or(1, |items| items.0),
            repeatable: !once && (!body.is_streaming() || body.try_clone().is_some()),
            span: operation_timeout,
            attempt: Limit::take(bag),
        };
        let operation = Operation::begin(&self.pacing, bounds, parts::address(self));
        if self.host == Host::Sdk && !once {
            quieten(bag, operation.max_attempts());
        }
        bag.interceptor_state().store_put(operation);
        Ok(parts::complete(self.host, components, bag)?)
    }

    fn modify_before_transmit(
        &self,
        context: &mut BeforeTransmitInterceptorContextMut<'_>,
        _components: &RuntimeComponents,
        bag: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let presigned = context.request().uri().contains("X-Amz-Signature=");
        let Some(operation) = self.operation(bag).filter(|_| !presigned) else {
            return Ok(()); // a request that is only signed is sent by another client
        };
        let request = context.request_mut();
        if let Some(limit) = operation.limit() {
            request.add_extension(limit.of_request());
        }
        if let Some(turn) = operation.take_turn(&self.pacing)? {
            request.add_extension(turn);
            forgive_waiting(bag);
        }
        Ok(())
    }

    /// Turns a time limit that ended an attempt into the SDK's own timeout error.
    fn modify_before_attempt_completion(
        &self,
        context: &mut FinalizerInterceptorContextMut<'_>,
        _components: &RuntimeComponents,
        _bag: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if let Some(Err(error)) = context.output_or_error_mut()
            && let Some(late) = limit::behind(error)
        {
            *error = OrchestratorError::timeout(late);
        }
        Ok(())
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        components: &RuntimeComponents,
        bag: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let Some(operation) = self.operation(bag) else {
            return Ok(());
        };
        let failure =
            failure::of_attempt(context.inner(), components, self.pacing.meaning_of_503());
        let refused = match failure {
            None => batch::failure(self.pacing.batches(), context.inner(), operation.items()),
            Some(_) => failure,
        };
        let (verdict, overtook) = operation.finish(refused.as_ref());
        if overtook && context.response().is_some() {
            return Err(Misconfigured::NoHttpClient.into());
        }
        if self.host == Host::Sdk && failure.is_some() {
            self.steer(verdict, context, bag);
        }
        Ok(())
    }
}
