//! Bodies that can be sent only once.

mod support;

extern crate alloc;

use alloc::sync::Arc;
use core::time::Duration;

use futures_util::stream;
use kit::{Always, BROKEN, OK, SLOW_DOWN, Said, Server};
use paceline::{
    Failure, RetryStrategy, RetryToken, Standard,
    operation::{Stop, StopReason},
    strategy::{ForeignToken, InitialTokenRefused, Reports, RetryRefused, StrategyId},
};
use paceline_reqwest::{BodyNotRepeatable, OneShotBody, Pacing};
use reqwest::{Body, Response};
use reqwest_middleware::{Error, Result};
use support::client;

fn strategy() -> Arc<Standard> {
    let strategy = Standard::builder().backoff(Arc::new(Always(Duration::ZERO)));
    Arc::new(strategy.build().expect("the settings are in range"))
}

async fn put_stream(server: &Server, pacing: Pacing) -> Result<Response> {
    let chunks = ["in ", "parts"].map(Ok::<_, std::io::Error>);
    let body = Body::wrap_stream(stream::iter(chunks));
    client(pacing).put(&server.url).body(body).send().await
}

/// Returns the adapter's own error.
fn refusal(answer: &Result<Response>) -> Option<&BodyNotRepeatable> {
    match answer {
        Err(Error::Middleware(error)) => error.downcast_ref(),
        _ => None,
    }
}

#[tokio::test]
async fn one_that_succeeds_is_as_any_other() {
    let (server, strategy) = (Server::with(&[OK]).await, strategy());
    let answer = put_stream(&server, Pacing::shared(strategy)).await;
    assert!(answer.is_ok());
    assert_eq!(server.asked()[0].body, "in parts");
}

#[tokio::test]
async fn one_that_would_have_to_be_sent_again_returns_its_answer() {
    let refusal = SLOW_DOWN.body("{\"error\": {\"code\": \"slow_down\"}}");
    let (server, strategy) = (Server::with(&[refusal, OK]).await, strategy());
    let answer = put_stream(&server, Pacing::shared(strategy.clone())).await;
    let answer = answer.expect("the answer");
    assert_eq!(answer.status().as_u16(), 429);
    let stop = answer.extensions().get::<Stop>().expect("it says why");
    assert_eq!(
        (stop.why(), stop.attempts()),
        (StopReason::NotRepeatable, 1)
    );
    assert_eq!(answer.url().as_str(), server.url);
    let body = answer.text().await.expect("a body");
    assert_eq!(body, "{\"error\": {\"code\": \"slow_down\"}}");
    // The retry that was not made is not paid.
    assert_eq!((server.requests(), strategy.quota().available()), (1, 500));

    let server = Server::with(&[Said::RESET, OK]).await;
    let answer = put_stream(&server, Pacing::shared(strategy)).await;
    assert!(matches!(answer, Err(Error::Reqwest(_))), "{answer:?}");
    assert_eq!(server.requests(), 1);
}

#[tokio::test]
async fn one_that_would_not_be_sent_again_anyway_returns_its_answer() {
    let once = Standard::builder()
        .max_attempts(1)
        .build()
        .expect("in range");
    for (first, strategy) in [(Said::new(404), strategy()), (BROKEN, Arc::new(once))] {
        let server = Server::with(&[first, OK]).await;
        let answer = put_stream(&server, Pacing::shared(strategy)).await;
        assert!(answer.is_ok_and(|response| response.status().as_u16() != 200));
        assert_eq!(server.requests(), 1);
    }
}

#[tokio::test]
async fn it_may_be_refused_at_once() {
    let (server, strategy) = (Server::with(&[OK]).await, strategy());
    let pacing = Pacing::shared(strategy.clone()).one_shot_body(OneShotBody::Refuse);
    let answer = put_stream(&server, pacing).await;
    let refusal = refusal(&answer).expect("its own error");
    assert!(
        refusal
            .to_string()
            .starts_with("the request was not sent, and could not")
    );
    assert_eq!(server.requests(), 0);
    let client = client(Pacing::shared(strategy).one_shot_body(OneShotBody::Refuse));
    for request in [
        client.get(&server.url),
        client.put(&server.url).body("bytes"),
    ] {
        assert!(request.send().await.is_ok());
    }
}

/// Retries whatever it is, or has no token at all.
#[derive(Debug)]
struct Stubborn {
    id: StrategyId,
    gives_tokens: bool,
}

impl RetryStrategy for Stubborn {
    fn acquire_initial_token(
        &self,
        _: Option<&str>,
    ) -> core::result::Result<RetryToken, InitialTokenRefused> {
        let token = self.gives_tokens.then(|| RetryToken::new(self.id));
        token.ok_or(InitialTokenRefused)
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        _: &Failure,
        _: Reports<'_>,
    ) -> core::result::Result<RetryToken, RetryRefused> {
        Ok(token)
    }

    fn record_success(
        &self,
        _: RetryToken,
        _: Reports<'_>,
    ) -> core::result::Result<(), ForeignToken> {
        Ok(())
    }
}

fn stubborn(gives_tokens: bool) -> Pacing {
    let id = StrategyId::new();
    Pacing::new(Stubborn { id, gives_tokens })
}

#[tokio::test]
async fn a_strategy_that_asks_for_nothing_is_held_to_the_same() {
    let server = Server::with(&[BROKEN, OK]).await;
    let answer = put_stream(&server, stubborn(true)).await;
    assert_eq!(answer.expect("the answer").status(), 500);

    let server = Server::with(&[BROKEN, BROKEN, BROKEN, BROKEN, OK]).await;
    let client = client(stubborn(true));
    let order = client.post(&server.url).send().await.expect("an answer");
    assert_eq!((order.status().as_u16(), server.requests()), (500, 1)); // it may have been placed
    let get = client.get(&server.url).send().await.expect("an answer");
    assert_eq!((get.status().as_u16(), server.requests()), (200, 5));
}

#[tokio::test]
async fn without_a_token_there_is_one_send() {
    let server = Server::with(&[BROKEN, OK]).await;
    let answer = client(stubborn(false)).get(&server.url).send().await;
    assert!(answer.is_ok_and(|response| response.status() == 500));
    let answer = put_stream(&server, stubborn(false)).await;
    assert!(answer.is_ok());
    assert_eq!(server.requests(), 2);
}
