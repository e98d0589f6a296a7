//! The lines of the guide on loopback: a service that throttles the first request of each client.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioIo},
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Config,
    client::{Body, ClientBuilder},
};
use octocrab::{AuthState, OctoBody, OctocrabBuilder, service::middleware::base_uri::BaseUriLayer};
use paceline::{Adaptive, Idempotency, RetryStrategy};
use paceline_tower::{Replay, RetryLayer};
use tokio::net::TcpListener;
use tower::buffer::BufferLayer;

#[derive(Clone, Debug)]
struct KubeRequests;

impl Replay<Request<Body>> for KubeRequests {
    type Sent = Request<Body>;
    fn sendable(&self, request: Request<Body>) -> Request<Body> {
        request
    }
    fn copy(&self, request: &Request<Body>) -> Option<Request<Body>> {
        let mut copy = Request::new(request.body().try_clone()?);
        *copy.method_mut() = request.method().clone();
        *copy.uri_mut() = request.uri().clone();
        *copy.headers_mut() = request.headers().clone();
        *copy.extensions_mut() = request.extensions().clone();
        Some(copy)
    }
    fn idempotency(&self, request: &Request<Body>) -> Idempotency {
        Idempotency::of_request(request)
    }
}

/// Answers `body`, but for the first request, which is throttled. Returns its address and how many
/// requests came.
async fn service(body: &'static str) -> (Uri, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let uri = format!("http://{}", listener.local_addr().expect("an address"));
    let count = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let count = Arc::clone(&count);
            tokio::spawn(async move {
                let serve = service_fn(|_: Request<Incoming>| {
                    // Relaxed: a count, read after the responses have come.
                    let is_first = count.fetch_add(1, Relaxed) == 0;
                    let status = if is_first { 429 } else { 200 };
                    let answer = Response::builder().status(status);
                    let answer = answer.header("content-type", "application/json");
                    let text = if is_first {
                        "{\"message\":\"slow down\"}"
                    } else {
                        body
                    };
                    let answer = answer
                        .body(Full::new(Bytes::from(text)))
                        .expect("a response");
                    async move { Ok::<_, Infallible>(answer) }
                });
                let _closed = http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), serve)
                    .await;
            });
        }
    });
    (uri.parse().expect("a URI"), seen)
}

#[tokio::test]
async fn octocrab_sends_again_what_is_throttled() {
    let (uri, seen) = service("{\"ok\":true}").await;
    let strategy = Arc::new(Adaptive::paced());
    let client = Client::builder(TokioExecutor::new()).build_http::<OctoBody>();
    let octocrab = OctocrabBuilder::new_empty()
        .with_service(client)
        .with_layer(&RetryLayer::http(Arc::clone(&strategy)))
        .with_layer(&BaseUriLayer::new(uri))
        .with_auth(AuthState::None)
        .build()
        .expect("infallible");
    let answer: serde_json::Value = octocrab.get("/x", None::<&()>).await.expect("an answer");
    assert_eq!(answer["ok"], true);
    assert_eq!(seen.load(Relaxed), 2);
    assert_eq!(strategy.snapshot().counts.throttled, 1);
}

#[tokio::test]
async fn kube_sends_again_what_is_throttled() {
    let (uri, seen) = service("{\"metadata\":{\"name\":\"settings\"}}").await;
    let strategy = Arc::new(Adaptive::paced());
    let retries = RetryLayer::http(Arc::clone(&strategy)).replay(KubeRequests);
    let mut config = Config::new(uri);
    config.default_retry = false;
    let client = ClientBuilder::try_from(config)
        .expect("a configuration")
        .with_layer(&BufferLayer::new(1_024))
        .with_layer(&retries)
        .build();
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let map = maps.get("settings").await.expect("an answer");
    assert_eq!(map.metadata.name.as_deref(), Some("settings"));
    assert_eq!(seen.load(Relaxed), 2);
    assert_eq!(strategy.snapshot().counts.throttled, 1);
}
