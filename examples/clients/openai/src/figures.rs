//! What the middleware costs a stream: the time to its first byte, and a body of a gigabyte.

use core::{convert::Infallible, iter, time::Duration};
use std::{error::Error, fs, time::Instant};

use bytes::Bytes;
use futures_util::stream;
use http_body_util::StreamBody;
use hyper::{
    Request, Response,
    body::{Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use paceline_reqwest::ModelPacing;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use tokio::net::TcpListener;

const REQUESTS: usize = 2_000;
const PIECE: usize = 1 << 20;
const PIECES: usize = 1 << 10;

/// Answers `/stream` with a short stream of events, and anything else with a gigabyte of JSON whose
/// usage is at its end.
async fn start() -> Result<String, Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _held_back = stream.set_nodelay(true);
            tokio::spawn(async move {
                let serve = service_fn(|request: Request<Incoming>| async move {
                    let is_stream = request.uri().path() == "/stream";
                    let usage = "{\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3}}";
                    let pieces: Vec<Bytes> = if is_stream {
                        let delta = "data: {\"delta\":{\"content\":\"Hi\"}}\n\n";
                        vec![delta.into(), format!("data: {usage}\n\n").into()]
                    } else {
                        let filler = Bytes::from("0.12345,".repeat(PIECE / 8));
                        let end = format!("0],{}", usage.trim_start_matches('{'));
                        iter::once(Bytes::from("{\"data\":["))
                            .chain(iter::repeat_n(filler, PIECES))
                            .chain([end.into()])
                            .collect()
                    };
                    let frames = pieces.into_iter().map(|piece| Ok(Frame::data(piece)));
                    let body = StreamBody::new(stream::iter(
                        frames.map(|frame: Result<_, Infallible>| frame),
                    ));
                    let kind = if is_stream {
                        "text/event-stream"
                    } else {
                        "application/json"
                    };
                    Response::builder().header("content-type", kind).body(body)
                });
                let _closed = http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), serve)
                    .await;
            });
        }
    });
    Ok(url)
}

/// The time from a request to the first byte of its answer.
async fn first_byte(client: &ClientWithMiddleware, url: &str) -> Result<Duration, Box<dyn Error>> {
    let request = client.post(format!("{url}/stream")).body("{}");
    let begun = Instant::now();
    let mut response = request.send().await?;
    let first = response.chunk().await?;
    let span = begun.elapsed();
    assert!(first.is_some_and(|piece| !piece.is_empty()));
    while response.chunk().await?.is_some() {}
    Ok(span)
}

/// Reads the gigabyte, and returns its length and the time.
async fn whole(
    client: &ClientWithMiddleware,
    url: &str,
) -> Result<(usize, Duration), Box<dyn Error>> {
    let begun = Instant::now();
    let mut response = client.post(url).body("{}").send().await?;
    let mut length = 0;
    while let Some(piece) = response.chunk().await? {
        length += piece.len();
    }
    Ok((length, begun.elapsed()))
}

/// The most memory that the process has had, in kB, where the system says so.
fn peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

pub(crate) async fn print() -> Result<(), Box<dyn Error>> {
    let url = start().await?;
    let bare = reqwest::Client::builder().no_proxy().build()?;
    let pacing = ModelPacing::per_minute(60_000_000, 600_000_000)?;
    let clients = [
        ClientBuilder::new(bare.clone()).build(),
        ClientBuilder::new(bare).with(pacing.clone()).build(),
    ];
    let mut spans = [const { Vec::new() }; 2];
    // Alternately, so that both see the same machine.
    for _ in 0..REQUESTS {
        for (client, spans) in clients.iter().zip(&mut spans) {
            spans.push(first_byte(client, &url).await?);
        }
    }
    println!("| first byte of a stream | median | 99 of 100 |\n|---|---|---|");
    for (who, mut spans) in ["without", "with"].into_iter().zip(spans) {
        spans.sort_unstable();
        let [median, late] = [spans.len() / 2, spans.len() * 99 / 100].map(|at| spans[at]);
        println!("| {who} | {median:.1?} | {late:.1?} |");
    }
    let settled = pacing.snapshot().settled;
    println!("\n| a body of 1 GB | time | memory |\n|---|---|---|");
    for (who, client) in ["without", "with"].into_iter().zip(&clients) {
        let before = peak();
        let (length, span) = whole(client, &url).await?;
        let more = peak().zip(before).map(|(after, before)| after - before);
        let more = more.map_or("–".to_owned(), |more| format!("{more} kB more"));
        println!("| {who} | {span:.2?} | {more} |");
        if length < PIECES * PIECE {
            return Err("the body is cut".into());
        }
    }
    let counted = pacing.snapshot().settled - settled;
    if counted != 1 {
        return Err("the usage at the end of the body was not settled".into());
    }
    Ok(())
}
