//! The HTTP client in which requests wait for their turn.

use core::fmt;

use aws_smithy_async::rt::sleep::SharedAsyncSleep;
use aws_smithy_runtime::client::defaults::default_http_client_plugin_v2;
use aws_smithy_runtime_api::{
    box_error::BoxError,
    client::{
        behavior_version::BehaviorVersion,
        connector_metadata::ConnectorMetadata,
        http::{
            HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings,
            SharedHttpClient, SharedHttpConnector,
        },
        interceptors::Intercept as _,
        orchestrator::HttpRequest,
        result::ConnectorError,
        retries::classifiers::ClassifyRetry as _,
        runtime_components::{RuntimeComponents, RuntimeComponentsBuilder},
        runtime_plugin::RuntimePlugin,
    },
};
use aws_smithy_types::config_bag::ConfigBag;

use crate::{
    Misconfigured, classifier::PacingClassifier, interceptor::PacingInterceptor, limit::Limited,
    parts, turn::Awaited,
};

/// An HTTP client that makes a request wait for its turn, and leaves everything else to the inner
/// client.
///
/// [`Pacing::http_client`](crate::Pacing::http_client) makes one.
#[derive(Clone)]
pub struct PacedHttpClient {
    /// `None` if the SDK was built without an HTTP client.
    inner: Option<SharedHttpClient>,
}

/// Wraps the client that the SDK's own default plugin would install.
pub(crate) fn default_http_client() -> PacedHttpClient {
    let plugin = default_http_client_plugin_v2(BehaviorVersion::latest());
    let nothing = RuntimeComponentsBuilder::new("paceline");
    let inner = plugin.and_then(|plugin| plugin.runtime_components(&nothing).http_client());
    PacedHttpClient { inner }
}

impl PacedHttpClient {
    pub(crate) fn new(inner: impl HttpClient + 'static) -> Self {
        let inner = Some(SharedHttpClient::new(inner));
        Self { inner }
    }
}

/// Leaves out the inner client, which prints all of its TLS settings.
impl fmt::Debug for PacedHttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacedHttpClient").finish_non_exhaustive()
    }
}

impl HttpClient for PacedHttpClient {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(PacedConnector {
            inner: self
                .inner
                .as_ref()
                .map(|inner| inner.http_connector(settings, components)),
            sleep: components.sleep_impl(),
        })
    }

    fn validate_base_client_config(
        &self,
        components: &RuntimeComponentsBuilder,
        config: &ConfigBag,
    ) -> Result<(), BoxError> {
        self.inner.as_ref().map_or(Ok(()), |inner| {
            inner.validate_base_client_config(components, config)
        })
    }

    fn validate_final_config(
        &self,
        components: &RuntimeComponents,
        config: &ConfigBag,
    ) -> Result<(), BoxError> {
        let decides = |name| components.interceptors().any(|part| part.name() == name);
        let obeys = |name| {
            components
                .retry_classifiers()
                .any(|part| part.name() == name)
        };
        if obeys(PacingClassifier::NAME) && !decides(PacingInterceptor::NAME) {
            return Err(Misconfigured::NoInterceptor.into());
        }
        let inner = self.inner.as_ref().ok_or(Misconfigured::NoDefaultClient)?;
        inner.validate_final_config(components, config)
    }

    fn connector_metadata(&self) -> Option<ConnectorMetadata> {
        parts::answer(self);
        self.inner.as_ref()?.connector_metadata()
    }
}

#[derive(Debug)]
struct PacedConnector {
    inner: Option<SharedHttpConnector>,
    sleep: Option<SharedAsyncSleep>,
}

impl HttpConnector for PacedConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let Some(inner) = &self.inner else {
            let none = Misconfigured::NoDefaultClient.into();
            return HttpConnectorFuture::ready(Err(ConnectorError::other(none, None)));
        };
        let turn = request.extension::<Awaited>().cloned();
        let limit = request.extension::<Limited>().cloned();
        let limit = limit.zip(self.sleep.clone()); // without one the SDK limits nothing
        if turn.is_none() && limit.is_none() {
            return inner.call(request);
        }
        let (inner, sleep) = (inner.clone(), self.sleep.clone());
        HttpConnectorFuture::new(async move {
            if let Some(turn) = turn {
                turn.wait(sleep).await?;
            }
            match limit {
                Some((limit, sleep)) => limit.apply(inner.call(request), &sleep).await,
                None => inner.call(request).await,
            }
        })
    }
}
