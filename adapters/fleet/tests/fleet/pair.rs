//! Requests and tokens a second for a fleet, with estimates that are off by a factor of three.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use paceline_fleet::Away;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::rig::engine::Engine;
use crate::rig::member::{Kind, Order, Process};
use crate::rig::service::{SERVED, THROTTLED};
use crate::scene::alone;

const MEMBERS: u8 = 16;
/// What the members are given of both, per second: the service allows as many requests, and
/// declares fewer tokens.
const GIVEN: u32 = 12_000;
const TRIP: Duration = Duration::from_millis(50);
/// The tokens that it serves at once after a rest, in seconds of what it declares.
const BURST: f64 = 5.0;

/// A bucket of tokens, and what was taken of it.
#[derive(Debug)]
struct Bucket {
    limit: u32,
    tokens: f64,
    last: Instant,
    taken: f64,
    requests: u32,
    throttled: u32,
}

impl Bucket {
    fn judge(&mut self, cost: u32) -> (bool, u32) {
        let limit = f64::from(self.limit);
        let passed = self.last.elapsed().as_secs_f64();
        self.last = Instant::now();
        self.tokens = (self.tokens + passed * limit).min(limit * BURST);
        let throttled = self.tokens < f64::from(cost);
        if throttled {
            self.throttled += 1;
        } else {
            self.tokens -= f64::from(cost);
            self.taken += f64::from(cost);
            self.requests += 1;
        }
        (throttled, self.limit)
    }
}

async fn serve(mut stream: TcpStream, bucket: Arc<Mutex<Bucket>>) {
    while let Ok(cost) = stream.read_u32().await {
        let (throttled, limit) = bucket.lock().unwrap().judge(cost);
        tokio::time::sleep(TRIP).await;
        let answer = if throttled { THROTTLED } else { SERVED };
        let mut words = vec![answer];
        words.extend(limit.to_be_bytes());
        if stream.write_all(&words).await.is_err() {
            return;
        }
    }
}

/// Returns which part of the limit is used in the next ten seconds.
async fn used(bucket: &Mutex<Bucket>, limit: u32) -> f64 {
    {
        let mut bucket = bucket.lock().unwrap();
        (bucket.limit, bucket.tokens) = (limit, f64::from(limit) * BURST);
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    let (began, before) = (Instant::now(), bucket.lock().unwrap().taken);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let taken = bucket.lock().unwrap().taken - before;
    taken / f64::from(limit) / began.elapsed().as_secs_f64()
}

#[tokio::test]
async fn sixteen_use_the_tokens_that_are_declared_and_none_is_throttled() {
    let _alone = alone();
    let Some(engine) = Engine::start(&[]) else {
        return;
    };
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let bucket = Arc::new(Mutex::new(Bucket {
        limit: GIVEN / 2,
        tokens: f64::from(GIVEN),
        last: Instant::now(),
        taken: 0.0,
        requests: 0,
        throttled: 0,
    }));
    let shared = Arc::clone(&bucket);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, Arc::clone(&shared)));
        }
    });
    let start = |index| {
        let order = Order {
            allowance: GIVEN,
            away: Away::Closed,
            workers: 8,
            ..Order::new(
                Kind::Pair,
                index,
                port,
                engine.address(),
                Duration::from_secs(60),
            )
        };
        order.start(&["--exact", "member", "--ignored", "--nocapture"])
    };
    let members: Vec<Process> = (0..MEMBERS).map(start).collect();
    let half = used(&bucket, GIVEN / 2).await;
    let whole = used(&bucket, GIVEN).await;
    let (requests, throttled) = {
        let bucket = bucket.lock().unwrap();
        (bucket.requests, bucket.throttled)
    };
    drop(members);
    println!(
        "requests and tokens, 16 processes: used {half:.3} and {whole:.3} of what is declared, {throttled} of {requests} throttled"
    );
    assert_eq!(throttled, 0);
    for used in [half, whole] {
        assert!((0.99..=1.01).contains(&used), "used {used}");
    }
}
