//! Strategies beside services whose refusals were misread once, played from the responses to the
//! rate, in tokio's time: requests that no wait can mend, and bans.
#![expect(clippy::arithmetic_side_effects, reason = "small numbers")]

use alloc::{string::String, sync::Arc};
use core::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use std::sync::Mutex;

use http::Response;
use paceline::{
    Adaptive, Clock, Failure, RetryStrategyExt, Timestamp, TokioClock,
    backoff::SeededRandom,
    classify::{Classifier, HeaderLimits, HttpResponseParts, RefusalClassifier},
    config::StrategyBuilder,
    law::{DeclaredSettings, PacedSettings},
    strategy::Reports,
};
use tokio::{task::JoinSet, time::sleep};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: u64 = 60;

fn paced() -> StrategyBuilder<Adaptive> {
    Adaptive::builder().paced(PacedSettings::new())
}

fn declared() -> StrategyBuilder<Adaptive> {
    Adaptive::builder().declared(DeclaredSettings::new())
}

/// Has 16 workers run one operation after the other for `seconds` of virtual time. `answer` is told
/// the time and the number of the operation. Returns how many requests were sent, and how many
/// operations were done.
async fn play(
    builder: StrategyBuilder<Adaptive>,
    seconds: u64,
    answer: impl Fn(Duration, u64) -> Response<String> + Send + Sync + 'static,
) -> (u64, u64) {
    let clock = TokioClock::new();
    let builder = builder.clock(Arc::new(clock));
    let strategy = builder.random(Arc::new(SeededRandom::new(7))).build();
    let strategy = Arc::new(strategy.unwrap());
    let answer = Arc::new(answer);
    let (begun, sent) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut tasks = JoinSet::new();
    for _ in 0..16 {
        let (strategy, answer) = (strategy.clone(), answer.clone());
        let (begun, sent) = (begun.clone(), sent.clone());
        tasks.spawn(async move {
            let mut done = 0_u64;
            while clock.now().saturating_since(Timestamp::ZERO)
                < SECOND * u32::try_from(seconds).unwrap()
            {
                let number = begun.fetch_add(1, Ordering::Relaxed);
                let operation = strategy.operation().reporting();
                let run = operation.run_async(async |_| {
                    sleep(Duration::from_millis(50)).await;
                    sent.fetch_add(1, Ordering::Relaxed);
                    let response = answer(clock.now().saturating_since(Timestamp::ZERO), number);
                    let parts = HttpResponseParts::of(&response).with_refusal(response.body());
                    let limits = HeaderLimits::new().read(&parts);
                    let failure = RefusalClassifier::new().classify(&parts);
                    let result = failure.map_or(Ok(()), Err::<(), Failure>);
                    Reports::new().declaring(&limits).beside(result)
                });
                done += u64::from(run.await.is_ok());
                // What fails at once is asked for again by and by.
                sleep(Duration::from_millis(50)).await;
            }
            done
        });
    }
    let done = tasks.join_all().await.into_iter().sum();
    (sent.load(Ordering::Relaxed), done)
}

fn response(status: u16, headers: &[(&str, String)], body: &str) -> Response<String> {
    let mut builder = Response::builder().status(status);
    for (name, value) in headers {
        builder = builder.header(*name, value);
    }
    builder.body(body.into()).unwrap()
}

/// 600 requests a minute, of which one in 20 asks for more tokens than any minute has. Returns the
/// thousandths of the limit that were used.
async fn used_beside_large_requests(builder: StrategyBuilder<Adaptive>, status: u16) -> u64 {
    let used = Mutex::new((0_u64, 0_u64));
    let answer = move |now: Duration, number: u64| {
        let mut used = used.lock().unwrap();
        let minute = now.as_secs() / MINUTE;
        if used.0 != minute {
            *used = (minute, 0);
        }
        let is_large = number % 20 == 7;
        let goes = !is_large && used.1 < 600;
        used.1 += u64::from(goes);
        let headers = [
            ("x-ratelimit-limit", "600".into()),
            ("x-ratelimit-remaining", (600 - used.1).to_string()),
            (
                "x-ratelimit-reset",
                (MINUTE - now.as_secs() % MINUTE).to_string(),
            ),
        ];
        // <https://github.com/Aider-AI/aider/issues/1880>
        let large = r#"{"error":{"message":"Request too large for model on tokens per min (TPM): Limit 30000, Requested 36278.","type":"tokens","code":"rate_limit_exceeded"}}"#;
        match (goes, is_large) {
            (true, _) => response(200, &headers, ""),
            (_, true) => response(status, &headers, large),
            _ => response(429, &headers, ""),
        }
    };
    let (_, done) = play(builder, 600, answer).await;
    done / 6
}

#[tokio::test(start_paused = true)]
async fn requests_that_are_too_large_cut_nothing() {
    for status in [400, 413, 429] {
        for builder in [declared, paced] {
            let used = used_beside_large_requests(builder(), status).await;
            println!("{status}: {used}");
            assert!(used >= 950, "{status}: {used}");
        }
    }
}

/// Bans that a request prolongs: <https://github.com/hummingbot/hummingbot/issues/1291>, and Bybit's
/// "Rate Limit".
#[tokio::test(start_paused = true)]
async fn nothing_goes_on_through_a_ban() {
    let headers = || vec![("retry-after", "117".to_owned())];
    let frequent = r#"{"retMsg":"Access too frequent. Please try again in 10 minutes."}"#;
    for (status, headers, body) in [
        (418, headers(), ""),
        (420, headers(), ""),
        (430, headers(), ""),
        (403, vec![], frequent),
        (429, headers(), ""),
    ] {
        let (sent, done) = play(paced(), 840, move |_, _| response(status, &headers, body)).await;
        println!("{status}: {sent}");
        assert_eq!(done, 0);
        assert!(sent <= 320, "{status}: {sent}");
    }
}
