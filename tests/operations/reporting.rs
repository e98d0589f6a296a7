//! Loops whose attempts return what the service reported beside their results.
#![expect(clippy::arithmetic_side_effects, reason = "small numbers")]

use core::{cell::RefCell, time::Duration};

use crate::support::{Arc, Fixed, Hands, http, ms};
use paceline::{
    Adaptive, Clock, Failure, RetryAfter, RetryStrategy, RetryStrategyExt, Standard, Timestamp,
    law::{DeclaredSettings, LimitReport, LimitReports, PacedSettings, Reset},
    operation::Reported,
    strategy::Reports,
};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// A service that allows 600 requests a minute, and says so in each response.
#[derive(Debug)]
struct Service {
    used: u64,
    resets: Timestamp,
    throttled: u64,
    asked_at: Vec<Timestamp>,
}

impl Service {
    const fn new() -> Self {
        Self {
            used: 0,
            resets: Timestamp::ZERO,
            throttled: 0,
            asked_at: Vec::new(),
        }
    }
}

impl Service {
    const LIMIT: u64 = 600;

    fn ask(&mut self, now: Timestamp) -> (Result<(), Failure>, LimitReports) {
        if now >= self.resets {
            (self.used, self.resets) = (0, now.saturating_add(MINUTE));
        }
        self.asked_at.push(now);
        self.used += 1;
        let answer = if self.used > Self::LIMIT {
            self.throttled += 1;
            Err(Failure::throttling())
        } else {
            Ok(())
        };
        let left = LimitReport::new(Self::LIMIT.saturating_sub(self.used))
            .limit(Self::LIMIT)
            .window(MINUTE)
            .reset(Reset::In(self.resets.saturating_since(now)));
        (answer, left.into())
    }

    /// Checks the pace of 700 requests: even from the second on, and none throttled.
    fn check(&self) {
        assert_eq!((self.asked_at.len(), self.throttled), (700, 0));
        let at = |number: usize| self.asked_at[number].saturating_since(self.asked_at[0]);
        assert!(at(1) <= SECOND, "the second after {:?}", at(1));
        assert!(at(100) <= 13 * SECOND, "100 after {:?}", at(100));
        assert!(at(600) >= MINUTE, "601 after {:?}", at(600));
        assert!(at(699) <= 90 * SECOND, "700 after {:?}", at(699));
    }
}

fn declared(clock: Arc<dyn Clock>) -> Adaptive {
    let builder = Adaptive::builder().declared(DeclaredSettings::new());
    builder.clock(clock).build().expect("in range")
}

#[test]
fn a_thread_is_paced_by_what_its_attempts_report() {
    let clock = Arc::new(Hands::default());
    let strategy = declared(clock.clone());
    let service = RefCell::new(Service::new());
    for _ in 0..700 {
        let operation = strategy.operation().sleep_by(|span| clock.sleep(span));
        let done = operation.reporting().run(|_| {
            clock.sleep(ms(10));
            let (answer, limits) = service.borrow_mut().ask(clock.now());
            Reports::new().declaring(&limits).beside(answer)
        });
        assert!(done.is_ok(), "{done:?}");
    }
    service.borrow().check();
}

#[test]
fn an_error_that_is_classified_keeps_its_reports() {
    let clock = Arc::new(Hands::default());
    let strategy = declared(clock.clone());
    let refused = strategy
        .operation()
        .reporting()
        .sleep_by(|span| clock.sleep(span))
        .run_with(
            |status: &u16| http(*status),
            |_| {
                let limits = LimitReport::new(7).limit(9).window(MINUTE).into();
                Reports::new()
                    .declaring(&limits)
                    .beside(Err::<(), u16>(404))
            },
        );
    assert_eq!(refused.unwrap_err().into_error(), Ok(404));
    let seen = strategy
        .snapshot()
        .rate
        .and_then(|rate| rate.declared)
        .unwrap();
    assert_eq!((seen.limit, seen.window), (9, MINUTE));
}

#[test]
fn a_reported_cost_settles_the_estimate() {
    let clock = Arc::new(Hands::default());
    let settings = PacedSettings::fixed(10, SECOND).expect("in range");
    let settings = settings
        .to_builder()
        .burst(SECOND)
        .build()
        .expect("in range");
    let strategy = Adaptive::builder()
        .paced(settings)
        .clock(clock.clone())
        .build()
        .expect("in range");
    let left = || {
        format!(
            "{:.3}",
            strategy.send_rate().snapshot(clock.now()).available
        )
    };
    let run = |weight, cost: Option<u32>| {
        let operation = strategy.operation().weight(weight).reporting();
        let done = operation.run(|_| match cost {
            Some(cost) => Reports::new()
                .costing(&[cost].into())
                .beside(Ok::<_, Failure>(())),
            None => Ok(Reported::from(())),
        });
        assert!(done.is_ok(), "{done:?}");
        left()
    };
    assert_eq!(run(5, None), "5.000");
    clock.sleep(SECOND);
    assert_eq!(run(1, Some(5)), "5.000", "a debit");
    clock.sleep(SECOND);
    assert_eq!(run(8, Some(5)), "5.000", "a credit");
}

#[test]
fn a_reported_hint_is_obeyed_and_replaces_that_of_the_error() {
    let slept = |hint: Option<Duration>| {
        let strategy = Standard::builder()
            .random(Fixed::whole())
            .build()
            .expect("in range");
        let clock = Hands::default();
        let operation = strategy
            .operation()
            .clock(&clock)
            .sleep_by(|span| clock.sleep(span));
        let done = operation.reporting().run(|attempt| {
            let own = http(500).with_retry_after(RetryAfter::AtLeast(SECOND));
            match (attempt.number(), hint) {
                (2, _) => Ok(Reported::from("sent")),
                (_, None) => Err(own)?,
                (_, Some(hint)) => Err(Reported::from(own).retry_after(RetryAfter::AtLeast(hint))),
            }
        });
        assert_eq!(done.unwrap(), "sent");
        clock.elapsed()
    };
    assert_eq!(slept(None), SECOND + ms(50));
    assert_eq!(slept(Some(3 * SECOND)), 3 * SECOND + ms(50));
}

#[cfg(feature = "tokio")]
mod in_tasks {
    use super::*;
    use paceline::TokioClock;
    use std::sync::Mutex;
    use tokio::time::sleep;

    #[tokio::test(start_paused = true)]
    async fn a_task_is_paced_by_what_its_attempts_report() {
        let clock = TokioClock::new();
        let strategy = declared(Arc::new(clock));
        let service = Mutex::new(Service::new());
        for _ in 0..700 {
            let operation = strategy
                .operation()
                .sleep_on(paceline::wait::DefaultSleep::new());
            let done = operation.reporting().run_async(async |_| {
                sleep(ms(10)).await;
                let (answer, limits) = service.lock().expect("no panic").ask(clock.now());
                Reports::new().declaring(&limits).beside(answer)
            });
            let done = done.await;
            assert!(done.is_ok(), "{done:?}");
        }
        service.lock().expect("no panic").check();
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_that_is_cut_off_reports_nothing() {
        let strategy = declared(Arc::new(TokioClock::new()));
        let operation = strategy.operation().attempt_timeout(ms(20)).reporting();
        let done = operation.run_async_with(
            |failure: &Failure| *failure,
            async |attempt| {
                if attempt.number() == 1 {
                    core::future::pending::<()>().await;
                }
                let limits = LimitReport::new(7).limit(9).window(MINUTE).into();
                Reports::new()
                    .declaring(&limits)
                    .beside(Ok(attempt.number()))
            },
        );
        assert_eq!(done.await.unwrap(), 2);
        assert!(strategy.snapshot().rate.unwrap().declared.is_some());
    }
}
