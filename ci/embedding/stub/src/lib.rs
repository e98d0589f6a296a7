//! A service that lets 100 requests a second pass, and refuses the others with status 429; and
//! clients that send to it as fast as it answers.

use std::{
    future::Future,
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

const PER_SECOND: f64 = 100.0;
/// The most that may pass at once.
const BURST: f64 = 10.0;
const TASKS: u64 = 40;
const OPERATIONS: u64 = 1_000;
/// The body of a refusal, as async-openai wants it: it retries no other.
const REFUSED: &str = r#"{"error":{"message":"too many requests"}}"#;

/// What the service let pass and what it refused.
#[derive(Debug, Default)]
struct Counts {
    passed: AtomicU64,
    throttled: AtomicU64,
}

/// Carries out 1,000 operations in 40 tasks, and prints the service's requests, those throttled,
/// the operations lost, and the seconds. An operation has the URL of the service and returns
/// whether it succeeded. The service answers with `body`.
pub async fn measure<O, F>(body: &'static str, operation: impl FnOnce(String) -> O) -> io::Result<()>
where
    O: Fn() -> F + Clone + Send + 'static,
    F: Future<Output = bool> + Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let counts = Arc::<Counts>::default();
    tokio::spawn(serve(listener, body, Arc::clone(&counts)));
    let operation = operation(url);
    let (began, next) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (operation, next) = (operation.clone(), Arc::clone(&next));
        tasks.spawn(async move {
            let mut lost = 0_u64;
            while next.fetch_add(1, Relaxed) < OPERATIONS {
                lost += u64::from(!operation().await);
            }
            lost
        });
    }
    let lost: u64 = tasks.join_all().await.into_iter().sum();
    let (passed, throttled) = (counts.passed.load(Relaxed), counts.throttled.load(Relaxed));
    assert_eq!(passed + lost, OPERATIONS, "each operation passes once or is lost");
    println!("{} {throttled} {lost} {:.0}", passed + throttled, began.elapsed().as_secs_f64());
    Ok(())
}

async fn serve(listener: TcpListener, body: &'static str, counts: Arc<Counts>) {
    let bucket = Arc::new(Mutex::new((Instant::now(), BURST)));
    while let Ok((stream, _)) = listener.accept().await {
        let (bucket, counts) = (Arc::clone(&bucket), Arc::clone(&counts));
        tokio::spawn(async move {
            let passes = || {
                let mut bucket = bucket.lock().expect("not poisoned");
                let now = Instant::now();
                let minted = (now - bucket.0).as_secs_f64() * PER_SECOND;
                *bucket = (now, (bucket.1 + minted).min(BURST));
                let passes = bucket.1 >= 1.0;
                bucket.1 -= f64::from(u8::from(passes));
                let count = if passes { &counts.passed } else { &counts.throttled };
                count.fetch_add(1, Relaxed);
                passes
            };
            let _closed = answer(stream, body, passes).await;
        });
    }
}

/// Answers the requests of a connection, which have no bodies.
async fn answer(mut stream: TcpStream, body: &str, passes: impl Fn() -> bool) -> io::Result<()> {
    let mut got = Vec::new();
    loop {
        while !got.ends_with(b"\r\n\r\n") {
            if stream.read_buf(&mut got).await? == 0 {
                return Ok(());
            }
        }
        got.clear();
        let (status, body) = if passes() { ("200 OK", body) } else { ("429 Too Many Requests", REFUSED) };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\netag: \"1\"\r\n\
             last-modified: Tue, 15 Nov 1994 12:45:26 GMT\r\n\r\n"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
    }
}

/// Sends one request over a new connection, and returns its status.
pub async fn get(url: &str) -> io::Result<u16> {
    let host = url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).await?;
    stream.write_all(format!("GET / HTTP/1.1\r\nhost: {host}\r\n\r\n").as_bytes()).await?;
    let mut got = [0; 12];
    stream.read_exact(&mut got).await?;
    let text = str::from_utf8(&got[9..]).ok().and_then(|code| code.parse().ok());
    text.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}
