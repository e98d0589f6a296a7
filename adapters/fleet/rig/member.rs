//! A member: a process that sends to the service as fast as it is let.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use paceline::strategy::Reports;
use paceline::{
    Clock, ControlLaw, Failure, MonotonicClock, Outcome, RetryAfter, RetryStrategy,
    RetryStrategyExt, SendPermit, SendRate, Standard, Timestamp,
};
use paceline_fleet::{Away, Budget, BudgetSet, Fleet, FleetStrategy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Mutex;

use super::service::THROTTLED;

/// The settings of a member.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) kind: Kind,
    pub(crate) index: u8,
    pub(crate) service: u16,
    /// The engine's address, or `file:` and a path, and what the fleet may send per second, or 0 if
    /// that is not known.
    pub(crate) engine: String,
    pub(crate) allowance: u32,
    pub(crate) away: Away,
    pub(crate) workers: u32,
    /// How long a worker rests after each request.
    pub(crate) rest: Duration,
    pub(crate) time: Duration,
    /// How far the member's clock is ahead.
    pub(crate) ahead: Duration,
    /// The safe rate per second, or 0 for the default.
    pub(crate) safe: u32,
}

/// Under what a member sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    PublishedAlone,
    PacedAlone,
    Fleet,
    /// Requests and tokens, whose estimates are off by a factor of three.
    Pair,
    /// An agent of as many turns as there are workers, with retries that go on; and with the usual
    /// ones.
    Agent,
    AgentAlone,
}

/// Where an order stands in the environment of the process.
const ORDER: &str = "FLEET_RIG_ORDER";

impl Order {
    /// A member that goes on alone without its engine, of a limit that is not known, with two
    /// workers that never rest.
    pub(crate) const fn new(
        kind: Kind,
        index: u8,
        service: u16,
        engine: String,
        time: Duration,
    ) -> Self {
        Self {
            kind,
            index,
            service,
            engine,
            allowance: 0,
            away: Away::Alone,
            workers: 2,
            rest: Duration::ZERO,
            time,
            ahead: Duration::ZERO,
            safe: 0,
        }
    }

    fn words(&self) -> String {
        let kind = match self.kind {
            Kind::PublishedAlone => "published",
            Kind::PacedAlone => "paced",
            Kind::Fleet => "fleet",
            Kind::Pair => "pair",
            Kind::Agent => "agent",
            Kind::AgentAlone => "agent-alone",
        };
        let away = match self.away {
            Away::Closed => "closed",
            Away::Open => "open",
            _ => "alone",
        };
        let Self {
            index,
            service,
            engine,
            allowance,
            workers,
            safe,
            ..
        } = self;
        let [rest, time, ahead] = [self.rest, self.time, self.ahead].map(|span| span.as_millis());
        format!(
            "{kind} {index} {service} {engine} {allowance} {away} {workers} {rest} {time} {ahead} {safe}"
        )
    }

    fn read(words: &str) -> Self {
        let words: Vec<&str> = words.split(' ').collect();
        let number = |place: usize| words[place].parse::<u64>().expect("a number");
        let small = |place| u32::try_from(number(place)).expect("a small number");
        let millis = |place| Duration::from_millis(number(place));
        Self {
            kind: match words[0] {
                "published" => Kind::PublishedAlone,
                "paced" => Kind::PacedAlone,
                "pair" => Kind::Pair,
                "agent" => Kind::Agent,
                "agent-alone" => Kind::AgentAlone,
                _ => Kind::Fleet,
            },
            index: u8::try_from(number(1)).expect("few members"),
            service: u16::try_from(number(2)).expect("a port"),
            engine: words[3].to_owned(),
            allowance: small(4),
            away: match words[5] {
                "closed" => Away::Closed,
                "open" => Away::Open,
                _ => Away::Alone,
            },
            workers: small(6),
            rest: millis(7),
            time: millis(8),
            ahead: millis(9),
            safe: small(10),
        }
    }

    /// Starts this program once more, as a member. `arguments` lead it to [`obey`].
    pub(crate) fn start(&self, arguments: &[&str]) -> Process {
        let program = std::env::current_exe().expect("a program has a path");
        let child = Command::new(program)
            .args(arguments)
            .env(ORDER, self.words())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("it starts");
        Process(child)
    }
}

/// A member's process, killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Process(Child);

impl Process {
    /// Sends a signal, by the name that `kill` knows it by.
    pub(crate) fn signal(&self, name: &str) {
        let number = self.0.id().to_string();
        let sent = Command::new("kill").args([name, &number]).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill {name}");
    }

    /// Waits for its end.
    pub(crate) fn end(self) {
        assert!(self.lives(), "a member failed");
    }

    /// Waits for its end, and returns whether it was a success.
    pub(crate) fn lives(mut self) -> bool {
        self.0.wait().expect("it ends").success()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// Returns the order of this process, if it was started as a member.
pub(crate) fn order() -> Option<Order> {
    std::env::var(ORDER).ok().map(|words| Order::read(&words))
}

/// Sends until the time is over.
pub(crate) fn obey(order: &Order) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    match order.kind {
        Kind::Pair => runtime.block_on(send_pairs(order)),
        Kind::Agent => {
            // A turn that fails is the end of all before it.
            let retries = Standard::builder().max_attempts(100).quota_capacity(10_000);
            let strategy = retries.build().expect("in range");
            runtime.block_on(async {
                let budget = join(order, "agents", order.allowance);
                take_turns(&FleetStrategy::new(strategy, budget), order).await;
            });
        }
        Kind::AgentAlone => runtime.block_on(take_turns(&Standard::new(), order)),
        _ => runtime.block_on(send(order)),
    }
}

#[derive(Debug)]
struct Ahead(MonotonicClock, Duration);

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        let ahead = u64::try_from(self.1.as_nanos()).unwrap_or(u64::MAX);
        Timestamp::from_nanos(self.0.now().as_nanos().saturating_add(ahead))
    }
}

/// What asks for a turn before each send.
#[derive(Debug)]
enum Gate {
    Alone(SendRate, MonotonicClock),
    Fleet(Budget),
}

impl Gate {
    fn of(order: &Order) -> Self {
        let clock = MonotonicClock::new();
        let law = match order.kind {
            Kind::PublishedAlone => ControlLaw::Aws,
            Kind::PacedAlone => ControlLaw::Paced,
            _ => return Self::Fleet(join(order, "rig", order.allowance)),
        };
        Self::Alone(SendRate::new(law, clock.now()), clock)
    }

    async fn acquire(&self) -> SendPermit {
        let (rate, clock) = match self {
            Self::Fleet(budget) => return budget.acquire().await,
            Self::Alone(rate, clock) => (rate, clock),
        };
        let mut place = rate.reserve(clock.now());
        loop {
            match place.claim(clock.now()) {
                Ok(permit) => return permit,
                Err(wait) => tokio::time::sleep(wait.min(Duration::from_millis(50))).await,
            }
        }
    }

    fn record(&self, permit: SendPermit, outcome: Outcome) {
        match self {
            Self::Fleet(budget) => budget.record(permit, outcome),
            Self::Alone(rate, clock) => {
                rate.record(clock.now(), permit, outcome);
            }
        }
    }
}

/// The five lines.
fn join(order: &Order, name: &str, allowance: u32) -> Budget {
    let fleet = match order.engine.strip_prefix("file:") {
        #[cfg(feature = "local")]
        Some(path) => Fleet::local(path),
        _ => Fleet::open(&order.engine),
    };
    let fleet = fleet.expect("an address");
    let scope = match allowance {
        0 => fleet.unknown(name),
        known => fleet.scope(name, known, Duration::from_secs(1)),
    };
    let clock = Ahead(MonotonicClock::new(), order.ahead);
    let mut scope = scope
        .expect("in range")
        .when_away(order.away)
        .clock(Arc::new(clock));
    if order.safe > 0 {
        let safe = scope.safe_rate(order.safe, Duration::from_secs(1));
        scope = safe.expect("in range");
    }
    scope.join().expect("a runtime")
}

async fn send(order: &Order) {
    let gate = Arc::new(Gate::of(order));
    let end = Instant::now() + order.time;
    let mut workers = Vec::new();
    for _ in 0..order.workers {
        let (gate, order) = (Arc::clone(&gate), order.clone());
        workers.push(tokio::spawn(async move { work(&gate, &order, end).await }));
    }
    for worker in workers {
        // A service that is gone is the end of a test.
        let _ended = worker.await;
    }
}

async fn work(gate: &Gate, order: &Order, end: Instant) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", order.service)).await?;
    stream.set_nodelay(true)?;
    stream.write_u8(order.index).await?;
    while Instant::now() < end {
        let permit = gate.acquire().await;
        stream.write_u8(b'.').await?;
        let outcome = match stream.read_u8().await? {
            THROTTLED => Outcome::Throttled,
            _ => Outcome::NotThrottled,
        };
        gate.record(permit, outcome);
        if !order.rest.is_zero() {
            tokio::time::sleep(order.rest).await;
        }
    }
    Ok(())
}

/// Takes the turns of an agent. A turn that fails ends the process.
async fn take_turns(strategy: &impl RetryStrategy, order: &Order) {
    for _ in 0..order.workers {
        let turn = strategy.operation().run_async(|_| take_turn(order.service));
        if turn.await.is_err() {
            std::process::exit(1);
        }
        tokio::time::sleep(order.rest).await;
    }
}

/// Sends the request of a turn, on a connection of the turn.
async fn take_turn(service: u16) -> Result<(), Failure> {
    let answer = async {
        let mut stream = TcpStream::connect(("127.0.0.1", service)).await?;
        stream.write_u8(b'.').await?;
        Ok::<_, std::io::Error>((stream.read_u16().await?, stream.read_u32().await?))
    };
    match answer.await {
        Ok((200, _)) => Ok(()),
        Ok((429, hint)) => {
            let hint = RetryAfter::AtLeast(Duration::from_millis(u64::from(hint)));
            Err(Failure::throttling().with_retry_after(hint))
        }
        Ok((529, _)) => Err(Failure::throttling()),
        _ => Err(Failure::transient()),
    }
}

/// Sends requests that cost ten to thirty tokens each, and goes by what the service declares.
async fn send_pairs(order: &Order) {
    let requests = join(order, "requests", order.allowance);
    let tokens = join(order, "tokens", order.allowance);
    let set = BudgetSet::new([requests, tokens]).expect("two members");
    let strategy = Arc::new(FleetStrategy::of_set(Standard::new(), set));
    let end = Instant::now() + order.time;
    let mut workers = Vec::new();
    for _ in 0..order.workers {
        let (strategy, order) = (Arc::clone(&strategy), order.clone());
        workers.push(tokio::spawn(async move {
            work_on_pairs(&strategy, &order, end).await
        }));
    }
    for worker in workers {
        // A service that is gone is the end of a test.
        let _ended = worker.await;
    }
}

async fn work_on_pairs(
    strategy: &FleetStrategy<Standard, 2>,
    order: &Order,
    end: Instant,
) -> std::io::Result<()> {
    let stream = TcpStream::connect(("127.0.0.1", order.service)).await?;
    stream.set_nodelay(true)?;
    let stream = &Mutex::new(stream);
    let [_, tokens] = strategy.set().budgets();
    while Instant::now() < end {
        let cost = fastrand::u32(10..=30);
        let estimate = if order.index % 2 == 0 {
            cost * 3
        } else {
            cost / 3
        };
        let operation = strategy.operation().weights([1, estimate]).reporting();
        let sent = operation.run_async(|_| async move {
            let (throttled, declared) = ask(&mut *stream.lock().await, cost).await?;
            let told = tokens.set_allowance(declared, Duration::from_secs(1));
            told.expect("in range");
            let answer = if throttled {
                Err(Failure::throttling())
            } else {
                Ok(())
            };
            Reports::new().costing(&[1, cost].into()).beside(answer)
        });
        if sent.await.is_err() {
            break;
        }
    }
    Ok(())
}

/// Sends a request of this cost: returns whether it was throttled, and what is declared.
async fn ask(stream: &mut TcpStream, cost: u32) -> Result<(bool, u32), Failure> {
    let answer = async {
        stream.write_u32(cost).await?;
        let throttled = stream.read_u8().await? == THROTTLED;
        Ok::<_, std::io::Error>((throttled, stream.read_u32().await?))
    };
    answer.await.map_err(|_| Failure::not_retryable())
}
