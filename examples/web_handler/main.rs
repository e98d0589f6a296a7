//! A web handler that sheds load: a request that cannot be served soon is refused at once, with the
//! time to retry.
//!
//! Every request needs a call of an upstream service, which allows 100 calls a second and throttles
//! the rest. Three times as many requests come in. The handler learns the limit from the
//! throttling; a request whose turn is further off than its caller's patience gets 503 with
//! `Retry-After`, and nothing piles up. Prints a table, and fails if a request went without an
//! answer, or if a busy answer did not say when to come back.
//!
//! ```text
//! cargo run --release -p paceline-examples --bin web_handler
//! ```

extern crate alloc;

#[path = "../common/server.rs"]
mod server;

use alloc::sync::Arc;
use core::{error::Error, net::SocketAddr, time::Duration};
use std::{process::ExitCode, time::Instant};

use http_body_util::Full;
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::RETRY_AFTER,
};
use paceline::{
    Clock, MonotonicClock, Outcome, SendLimiter, SendRate,
    law::{PacedSettings, PacedSettingsError},
};
use tokio::{task::JoinSet, time};

use server::{Serve, Server};

const SECOND: Duration = Duration::from_secs(1);
/// What the upstream service allows in a second.
const ALLOWED: u32 = 100;
/// How long a caller waits for its turn.
const PATIENCE: Duration = Duration::from_millis(200);
/// How many requests come, and how far apart: three times what is allowed, for three seconds.
const REQUESTS: u32 = 900;
const APART: Duration = Duration::from_micros(3_333);

/// Stands for a service elsewhere: it answers in 20 ms, and refuses what is above its limit.
#[derive(Debug)]
struct Upstream(SendLimiter);

impl Upstream {
    fn new() -> Result<Self, PacedSettingsError> {
        let allowed = PacedSettings::fixed(ALLOWED, SECOND)?;
        let limit = SendRate::paced(allowed, MonotonicClock::new().now());
        Ok(Self(SendLimiter::new(Arc::new(limit))))
    }

    async fn call(&self) -> Result<(), Outcome> {
        time::sleep(Duration::from_millis(20)).await;
        let allowed = self.0.token().try_acquire();
        allowed.map(drop).map_err(|_| Outcome::Throttled)
    }
}

#[derive(Debug)]
struct Handler {
    upstream: Upstream,
    /// Follows what the upstream service allows. One for all requests.
    limiter: SendLimiter,
}

impl Handler {
    fn new() -> Result<Self, PacedSettingsError> {
        let rate = SendRate::paced(PacedSettings::new(), MonotonicClock::new().now());
        Ok(Self {
            upstream: Upstream::new()?,
            limiter: SendLimiter::new(Arc::new(rate)),
        })
    }
}

impl Serve for Handler {
    async fn serve(&self, _: Request<Incoming>) -> Response<Full<Bytes>> {
        let permit = match self.limiter.token().within(PATIENCE).acquire().await {
            Ok(permit) => permit,
            Err(refused) => return busy(refused.wait().unwrap_or(SECOND)),
        };
        let answer = self.upstream.call().await;
        let outcome = answer.err().unwrap_or(Outcome::NotThrottled);
        self.limiter.record(permit, outcome);
        match answer {
            Ok(()) => Response::new(Full::from("in stock\n")),
            Err(_) => busy(SECOND),
        }
    }
}

/// Tells the caller to come back after `wait`, in whole seconds as HTTP has it.
fn busy(wait: Duration) -> Response<Full<Bytes>> {
    let seconds = wait.as_millis().div_ceil(1_000).max(1);
    let mut response = Response::new(Full::from("too many requests before this one\n"));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let seconds = u64::try_from(seconds).unwrap_or(u64::MAX);
    response.headers_mut().insert(RETRY_AFTER, seconds.into());
    response
}

/// What a caller saw: the status, whether it was told when to come back, and how long it took.
struct Seen {
    status: StatusCode,
    told: bool,
    took: Duration,
}

async fn callers(address: SocketAddr) -> Result<Vec<Seen>, Box<dyn Error>> {
    let client = reqwest::Client::builder().no_proxy().build()?;
    let mut calls = JoinSet::new();
    let mut next = time::interval(APART);
    for _ in 0..REQUESTS {
        next.tick().await;
        let request = client.get(format!("http://{address}/stock"));
        calls.spawn(async move {
            let began = Instant::now();
            let answer = request.send().await?;
            Ok::<_, reqwest::Error>(Seen {
                status: answer.status(),
                told: answer.headers().contains_key(RETRY_AFTER),
                took: began.elapsed(),
            })
        });
    }
    Ok(calls
        .join_all()
        .await
        .into_iter()
        .collect::<Result<_, _>>()?)
}

fn row(name: &str, seen: &[&Seen]) {
    let mut took: Vec<_> = seen.iter().map(|seen| seen.took.as_millis()).collect();
    took.sort_unstable();
    let half = took.get(took.len() / 2).copied().unwrap_or(0);
    let longest = took.last().copied().unwrap_or(0);
    println!("{name:<10} {:>8} {half:>12} {longest:>12}", took.len());
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let handler = Arc::new(Handler::new()?);
    let server = Server::start(Arc::clone(&handler)).await?;
    let seen = callers(server.address()).await?;

    let (given, shed): (Vec<_>, Vec<_>) = seen.iter().partition(|seen| seen.status.is_success());
    println!("answer     requests   median, ms  longest, ms");
    row("served", &given);
    row("shed", &shed);
    let snapshot = handler
        .limiter
        .send_rate()
        .snapshot(MonotonicClock::new().now());
    println!(
        "in the end the handler sends {:.0} a second; {ALLOWED} are allowed",
        snapshot.fill_rate
    );

    let all_told = shed.iter().all(|seen| seen.told);
    let kept = !given.is_empty() && !shed.is_empty() && all_told;
    Ok(if kept {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
