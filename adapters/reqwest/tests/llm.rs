//! Language models: estimates, usage in bodies and streams, hostile bodies, and what is sent again.
//! Against a server on loopback that sends each piece when the test says so.
#![cfg(feature = "llm")]
#![expect(
    clippy::float_arithmetic,
    clippy::float_cmp,
    reason = "whole tokens, by a clock that stands"
)]

mod support;

extern crate alloc;

use alloc::sync::Arc;
use core::time::Duration;
use std::sync::Mutex;

use bytes::Bytes;
use kit::{Always, BROKEN, OK, SLOW_DOWN, Said, Server};
use paceline::{Adaptive, Class, Failure, Idempotency, classify::HttpResponseParts};
use paceline_reqwest::{ClientService, ModelLimit, ModelPacing, ModelSnapshot, Tokens};
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, RequestBuilder};
use support::{bare, status};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::mpsc,
    task::JoinHandle,
};
use tower_service::Service as _;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream; charset=utf-8";

fn client_of(pacing: &ModelPacing) -> ClientWithMiddleware {
    let bare = bare().build().expect("a client");
    ClientBuilder::new(bare).with(pacing.clone()).build()
}

/// Answers each connection's request with the pieces that come, as a body in chunks, until there
/// are no more. A piece of none breaks the connection.
struct Model {
    url: String,
    pieces: mpsc::UnboundedSender<Option<Bytes>>,
    task: JoinHandle<()>,
}

impl Model {
    async fn start(kind: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/v1", listener.local_addr().expect("it is bound"));
        let (pieces, mut coming) = mpsc::unbounded_channel::<Option<Bytes>>();
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = Vec::new();
                while !request.ends_with(b"}") {
                    let mut buffer = [0; 4_096];
                    let read = stream.read(&mut buffer).await.expect("a request");
                    request.extend_from_slice(&buffer[..read]);
                }
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n"
                );
                stream.write_all(head.as_bytes()).await.expect("a client");
                while let Some(piece) = coming.recv().await {
                    let Some(piece) = piece else { break };
                    let head = format!("{:x}\r\n", piece.len());
                    let sent = [head.as_bytes(), &piece, b"\r\n"].concat();
                    if stream.write_all(&sent).await.is_err() || piece.is_empty() {
                        break;
                    }
                }
            }
        });
        Self { url, pieces, task }
    }

    fn send(&self, piece: impl Into<Bytes>) {
        self.pieces.send(Some(piece.into())).expect("a server");
    }

    /// Ends the body as it ought to.
    fn end(&self) {
        self.send("");
    }

    fn break_off(&self) {
        self.pieces.send(None).expect("a server");
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A limit that never makes a request wait, of which the bucket holds 100,000 tokens.
fn ample() -> ModelPacing {
    ModelPacing::per_minute(60_000, 600_000).expect("in range")
}

/// Asks for 100 tokens by a prompt of 400 bytes, and 700 of an answer.
fn ask(client: &ClientWithMiddleware, url: &str) -> RequestBuilder {
    let prompt = "x".repeat(400 - 31);
    client
        .post(url)
        .body(format!(r#"{{"prompt":"{prompt}","max_tokens":700}}"#))
}

/// What is gone of the bucket of tokens.
fn spent(before: &ModelSnapshot, after: &ModelSnapshot) -> f64 {
    let available = |snapshot: &ModelSnapshot| {
        let rate = snapshot.strategy.further_rates[0];
        rate.expect("it counts tokens").available
    };
    available(before) - available(after)
}

fn counts(pacing: &ModelPacing) -> [u64; 4] {
    let seen = pacing.snapshot();
    [seen.settled, seen.without_usage, seen.wrong_usage, seen.cut]
}

/// A strategy whose clock stands: what is spent stays spent.
fn stopped() -> ModelPacing {
    let strategy = Adaptive::builder()
        .per_minute(60_000, 600_000)
        .expect("in range")
        .clock(Arc::new(paceline::Timestamp::from_nanos(1)))
        .build()
        .expect("in range");
    ModelPacing::new(strategy, [ModelLimit::Requests, ModelLimit::Tokens])
}

/// Sends one request, reads what the model sends in `pieces`, and returns the body, the tokens that
/// are spent, and the counts.
async fn read(kind: &'static str, pieces: &[&str]) -> (String, f64, [u64; 4]) {
    let (model, pacing) = (Model::start(kind).await, stopped());
    let client = client_of(&pacing);
    let before = pacing.snapshot();
    for piece in pieces {
        model.send(piece.to_string());
    }
    model.end();
    let response = ask(&client, &model.url).send().await.expect("an answer");
    assert_eq!(spent(&before, &pacing.snapshot()), 800.0, "the estimate");
    let body = response.text().await.expect("a body");
    (body, spent(&before, &pacing.snapshot()), counts(&pacing))
}

const SETTLED: [u64; 4] = [1, 0, 0, 0];
const WITHOUT: [u64; 4] = [0, 1, 0, 0];
const WRONG: [u64; 4] = [0, 0, 1, 0];
const CUT: [u64; 4] = [0, 0, 0, 1];

#[tokio::test]
async fn the_usage_in_a_body_replaces_the_estimate() {
    let pieces = [
        r#"{"choices": [{"message": {"content": "Hi"}}], "usa"#,
        r#"ge": {"prompt_tokens": 90, "completion_tok"#,
        r#"ens": 1200, "total_tokens": 1290}}"#,
    ];
    let expected = (pieces.concat(), 1_290.0, SETTLED);
    assert_eq!(read(JSON, &pieces).await, expected);
}

#[tokio::test]
async fn the_usage_in_a_stream_replaces_the_estimate() {
    let openai = [
        "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}],\"usage\":null}\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion",
        "_tokens\":3,\"total_tokens\":12}}\n\ndata: [DONE]\n\n",
    ];
    let anthropic = [
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":25,\"output_tokens\":1}}}\n\n",
        "event: content_block_delta\ndata: {\"delta\":{\"text\":\"Hi\"}}\n\n",
        "event: message_delta\ndata: {\"delta\":{},\"usage\":{\"output_tokens\":15}}\n\n",
    ];
    let expected = (openai.concat(), 12.0, SETTLED);
    assert_eq!(read(EVENTS, &openai).await, expected);
    let expected = (anthropic.concat(), 40.0, SETTLED);
    assert_eq!(read(EVENTS, &anthropic).await, expected);
}

/// The client has each piece before the server sends the next one: nothing is held back.
#[tokio::test]
async fn a_stream_passes_on_as_it_comes() {
    let (model, pacing) = (Model::start(EVENTS).await, ample());
    let answer = ask(&client_of(&pacing), &model.url).send().await;
    let mut answer = answer.expect("the head, before any piece of the body");
    for n in 0..20 {
        let piece = format!("data: {{\"delta\":{{\"content\":\"{n}\"}}}}\n\n");
        model.send(piece.clone());
        let got = answer.chunk().await.expect("a piece");
        assert_eq!(got, Some(piece.into()));
    }
    model.end();
    assert_eq!(answer.chunk().await.expect("the end"), None);
}

/// What is not known to have been used stays spent, or what was streamed if that is more.
#[tokio::test]
async fn a_dropped_stream_keeps_the_estimate_or_more() {
    let begun = "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":150,\"output_tokens\":1}}}\n\n";
    let text = format!(
        "data: {{\"delta\":{{\"text\":\"{}\"}}}}\n\n",
        "x".repeat(4_000)
    );
    let usage = "data: {\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3}}\n\n";
    let cases = [
        ("data: {}\n\n", 800.0, CUT),
        (begun, 850.0, CUT),
        (&text, 1_100.0, CUT),
        (usage, 12.0, SETTLED),
    ];
    for (piece, tokens, counted) in cases {
        for breaks in [false, true] {
            let (model, pacing) = (Model::start(EVENTS).await, stopped());
            let before = pacing.snapshot();
            let answer = ask(&client_of(&pacing), &model.url).send().await;
            let mut answer = answer.expect("an answer");
            model.send(piece.to_owned());
            let mut length = 0;
            while length < piece.len() {
                let chunk = answer.chunk().await.expect("a piece");
                length += chunk.expect("it has not ended").len();
            }
            if breaks {
                model.break_off();
                assert!(answer.chunk().await.is_err());
            }
            drop(answer);
            let spent = spent(&before, &pacing.snapshot());
            assert_eq!(
                (spent, counts(&pacing)),
                (tokens, counted),
                "{piece} {breaks}"
            );
        }
    }
}

#[tokio::test]
async fn a_hostile_body_comes_as_it_is_and_is_counted() {
    let cases = [
        (JSON, "", WITHOUT),
        (JSON, "<html>busy</html>", WITHOUT),
        (JSON, "{\"choices\": []}", WITHOUT),
        (
            JSON,
            "{\"usage\": {\"prompt_tokens\": -1, \"completion_tokens\": 2}}",
            WRONG,
        ),
        (JSON, "{\"usage\": {\"total_tokens\": 4000000000}}", WRONG),
        (JSON, "{\"usage\": {\"total_tokens\": \"9\"}}", WRONG),
        (JSON, "{\"usage\": {\"prompt_tokens\": 1", WITHOUT),
        (EVENTS, "data: {{{{[[[[\"\n\ndata: \u{1f600}\n\n", WITHOUT),
        ("image/png", "{\"usage\": {\"total_tokens\": 9}}", WITHOUT),
    ];
    for (kind, body, counted) in cases {
        // A body of nothing is its end.
        let pieces: &[&str] = if body.is_empty() { &[] } else { &[body] };
        let seen = read(kind, pieces).await;
        assert_eq!(seen, (body.to_owned(), 800.0, counted), "{body}");
    }
}

/// More than any buffer would hold, with the usage at its end.
#[tokio::test]
async fn a_body_of_any_length_is_settled() {
    let (model, pacing) = (Model::start(JSON).await, stopped());
    let before = pacing.snapshot();
    let answer = ask(&client_of(&pacing), &model.url).send().await;
    let mut answer = answer.expect("an answer");
    let filler = Bytes::from("0.125,".repeat(100_000));
    model.send("{\"data\":[");
    for _ in 0..10 {
        model.send(filler.clone());
    }
    model.send("0],\"usage\":{\"prompt_tokens\":90,\"total_tokens\":90}}");
    model.end();
    let mut length = 0;
    while let Some(chunk) = answer.chunk().await.expect("a piece") {
        length += chunk.len();
    }
    drop(answer);
    assert_eq!(length, 9 + 10 * 600_000 + 50);
    assert_eq!(spent(&before, &pacing.snapshot()), 90.0);
    assert_eq!(counts(&pacing), SETTLED);
}

#[tokio::test]
async fn the_estimate_can_be_replaced() {
    let server = Server::with(&[OK]).await;
    let cases = [
        (stopped(), None, 800.0),
        (stopped(), Some(Tokens::new(7, 4)), 11.0),
        (
            stopped().estimate_by(|_| Some(Tokens::new(20, 5))),
            None,
            25.0,
        ),
        (stopped().estimate_by(|_| None), None, 800.0),
    ];
    for (pacing, own, expected) in cases {
        let client = client_of(&pacing);
        let before = pacing.snapshot();
        let mut request = ask(&client, &server.url);
        if let Some(own) = own {
            request = request.with_extension(own);
        }
        assert_eq!(status(request.send().await), 200);
        assert_eq!(spent(&before, &pacing.snapshot()), expected);
    }
    // Without a body it takes a request, and no tokens.
    let pacing = stopped();
    let before = pacing.snapshot();
    assert_eq!(
        status(client_of(&pacing).get(&server.url).send().await),
        200
    );
    assert_eq!(spent(&before, &pacing.snapshot()), 0.0);
}

/// Headers of Anthropic's, with input and output apart.
#[tokio::test]
async fn input_and_output_are_counted_apart() {
    let pacing = ModelPacing::per_minute_apart(60_000, 600_000, 300_000).expect("in range");
    let before = pacing.snapshot();
    let model = Model::start(JSON).await;
    model.send("{\"usage\":{\"input_tokens\":5000,\"output_tokens\":9000}}");
    model.end();
    let answer = ask(&client_of(&pacing), &model.url).send().await;
    answer.expect("an answer").text().await.expect("a body");
    let after = pacing.snapshot();
    let spent = |rate: usize| {
        let available = |snapshot: &ModelSnapshot| {
            let rate = snapshot.strategy.further_rates[rate];
            rate.expect("it has three").available
        };
        available(&before) - available(&after)
    };
    // The buckets fill meanwhile: by 10 and 5 tokens a millisecond.
    assert!((3_000.0..=5_000.0).contains(&spent(0)), "{}", spent(0));
    assert!((8_000.0..=9_000.0).contains(&spent(1)), "{}", spent(1));
    assert_eq!((after.input_tokens, after.output_tokens), (5_000, 9_000));
}

#[tokio::test]
async fn the_headers_limits_are_kept() {
    let openai = "application/json\r\nx-ratelimit-limit-tokens: 5000\r\n\
                  x-ratelimit-remaining-tokens: 4321\r\nx-ratelimit-reset-tokens: 8s";
    let anthropic = "application/json\r\nanthropic-ratelimit-output-tokens-limit: 5000\r\n\
                     anthropic-ratelimit-output-tokens-remaining: 4321";
    let cases = [
        (ModelPacing::declared(), openai, 0),
        (ModelPacing::declared_apart(), anthropic, 1),
    ];
    for (pacing, head, rate) in cases {
        let model = Model::start(head).await;
        model.end();
        let answer = ask(&client_of(&pacing), &model.url).send().await;
        assert_eq!(status(answer), 200);
        let rate = pacing.snapshot().strategy.further_rates[rate];
        let declared = rate.expect("it has one").declared;
        assert_eq!(
            declared.map(|declared| declared.limit),
            Some(5_000),
            "{head}"
        );
    }
}

/// As the SDKs of `OpenAI` and Anthropic do.
#[tokio::test]
async fn posts_are_sent_again_as_the_makers_sdks_do() {
    const NO: Said = BROKEN.header(("x-should-retry", "false"));
    const YES: Said = Said::new(400).header(("x-should-retry", "true"));
    const USED_UP: Said = SLOW_DOWN.body("{\"error\": {\"code\": \"insufficient_quota\"}}");
    let mut cases = vec![(NO, 1), (YES, 2), (USED_UP, 1), (Said::RESET, 2)];
    for code in [408, 409, 429, 500, 501, 502, 503, 504, 507, 529] {
        cases.push((Said::new(code), 2));
    }
    for code in [400, 401, 403, 404, 413, 422] {
        cases.push((Said::new(code), 1));
    }
    for (answer, sends) in cases {
        let server = Server::with(&[answer, OK]).await;
        let strategy = Adaptive::builder()
            .per_minute(60_000, 600_000)
            .expect("in range")
            .backoff(Arc::new(Always(Duration::ZERO)))
            .build()
            .expect("in range");
        let limits = [ModelLimit::Requests, ModelLimit::Tokens];
        let client = client_of(&ModelPacing::new(strategy, limits));
        let _answer = ask(&client, &server.url).send().await;
        assert_eq!(server.requests(), sends, "{answer:?}");
    }
    // The caller has the last word.
    let server = Server::with(&[BROKEN, OK]).await;
    let request = ask(&client_of(&ample()), &server.url);
    let request = request.with_extension(Idempotency::NotIdempotent);
    assert_eq!(status(request.send().await), 500);
    let pacing = ample().classifier(|answer: &HttpResponseParts<'_>| {
        (answer.status() == 200).then(Failure::not_retryable)
    });
    let answer = ask(&client_of(&pacing), &server.url).send().await;
    assert_eq!(status(answer), 200);
}

#[tokio::test]
async fn clones_share_limits_and_differ_in_class() {
    let server = Server::with(&[OK]).await;
    let chat = ModelPacing::per_minute(60, 60).expect("in range");
    let batch = chat.clone().class(Class::Background);
    let (chatting, working) = (client_of(&chat), client_of(&batch));
    // The first takes all 10 tokens of the bucket.
    let heavy = Tokens::new(10, 0);
    let first = chatting.post(&server.url).with_extension(heavy).send();
    assert_eq!(status(first.await), 200);
    let light = Tokens::new(1, 0);
    let waiting = working.post(&server.url).with_extension(light).send();
    assert_eq!(status(waiting.await), 200);
    let strategy = chat.snapshot().strategy;
    assert_eq!(strategy.counts.delayed_background, 1, "{strategy}");
}

/// A client as a service of whatever becomes a request, as async-openai wants it.
#[tokio::test]
async fn a_client_is_a_service_of_what_becomes_a_request() {
    type BoxError = Box<dyn core::error::Error + Send + Sync>;
    let server = Server::with(&[OK]).await;
    let built = Arc::new(Mutex::new(0));
    let client = client_of(&ample());
    let (noted, made) = (built.clone(), client.clone());
    let service = ClientService::new(client, move |url: String| {
        *noted.lock().expect("no test panicked in here") += 1;
        let request = made.get(url).build();
        async move { request.map_err(BoxError::from) }
    });
    let mut clone = service.clone();
    let answer = clone.call(server.url.clone()).await.expect("an answer");
    assert_eq!(answer.status(), 200);
    assert!(clone.call("nowhere".to_owned()).await.is_err());
    assert_eq!(*built.lock().expect("no test panicked in here"), 2);
}

/// The response is as it came in all else.
#[tokio::test]
async fn the_response_is_as_it_came() {
    let server = Server::with(&[OK.body("{\"usage\":{\"total_tokens\":9}}")]).await;
    let pacing = ample();
    let answer = ask(&client_of(&pacing), &server.url).send().await;
    let answer = answer.expect("an answer");
    assert_eq!(answer.url().as_str(), server.url);
    assert_eq!(answer.content_length(), Some(28));
    assert!(answer.remote_addr().is_some());
    let kind = answer.headers().get(CONTENT_TYPE);
    assert_eq!(kind.map(HeaderValue::as_bytes), None);
    assert_eq!(answer.text().await.expect("a body").len(), 28);
    assert_eq!(counts(&pacing), SETTLED);
}
