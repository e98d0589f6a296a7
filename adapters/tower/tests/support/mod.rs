//! What the tests have in common.
#![allow(dead_code, reason = "each test uses a part of it")]

use alloc::sync::Arc;
use core::{
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::atomic::{AtomicU32, Ordering::SeqCst},
    task::{Context, Poll},
    time::Duration,
};
use std::sync::Mutex;

use kit::Always;
use paceline::{Adaptive, Clock, Failure, SendRate, Standard, law::PacedSettings};
use paceline_tower::BoxError;
use tower::Service;

/// Backs off for `pause`, three attempts.
pub(crate) fn standard(pause: Duration) -> Arc<Standard> {
    let builder = kit::standard().backoff(Arc::new(Always(pause)));
    Arc::new(builder.build().expect("the settings are in range"))
}

/// Backs off for `pause`, three attempts, and one request a second.
pub(crate) fn one_a_second(pause: Duration) -> Arc<Adaptive> {
    let builder = kit::fixed(1)
        .backoff(Arc::new(Always(pause)))
        .name("orders");
    Arc::new(builder.build().expect("the settings are in range"))
}

pub(crate) fn one_in(span: Duration) -> PacedSettings {
    PacedSettings::fixed(1, span).expect("the rate is in range")
}

/// Tells when the next request may go, which shows how many tokens are gone and that no place is in
/// line.
pub(crate) fn next_in(rate: &SendRate, clock: &dyn Clock) -> Duration {
    let token = rate.try_acquire(clock.now());
    token.err().unwrap_or_default()
}

/// Throttled, failed in passing, failed for good, or an error.
pub(crate) fn by_number(result: Result<&u32, &BoxError>) -> Option<Failure> {
    match result {
        Ok(429) => Some(Failure::throttling()),
        Ok(500) | Err(_) => Some(Failure::transient()),
        Ok(404) => Some(Failure::not_retryable()),
        Ok(_) => None,
    }
}

/// A service with scripted answers, each after a moment.
pub(crate) struct Script {
    answers: Arc<Mutex<Vec<Result<u32, &'static str>>>>,
    pub(crate) requests: Arc<AtomicU32>,
    pub(crate) answered: Arc<AtomicU32>,
    /// Whether this clone was ready, and has not been called since.
    ready: bool,
}

impl Script {
    pub(crate) fn of(answers: impl IntoIterator<Item = Result<u32, &'static str>>) -> Self {
        let mut answers: Vec<_> = answers.into_iter().collect();
        answers.reverse();
        Self {
            answers: Arc::new(Mutex::new(answers)),
            requests: Arc::default(),
            answered: Arc::default(),
            ready: false,
        }
    }

    pub(crate) fn sent(&self) -> u32 {
        self.requests.load(SeqCst)
    }
}

/// A clone has not been ready yet.
impl Clone for Script {
    fn clone(&self) -> Self {
        Self {
            answers: self.answers.clone(),
            requests: self.requests.clone(),
            answered: self.answered.clone(),
            ready: false,
        }
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Script")
    }
}

impl<Req> Service<Req> for Script {
    type Response = u32;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<u32, BoxError>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Req) -> Self::Future {
        assert!(
            core::mem::take(&mut self.ready),
            "called without being ready"
        );
        self.requests.fetch_add(1, SeqCst);
        let answer = self.answers.lock().expect("no thread panicked").pop();
        let answered = self.answered.clone();
        Box::pin(async move {
            tokio::task::yield_now().await;
            answered.fetch_add(1, SeqCst);
            answer.expect("no more than that").map_err(BoxError::from)
        })
    }
}

/// Calls a service that is always ready.
pub(crate) async fn call<S: Service<u32>>(service: &mut S) -> Result<S::Response, S::Error> {
    poll_fn(|context| service.poll_ready(context)).await?;
    service.call(1).await
}

/// Returns what all of `tasks` return, in the order in which they end.
pub(crate) async fn all<T: 'static>(mut tasks: tokio::task::JoinSet<T>) -> Vec<T> {
    let mut ended = Vec::new();
    while let Some(task) = tasks.join_next().await {
        ended.push(task.expect("no thread panicked"));
    }
    ended
}

/// A codec for bytes as they are.
#[cfg(feature = "grpc")]
pub(crate) mod tonic_bytes {
    use bytes::{Buf, BufMut, Bytes};
    use tonic::{
        Status,
        codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    };

    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct Raw;

    impl Codec for Raw {
        type Encode = Bytes;
        type Decode = Bytes;
        type Encoder = Self;
        type Decoder = Self;

        fn encoder(&mut self) -> Self {
            Self
        }

        fn decoder(&mut self) -> Self {
            Self
        }
    }

    impl Encoder for Raw {
        type Item = Bytes;
        type Error = Status;

        fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
            buffer.put(item);
            Ok(())
        }
    }

    impl Decoder for Raw {
        type Item = Bytes;
        type Error = Status;

        fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
            Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
        }
    }
}
