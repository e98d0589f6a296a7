//! What users are promised, in real time over sockets of loopback.

#![allow(clippy::arithmetic_side_effects, reason = "small numbers of a test")]

extern crate alloc;

mod support;

use alloc::sync::Arc;
use core::time::Duration;

use paceline::{Adaptive, Scopes, Standard, law::PacedSettings};
use paceline_reqwest::{DeadlinePassed, Pacing};
use reqwest_middleware::{ClientWithMiddleware, Error};
use support::{Answer, OK, SECOND, Server, client, status};
use tokio::{task::JoinSet, time::Instant};

const OVERLOADED: Answer = Answer::Status(503, None);
const HINTED: Answer = Answer::Status(503, Some(("retry-after", "1")));
const SLOW_DOWN: Answer = Answer::Status(429, None);

fn fixed(rate: u32) -> PacedSettings {
    let settings = PacedSettings::fixed(rate, SECOND).expect("in range");
    let settings = settings.to_builder().burst(SECOND / 10);
    settings.build().expect("in range")
}

/// Scopes of 10 a second, and one that is free.
fn scopes() -> Scopes<Adaptive> {
    let template = Adaptive::builder().paced(fixed(10));
    let free = Adaptive::builder();
    let exceptions = move |key: &str| (key == "free").then(|| free.clone().build());
    let scopes = template.scopes().exceptions(exceptions).build();
    scopes.expect("in range")
}

/// A client whose requests have their path for a scope.
fn scoped(scopes: Scopes<Adaptive>) -> ClientWithMiddleware {
    let path = |request: &reqwest::Request| Some(request.url().path()[1..].to_owned());
    client(Pacing::new(scopes).scope_by(path))
}

/// Sends `count` requests at once, and returns how many were answered with 200 and how long it took.
async fn burst(client: &ClientWithMiddleware, url: String, count: u32) -> (u32, Duration) {
    let (begun, mut tasks) = (Instant::now(), JoinSet::new());
    for _ in 0..count {
        let request = client.get(&url);
        tasks.spawn(async move {
            request
                .send()
                .await
                .is_ok_and(|answer| answer.status() == 200)
        });
    }
    let answered = tasks.join_all().await;
    let well = answered.into_iter().filter(|well| *well).count();
    (u32::try_from(well).expect("few"), begun.elapsed())
}

#[tokio::test]
async fn a_limited_scope_is_limited_and_slows_no_other() {
    let server = Server::with(&[OK]).await;
    let client = scoped(scopes());
    let hot = burst(&client, format!("{}hot", server.url), 30);
    let free = burst(&client, format!("{}free", server.url), 30);
    let ((hot, took), (free, at_once)) = tokio::join!(hot, free);
    assert_eq!((hot, free), (30, 30));
    let expected = Duration::from_secs(2)..Duration::from_millis(3_500);
    assert!(expected.contains(&took), "{took:?}");
    assert!(at_once < SECOND, "{at_once:?}");
}

/// So many reads of each of 32 tasks from a service of 50 a second.
async fn bulk(refusal: Answer, reads: u32) -> u32 {
    let server = Server::limited(50.0, refusal).await;
    let client = client(Pacing::new(Adaptive::paced()));
    let mut tasks = JoinSet::new();
    for _ in 0..32 {
        let (client, url) = (client.clone(), server.url.clone());
        tasks.spawn(async move {
            let mut failed = 0;
            for _ in 0..reads {
                failed += u32::from(status(client.get(&url).send().await) != 200);
            }
            failed
        });
    }
    tasks.join_all().await.into_iter().sum()
}

#[tokio::test]
async fn a_service_that_says_429_is_adapted_to() {
    let failed = bulk(SLOW_DOWN, 16).await;
    assert!(failed <= 5, "{failed} of 512");
}

#[tokio::test]
async fn a_service_that_says_503_is_adapted_to() {
    let failed = bulk(OVERLOADED, 16).await;
    assert!(failed <= 5, "{failed} of 512");
}

#[tokio::test]
async fn a_service_that_says_503_and_when_is_adapted_to() {
    let failed = bulk(HINTED, 16).await;
    // Up to 9 were seen, more than the 1 % of the other refusals.
    assert!(failed <= 16, "{failed} of 512");
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
async fn a_deadline_ends_everything() {
    let two = Duration::from_secs(2);
    let in_time = |begun: Instant| {
        let took = begun.elapsed();
        assert!(took < Duration::from_millis(2_100), "{took:?}");
    };
    // An attempt under way.
    let server = Server::with(&[Answer::Slow(Duration::from_secs(30))]).await;
    let begun = Instant::now();
    let pacing = Pacing::new(Standard::new()).deadline(two);
    let Err(Error::Middleware(error)) = client(pacing).get(&server.url).send().await else {
        panic!("it was answered");
    };
    assert!(error.is::<DeadlinePassed>(), "{error}");
    assert!(begun.elapsed() >= two);
    in_time(begun);
    // A line: of 40 that ask for 10 a second some 20 are sent.
    let server = Server::with(&[OK]).await;
    let strategy = Adaptive::builder()
        .paced(fixed(10))
        .build()
        .expect("in range");
    let client = client(Pacing::new(strategy).deadline(two));
    let begun = Instant::now();
    let (sent, _) = burst(&client, server.url.clone(), 40).await;
    assert!((18..=22).contains(&sent), "{sent}");
    in_time(begun);
    // Backoffs: a service that is always broken, and asks for more time than there is.
    let server = Server::with(&[Answer::Status(503, Some(("retry-after", "3")))]).await;
    let begun = Instant::now();
    assert_eq!(status(client.get(&server.url).send().await), 503);
    in_time(begun);
}

#[tokio::test]
async fn an_hour_of_retry_after_stops_no_client() {
    let hour = Answer::Status(429, Some(("retry-after", "3600")));
    let server = Server::with(&[hour, OK]).await;
    let strategy = Arc::new(Adaptive::paced());
    let pacing = Pacing::shared(strategy.clone()).max_retry_after(SECOND);
    let client = client(pacing);
    let begun = Instant::now();
    assert_eq!(status(client.get(&server.url).send().await), 429);
    assert!(begun.elapsed() < SECOND, "it is not slept");
    assert_eq!(strategy.quota().available(), 500, "and not paid for");
    assert_eq!(status(client.get(&server.url).send().await), 200);
    let took = begun.elapsed();
    assert!(took < 4 * SECOND, "the rate pauses for the cap: {took:?}");
}

#[tokio::test]
async fn a_waiter_goes_early_when_the_rate_rises() {
    let server = Server::with(&[OK]).await;
    let slow = PacedSettings::fixed(1, 20 * SECOND).expect("in range");
    let strategy = Adaptive::builder().paced(slow).build().expect("in range");
    let strategy = Arc::new(strategy);
    let client = client(Pacing::shared(strategy.clone()));
    assert_eq!(status(client.get(&server.url).send().await), 200);
    let begun = Instant::now();
    let url = server.url.clone();
    let waiting = tokio::spawn(async move { status(client.get(&url).send().await) });
    tokio::time::sleep(SECOND / 5).await;
    let fast = PacedSettings::fixed(1_000, SECOND).expect("in range");
    strategy.set_paced(fast).expect("it can be changed");
    assert_eq!(waiting.await.expect("no panic"), 200);
    let took = begun.elapsed();
    assert!(took < SECOND / 2, "{took:?}");
}
