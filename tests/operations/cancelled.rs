//! Operations that their callers give up: what they have paid comes back, and what they have sent
//! counts.
#![expect(clippy::arithmetic_side_effects, reason = "small numbers")]

use core::time::Duration;

use crate::support::{Arc, Fixed, Hands, ms};
use paceline::{
    Adaptive, Clock, Failure, Operation, Outcome, RetryStrategy, SendPermit, SendRate, Standard,
    Timestamp,
    law::{DeclaredSettings, PacedSettings, Recorded},
    operation::{Attempts, Next, Verdict},
    strategy::Reports,
};

/// A service of 100 requests a second that saves up one.
#[derive(Default)]
struct Service {
    next: u64,
    served: u32,
}

impl Service {
    const EACH: u64 = 10_000_000;

    fn serves(&mut self, now: u64) -> bool {
        let admits = now + Self::EACH >= self.next;
        if admits {
            self.next = self.next.max(now) + Self::EACH;
            self.served += 1;
        }
        admits
    }
}

enum Doing<'a> {
    Asking(Attempts<&'a Adaptive>),
    /// It was sent, and is served or not.
    Sent(Attempts<&'a Adaptive>, bool),
    GivingUp(Attempts<&'a Adaptive>),
}

/// Plays 40 workers for a minute, of whose sends one in `given_up` is given up before it is
/// answered. Returns how many requests were served in the last half of it.
fn served(strategy: &Adaptive, hands: &Hands, given_up: u32) -> u32 {
    let mut service = Service::default();
    let mut sends = 0_u32;
    let start = || Operation::new(strategy).start();
    let mut workers: Vec<(u64, Doing<'_>)> = (0..40)
        .map(|at| (at * 1_000_000, Doing::Asking(start())))
        .collect();
    let (mut half, end) = (None, 60_000_000_000);
    loop {
        let index = (0..workers.len())
            .min_by_key(|index| workers[*index].0)
            .unwrap();
        let now = workers[index].0;
        if now >= end / 2 && half.is_none() {
            half = Some(service.served);
        }
        if now >= end {
            return service.served - half.unwrap();
        }
        hands.sleep(Duration::from_nanos(now).saturating_sub(hands.elapsed()));
        let (_, doing) = workers.swap_remove(index);
        let next = match doing {
            Doing::Asking(mut attempts) => match attempts.next(hands, None) {
                Next::Sleep(rest) | Next::InLine(rest) => {
                    (rest.until().as_nanos(), Doing::Asking(attempts))
                }
                Next::Send(_) => {
                    sends += 1;
                    let is_served = service.serves(now);
                    if given_up > 0 && sends % given_up == 0 {
                        (now + 10_000_000, Doing::GivingUp(attempts))
                    } else {
                        (now + 20_000_000, Doing::Sent(attempts, is_served))
                    }
                }
                Next::Stop(_) => (now + 1_000_000, Doing::Asking(start())),
                other => panic!("{other:?}"),
            },
            Doing::Sent(mut attempts, true) => {
                attempts.succeeded(Reports::at(hands)).unwrap();
                (now, Doing::Asking(start()))
            }
            Doing::Sent(mut attempts, false) => {
                attempts
                    .failed(&Failure::throttling(), Reports::at(hands))
                    .unwrap();
                (now, Doing::Asking(attempts))
            }
            Doing::GivingUp(attempts) => {
                drop(attempts);
                (now, Doing::Asking(start()))
            }
        };
        workers.push(next);
    }
}

/// A limiter that began to limit at the first throttle, and measured only what was answered, sank
/// to 8/s under the published law and to 64/s under the paced one.
#[test]
fn a_rate_holds_when_callers_give_up() {
    for (given_up, published, paced) in [(0, 2_823, 2_870), (3, 2_796, 2_876), (2, 2_820, 2_904)] {
        for (is_paced, expected) in [(false, published), (true, paced)] {
            let hands = Arc::new(Hands::default());
            let builder = Adaptive::builder()
                .law(paceline::ControlLaw::Aws)
                .clock(hands.clone() as Arc<dyn Clock>);
            let builder = if is_paced {
                builder.paced(PacedSettings::new())
            } else {
                builder
            };
            let strategy = builder.random(Fixed::whole()).build().unwrap();
            let served = served(&strategy, &hands, given_up);
            assert!(
                served.abs_diff(expected) < 60,
                "{served}: {is_paced}, one in {given_up} given up"
            );
        }
    }
}

/// A strategy by a clock that stands still, whose backoffs are whole.
fn standard(hands: &Arc<Hands>) -> Standard {
    let builder = Standard::builder().clock(Arc::clone(hands) as Arc<dyn Clock>);
    builder.random(Fixed::whole()).build().unwrap()
}

/// Fails an attempt that has to go at once.
fn fail<S: RetryStrategy>(attempts: &mut Attempts<S>, hands: &Hands, failure: &Failure) {
    let next = attempts.next(hands, None);
    assert!(matches!(next, Next::Send(_)), "{next:?}");
    let verdict = attempts.failed(failure, Reports::at(hands)).unwrap();
    assert!(matches!(verdict, Verdict::Again(_)), "{verdict:?}");
}

#[test]
fn a_retry_that_was_never_sent_costs_nothing() {
    let hands = Arc::new(Hands::default());
    let strategy = standard(&hands);
    for _ in 0..35 {
        let mut attempts = Operation::new(&strategy).start();
        fail(&mut attempts, &hands, &Failure::transient());
        assert!(strategy.quota().available() < 500);
        drop(attempts); // while it backs off
        assert_eq!(strategy.quota().available(), 500);
    }
    assert_eq!(strategy.snapshot().counts.credited, 0, "nothing succeeded");
}

#[test]
fn a_retry_that_was_sent_stays_paid() {
    let hands = Arc::new(Hands::default());
    let strategy = standard(&hands);
    let mut attempts = Operation::new(&strategy).start();
    fail(&mut attempts, &hands, &Failure::transient());
    let paid = strategy.quota().available();
    hands.sleep(ms(60_000));
    assert!(matches!(attempts.next(&*hands, None), Next::Send(_)));
    drop(attempts);
    assert_eq!((strategy.quota().available(), paid < 500), (paid, true));
}

/// In line, with one token a second that another request has taken.
#[test]
fn a_retry_that_gives_up_in_line_costs_nothing() {
    let hands = Arc::new(Hands::default());
    let settings = PacedSettings::fixed(1, Duration::from_secs(1)).unwrap();
    let builder = Adaptive::builder().paced(settings);
    let builder = builder.clock(Arc::clone(&hands) as Arc<dyn Clock>);
    let strategy = Arc::new(builder.random(Fixed::whole()).build().unwrap());
    let in_line = |deadline| {
        let operation = Operation::new(Arc::clone(&strategy)).deadline(deadline);
        let mut attempts = operation.start();
        hands.sleep(ms(1_000));
        fail(&mut attempts, &hands, &Failure::transient());
        attempts.slept();
        let next = attempts.next(&*hands, None);
        (attempts, next)
    };
    let (waiting, next) = in_line(ms(10_000));
    assert!(matches!(next, Next::InLine(_)), "{next:?}");
    assert!(strategy.quota().available() < 500);
    drop(waiting);
    assert_eq!(strategy.quota().available(), 500);
    // Its turn would come when its time is up.
    let (stopped, next) = in_line(ms(1_500));
    assert!(matches!(next, Next::Stop(_)), "{next:?}");
    assert_eq!(strategy.quota().available(), 500);
    drop(stopped);
    assert_eq!(strategy.quota().available(), 500);
}

/// Sent as the first attempt, or detached: both count when they are dropped, once.
#[test]
fn a_send_that_is_given_up_counts_once() {
    let hands = Arc::new(Hands::default());
    let builder = Adaptive::builder()
        .law(paceline::ControlLaw::Aws)
        .clock(Arc::clone(&hands) as Arc<dyn Clock>);
    let strategy = builder.exact_timing(true).build().unwrap();
    let begin = || {
        let mut attempts = Operation::new(&strategy).start();
        assert!(matches!(attempts.next(&*hands, None), Next::Send(_)));
        attempts
    };
    let measured = || {
        let rate = strategy.snapshot().rate.unwrap();
        (rate.measured_rate * 10.0).round().to_string()
    };
    for _ in 0..4 {
        drop(begin());
        drop(begin().detach().unwrap());
    }
    hands.sleep(ms(500));
    let mut last = begin();
    last.succeeded(Reports::at(&*hands)).unwrap();
    drop(last);
    // In tenths: nine in half a second, of which the law takes four fifths.
    assert_eq!(measured(), "144");
}

/// What has gone to a scope comes back to that scope, and the scope is let go.
#[cfg(feature = "scopes")]
#[test]
fn a_scope_takes_its_retry_back() {
    let scopes = crate::support::scopes::standard(1);
    let hands = Hands::default();
    let mut attempts = Operation::new(scopes.clone()).scope("table").start();
    fail(&mut attempts, &hands, &Failure::transient());
    let left = || scopes.get("table").unwrap().quota().available();
    assert!(left() < 500);
    drop(attempts);
    assert_eq!(left(), 500);
    assert_eq!(scopes.shared().quota().available(), 500);
}

/// Three answers without a report make a limiter that listens go by the paced law: a request that
/// was given up is none.
#[test]
fn a_request_that_is_given_up_is_no_answer() {
    let rate = SendRate::declared(DeclaredSettings::new(), Timestamp::ZERO);
    for second in 0..10 {
        let now = Timestamp::from_nanos(second * 1_000_000_000);
        let permit = SendPermit::sent_at(now);
        assert_eq!(
            rate.record(now, permit, Outcome::Unknown),
            Recorded::Counted
        );
    }
    assert!(!rate.snapshot(Timestamp::ZERO).unheard);
}
