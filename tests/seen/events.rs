//! The events of requests: in a hook, to `tracing`, in errors and in `Debug`.

use core::fmt::{Debug, Write as _};
use core::time::Duration;
use std::sync::{LazyLock, Mutex};

use crate::support::{Arc, Fixed, Hands, ms};
use paceline::{
    Adaptive, Class, Clock, Failure, Legacy, Operation, RetryStrategy, RetryStrategyExt, Standard,
    config::StrategyBuilder,
    law::{DeclaredSettings, Dimension, PacedSettings},
    operation::{Next, StopReason},
    scope::ScopesBuilder,
    strategy::{EventKind, Reports},
};
use tracing::{
    Dispatch, Event, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

/// Keeps lines.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn lines(&self) -> Vec<String> {
        core::mem::take(&mut self.0.lock().unwrap())
    }

    /// Returns a hook that keeps every event.
    fn hook(&self) -> impl Fn(&paceline::strategy::Event<'_>) + Send + Sync + 'static {
        let log = self.clone();
        move |event| log.0.lock().unwrap().push(event.to_string())
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.0.insert_str(0, &format!("{value:?}")),
            "strategy" | "delay" => write!(self.0, "; {}", field.name()).unwrap(),
            name => write!(self.0, "; {name} {value:?}").unwrap(),
        }
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("paceline")
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut line = Line(format!("; {}", event.metadata().level()));
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// With one subscriber alive, tracing asks that of the thread which comes by first whether an event
/// is wanted: another test's thread has none. With two it asks all that are alive.
static ALIVE: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(Log::default()));

/// Returns the lines of `tracing` of one operation whose attempts end like this.
fn traced(strategy: &impl RetryStrategy, answers: &[Result<(), Failure>]) -> Vec<String> {
    LazyLock::force(&ALIVE);
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        let mut answers = answers.iter().copied();
        let operation = strategy.operation().sleep_by(|_| ());
        let _ended = operation.run(|_| answers.next().expect("no more attempts than that"));
    });
    log.lines()
}

const FAILS: Result<(), Failure> = Err(Failure::transient());

#[test]
fn each_retry_and_the_end_are_traced() {
    let strategy = Standard::builder().max_attempts(2).name("orders");
    let strategy = strategy.build().unwrap();
    assert_eq!(traced(&strategy, &[Ok(())]), [""; 0], "a success is none");
    let retry = "attempt failed, retrying; DEBUG; strategy; name \"orders\"; attempt 1; \
                 failure transient server error; delay";
    assert_eq!(traced(&strategy, &[FAILS, Ok(())]), [retry]);
    let refused = "retry refused; DEBUG; strategy; name \"orders\"; attempt 2; \
                   failure transient server error; reason all 2 attempts made";
    let gave_up = "gave up; DEBUG; strategy; name \"orders\"; attempts 2; \
                   failure transient server error; reason all 2 attempts made";
    assert_eq!(
        traced(&strategy, &[FAILS, FAILS]),
        [retry, refused, gave_up]
    );
    let legacy = Legacy::new().max_attempts(core::num::NonZeroU32::MIN);
    let gave_up = gave_up.replace("; name \"orders\"", "").replace('2', "1");
    assert_eq!(traced(&legacy, &[FAILS]), [gave_up]);
}

#[test]
fn a_hook_gets_every_event_of_an_operation() {
    let log = Log::default();
    let builder = Standard::builder().name("orders").quota_capacity(20);
    let builder = builder.base_delay(Duration::ZERO);
    let strategy = builder.on_event(log.hook()).build().unwrap();
    let run = |answers: &[Result<(), Failure>]| {
        let mut answers = answers.iter().copied();
        drop(strategy.run(|_| answers.next().unwrap()));
        log.lines()
    };
    let sent = "orders: sent after 0ns in line";
    let retry = "orders: attempt failed, retrying: attempt 1, transient server error, in 0ns";
    assert_eq!(run(&[Ok(())]), [sent, "orders: succeeded: attempts 1"]);
    assert_eq!(
        run(&[FAILS, Ok(())]),
        [sent, retry, sent, "orders: succeeded: attempts 2"]
    );
    assert_eq!(
        run(&[FAILS, FAILS]),
        [
            sent,
            retry,
            sent,
            "orders: retry quota exhausted: 6 left, 14 needed",
            "orders: retry refused: attempt 2, transient server error, \
             retry quota exhausted: 6 available, 14 needed",
            "orders: gave up: attempts 2, retry quota exhausted: 6 available, 14 needed, \
             transient server error",
        ]
    );
    let mut attempts = Operation::new(&strategy).start();
    assert!(matches!(
        attempts.next(strategy.clock(), None),
        Next::Send(_)
    ));
    drop(attempts);
    assert_eq!(log.lines(), [sent, "orders: cancelled: attempts 1"]);
    drop(Operation::new(&strategy).start());
    assert_eq!(log.lines(), ["orders: cancelled: attempts 0"], "not sent");
}

#[test]
fn two_hooks_are_both_called() {
    let (first, second) = (Log::default(), Log::default());
    let builder = Standard::builder().on_event(first.hook());
    let strategy = builder.on_event(second.hook()).build().unwrap();
    strategy.run(|_| Ok::<_, Failure>(())).unwrap();
    assert_eq!((first.lines().len(), second.lines().len()), (2, 2));
}

#[test]
fn a_name_is_in_errors_and_in_debug_and_a_scope_s_is_its_key() {
    let orders = Standard::builder().name("orders").build().unwrap();
    let failed = orders.run(|_| Err::<(), _>(Failure::not_retryable()));
    let failed = failed.unwrap_err();
    assert_eq!(failed.name(), Some("orders"));
    let shown = "orders: stopped after 1 attempt: the failure is not retryable";
    assert_eq!(failed.to_string(), shown);
    assert!(
        format!("{orders:?}").contains("name: \"orders\""),
        "{orders:?}"
    );
    assert_eq!(Standard::new().name(None), None);

    let log = Log::default();
    let builder = Adaptive::builder()
        .law(paceline::ControlLaw::Aws)
        .name("tables")
        .on_event(log.hook());
    let tables = builder.scopes().build().unwrap();
    let fail = |scope: Option<&str>| {
        let mut operation = tables.operation();
        if let Some(scope) = scope {
            operation = operation.scope(scope);
        }
        let failed = operation.run(|_| Err::<(), _>(Failure::not_retryable()));
        (failed.unwrap_err().name().map(str::to_owned), log.lines())
    };
    let (name, lines) = fail(Some("eu/orders"));
    assert_eq!(name.as_deref(), Some("eu/orders"));
    let gave_up = "gave up: attempts 1, the failure is not retryable, error; not retryable";
    assert_eq!(*lines.last().unwrap(), format!("eu/orders: {gave_up}"));
    let scope = tables.get("eu/orders").unwrap();
    assert_eq!(scope.name(None).as_deref(), Some("eu/orders"));
    assert!(format!("{:?}", *scope).contains("name: \"eu/orders\""));
    let (name, lines) = fail(None);
    assert_eq!(name.as_deref(), Some("tables"), "the shared state");
    assert_eq!(*lines.last().unwrap(), format!("tables: {gave_up}"));
}

#[test]
fn a_key_names_the_scopes_of_a_template_and_all_operations() {
    let log = Log::default();
    let builder = Standard::builder().on_event(log.hook());
    let named = builder.clone().name("patient");
    let scopes = builder
        .clone()
        .scopes()
        .exceptions(move |key| (key == "bare").then(|| builder.clone().name(key).build()))
        .exceptions(move |key| (key == "named").then(|| named.clone().build()))
        .build()
        .unwrap();
    for (key, name) in [("bare", "bare"), ("named", "patient"), ("other", "other")] {
        let scope = scopes.get(key).unwrap();
        assert_eq!(scope.name(None).as_deref(), Some(name));
        drop(scope.run(|_| Err::<(), _>(Failure::not_retryable())));
        let lines = log.lines();
        let prefix = format!("{name}: ");
        assert!(lines.len() > 2 && lines.iter().all(|line| line.starts_with(&prefix)));
    }
    assert_eq!(scopes.name(None), None, "the shared state has no key");

    let fails = || Err::<(), _>(Failure::not_retryable());
    let arcs = ScopesBuilder::new(|_| Ok(Arc::new(Standard::new()))).build();
    let arcs = arcs.unwrap();
    let failed = arcs.operation().scope("a").run(|_| fails()).unwrap_err();
    assert_eq!(failed.name(), Some("a"), "it was given no name");
    let legacy = ScopesBuilder::new(|_| Ok(Legacy::new())).build().unwrap();
    let failed = legacy.operation().scope("a").run(|_| fails()).unwrap_err();
    assert_eq!(failed.name(), Some("a"), "it cannot be named");
}

#[test]
fn an_operation_that_ends_between_attempts_gives_up_too() {
    let log = Log::default();
    let builder = Standard::builder().name("orders").on_event(log.hook());
    let strategy = builder.build().unwrap();
    let stopped = strategy.operation().deadline(Duration::ZERO);
    let stopped = stopped.run(|_| Ok::<_, Failure>(())).unwrap_err();
    assert!(matches!(stopped.why(), StopReason::OutOfTime { .. }));
    assert_eq!(stopped.name(), Some("orders"));
    let gave_up = format!("orders: gave up: attempts 0, {}", stopped.why());
    assert_eq!(log.lines(), [gave_up.as_str()]);
    let mut own = Operation::new(&strategy).deadline(Duration::ZERO).start();
    assert!(matches!(own.next(strategy.clock(), None), Next::Stop(_)));
    drop(own);
    assert_eq!(log.lines(), [gave_up], "a loop that is not paceline's");
}

/// One request every two seconds, by a clock that is moved by hand.
fn slow(log: &Log, fails_fast: bool) -> (Arc<Hands>, Adaptive) {
    let clock = Arc::new(Hands::default());
    let settings = PacedSettings::fixed(30, Duration::from_secs(60)).unwrap();
    let builder = Adaptive::builder().paced(settings).name("orders");
    let builder = builder.clock(Arc::clone(&clock) as Arc<dyn Clock>);
    let builder = builder.fail_fast(fails_fast).on_event(log.hook());
    (clock, builder.build().unwrap())
}

#[test]
fn one_line_explains_a_wait_of_more_than_a_second() {
    let log = Log::default();
    let (clock, strategy) = slow(&log, false);
    let (mut first, mut second) = (strategy.operation().start(), strategy.operation().start());
    assert!(matches!(first.next(&*clock, None), Next::Send(_)));
    assert_eq!(log.lines(), ["orders: sent after 0ns in line"]);
    assert!(matches!(second.next(&*clock, None), Next::InLine(_)));
    let rate = strategy.send_rate().snapshot(clock.now());
    let wait = "orders: waits for a second or more: 2s for limit 0 (requests)";
    assert_eq!(log.lines(), [format!("{wait}, {rate}")]);
    assert!(rate.to_string().contains(" 1 waiting"), "{rate}");
    assert!(matches!(second.next(&*clock, None), Next::InLine(_)));
    assert_eq!(log.lines(), [""; 0], "once");
    clock.sleep(Duration::from_secs(2));
    assert!(matches!(second.next(&*clock, None), Next::Send(_)));
    assert_eq!(log.lines(), ["orders: sent after 2s in line"]);
    let mut behind = strategy.operation().class(Class::Background).start();
    assert!(matches!(behind.next(&*clock, None), Next::InLine(_)));
    let lines = log.lines();
    assert!(
        lines[0].contains("(requests), in background, "),
        "{lines:?}"
    );
    assert_eq!(lines[1], "orders: background waits for the first time");
    clock.sleep(Duration::from_secs(2));
    assert!(matches!(behind.next(&*clock, None), Next::Send(_)));
    assert_eq!(
        log.lines(),
        ["orders: sent after 2s in line, in background"]
    );
}

#[test]
fn a_long_wait_names_the_limit_of_several() {
    let log = Log::default();
    let clock = Arc::new(Hands::default());
    let minute = |n| PacedSettings::fixed(n, Duration::from_secs(60)).unwrap();
    let tokens = DeclaredSettings::new().dimension(Dimension::Tokens);
    let strategy = Adaptive::builder()
        .paced(minute(6_000))
        .also(tokens.otherwise(minute(600)))
        .clock(Arc::clone(&clock) as Arc<dyn Clock>)
        .on_event(log.hook())
        .build()
        .unwrap();
    let mut first = strategy.operation().weights([1, 10]).start();
    while let Next::InLine(rest) = first.next(&*clock, None) {
        clock.sleep(rest.span());
    }
    log.lines();
    let mut second = strategy.operation().weights([1, 30]).start();
    assert!(matches!(second.next(&*clock, None), Next::InLine(_)));
    let lines = log.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].contains(" for limit 1 (tokens), 10.0/s"),
        "{lines:?}"
    );
}

#[test]
fn a_send_that_is_refused_is_an_event() {
    let log = Log::default();
    let (_clock, strategy) = slow(&log, true);
    strategy.run(|_| Ok::<_, Failure>(())).unwrap();
    log.lines();
    let refused = strategy.run(|_| Ok::<_, Failure>(())).unwrap_err();
    let reason = refused.why();
    assert_eq!(
        log.lines(),
        [
            "orders: send refused: its turn would come in 2s".to_owned(),
            "orders: sends refused: 1 so far, the last with its turn in 2s".to_owned(),
            format!("orders: gave up: attempts 0, {reason}"),
        ]
    );
}

#[test]
fn hooks_hear_of_changes_of_the_send_rate() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (log, clock) = (Arc::clone(&seen), Arc::new(Hands::default()));
    let strategy = Adaptive::builder()
        .paced(PacedSettings::new())
        .clock(Arc::clone(&clock) as Arc<dyn Clock>)
        .on_event(move |event| match event.kind {
            EventKind::Enabled { .. } => log.lock().unwrap().push("enabled"),
            EventKind::Recovered => log.lock().unwrap().push("recovered"),
            _ => {}
        })
        .build()
        .unwrap();
    let succeed = |span| {
        let token = strategy.acquire_initial_token(None).unwrap();
        strategy.record_success(token, Reports::new()).unwrap();
        clock.sleep(span);
    };
    (0..100).for_each(|_| succeed(Duration::from_millis(10)));
    let token = strategy.acquire_initial_token(None).unwrap();
    drop(strategy.refresh_retry_token(token, &Failure::throttling(), Reports::new()));
    // All that the rate allows, until that is four times what was throttled.
    while strategy.send_rate().snapshot(clock.now()).enabled {
        let rate = strategy.send_rate().snapshot(clock.now()).fill_rate;
        succeed(Duration::from_secs_f64(1.0 / rate));
    }
    assert_eq!(*seen.lock().unwrap(), ["enabled", "recovered"]);
}

/// A hook that panicked again on the way out would abort the process.
#[test]
fn a_hook_that_panics_unwinds_once() {
    let calls = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&calls);
    let strategy = Standard::builder().on_event(move |event| {
        if let Ok(mut calls) = counted.lock() {
            *calls += 1;
        }
        panic!("{event}");
    });
    let strategy = strategy.build().unwrap();
    let run = || strategy.run(|_| Ok::<_, Failure>(())).is_ok();
    let unwound = std::panic::catch_unwind(core::panic::AssertUnwindSafe(run));
    assert!(unwound.is_err());
    assert_eq!(*calls.lock().unwrap(), 1);
}

/// A deadline, a longest wait and a strategy that fails fast refuse alike: the send was not delayed.
#[test]
fn a_refusal_is_counted_and_told_as_one_and_in_one_line_a_second() {
    let refuses = |name: &str, deadline: Option<u64>, builder: StrategyBuilder<Adaptive>| {
        let (clock, log) = (Arc::new(Hands::default()), Log::default());
        let strategy = builder.clock(Arc::clone(&clock) as Arc<dyn Clock>);
        let strategy = strategy.build().unwrap();
        strategy.run(|_| Ok::<_, Failure>(())).unwrap();
        LazyLock::force(&ALIVE);
        tracing::subscriber::with_default(log.clone(), || {
            for _ in 0..2_500 {
                let mut operation = strategy.operation();
                if let Some(deadline) = deadline {
                    operation = operation.deadline(Duration::from_millis(deadline));
                }
                let stopped = operation.run(|_| Ok::<_, Failure>(())).unwrap_err();
                assert!(stopped.wait() > Duration::from_secs(5), "{stopped}");
                match (deadline, stopped.why()) {
                    (Some(_), StopReason::OutOfTime { .. })
                    | (None, StopReason::SendRefused { .. }) => {}
                    (_, why) => panic!("{name}: {why}"),
                }
                clock.sleep(Duration::from_millis(1));
            }
        });
        let counts = strategy.snapshot().counts;
        assert_eq!((counts.refused_sends, counts.delayed), (2_500, 0), "{name}");
        let lines = log.lines();
        let of = |level: &str| lines.iter().filter(|line| line.contains(level)).count();
        assert_eq!(
            (of("send refused; DEBUG"), of("waits for")),
            (2_500, 0),
            "{name}"
        );
        let told = lines.iter().filter(|line| line.contains("; INFO"));
        let told: Vec<_> = told
            .map(|line| line.split("; wait").next().unwrap())
            .collect();
        let line = |refused: u32| format!("sends refused; INFO; strategy; refused {refused}");
        assert_eq!(told, [1, 1_001, 2_001].map(line), "{name}");
    };
    let requests = PacedSettings::fixed(6, Duration::from_secs(60)).unwrap();
    let builder = || Adaptive::builder().paced(requests);
    let tokens = DeclaredSettings::new().dimension(Dimension::Tokens);
    refuses("deadline", Some(100), builder());
    refuses("deadline of several", Some(100), builder().also(tokens));
    refuses(
        "longest wait",
        None,
        builder().max_wait(Duration::from_millis(100)),
    );
    refuses("fails fast", None, builder().fail_fast(true));
}

/// An operation of several waits, by a clock outside: each part of it, and what they add up to.
#[test]
fn a_slow_operation_says_where_its_time_went() {
    let (clock, log) = (Arc::new(Hands::default()), Log::default());
    let requests = PacedSettings::fixed(60, Duration::from_secs(60)).unwrap();
    let tokens = PacedSettings::fixed(60, Duration::from_secs(60)).unwrap();
    let declared = DeclaredSettings::new().dimension(Dimension::Tokens);
    let strategy = Adaptive::builder()
        .paced(requests)
        .also(declared.otherwise(tokens))
        .random(Fixed::whole())
        .base_delay(ms(400))
        .clock(Arc::clone(&clock) as Arc<dyn Clock>)
        .build()
        .unwrap();
    let run = |weights: [u32; 2], attempts: u32, takes: Duration| {
        let operation = strategy.operation().weights(weights).clock(&*clock);
        let ended = operation.sleep_by(|span| clock.sleep(span)).run(|attempt| {
            clock.sleep(takes);
            if attempt.number() < attempts {
                return Err(Failure::transient());
            }
            Ok(())
        });
        ended.unwrap();
    };
    run([1, 0], 1, ms(0));
    run([0, 1], 1, ms(0));
    LazyLock::force(&ALIVE);
    tracing::subscriber::with_default(log.clone(), || {
        // The first limit's turn comes after a second; a backoff of 400 ms, and 300 ms more in line.
        run([1, 0], 2, ms(300));
        run([0, 1], 1, ms(0)); // at once
    });
    let lines = log.lines();
    let slow: Vec<_> = lines
        .iter()
        .filter(|line| line.contains("took a second"))
        .collect();
    assert_eq!(
        slow,
        [
            "operation took a second or more; INFO; strategy; total 2.3s; in_line [1.3s]; gate 0ns; \
          backoffs 400ms; sending 600ms; attempts 2"
        ]
    );
}
