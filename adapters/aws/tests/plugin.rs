//! A Smithy client without a model, with the plugin.

mod support;

extern crate alloc;

use alloc::sync::Arc;
use core::{error::Error, iter::successors, time::Duration};
use std::io;

use aws_smithy_runtime::client::orchestrator::operation::Operation;
use aws_smithy_runtime_api::client::{
    behavior_version::BehaviorVersion,
    orchestrator::HttpRequest,
    runtime_components::RuntimeComponentsBuilder,
    runtime_plugin::{RuntimePlugin as _, StaticRuntimePlugin},
};
use kit::{Always, SECOND, Said, Server};
use paceline::{Adaptive, Standard, law::PacedSettings};
use paceline_aws::{Misconfigured, Pacing};
use support::{BROKEN, COPIED, Naps, Skips, Stopped, Trance, get};

fn one_per_second(clock: &Stopped) -> Arc<Adaptive> {
    let settings = PacedSettings::fixed(1, SECOND).expect("the rate is in range");
    let strategy = Adaptive::builder()
        .clock(Arc::new(clock.clone()))
        .paced(settings);
    Arc::new(strategy.build().expect("the settings are in range"))
}

#[tokio::test]
async fn what_is_broken_is_asked_again_after_exactly_the_strategys_delay() {
    let server = Server::with(&[BROKEN, Said::RESET, COPIED]).await;
    let (naps, delay) = (Naps::default(), Duration::from_millis(7_654));
    let strategy = Standard::builder().backoff(Arc::new(Always(delay)));
    let strategy = Arc::new(strategy.build().expect("the settings are in range"));
    // A connection that is reset is nothing that this client's one classifier knows.
    let operation = get(&server, naps.clone(), strategy.clone());
    operation.invoke(()).await.expect_err("it was reset");
    assert_eq!((server.requests(), naps.taken()), (2, vec![delay]));
    assert_eq!(strategy.quota().available(), 500 - 14);
    operation.invoke(()).await.expect("the server answers");
    assert_eq!(strategy.quota().available(), 500 - 14 + 1);
}

#[tokio::test]
async fn every_send_takes_one_turn_though_the_orchestrator_asks_again_before_retries() {
    let server = Server::with(&[BROKEN, BROKEN, COPIED]).await;
    let skips = Skips::default();
    let strategy = Adaptive::builder()
        .clock(Arc::new(skips.clock.clone()))
        .backoff(Arc::new(Always(Duration::ZERO)))
        .paced(PacedSettings::fixed(1, SECOND).expect("the rate is in range"));
    let strategy = Arc::new(strategy.build().expect("the settings are in range"));
    let operation = get(&server, skips.clone(), strategy.clone());
    operation.invoke(()).await.expect("the third succeeds");
    let slept: Duration = skips.naps.taken().iter().sum();
    assert_eq!((server.requests(), slept), (3, 2 * SECOND));
    // No place is left in line.
    let now = strategy.clock().now();
    assert_eq!(strategy.send_rate().try_acquire(now), Err(SECOND));
}

#[tokio::test]
async fn an_operation_dropped_in_line_gives_its_place_back() {
    let server = Server::with(&[COPIED]).await;
    let (trance, strategy) = (Trance::default(), one_per_second(&Stopped::default()));
    let operation = get(&server, trance.clone(), strategy.clone());
    operation
        .invoke(())
        .await
        .expect("the bucket held one token");
    tokio::select! {
        _answer = operation.invoke(()) => unreachable!("the sleep never ends"),
        () = trance.0.notified() => {}
    }
    let now = strategy.clock().now();
    assert_eq!(strategy.send_rate().try_acquire(now), Err(SECOND));
}

/// Which parts of the plugin a client has.
struct Parts {
    http_client: bool,
    interceptor: bool,
    strategy: bool,
}

/// Sends a request with these parts, and returns which other it was found to lack.
async fn lacking(server: &Server, pacing: &Pacing, parts: &Parts) -> Option<Misconfigured> {
    let hyper = || aws_smithy_http_client::Builder::new().build_http();
    let whole = pacing.plugin(hyper());
    let whole = whole
        .runtime_components(&RuntimeComponentsBuilder::new("test"))
        .into_owned();
    let mut part = RuntimeComponentsBuilder::new("part");
    if parts.http_client {
        part.set_http_client(whole.http_client());
    }
    for interceptor in whole.interceptors().filter(|_| parts.interceptor) {
        part.push_interceptor(interceptor);
    }
    if parts.strategy {
        part.set_retry_strategy(whole.retry_strategy());
    }
    let operation = Operation::builder()
        .service_name("test")
        .operation_name("Get")
        .behavior_version(BehaviorVersion::latest())
        .endpoint_url(server.endpoint())
        .no_auth()
        .no_retry()
        .http_client(hyper())
        .runtime_plugin(StaticRuntimePlugin::new().with_runtime_components(part))
        .serializer(|()| Ok(HttpRequest::get("/")?))
        .deserializer::<(), io::Error>(|_| Ok(()))
        .build();
    let error = operation.invoke(()).await.err()?;
    let outermost: &(dyn Error + 'static) = &error;
    successors(Some(outermost), |&error| error.source())
        .find_map(|error| error.downcast_ref::<Misconfigured>())
        .copied()
}

#[tokio::test]
async fn a_client_that_lacks_a_part_sends_nothing_and_says_which() {
    let server = Server::with(&[COPIED]).await;
    let strategy = one_per_second(&Stopped::default());
    let pacing = Pacing::shared(strategy.clone());
    let parts = |http_client, interceptor, strategy| Parts {
        http_client,
        interceptor,
        strategy,
    };
    let cases = [
        (parts(false, true, true), Misconfigured::NoHttpClient),
        (parts(true, false, true), Misconfigured::NoInterceptor),
        (parts(true, true, false), Misconfigured::NoStrategy),
        (parts(false, false, true), Misconfigured::NoInterceptor),
        (parts(false, true, false), Misconfigured::NoHttpClient),
    ];
    for (parts, missing) in cases {
        assert_eq!(lacking(&server, &pacing, &parts).await, Some(missing));
        assert_eq!(server.requests(), 0, "{missing}");
    }
    assert_eq!(strategy.quota().available(), 500);
    let token = strategy.send_rate().try_acquire(strategy.clock().now());
    assert!(token.is_ok(), "no turn was taken");
    let pacing = Pacing::new(Adaptive::paced());
    let whole = lacking(&server, &pacing, &parts(true, true, true)).await;
    assert_eq!((whole, server.requests()), (None, 1));
}
