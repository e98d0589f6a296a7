//! The engine: one connection for all scopes of a fleet, and one script for each kind of step.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use core::{fmt, time::Duration};
use std::collections::HashMap;
use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisResult, Script};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::fault::EngineFault;

/// How long one attempt to connect may take: TCP, TLS, credentials and scripts.
const CONNECT: Duration = Duration::from_secs(4);
/// The first wait between two attempts, and how often it doubles.
const FIRST_WAIT: Duration = Duration::from_millis(25);
const DOUBLINGS: u32 = 3;

/// See the module. Never shown in whole: the address may hold a password.
pub(crate) struct Engine {
    client: Client,
    namespace: String,
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

    async fn load(&self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        let mut load = redis::cmd("SCRIPT");
        let _hash: redis::Value = load
            .arg("LOAD")
            .arg(self.text)
            .query_async(connection)
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

/// Which of the two kinds of step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Send,
    Quota,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// The first ask connects.
    pub(crate) fn new(client: Client, namespace: String) -> Self {
        let down = Link::Down {
            fault: EngineFault::Unreachable,
            retry_at: None,
        };
        Self {
            client,
            namespace,
            link: watch::Sender::new(down),
            failures: AtomicU32::new(0),
            answers: AtomicU64::new(0),
            step: Stored::new(include_str!("step.lua")),
            quota: Stored::new(include_str!("quota.lua")),
        }
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

    /// Takes one step, or returns why not, within `patience` and two round trips.
    pub(crate) async fn take(
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
    pub(crate) async fn check(self: &Arc<Self>) -> Result<(), EngineFault> {
        self.live().await.map(drop)
    }

    async fn connect(&self) -> Result<(MultiplexedConnection, Duration), EngineFault> {
        let (mut connection, trip) = self.open().await.map_err(|error| EngineFault::of(&error))?;
        if is_cluster(&mut connection).await {
            return Err(EngineFault::Cluster);
        }
        Ok((connection, trip))
    }

    async fn open(&self) -> RedisResult<(MultiplexedConnection, Duration)> {
        // Every ask has its patience.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None);
        let mut connection = self
            .client
            .get_multiplexed_async_connection_with_config(&config)
            .await?;
        // The small script first: a server that wants a password refuses a large one with another
        // error.
        let began = Instant::now();
        self.quota.load(&mut connection).await?;
        let trip = began.elapsed();
        self.step.load(&mut connection).await?;
        Ok((connection, trip))
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

/// Whether the server is a node of a cluster. `HELLO` needs no right; a proxy that does not know it
/// is not one.
async fn is_cluster(connection: &mut MultiplexedConnection) -> bool {
    let hello: RedisResult<HashMap<String, redis::Value>> =
        redis::cmd("HELLO").query_async(connection).await;
    let mode = hello.ok().and_then(|mut said| said.remove("mode"));
    mode.is_some_and(|mode| {
        redis::from_redis_value(mode).is_ok_and(|mode: String| mode == "cluster")
    })
}

/// An attempt to connect. Its end is always noted, even if the runtime drops it half way.
struct Attempt {
    engine: Arc<Engine>,
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
    use super::*;

    fn engine() -> Engine {
        let client = Client::open("redis://127.0.0.1:1/").expect("an address");
        Engine::new(client, "billing".to_owned())
    }

    #[test]
    fn a_key_names_the_kind_and_the_scope() {
        assert_eq!(engine().key(Step::Send, "a"), "billing:send:v1:{a}");
        assert_eq!(engine().key(Step::Quota, "a"), "billing:quota:v1:{a}");
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
