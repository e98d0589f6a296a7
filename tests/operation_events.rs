//! What operations tell `tracing`: each retry, and why there is no further attempt.
#![cfg(feature = "tracing")]

extern crate alloc;

use alloc::sync::Arc;
use core::fmt::{Debug, Write as _};
use std::sync::Mutex;

use paceline::{Failure, RetryStrategyExt, Standard};
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

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
        metadata.target() == "paceline::operation" && *metadata.level() == Level::DEBUG
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

/// Returns the events of one operation whose attempts end like this.
fn events(strategy: &Standard, answers: &[Result<(), Failure>]) -> Vec<String> {
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        let mut answers = answers.iter().copied();
        let operation = strategy.operation().sleep_by(|_| ());
        let _ended = operation.run(|_| answers.next().expect("no more attempts than that"));
    });
    let lines = log.0.lock().unwrap();
    lines.clone()
}

#[test]
fn each_retry_and_the_end_are_told() {
    let fails = Err(Failure::transient());
    let strategy = Standard::builder().max_attempts(2).build().unwrap();
    assert_eq!(
        events(&strategy, &[Ok(())]),
        [""; 0],
        "a success is no event"
    );
    let retry =
        "attempt failed, retrying; strategy; attempt 1; failure transient server error; delay";
    assert_eq!(events(&strategy, &[fails, Ok(())]), [retry]);
    let gave_up = "gave up; strategy; attempt 2; failure transient server error; reason \
                   all 2 attempts made";
    assert_eq!(events(&strategy, &[fails, fails]), [retry, gave_up]);
}
