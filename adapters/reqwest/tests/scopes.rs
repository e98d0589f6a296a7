//! Who shares a strategy, and who does not.

mod support;

extern crate alloc;

use alloc::sync::Arc;
use core::time::Duration;
use std::sync::Mutex;

use http::Extensions;
use kit::{Always, BROKEN, OK, Server};
use paceline::{Adaptive, RetryStrategy, Standard, law::PacedSettings, operation::Attempt};
use paceline_reqwest::Pacing;
use reqwest::{Request, Response};
use reqwest_middleware::{ClientBuilder, Middleware, Next};
use support::{client, status};

/// Of which one retry after a 500 can be paid.
fn poor() -> Standard {
    let strategy = Standard::builder()
        .backoff(Arc::new(Always(Duration::ZERO)))
        .quota_capacity(14);
    strategy.build().expect("the settings are in range")
}

/// Returns how often each of the hosts in `addresses` is sent one failing request.
async fn sends(pacing: Pacing, addresses: &[&str]) -> Vec<usize> {
    let client = client(pacing);
    let mut sends = Vec::new();
    for address in addresses {
        let server = Server::at(address, &[BROKEN]).await;
        assert_eq!(status(client.get(&server.url).send().await), 500);
        sends.push(server.requests());
    }
    sends
}

const THREE: [&str; 4] = ["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.1"];

#[tokio::test]
async fn one_strategy_is_for_all_hosts() {
    assert_eq!(sends(Pacing::new(poor()), &THREE).await, [2, 1, 1, 1]);
}

#[tokio::test]
async fn each_host_has_its_own_whatever_the_port() {
    let hosts = Arc::<Mutex<Vec<String>>>::default();
    let made = hosts.clone();
    let pacing = Pacing::by_host(move |host| {
        made.lock()
            .expect("no test panicked in here")
            .push(host.into());
        poor()
    });
    assert_eq!(sends(pacing, &THREE).await, [2, 2, 2, 1]);
    let hosts = hosts.lock().expect("no test panicked in here");
    assert_eq!(*hosts, ["127.0.0.1", "127.0.0.2", "127.0.0.3"]);
}

#[tokio::test]
async fn hosts_for_which_there_is_no_room_share_one() {
    let bounded = |hosts| Pacing::by_host(|_| poor()).max_hosts(hosts);
    assert_eq!(sends(bounded(1), &THREE).await, [2, 2, 1, 1]);
    assert_eq!(sends(bounded(0), &THREE).await, [2, 1, 1, 1]);
}

#[tokio::test]
async fn a_closure_chooses_by_the_request() {
    let (one, other): (Arc<dyn RetryStrategy>, Arc<dyn RetryStrategy>) =
        (Arc::new(poor()), Arc::new(poor()));
    let pacing = Pacing::by(move |request| match request.url().path() {
        "/search" => one.clone(),
        _ => other.clone(),
    })
    .max_hosts(0); // which is of no use here
    let client = client(pacing);
    let server = Server::with(&[BROKEN, BROKEN, BROKEN, BROKEN, BROKEN, OK]).await;
    let search = format!("{}search", server.url);
    for (url, requests) in [(&search, 2), (&search, 3), (&server.url, 5)] {
        assert_eq!(status(client.get(url).send().await), 500);
        assert_eq!(server.requests(), requests);
    }
}

/// Notes which key each request is to be signed with.
struct Sign(Arc<Mutex<Vec<usize>>>);

#[async_trait::async_trait]
impl Middleware for Sign {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        let attempt = extensions.get::<Attempt>().expect("it is marked");
        let signed = self.0.lock();
        signed
            .expect("no test panicked in here")
            .push(attempt.member());
        next.run(request, extensions).await
    }
}

#[tokio::test]
async fn a_middleware_behind_signs_with_the_key_that_serves() {
    let strategy = Adaptive::builder()
        .paced(PacedSettings::fixed(1, Duration::from_secs(3_600)).expect("in range"))
        .backoff(Arc::new(Always(Duration::ZERO)))
        .members(3)
        .build()
        .expect("in range");
    let signed = Arc::<Mutex<Vec<usize>>>::default();
    let bare = support::bare().build().expect("a client");
    let client = ClientBuilder::new(bare)
        .with(Pacing::new(strategy).mark_requests())
        .with(Sign(signed.clone()))
        .build();
    let server = Server::with(&[BROKEN, OK, OK]).await;
    for _ in 0..2 {
        assert_eq!(status(client.get(&server.url).send().await), 200);
    }
    // Each has a token for one request.
    assert_eq!(*signed.lock().expect("no test panicked in here"), [0, 1, 2]);
}
