//! A gate before a send: asked again until it opens, once the strategy's own turn has come, by each of the loops.

use core::sync::atomic::{AtomicU32, Ordering::SeqCst};
use core::time::Duration;

use paceline::{
    DefaultSleep, Failure, ForeignToken, InitialTokenRefused, RetryRefused, RetryStrategy,
    RetryStrategyExt, RetryToken, SendGate, SendPermit, SendRefused, SendTurn, Standard, Stopped,
    Timestamp,
};

const WAIT: Duration = Duration::from_millis(2);

/// A strategy whose gate opens at the fourth time that it is asked.
#[derive(Debug)]
struct Gated {
    inside: Standard,
    asked: AtomicU32,
    wait: Duration,
}

impl Gated {
    fn new(wait: Duration) -> Self {
        Self {
            inside: Standard::new(),
            asked: AtomicU32::new(0),
            wait,
        }
    }

    fn asked(&self) -> u32 {
        self.asked.load(SeqCst)
    }
}

impl RetryStrategy for Gated {
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
    ) -> Result<RetryToken, RetryRefused> {
        self.inside.refresh_retry_token(token, failure)
    }

    fn record_success(&self, token: RetryToken) -> Result<(), ForeignToken> {
        self.inside.record_success(token)
    }

    fn send_turn(&self) -> Result<SendTurn<'_>, SendRefused> {
        Ok(self.inside.send_turn()?.gated(self))
    }
}

impl SendGate for Gated {
    fn try_send(&self) -> Result<SendPermit, Duration> {
        match self.asked.fetch_add(1, SeqCst) {
            0..3 => Err(self.wait),
            _ => Ok(SendPermit::sent_at(Timestamp::from_nanos(7))),
        }
    }
}

#[test]
fn a_sleep_of_the_callers_is_called_until_the_gate_opens() {
    let strategy = Gated::new(Duration::from_secs(1));
    let mut slept = Vec::new();
    let operation = strategy.operation().sleep_by(|span| slept.push(span));
    let sent = operation.run(|_| Ok::<_, Failure>(()));
    assert!(sent.is_ok());
    // Looked at again after 50 ms: it may have opened meanwhile.
    assert_eq!(slept, [Duration::from_millis(50); 3]);
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
        matches!(stopped.why(), Stopped::OutOfTime { .. }),
        "{stopped}"
    );
    assert_eq!(strategy.asked(), 1);
}

#[test]
fn a_gate_takes_the_place_of_another_and_of_the_permit_before_it() {
    let (first, second) = (Gated::new(WAIT), Gated::new(WAIT));
    let own = SendPermit::sent_at(Timestamp::from_nanos(3));
    let mut turn = SendTurn::granted(own).gated(&first).gated(&second);
    while turn.claim().is_err() {}
    assert_eq!(
        turn.claim().map(SendPermit::time),
        Ok(Timestamp::from_nanos(7))
    );
    assert_eq!((first.asked(), second.asked()), (0, 4));
}

#[tokio::test(start_paused = true)]
async fn turn_is_waited_for_without_a_loop() {
    let strategy = Gated::new(WAIT);
    let began = tokio::time::Instant::now();
    let permit = strategy
        .send_turn()
        .unwrap()
        .wait_on(&DefaultSleep::new())
        .await;
    assert_eq!((permit.time().as_nanos(), strategy.asked()), (7, 4));
    assert_eq!(began.elapsed(), 3 * WAIT);
}
