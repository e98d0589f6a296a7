//! What users are promised, in real time over sockets of loopback: HTTP and gRPC.

extern crate alloc;

mod support;

use alloc::sync::Arc;

use http::Request;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Bytes;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use kit::{
    OK, OVERLOADED, SECOND, Said, Server,
    promises::{Sends, Setup},
};
use paceline::{Adaptive, RetryStrategy, Standard};
use paceline_tower::{BoxError, HttpRequests, HttpResults, Refused, RetryLayer};
use tower::{Layer as _, ServiceExt as _};

type Page = Request<Empty<Bytes>>;

fn hyper() -> Client<HttpConnector, Empty<Bytes>> {
    Client::builder(TokioExecutor::new()).build_http()
}

fn page(url: &str) -> Page {
    Request::get(url).body(Empty::new()).expect("a request")
}

/// Sends a request over HTTP, and tells whether it was answered with 200.
fn reads(setup: &Setup) -> impl Sends + use<> {
    let url = setup.url.clone();
    let layer = RetryLayer::shared(setup.strategy.clone(), HttpResults::new());
    let layer = layer.replay(HttpRequests).scope(setup.scope);
    let service = setup.bounded(layer, RetryLayer::deadline).layer(hyper());
    move || {
        let send = service.clone().oneshot(page(&url));
        Box::pin(async move {
            let Ok(answer) = send.await else {
                return false;
            };
            answer.status() == 200 && answer.into_body().collect().await.is_ok()
        })
    }
}

kit::keep_promises! { client: reads }

#[cfg(feature = "grpc")]
mod grpc {
    use paceline_tower::{Buffered, GrpcResults};

    use super::*;

    /// A response without messages.
    const NO_MESSAGE: Said = Said::new(200).body("");
    const GRPC_OK: Said = NO_MESSAGE.header(("grpc-status", "0"));
    const EXHAUSTED: Said = NO_MESSAGE.header(("grpc-status", "8"));

    fn calls(setup: &Setup) -> impl Sends + use<> {
        let url = setup.url.clone();
        let layer = RetryLayer::shared(setup.strategy.clone(), GrpcResults::new());
        let layer = layer.replay(Buffered::up_to(1_024)).scope(setup.scope);
        let inner = Client::builder(TokioExecutor::new()).build_http();
        let service = setup.bounded(layer, RetryLayer::deadline).layer(inner);
        move || {
            let send = service.clone().oneshot(page(&url));
            Box::pin(async move {
                let Ok(answer) = send.await else {
                    return false;
                };
                let well = answer
                    .headers()
                    .get("grpc-status")
                    .is_some_and(|status| status == "0");
                well && answer.into_body().collect().await.is_ok()
            })
        }
    }

    kit::keep_promises! {
        client: calls,
        well: GRPC_OK,
        refusals: {
            a_service_that_is_exhausted_is_adapted_to: EXHAUSTED,
            a_service_that_pushes_back_is_adapted_to:
                EXHAUSTED.header(("grpc-retry-pushback-ms", "1000")),
        },
        slow: EXHAUSTED.header(("grpc-retry-pushback-ms", "30000")),
    }
}

#[tokio::test]
async fn an_attempt_that_is_cut_off_says_why() {
    let server = Server::with(&[OK.after(30 * SECOND)]).await;
    let strategy = Standard::builder().name("orders").build();
    let layer = RetryLayer::http(strategy.expect("in range")).deadline(SECOND / 10);
    let error: BoxError = layer
        .layer(hyper())
        .oneshot(page(&server.url))
        .await
        .unwrap_err();
    let refused = error.downcast_ref::<Refused>().expect("a refusal");
    assert_eq!(refused.name(), Some("orders"));
    assert_eq!(
        refused.to_string(),
        "orders: cut off: the deadline has passed"
    );
}

#[tokio::test]
async fn a_post_without_a_key_is_sent_once_to_a_503() {
    let server = Server::with(&[OVERLOADED]).await;
    let strategy = Arc::new(Adaptive::paced());
    let layer = RetryLayer::shared(strategy.clone(), HttpResults::new()).replay(HttpRequests);
    let post = Request::post(&server.url).body(Empty::<Bytes>::new());
    let answer = layer.layer(hyper()).oneshot(post.expect("a request")).await;
    assert_eq!(answer.expect("an answer").status(), 503);
    assert_eq!(strategy.snapshot().counts.granted, 0, "no retry");
    let now = strategy.clock().now();
    assert!(
        strategy.send_rate().snapshot(now).enabled,
        "it lowers the rate"
    );
}

#[test]
fn it_takes_one_line_over_http_and_two_over_grpc() {
    let readme = include_str!("../README.md");
    assert_eq!(kit::count_lines(readme), 1);
    let (_, grpc) = readme.split_once("## Over gRPC").expect("a heading");
    assert_eq!(kit::count_lines(grpc), 2);
    let (_, several) = readme.split_once("## Several limits").expect("a heading");
    assert_eq!(kit::count_lines(several), 4);
}
