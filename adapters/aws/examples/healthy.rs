//! What a healthy request of `aws-sdk-s3` costs with paceline, beside the same client without.
//!
//! `cargo run --release --example healthy`
//!
//! No network: the HTTP client answers at once. The clients take turns for many short rounds, of
//! which the least disturbed counts. A lock that threads share would show in the last column,
//! beside the bare client's.

use std::{sync::Barrier, thread, time::Instant};

use aws_sdk_s3::{
    Client,
    config::{BehaviorVersion, Builder, Credentials, IdentityCache, Region, retry::RetryConfig},
};
use aws_smithy_runtime_api::client::{
    http::{
        HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
    },
    orchestrator::{HttpRequest, HttpResponse},
};
use aws_smithy_types::body::SdkBody;
use paceline::{Adaptive, Standard};
use paceline_aws::Pacing;

const ROUNDS: usize = 1_000;
const REQUESTS: u32 = 40;

#[derive(Debug)]
struct Well;

impl HttpConnector for Well {
    fn call(&self, _request: HttpRequest) -> HttpConnectorFuture {
        let status = 200_u16.try_into().expect("a status");
        HttpConnectorFuture::ready(Ok(HttpResponse::new(status, SdkBody::empty())))
    }
}

fn well() -> SharedHttpClient {
    let well = SharedHttpConnector::new(Well);
    http_client_fn(move |_settings, _components| well.clone())
}

fn bare() -> Builder {
    Builder::new()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "testtest", None, None, "example"))
        .identity_cache(IdentityCache::no_cache())
        .endpoint_url("http://localhost")
        .force_path_style(true)
        .http_client(well())
}

fn paced(pacing: &Pacing) -> Builder {
    bare()
        .http_client(pacing.http_client(well()))
        .interceptor(pacing.interceptor())
        .retry_classifier(pacing.classifier())
}

/// Sends [`REQUESTS`] on each of `threads` at once, and returns the nanoseconds that each one took
/// of the whole.
fn measure(client: &Client, threads: u32) -> u128 {
    let together = Barrier::new(usize::try_from(threads).expect("few threads"));
    let client_thread = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.expect("a runtime");
        together.wait();
        let began = Instant::now();
        for _ in 0..REQUESTS {
            let head = client.head_object().bucket("b").key("k").send();
            runtime.block_on(head).expect("all is well");
        }
        began.elapsed()
    };
    let longest = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(client_thread)).collect();
        let spans = threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"));
        spans.max().expect("at least one thread")
    });
    let sent = u128::from(REQUESTS).saturating_mul(threads.into());
    longest.as_nanos().checked_div(sent).expect("some were")
}

/// Returns `part` of `whole` in hundredths.
fn ratio(part: u128, whole: u128) -> String {
    let hundredths = part.saturating_mul(100).checked_div(whole).unwrap_or(0);
    format!(
        "{}.{:02}",
        hundredths.div_euclid(100),
        hundredths.rem_euclid(100)
    )
}

fn main() {
    let cases = [
        ("SDK, standard", bare()),
        (
            "SDK, adaptive",
            bare().retry_config(RetryConfig::adaptive()),
        ),
        ("paceline, standard", paced(&Pacing::new(Standard::new()))),
        (
            "paceline, adaptive",
            paced(&Pacing::new(
                Adaptive::builder()
                    .law(paceline::ControlLaw::Aws)
                    .build()
                    .expect("defaults"),
            )),
        ),
        ("paceline, paced", paced(&Pacing::new(Adaptive::paced()))),
    ];
    let cases = cases.map(|(name, config)| (name, Client::from_conf(config.build())));
    let mut figures = [(u128::MAX, u128::MAX); 5];
    for _ in 0..ROUNDS {
        for ((_, client), (one, two)) in cases.iter().zip(&mut figures) {
            *one = measure(client, 1).min(*one);
            *two = measure(client, 2).min(*two);
        }
    }
    println!("| client | ns a request | of bare | two threads, over one |\n|---|---|---|---|");
    for ((name, _), (one, two)) in cases.iter().zip(figures) {
        let bare = figures[0].0;
        println!(
            "| {name} | {one} | {} | {} |",
            ratio(one, bare),
            ratio(one, two)
        );
    }
}
