//! Refusals inside of successes: what is sent again, and what the send rate hears.

mod support;

extern crate alloc;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use kit::{BULK_IN_PART, GRAPHQL_OK, GRAPHQL_THROTTLED, Limited, OK, Server, standard};
use paceline::{
    Adaptive, RetryStrategy as _,
    classify::{BodyRefusals, RefusalClassifier, graphql_cost, graphql_limits},
    law::{DeclaredSettings, Dimension},
    operation::Stop,
};
use paceline_reqwest::Pacing;
use support::client;
use tokio::task::JoinSet;

/// The classifier of the table, and of refusals in the bodies of successes before it.
const fn and_refusals(of: BodyRefusals) -> (BodyRefusals, RefusalClassifier) {
    (of, RefusalClassifier::new())
}

#[tokio::test]
async fn four_hundred_queries_at_fifty_a_second_are_all_done() {
    let limited = Arc::new(Limited::new(50));
    let stub = limited.clone();
    let server = Server::replying(move |_, _| stub.graphql().reply()).await;
    let client = client(Pacing::bulk().classifier(and_refusals(BodyRefusals::GraphQl)));
    let mut tasks = JoinSet::new();
    for _ in 0..4 {
        let (client, url) = (client.clone(), server.url.clone());
        tasks.spawn(async move {
            for _ in 0..100 {
                let answer = client.post(&url).body("{shop{name}}").send().await;
                let text = answer.expect("an answer").text().await;
                assert_eq!(text.expect("a body"), GRAPHQL_OK);
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
    let strategy = standard().build().expect("the settings are in range");
    let pacing = Pacing::new(strategy).classifier(and_refusals(BodyRefusals::GraphQl));
    let answer = client(pacing).post(&server.url).send().await;
    let text = answer.expect("an answer").text().await.expect("a body");
    assert_eq!((&*text, server.requests()), (GRAPHQL_OK, 2));
}

#[tokio::test]
async fn a_batch_that_was_refused_in_part_is_recorded_and_handed_on() {
    let server = Server::with(&[OK.body(BULK_IN_PART)]).await;
    let strategy = Arc::new(Adaptive::paced());
    let pacing = Pacing::shared(strategy.clone());
    let pacing = pacing.classifier(and_refusals(BodyRefusals::ElasticsearchBulk));
    let answer = client(pacing).post(&server.url).send().await;
    let answer = answer.expect("an answer");
    assert!(answer.extensions().get::<Stop>().is_some(), "why it ended");
    let body = answer.bytes().await.expect("a body");
    assert_eq!((&*body, server.requests()), (BULK_IN_PART.as_bytes(), 1));
    let read = BodyRefusals::ElasticsearchBulk.read(&body).expect("JSON");
    assert_eq!((read.refused, read.items, read.again), (1, 3, vec![1]));
    assert!(strategy.send_rate().is_limiting(), "the rate heard of it");
}

#[tokio::test]
async fn the_limit_and_the_cost_in_a_body_are_heard() {
    const LEFT: &str = r#"{"data":{},"extensions":{"cost":{"requestedQueryCost":9,"actualQueryCost":7,
        "throttleStatus":{"maximumAvailable":1000,"currentlyAvailable":0,"restoreRate":50}}}}"#;
    let server = Server::with(&[OK.body(LEFT)]).await;
    let points = DeclaredSettings::new().dimension(Dimension::Tokens);
    let strategy = Adaptive::builder().declared(points).build();
    let strategy = Arc::new(strategy.expect("the settings are in range"));
    let cost = Arc::new(AtomicU32::new(0));
    let heard = cost.clone();
    let pacing = Pacing::shared(strategy.clone())
        .classifier(and_refusals(BodyRefusals::GraphQl))
        .limits_by(graphql_limits)
        .costs_by(move |answer| {
            heard.store(graphql_cost(answer)?, Relaxed);
            None
        });
    let answer = client(pacing).post(&server.url).send().await;
    assert_eq!(answer.expect("an answer").status(), 200);
    assert_eq!(cost.load(Relaxed), 7);
    let rate = strategy.send_rate().snapshot(strategy.clock().now());
    let limit = rate.declared.expect("a limit");
    assert_eq!((limit.dimension, limit.limit), (Dimension::Tokens, 1_000));
}
