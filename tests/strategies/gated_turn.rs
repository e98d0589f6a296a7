//! A gate before a send: asked again until it opens, once the strategy inside has let the attempt
//! go.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering::SeqCst};
use core::time::Duration;
use std::sync::Mutex;

use paceline::{
    Adaptive, Failure, Operation, RetryStrategy, RetryStrategyExt, RetryToken, SendPermit,
    Standard, Timestamp,
    law::{DeclaredSettings, Dimension, PacedSettings},
    operation::{Next, StopReason},
    set::Weights,
    strategy::{
        EventKind, ForeignToken, InitialTokenRefused, NotAdmitted, Reports, RetryRefused,
        SendRequest, SendTurn,
    },
};

use crate::support::{Hands, ms};

const WAIT: Duration = Duration::from_millis(2);

/// A strategy whose gate opens at the fourth time that it is asked.
#[derive(Debug)]
struct Gated<S> {
    inside: S,
    asked: AtomicU32,
    wait: Duration,
    /// What the gate takes of several allowances, if it says so.
    takes: Option<Weights>,
    /// What the tokens of those that succeeded say that they took of three.
    taken: Mutex<Vec<[u32; 3]>>,
}

impl Gated<Standard> {
    fn new(wait: Duration) -> Self {
        Self::around(Standard::new(), wait)
    }
}

impl<S> Gated<S> {
    fn around(inside: S, wait: Duration) -> Self {
        Self {
            inside,
            asked: AtomicU32::new(0),
            wait,
            takes: None,
            taken: Mutex::default(),
        }
    }

    fn asked(&self) -> u32 {
        self.asked.load(SeqCst)
    }
}

impl<S: RetryStrategy> RetryStrategy for Gated<S> {
    fn acquire_initial_token(
        &self,
        scope: Option<&str>,
    ) -> Result<RetryToken, InitialTokenRefused> {
        self.inside.acquire_initial_token(scope)
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        failure: &Failure,
        reports: Reports<'_>,
    ) -> Result<RetryToken, RetryRefused> {
        self.inside.refresh_retry_token(token, failure, reports)
    }

    fn record_success(&self, token: RetryToken, reports: Reports<'_>) -> Result<(), ForeignToken> {
        let all = [0, 1, 2].map(|limit| token.tokens_of(limit));
        self.taken.lock().unwrap().push(all);
        self.inside.record_success(token, reports)
    }

    fn inside(&self) -> Option<&dyn RetryStrategy> {
        Some(&self.inside)
    }

    fn admit(
        &self,
        turn: &mut SendTurn,
        request: SendRequest<'_>,
    ) -> Result<SendPermit, NotAdmitted> {
        let gate = |_: &mut _| match self.asked.fetch_add(1, SeqCst) {
            0..3 => Err(NotAdmitted::wait(self.wait)),
            _ => Ok(SendPermit::sent_at(Timestamp::from_nanos(7)).costing(2)),
        };
        let permit = turn.gated(|turn| self.inside.admit(turn, request), gate)?;
        if let Some(takes) = &self.takes {
            turn.note(permit, takes);
        }
        Ok(permit)
    }
}

#[test]
fn a_callers_sleep_is_called_until_the_gate_opens() {
    let strategy = Gated::new(Duration::from_secs(1));
    let mut slept = Vec::new();
    let operation = strategy.operation().sleep_by(|span| slept.push(span));
    let sent = operation.run(|_| Ok::<_, Failure>(()));
    assert!(sent.is_ok());
    // Looked at again after 50 ms: it may have opened meanwhile.
    let most = Duration::from_millis(50);
    assert!(
        slept.len() == 3 && slept.iter().all(|span| *span == most),
        "{slept:?}"
    );
    assert_eq!(strategy.asked(), 4);
}

#[test]
fn a_thread_asks_until_the_gate_opens_and_sends_once() {
    let strategy = Gated::new(WAIT);
    let mut sends = 0;
    let sent = strategy.run(|_| {
        sends += 1;
        Ok::<_, Failure>(())
    });
    assert!(sent.is_ok());
    assert_eq!((strategy.asked(), sends), (4, 1));
}

#[tokio::test(start_paused = true)]
async fn a_task_asks_until_the_gate_opens_and_sends_once() {
    let strategy = Gated::new(WAIT);
    let began = tokio::time::Instant::now();
    let sent = strategy.run_async(async |_| Ok::<_, Failure>(())).await;
    assert!(sent.is_ok());
    assert_eq!((strategy.asked(), began.elapsed()), (4, 3 * WAIT));
}

#[test]
fn a_gate_that_opens_too_late_is_not_waited_for() {
    let strategy = Gated::new(Duration::from_secs(10));
    let stopped = strategy
        .operation()
        .deadline(Duration::from_secs(1))
        .run(|_| Ok::<_, Failure>(()))
        .unwrap_err();
    assert!(
        matches!(stopped.why(), StopReason::OutOfTime { .. }),
        "{stopped}"
    );
    assert_eq!(strategy.asked(), 1);
}

#[test]
fn a_gate_in_a_gate_is_passed_once() {
    let strategy = Gated::around(Gated::new(WAIT), WAIT);
    let mut turn = SendTurn::new();
    let permit = loop {
        if let Ok(permit) = strategy.admit(&mut turn, SendRequest::new()) {
            break permit;
        }
    };
    assert_eq!(
        (permit.time(), permit.weight()),
        (Timestamp::from_nanos(7), 2)
    );
    assert_eq!((strategy.inside.asked(), strategy.asked()), (4, 4));
}

#[test]
fn a_gate_leaves_the_strategy_inside_what_it_took() {
    let clock = Arc::new(Timestamp::ZERO);
    let second = Duration::from_secs(1);
    let settings = PacedSettings::fixed(1_000, second)
        .and_then(|fixed| fixed.to_builder().burst(second).build());
    let inside = Adaptive::builder()
        .paced(settings.unwrap())
        .clock(clock.clone());
    let strategy = Gated::around(Gated::around(inside.build().unwrap(), WAIT), WAIT);
    let available = || {
        let rate = strategy.inside.inside.snapshot().rate.unwrap();
        format!("{:.0}", rate.available)
    };
    let mut attempts = Operation::new(&strategy).weight(600).start();
    while !matches!(attempts.next(&*clock, None), Next::Send(_)) {}
    assert_eq!((strategy.inside.asked(), strategy.asked()), (4, 4));
    assert_eq!(available(), "400");
    let charge = attempts.charge().unwrap();
    attempts.succeeded(Reports::at(&*clock)).unwrap();
    charge.settle(&[150]).unwrap();
    assert_eq!(available(), "850");
}

/// Counts itself, and says so when it is dropped.
struct Kept(Arc<AtomicU32>);

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn a_gate_finds_its_place_again_and_it_ends_with_the_turn() {
    let (dropped, strategy) = (Arc::new(AtomicU32::new(0)), Standard::new());
    let mut made = 0;
    let mut ask = |turn: &mut SendTurn, opens: bool| {
        turn.gated(
            |turn| strategy.admit(turn, SendRequest::new()),
            |place| {
                let kept = place.take::<Kept>().unwrap_or_else(|| {
                    made += 1;
                    Box::new(Kept(Arc::clone(&dropped)))
                });
                if opens {
                    return Ok(SendPermit::sent_at(Timestamp::ZERO));
                }
                place.put(kept);
                Err(NotAdmitted::wait(WAIT))
            },
        )
    };
    let mut turn = SendTurn::new();
    let (wait, look_in) = (WAIT, WAIT);
    for _ in 0..2 {
        let not_yet = Err(NotAdmitted::Wait { wait, look_in });
        assert_eq!(ask(&mut turn, false), not_yet);
        assert!(turn.is_in_line());
    }
    assert_eq!(dropped.load(SeqCst), 0);
    assert!(ask(&mut turn, true).is_ok());
    assert_eq!(dropped.load(SeqCst), 1);
    let mut given_up = SendTurn::new();
    assert!(ask(&mut given_up, false).is_err());
    drop(given_up);
    assert_eq!((made, dropped.load(SeqCst)), (2, 2));
}

#[test]
fn a_weight_passes_the_gate_with_the_time_of_the_gate() {
    let strategy = Gated::around(Adaptive::new(paceline::ControlLaw::Aws), WAIT);
    let mut turn = SendTurn::new();
    let request = SendRequest::new().weight(600);
    let permit = loop {
        if let Ok(permit) = strategy.admit(&mut turn, request) {
            break permit;
        }
    };
    assert_eq!(
        (permit.time(), permit.weight()),
        (Timestamp::from_nanos(7), 600)
    );
}

#[test]
fn what_was_taken_behind_a_gate_is_in_the_token() {
    fn noted(inside: impl RetryStrategy) -> Vec<[u32; 3]> {
        let takes = Some(Weights::from([0, 40]));
        let strategy = Gated {
            takes,
            ..Gated::around(inside, WAIT)
        };
        for weights in [[1, 1_200], [2, 3]] {
            let sent = strategy.operation().weights(weights);
            assert!(sent.run(|_| Ok::<_, Failure>(())).is_ok());
        }
        strategy.taken.into_inner().unwrap()
    }
    assert_eq!(noted(Standard::new()), [[0, 40, 0]; 2]);
    // What the strategy inside was granted is not written over.
    let settings = DeclaredSettings::new;
    let several = Adaptive::builder().declared(settings());
    let several = several.also(settings().dimension(Dimension::Tokens));
    assert_eq!(noted(several.build().unwrap()), [[1, 1_200, 0], [2, 3, 0]]);
    let mut token = Standard::new().acquire_initial_token(None).unwrap();
    assert_eq!(token.tokens_of(0), 0);
    token.sent(SendPermit::sent_at(Timestamp::ZERO).costing(5));
    assert_eq!([0, 1].map(|limit| token.tokens_of(limit)), [5, 0]);
}

/// A slow operation says what it waited at the gate, and one that is dropped what it did until then.
#[test]
fn what_is_waited_at_a_gate_is_told_apart() {
    let (hands, seen) = (Arc::new(Hands::default()), Arc::new(Mutex::new(Vec::new())));
    let log = Arc::clone(&seen);
    let builder = Standard::builder().on_event(move |event| {
        if let EventKind::Slow { .. } = event.kind {
            let line = event.to_string();
            log.lock()
                .unwrap()
                .push(line.split_once("more: ").unwrap().1.to_owned());
        }
    });
    let inside = builder.clock(hands.clone()).build().unwrap();
    let strategy = Gated::around(inside, ms(400));
    let operation = strategy.operation().clock(&*hands);
    let operation = operation.sleep_by(|span| hands.sleep(span));
    let sent = operation.run(|_| {
        hands.sleep(ms(900));
        Ok::<_, Failure>(())
    });
    assert!(sent.is_ok());
    let mut dropped = Operation::new(&strategy.inside).start();
    assert!(matches!(dropped.next(&*hands, None), Next::Send(_)));
    hands.sleep(ms(999));
    drop(dropped);
    let mut dropped = Operation::new(&strategy.inside).start();
    assert!(matches!(dropped.next(&*hands, None), Next::Send(_)));
    hands.sleep(ms(1_000));
    drop(dropped);
    assert_eq!(
        *seen.lock().unwrap(),
        [
            "1.05s: in line [], at a gate 150ms, in backoffs 0ns, sending 900ms, attempts 1",
            "1s: in line [], at a gate 0ns, in backoffs 0ns, sending 1s, attempts 1",
        ]
    );
}
