//! The real `aws-sdk-s3` with paceline in it, against a server that throttles, breaks and stays
//! silent.

mod support;

extern crate alloc;

use alloc::sync::Arc;
use core::{error::Error, iter::successors, time::Duration};

use aws_sdk_s3::{
    Client,
    config::{Builder, StalledStreamProtectionConfig, retry::RetryConfig, timeout::TimeoutConfig},
    error::{ProvideErrorMetadata as _, SdkError},
    presigning::PresigningConfig,
    primitives::{ByteStream, SdkBody},
};
use aws_smithy_async::rt::sleep::TokioSleep;
use aws_smithy_runtime::client::retries::{RetryPartition, TokenBucket};
use kit::{Always, SECOND, Said, Server};
use paceline::{
    Adaptive, Standard,
    config::RetryGeneration,
    law::PacedSettings,
    operation::{Stop, StopReason},
};
use paceline_aws::{Misconfigured, Pacing};
use support::{
    BROKEN, COPIED, LATE, MISSING, Naps, SLOW_DOWN, Skips, Stopped, Trance, UNAVAILABLE,
    UntilAsked, bare, copy, paced,
};

/// One request each second, by a clock that stands still.
fn one_per_second(clock: &Stopped) -> Arc<Adaptive> {
    let settings = PacedSettings::fixed(1, SECOND).expect("the rate is in range");
    let strategy = Adaptive::builder()
        .clock(Arc::new(clock.clone()))
        .paced(settings);
    Arc::new(strategy.build().expect("the settings are in range"))
}

#[tokio::test]
async fn a_success_is_sent_once_and_sleeps_never() {
    let server = Server::with(&[COPIED]).await;
    let (naps, strategy) = (Naps::default(), Arc::new(Adaptive::paced()));
    let pacing = Pacing::shared(strategy.clone());
    let client = Client::from_conf(paced(&server, naps.clone(), &pacing).build());
    copy(&client).await.expect("the server copies");
    assert_eq!((server.requests(), naps.taken()), (1, vec![]));
    assert_eq!(strategy.quota().available(), 500);
}

#[tokio::test]
async fn what_is_throttled_is_sent_again_after_exactly_the_strategys_delay_and_its_cost_comes_back()
{
    let answers = [SLOW_DOWN, SLOW_DOWN, COPIED];
    let server = Server::with(&answers).await;
    let (naps, delay) = (Naps::default(), Duration::from_millis(7_654));
    let strategy = Standard::builder().backoff(Arc::new(Always(delay)));
    let strategy = Arc::new(strategy.build().expect("the settings are in range"));
    let pacing = Pacing::shared(strategy.clone());
    let client = Client::from_conf(paced(&server, naps.clone(), &pacing).build());
    copy(&client).await.expect("the third is let through");
    assert_eq!((server.requests(), naps.taken()), (3, vec![delay, delay]));
    // Five for each of the two retries, and the last five back.
    assert_eq!(strategy.quota().available(), 495);
}

#[tokio::test]
async fn an_error_in_a_success_is_paced_and_retried() {
    let server = Server::with(&[LATE, LATE, COPIED]).await;
    let strategy = Arc::new(Standard::new());
    let pacing = Pacing::shared(strategy.clone());
    let client = Client::from_conf(paced(&server, Naps::default(), &pacing).build());
    copy(&client).await.expect("the third is let through");
    assert_eq!(server.requests(), 3);
    assert_eq!(strategy.quota().available(), 495);
    assert_eq!(pacing.strategy().snapshot().counts.throttled, 2);
}

#[tokio::test]
async fn the_last_answer_is_in_the_sdks_own_error() {
    for (answer, status) in [(SLOW_DOWN, 503), (LATE, 200)] {
        let server = Server::with(&[answer]).await;
        let pacing = Pacing::new(Standard::new());
        let client = Client::from_conf(paced(&server, Naps::default(), &pacing).build());
        let copied = client.copy_object().bucket("b").key("k").copy_source("b/x");
        let error = copied.send().await.expect_err("it is throttled");
        let response = error.raw_response().expect("it was answered");
        assert_eq!(response.status().as_u16(), status);
        let body = response.body().bytes().expect("it was read");
        assert!(body.ends_with(b"<Message>as told</Message></Error>"));
        assert_eq!(error.code(), Some("SlowDown"));
        assert_eq!(server.requests(), 3);
    }
}

#[tokio::test]
async fn a_hint_is_followed_as_the_strategy_has_it() {
    let hint = Duration::from_millis(1_500);
    let server = Server::with(&[SLOW_DOWN.header(("x-amz-retry-after", "1500")), COPIED]).await;
    let naps = Naps::default();
    let strategy = Standard::builder().backoff(Arc::new(Always(Duration::ZERO)));
    let pacing = Pacing::new(strategy.build().expect("the settings are in range"));
    let client = Client::from_conf(paced(&server, naps.clone(), &pacing).build());
    copy(&client).await.expect("the second is let through");
    assert_eq!(naps.taken(), [hint]);
}

#[tokio::test]
async fn an_empty_quota_and_the_last_attempt_end_it_whatever_the_sdk_is_configured_to_do() {
    for (quota, sends) in [(4, 1), (5, 2), (500, 3)] {
        let server = Server::with(&[SLOW_DOWN]).await;
        let naps = Naps::default();
        let strategy = Standard::builder()
            .quota_capacity(quota)
            .backoff(Arc::new(Always(Duration::ZERO)));
        let pacing = Pacing::new(strategy.build().expect("the settings are in range"));
        // An adaptive limiter that would hold the second send back, and a quota without a token.
        let partition = RetryPartition::custom("empty").token_bucket(TokenBucket::new(0));
        let config = paced(&server, naps.clone(), &pacing)
            .retry_config(RetryConfig::adaptive().with_max_attempts(9))
            .retry_partition(partition.build());
        let error = copy(&Client::from_conf(config.build())).await;
        let error = error.expect_err("all are throttled");
        assert!(error.contains("SlowDown"), "{error}");
        let expected: Vec<_> = (1..=sends).map(|n| format!("attempt={n}; max=3")).collect();
        let marks = server.asked();
        let marks: Vec<_> = marks
            .iter()
            .map(|one| one.header("amz-sdk-request"))
            .collect();
        assert_eq!(marks, expected);
        assert!(naps.taken().iter().all(Duration::is_zero), "{naps:?}");
    }
}

#[tokio::test]
async fn what_is_no_use_to_repeat_is_not_and_what_is_reset_or_broken_is() {
    let cases = [(MISSING, 1, 500), (BROKEN, 2, 500), (Said::RESET, 2, 500)];
    for (answer, sends, quota) in cases {
        let server = Server::with(&[answer, COPIED]).await;
        let strategy = Arc::new(Standard::new());
        let pacing = Pacing::shared(strategy.clone());
        let client = Client::from_conf(paced(&server, Naps::default(), &pacing).build());
        let copied = copy(&client).await.is_ok();
        assert_eq!(
            (server.requests(), copied),
            (sends, sends == 2),
            "{answer:?}"
        );
        assert_eq!(strategy.quota().available(), quota, "{answer:?}");
    }
}

#[tokio::test]
async fn silence_is_a_timeout_and_costs_as_one() {
    let timeouts = TimeoutConfig::builder;
    for timeouts in [
        timeouts().read_timeout(SECOND),
        timeouts().operation_attempt_timeout(SECOND),
    ] {
        let asked = UntilAsked::default();
        let told = asked.0.clone();
        let server = Server::saying(move |_| {
            told.notify_one();
            Said::NEVER
        })
        .await;
        let strategy = Standard::builder()
            .generation(RetryGeneration::V2_0)
            .max_attempts(2)
            .backoff(Arc::new(Always(Duration::ZERO)));
        let strategy = Arc::new(strategy.build().expect("the settings are in range"));
        let pacing = Pacing::shared(strategy.clone());
        let config = paced(&server, asked, &pacing).timeout_config(timeouts.build());
        let error = copy(&Client::from_conf(config.build())).await;
        error.expect_err("there is no answer");
        assert_eq!((server.requests(), strategy.quota().available()), (2, 490));
    }
}

#[tokio::test]
async fn a_body_that_can_be_read_once_is_sent_once_and_pays_for_no_retry() {
    let server = Server::with(&[BROKEN]).await;
    let strategy = Arc::new(Standard::new());
    let pacing = Pacing::shared(strategy.clone());
    let client = Client::from_conf(paced(&server, Naps::default(), &pacing).build());
    let body = http_body_util::Full::new(bytes::Bytes::from_static(b"once"));
    let body = ByteStream::new(SdkBody::from_body_1_x(body));
    let put = client.put_object().bucket("b").key("k").body(body);
    put.send().await.expect_err("the server is broken");
    assert_eq!((server.requests(), strategy.quota().available()), (1, 500));
}

#[tokio::test]
async fn requests_wait_for_their_turns_in_line() {
    let server = Server::with(&[COPIED]).await;
    let skips = Skips::default();
    let strategy = one_per_second(&skips.clock);
    let pacing = Pacing::shared(strategy);
    let client = Client::from_conf(paced(&server, skips.clone(), &pacing).build());
    for client in [client.clone(), client.clone(), client] {
        copy(&client).await.expect("the server copies");
    }
    // Looked at every 50 ms, in case the rate rises.
    let slept: Duration = skips.naps.taken().iter().sum();
    assert_eq!((server.requests(), slept), (3, 2 * SECOND));
}

#[tokio::test]
async fn clients_share_the_pacing_that_they_are_given_and_nothing_else() {
    let server = Server::with(&[COPIED]).await;
    let (skips, clock) = (Skips::default(), Stopped::default());
    let [shared, other] = [&skips.clock, &clock].map(|clock| Pacing::shared(one_per_second(clock)));
    for pacing in [&shared, &other, &shared] {
        let config = paced(&server, skips.clone(), pacing);
        let copied = copy(&Client::from_conf(config.build())).await;
        copied.expect("the server copies");
    }
    let slept: Duration = skips.naps.taken().iter().sum();
    assert_eq!(slept, SECOND);
}

#[tokio::test]
async fn an_operation_dropped_in_line_gives_its_place_back() {
    let server = Server::with(&[COPIED]).await;
    let (trance, clock) = (Trance::default(), Stopped::default());
    let strategy = one_per_second(&clock);
    let pacing = Pacing::shared(strategy.clone());
    let client = Client::from_conf(paced(&server, trance.clone(), &pacing).build());
    copy(&client).await.expect("the bucket held one token");
    tokio::select! {
        _copied = copy(&client) => unreachable!("the sleep never ends"),
        () = trance.0.notified() => {}
    }
    let mut next = strategy.send_rate().reserve(strategy.clock().now());
    assert_eq!(next.claim(strategy.clock().now()), Err(SECOND));
    assert_eq!(server.requests(), 1);
}

#[tokio::test]
async fn an_operation_dropped_in_backoff_leaves_the_others_alone() {
    let server = Server::with(&[SLOW_DOWN, COPIED]).await;
    let trance = Trance::default();
    let strategy = Arc::new(Standard::new());
    let pacing = Pacing::shared(strategy.clone());
    let client = Client::from_conf(paced(&server, trance.clone(), &pacing).build());
    tokio::select! {
        _copied = copy(&client) => unreachable!("the sleep never ends"),
        () = trance.0.notified() => {}
    }
    // The retry was never sent: what it was paid with is back.
    assert_eq!(strategy.quota().available(), 500);
    copy(&client).await.expect("the server copies");
    assert_eq!(strategy.quota().available(), 500);
}

#[tokio::test]
async fn a_strategy_that_refuses_to_wait_says_so() {
    let server = Server::with(&[COPIED]).await;
    let settings = PacedSettings::fixed(1, SECOND).expect("the rate is in range");
    let strategy = Adaptive::builder()
        .clock(Arc::new(Stopped::default()))
        .name("orders")
        .paced(settings)
        .fail_fast(true);
    let pacing = Pacing::new(strategy.build().expect("the settings are in range"));
    let client = Client::from_conf(paced(&server, Naps::default(), &pacing).build());
    copy(&client).await.expect("the bucket held one token");
    let copy = client.copy_object().bucket("b").key("to");
    let error = copy.copy_source("b/from").send().await;
    let error = error.expect_err("there is no other");
    assert!(matches!(error, SdkError::DispatchFailure(_)), "{error:?}");
    let outermost: &(dyn Error + 'static) = &error;
    let stop = successors(Some(outermost), |&error| error.source())
        .find_map(|error| error.downcast_ref::<Stop>())
        .expect("the reason is among the sources");
    assert_eq!(stop.why(), StopReason::SendRefused { wait: SECOND });
    assert_eq!(stop.name(), Some("orders"));
    assert_eq!(server.requests(), 1);
}

#[tokio::test]
async fn an_upload_may_wait_longer_than_one_may_stall() {
    let server = Server::with(&[COPIED]).await;
    let settings = PacedSettings::fixed(1, 3 * SECOND).expect("the rate is in range");
    let strategy = Adaptive::builder().paced(settings).build();
    let pacing = Pacing::new(strategy.expect("the settings are in range"));
    let stalls = StalledStreamProtectionConfig::enabled().grace_period(Duration::from_millis(10));
    let config =
        paced(&server, TokioSleep::new(), &pacing).stalled_stream_protection(stalls.build());
    let client = Client::from_conf(config.build());
    for _ in 0..2 {
        let body = ByteStream::from(vec![b'x'; 100_000]);
        let put = client.put_object().bucket("b").key("k").body(body);
        put.send().await.expect("the server takes it");
    }
    assert_eq!(server.requests(), 2);
}

#[tokio::test]
async fn a_request_that_is_only_signed_takes_no_turn() {
    let server = Server::with(&[COPIED]).await;
    let clock = Stopped::default();
    let strategy = one_per_second(&clock);
    let pacing = Pacing::shared(strategy.clone());
    let client = Client::from_conf(paced(&server, Naps::default(), &pacing).build());
    let expiry = PresigningConfig::expires_in(SECOND).expect("a second is in range");
    let get = client.get_object().bucket("b").key("k");
    get.presigned(expiry).await.expect("it is signed here");
    let token = strategy.send_rate().try_acquire(strategy.clock().now());
    assert!(token.is_ok(), "{token:?}");
}

// With the feature the SDK does have a client.
#[cfg(not(feature = "default-https-client"))]
#[tokio::test]
async fn without_a_client_in_the_sdk_the_default_one_says_so() {
    let pacing = Pacing::new(Standard::new());
    let server = Server::with(&[COPIED]).await;
    let config = paced(&server, Naps::default(), &pacing)
        .behavior_version(aws_sdk_s3::config::BehaviorVersion::latest())
        .http_client(pacing.default_http_client());
    let error = copy(&Client::from_conf(config.build())).await;
    let error = error.expect_err("these tests build none");
    assert!(error.contains("without an HTTP client"), "{error}");
}

#[tokio::test]
async fn a_503_is_throttling_in_bulk_and_transient_otherwise() {
    for (pacing, throttled) in [(Pacing::bulk(), 1), (Pacing::new(Adaptive::paced()), 0)] {
        let server = Server::with(&[UNAVAILABLE, COPIED]).await;
        let client = Client::from_conf(paced(&server, TokioSleep::new(), &pacing).build());
        copy(&client).await.expect("the second is let through");
        let counts = pacing.strategy().snapshot().counts;
        assert_eq!((counts.throttled, counts.granted), (throttled, 1));
        assert_eq!(pacing.strategy().snapshot().quota.available, 500);
    }
}

/// Copies an object, and returns which part its client was found to lack.
async fn lacking(config: Builder) -> Option<Misconfigured> {
    let client = Client::from_conf(config.build());
    let copy = client.copy_object().bucket("b").key("to");
    let error = copy.copy_source("b/from").send().await.err()?;
    let outermost: &(dyn Error + 'static) = &error;
    successors(Some(outermost), |&error| error.source())
        .find_map(|error| error.downcast_ref::<Misconfigured>())
        .copied()
}

#[tokio::test]
async fn a_client_that_lacks_a_part_sends_nothing_and_says_which() {
    let inner = || aws_smithy_http_client::Builder::new().build_http();
    let strategy = one_per_second(&Stopped::default());
    let pacing = Pacing::shared(strategy.clone());
    let server = Server::with(&[COPIED]).await;
    let bare = || bare(&server, Naps::default());
    let no_interceptor = bare()
        .http_client(pacing.http_client(inner()))
        .retry_classifier(pacing.classifier());
    let no_classifier = bare()
        .http_client(pacing.http_client(inner()))
        .interceptor(pacing.interceptor());
    let no_http_client = bare()
        .interceptor(pacing.interceptor())
        .retry_classifier(pacing.classifier());
    let interceptor_alone = bare().interceptor(pacing.interceptor());
    let cases = [
        (no_interceptor, Misconfigured::NoInterceptor),
        (no_classifier, Misconfigured::NoClassifier),
        (no_http_client, Misconfigured::NoHttpClient),
        (interceptor_alone, Misconfigured::NoHttpClient),
    ];
    for (config, part) in cases {
        assert_eq!(lacking(config).await, Some(part));
        assert_eq!(server.requests(), 0, "{part}");
    }
    assert_eq!(strategy.quota().available(), 500);
    let token = strategy.send_rate().try_acquire(strategy.clock().now());
    assert!(token.is_ok(), "no turn was taken");

    // The parts of credentials, whose operations have the HTTP client of the configuration alone.
    let alone = bare().http_client(pacing.http_client(inner()));
    copy(&Client::from_conf(alone.build()))
        .await
        .expect("it is passed on");
}

#[tokio::test]
async fn a_part_that_one_operation_replaces_is_missing_there() {
    let server = Server::with(&[COPIED]).await;
    let pacing = Pacing::new(Adaptive::paced());
    let client = Client::from_conf(paced(&server, Naps::default(), &pacing).build());
    let bare = aws_smithy_http_client::Builder::new().build_http();
    let bare = aws_sdk_s3::Config::builder().http_client(bare);
    let copied = client.copy_object().bucket("b").key("k").copy_source("b/x");
    let error = copied.customize().config_override(bare).send().await;
    error.expect_err("it would not wait");
    assert_eq!(server.requests(), 0);
    copy(&client).await.expect("others are complete");
}

#[tokio::test]
async fn one_operation_can_do_without_retries() {
    let server = Server::with(&[SLOW_DOWN]).await;
    let strategy = Arc::new(Standard::new());
    let pacing = Pacing::shared(strategy.clone());
    let client = Client::from_conf(paced(&server, Naps::default(), &pacing).build());
    let once = aws_sdk_s3::Config::builder().retry_config(RetryConfig::disabled());
    let copy_once = client.copy_object().bucket("b").key("k").copy_source("b/x");
    let error = copy_once.customize().config_override(once).send().await;
    error.expect_err("it is throttled");
    assert_eq!((server.requests(), strategy.quota().available()), (1, 500));
    copy(&client).await.expect_err("all are throttled");
    assert_eq!(server.requests(), 4, "others are retried");
}

#[tokio::test]
async fn inside_of_an_attempt_an_operation_is_sent_once() {
    let server = Server::with(&[SLOW_DOWN]).await;
    let strategy = Arc::new(Standard::builder().build().expect("in range"));
    let pacing = Pacing::shared(strategy.clone());
    let client = Client::from_conf(paced(&server, Naps::default(), &pacing).build());
    let outer = Some(paceline::operation::OuterAttempt::new());
    let copied = paceline::operation::within_async(outer, Box::pin(copy(&client))).await;
    assert!(copied.is_err());
    assert_eq!((server.requests(), strategy.quota().available()), (1, 500));
}
