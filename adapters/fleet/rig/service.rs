//! A service that throttles: a bucket, a round trip, and a memory of everything it saw.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::record::{Arrival, Record};

/// How the service limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) rate: f64,
    pub(crate) burst: f64,
    pub(crate) trip: Duration,
}

#[derive(Debug)]
struct Policer {
    tokens: f64,
    last: Duration,
    limit: Limit,
    /// A member whose requests are all throttled, by its own fault.
    sick: Option<u8>,
    record: Record,
}

/// The service, until it is dropped.
#[derive(Debug)]
pub(crate) struct Service {
    port: u16,
    began: Instant,
    policer: Arc<Mutex<Policer>>,
    accepting: tokio::task::JoinHandle<()>,
}

/// The answer to a request that was let through, and to one that was not.
pub(crate) const SERVED: u8 = b'+';
pub(crate) const THROTTLED: u8 = b'-';

impl Service {
    pub(crate) async fn start(limit: Limit) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let began = Instant::now();
        let policer = Arc::new(Mutex::new(Policer {
            tokens: limit.burst,
            last: Duration::ZERO,
            limit,
            sick: None,
            record: Record::default(),
        }));
        let shared = Arc::clone(&policer);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, began, Arc::clone(&shared)));
            }
        });
        Self {
            port,
            began,
            policer,
            accepting,
        }
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub(crate) fn record(&self) -> Record {
        self.policer
            .lock()
            .expect("no thread panics with it")
            .record
            .clone()
    }

    /// Throttles every request of `member`, or of none.
    pub(crate) fn make_sick(&self, member: Option<u8>) {
        self.policer.lock().expect("no thread panics with it").sick = member;
    }

    /// Changes what is allowed. What was saved up until then is lost.
    pub(crate) fn allow(&self, rate: f64) {
        self.policer
            .lock()
            .expect("no thread panics with it")
            .limit
            .rate = rate;
        self.policer
            .lock()
            .expect("no thread panics with it")
            .tokens = 0.0;
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Policer {
    fn judge(&mut self, at: Duration, member: u8) -> bool {
        let passed = at.saturating_sub(self.last).as_secs_f64();
        self.last = self.last.max(at);
        self.tokens = (self.tokens + passed * self.limit.rate).min(self.limit.burst);
        let throttled = self.tokens < 1.0 || self.sick == Some(member);
        if !throttled {
            self.tokens -= 1.0;
        }
        self.record.0.push(Arrival {
            at,
            member,
            throttled,
        });
        throttled
    }
}

/// A connection: first the number of the member, then a byte for each request.
async fn serve(mut stream: TcpStream, began: Instant, policer: Arc<Mutex<Policer>>) {
    let Ok(member) = stream.read_u8().await else {
        return;
    };
    while stream.read_u8().await.is_ok() {
        let (throttled, trip) = {
            let mut policer = policer.lock().expect("no thread panics with it");
            (policer.judge(began.elapsed(), member), policer.limit.trip)
        };
        tokio::time::sleep(trip).await;
        let answer = if throttled { THROTTLED } else { SERVED };
        if stream.write_u8(answer).await.is_err() {
            return;
        }
    }
}
