#![doc = include_str!("../README.md")]

extern crate alloc;

mod figures;
#[path = "../../../common/policer.rs"]
#[allow(dead_code, reason = "shared with other examples")]
mod policer;
mod service;

use alloc::sync::Arc;
use core::{
    error::Error,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};
use std::env;

use async_openai::{
    Client,
    config::OpenAIConfig,
    middleware::{HttpRequestFactory, ReqwestService},
    types::chat::CreateChatCompletionRequest,
};
use futures_util::StreamExt as _;
use paceline_reqwest::{ClientService, ModelPacing};
use reqwest_middleware::ClientBuilder;
use serde_json::json;
use service::{Ledger, MINUTE, Service, TOKENS};
use tokio::task::JoinSet;

const WORKERS: usize = 64;

type OpenAi = Client<OpenAIConfig>;

/// The three lines.
fn paced(config: OpenAIConfig, bare: reqwest::Client) -> (OpenAi, ModelPacing) {
    let pacing = ModelPacing::declared(); // 1
    let client = ClientBuilder::new(bare).with(pacing.clone()).build(); // 2
    let service = ClientService::new(client, |request: HttpRequestFactory| async move {
        request.build().await
    });
    (
        Client::with_config(config).with_http_service(service),
        pacing,
    ) // 3
}

#[derive(Clone, Copy, Debug)]
struct Job {
    estimate: u64,
    output: u64,
    streams: bool,
    drops: bool,
}

/// A sequence of numbers from 0 to 1 that looks random, for each seed.
fn unit(seed: u64, n: u64) -> f64 {
    let mut x = (seed << 32 | n)
        .wrapping_add(0x9e37_79b9_7f4a_7c15)
        .wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ x >> 31) >> 11) as f64 / (1_u64 << 53) as f64
}

fn jobs(scene: &str, seed: u64) -> Vec<Job> {
    let count = if scene == "heavy" { 4_000 } else { 1_600 };
    let between = |low: f64, high: f64, n: u64| low * (high / low).powf(unit(seed, n));
    let job = |n: u64| {
        let (estimate, wrong) = match scene {
            "heavy" if n % 100 == 50 => (100_000.0, 1.0),
            "heavy" => (100.0, 1.0),
            _ => (
                between(150.0, 4_000.0, 2 * n),
                between(1.0 / 3.0, 3.0, 2 * n + 1),
            ),
        };
        let prompt = estimate / 3.0;
        Job {
            estimate: estimate as u64,
            output: (estimate * wrong - prompt).max(1.0) as u64,
            streams: n % 2 == 1,
            drops: scene == "drops" && n % 10 == 1,
        }
    };
    (0..count).map(job).collect()
}

/// Sends one request, and returns whether it was answered.
async fn send(openai: &OpenAi, job: Job) -> bool {
    // Four bytes a token, of which the frame of the request takes 160.
    let length = (job.estimate / 3 * 4).saturating_sub(160);
    let text = format!(
        "{} {}",
        job.output,
        "x".repeat(usize::try_from(length).unwrap_or(0))
    );
    let request: CreateChatCompletionRequest = serde_json::from_value(json!({
        "model": "m",
        "max_completion_tokens": job.estimate * 2 / 3,
        "messages": [{"role": "user", "content": text}],
        "stream_options": if job.streams { json!({"include_usage": true}) } else { json!(null) },
    }))
    .expect("a request");
    if !job.streams {
        return openai.chat().create(request).await.is_ok();
    }
    let Ok(mut stream) = openai.chat().create_stream(request).await else {
        return false;
    };
    let mut pieces = 0;
    while let Some(piece) = stream.next().await {
        if piece.is_err() {
            return false;
        }
        pieces += 1;
        if job.drops && pieces == 3 {
            break;
        }
    }
    true
}

/// Of the limit of tokens, what was used from the third minute until the last request was let in.
fn used(ledger: &Ledger) -> Option<f64> {
    let (from, to) = (MINUTE * 2, ledger.last_admitted);
    let span = to.checked_sub(from).filter(|span| *span > MINUTE)?;
    let within = ledger
        .taken
        .iter()
        .filter(|(at, _)| (from..=to).contains(at));
    let tokens: i64 = within.map(|(_, tokens)| tokens).sum();
    Some(tokens as f64 / (TOKENS as f64 * span.as_secs_f64() / MINUTE.as_secs_f64()))
}

async fn run(mode: &str, scene: &str, seed: u64) -> Result<(), Box<dyn Error>> {
    let (service, url) = Service::start().await?;
    let config = OpenAIConfig::new().with_api_base(url).with_api_key("none");
    let bare = reqwest::Client::builder().no_proxy().build()?;
    let mut pacing = None;
    let openai = match mode {
        "bare" => Client::with_config(config).with_http_service(ReqwestService::new(bare)),
        "own" => Client::with_config(config).with_http_client(bare),
        _ => {
            let (openai, its) = paced(config, bare);
            pacing = Some(its);
            openai
        }
    };
    let jobs = Arc::new(jobs(scene, seed));
    let next = Arc::new(AtomicUsize::new(0));
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        let (openai, jobs, next) = (openai.clone(), Arc::clone(&jobs), Arc::clone(&next));
        workers.spawn(async move {
            let mut done = 0_usize;
            // Relaxed: a number is taken, and nothing is handed over with it.
            while let Some(job) = jobs.get(next.fetch_add(1, Relaxed)) {
                done += usize::from(send(&openai, *job).await);
            }
            done
        });
    }
    let done: usize = workers.join_all().await.into_iter().sum();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let ledger = service.ledger();
    let throttled = ledger.throttled as f64 / ledger.sent as f64 * 100.0;
    let share = used(&ledger);
    let used = share.map_or("–".to_owned(), |used| format!("{used:.3}"));
    let (failed, sent) = (jobs.len() - done, ledger.sent);
    println!(
        "| {scene} | {mode} | {seed} | {done} | {failed} | {sent} | {throttled:.1} % | {used} |"
    );
    if let Some(pacing) = pacing {
        let seen = pacing.snapshot();
        eprintln!(
            "{} settled, {} cut, {} without usage, {} wrong",
            seen.settled, seen.cut, seen.without_usage, seen.wrong_usage
        );
    }
    if mode == "paceline" && (ledger.throttled > 0 || failed > 0 || share < Some(0.97)) {
        return Err("it was throttled, or left too much of the limit".into());
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let mode = args.next().unwrap_or("paceline".to_owned());
    if mode == "figures" {
        return figures::print().await;
    }
    let scene = args.next().unwrap_or("plain".to_owned());
    let seed = args.next().map_or(Ok(1), |seed| seed.parse())?;
    run(&mode, &scene, seed).await
}
