//! Sixty-four clients of a server that allows ten requests a second, and says 429 to the others.
//!
//! `cargo run --release --example http`, in the adapter's directory.

extern crate alloc;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use core::time::Duration;

use axum::{Router, http::StatusCode};
use http::Request;
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use paceline::{Adaptive, Clock, MonotonicClock, SendRate, law::PacedSettings};
use paceline_tower::{BoxError, RetryLayer};
use tokio::{net::TcpListener, time::Instant};
use tower::{ServiceBuilder, ServiceExt};

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let settings = PacedSettings::fixed(10, Duration::from_secs(1))?;
    let allowed = Arc::new(SendRate::paced(settings, MonotonicClock::new().now()));
    let throttled = Arc::new(AtomicU32::new(0));
    let counted = throttled.clone();
    let app = Router::new().fallback(async move || {
        if allowed.try_acquire(MonotonicClock::new().now()).is_ok() {
            return StatusCode::OK;
        }
        counted.fetch_add(1, Relaxed);
        StatusCode::TOO_MANY_REQUESTS
    });
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", listener.local_addr()?);
    let server = tokio::spawn(async move { axum::serve(listener, app).await });

    let client = ServiceBuilder::new()
        .layer(RetryLayer::http(Adaptive::paced()))
        .service(Client::builder(TokioExecutor::new()).build_http());
    let begun = Instant::now();
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..64 {
        let request = Request::get(&url).body(Empty::<Bytes>::new())?;
        calls.spawn(client.clone().oneshot(request));
    }
    let mut answers = Vec::new();
    while let Some(answer) = calls.join_next().await {
        answers.push(answer?);
    }
    let well = |answer: &&Result<http::Response<_>, _>| matches!(answer, Ok(response) if response.status() == 200);
    println!(
        "{} of 64 in {:.1?}, {} throttled",
        answers.iter().filter(well).count(),
        begun.elapsed(),
        throttled.load(Relaxed)
    );
    server.abort();
    Ok(())
}
