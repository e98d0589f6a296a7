//! The state machine of one operation, step by step, by a clock that stands still unless it is
//! moved.

use alloc::sync::Arc;

use core::cell::RefCell;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use core::task::Waker;
use core::time::Duration;
use std::sync::Mutex;
use std::time::Instant;

use crate::support::{Fixed, Hands, ms};
use paceline::{
    Adaptive, Clock, Failure, Idempotency, MonotonicClock, Operation, RetryAfter, RetryStrategy,
    RetryToken, Scopes, SendPermit, Standard, Timestamp, WeightError,
    law::PacedSettings,
    operation::{Attempts, Next, NotSending, StopReason, Verdict},
    scope::ScopesBuilder,
    set::SetError,
    strategy::{
        ForeignToken, InitialTokenRefused, NotAdmitted, Reports, RetryRefused, SendRequest,
        SendTurn, StrategyId,
    },
};

const SECOND: Duration = Duration::from_secs(1);
const THROTTLING: Failure = Failure::throttling();

fn hint(span: Duration) -> Failure {
    THROTTLING.with_retry_after(RetryAfter::AtLeast(span))
}

/// A strategy of 10 a second with one token, by `hands`.
fn ten_a_second(hands: &Arc<Hands>) -> Adaptive {
    let settings = PacedSettings::fixed(10, SECOND).unwrap();
    let builder = Adaptive::builder().paced(settings.to_builder().burst(ms(100)).build().unwrap());
    let builder = builder.clock(Arc::clone(hands) as Arc<dyn Clock>);
    builder.random(Fixed::whole()).build().unwrap()
}

fn standard(hands: &Arc<Hands>) -> Standard {
    let builder = Standard::builder().clock(Arc::clone(hands) as Arc<dyn Clock>);
    builder.random(Fixed::whole()).build().unwrap()
}

/// Asks for the next step, which has to be an attempt.
fn send<S: RetryStrategy>(attempts: &mut Attempts<S>, hands: &Hands) -> u32 {
    match attempts.next(hands, None) {
        Next::Send(attempt) => attempt.number(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_operation_goes_from_step_to_step() {
    let hands = Arc::new(Hands::default());
    let strategy = standard(&hands);
    let mut attempts = Operation::new(&strategy).start();
    assert_eq!(send(&mut attempts, &hands), 1);
    let verdict = attempts
        .failed(&Failure::transient(), Reports::new())
        .unwrap();
    let Verdict::Again(rest) = verdict else {
        panic!("{verdict:?}");
    };
    assert_eq!(
        (rest.span(), rest.until()),
        (ms(50), Timestamp::from_nanos(50_000_000))
    );
    // Asked twice at the same time it says the same.
    assert_eq!(attempts.next(&*hands, None), Next::Sleep(rest));
    assert_eq!(attempts.next(&*hands, None), Next::Sleep(rest));
    hands.sleep(ms(20));
    assert_eq!(attempts.backoff(&*hands).unwrap().span(), ms(30));
    hands.sleep(ms(30));
    assert_eq!(attempts.backoff(&*hands), None);
    assert_eq!(send(&mut attempts, &hands), 2);
    attempts.succeeded(Reports::new()).unwrap();
    assert_eq!(strategy.quota().available(), 500);
}

#[test]
fn an_outcome_is_recorded_once() {
    let hands = Arc::new(Hands::default());
    let strategy = standard(&hands);
    let mut attempts = Operation::new(&strategy).start();
    assert_eq!(attempts.succeeded(Reports::new()), Err(NotSending));
    send(&mut attempts, &hands);
    attempts.failed(&THROTTLING, Reports::new()).unwrap();
    let quota = strategy.quota().available();
    assert_eq!(
        attempts.failed(&THROTTLING, Reports::new()),
        Err(NotSending)
    );
    assert_eq!(attempts.succeeded(Reports::new()), Err(NotSending));
    assert_eq!(strategy.quota().available(), quota);
    assert!(attempts.detach().is_err());
}

#[test]
fn a_step_out_of_turn_sends_nothing() {
    let hands = Arc::new(Hands::default());
    let strategy = standard(&hands);
    let mut attempts = Operation::new(&strategy).start();
    send(&mut attempts, &hands);
    for _ in 0..2 {
        let Next::Stop(stop) = attempts.next(&*hands, None) else {
            panic!("it would be sent twice");
        };
        assert_eq!((stop.why(), stop.attempts()), (StopReason::OutOfTurn, 1));
    }
    attempts.succeeded(Reports::new()).unwrap();
    assert!(matches!(attempts.next(&*hands, None), Next::Stop(_)));
}

#[test]
fn a_place_in_line_is_held_until_its_turn() {
    let hands = Arc::new(Hands::default());
    let strategy = ten_a_second(&hands);
    let mut first = Operation::new(&strategy).start();
    send(&mut first, &hands);
    let mut second = Operation::new(&strategy).start();
    let mut third = Operation::new(&strategy).start();
    for (attempts, wait) in [(&mut second, 100_000), (&mut third, 200_000)] {
        for _ in 0..3 {
            let Next::InLine(rest) = attempts.next(&*hands, Some(Waker::noop())) else {
                panic!("not in line");
            };
            assert_eq!(rest.span().as_micros(), wait, "no second place is taken");
        }
    }
    // Without a waker it has to look again itself.
    let Next::InLine(rest) = third.next(&*hands, None) else {
        panic!("not in line");
    };
    assert_eq!(rest.span(), ms(50));
    drop(second);
    hands.sleep(ms(101));
    assert_eq!(send(&mut third, &hands), 1, "its place went back");
    assert_eq!(strategy.snapshot().counts.delayed, 2);
}

#[test]
fn dropped_in_any_state_it_leaves_nothing_behind() {
    let hands = Arc::new(Hands::default());
    let settings = PacedSettings::fixed(10, SECOND)
        .unwrap()
        .to_builder()
        .burst(ms(100))
        .build()
        .unwrap();
    let template = Adaptive::builder().paced(settings);
    let template = template.clock(Arc::clone(&hands) as Arc<dyn Clock>);
    let scopes = template.random(Fixed::whole()).scopes().build().unwrap();
    let begin = || Operation::new(scopes.clone()).scope("a").start();
    // How long the next operation in the scope has to wait.
    let wait = || match begin().next(&*hands, Some(Waker::noop())) {
        Next::InLine(rest) => ms(u64::try_from((rest.span() + ms(1) / 2).as_millis()).unwrap()),
        Next::Send(_) => Duration::ZERO,
        other => panic!("{other:?}"),
    };
    let at_once = begin();
    assert_eq!(scopes.count_in_use(), 1);
    drop(at_once); // not begun
    assert_eq!(scopes.count_in_use(), 0);
    let mut sending = begin();
    send(&mut sending, &hands); // takes the one token
    drop(sending);
    assert_eq!(scopes.count_in_use(), 0);
    assert_eq!(wait(), ms(100));
    let mut in_line = begin();
    assert!(matches!(in_line.next(&*hands, None), Next::InLine(_)));
    assert_eq!(wait(), ms(200));
    assert_eq!(scopes.count_in_use(), 1);
    drop(in_line);
    assert_eq!(scopes.count_in_use(), 0);
    assert_eq!(wait(), ms(100));
    hands.sleep(ms(200));
    let mut backing_off = begin();
    send(&mut backing_off, &hands);
    backing_off
        .failed(&Failure::transient(), Reports::new())
        .unwrap();
    assert!(matches!(backing_off.next(&*hands, None), Next::Sleep(_)));
    assert_eq!(wait(), ms(100), "no place is held during a backoff");
    drop(backing_off);
    assert_eq!(scopes.count_in_use(), 0);
    hands.sleep(ms(200));
    let mut streaming = begin();
    send(&mut streaming, &hands);
    let detached = streaming.detach().unwrap();
    assert_eq!(scopes.count_in_use(), 1);
    drop(detached);
    assert_eq!(scopes.count_in_use(), 0);
    assert_eq!(wait(), ms(100));
}

#[test]
fn nothing_begins_after_the_deadline() {
    let hands = Arc::new(Hands::default());
    let strategy = ten_a_second(&hands);
    send(&mut Operation::new(&strategy).start(), &hands);
    let operation = || Operation::new(&strategy).deadline(ms(100));
    // A turn.
    let Next::Stop(stop) = operation().start().next(&*hands, None) else {
        panic!("its turn comes at the deadline");
    };
    let StopReason::OutOfTime { wait, left } = stop.why() else {
        panic!("{stop}");
    };
    assert_eq!((wait.as_millis(), left), (100, ms(100)));
    // An attempt: the clock moves while it stands in line.
    let mut in_line = Operation::new(&strategy).deadline(ms(150)).start();
    assert!(matches!(in_line.next(&*hands, None), Next::InLine(_)));
    hands.sleep(ms(150));
    let Next::Stop(stop) = in_line.next(&*hands, None) else {
        panic!("the time is up");
    };
    let (wait, left) = (ms(0), ms(0));
    assert_eq!(stop.why(), StopReason::OutOfTime { wait, left });
    // A backoff, and no quota is taken for it.
    hands.sleep(SECOND);
    let mut attempts = operation().start();
    let Next::Send(attempt) = attempts.next(&*hands, None) else {
        panic!("a token was there");
    };
    assert_eq!(attempt.time_limit(), Some(ms(100)));
    let verdict = attempts.failed(&THROTTLING, Reports::new()).unwrap();
    assert!(
        matches!(verdict, Verdict::Stop(stop) if matches!(stop.why(), StopReason::OutOfTime { .. }))
    );
    assert_eq!(strategy.quota().available(), 500);
}

#[test]
fn a_hint_beyond_the_cap_stops_at_once() {
    let hands = Arc::new(Hands::default());
    let builder = Adaptive::builder().paced(PacedSettings::new());
    let strategy = builder
        .clock(Arc::clone(&hands) as Arc<dyn Clock>)
        .build()
        .unwrap();
    let hour = Duration::from_secs(3_600);
    let mut attempts = Operation::new(&strategy)
        .max_retry_after(2 * SECOND)
        .start();
    send(&mut attempts, &hands);
    let verdict = attempts.failed(&hint(hour), Reports::new()).unwrap();
    let Verdict::Stop(stop) = verdict else {
        panic!("{verdict:?}");
    };
    let (asked, max) = (hour, 2 * SECOND);
    assert_eq!(stop.why(), StopReason::RetryAfterTooLong { asked, max });
    assert_eq!(stop.wait(), hour);
    assert_eq!(strategy.quota().available(), 500);
    // The rate that all share pauses for the cap, not for the hour.
    let mut next = Operation::new(&strategy).start();
    let Next::InLine(rest) = next.next(&*hands, Some(Waker::noop())) else {
        panic!("the rate pauses");
    };
    assert!(rest.span() > SECOND && rest.span() < 5 * SECOND, "{rest:?}");
}

#[test]
fn a_hint_within_the_cap_is_slept() {
    let hands = Arc::new(Hands::default());
    let strategy = standard(&hands);
    let mut attempts = Operation::new(&strategy).start();
    send(&mut attempts, &hands);
    let verdict = attempts.failed(&hint(60 * SECOND), Reports::new()).unwrap();
    // The backoff, of 1 s after throttling, spreads the retries after the hint.
    assert!(matches!(verdict, Verdict::Again(rest) if rest.span() == 61 * SECOND));
}

#[test]
fn what_cannot_be_repeated_costs_no_quota() {
    let hands = Arc::new(Hands::default());
    let strategy = ten_a_second(&hands);
    let once = || {
        let mut attempts = Operation::new(&strategy).start();
        hands.sleep(SECOND);
        send(&mut attempts, &hands);
        attempts.set_repeatable(false);
        attempts
    };
    let stop = |failure: Failure| match once().failed(&failure, Reports::new()) {
        Ok(Verdict::Stop(stop)) => stop.why(),
        other => panic!("{other:?}"),
    };
    assert_eq!(stop(Failure::transient()), StopReason::NotRepeatable);
    assert_eq!(stop(Failure::not_retryable()), StopReason::NotRetryable);
    assert_eq!(strategy.quota().available(), 500);
    assert_eq!(strategy.snapshot().counts.cuts, 0);
}

#[test]
fn a_stream_is_recorded_at_its_end_and_not_retried() {
    let hands = Arc::new(Hands::default());
    let builder = Adaptive::builder().paced(PacedSettings::new());
    let strategy = builder
        .clock(Arc::clone(&hands) as Arc<dyn Clock>)
        .build()
        .unwrap();
    let mut attempts = Operation::new(&strategy).start();
    send(&mut attempts, &hands);
    let body = attempts.detach().unwrap();
    assert_eq!(strategy.snapshot().counts.throttled, 0);
    body.failed(&THROTTLING, Reports::at(&*hands));
    let seen = strategy.snapshot();
    assert_eq!((seen.counts.throttled, seen.counts.cuts), (1, 1));
    assert_eq!(strategy.quota().available(), 500);
}

#[test]
fn a_stream_that_fails_pauses_no_longer_than_its_operation_says() {
    let hands = Arc::new(Hands::default());
    let builder = Adaptive::builder().paced(PacedSettings::new());
    let clock = Arc::clone(&hands) as Arc<dyn Clock>;
    let strategy = builder.clock(clock).build().unwrap();
    let operation = Operation::new(&strategy).max_retry_after(2 * SECOND);
    let mut attempts = operation.start();
    send(&mut attempts, &hands);
    let body = attempts.detach().unwrap();
    body.failed(&hint(60 * SECOND), Reports::at(&*hands));
    let allowed = |after| {
        hands.sleep(after);
        strategy.send_rate().try_acquire(hands.now()).is_ok()
    };
    assert_eq!([ms(1_999), 10 * SECOND].map(allowed), [false, true]);
}

#[test]
fn one_that_ends_in_line_gives_its_place_up() {
    let hands = Arc::new(Hands::default());
    let strategy = ten_a_second(&hands);
    send(&mut Operation::new(&strategy).start(), &hands);
    let [mut second, mut third, mut fourth] =
        [350, 350, 5_000].map(|by| Operation::new(&strategy).deadline(ms(by)).start());
    let rest = |attempts: &mut Attempts<_>| match attempts.next(&*hands, Some(Waker::noop())) {
        Next::InLine(rest) => rest.span().as_millis(),
        other => panic!("{other:?}"),
    };
    let all = [&mut second, &mut third, &mut fourth].map(rest);
    assert_eq!(all, [100, 200, 300]);
    let again = second.not_sent(&Failure::transient(), Reports::new());
    assert!(matches!(again, Ok(Verdict::Again(_))), "{again:?}");
    assert_eq!([&mut third, &mut fourth].map(rest), [100, 200]);
    // At two a second the third has no time, and stops.
    let two = PacedSettings::fixed(2, SECOND).unwrap().to_builder();
    let two = two.burst(ms(100)).build().unwrap();
    strategy.set_paced(two).unwrap();
    assert_eq!(rest(&mut fourth), 1_000);
    assert!(matches!(third.next(&*hands, None), Next::Stop(_)));
    assert_eq!(rest(&mut fourth), 500);
}

#[test]
fn an_attempt_takes_its_weight() {
    let hands = Arc::new(Hands::default());
    let settings = PacedSettings::fixed(10, SECOND)
        .unwrap()
        .to_builder()
        .burst(SECOND)
        .build()
        .unwrap();
    let builder = Adaptive::builder().paced(settings);
    let strategy = builder
        .clock(Arc::clone(&hands) as Arc<dyn Clock>)
        .build()
        .unwrap();
    let operation = |weight| Operation::new(&strategy).weight(weight).start();
    send(&mut operation(8), &hands);
    let Next::InLine(rest) = operation(5).next(&*hands, Some(Waker::noop())) else {
        panic!("two tokens are left");
    };
    assert_eq!(rest.span().as_millis(), 300);
    let Next::Stop(stop) = operation(0).next(&*hands, None) else {
        panic!("there is no such weight");
    };
    let error = WeightError::Zero.into();
    let reason = StopReason::Weight(SetError::Limit { limit: 0, error });
    assert_eq!(stop.why(), reason);
}

/// What a strategy was handed, in the order of the calls.
#[derive(Debug)]
struct Witness {
    id: StrategyId,
    calls: Mutex<Vec<String>>,
    waits: AtomicU32,
}

impl Witness {
    fn new(waits: u32) -> Self {
        Self {
            id: StrategyId::new(),
            calls: Mutex::new(Vec::new()),
            waits: AtomicU32::new(waits),
        }
    }

    fn note(&self, call: String) {
        self.calls.lock().unwrap().push(call);
    }
}

impl RetryStrategy for Witness {
    fn acquire_initial_token(
        &self,
        scope: Option<&str>,
    ) -> Result<RetryToken, InitialTokenRefused> {
        self.note(format!("begin {scope:?}"));
        Ok(RetryToken::new(self.id).with_attempt(1, Some(2)))
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        failure: &Failure,
        reports: Reports<'_>,
    ) -> Result<RetryToken, RetryRefused> {
        let now = reports.clock(&Timestamp::ZERO).now().as_nanos();
        let sent = token.send_permit().unwrap().time().as_nanos();
        let (left, longest) = (token.time_left(), token.max_retry_after());
        let (idempotency, hint) = (token.idempotency(), failure.retry_after());
        self.note(format!(
            "failed at {now}, sent {sent}, {left:?} left, {longest:?}, {idempotency:?}, {hint:?}"
        ));
        Ok(token.with_attempt(2, Some(2)).with_delay(ms(1)))
    }

    fn record_success(&self, token: RetryToken, reports: Reports<'_>) -> Result<(), ForeignToken> {
        let now = reports.clock(&Timestamp::ZERO).now().as_nanos();
        let sent = token.send_permit().unwrap().time().as_nanos();
        self.note(format!("succeeded at {now}, sent {sent}"));
        Ok(())
    }

    fn admit(&self, _: &mut SendTurn, request: SendRequest<'_>) -> Result<SendPermit, NotAdmitted> {
        let now = request.now(&Timestamp::ZERO);
        let attempt = request.operation().map(RetryToken::attempt);
        self.note(format!(
            "admit {attempt:?} of {} at {}",
            request.tokens(),
            now.as_nanos()
        ));
        if self.waits.fetch_sub(1, Relaxed) == 0 {
            self.waits.store(0, Relaxed);
            return Ok(SendPermit::sent_at(now));
        }
        let (wait, look_in) = (ms(3), ms(2));
        Err(NotAdmitted::Wait { wait, look_in })
    }
}

/// The seam between the machine and a strategy: scope, weight, times, permit, deadline, cap and
/// hint.
#[test]
fn a_strategy_is_handed_all_that_the_machine_knows() {
    let strategy = Witness::new(1);
    let at = Timestamp::from_nanos;
    let mut attempts = Operation::new(&strategy)
        .scope("table")
        .weight(7)
        .idempotency(Idempotency::NotIdempotent)
        .deadline(SECOND)
        .max_retry_after(9 * SECOND)
        .clock(&at(10))
        .start();
    let Next::InLine(rest) = attempts.next(&at(11), None) else {
        panic!("it waits");
    };
    assert_eq!((rest.span(), rest.until()), (ms(2), at(2_000_011)));
    assert!(matches!(attempts.next(&at(12), None), Next::Send(_)));
    let failure = hint(ms(4));
    let again = attempts.failed(&failure, Reports::at(&at(13))).unwrap();
    assert!(matches!(again, Verdict::Again(rest) if rest.until() == at(1_000_013)));
    strategy.waits.store(0, Relaxed);
    assert!(matches!(attempts.next(&at(1_000_013), None), Next::Send(_)));
    attempts.succeeded(Reports::at(&at(1_000_014))).unwrap();
    let calls = strategy.calls.lock().unwrap();
    assert_eq!(
        *calls,
        [
            "begin Some(\"table\")",
            "admit Some(1) of 7 at 11",
            "admit Some(1) of 7 at 12",
            "failed at 13, sent 12, Some(999.999997ms) left, 9s, NotIdempotent, Some(AtLeast(4ms))",
            "admit Some(2) of 7 at 1000013",
            "succeeded at 1000014, sent 1000013",
        ]
    );
}

/// The seam between scopes and the strategy of one: everything goes to that scope, as it came, and
/// a scope whose operation is dropped in line is not in use any more.
#[test]
fn a_scope_is_handed_all_that_scopes_are() {
    let make = |key: Option<&str>| Ok(Witness::new(u32::from(key.is_some())));
    let scopes = ScopesBuilder::new(make).build().unwrap();
    let at = Timestamp::from_nanos;
    let operation = || {
        let operation = Operation::new(scopes.clone()).scope("table").weight(7);
        operation.clock(&Timestamp::ZERO).deadline(SECOND).start()
    };
    let mut attempts = operation();
    assert!(matches!(attempts.next(&at(11), None), Next::InLine(_)));
    assert!(matches!(attempts.next(&at(12), None), Next::Send(_)));
    let again = attempts.failed(&hint(ms(4)), Reports::at(&at(13))).unwrap();
    assert!(matches!(again, Verdict::Again(_)));
    let table = scopes.get("table").unwrap();
    table.waits.store(0, Relaxed);
    assert!(matches!(attempts.next(&at(1_000_013), None), Next::Send(_)));
    attempts.succeeded(Reports::at(&at(1_000_014))).unwrap();
    assert_eq!(
        *table.calls.lock().unwrap(),
        [
            "begin Some(\"table\")",
            "admit Some(1) of 7 at 11",
            "admit Some(1) of 7 at 12",
            "failed at 13, sent 12, Some(999.999987ms) left, 60s, Idempotent, Some(AtLeast(4ms))",
            "admit Some(2) of 7 at 1000013",
            "succeeded at 1000014, sent 1000013",
        ]
    );
    table.waits.store(1, Relaxed);
    drop((table, attempts));
    assert_eq!(scopes.count_in_use(), 0);
    let mut in_line = operation();
    assert!(matches!(in_line.next(&at(14), None), Next::InLine(_)));
    assert_eq!(scopes.count_in_use(), 1);
    drop(in_line);
    assert_eq!(scopes.count_in_use(), 0);
    assert!(scopes.shared().calls.lock().unwrap().is_empty());
}

/// Strategies that heed nothing are held to it by the machine.
#[test]
fn a_careless_strategy_is_held_to_the_limits() {
    let stop = |attempts: Operation<'_, &Witness>, failure: Failure| {
        let mut attempts = attempts.start();
        assert!(matches!(
            attempts.next(&Timestamp::ZERO, None),
            Next::Send(_)
        ));
        match attempts.failed(&failure, Reports::at(&Timestamp::ZERO)) {
            Ok(Verdict::Stop(stop)) => stop.why(),
            other => panic!("{other:?}"),
        }
    };
    let strategy = Witness::new(0);
    let once = Operation::new(&strategy).idempotency(Idempotency::NotIdempotent);
    assert_eq!(stop(once, Failure::timeout()), StopReason::MaybeExecuted);
    strategy.waits.store(0, Relaxed);
    let now = &Timestamp::ZERO;
    let short = Operation::new(&strategy).clock(now).deadline(ms(1));
    let (wait, left) = (ms(1), ms(1));
    assert_eq!(
        stop(short, Failure::timeout()),
        StopReason::OutOfTime { wait, left }
    );
    strategy.waits.store(0, Relaxed);
    let none = Operation::new(&strategy).max_retry_after(Duration::ZERO);
    let (asked, max) = (ms(1), Duration::ZERO);
    assert_eq!(
        stop(none, hint(ms(1))),
        StopReason::RetryAfterTooLong { asked, max }
    );
}

#[test]
fn the_machine_owns_what_it_needs() {
    fn owned<T: Send + 'static>(_: &T) {}
    let strategy: Arc<dyn RetryStrategy> = Arc::new(Adaptive::paced());
    owned(&Operation::new(strategy).start());
    let scopes: Scopes<Adaptive> = Adaptive::builder()
        .law(paceline::ControlLaw::Aws)
        .scopes()
        .build()
        .unwrap();
    let attempts = Operation::new(scopes).scope("a").start();
    owned(&attempts);
    std::thread::spawn(move || drop(attempts)).join().unwrap();
}

/// Embedders see the seams of `run` as well: what it hands to the strategy is what the machine
/// does.
#[test]
fn the_blocking_loop_hands_everything_on() {
    let strategy = Witness::new(1);
    let hands = Hands::default();
    let slept = RefCell::new(Vec::new());
    let mut results = [Err(hint(ms(4))), Ok(())].into_iter();
    let operation = Operation::new(&strategy).scope("s").weight(2).clock(&hands);
    let run = operation.sleep_by(|span| {
        slept.borrow_mut().push(span);
        hands.sleep(span);
        strategy.waits.store(0, Relaxed);
    });
    run.run(|_| results.next().unwrap()).unwrap();
    assert_eq!(*slept.borrow(), [ms(2), ms(1)]);
    assert_eq!(
        *strategy.calls.lock().unwrap(),
        [
            "begin Some(\"s\")",
            "admit Some(1) of 2 at 0",
            "admit Some(1) of 2 at 2000000",
            "failed at 2000000, sent 2000000, None left, 60s, Idempotent, Some(AtLeast(4ms))",
            "admit Some(2) of 2 at 3000000",
            "succeeded at 3000000, sent 3000000",
        ]
    );
}

/// The send time reaches the rate: throttles of requests that were sent before a cut belong to it.
#[test]
fn throttles_of_one_overshoot_cut_once() {
    let hands = Arc::new(Hands::default());
    let builder = Adaptive::builder().paced(PacedSettings::new());
    let strategy = builder
        .clock(Arc::clone(&hands) as Arc<dyn Clock>)
        .build()
        .unwrap();
    let mut in_flight: Vec<_> = (0..6).map(|_| Operation::new(&strategy).start()).collect();
    hands.sleep(ms(10));
    for attempts in &mut in_flight {
        send(attempts, &hands);
    }
    for attempts in &mut in_flight {
        hands.sleep(SECOND);
        attempts.failed(&THROTTLING, Reports::new()).unwrap();
    }
    let counts = strategy.snapshot().counts;
    assert_eq!((counts.throttled, counts.cuts), (6, 1));
}

/// A strategy that refuses initial tokens: scopes within scopes.
fn refusing() -> Scopes<Scopes<Standard>> {
    let builder = ScopesBuilder::new(|_| Ok(Standard::builder().scopes().build().unwrap()));
    builder.build().unwrap()
}

#[test]
fn an_operation_shows_where_it_is() {
    let hands = Arc::new(Hands::default());
    let strategy = standard(&hands);
    let mut attempts = Operation::new(&strategy).start();
    let seen = |attempts: &Attempts<_>| (attempts.is_sending(), attempts.count());
    assert_eq!(seen(&attempts), (false, 0));
    let mut refused = Operation::new(refusing()).scope("a").start();
    for _ in 0..2 {
        assert_eq!(refused.max_attempts(), Some(1), "it has no token");
        let _next = refused.next(&*hands, None);
    }
    let Next::Send(attempt) = attempts.next(&*hands, None) else {
        panic!("it may be sent");
    };
    assert_eq!((attempt.number(), attempt.max()), (1, Some(3)));
    assert_eq!(seen(&attempts), (true, 1));
    assert_eq!(attempts.max_attempts(), Some(3));
    let failure = Failure::transient();
    attempts.failed(&failure, Reports::new()).unwrap();
    assert_eq!(seen(&attempts), (false, 1));
    hands.sleep(ms(50));
    send(&mut attempts, &hands);
    assert_eq!(seen(&attempts), (true, 2));
}

#[test]
fn a_stream_that_ends_well_gives_back_its_quota() {
    let hands = Arc::new(Hands::default());
    let strategy = standard(&hands);
    let mut attempts = Operation::new(&strategy).start();
    send(&mut attempts, &hands);
    let failure = Failure::transient();
    attempts.failed(&failure, Reports::new()).unwrap();
    hands.sleep(ms(50));
    send(&mut attempts, &hands);
    let body = attempts.detach().unwrap();
    assert_eq!(strategy.quota().available(), 486);
    body.succeeded(Reports::new());
    assert_eq!(strategy.quota().available(), 500);
}

#[test]
fn no_sleep_begins_that_would_end_at_the_deadline() {
    for (left, slept) in [(1_000, 0), (1_001, 1_000)] {
        let hands = Arc::new(Hands::default());
        let builder = Standard::builder().quota_capacity(0).long_polling(true);
        let builder = builder.clock(Arc::clone(&hands) as Arc<dyn Clock>);
        let strategy = builder.random(Fixed::whole()).build().unwrap();
        let operation = Operation::new(&strategy).deadline(ms(left));
        let mut attempts = operation.clock(&*hands).start();
        send(&mut attempts, &hands);
        let verdict = attempts.failed(&THROTTLING, Reports::new()).unwrap();
        let Verdict::Stop(stop) = verdict else {
            panic!("{verdict:?}");
        };
        assert_eq!(stop.delay(), ms(slept), "{left}");
    }
}

/// A thread in line sleeps until its turn, and does not ask again and again.
#[test]
fn a_thread_in_line_looks_at_the_clock_a_few_times() {
    #[derive(Debug)]
    struct Counting(MonotonicClock, AtomicU32);
    impl Clock for Counting {
        fn now(&self) -> Timestamp {
            self.1.fetch_add(1, Relaxed);
            self.0.now()
        }
    }
    let settings = PacedSettings::fixed(20, SECOND).unwrap();
    let settings = settings.to_builder().burst(ms(50)).build().unwrap();
    let strategy = Adaptive::builder().paced(settings).build().unwrap();
    let clock = Counting(MonotonicClock::new(), AtomicU32::new(0));
    for _ in 0..3 {
        let mut attempts = Operation::new(&strategy).start();
        attempts.wait_blocking(&clock).unwrap();
        attempts.succeeded(Reports::at(&clock)).unwrap();
    }
    let looks = clock.1.load(Relaxed);
    assert!(looks < 100, "{looks}");
}

#[test]
fn a_thread_sleeps_before_a_long_poll_fails() {
    let builder = Standard::builder().quota_capacity(0).long_polling(true);
    let builder = builder.base_delay(ms(20)).random(Fixed::whole());
    let strategy = builder.build().unwrap();
    let began = Instant::now();
    let ended = Operation::new(&strategy).run(|_| Err::<(), _>(Failure::transient()));
    assert_eq!(ended.unwrap_err().stop().delay(), ms(20));
    assert!(began.elapsed() >= ms(20));
}
