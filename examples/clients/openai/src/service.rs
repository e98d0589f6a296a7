//! A stub of a service: limits on requests and tokens a minute, JSON and streams.

use alloc::sync::Arc;
use core::{convert::Infallible, time::Duration};
use std::{
    io,
    sync::{Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    Request, Response, StatusCode,
    body::{Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    time::{Instant, sleep},
};

use crate::policer::{Counting, Policer};

pub(crate) const REQUESTS: u64 = 1_000;
pub(crate) const TOKENS: u64 = 300_000;
/// A minute of the service.
pub(crate) const MINUTE: Duration = Duration::from_millis(2_500);
/// The pieces of a stream.
const PIECES: u32 = 10;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// What the service has counted.
#[derive(Debug)]
pub(crate) struct Service {
    opened: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    requests: Policer,
    tokens: Policer,
    ledger: Ledger,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) sent: u64,
    pub(crate) throttled: u64,
    /// When tokens were taken or given back.
    pub(crate) taken: Vec<(Duration, i64)>,
    pub(crate) last_admitted: Duration,
}

/// What a request costs: by its estimate, in the prompt, and in the answer.
#[derive(Clone, Copy, Debug)]
struct Cost {
    estimate: i64,
    input: i64,
    output: i64,
}

impl Cost {
    /// The prompt begins with the tokens of the answer.
    fn of(body: &[u8]) -> Option<(Self, bool)> {
        let json: Value = serde_json::from_slice(body).ok()?;
        let prompt = json.pointer("/messages/0/content")?.as_str()?;
        let output = prompt.split(' ').next()?.parse().ok()?;
        let most = json.get("max_completion_tokens")?.as_i64()?;
        let input = i64::try_from(body.len()).ok()? / 4;
        let estimate = input + most;
        let streams = json.get("stream").and_then(Value::as_bool);
        let this = Self {
            estimate,
            input,
            output,
        };
        Some((this, streams.unwrap_or(false)))
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

impl Service {
    pub(crate) async fn start() -> io::Result<(Arc<Self>, String)> {
        let bucket = |limit| Policer::new(Counting::Refill, nanos(MINUTE), None, limit);
        let this = Arc::new(Self {
            opened: Instant::now(),
            state: Mutex::new(State {
                requests: bucket(REQUESTS),
                tokens: bucket(TOKENS),
                ledger: Ledger::default(),
            }),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/v1", listener.local_addr()?);
        let service = Arc::clone(&this);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let _held_back = stream.set_nodelay(true);
                let service = Arc::clone(&service);
                tokio::spawn(async move {
                    let serve = service_fn(|request| {
                        let service = Arc::clone(&service);
                        async move { Ok::<_, Infallible>(service.serve(request).await) }
                    });
                    let _closed = http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), serve)
                        .await;
                });
            }
        });
        Ok((this, url))
    }

    pub(crate) fn ledger(&self) -> Ledger {
        self.state().ledger.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn serve(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let body = request.into_body().collect().await;
        let body = body.map(|body| body.to_bytes()).unwrap_or_default();
        let Some((cost, streams)) = Cost::of(&body) else {
            return response(
                StatusCode::BAD_REQUEST,
                &json!({"error": {"message": "what?"}}),
            );
        };
        let (wait, headers) = self.admit(cost);
        let mut answer = if wait.is_zero() {
            let taken = Taken {
                service: Arc::clone(&self),
                cost,
                generated: 0,
            };
            if streams {
                taken.stream()
            } else {
                taken.json().await
            }
        } else {
            let millis = wait.as_millis() + 1;
            let error = json!({"error": {"message": "slow down", "type": "tokens", "code": "rate_limit_exceeded"}});
            let mut answer = response(StatusCode::TOO_MANY_REQUESTS, &error);
            let headers = answer.headers_mut();
            headers.insert(
                "retry-after-ms",
                millis.to_string().parse().expect("digits"),
            );
            let seconds = millis.div_ceil(1_000).to_string();
            headers.insert("retry-after", seconds.parse().expect("digits"));
            answer
        };
        for (name, value) in headers {
            let name = hyper::header::HeaderName::from_bytes(name.as_bytes()).expect("a name");
            answer
                .headers_mut()
                .insert(name, value.parse().expect("a value"));
        }
        answer
    }

    /// Takes a request and its estimate if they are there. Returns the wait, if they are not, and
    /// the headers.
    fn admit(&self, cost: Cost) -> (Duration, Vec<(String, String)>) {
        let now = self.opened.elapsed();
        let State {
            requests,
            tokens,
            ledger,
        } = &mut *self.state();
        requests.look(nanos(now), REQUESTS);
        tokens.look(nanos(now), TOKENS);
        let estimate = u64::try_from(cost.estimate).unwrap_or(0);
        let wait = requests
            .until(1, REQUESTS)
            .max(tokens.until(estimate, TOKENS));
        ledger.sent += 1;
        if wait == 0 {
            requests.take(1_u8);
            tokens.take(cost.estimate);
            ledger.taken.push((now, cost.estimate));
            ledger.last_admitted = now;
        } else {
            ledger.throttled += 1;
        }
        let mut headers = Vec::new();
        for (name, limit, policer) in [("requests", REQUESTS, requests), ("tokens", TOKENS, tokens)]
        {
            let reset = Duration::from_nanos(policer.until(limit, limit)).as_millis();
            let mut put = |what: &str, value: String| {
                headers.push((format!("x-ratelimit-{what}-{name}"), value));
            };
            put("limit", limit.to_string());
            put("remaining", policer.left(limit).to_string());
            put("reset", format!("{reset}ms"));
        }
        (Duration::from_nanos(wait), headers)
    }
}

/// A request that was let in. Dropped, it is counted by what was generated.
struct Taken {
    service: Arc<Service>,
    cost: Cost,
    generated: i64,
}

impl Taken {
    /// A second of the minute, and a 240th of a second for each token.
    fn piece(&self) -> Duration {
        let parts = 240
            + u32::try_from(self.cost.output)
                .unwrap_or(u32::MAX)
                .min(20_000);
        MINUTE / 14_400 * parts / PIECES
    }

    fn usage(&self) -> Value {
        let Cost { input, output, .. } = self.cost;
        json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output})
    }

    async fn json(mut self) -> Response<Body> {
        sleep(self.piece() * PIECES).await;
        self.generated = self.cost.output;
        let message = json!({"role": "assistant", "content": "Hi"});
        let body = json!({
            "id": "1", "object": "chat.completion", "created": 1, "model": "m", "usage": self.usage(),
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        });
        response(StatusCode::OK, &body)
    }

    fn stream(self) -> Response<Body> {
        let pieces = stream::unfold((self, 0), |(mut taken, n)| async move {
            let piece = match n {
                0..PIECES => {
                    sleep(taken.piece()).await;
                    taken.generated = taken.cost.output * i64::from(n + 1) / i64::from(PIECES);
                    let choice =
                        json!({"index": 0, "delta": {"content": "Hi"}, "finish_reason": null});
                    chunk(&json!([choice]), &Value::Null)
                }
                PIECES => chunk(&json!([]), &taken.usage()),
                11 => "data: [DONE]\n\n".to_owned(),
                _ => return None,
            };
            let frame = Ok::<_, Infallible>(Frame::data(Bytes::from(piece)));
            Some((frame, (taken, n + 1)))
        });
        let response = Response::builder().header("content-type", "text/event-stream");
        let body = BodyExt::boxed_unsync(StreamBody::new(pieces));
        response.body(body).expect("a response")
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let Cost {
            estimate, input, ..
        } = self.cost;
        let more = input + self.generated - estimate;
        let now = self.service.opened.elapsed();
        let State { tokens, ledger, .. } = &mut *self.service.state();
        tokens.look(nanos(now), TOKENS);
        tokens.take(more);
        ledger.taken.push((now, more));
    }
}

fn chunk(choices: &Value, usage: &Value) -> String {
    let chunk = json!({
        "id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": choices, "usage": usage,
    });
    format!("data: {chunk}\n\n")
}

fn response(status: StatusCode, body: &Value) -> Response<Body> {
    let response = Response::builder().status(status);
    let response = response.header("content-type", "application/json");
    let body = Full::new(Bytes::from(body.to_string()));
    response.body(body.boxed_unsync()).expect("a response")
}
