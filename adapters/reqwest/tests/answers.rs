//! What is retried, how often, after how long, and what it costs: against a server on loopback.

mod support;

extern crate alloc;

use alloc::sync::Arc;
use core::time::Duration;

use kit::{Always, BROKEN, OK, OVERLOADED, SECOND, SLOW_DOWN, Said, Server, fixed, standard};
use paceline::{
    Adaptive, Failure, Idempotency, RetryStrategy, Standard,
    classify::HttpResponseParts,
    config::{RetryGeneration, StrategyBuilder},
    law::PacedSettings,
    operation::{OuterAttempt, Stop, StopReason, within_async},
    set::Weights,
    strategy::AttemptCharge,
};
use paceline_reqwest::Pacing;
use reqwest::dns::{Name, Resolve, Resolving};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Error, RequestBuilder};
use support::{bare, client, client_of, status};
use tokio::time::Instant;

const MILLIS: Duration = Duration::from_millis(1);

fn built(builder: StrategyBuilder<Standard>) -> Arc<Standard> {
    Arc::new(builder.build().expect("the settings are in range"))
}

#[tokio::test]
async fn a_status_decides_whether_it_is_sent_again_and_what_that_costs() {
    // Status, sends, quota left of 500.
    let expected = [
        (200, 1, 500),
        (204, 1, 500),
        (400, 1, 500),
        (403, 1, 500),
        (404, 1, 500),
        (408, 3, 472),
        (425, 3, 472),
        (429, 3, 490),
        (500, 3, 472),
        (501, 1, 500),
        (502, 3, 472),
        (503, 3, 490), // overload: the send rate hears of it
        (504, 3, 472),
        (509, 3, 490),
        (520, 3, 472),
        (521, 3, 472),
        (522, 3, 472),
        (523, 3, 472),
        (524, 3, 472),
        (525, 1, 500),
        (529, 3, 490),
        (530, 3, 472),
        (598, 3, 472),
    ];
    for (code, sends, left) in expected {
        let server = Server::with(&[Said::new(code)]).await;
        let strategy = built(standard());
        let answer = client_of(&strategy).get(&server.url).send().await;
        let seen = (
            status(answer),
            server.requests(),
            strategy.quota().available(),
        );
        assert_eq!(seen, (code, sends, left));
    }
}

#[tokio::test]
async fn a_success_pays_back_what_its_last_retry_cost() {
    let server = Server::with(&[BROKEN, BROKEN, OK]).await;
    let strategy = built(standard());
    let answer = client_of(&strategy).get(&server.url).send().await;
    assert_eq!((status(answer), server.requests()), (200, 3));
    assert_eq!(strategy.quota().available(), 486);
}

#[tokio::test]
async fn an_empty_quota_returns_the_answer() {
    let server = Server::with(&[BROKEN]).await;
    let strategy = built(standard().quota_capacity(0));
    let answer = client_of(&strategy).get(&server.url).send().await;
    assert_eq!((status(answer), server.requests()), (500, 1));
}

#[tokio::test]
async fn a_classifier_of_ones_own_has_the_say() {
    let server = Server::with(&[Said::new(404), OK]).await;
    let strategy = built(standard());
    let pacing = Pacing::shared(strategy).classifier(|answer: &HttpResponseParts<'_>| {
        (answer.status() == 404).then(Failure::transient)
    });
    let answer = client(pacing).get(&server.url).send().await;
    assert_eq!((status(answer), server.requests()), (200, 2));
}

#[tokio::test(start_paused = true)]
async fn the_wait_is_the_services_word_and_a_wrong_one_is_none() {
    let date = ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"); // which has passed
    let expected = [
        (("retry-after", "7"), 7_250),
        (("retry-after", "-7"), 250),
        (("retry-after", "soon"), 250),
        (("retry-after", ""), 250),
        (("retry-after", "0.5"), 750),
        (("retry-after", ".5"), 250),
        (("retry-after-ms", "1500"), 1_750),
        (("x-ms-retry-after-ms", "1500.5"), 1_751),
        (date, 250),
        (("x-amz-retry-after", "1500"), 1_500),
        (("x-amz-retry-after", "1e3"), 250),
        (("ratelimit", "\"hour\";r=0;t=45"), 45_250),
        (("ratelimit", "r=0"), 250),
    ];
    for (header, millis) in expected {
        let server = Server::with(&[SLOW_DOWN.header(header), OK]).await;
        let strategy = standard().backoff(Arc::new(Always(Duration::from_millis(250))));
        let strategy = built(strategy);
        let (client, begun) = (client_of(&strategy), Instant::now());
        let answer = client.get(&server.url).send().await;
        assert_eq!((status(answer), server.requests()), (200, 2));
        // Tokio's timer has a grain of a millisecond.
        let late = begun.elapsed().checked_sub(Duration::from_millis(millis));
        assert!(
            late.is_some_and(|late| late <= MILLIS),
            "{header:?}: {late:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_after_the_deadline_is_not_waited_for_and_costs_nothing() {
    let hour = SLOW_DOWN.header(("retry-after", "3600"));
    let server = Server::with(&[hour]).await;
    let strategy = built(standard());
    let pacing = Pacing::shared(strategy.clone()).deadline(SECOND);
    let (client, begun) = (client(pacing), Instant::now());
    let answer = client.get(&server.url).send().await;
    assert_eq!((status(answer), server.requests()), (429, 1));
    assert_eq!(
        (begun.elapsed(), strategy.quota().available()),
        (Duration::ZERO, 500)
    );
}

#[tokio::test]
async fn what_may_have_been_done_is_repeated_only_if_that_is_safe() {
    let resets = [Said::RESET, OK];
    let throttles = [SLOW_DOWN, OK];
    let (get, post) = (reqwest::Method::GET, reqwest::Method::POST);
    let order = |method, key| (method, key, None);
    let cases = [
        (order(&get, None), &resets, 2),
        (order(&post, None), &resets, 1),
        (order(&post, Some("k-17")), &resets, 2),
        (order(&post, Some("")), &resets, 1),
        (order(&post, None), &throttles, 2),
        ((&post, None, Some(Idempotency::Idempotent)), &resets, 2),
        ((&get, None, Some(Idempotency::NotIdempotent)), &resets, 1),
    ];
    for (case, answers, sends) in cases {
        let (method, key, said) = case;
        let server = Server::with(answers).await;
        let client = client_of(&built(standard()));
        let mut request = client.request(method.clone(), &server.url);
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        if let Some(said) = said {
            request = request.with_extension(said);
        }
        let answer = request.body("one of these").send().await;
        assert_eq!(server.requests(), sends, "{case:?}");
        assert_eq!(answer.is_ok(), sends == 2, "{case:?}");
        assert!(server.asked().iter().all(|one| one.body == "one of these"));
    }
}

#[tokio::test]
async fn a_condition_in_the_query_is_seen() {
    for (query, sends) in [("?x=0", 2), ("?ifGenerationMatch=0", 1)] {
        let server = Server::with(&[Said::RESET, OK]).await;
        let request = client_of(&built(standard())).put(format!("{}{query}", server.url));
        let answer = request.body("").send().await;
        let seen = (answer.is_ok(), server.requests());
        assert_eq!(seen, (sends == 2, sends), "{query}");
    }
}

#[tokio::test]
async fn what_never_got_a_connection_was_not_sent() {
    let port = Server::with(&[OK]).await;
    let url = port.url.clone();
    drop(port);
    tokio::task::yield_now().await; // the server's task ends, and with it its socket
    let strategy = built(standard());
    let answer = client_of(&strategy).post(&url).body("").send().await;
    assert!(answer.is_err_and(|error| error.is_connect()));
    assert_eq!(strategy.quota().available(), 472); // two retries, though it was a POST
}

/// Knows no name.
struct Nowhere;

impl Resolve for Nowhere {
    fn resolve(&self, _: Name) -> Resolving {
        Box::pin(async { Err("no such name".into()) })
    }
}

#[tokio::test]
async fn what_has_a_name_that_does_not_resolve_was_not_sent() {
    let strategy = built(standard());
    let bare = bare().dns_resolver(Arc::new(Nowhere)).build();
    let client = ClientBuilder::new(bare.expect("a client"))
        .with(Pacing::shared(strategy.clone()))
        .build();
    let answer = client.post("http://nowhere.example/").body("").send().await;
    assert!(answer.is_err_and(|error| error.is_connect()));
    assert_eq!(strategy.quota().available(), 472); // two retries, though it was a POST
}

#[tokio::test(start_paused = true)]
async fn a_slow_answer_is_a_timeout() {
    // In generation 2.0 a retry after a timeout costs 10, and one after anything else 5.
    for (quota, sends) in [(10, 2), (9, 1)] {
        let server = Server::with(&[OK.after(60 * SECOND), OK]).await;
        let strategy = standard()
            .generation(RetryGeneration::V2_0)
            .quota_capacity(quota);
        let bare = bare().timeout(SECOND).build().expect("a client");
        let client = ClientBuilder::new(bare)
            .with(Pacing::shared(built(strategy)))
            .build();
        let answer = client.get(&server.url).send().await;
        assert_eq!(server.requests(), sends);
        assert_eq!(answer.is_err_and(|error| error.is_timeout()), sends == 1);
    }
}

/// reqwest's own time limit begins when a request connects: it is that of one attempt, and knows no
/// line.
#[tokio::test(start_paused = true)]
async fn the_hosts_timeout_is_an_attempts_and_the_deadline_for_all() {
    let limit = SECOND.saturating_mul(2);
    for (deadline, sends) in [(None, 3), (Some(limit), 1)] {
        let server = Server::with(&[OK.after(60 * SECOND)]).await;
        let pacing = Pacing::shared(built(standard()));
        let pacing = deadline.into_iter().fold(pacing, Pacing::deadline);
        let begun = Instant::now();
        let request = client(pacing).get(&server.url).timeout(limit);
        request.send().await.expect_err("it takes too long");
        assert_eq!(server.requests(), sends);
        // Time that stands still leaps by a third of a second when a connection is made.
        let whole = begun.elapsed().as_secs().checked_div(limit.as_secs());
        assert_eq!(whole, u64::try_from(sends).ok());
    }
}

#[tokio::test]
async fn a_request_that_leads_nowhere_is_not_repeated() {
    let strategy = built(standard());
    let client = client_of(&strategy);
    let answer = client.get("ftp://127.0.0.1/").send().await;
    assert!(answer.is_err_and(|error| error.is_builder()));
    let server = Server::with(&[Said::new(302).header(("location", "/"))]).await;
    let answer = client.get(&server.url).send().await;
    assert!(answer.is_err_and(|error| error.is_redirect()));
    assert_eq!((server.requests(), strategy.quota().available()), (11, 500));
}

#[tokio::test(start_paused = true)]
async fn every_send_takes_a_turn_also_a_repeated_one() {
    let server = Server::with(&[BROKEN, OK, SLOW_DOWN, OK, OK]).await;
    let begun = Instant::now();
    let strategy = Arc::new(fixed(10).build().expect("in range"));
    let client = client_of(&strategy);
    let mut ends = Vec::new();
    for _ in 0..3 {
        assert_eq!(status(client.get(&server.url).send().await), 200);
        ends.push(begun.elapsed().as_millis() / 100);
    }
    // One is let go at once, and one every 100 ms from then on.
    assert_eq!((server.requests(), ends), (5, vec![1, 3, 4]));
}

#[tokio::test]
async fn throttling_is_what_the_send_rate_hears_of() {
    for (answers, limited) in [([BROKEN, OK], false), ([SLOW_DOWN, OK], true)] {
        let server = Server::with(&answers).await;
        let strategy = Adaptive::builder()
            .law(paceline::ControlLaw::Aws)
            .backoff(Arc::new(Always(Duration::ZERO)));
        let strategy = Arc::new(strategy.build().expect("in range"));
        assert_eq!(
            status(client_of(&strategy).get(&server.url).send().await),
            200
        );
        let now = strategy.clock().now();
        assert_eq!(strategy.send_rate().snapshot(now).enabled, limited);
    }
}

#[tokio::test(start_paused = true)]
async fn a_strategy_that_does_not_wait_says_so() {
    let server = Server::with(&[OK]).await;
    let strategy = fixed(10)
        .name("orders")
        .fail_fast(true)
        .build()
        .expect("in range");
    let client = client(Pacing::new(strategy));
    assert_eq!(status(client.get(&server.url).send().await), 200);
    let Err(Error::Middleware(error)) = client.get(&server.url).send().await else {
        panic!("it was sent");
    };
    let stop = error.downcast_ref::<Stop>().expect("why it stopped");
    assert!(matches!(stop.why(), StopReason::SendRefused { .. }));
    assert_eq!(stop.wait().as_millis(), 100);
    assert_eq!(stop.name(), Some("orders"));
    assert_eq!(stop.attempts(), 0); // as the README tells a refusal
    assert!(stop.to_string().starts_with("orders: not sent: "), "{stop}");
    assert_eq!(server.requests(), 1);
}

#[tokio::test]
async fn a_503_is_throttling_in_bulk_so_that_even_a_post_is_sent_again() {
    for (pacing, expected) in [
        (Pacing::bulk(), (200, 2)),
        (Pacing::new(Adaptive::paced()), (503, 1)),
    ] {
        let server = Server::with(&[OVERLOADED, OK]).await;
        let answer = client(pacing).post(&server.url).send().await;
        assert_eq!((status(answer), server.requests()), expected);
    }
}

/// The body says what a request cost, which the caller reads after the outcome was recorded.
#[tokio::test]
async fn a_cost_in_the_body_is_settled_by_the_caller() {
    let server = Server::with(&[OK.body("")]).await;
    // One token a second, of which the bucket holds ten.
    let settings = PacedSettings::fixed(1, SECOND)
        .and_then(|fixed| fixed.to_builder().burst(SECOND.saturating_mul(10)).build());
    let strategy = Adaptive::builder().paced(settings.expect("in range"));
    let strategy = Arc::new(strategy.build().expect("in range"));
    let client = client_of(&strategy);
    let available = || {
        let rate = strategy.snapshot().rate.expect("it has one");
        rate.available
    };

    let plain = client.get(&server.url).send().await.expect("an answer");
    assert!(plain.extensions().get::<AttemptCharge>().is_none());

    let request = client.get(&server.url);
    let request = request.with_extension(Weights::from([6]));
    let response = request.send().await.expect("an answer");
    let charge = response.extensions().get::<AttemptCharge>().cloned();
    assert_eq!(response.text().await.expect("a body"), "");
    let before = available();
    let charge = charge.expect("the request had weights");
    charge.settle(&[2]).expect("a credit");
    let more = available() - before;
    assert!((4.0..5.0).contains(&more), "{more}");
}

/// What the headers say is settled with the outcome.
#[tokio::test]
async fn a_cost_in_the_headers_leaves_nothing_to_settle() {
    let server = Server::with(&[OK.header(("x-cost", "2"))]).await;
    let costs = |response: &HttpResponseParts<'_>| {
        let cost = response.headers().get("x-cost")?.to_str().ok()?;
        Some([cost.parse().ok()?].into())
    };
    let client = client(Pacing::new(Adaptive::paced()).costs_by(costs));
    let request = client.get(&server.url);
    let request = request.with_extension(Weights::from([6]));
    let response = request.send().await.expect("an answer");
    assert!(response.extensions().get::<AttemptCharge>().is_none());
}

/// A refusal with a body.
const fn says(body: &'static str) -> Said {
    SLOW_DOWN.body(body)
}

#[tokio::test(start_paused = true)]
async fn the_body_of_a_refusal_decides() {
    const USED_UP: Said = says("{\"error\": {\"code\": \"insufficient_quota\"}}");
    const LATER: Said = says(
        "{\"error\": {\"details\": [{\"@type\": \"type.googleapis.com/google.rpc.RetryInfo\", \
         \"retryDelay\": \"34.5s\"}]}}",
    );
    let strategy = built(standard());
    let server = Server::with(&[USED_UP, OK]).await;
    let answer = client_of(&strategy).get(&server.url).send().await;
    let answer = answer.expect("the answer");
    assert_eq!((answer.status().as_u16(), server.requests()), (429, 1));
    let body = answer.text().await.expect("a body");
    assert!(body.contains("insufficient_quota"), "{body}");

    let server = Server::with(&[LATER, OK]).await;
    let begun = Instant::now();
    let answer = client_of(&strategy).get(&server.url).send().await;
    assert_eq!((status(answer), server.requests()), (200, 2));
    assert!(begun.elapsed() >= Duration::from_millis(34_500));
}

/// <https://github.com/Aider-AI/aider/issues/1880>, and Bybit's "Rate Limit".
#[tokio::test(start_paused = true)]
async fn what_no_wait_can_mend_is_sent_once_and_a_ban_is_a_throttle() {
    const TOO_LARGE: Said = says(
        "{\"error\": {\"message\": \"Limit 30000, Requested 36278.\", \"code\": \"rate_limit_exceeded\"}}",
    );
    const BANNED: Said = Said::new(403).body("{\"retMsg\": \"Access too frequent.\"}");
    const TEAPOT: Said = Said::new(418).header(("retry-after", "30"));
    for (answer, expected) in [(TOO_LARGE, (1, 0)), (BANNED, (2, 1)), (TEAPOT, (2, 1))] {
        let strategy = built(standard());
        let server = Server::with(&[answer, OK]).await;
        let _answer = client_of(&strategy).get(&server.url).send().await;
        let throttled = strategy.snapshot().counts.throttled;
        assert_eq!((server.requests(), throttled), expected);
    }
}

/// S3 may answer 200 before it knows how a copy, or an upload in parts, ends.
#[tokio::test(start_paused = true)]
async fn an_error_in_a_success_is_paced_and_retried() {
    const LATE: Said = OK.body("<?xml?><Error><Code>SlowDown</Code></Error>");
    const DONE: Said = OK.body("<CopyObjectResult/>");
    let sent = async |answers: &[Said],
                      request: fn(&ClientWithMiddleware, &str) -> RequestBuilder| {
        let server = Server::with(answers).await;
        let strategy = built(standard());
        let answer = request(&client_of(&strategy), &server.url).send().await;
        let body = answer.expect("an answer").text().await.expect("a body");
        (body, server.requests(), strategy.quota().available())
    };
    let copy = |client: &ClientWithMiddleware, url: &str| {
        client.put(url).header("x-amz-copy-source", "/bucket/key")
    };
    let complete = |client: &ClientWithMiddleware, url: &str| {
        client
            .post(format!("{url}?uploadId=x"))
            .body("<CompleteMultipartUpload/>")
    };
    for request in [copy, complete] {
        let (body, sends, quota) = sent(&[LATE, LATE, DONE], request).await;
        assert_eq!((&*body, sends), ("<CopyObjectResult/>", 3));
        // Five for each of the two retries of a throttle, and the last five back.
        assert_eq!(quota, 495);
        // Given up, the answer comes as it is.
        let (body, sends, _) = sent(&[LATE], request).await;
        assert!(body.contains("SlowDown"), "{body}");
        assert_eq!(sends, 3);
    }
    // What is stored may look like an error.
    let (body, sends, _) = sent(&[LATE], |client, url| client.get(url)).await;
    assert!(body.contains("SlowDown"), "{body}");
    assert_eq!(sends, 1);
}

#[tokio::test]
async fn a_long_body_of_a_refusal_comes_whole() {
    let long: &'static str = "x".repeat(200_000).leak();
    let server = Server::with(Box::leak(Box::new([says(long)]))).await;
    let strategy = built(standard().max_attempts(1));
    let answer = client_of(&strategy).get(&server.url).send().await;
    let answer = answer.expect("the answer");
    assert_eq!(answer.text().await.expect("a body").len(), long.len());
}

#[tokio::test(start_paused = true)]
async fn what_stops_a_retry_leaves_the_last_answer() {
    let server = Server::with(&[BROKEN, OK]).await;
    let builder = Adaptive::builder()
        .paced(PacedSettings::fixed(1, 60 * SECOND).expect("in range"))
        .fail_fast(true);
    let pacing = Pacing::new(builder.build().expect("in range"));
    let answer = client(pacing).get(&server.url).send().await;
    assert_eq!((status(answer), server.requests()), (500, 1));
}

#[tokio::test]
async fn inside_of_an_attempt_a_request_is_sent_once() {
    let outer = OuterAttempt::new();
    // In the same task, and carried by the request from another one.
    for carried in [false, true] {
        let server = Server::with(&[BROKEN]).await;
        let strategy = built(standard());
        let request = client_of(&strategy).get(&server.url);
        let answer = if carried {
            let request = request.with_extension(outer);
            tokio::spawn(request.send()).await.expect("no panic")
        } else {
            within_async(Some(outer), request.send()).await
        };
        let response = answer.expect("an answer");
        let stop = response.extensions().get::<Stop>();
        assert_eq!(stop.map(Stop::why), Some(StopReason::LeftToOuter));
        assert_eq!((server.requests(), strategy.quota().available()), (1, 500));
    }
}

/// Sends once through another client, in a task.
struct Spawns(ClientWithMiddleware);

#[async_trait::async_trait]
impl reqwest_middleware::Middleware for Spawns {
    async fn handle(
        &self,
        request: reqwest::Request,
        extensions: &mut http::Extensions,
        _next: reqwest_middleware::Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        let (inner, mut extensions) = (self.0.clone(), extensions.clone());
        let sent = async move {
            inner
                .execute_with_extensions(request, &mut extensions)
                .await
        };
        tokio::spawn(sent).await.expect("no panic")
    }
}

#[tokio::test]
async fn a_request_that_another_task_sends_carries_its_mark_if_asked_to() {
    for (marks, sends) in [(false, 9), (true, 3)] {
        let server = Server::with(&[BROKEN]).await;
        let pacing = Pacing::shared(built(standard()));
        let pacing = if marks {
            pacing.mark_requests()
        } else {
            pacing
        };
        let client = ClientBuilder::new(bare().build().expect("a client")).with(pacing);
        let client = client.with(Spawns(client_of(&built(standard())))).build();
        let answer = client.get(&server.url).send().await;
        assert_eq!((status(answer), server.requests()), (500, sends), "{marks}");
    }
}

#[tokio::test]
async fn a_stream_that_cannot_be_sent_again_is_sent_again_by_none() {
    // The outer attempt cannot be repeated: then the loop inside of it retries what it can.
    let server = Server::with(&[BROKEN]).await;
    let (outer, inner) = (built(standard()), built(standard()));
    let inner = client_of(&inner);
    let url = server.url.clone();
    let client = ClientBuilder::new(bare().build().expect("a client")).with(Pacing::shared(outer));
    let client = client.with(Elsewhere(inner, url)).build();
    let body =
        reqwest::Body::wrap_stream(futures_util::stream::iter([Ok::<_, std::io::Error>("x")]));
    let answer = client.put(&server.url).body(body).send().await;
    assert_eq!((status(answer), server.requests()), (500, 3));
}

/// Asks another client, whatever the request.
struct Elsewhere(ClientWithMiddleware, String);

#[async_trait::async_trait]
impl reqwest_middleware::Middleware for Elsewhere {
    async fn handle(
        &self,
        _request: reqwest::Request,
        _extensions: &mut http::Extensions,
        _next: reqwest_middleware::Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        self.0.get(&self.1).send().await
    }
}

/// Azure DevOps answers 200 with `Retry-After`: the next request waits, and the rate is not cut.
#[tokio::test(start_paused = true)]
async fn a_success_that_asks_for_a_pause_gets_it() {
    let server = Server::with(&[OK.header(("retry-after", "2")), OK]).await;
    let builder = Adaptive::builder().paced(PacedSettings::new());
    let strategy = builder.clock(Arc::new(paceline::TokioClock::new()));
    let strategy = Arc::new(strategy.build().expect("the settings are in range"));
    let client = client(Pacing::shared(strategy.clone()));
    let begun = Instant::now();
    assert_eq!(status(client.get(&server.url).send().await), 200);
    assert!(begun.elapsed() < SECOND);
    assert_eq!(status(client.get(&server.url).send().await), 200);
    assert!(begun.elapsed() >= 2 * SECOND);
    assert_eq!((server.requests(), strategy.snapshot().counts.cuts), (2, 0));
}
