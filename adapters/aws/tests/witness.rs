//! What a strategy sees: the scope, and with each outcome the permit that the request was sent
//! with.

mod support;

extern crate alloc;

use alloc::sync::Arc;
use core::time::Duration;
use std::sync::Mutex;

use aws_sdk_s3::Client;
use kit::{Always, Server};
use paceline::{
    Adaptive, Clock, Failure, RetryStrategy, RetryToken, SendPermit, Timestamp,
    law::PacedSettings,
    strategy::{
        ForeignToken, InitialTokenRefused, NotAdmitted, Reports, RetryRefused, SendRequest,
        SendTurn,
    },
};
use paceline_aws::Pacing;
use support::{BROKEN, COPIED, Skips, copy, paced};

/// A strategy that writes down its calls and leaves the rest to another.
#[derive(Debug)]
struct Witness {
    strategy: Adaptive,
    seen: Mutex<Vec<Call>>,
}

#[derive(Clone, Debug, PartialEq)]
enum Call {
    Began(Option<String>),
    Failed(Option<Timestamp>),
    Succeeded(Option<Timestamp>),
}

impl Witness {
    fn note(&self, seen: Call) {
        self.seen
            .lock()
            .expect("no test panicked in here")
            .push(seen);
    }
}

fn sent(token: &RetryToken) -> Option<Timestamp> {
    token.send_permit().map(SendPermit::time)
}

impl RetryStrategy for Witness {
    fn acquire_initial_token(
        &self,
        scope: Option<&str>,
    ) -> Result<RetryToken, InitialTokenRefused> {
        self.note(Call::Began(scope.map(str::to_owned)));
        self.strategy.acquire_initial_token(scope)
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        failure: &Failure,
        reports: Reports<'_>,
    ) -> Result<RetryToken, RetryRefused> {
        self.note(Call::Failed(sent(&token)));
        self.strategy.refresh_retry_token(token, failure, reports)
    }

    fn record_success(&self, token: RetryToken, reports: Reports<'_>) -> Result<(), ForeignToken> {
        self.note(Call::Succeeded(sent(&token)));
        self.strategy.record_success(token, reports)
    }

    fn admit(
        &self,
        turn: &mut SendTurn,
        request: SendRequest<'_>,
    ) -> Result<SendPermit, NotAdmitted> {
        self.strategy.admit(turn, request)
    }

    fn clock(&self) -> &dyn Clock {
        self.strategy.clock()
    }
}

/// Returns a witness of a strategy that lets one request go each second.
fn witness(skips: &Skips, fail_fast: bool) -> Arc<Witness> {
    let rate = PacedSettings::fixed(1, Duration::from_secs(1)).expect("the rate is in range");
    let strategy = Adaptive::builder()
        .clock(Arc::new(skips.clock.clone()))
        .backoff(Arc::new(Always(Duration::ZERO)))
        .fail_fast(fail_fast)
        .paced(rate);
    Arc::new(Witness {
        strategy: strategy.build().expect("the settings are in range"),
        seen: Mutex::default(),
    })
}

#[tokio::test]
async fn the_permit_is_that_of_the_turn() {
    let server = Server::with(&[BROKEN, COPIED]).await;
    let skips = Skips::default();
    let witness = witness(&skips, false);
    let pacing = Pacing::shared(witness.clone()).scope("a prefix");
    let client = Client::from_conf(paced(&server, skips, &pacing).build());
    copy(&client).await.expect("the second is let through");
    let told = witness.seen.lock().expect("no test panicked in here");
    let expected = [
        Call::Began(Some("a prefix".to_owned())),
        Call::Failed(Some(Timestamp::ZERO)), // at once
        Call::Succeeded(Some(Timestamp::from_nanos(1_000_000_000))), // after a wait
    ];
    assert_eq!(*told, expected);
}

#[tokio::test]
async fn a_request_that_is_refused_its_turn_has_no_outcome() {
    let server = Server::with(&[COPIED]).await;
    let skips = Skips::default();
    let witness = witness(&skips, true);
    let pacing = Pacing::shared(witness.clone());
    let client = Client::from_conf(paced(&server, skips, &pacing).build());
    copy(&client).await.expect("the bucket held one token");
    copy(&client).await.expect_err("there is no other");
    let told = witness.seen.lock().expect("no test panicked in here");
    let first = Call::Succeeded(Some(Timestamp::ZERO));
    assert_eq!(*told, [Call::Began(None), first, Call::Began(None)]);
}

#[tokio::test]
async fn a_limited_scope_is_limited_and_slows_no_other() {
    let server = Server::with(&[COPIED]).await;
    let skips = Skips::default();
    let second = Duration::from_secs(1);
    let rate = PacedSettings::fixed(10, second)
        .and_then(|rate| rate.to_builder().burst(second / 10).build());
    let template = Adaptive::builder()
        .clock(Arc::new(skips.clock.clone()))
        .paced(rate.expect("the rate is in range"));
    let scopes = Arc::new(template.scopes().build().expect("in range"));
    let client = |scope: &'static str| {
        let pacing = Pacing::shared(scopes.clone()).scope(scope);
        Client::from_conf(paced(&server, skips.clone(), &pacing).build())
    };
    let (hot, other) = (client("hot"), client("other"));
    for _ in 0..30 {
        copy(&hot).await.expect("it is let through");
    }
    let took = Duration::from_nanos(skips.clock.now().as_nanos());
    assert_eq!(took.as_millis(), 2_900);
    copy(&other).await.expect("it is let through");
    assert_eq!(Duration::from_nanos(skips.clock.now().as_nanos()), took);
}
