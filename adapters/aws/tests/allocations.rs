//! What a healthy request costs in allocations, beside the same client without paceline.

mod support;

use aws_sdk_s3::{Client, config::Builder};
use aws_smithy_async::rt::sleep::TokioSleep;
use aws_smithy_runtime_api::client::{
    http::{
        HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
    },
    orchestrator::{HttpRequest, HttpResponse},
};
use aws_smithy_types::body::SdkBody;
use paceline::{Adaptive, Standard};
use paceline_aws::Pacing;

/// Answers at once that all is well.
#[derive(Clone, Debug)]
struct Well(SharedHttpConnector);

#[derive(Debug)]
struct Connector;

impl HttpConnector for Connector {
    fn call(&self, _request: HttpRequest) -> HttpConnectorFuture {
        let status = 200_u16.try_into().expect("a status");
        HttpConnectorFuture::ready(Ok(HttpResponse::new(status, SdkBody::empty())))
    }
}

impl Well {
    fn client() -> SharedHttpClient {
        let well = Self(SharedHttpConnector::new(Connector));
        http_client_fn(move |_settings, _components| well.0.clone())
    }
}

fn config() -> Builder {
    support::config(TokioSleep::new())
        .endpoint_url("http://localhost")
        .http_client(Well::client())
}

/// Counts the allocations of one request, once everything is warm.
fn allocations(config: Builder) -> u64 {
    let client = Client::from_conf(config.build());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    let head = || {
        let head = client.head_object().bucket("b").key("k").send();
        runtime.block_on(head).expect("all is well");
    };
    for _ in 0..3 {
        head();
    }
    allocation_counter::measure(head).count_total
}

#[test]
fn a_healthy_request_allocates_what_the_host_forces_and_nothing_else() {
    let bare = allocations(config());
    for pacing in [Pacing::new(Standard::new()), Pacing::new(Adaptive::paced())] {
        let paced = config()
            .http_client(pacing.http_client(Well::client()))
            .interceptor(pacing.interceptor())
            .retry_classifier(pacing.classifier());
        // The bag boxes what is put into it, twice; a connector is shared, and made for each
        // attempt.
        assert_eq!(
            allocations(paced).checked_sub(bare),
            Some(3),
            "{bare} without"
        );
    }
}
