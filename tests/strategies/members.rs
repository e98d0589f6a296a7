//! Strategies with several members, of which one serves each attempt.

use alloc::sync::Arc;
use core::time::Duration;
use std::sync::Mutex;

use paceline::{
    Adaptive, Clock, ControlLaw, Failure, Operation, RetryAfter, RetryStrategyExt, SendSet,
    config::SettingsError,
    law::{DeclaredSettings, Dimension, LimitReport, LimitReports, PacedSettings, Reset},
    operation::{Next, StopReason},
    set::Weights,
    strategy::{EventKind, Reports},
};

use crate::support::{Hands, ms};

const MINUTE: Duration = Duration::from_secs(60);

/// Members of `tokens` a minute each, by a clock that only sleeps move.
fn fixed(tokens: u32, members: usize) -> (Adaptive, Arc<Hands>) {
    let hands = Arc::new(Hands::default());
    let strategy = Adaptive::builder()
        .paced(PacedSettings::fixed(tokens, MINUTE).expect("in range"))
        .members(members)
        .clock(Arc::clone(&hands) as Arc<dyn Clock>)
        .build();
    (strategy.expect("in range"), hands)
}

/// The throttles that the first rate of each member has counted.
fn limited(strategy: &Adaptive) -> Vec<bool> {
    let now = strategy.clock().now();
    let first = strategy.sets().iter().flat_map(|set| set.rates().take(1));
    first.map(|rate| rate.snapshot(now).enabled).collect()
}

#[test]
fn a_long_wait_shows_the_line_of_its_member() {
    let waiting = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&waiting);
    let hands = Arc::new(Hands::default());
    let strategy = Adaptive::builder()
        .paced(PacedSettings::fixed(40, MINUTE).expect("in range"))
        .members(2)
        .choosing(|member| (member.index == 1).then_some(0))
        .clock(Arc::clone(&hands) as Arc<dyn Clock>)
        .on_event(move |event| {
            if let EventKind::LongWait { rate, .. } = &event.kind {
                seen.lock().expect("no test panicked").push(rate.waiting);
            }
        })
        .build()
        .expect("in range");
    let mut attempts = [(); 2].map(|()| Operation::new(&strategy).start());
    assert!(matches!(attempts[0].next(&hands, None), Next::Send(_)));
    assert!(matches!(attempts[1].next(&hands, None), Next::InLine(_)));
    assert_eq!(*waiting.lock().expect("no test panicked"), [1]);
}

#[test]
fn a_retry_goes_to_another_member_unless_it_stays() {
    for stays in [false, true] {
        let hands = Arc::new(Hands::default());
        let strategy = Adaptive::builder()
            .law(ControlLaw::Paced)
            .members(3)
            .clock(Arc::clone(&hands) as Arc<dyn Clock>)
            .build()
            .expect("in range");
        let operation = Operation::new(&strategy).sleep_by(|span| hands.sleep(span));
        let operation = if stays {
            operation.same_member()
        } else {
            operation
        };
        let mut served = Vec::new();
        let hint = RetryAfter::AtLeast(Duration::from_secs(20));
        let answer = operation.run(|attempt| {
            served.push(attempt.member());
            match attempt.number() {
                1 => Err(Failure::throttling().with_retry_after(hint)),
                2 if !stays => Err(Failure::throttling()),
                number => Ok(number),
            }
        });
        assert!(answer.is_ok(), "{answer:?}");
        let (members, enabled): (&[_], _) = if stays {
            (&[0, 0], [true, false, false])
        } else {
            (&[0, 1, 2], [true, true, false])
        };
        assert_eq!(served, members);
        assert_eq!(limited(&strategy), enabled, "recorded where it was served");
    }
}

#[test]
fn attempts_wait_for_the_first_member() {
    let (strategy, hands) = fixed(60, 2);
    let mut served = Vec::new();
    for _ in 0..6 {
        let operation = Operation::new(&strategy).sleep_by(|span| hands.sleep(span));
        let sent = operation.run(|attempt| Ok::<_, Failure>(attempt.member()));
        served.push((sent.expect("it is sent"), hands.elapsed().as_millis()));
    }
    let pairs = [
        (0, 0),
        (1, 0),
        (0, 1_000),
        (1, 1_000),
        (0, 2_000),
        (1, 2_000),
    ];
    assert_eq!(served, pairs);
    let late = Operation::new(&strategy).deadline(ms(999));
    let refused = late
        .run(|_| Ok::<_, Failure>(()))
        .map_err(|stopped| stopped.why());
    let Err(StopReason::OutOfTime { wait, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(wait.as_millis(), 1_000);
}

#[test]
fn an_attempt_in_line_that_is_dropped_gives_all_places_back() {
    let (strategy, hands) = fixed(60, 2);
    for _ in 0..2 {
        strategy.run(|_| Ok::<_, Failure>(())).expect("a token");
    }
    let waiting = || {
        let rates = strategy.sets().iter().flat_map(SendSet::rates);
        let waiting = rates.map(|rate| rate.snapshot(hands.now()).waiting);
        waiting.collect::<Vec<_>>()
    };
    let mut attempts = Operation::new(&strategy).start();
    let next = attempts.next(&*hands, None);
    assert!(matches!(next, Next::InLine(_)), "{next:?}");
    assert_eq!(waiting(), [1, 1]);
    drop(attempts);
    assert_eq!(waiting(), [0, 0]);
}

/// Keys with a limit of requests and of tokens each, which the service declares.
#[test]
fn what_is_heard_and_settled_is_the_members() {
    let hands = Arc::new(Hands::default());
    let tokens = DeclaredSettings::new().dimension(Dimension::Tokens);
    let strategy = Adaptive::builder()
        .declared(DeclaredSettings::new())
        .also(tokens)
        .members(2)
        .choosing(|member| member.index.try_into().ok())
        .clock(Arc::clone(&hands) as Arc<dyn Clock>)
        .build()
        .expect("in range");
    let mut attempts = Operation::new(&strategy).weights([1, 500]).start();
    let Next::Send(attempt) = attempts.next(&*hands, None) else {
        panic!("nothing is limited");
    };
    assert_eq!(attempt.member(), 1, "by the choice");
    let report = |left, limit, dimension| {
        let report = LimitReport::new(left).dimension(dimension).limit(limit);
        report
            .window(MINUTE)
            .reset(Reset::In(MINUTE))
            .refills(false)
    };
    let mut heard = LimitReports::from(report(60, 100, Dimension::Requests));
    heard.push(report(9_000, 10_000, Dimension::Tokens));
    let charge = attempts.charge().expect("it is under way");
    assert_eq!(charge.estimate().as_slice(), [1, 500]);
    let costs = Weights::from([1, 700]);
    let reports = Reports::at(&*hands).declaring(&heard).costing(&costs);
    attempts.succeeded(reports).expect("it is under way");
    let left = strategy.sets().iter().map(|set| {
        let rates = set.rates();
        let limits = rates.map(|rate| rate.snapshot(hands.now()).declared);
        let left = limits.map(|limit| limit.map(|limit| format!("{:.0}", limit.remaining)));
        left.collect::<Vec<_>>()
    });
    let (none, some) = (
        vec![None, None],
        vec![Some("60".into()), Some("9000".into())],
    );
    assert_eq!(left.collect::<Vec<_>>(), [none, some]);
}

#[test]
fn what_cannot_be_is_a_typed_error() {
    let build = |members| {
        let builder = Adaptive::builder().law(ControlLaw::Paced);
        builder
            .members(members)
            .build()
            .map(|strategy| strategy.sets().len())
    };
    let members = [0, 1, 2, 16, 17].map(build);
    let refused = Err(SettingsError::Members);
    assert_eq!(members, [refused, Ok(1), Ok(2), Ok(16), refused]);
    let choosing = || {
        Adaptive::builder()
            .law(ControlLaw::Paced)
            .choosing(|_| None)
    };
    let of_one = choosing().build().map(drop);
    assert_eq!(of_one, Err(SettingsError::ChoiceOfOne));
    let strategy = choosing().members(2).build().expect("in range");
    let stopped = strategy.run(|_| Ok::<_, Failure>(()));
    assert_eq!(
        stopped.map_err(|stopped| stopped.why()),
        Err(StopReason::NotChosen)
    );
}
