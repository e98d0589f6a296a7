//! Batches of which a service refuses some items inside a success, in virtual time.
#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "a test may overflow, and fail; a table counts few items"
)]

mod support;

extern crate alloc;

use alloc::sync::Arc;
use core::time::Duration;
use std::{io, sync::Mutex};

use aws_sdk_s3::{
    Client,
    operation::delete_objects::{DeleteObjectsInput, DeleteObjectsOutput},
    types::{Delete, Error, ObjectIdentifier},
};
use aws_smithy_async::rt::sleep::{AsyncSleep as _, TokioSleep};
use aws_smithy_runtime::client::{
    orchestrator::operation::Operation, retries::classifiers::HttpStatusCodeClassifier,
};
use aws_smithy_runtime_api::client::{
    behavior_version::BehaviorVersion,
    http::{
        HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
    },
    orchestrator::{HttpRequest, HttpResponse, OrchestratorError},
};
use aws_smithy_types::{body::SdkBody, timeout::TimeoutConfig};
use kit::{OK, SECOND, Server};
use paceline::{Adaptive, RetryStrategy, Standard, TokioClock, law::PacedSettings};
use paceline_aws::Pacing;
use support::{Naps, paced};
use tokio::time::Instant;

/// The input of `BatchWriteItem`.
#[derive(Debug)]
struct Write(Vec<String>);

/// The output, which has the items that were not written.
#[derive(Debug)]
struct Unprocessed(Vec<String>);

/// A table that takes 100 items a second, and as many at first.
#[derive(Clone, Debug)]
struct Table(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    left: u64,
    begun: Instant,
    /// Hundredths of a second until which there are items.
    minted: u64,
    calls: u32,
    calls_refused: u32,
    refused: usize,
    written: Vec<String>,
}

impl Table {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(State {
            left: 100,
            begun: Instant::now(),
            minted: 0,
            calls: 0,
            calls_refused: 0,
            refused: 0,
            written: Vec::new(),
        })))
    }

    fn client(&self) -> SharedHttpClient {
        let connector = SharedHttpConnector::new(self.clone());
        http_client_fn(move |_settings, _components| connector.clone())
    }

    /// Writes the first items, and returns the others in their order.
    fn write(&self, items: &[String]) -> Vec<String> {
        let mut state = self.0.lock().expect("no test panicked in here");
        let now = state.begun.elapsed().as_millis() as u64 / 10;
        state.left = (state.left + now - state.minted).min(100);
        state.minted = now;
        let (taken, refused) = items.split_at(items.len().min(state.left as usize));
        state.left -= taken.len() as u64;
        state.calls += 1;
        state.calls_refused += u32::from(!refused.is_empty());
        state.refused += refused.len();
        state.written.extend_from_slice(taken);
        refused.to_vec()
    }
}

impl HttpConnector for Table {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let table = self.clone();
        HttpConnectorFuture::new(async move {
            TokioSleep::new().sleep(Duration::from_millis(20)).await;
            let body =
                String::from_utf8_lossy(request.body().bytes().expect("a text")).into_owned();
            let items: Vec<_> = body.split_whitespace().map(str::to_owned).collect();
            let body = SdkBody::from(table.write(&items).join(" "));
            Ok(HttpResponse::new(200.try_into().expect("a status"), body))
        })
    }
}

fn strategy(settings: PacedSettings) -> Arc<dyn RetryStrategy> {
    let strategy = Adaptive::builder().clock(Arc::new(TokioClock::new()));
    Arc::new(strategy.paced(settings).build().expect("in range"))
}

/// Returns an operation that writes to `table`.
fn operation(table: &Table, pacing: &Pacing) -> Operation<Write, Unprocessed, io::Error> {
    let pacing = pacing.clone().batch(
        |input: &Write| input.0.len(),
        |output: &Unprocessed| output.0.len(),
    );
    Operation::builder()
        .service_name("dynamodb")
        .operation_name("BatchWriteItem")
        .behavior_version(BehaviorVersion::latest())
        .endpoint_url("http://localhost")
        .no_auth()
        .sleep_impl(TokioSleep::new())
        .timeout_config(TimeoutConfig::disabled())
        .retry_classifier(HttpStatusCodeClassifier::default())
        .runtime_plugin(pacing.plugin(table.client()))
        .serializer(|input: Write| {
            let mut request = HttpRequest::new(SdkBody::from(input.0.join(" ")));
            request.set_uri("/")?;
            request.set_method("POST")?;
            Ok(request)
        })
        .deserializer(|response| {
            let body = response.body().bytes();
            let body =
                body.ok_or_else(|| OrchestratorError::operation(io::Error::other("none")))?;
            let body = String::from_utf8_lossy(body);
            let left = body.split_whitespace().map(str::to_owned);
            Ok(Unprocessed(left.collect()))
        })
        .build()
}

/// 40 calls of 25 items at a table that takes 100 items a second. Before it sends what was refused, a
/// caller pauses as DynamoDB recommends, or begins slowly by the strategy.
#[tokio::test(start_paused = true)]
async fn items_are_paced_and_the_callers_loop_sends_what_was_refused() {
    let bulk = Adaptive::builder()
        .bulk()
        .clock(Arc::new(TokioClock::new()));
    let bulk: Arc<dyn RetryStrategy> = Arc::new(bulk.build().expect("in range"));
    let paced = strategy(PacedSettings::new());
    for (strategy, pause, longest) in [(paced, 100, 9_600), (bulk, 0, 14_000)] {
        let table = Table::new();
        let operation = operation(&table, &Pacing::shared(strategy.clone()));
        let begun = Instant::now();
        let item = |n: u32| n.to_string();
        for batch in 0..40 {
            let mut left: Vec<_> = (batch * 25..batch * 25 + 25).map(item).collect();
            loop {
                let Unprocessed(refused) = operation.invoke(Write(left)).await.expect("an answer");
                left = refused;
                if left.is_empty() {
                    break;
                }
                TokioSleep::new().sleep(Duration::from_millis(pause)).await;
            }
        }
        let state = table.0.lock().expect("no test panicked in here");
        let figures = (state.calls, state.refused, begun.elapsed());
        println!("{figures:?}");
        assert!(state.written.iter().cloned().eq((0..1_000).map(item)));
        assert!(state.calls <= 50, "{figures:?}");
        assert!(state.refused <= 60, "{figures:?}");
        assert!(
            begun.elapsed() <= Duration::from_millis(longest),
            "{figures:?}"
        );
        // Each send was counted once.
        let throttled = strategy.snapshot().counts.throttled;
        assert_eq!(throttled, u64::from(state.calls_refused), "{figures:?}");
    }
}

/// A batch takes as many tokens as it has items, and what the bucket holds at most.
#[tokio::test(start_paused = true)]
async fn a_batch_takes_a_token_for_each_item() {
    let ten = PacedSettings::fixed(10, SECOND).expect("in range");
    let whole = ten.to_builder().burst(SECOND).build().expect("in range");
    for (settings, items, seconds) in [(whole, 5, 1), (whole, 10, 3), (whole, 25, 3), (ten, 25, 0)]
    {
        let table = Table::new();
        let operation = operation(&table, &Pacing::shared(strategy(settings)));
        let begun = Instant::now();
        for _ in 0..4 {
            let write = Write(vec!["x".to_owned(); items]);
            operation.invoke(write).await.expect("an answer");
        }
        assert_eq!(begun.elapsed().as_secs(), seconds, "{items}");
    }
}

#[tokio::test]
async fn the_sdks_own_output_is_read() {
    let refused = "<DeleteResult><Deleted><Key>a</Key></Deleted>\
        <Error><Key>b</Key><Code>SlowDown</Code><Message>m</Message></Error></DeleteResult>";
    let other = "<DeleteResult><Error><Key>b</Key><Code>AccessDenied</Code></Error></DeleteResult>";
    for (body, throttled) in [(refused, 1), (other, 0)] {
        let server = Server::with(&[OK.body(body)]).await;
        let pacing = Pacing::new(Standard::new()).batch(
            |input: &DeleteObjectsInput| input.delete().map_or(1, |delete| delete.objects().len()),
            |output: &DeleteObjectsOutput| {
                let slow = |error: &&Error| error.code() == Some("SlowDown");
                output.errors().iter().filter(slow).count()
            },
        );
        let client = Client::from_conf(paced(&server, Naps::default(), &pacing).build());
        let object = |key| ObjectIdentifier::builder().key(key).build();
        let objects = ["a", "b"].map(|key| object(key).expect("a key"));
        let delete = Delete::builder().set_objects(Some(objects.to_vec()));
        let delete = delete.build().expect("objects");
        let sent = client.delete_objects().bucket("b").delete(delete).send();
        let output = sent.await.expect("a success");
        assert_eq!((output.errors().len(), server.requests()), (1, 1));
        let counts = pacing.strategy().snapshot().counts;
        assert_eq!(counts.throttled, throttled, "{body}");
    }
}
