//! Everything at once, for clients that accept a runtime plugin.

use alloc::borrow::Cow;
use core::fmt;

use aws_smithy_runtime_api::{
    box_error::BoxError,
    client::{
        http::HttpClient,
        interceptors::context::InterceptorContext,
        retries::{RetryStrategy, ShouldAttempt},
        runtime_components::{RuntimeComponents, RuntimeComponentsBuilder},
        runtime_plugin::RuntimePlugin,
    },
};
use aws_smithy_types::config_bag::ConfigBag;

use crate::{
    Misconfigured, Pacing,
    interceptor::{Host, PacingInterceptor},
    operation::{Operation, Verdict},
    parts,
};

/// A runtime plugin with all that paceline needs in a client.
///
/// [`Pacing::plugin`](crate::Pacing::plugin) makes one.
///
/// # Examples
///
/// An operation without a model:
///
/// ```
/// use aws_smithy_runtime::client::orchestrator::operation::Operation;
/// use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
/// use paceline::Adaptive;
/// use paceline_aws::Pacing;
///
/// # use aws_smithy_http_client::Builder;
/// # use aws_smithy_runtime_api::client::behavior_version::BehaviorVersion;
/// let pacing = Pacing::new(Adaptive::paced());
/// let get = Operation::builder()
///     .service_name("weather")
///     .operation_name("GetForecast")
///     .behavior_version(BehaviorVersion::latest())
///     .endpoint_url("http://localhost:8080")
///     .no_auth()
///     .runtime_plugin(pacing.plugin(Builder::new().build_http()))
///     .serializer(|city: String| Ok(HttpRequest::get(format!("/{city}"))?))
///     .deserializer::<_, std::io::Error>(|response| Ok(response.status().as_u16()))
///     .build();
/// ```
pub struct PacingPlugin {
    components: RuntimeComponentsBuilder,
}

impl PacingPlugin {
    pub(crate) fn new(pacing: &Pacing, inner: impl HttpClient + 'static) -> Self {
        let components = RuntimeComponentsBuilder::new("paceline")
            .with_http_client(Some(pacing.http_client(inner)))
            .with_interceptor(PacingInterceptor::new(pacing.clone(), Host::Plugin))
            .with_retry_strategy(Some(Decided));
        Self { components }
    }
}

impl fmt::Debug for PacingPlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacingPlugin").finish_non_exhaustive()
    }
}

impl RuntimePlugin for PacingPlugin {
    fn runtime_components(
        &self,
        _current: &RuntimeComponentsBuilder,
    ) -> Cow<'_, RuntimeComponentsBuilder> {
        Cow::Borrowed(&self.components)
    }
}

/// The strategy that Smithy asks. It has no state, since the operation and its decision are in the
/// bag.
#[derive(Debug)]
struct Decided;

impl RetryStrategy for Decided {
    /// Always allows the attempt, also before a retry, and takes nothing. The HTTP client waits for
    /// the turn, where dropping the operation gives the place back.
    fn should_attempt_initial_request(
        &self,
        _components: &RuntimeComponents,
        bag: &ConfigBag,
    ) -> Result<ShouldAttempt, BoxError> {
        match bag.load::<Operation>() {
            Some(_) => {
                parts::answer(self);
                Ok(ShouldAttempt::Yes)
            }
            None => Err(Misconfigured::NoInterceptor.into()),
        }
    }

    fn should_attempt_retry(
        &self,
        _context: &InterceptorContext,
        _components: &RuntimeComponents,
        bag: &ConfigBag,
    ) -> Result<ShouldAttempt, BoxError> {
        match bag.load::<Operation>().map(Operation::verdict) {
            Some(Verdict::Retry { delay, .. }) if delay.is_zero() => Ok(ShouldAttempt::Yes),
            Some(Verdict::Retry { delay, .. }) => Ok(ShouldAttempt::YesAfterDelay(delay)),
            Some(Verdict::None | Verdict::Stop) => Ok(ShouldAttempt::No),
            None => Err(Misconfigured::NoInterceptor.into()),
        }
    }
}
