//! The blocking loop: what it sleeps, what it sends, what it returns. No test sleeps for real.
#![expect(
    clippy::arithmetic_side_effects,
    reason = "a test may overflow, and fail"
)]

use core::{
    cell::{Cell, RefCell},
    error::Error,
    fmt,
    num::ParseIntError,
    time::Duration,
};
use std::sync::Mutex;

use crate::support::{Fixed, http, ms};
use paceline::{
    Adaptive, Failure, Legacy, Operation, RetryInfo, RetryStrategy, RetryStrategyExt, RetryToken,
    SendPermit, Standard, Timestamp,
    config::StrategyBuilder,
    operation::{Attempt, Next, RunError, StopReason},
    strategy::{
        ForeignToken, InitialTokenRefused, NotAdmitted, Reports, RetryRefused, SendRequest,
        SendTurn, StrategyId,
    },
};

/// An error that can be told from all others.
#[derive(Debug, PartialEq)]
struct Numbered(u32, Failure);

impl fmt::Display for Numbered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failure number {}", self.0)
    }
}

impl Error for Numbered {}

impl RetryInfo for Numbered {
    fn failure(&self) -> Failure {
        self.1
    }
}

/// Runs an operation that fails by each of `failures` in turn, and then succeeds.
///
/// Returns how it ended, the attempts it was told of and the sleeps.
fn run(
    strategy: &(impl RetryStrategy + ?Sized),
    failures: &[Failure],
) -> (Result<u32, RunError<Numbered>>, Vec<Attempt>, Vec<Duration>) {
    let slept = RefCell::new(Vec::new());
    let attempts = RefCell::new(Vec::new());
    let ended = strategy
        .operation()
        .scope("scope")
        .clock(&Timestamp::ZERO)
        .sleep_by(|span| slept.borrow_mut().push(span))
        .run(|attempt| {
            attempts.borrow_mut().push(attempt);
            let made = attempts.borrow().len();
            let number = u32::try_from(made).unwrap();
            match failures.get(made - 1) {
                Some(failure) => Err(Numbered(number, *failure)),
                None => Ok(number),
            }
        });
    (ended, attempts.into_inner(), slept.into_inner())
}

fn standard() -> StrategyBuilder<Standard> {
    Standard::builder().random(Fixed::whole())
}

#[test]
fn success_at_once_sleeps_never_and_is_credited() {
    let strategy = standard().build().unwrap();
    drop(strategy.quota().try_acquire(10));
    let (ended, attempts, slept) = run(&strategy, &[]);
    assert_eq!(ended.unwrap(), 1);
    assert_eq!(attempts.len(), 1);
    assert_eq!(slept, []);
    assert_eq!(strategy.quota().available(), 491);
}

#[test]
fn retries_sleep_their_delays_and_say_their_number() {
    let strategy = standard().build().unwrap();
    let (ended, attempts, slept) = run(&strategy, &[http(500), http(500)]);
    assert_eq!(ended.unwrap(), 3);
    assert_eq!(slept, [ms(50), ms(100)]);
    let said: Vec<String> = attempts.iter().map(Attempt::to_string).collect();
    assert_eq!(
        said,
        ["attempt=1; max=3", "attempt=2; max=3", "attempt=3; max=3"]
    );
    assert_eq!(strategy.quota().available(), 486);
}

#[test]
fn last_failure_is_returned_when_attempts_are_used_up() {
    let strategy = standard().build().unwrap();
    let (ended, _, slept) = run(&strategy, &[http(500); 9]);
    let stopped = ended.unwrap_err();
    assert_eq!(stopped.why(), StopReason::MaxAttempts { max: 3 });
    assert_eq!((stopped.attempts(), stopped.backoff()), (3, ms(0)));
    assert_eq!(stopped.to_string(), "all 3 attempts failed");
    assert_eq!(stopped.source().unwrap().to_string(), "failure number 3");
    assert_eq!(stopped.error(), Some(&Numbered(3, http(500))));
    assert_eq!(stopped.into_error(), Ok(Numbered(3, http(500))));
    assert_eq!(slept, [ms(50), ms(100)]);
}

#[test]
fn failure_that_is_not_retryable_is_returned_at_once() {
    let strategy = standard().build().unwrap();
    let (ended, _, slept) = run(&strategy, &[http(500), http(403)]);
    let stopped = ended.unwrap_err();
    assert_eq!(stopped.why(), StopReason::NotRetryable);
    assert_eq!(stopped.into_error().unwrap().0, 2);
    assert_eq!(slept, [ms(50)]);
    assert_eq!(strategy.quota().available(), 486);
}

#[test]
fn exhausted_quota_tells_its_numbers_and_the_backoff_it_saved() {
    let strategy = standard().quota_capacity(20).build().unwrap();
    let (ended, _, slept) = run(&strategy, &[http(500); 9]);
    let stopped = ended.unwrap_err();
    assert_eq!(
        stopped.why(),
        StopReason::QuotaExhausted {
            available: 6,
            needed: 14
        }
    );
    assert_eq!((stopped.attempts(), stopped.backoff()), (2, ms(100)));
    assert_eq!(
        stopped.to_string(),
        "stopped after 2 attempts: retry quota exhausted: 6 available, 14 needed"
    );
    assert_eq!(slept, [ms(50)]);
}

#[test]
fn long_polling_sleeps_before_the_failure_is_returned() {
    let builder = standard().quota_capacity(0).long_polling(true);
    let strategy = builder.build().unwrap();
    let (ended, _, slept) = run(&strategy, &[Failure::throttling()]);
    assert_eq!(ended.unwrap_err().into_error().unwrap().0, 1);
    assert_eq!(slept, [ms(1000)]);
}

#[test]
fn foreign_errors_are_classified_by_a_closure() {
    let strategy = Legacy::new();
    let sends = Cell::new(0);
    let stopped = strategy
        .operation()
        .clock(&Timestamp::ZERO)
        .sleep_by(|_| {})
        .run_with(
            |error: &ParseIntError| {
                assert_eq!(error.to_string(), "invalid digit found in string");
                Failure::transient()
            },
            |_| {
                sends.set(sends.get() + 1);
                "x".parse::<u32>()
            },
        )
        .unwrap_err();
    assert_eq!((sends.get(), stopped.attempts()), (5, 5));
}

/// A strategy of a user's own: what it was asked, and answers set by a test.
#[derive(Debug)]
struct Homemade {
    id: StrategyId,
    refuses_initial: bool,
    first_delay: Duration,
    refuses_sends_from: usize,
    turns: Mutex<usize>,
    calls: Mutex<Vec<String>>,
}

impl Homemade {
    fn new() -> Self {
        Self {
            id: StrategyId::new(),
            refuses_initial: false,
            first_delay: Duration::ZERO,
            refuses_sends_from: usize::MAX,
            turns: Mutex::new(0),
            calls: Mutex::default(),
        }
    }

    fn note(&self, call: impl Into<String>) {
        self.calls.lock().unwrap().push(call.into());
    }
}

impl RetryStrategy for Homemade {
    fn acquire_initial_token(
        &self,
        scope: Option<&str>,
    ) -> Result<RetryToken, InitialTokenRefused> {
        self.note(format!("initial {scope:?}"));
        if self.refuses_initial {
            return Err(InitialTokenRefused);
        }
        Ok(RetryToken::new(self.id).with_delay(self.first_delay))
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        failure: &Failure,
        _: Reports<'_>,
    ) -> Result<RetryToken, RetryRefused> {
        let token = self.id.check(token)?;
        let retries = token.attempt() - 1;
        self.note(format!("refresh {retries}"));
        assert!(token.send_permit().is_some());
        if retries == 2 || failure.is_timeout() {
            return Err(RetryRefused::new(StopReason::Other("enough")));
        }
        Ok(token.with_delay(ms(7)).with_attempt(retries + 2, None))
    }

    fn record_success(&self, token: RetryToken, _: Reports<'_>) -> Result<(), ForeignToken> {
        self.note("success");
        Err(ForeignToken(token)) // wrong, and no business of the caller's
    }

    fn admit(&self, _: &mut SendTurn, _: SendRequest<'_>) -> Result<SendPermit, NotAdmitted> {
        let mut turns = self.turns.lock().unwrap();
        *turns += 1;
        if *turns > self.refuses_sends_from {
            return Err(NotAdmitted::Refused { wait: ms(9) });
        }
        Ok(SendPermit::sent_at(Timestamp::ZERO))
    }
}

#[test]
fn users_strategy_runs_through_dyn() {
    let homemade = Homemade::new();
    let (ended, attempts, slept) = run(&homemade as &dyn RetryStrategy, &[http(403); 2]);
    assert_eq!(ended.unwrap(), 3);
    assert_eq!(slept, [ms(7), ms(7)]);
    assert_eq!(attempts[2].to_string(), "attempt=3");
    assert_eq!(
        *homemade.calls.lock().unwrap(),
        [
            "initial Some(\"scope\")",
            "refresh 0",
            "refresh 1",
            "success"
        ]
    );
    assert_eq!(*homemade.turns.lock().unwrap(), 3);
}

#[test]
fn users_reason_is_passed_on() {
    let homemade = Homemade::new();
    let stopped = run(&homemade, &[http(500); 9]).0.unwrap_err();
    assert_eq!(stopped.why(), StopReason::Other("enough"));
    assert_eq!(stopped.into_error().unwrap().0, 3);
}

#[test]
fn delay_of_the_first_token_is_slept() {
    let homemade = Homemade {
        first_delay: ms(30),
        ..Homemade::new()
    };
    let (ended, attempts, slept) = run(&homemade, &[]);
    assert_eq!(ended.unwrap(), 1);
    assert_eq!((attempts.len(), slept), (1, vec![ms(30)]));
}

#[test]
fn a_first_delay_beyond_the_deadline_is_not_slept() {
    let homemade = Homemade {
        first_delay: ms(30),
        ..Homemade::new()
    };
    let operation = Operation::new(&homemade).clock(&Timestamp::ZERO);
    let mut attempts = operation.deadline(ms(30)).start();
    let next = attempts.next(&Timestamp::ZERO, None);
    let (wait, left) = (ms(30), ms(30));
    let why = StopReason::OutOfTime { wait, left };
    assert!(
        matches!(&next, Next::Stop(stop) if stop.why() == why),
        "{next:?}"
    );
}

#[test]
fn refused_initial_token_means_exactly_one_attempt() {
    let refusing = || Homemade {
        refuses_initial: true,
        ..Homemade::new()
    };
    let homemade = refusing();
    let (ended, attempts, slept) = run(&homemade, &[http(500); 9]);
    let stopped = ended.unwrap_err();
    assert_eq!(stopped.why(), StopReason::InitialTokenRefused);
    assert_eq!(stopped.into_error().unwrap().0, 1);
    assert_eq!(attempts.len(), 1);
    assert_eq!(attempts[0].to_string(), "attempt=1; max=1");
    assert_eq!(slept, []);
    assert_eq!(homemade.calls.lock().unwrap().len(), 1);
    assert_eq!(*homemade.turns.lock().unwrap(), 1);

    let homemade = refusing();
    assert_eq!(run(&homemade, &[]).0.unwrap(), 1);
    assert_eq!(homemade.calls.lock().unwrap().len(), 1);
}

#[test]
fn refused_first_send_has_no_error_but_the_wait() {
    let homemade = Homemade {
        refuses_sends_from: 0,
        ..Homemade::new()
    };
    let (ended, attempts, _) = run(&homemade, &[]);
    let stopped = ended.unwrap_err();
    assert_eq!(stopped.why(), StopReason::SendRefused { wait: ms(9) });
    assert_eq!((stopped.attempts(), attempts.len()), (0, 0));
    assert!(stopped.source().is_none());
    assert_eq!(
        stopped.to_string(),
        "not sent: the send rate asks for a wait of 9ms"
    );
    assert!(stopped.into_error().is_err());
}

#[test]
fn refused_later_send_returns_the_failure_before_it() {
    let homemade = Homemade {
        refuses_sends_from: 1,
        ..Homemade::new()
    };
    let (ended, attempts, slept) = run(&homemade, &[http(500); 9]);
    let stopped = ended.unwrap_err();
    assert_eq!(stopped.why(), StopReason::SendRefused { wait: ms(9) });
    assert_eq!((stopped.attempts(), attempts.len()), (1, 1));
    assert_eq!(stopped.into_error().unwrap().0, 1);
    assert_eq!(slept, [ms(7)]);
}

#[test]
fn foreign_token_of_a_broken_strategy_ends_the_operation() {
    #[derive(Debug)]
    struct Forgetful(Standard);

    impl RetryStrategy for Forgetful {
        fn acquire_initial_token(
            &self,
            _: Option<&str>,
        ) -> Result<RetryToken, InitialTokenRefused> {
            Ok(RetryToken::new(StrategyId::new()))
        }
        fn refresh_retry_token(
            &self,
            token: RetryToken,
            failure: &Failure,
            reports: Reports<'_>,
        ) -> Result<RetryToken, RetryRefused> {
            self.0.refresh_retry_token(token, failure, reports)
        }
        fn record_success(
            &self,
            token: RetryToken,
            reports: Reports<'_>,
        ) -> Result<(), ForeignToken> {
            self.0.record_success(token, reports)
        }
    }

    let stopped = run(&Forgetful(Standard::new()), &[http(500)])
        .0
        .unwrap_err();
    assert_eq!(stopped.why(), StopReason::ForeignToken);
    assert_eq!(stopped.into_error().unwrap().0, 1);
}

#[test]
fn a_question_mark_converts_the_error_for_anyhow() {
    fn call() -> anyhow::Result<u32> {
        Ok(run(&standard().build().unwrap(), &[Failure::not_retryable()]).0?)
    }
    let error = call().unwrap_err();
    let ended = error.downcast_ref::<RunError<Numbered>>();
    assert_eq!(ended.unwrap().why(), StopReason::NotRetryable);
    let chain: Vec<_> = error.chain().map(ToString::to_string).collect();
    assert_eq!(chain.len(), 2, "{chain:?}");
    assert_eq!(chain[1], "failure number 1");
}

#[test]
fn everything_can_be_printed_and_sent() {
    fn assert_thread_safe<T: Send + Sync + fmt::Debug>() {}
    assert_thread_safe::<Standard>();
    assert_thread_safe::<Adaptive>();
    assert_thread_safe::<Legacy>();
    assert_thread_safe::<RetryToken>();
    assert_thread_safe::<RunError<Numbered>>();
    assert_thread_safe::<RetryRefused>();
    assert!(format!("{:?}", Standard::new().operation()).starts_with("Operation"));
}
