//! The real SDK client against services of 50 a second, in real time over sockets of loopback.

#![allow(clippy::arithmetic_side_effects, reason = "small numbers of a test")]

extern crate alloc;

mod support;

use alloc::sync::Arc;
use core::time::Duration;
use std::sync::Mutex;

use aws_sdk_s3::Client;
use aws_smithy_async::rt::sleep::TokioSleep;
use paceline::{Adaptive, law::PacedSettings};
use paceline_aws::Pacing;
use support::{Answer, Server, copy, paced};
use tokio::{
    task::JoinSet,
    time::{Instant, timeout},
};

const SECOND: Duration = Duration::from_secs(1);

/// Starts a server that answers `rate` requests a second, ten at once at most, and the others with `refusal`.
#[allow(clippy::float_arithmetic, reason = "a server in a test")]
async fn limited(rate: f64, refusal: Answer) -> Server {
    let bucket = Mutex::new((10.0, Instant::now()));
    let answer = move |_| {
        let mut bucket = bucket.lock().expect("no test panicked in here");
        let (tokens, last) = *bucket;
        let now = Instant::now();
        let tokens = f64::min(tokens + (now - last).as_secs_f64() * rate, 10.0);
        let passes = tokens >= 1.0;
        *bucket = (if passes { tokens - 1.0 } else { tokens }, now);
        if passes {
            Answer::Copied
        } else {
            refusal.clone()
        }
    };
    Server::start(answer).await
}

/// 16 copies of each of 32 tasks from a service of 50 a second: returns how many failed.
async fn bulk(refusal: Answer) -> u32 {
    let server = limited(50.0, refusal).await;
    let pacing = Pacing::new(Adaptive::paced());
    let client = Client::from_conf(paced(&server, TokioSleep::new(), &pacing).build());
    let mut tasks = JoinSet::new();
    for _ in 0..32 {
        let client = client.clone();
        tasks.spawn(async move {
            let mut failed = 0_u32;
            for _ in 0..16 {
                failed += u32::from(copy(&client).await.is_err());
            }
            failed
        });
    }
    tasks.join_all().await.into_iter().sum()
}

#[tokio::test]
async fn a_service_that_says_429_and_why_is_adapted_to() {
    let failed = bulk(Answer::TooMany).await;
    assert!(failed <= 5, "{failed} of 512");
}

#[tokio::test]
async fn a_service_that_says_slow_down_is_adapted_to() {
    let failed = bulk(Answer::SlowDown).await;
    assert!(failed <= 5, "{failed} of 512");
}

/// A strategy of so many requests in `span`, and a client of it.
fn limited_client(server: &Server, tokens: u32, span: Duration) -> (Arc<Adaptive>, Client) {
    let settings = PacedSettings::fixed(tokens, span).expect("in range");
    let strategy = Adaptive::builder().paced(settings).build();
    let strategy = Arc::new(strategy.expect("in range"));
    let pacing = Pacing::shared(strategy.clone());
    let config = paced(server, TokioSleep::new(), &pacing);
    (strategy, Client::from_conf(config.build()))
}

#[tokio::test]
async fn a_waiter_goes_early_when_the_rate_rises() {
    let server = Server::with(&[Answer::Copied]).await;
    let (strategy, client) = limited_client(&server, 1, 20 * SECOND);
    copy(&client).await.expect("the bucket held one token");
    let begun = Instant::now();
    let waiting = tokio::spawn(async move { copy(&client).await });
    tokio::time::sleep(SECOND / 5).await;
    let fast = PacedSettings::fixed(1_000, SECOND).expect("in range");
    strategy.set_paced(fast).expect("it can be changed");
    waiting.await.expect("no panic").expect("it is copied");
    let took = begun.elapsed();
    assert!(took < SECOND, "{took:?}");
}

#[tokio::test]
async fn a_request_dropped_in_line_leaves_no_place() {
    let server = Server::with(&[Answer::Copied]).await;
    let (strategy, client) = limited_client(&server, 1, 100 * SECOND);
    copy(&client).await.expect("the bucket held one token");
    for _ in 0..3 {
        assert!(timeout(SECOND / 5, copy(&client)).await.is_err());
        let now = strategy.clock().now();
        assert_eq!(strategy.send_rate().snapshot(now).waiting, 0);
        let wait = strategy.send_rate().try_acquire(now).unwrap_err();
        assert!(wait <= 100 * SECOND, "{wait:?}");
    }
    assert_eq!(server.requests(), 1);
}
