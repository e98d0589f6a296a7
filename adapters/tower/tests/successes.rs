//! Refusals inside of successes: what is sent again, and what the send rate hears.

extern crate alloc;

use alloc::sync::Arc;
use core::{convert::Infallible, future::ready};

use http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body_util::{BodyExt as _, Collected, Full};
use hyper::body::{Body, Bytes, Incoming};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use kit::{
    BULK_IN_PART, GRAPHQL_OK, GRAPHQL_THROTTLED, Limited, OK, SLOW_DOWN, Said, Server, standard,
};
use paceline::{
    Adaptive, RetrySafety, Standard,
    classify::{BodyRefusals, RefusalClassifier},
    law::{DeclaredSettings, Dimension},
    operation::Stop,
};
use paceline_tower::{
    BodyReader, Classify as _, HttpRequests, HttpResults, ReadBodies, Replayed, RetryLayer,
};
use tokio::task::JoinSet;
use tower::{BoxError, Layer as _, ServiceExt as _, service_fn};

type Hyper = Client<HttpConnector, Full<Bytes>>;

fn reader<C: Clone>(classifier: C) -> BodyReader<Hyper, C> {
    let hyper = Client::builder(TokioExecutor::new()).build_http();
    ReadBodies::new(classifier).layer(hyper)
}

fn post(url: &str) -> Request<Full<Bytes>> {
    let request = Request::post(url).body("{shop{name}}".into());
    request.expect("a request")
}

async fn text(answer: Result<Response<Replayed<Incoming>>, BoxError>) -> Bytes {
    let body = answer.expect("an answer").into_body().collect().await;
    body.expect("a body").to_bytes()
}

#[tokio::test]
async fn four_hundred_queries_at_fifty_a_second_are_all_done() {
    let limited = Arc::new(Limited::new(50));
    let stub = limited.clone();
    let server = Server::replying(move |_, _| stub.graphql().reply()).await;
    let service = RetryLayer::bulk().layer(reader(BodyRefusals::GraphQl));
    let mut tasks = JoinSet::new();
    for _ in 0..4 {
        let (service, url) = (service.clone(), server.url.clone());
        tasks.spawn(async move {
            for _ in 0..100 {
                let answer = service.clone().oneshot(post(&url)).await;
                assert_eq!(text(answer).await, GRAPHQL_OK);
            }
        });
    }
    tasks.join_all().await;
    let (requests, refused) = (server.requests(), limited.refused());
    assert_eq!(requests, 400 + refused, "each was done once");
    assert!(20 * refused <= requests, "{refused} of {requests}");
}

#[tokio::test]
async fn a_query_that_was_refused_is_sent_again_and_the_answer_is_whole() {
    let server = Server::with(&[OK.body(GRAPHQL_THROTTLED), OK.body(GRAPHQL_OK)]).await;
    let strategy: Standard = standard().build().expect("the settings are in range");
    let service = RetryLayer::http(strategy).layer(reader(BodyRefusals::GraphQl));
    let answer = service.oneshot(post(&server.url)).await;
    assert_eq!(text(answer).await, GRAPHQL_OK);
    assert_eq!(server.requests(), 2);
}

#[tokio::test]
async fn a_batch_that_was_refused_in_part_is_recorded_and_handed_on() {
    let server = Server::with(&[OK.body(BULK_IN_PART)]).await;
    let strategy = Arc::new(Adaptive::paced());
    let layer = RetryLayer::shared(strategy.clone(), HttpResults::new()).replay(HttpRequests);
    let service = layer.layer(reader(BodyRefusals::ElasticsearchBulk));
    let answer = service.oneshot(post(&server.url)).await;
    let stop = answer.as_ref().expect("an answer").extensions();
    assert!(stop.get::<Stop>().is_some(), "why it ended");
    let body = text(answer).await;
    assert_eq!((&*body, server.requests()), (BULK_IN_PART.as_bytes(), 1));
    assert!(strategy.send_rate().is_limiting(), "the rate heard of it");
}

#[tokio::test]
async fn what_the_classifier_does_not_know_the_table_decides() {
    let server = Server::with(&[SLOW_DOWN, OK.body(GRAPHQL_OK)]).await;
    let strategy: Standard = standard().build().expect("the settings are in range");
    let service = RetryLayer::http(strategy).layer(reader(BodyRefusals::GraphQl));
    let answer = service.oneshot(post(&server.url)).await;
    assert_eq!(text(answer).await, GRAPHQL_OK);
}

#[tokio::test]
async fn the_limit_in_a_body_is_heard() {
    const LEFT: &str = r#"{"data":{},"extensions":{"cost":{"requestedQueryCost":9,"actualQueryCost":7,
        "throttleStatus":{"maximumAvailable":1000,"currentlyAvailable":0,"restoreRate":50}}}}"#;
    let server = Server::with(&[OK.body(LEFT)]).await;
    let points = DeclaredSettings::new().dimension(Dimension::Tokens);
    let strategy = Adaptive::builder().declared(points).build();
    let strategy = Arc::new(strategy.expect("the settings are in range"));
    let layer = RetryLayer::shared(strategy.clone(), HttpResults::new()).replay(HttpRequests);
    let service = layer.layer(reader(BodyRefusals::GraphQl));
    let answer = service.oneshot(post(&server.url)).await;
    assert_eq!(text(answer).await, LEFT);
    let rate = strategy.send_rate().snapshot(strategy.clock().now());
    let limit = rate.declared.expect("a limit");
    assert_eq!((limit.dimension, limit.limit), (Dimension::Tokens, 1_000));
}

#[tokio::test]
async fn the_body_of_a_refusal_counts_too() {
    let spent = Said::new(429).body(r#"{"error": {"code": "insufficient_quota"}}"#);
    let server = Server::with(&[spent]).await;
    let both = (BodyRefusals::GraphQl, RefusalClassifier::new());
    let answer = reader(both).oneshot(post(&server.url));
    let answer = answer.await.expect("an answer");
    let read: Result<_, &BoxError> = Ok(&answer);
    let failure = HttpResults::new().classify(read).expect("a refusal");
    assert_eq!(failure.retry_safety(), RetrySafety::No);
}

/// Returns what a caller gets of a body that `ReadBodies` has looked at.
async fn read<B>(body: B) -> Result<Collected<Bytes>, B::Error>
where
    B: Body<Data = Bytes, Error: Send> + Send + Unpin + 'static,
{
    let mut body = Some(body);
    let inner = service_fn(move |()| {
        ready(Ok::<_, Infallible>(Response::new(
            body.take().expect("one request"),
        )))
    });
    let answer = ReadBodies::new(BodyRefusals::Slack)
        .layer(inner)
        .oneshot(())
        .await;
    let Ok(answer) = answer;
    answer.into_body().collect().await
}

#[tokio::test]
async fn a_body_is_handed_on_with_all_that_was_read_of_it() {
    for length in [0, 5, 65_536, 65_537, 200_000] {
        let trailers = HeaderMap::from_iter([(header::ETAG, HeaderValue::from_static("x"))]);
        let whole = Full::new(Bytes::from(vec![b' '; length]));
        let body = whole.with_trailers(ready(Some(Ok(trailers.clone()))));
        let read = read(Box::pin(body)).await.expect("a body");
        assert_eq!(read.trailers(), Some(&trailers));
        assert_eq!(read.to_bytes().len(), length);
        let fails = http_body_util::Limited::new(Full::new(Bytes::from(vec![b' '; length])), 4);
        assert_eq!(self::read(fails).await.is_err(), length > 4);
    }
}
