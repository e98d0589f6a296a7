//! What users are promised, in real time over sockets of loopback.

extern crate alloc;

mod support;

use alloc::sync::Arc;

use kit::{
    BROKEN, OK, OVERLOADED, SECOND, SLOW_DOWN, Server,
    promises::{BODY_DEADLINE, Sends, Setup},
    standard,
};
use paceline::{Adaptive, Standard, law::PacedSettings, operation::Stop};
use paceline_reqwest::{DeadlinePassed, Pacing};
use reqwest_middleware::Error;
use support::{client, status};
use tokio::time::Instant;

/// Sends requests, and tells whether they were answered with 200.
fn reads(setup: &Setup) -> impl Sends + use<> {
    let pacing = Pacing::shared(setup.strategy.clone());
    let (url, scope) = (setup.url.clone(), setup.scope);
    let pacing = pacing.scope_by(move |_| Some(scope.to_owned()));
    let client = client(setup.bounded(pacing, Pacing::deadline));
    move || {
        let request = client.get(&url);
        Box::pin(async move {
            let Ok(answer) = request.send().await else {
                return false;
            };
            answer.status() == 200 && answer.bytes().await.is_ok()
        })
    }
}

kit::keep_promises! { client: reads }

#[tokio::test]
async fn an_attempt_that_is_cut_off_says_why() {
    let server = Server::with(&[OK.after(30 * SECOND)]).await;
    let strategy = Standard::builder().name("orders").build();
    let pacing = Pacing::new(strategy.expect("in range")).deadline(SECOND / 10);
    let Err(Error::Middleware(error)) = client(pacing).get(&server.url).send().await else {
        panic!("it was answered");
    };
    let passed = error.downcast_ref::<DeadlinePassed>().expect("its own");
    assert_eq!(passed.name(), Some("orders"));
    let shown = "orders: the request was cut off: its deadline has passed";
    assert_eq!(passed.to_string(), shown);
}

#[tokio::test]
async fn a_refused_turn_of_a_retry_returns_the_answer() {
    let server = Server::with(&[BROKEN]).await;
    let one_a_minute = PacedSettings::fixed(1, 60 * SECOND).expect("in range");
    let strategy = Adaptive::builder().paced(one_a_minute).build();
    let pacing = Pacing::new(strategy.expect("in range")).deadline(20 * SECOND);
    let answer = client(pacing).get(&server.url).send().await;
    let answer = answer.expect("the answer that there was");
    assert_eq!(answer.status(), 500);
    let stop = answer.extensions().get::<Stop>().expect("a stop");
    assert_eq!((stop.attempts(), server.requests()), (1, 1), "{stop}");
}

#[tokio::test]
async fn a_post_without_a_key_is_sent_once_to_a_503() {
    let server = Server::with(&[OVERLOADED, OK]).await;
    let strategy = Arc::new(Adaptive::paced());
    let client = client(Pacing::shared(strategy.clone()));
    assert_eq!(status(client.post(&server.url).send().await), 503);
    assert_eq!(server.requests(), 1);
    let now = strategy.clock().now();
    assert!(
        strategy.send_rate().snapshot(now).enabled,
        "but it lowers the rate"
    );
    let request = client.post(&server.url).header("idempotency-key", "1");
    assert_eq!(status(request.send().await), 200);
}

#[tokio::test]
async fn an_hour_of_retry_after_stops_no_client() {
    let hour = SLOW_DOWN.header(("retry-after", "3600"));
    let server = Server::with(&[hour, OK]).await;
    let strategy = Arc::new(Adaptive::paced());
    let pacing = Pacing::shared(strategy.clone()).max_retry_after(SECOND);
    let client = client(pacing);
    let begun = Instant::now();
    assert_eq!(status(client.get(&server.url).send().await), 429);
    assert_eq!(strategy.quota().available(), 500, "it is not paid for");
    assert_eq!(status(client.get(&server.url).send().await), 200);
    let took = begun.elapsed();
    assert!(
        (SECOND..60 * SECOND).contains(&took),
        "neither waits for an hour: {took:?}"
    );
}

#[test]
fn it_takes_one_line() {
    assert_eq!(kit::count_lines(include_str!("../README.md")), 1);
}

#[test]
fn requests_and_tokens_settled_by_the_body_take_six_lines() {
    let readme = include_str!("../README.md");
    let (_, several) = readme.split_once("## Several limits").expect("a heading");
    assert_eq!(kit::count_lines(several), 6);
}

#[tokio::test]
async fn a_hostile_body_is_bounded() {
    kit::promises::a_hostile_body_is_bounded(|url| async move {
        let pacing = Pacing::new(standard().build().expect("in range"));
        let client = client(pacing.deadline(BODY_DEADLINE));
        let answer = client.get(url).send().await.expect("the answer");
        answer.status().to_string()
    })
    .await;
}
