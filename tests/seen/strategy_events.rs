//! What strategies tell `tracing` and `metrics`: each change of state once, and the names that the
//! docs list.

use alloc::collections::BTreeSet;
use core::fmt::{Debug, Write as _};
use core::time::Duration;
use std::sync::Mutex;

use crate::support::{Arc, Hands, http};
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
};
use metrics::{SharedString, Unit};
use paceline::{
    Adaptive, Class, Clock, Failure, Operation, RetryStrategy, RetryStrategyExt, SendPermit,
    Standard,
    law::{DeclaredSettings, Dimension, LimitReport, LimitReports, PacedSettings, Reset},
    operation::{Attempts, Next, Verdict},
    snapshot::StrategySnapshot,
    strategy::Reports,
};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};

/// Keeps the messages of events, and those fields of which the value is known beforehand.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn lines(&self) -> Vec<String> {
        core::mem::take(&mut self.0.lock().unwrap())
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.0.insert_str(0, &format!("{value:?}")),
            "available" | "needed" | "ignored" => {
                write!(self.0, " {}={value:?}", field.name()).unwrap();
            }
            "limit" => {
                let limit = format!("{value:?}");
                let shown = limit.split(" of ").nth(1).unwrap();
                let shown = shown.split(" left").next().unwrap();
                write!(self.0, " {shown}").unwrap();
            }
            "dimension" => write!(self.0, " {value:?}").unwrap(),
            "policy" => {}
            "strategy" | "rate" => write!(self.0, " {}", field.name()).unwrap(),
            other => panic!("the docs know no {other}"),
        }
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "paceline" && *metadata.level() <= tracing::Level::INFO
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

fn fail(strategy: &impl RetryStrategy, failure: &Failure) {
    let token = strategy.acquire_initial_token(None).unwrap();
    drop(strategy.refresh_retry_token(token, failure, Reports::new()));
}

fn succeed(strategy: &impl RetryStrategy) {
    let token = strategy.acquire_initial_token(None).unwrap();
    strategy.record_success(token, Reports::new()).unwrap();
}

#[test]
fn quota_says_once_that_it_is_exhausted_and_once_that_it_has_recovered() {
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        let strategy = Standard::builder().quota_capacity(20).build().unwrap();
        fail(&strategy, &http(500));
        assert_eq!(log.lines(), [""; 0], "a retry that is paid is no change");
        fail(&strategy, &http(500));
        fail(&strategy, &http(500));
        assert_eq!(
            log.lines(),
            ["retry quota exhausted strategy available=6 needed=14"]
        );
        strategy.quota().refill();
        assert_eq!(log.lines(), [""; 0], "none has been granted yet");
        fail(&strategy, &http(500));
        assert_eq!(log.lines(), ["retry quota recovered strategy available=6"]);
    });
}

#[test]
fn send_rate_says_that_it_engages_cuts_and_recovers() {
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        let clock = Arc::new(Hands::default());
        let strategy = Adaptive::builder()
            .paced(PacedSettings::new())
            .clock(Arc::clone(&clock) as Arc<dyn Clock>)
            .build()
            .unwrap();
        for _ in 0..100 {
            succeed(&strategy);
            clock.sleep(Duration::from_millis(10));
        }
        assert_eq!(log.lines(), [""; 0]);
        fail(&strategy, &Failure::throttling());
        assert_eq!(log.lines(), ["send rate enabled strategy rate"]);
        fail(&strategy, &Failure::throttling());
        assert_eq!(log.lines(), [""; 0], "the same overshoot cuts once");
        for _ in 0..50 {
            succeed(&strategy);
            clock.sleep(Duration::from_millis(20));
        }
        let token = strategy.acquire_initial_token(None).unwrap();
        let mut token = token;
        token.sent(SendPermit::sent_at(clock.now()));
        clock.sleep(Duration::from_millis(1));
        drop(strategy.refresh_retry_token(token, &Failure::throttling(), Reports::new()));
        assert_eq!(log.lines(), ["send rate cut strategy rate"]);
        // All that the rate allows, until that is four times what was throttled.
        while strategy.send_rate().snapshot(clock.now()).enabled {
            succeed(&strategy);
            let rate = strategy.send_rate().snapshot(clock.now()).fill_rate;
            clock.sleep(Duration::from_secs_f64(1.0 / rate));
        }
        assert_eq!(log.lines(), ["send rate recovered strategy"]);
        assert_eq!(strategy.snapshot().counts.cuts, 2);
        fail(&strategy, &Failure::throttling());
        assert_eq!(log.lines(), ["send rate enabled strategy rate"]);
    });
}

/// 100 requests and 10,000 tokens a minute, of which so many are left.
fn limits(requests: u64, tokens: u64) -> LimitReports {
    let report = |left, limit, dimension| {
        LimitReport::new(left)
            .dimension(dimension)
            .limit(limit)
            .reset(Reset::In(Duration::from_secs(60)))
    };
    let mut reports = LimitReports::from(report(requests, 100, Dimension::Requests));
    reports.push(report(tokens, 10_000, Dimension::Tokens));
    reports
}

/// An operation of a strategy of requests and tokens, which has sent a request of `[1, 500]`.
fn several() -> (Arc<Hands>, Attempts<Adaptive>) {
    let clock = Arc::new(Hands::default());
    let strategy = Adaptive::builder()
        .declared(DeclaredSettings::new())
        .also(DeclaredSettings::new().dimension(Dimension::Tokens))
        .clock(Arc::clone(&clock) as Arc<dyn Clock>)
        .build()
        .unwrap();
    let mut attempts = Operation::new(strategy).weights([1, 500]).start();
    assert!(matches!(attempts.next(&*clock, None), Next::Send(_)));
    (clock, attempts)
}

#[test]
fn a_report_of_what_is_known_is_no_event() {
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        let clock = Arc::new(Hands::default());
        let builder = Adaptive::builder().declared(DeclaredSettings::new());
        let builder = builder.clock(Arc::clone(&clock) as Arc<dyn Clock>);
        let strategy = builder.build().unwrap();
        let send = |left| {
            let mut attempts = Operation::new(&strategy).start();
            assert!(matches!(attempts.next(&*clock, None), Next::Send(_)));
            let reports = limits(left, 10_000);
            let reports = Reports::at(&*clock).declaring(&reports);
            attempts.observe(reports).unwrap();
            log.lines()
        };
        assert_eq!(send(99), ["limit declared strategy 100 requests"]);
        clock.sleep(Duration::from_secs(2));
        assert_eq!(send(98), [""; 0]);
        let left = strategy.snapshot().rate.unwrap().declared.unwrap();
        assert_eq!(
            left.remaining.round().to_bits(),
            98_f64.to_bits(),
            "it was taken"
        );
    });
}

#[test]
fn every_send_rate_says_what_is_declared_and_contradicted() {
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        let (clock, mut attempts) = several();
        let reports = limits(60, 9_000);
        let reports = Reports::at(&*clock).declaring(&reports);
        attempts.observe(reports).unwrap();
        assert_eq!(
            log.lines(),
            [
                "limit declared strategy 100 requests",
                "limit declared strategy 10000 tokens"
            ]
        );
        let failed = attempts.failed(&Failure::throttling(), reports);
        assert!(matches!(failed, Ok(Verdict::Again(_))));
        assert_eq!(
            log.lines(),
            ["declared limit contradicted strategy 100 requests"],
            "the least is left of that one"
        );
    });
}

#[test]
fn a_strategy_that_listens_says_once_that_it_hears_nothing() {
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        let strategy = Adaptive::declared();
        let three = || (0..3).for_each(|_| succeed(&strategy));
        succeed(&strategy);
        succeed(&strategy);
        assert_eq!(log.lines(), [""; 0], "two answers may have no report");
        three();
        assert_eq!(
            log.lines(),
            ["no declared limits heard strategy requests ignored=0"]
        );
        assert!(strategy.snapshot().rate.unwrap().unheard);
        strategy.forget_throttles();
        assert_eq!(log.lines(), [""; 0]);
        three();
        assert_eq!(log.lines().len(), 1, "it was begun again");
        let paced = Adaptive::paced();
        (0..9).for_each(|_| succeed(&paced));
        assert_eq!(log.lines(), [""; 0], "it does not listen");
        let deaf = Adaptive::declared();
        let at = Reset::At(Duration::from_secs(1_700_000_000));
        let dateless = LimitReports::from(LimitReport::new(9).limit(10).reset(at));
        for _ in 0..3 {
            let token = deaf.acquire_initial_token(None).unwrap();
            let reports = Reports::new().declaring(&dateless);
            deaf.record_success(token, reports).unwrap();
        }
        let ignored = "no declared limits heard strategy requests ignored=3";
        assert_eq!(log.lines(), [ignored], "a time without a date");
        let shown = deaf.snapshot().rate.unwrap().to_string();
        let end = ", no declared limit heard, 3 reports ignored";
        assert!(shown.ends_with(end), "{shown}");
    });
}

#[test]
fn one_of_several_that_hears_nothing_is_named() {
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        let (clock, mut attempts) = several();
        let requests = limits(60, 9_000);
        let requests = LimitReports::from(*requests.iter().next().unwrap());
        let reports = Reports::at(&*clock).declaring(&requests);
        attempts.succeeded(reports).unwrap();
        for _ in 0..2 {
            clock.sleep(Duration::from_secs(10));
            let strategy = attempts.strategy();
            let mut next = Operation::new(strategy).weights([1, 500]).start();
            assert!(matches!(next.next(&*clock, None), Next::Send(_)));
            next.succeeded(reports).unwrap();
        }
        let told = log.lines();
        let unheard = told.iter().filter(|line| line.starts_with("no declared"));
        assert_eq!(
            unheard.collect::<Vec<_>>(),
            ["no declared limits heard strategy tokens ignored=0"]
        );
    });
}

/// Keeps what is recorded, by name and labels.
#[derive(Clone, Default)]
struct Board(Arc<Mutex<Vec<String>>>);

struct Cell(Board, String);

impl Cell {
    fn put(&self, value: &dyn Debug) {
        self.0
            .0
            .lock()
            .unwrap()
            .push(format!("{} = {value:?}", self.1));
    }
}

impl CounterFn for Cell {
    fn increment(&self, by: u64) {
        self.put(&format_args!("+{by}"));
    }
    fn absolute(&self, value: u64) {
        self.put(&value);
    }
}

impl GaugeFn for Cell {
    fn increment(&self, _: f64) {
        panic!("gauges are set");
    }
    fn decrement(&self, _: f64) {
        panic!("gauges are set");
    }
    fn set(&self, value: f64) {
        self.put(&value);
    }
}

impl HistogramFn for Cell {
    fn record(&self, value: f64) {
        self.put(&value);
    }
}

impl Board {
    fn cell(&self, key: &Key) -> Arc<Cell> {
        let mut name = String::from(key.name().strip_prefix("paceline_").unwrap());
        for label in key.labels() {
            write!(name, " {}={}", label.key(), label.value()).unwrap();
        }
        Arc::new(Cell(self.clone(), name))
    }
}

impl Recorder for Board {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.cell(key))
    }
    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.cell(key))
    }
    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.cell(key))
    }
}

fn published(snapshot: &StrategySnapshot) -> Vec<String> {
    recorded(|| snapshot.publish("orders"))
}

fn recorded(publish: impl FnOnce()) -> Vec<String> {
    let board = Board::default();
    metrics::with_local_recorder(&board, publish);
    core::mem::take(&mut *board.0.lock().unwrap())
}

#[cfg(feature = "scopes")]
#[test]
fn counts_of_scopes_are_published_by_the_names_in_the_docs() {
    let scopes = Standard::builder().scopes().max_scopes(1).build().unwrap();
    drop(scopes.get("a").unwrap());
    let _used = scopes.get("b").unwrap();
    assert!(scopes.get("c").is_err() && scopes.get("d").is_err());
    assert_eq!(
        recorded(|| scopes.snapshot().publish("tables")),
        [
            "scopes scopes=tables = 1.0",
            "scopes_max scopes=tables = 1.0",
            "scopes_evicted_total scopes=tables = 1",
            "scopes_refused_total scopes=tables = 2",
        ]
    );
}

#[test]
fn snapshot_is_published_by_the_names_in_the_docs() {
    let strategy = Standard::builder().quota_capacity(20).build().unwrap();
    fail(&strategy, &http(500));
    fail(&strategy, &http(500));
    fail(&strategy, &http(404));
    fail(&strategy, &Failure::throttling());
    assert_eq!(
        published(&strategy.snapshot()),
        [
            "quota_available strategy=orders = 1.0",
            "quota_capacity strategy=orders = 20.0",
            "retries_refused_total strategy=orders cause=attempts = 0",
            "retries_refused_total strategy=orders cause=safety = 1",
            "retries_refused_total strategy=orders cause=quota = 1",
            "retries_refused_total strategy=orders cause=time = 0",
            "retries_refused_total strategy=orders cause=other = 0",
            "retries_granted_total strategy=orders = 2",
            "sends_delayed_total strategy=orders = 0",
            "sends_delayed_background_total strategy=orders = 0",
            "sends_refused_total strategy=orders = 0",
            "throttled_total strategy=orders = 1",
            "cuts_total strategy=orders = 0",
            "credited_tokens_total strategy=orders = 0",
        ]
    );
}

#[test]
fn send_rate_is_published_if_there_is_one() {
    let settings = PacedSettings::fixed(100, Duration::from_secs(1)).unwrap();
    let clock = Arc::new(Hands::default());
    let builder = Adaptive::builder().paced(settings).clock(clock);
    let strategy = builder.build().unwrap();
    let published = published(&strategy.snapshot());
    let rate: Vec<_> = published
        .iter()
        .filter(|line| line.starts_with("send_rate"))
        .collect();
    assert_eq!(rate.len(), 7);
    assert_eq!(rate[0], "send_rate_enabled strategy=orders = 1.0");
    assert_eq!(
        *rate[1],
        format!(
            "send_rate_fill strategy=orders = {:?}",
            strategy.snapshot().rate.unwrap().fill_rate
        )
    );
    assert_eq!(rate[2], "send_rate_available strategy=orders = 5.0");
    assert_eq!(rate[3], "send_rate_measured strategy=orders = 0.0");
    assert_eq!(rate[4], "send_rate_waiting strategy=orders = 0.0");
}

#[test]
fn both_classes_are_published_as_in_the_snapshot() {
    let settings = PacedSettings::fixed(8, Duration::from_secs(1)).unwrap();
    let settings = settings.to_builder().burst(Duration::from_millis(125));
    let clock = Arc::new(Hands::default());
    let builder = Adaptive::builder().paced(settings.build().unwrap());
    let strategy = builder.clock(clock.clone()).build().unwrap();
    let start = |class| {
        let mut attempts = strategy.operation().class(class).start();
        let next = attempts.next(&*clock, None);
        (matches!(next, Next::Send(_)), attempts)
    };
    assert!(start(Class::Foreground).0);
    let mut people = [(); 2].map(|()| start(Class::Foreground).1);
    let mut backfill = [(); 3].map(|()| start(Class::Background).1);
    let classes = || {
        let seen = strategy.snapshot();
        let lines = published(&seen);
        let value = |name: &str| {
            let start = format!("{name} strategy=orders = ");
            let value = lines.iter().find_map(|line| line.strip_prefix(&*start));
            value.unwrap().parse::<f64>().unwrap().to_string()
        };
        let rate = seen.rate.unwrap();
        let expected = [
            seen.counts.delayed,
            seen.counts.delayed_background,
            rate.waiting,
            rate.background.waiting,
            rate.background.released,
        ];
        let exported = [
            "sends_delayed_total",
            "sends_delayed_background_total",
            "send_rate_waiting",
            "send_rate_background_waiting",
            "send_rate_background_released_total",
        ];
        assert_eq!(exported.map(value), expected.map(|count| count.to_string()));
        expected
    };
    assert_eq!(classes(), [5, 3, 2, 3, 0]);
    clock.sleep(Duration::from_millis(125));
    assert!(matches!(people[0].next(&*clock, None), Next::Send(_)));
    assert_eq!(classes(), [5, 3, 1, 3, 0]);
    clock.sleep(Duration::from_millis(125));
    assert!(matches!(people[1].next(&*clock, None), Next::Send(_)));
    clock.sleep(Duration::from_millis(125));
    assert!(matches!(backfill[0].next(&*clock, None), Next::Send(_)));
    assert_eq!(classes(), [5, 3, 0, 2, 1]);
}

#[test]
fn further_send_rates_are_published_with_their_limit() {
    let (_, attempts) = several();
    let published = published(&attempts.strategy().snapshot());
    let fills: Vec<_> = published
        .iter()
        .filter(|line| line.starts_with("send_rate_fill"))
        .map(|line| line.split(" = ").next().unwrap())
        .collect();
    assert_eq!(
        fills,
        [
            "send_rate_fill strategy=orders",
            "send_rate_fill strategy=orders limit=1"
        ]
    );
}

#[test]
fn an_operation_that_was_not_sent_took_no_attempts() {
    let lines = recorded(|| {
        let builder = Standard::builder().metrics("orders");
        let strategy = builder.build().unwrap();
        let run = |deadline| {
            let operation = strategy.operation().deadline(deadline);
            operation.run(|_| Ok::<_, Failure>(())).is_ok()
        };
        assert!(!run(Duration::ZERO));
        drop(strategy.operation().start());
        assert!(run(Duration::from_secs(60)));
    });
    let attempts = lines.iter().filter(|line| line.starts_with("attempts"));
    assert_eq!(
        attempts.collect::<Vec<_>>(),
        ["attempts strategy=orders = 1.0"]
    );
}

/// Logs, the metrics of requests and those of the state have it.
#[test]
fn a_strategy_is_named_once() {
    let labels = |lines: Vec<String>| {
        let labels = lines.iter().flat_map(|line| line.split(' '));
        let labels = labels.filter(|label| label.starts_with("strategy="));
        labels.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let lines = recorded(|| {
        let orders = Standard::builder().metrics("orders").build().unwrap();
        let failed = orders.run(|_| Err::<(), _>(Failure::not_retryable()));
        assert_eq!(failed.unwrap_err().name(), Some("orders"));
        orders.publish();
    });
    assert!(lines.iter().any(|line| line.starts_with("sends_total ")));
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("quota_available "))
    );
    assert_eq!(
        labels(lines),
        BTreeSet::from(["strategy=orders".to_owned()])
    );
    let named = Standard::builder().metrics("requests").name("orders");
    assert_eq!(named.build().unwrap().name(None).as_deref(), Some("orders"));
    let nameless = Standard::new();
    let number = format!("strategy={}", nameless.id().unwrap());
    assert_eq!(
        labels(recorded(|| nameless.publish())),
        BTreeSet::from([number])
    );
    let none = Standard::builder().metrics("").build().unwrap();
    let lines = recorded(|| {
        none.run(|_| Ok::<_, Failure>(())).unwrap();
        none.snapshot().publish("");
    });
    assert_eq!(labels(lines), BTreeSet::new(), "no series of an empty name");
}
