//! A Smithy client without a model, with the plugin.

mod support;

extern crate alloc;

use alloc::sync::Arc;
use core::time::Duration;
use std::io;

use aws_smithy_runtime::client::orchestrator::operation::Operation;
use aws_smithy_runtime_api::client::{
    behavior_version::BehaviorVersion,
    orchestrator::HttpRequest,
    runtime_components::RuntimeComponentsBuilder,
    runtime_plugin::{RuntimePlugin as _, StaticRuntimePlugin},
};
use paceline::{Adaptive, Standard, law::PacedSettings};
use paceline_aws::Pacing;
use support::{Always, Answer, Naps, Server, Skips, Stopped, Trance, get};

const SECOND: Duration = Duration::from_secs(1);

fn one_per_second(clock: &Stopped) -> Arc<Adaptive> {
    let settings = PacedSettings::fixed(1, SECOND).expect("the rate is in range");
    let strategy = Adaptive::builder()
        .clock(Arc::new(clock.clone()))
        .paced(settings);
    Arc::new(strategy.build().expect("the settings are in range"))
}

#[tokio::test]
async fn what_is_broken_is_asked_again_after_exactly_the_strategys_delay() {
    let server = Server::with(&[Answer::Broken, Answer::Reset, Answer::Copied]).await;
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
    let server = Server::with(&[Answer::Broken, Answer::Broken, Answer::Copied]).await;
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
    let server = Server::with(&[Answer::Copied]).await;
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

#[tokio::test]
async fn the_strategy_alone_says_that_the_rest_is_missing() {
    let pacing = Pacing::new(Standard::new());
    let plugin = pacing.plugin(aws_smithy_http_client::Builder::new().build_http());
    let whole = plugin
        .runtime_components(&RuntimeComponentsBuilder::new("test"))
        .into_owned();
    let part = RuntimeComponentsBuilder::new("part").with_retry_strategy(whole.retry_strategy());
    let server = Server::with(&[Answer::Copied]).await;
    let operation = Operation::builder()
        .service_name("test")
        .operation_name("Get")
        .behavior_version(BehaviorVersion::latest())
        .endpoint_url(&server.url)
        .no_auth()
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .runtime_plugin(StaticRuntimePlugin::new().with_runtime_components(part))
        .serializer(|()| Ok(HttpRequest::get("/")?))
        .deserializer::<(), io::Error>(|_| Ok(()))
        .build();
    let error = operation
        .invoke(())
        .await
        .expect_err("there is no interceptor");
    let said = format!("{}", aws_sdk_s3::error::DisplayErrorContext(error));
    assert!(said.contains(".interceptor("), "{said}");
}
