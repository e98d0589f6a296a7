//! The engine: a server or a file, and one script for each kind of step.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use core::{fmt, time::Duration};
use std::collections::HashMap;
#[cfg(feature = "local")]
use std::path::PathBuf;
use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisResult, Script};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::fault::EngineFault;
#[cfg(feature = "local")]
use crate::local::Local;
use crate::wire::Step;

/// How long one attempt to connect may take: TCP, TLS, credentials and scripts.
const CONNECT: Duration = Duration::from_secs(4);
/// How long the end of a process may take that holds a lease of a file.
#[cfg(feature = "local")]
const PARTING: Duration = Duration::from_millis(100);
/// The first wait between two attempts, and how often it doubles.
const FIRST_WAIT: Duration = Duration::from_millis(25);
const DOUBLINGS: u32 = 3;

/// Where fleets meet.
pub(crate) struct Engine {
    namespace: String,
    place: Place,
}

enum Place {
    Server(Arc<Server>),
    #[cfg(feature = "local")]
    File(Local),
}

/// One connection to a server, for all scopes of a fleet. Never shown: the address may hold a
/// password.
pub(crate) struct Server {
    client: Client,
    link: watch::Sender<Link>,
    /// Attempts and connections since the last answer. Relaxed: it only sets a wait.
    failures: AtomicU32,
    /// Counts answers: while there are some, it is not the connection that a late one waits for.
    answers: AtomicU64,
    step: Stored,
    quota: Stored,
}

/// The connection. A request never waits for it, and an ask never makes it.
#[derive(Clone)]
enum Link {
    Down {
        fault: EngineFault,
        retry_at: Option<Instant>,
    },
    /// A task connects.
    Connecting,
    Live(Live),
}

#[derive(Clone)]
struct Live {
    connection: MultiplexedConnection,
    /// Told from other connections by this, so that an ask that saw the last one break does not
    /// break the next.
    number: u64,
    /// One round trip, as measured when the connection was made.
    trip: Duration,
}

/// A script, and its hash. The client's own panics where a server answers another hash than it
/// should.
struct Stored {
    text: &'static str,
    hash: String,
}

impl Stored {
    fn new(text: &'static str) -> Self {
        let hash = Script::new(text).get_hash().to_owned();
        Self { text, hash }
    }

    async fn load(&self, mut connection: MultiplexedConnection) -> RedisResult<()> {
        let mut load = redis::cmd("SCRIPT");
        let _hash: redis::Value = load
            .arg("LOAD")
            .arg(self.text)
            .query_async(&mut connection)
            .await?;
        Ok(())
    }

    /// Runs it by its hash; in whole where a restart or a fail-over has lost it.
    async fn run(
        &self,
        connection: &mut MultiplexedConnection,
        key: &str,
        arguments: [&str; 2],
    ) -> RedisResult<Vec<i64>> {
        let command = |name, script| {
            let mut command = redis::cmd(name);
            command.arg(script).arg(1).arg(key).arg(&arguments);
            command
        };
        let by_hash = command("EVALSHA", self.hash.as_str());
        match by_hash.query_async(connection).await {
            Err(error) if error.code() == Some("NOSCRIPT") => {
                command("EVAL", self.text).query_async(connection).await
            }
            result => result,
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// A server. The first ask connects.
    pub(crate) fn server(client: Client, namespace: String) -> Self {
        Self {
            namespace,
            place: Place::Server(Arc::new(Server::new(client))),
        }
    }

    /// A file. The first ask opens it.
    #[cfg(feature = "local")]
    pub(crate) fn file(path: PathBuf, namespace: String) -> Result<Self, EngineFault> {
        Ok(Self {
            namespace,
            place: Place::File(Local::new(path)?),
        })
    }

    /// Returns the key of a scope. The braces are a hash tag: all that a scope has lies in one slot
    /// of a cluster.
    pub(crate) fn key(&self, step: Step, scope: &str) -> String {
        let kind = match step {
            Step::Send => "send",
            Step::Quota => "quota",
        };
        format!("{}:{kind}:v1:{{{scope}}}", self.namespace)
    }

    /// Takes one step, or returns why not, within `patience`, and two round trips to a server.
    pub(crate) async fn take(
        &self,
        step: Step,
        key: &str,
        member: &str,
        words: &str,
        patience: Duration,
    ) -> Result<Vec<i64>, EngineFault> {
        match &self.place {
            Place::Server(server) => server.take(step, key, member, words, patience).await,
            #[cfg(feature = "local")]
            Place::File(file) => file.take(step, key, member, words, patience).await,
        }
    }

    /// Takes the last step of a member whose task was dropped, and blocks for it a moment. A server
    /// is too far away for that.
    pub(crate) fn part(&self, step: Step, key: &str, member: &str, words: &str) {
        match &self.place {
            Place::Server(_) => {}
            #[cfg(feature = "local")]
            Place::File(file) => _ = file.take_now(step, key, member, words, PARTING),
        }
    }

    /// Blocks a moment until the last step of a member is taken, whose task was dropped after that
    /// was asked for.
    pub(crate) fn flush(&self) {
        match &self.place {
            Place::Server(_) => {}
            #[cfg(feature = "local")]
            Place::File(file) => file.flush(PARTING),
        }
    }

    /// Joins a scope that expires, and leaves it: whatever a member does is allowed, and the engine
    /// takes writes.
    pub(crate) async fn probe(&self) -> Result<(), EngineFault> {
        if let Place::Server(server) = &self.place {
            server.check().await?;
        }
        let name = format!("{:016x}", fastrand::u64(..));
        let key = self.key(Step::Send, &format!("check-{name}"));
        for (number, leaves) in [(1, 0), (2, 1)] {
            let words =
                format!("{number} {leaves} 0 0 0 0 0 0 0 0 0 1 1 1 100000 200000 2000000 1000 1 0");
            self.take(Step::Send, &key, &name, &words, CONNECT).await?;
        }
        Ok(())
    }
}

impl Server {
    fn new(client: Client) -> Self {
        let down = Link::Down {
            fault: EngineFault::Unreachable,
            retry_at: None,
        };
        Self {
            client,
            link: watch::Sender::new(down),
            failures: AtomicU32::new(0),
            answers: AtomicU64::new(0),
            step: Stored::new(include_str!("step.lua")),
            quota: Stored::new(include_str!("quota.lua")),
        }
    }

    /// Takes one step, or returns why not, within `patience` and two round trips.
    async fn take(
        self: &Arc<Self>,
        step: Step,
        key: &str,
        member: &str,
        words: &str,
        patience: Duration,
    ) -> Result<Vec<i64>, EngineFault> {
        let live = timeout(patience, self.live())
            .await
            .unwrap_or(Err(EngineFault::Unreachable))?;
        let Live {
            mut connection,
            number,
            trip,
        } = live;
        // Relaxed, here and below: a hint that publishes nothing.
        let answers = self.answers.load(Relaxed);
        let script = match step {
            Step::Send => &self.step,
            Step::Quota => &self.quota,
        };
        let patience = patience.saturating_add(trip.saturating_mul(2));
        let numbers = timeout(patience, script.run(&mut connection, key, [member, words])).await;
        let result = match numbers {
            Ok(numbers) => numbers.map_err(|error| EngineFault::of(&error)),
            Err(_) => Err(EngineFault::TimedOut),
        };
        match result {
            Ok(_) => {
                self.answers.fetch_add(1, Relaxed);
                self.failures.store(0, Relaxed);
            }
            // Others were answered: the connection is good.
            Err(EngineFault::TimedOut) if self.answers.load(Relaxed) != answers => {}
            Err(fault) if !fault.keeps_connection() => self.drop_link(number, fault),
            Err(_) => {}
        }
        result
    }

    /// Waits for the connection, or for the end of the attempt to make one.
    async fn live(self: &Arc<Self>) -> Result<Live, EngineFault> {
        let mut link = self.link.subscribe();
        self.connect_if_down();
        loop {
            match &*link.borrow_and_update() {
                Link::Live(live) => return Ok(live.clone()),
                Link::Down { fault, .. } => return Err(*fault),
                Link::Connecting => {}
            }
            if link.changed().await.is_err() {
                return Err(EngineFault::Unreachable);
            }
        }
    }

    /// Starts a task that connects, unless there is one, or a connection, or the last attempt was
    /// just now.
    fn connect_if_down(self: &Arc<Self>) {
        let now = Instant::now();
        let begins = self.link.send_if_modified(|link| {
            let due =
                matches!(link, Link::Down { retry_at, .. } if retry_at.is_none_or(|at| now >= at));
            if due {
                *link = Link::Connecting;
            }
            due
        });
        if begins {
            let attempt = Attempt {
                engine: Arc::clone(self),
                result: Err(EngineFault::Unreachable),
            };
            tokio::spawn(attempt.run());
        }
    }

    /// Connects unless there is a connection, and returns why there is none.
    async fn check(self: &Arc<Self>) -> Result<(), EngineFault> {
        self.live().await.map(drop)
    }

    async fn connect(&self) -> Result<(MultiplexedConnection, Duration), EngineFault> {
        let of = |error| EngineFault::of(&error);
        let connection = self.open().await.map_err(of)?;
        let (mut asks, began) = (connection.clone(), Instant::now());
        // In one round trip, and in this order. The small script goes first: a server that wants a
        // password refuses a large one with another error.
        let (mode, (quota, trip), step) = tokio::join!(
            mode_of(&mut asks),
            async { (self.quota.load(connection.clone()).await, began.elapsed()) },
            self.step.load(connection.clone()),
        );
        match mode.as_deref() {
            Some("cluster") => return Err(EngineFault::Cluster),
            Some("sentinel") => return Err(EngineFault::Sentinel),
            _ => {}
        }
        quota.and(step).map_err(of)?;
        Ok((connection, trip))
    }

    async fn open(&self) -> RedisResult<MultiplexedConnection> {
        // Every ask has its patience.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None);
        #[cfg(not(turmoil))]
        let connecting = self
            .client
            .get_multiplexed_async_connection_with_config(&config);
        #[cfg(turmoil)]
        let connecting = simulated(&self.client, config);
        connecting.await
    }

    /// Returns when to connect again, later with each failure.
    fn retry_at(&self) -> Option<Instant> {
        let failures = self.failures.fetch_add(1, Relaxed).min(DOUBLINGS);
        Instant::now().checked_add(FIRST_WAIT.saturating_mul(1 << failures))
    }

    fn drop_link(&self, broken: u64, fault: EngineFault) {
        self.link.send_if_modified(|link| {
            let drops = matches!(link, Link::Live(live) if live.number == broken);
            if drops {
                *link = Link::Down {
                    fault,
                    retry_at: self.retry_at(),
                };
            }
            drops
        });
    }
}

/// Connects over the simulated network of `tests/network`.
#[cfg(turmoil)]
async fn simulated(
    client: &Client,
    config: AsyncConnectionConfig,
) -> RedisResult<MultiplexedConnection> {
    let info = client.get_connection_info();
    let address = info.addr().to_string();
    let stream = turmoil::net::TcpStream::connect(address).await?;
    let settings = info.redis_settings();
    let (connection, driver) =
        MultiplexedConnection::new_with_config(settings, stream, config).await?;
    tokio::spawn(driver);
    Ok(connection)
}

/// Returns what kind of server it is: `standalone`, `cluster` or `sentinel`. `HELLO` needs no
/// right; a proxy that does not know it is neither of the latter.
async fn mode_of(connection: &mut MultiplexedConnection) -> Option<String> {
    let hello: RedisResult<HashMap<String, redis::Value>> =
        redis::cmd("HELLO").query_async(connection).await;
    let mode = hello.ok().and_then(|mut said| said.remove("mode"))?;
    redis::from_redis_value(mode).ok()
}

/// An attempt to connect. Its end is always noted, even if the runtime drops it half way.
struct Attempt {
    engine: Arc<Server>,
    result: Result<Live, EngineFault>,
}

impl Attempt {
    async fn run(mut self) {
        self.result = match timeout(CONNECT, self.engine.connect()).await {
            Ok(Ok((connection, trip))) => Ok(Live {
                connection,
                number: fastrand::u64(..),
                trip,
            }),
            Ok(Err(fault)) => Err(fault),
            Err(_) => Err(EngineFault::TimedOut),
        };
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.engine.link.send_replace(match &self.result {
            Ok(live) => Link::Live(live.clone()),
            Err(fault) => Link::Down {
                fault: *fault,
                retry_at: self.engine.retry_at(),
            },
        });
    }
}

#[cfg(test)]
mod tests {
    use core::future::Future;
    use core::pin::pin;
    use core::task::{Context, Waker};
    use std::io;

    use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);
    const SEVEN: &str = "*1\r\n:7\r\n";

    fn engine() -> Server {
        engine_at(1)
    }

    fn engine_at(port: u16) -> Server {
        let address = format!("redis://127.0.0.1:{port}/");
        let client = Client::open(address).expect("an address");
        Server::new(client)
    }

    /// Returns an engine that is connected to a server. The server answers what `says` returns for
    /// the words of a command that runs a script.
    async fn engine_that(
        says: impl Fn(&[String]) -> Option<&'static str> + Send + 'static,
    ) -> Arc<Server> {
        let bound = TcpListener::bind(("127.0.0.1", 0)).await;
        let listener = bound.expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.expect("the engine connects");
            let mut stream = BufReader::new(stream);
            // Until the engine closes the connection.
            while let Ok(command) = words(&mut stream).await {
                let runs = command[0].starts_with("EVAL");
                let answer = if runs {
                    says(&command)
                } else {
                    Some("+OK\r\n")
                };
                let sent = stream.write_all(answer.unwrap_or("").as_bytes());
                sent.await.expect("the engine reads");
            }
        });
        let engine = Arc::new(engine_at(port));
        assert_eq!(engine.check().await, Ok(()));
        engine
    }

    /// Reads a command: how many words, then each behind its length.
    async fn words(stream: &mut BufReader<TcpStream>) -> io::Result<Vec<String>> {
        let mut words = Vec::new();
        for _ in 0..length(stream).await? {
            let mut word = vec![0; length(stream).await?];
            stream.read_exact(&mut word).await?;
            stream.read_exact(&mut [0; 2]).await?;
            words.push(String::from_utf8_lossy(&word).into_owned());
        }
        Ok(words)
    }

    async fn length(stream: &mut BufReader<TcpStream>) -> io::Result<usize> {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let digits = line.trim_start_matches(['*', '$']).trim_end();
        digits.parse().map_err(io::Error::other)
    }

    async fn ask(
        engine: &Arc<Server>,
        key: &str,
        patience: Duration,
    ) -> Result<Vec<i64>, EngineFault> {
        engine.take(Step::Send, key, "member", "", patience).await
    }

    fn is_connected(engine: &Server) -> bool {
        matches!(*engine.link.borrow(), Link::Live(_))
    }

    #[tokio::test]
    async fn a_script_is_sent_in_whole_only_if_the_server_lost_it() {
        let lost = ("-NOSCRIPT it was flushed\r\n", Ok(vec![7]));
        let full = ("-OOM no room\r\n", Err(EngineFault::OutOfMemory));
        for (refusal, result) in [lost, full] {
            let engine = engine_that(move |command| {
                let in_whole = command[0] == "EVAL" && command[1] == include_str!("step.lua");
                Some(if in_whole { SEVEN } else { refusal })
            });
            let engine = engine.await;
            assert_eq!(ask(&engine, "a", LONG).await, result, "{refusal}");
        }
    }

    #[tokio::test]
    async fn a_late_answer_ends_the_connection_unless_another_came() {
        let says = |command: &[String]| (command[3] == "prompt").then_some(SEVEN);
        let engine = engine_that(says).await;
        let short = Duration::from_millis(1);
        let late = Err(EngineFault::TimedOut);
        {
            let mut first = pin!(ask(&engine, "prompt", LONG));
            let mut second = pin!(ask(&engine, "late", short));
            let mut context = Context::from_waker(Waker::noop());
            assert!(first.as_mut().poll(&mut context).is_pending());
            assert!(second.as_mut().poll(&mut context).is_pending());
            assert_eq!(first.await, Ok(vec![7]));
            assert_eq!(second.await, late);
        }
        assert!(is_connected(&engine));
        assert_eq!(ask(&engine, "late", short).await, late);
        assert!(!is_connected(&engine));
    }

    #[tokio::test]
    async fn out_of_memory_keeps_the_connection_and_read_only_ends_it() {
        let full = ("-OOM no room\r\n", EngineFault::OutOfMemory, true);
        let replica = ("-READONLY a replica\r\n", EngineFault::ReadOnly, false);
        for (refusal, fault, is_kept) in [full, replica] {
            let engine = engine_that(move |_| Some(refusal)).await;
            assert_eq!(ask(&engine, "a", LONG).await, Err(fault));
            assert_eq!(is_connected(&engine), is_kept, "{fault}");
        }
    }

    #[test]
    fn a_key_names_the_kind_and_the_scope() {
        let client = Client::open("redis://127.0.0.1:1/").expect("an address");
        let engine = Engine::server(client, "billing".to_owned());
        assert_eq!(engine.key(Step::Send, "a"), "billing:send:v1:{a}");
        assert_eq!(engine.key(Step::Quota, "a"), "billing:quota:v1:{a}");
    }

    #[test]
    fn the_wait_between_attempts_to_connect_doubles_three_times() {
        let engine = engine();
        for millis in [25, 50, 100, 200, 200] {
            let wait = Duration::from_millis(millis);
            let earliest = Instant::now() + wait;
            let at = engine.retry_at().expect("soon");
            assert!(at >= earliest && at <= Instant::now() + wait, "{wait:?}");
        }
    }
}
