//! The engine: one connection for all scopes of a fleet, and one script for each kind of step.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use core::{fmt, time::Duration};

use redis::aio::MultiplexedConnection;
use redis::{Client, Script};
use tokio::{sync::Mutex, time::Instant};

use crate::fault::{EngineFault, FleetError};

/// See the module. Never shown in whole: the address may hold a password.
pub(crate) struct Engine {
    client: Client,
    namespace: String,
    link: Mutex<Link>,
    /// Counts answers: while there are some, it is not the connection that a late one waits for.
    answers: AtomicU64,
    step: Script,
    quota: Script,
}

/// The connection, for tasks alone: no request ever waits for this lock.
#[derive(Default)]
struct Link {
    live: Option<MultiplexedConnection>,
    /// Counts connections, so that who saw the last one break does not break the next.
    number: u64,
    retry_at: Option<Instant>,
    failures: u32,
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
    /// Reads the address. The first ask connects.
    pub(crate) fn new(address: &str, namespace: String) -> Result<Self, FleetError> {
        Ok(Self {
            client: Client::open(address).map_err(|_| FleetError::Address)?,
            namespace,
            link: Mutex::new(Link::default()),
            answers: AtomicU64::new(0),
            step: Script::new(include_str!("step.lua")),
            quota: Script::new(include_str!("quota.lua")),
        })
    }

    /// Returns the key of a scope. In a cluster each lies in the slot of its own name.
    pub(crate) fn key(&self, step: Step, scope: &str) -> String {
        let kind = match step {
            Step::Send => "send",
            Step::Quota => "quota",
        };
        format!("{}:{kind}:v1:{scope}", self.namespace)
    }

    /// Takes one step, or returns why not, within `patience`.
    pub(crate) async fn take(
        &self,
        step: Step,
        key: &str,
        member: &str,
        words: &str,
        patience: Duration,
    ) -> Result<Vec<i64>, EngineFault> {
        let mut number = None;
        // Relaxed, here and below: a hint that publishes nothing.
        let answers = self.answers.load(Relaxed);
        let course = self.course(step, key, [member, words], &mut number);
        let result = tokio::time::timeout(patience, course)
            .await
            .unwrap_or(Err(EngineFault::TimedOut));
        if result.is_ok() {
            self.answers.fetch_add(1, Relaxed);
        }
        let (Err(fault), Some(number)) = (&result, number) else {
            return result;
        };
        let others = *fault == EngineFault::TimedOut && self.answers.load(Relaxed) != answers;
        if !fault.keeps_connection() && !others {
            self.drop_link(number).await;
        }
        result
    }

    async fn course(
        &self,
        step: Step,
        key: &str,
        arguments: [&str; 2],
        number: &mut Option<u64>,
    ) -> Result<Vec<i64>, EngineFault> {
        let (mut connection, current) = self.connection().await?;
        *number = Some(current);
        let script = match step {
            Step::Send => &self.step,
            Step::Quota => &self.quota,
        };
        let mut invocation = script.key(key);
        invocation.arg(&arguments);
        let numbers = invocation.invoke_async(&mut connection).await;
        numbers.map_err(|error| EngineFault::of(&error))
    }

    async fn connection(&self) -> Result<(MultiplexedConnection, u64), EngineFault> {
        let mut link = self.link.lock().await;
        if let Some(live) = &link.live {
            return Ok((live.clone(), link.number));
        }
        let now = Instant::now();
        if link.retry_at.is_some_and(|at| now < at) {
            return Err(EngineFault::Unreachable);
        }
        // Noted before: who loses patience is dropped in the middle.
        let wait = Duration::from_millis(25).saturating_mul(1 << link.failures.min(3));
        link.retry_at = now.checked_add(wait);
        link.failures = link.failures.saturating_add(1);
        let live = self.client.get_multiplexed_async_connection().await;
        let live = live.map_err(|error| EngineFault::of(&error))?;
        *link = Link {
            live: Some(live.clone()),
            number: link.number.wrapping_add(1),
            ..Link::default()
        };
        Ok((live, link.number))
    }

    async fn drop_link(&self, number: u64) {
        let mut link = self.link.lock().await;
        if link.number == number {
            link.live = None;
        }
    }
}
