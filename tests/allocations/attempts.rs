//! One operation, with waits in line, throttles and retries, allocates nothing.

use alloc::sync::Arc;
use core::{task::Waker, time::Duration};

use allocation_counter::measure;
use paceline::{
    Adaptive, Failure, Operation, RetryStrategy, Scopes, Timestamp,
    law::PacedSettings,
    operation::{Next, Verdict},
    strategy::Reports,
};

/// Goes from step to step, by a clock that is moved by what it asks for. The first `failures`
/// attempts are throttled. Returns how many rested in line.
fn operate<S: RetryStrategy>(strategy: S, mut now: Timestamp, failures: u32) -> (Timestamp, u32) {
    let clock = now;
    let mut attempts = Operation::new(strategy)
        .scope("table")
        .clock(&clock)
        .start();
    let mut in_line = 0_u32;
    loop {
        match attempts.next(&now, Some(Waker::noop())) {
            Next::Sleep(rest) => now = rest.until(),
            Next::InLine(rest) => {
                now = rest.until();
                in_line = in_line.saturating_add(1);
            }
            Next::Send(attempt) if attempt.number() > failures => {
                attempts.succeeded(Reports::at(&now)).unwrap();
                return (now, in_line);
            }
            Next::Send(_) => {
                let verdict = attempts.failed(&Failure::throttling(), Reports::at(&now));
                assert!(matches!(verdict, Ok(Verdict::Again(_))));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_operation_with_retries_allocates_nothing() {
    let settings = PacedSettings::fixed(10, Duration::from_secs(1)).unwrap();
    let template = Adaptive::builder().paced(settings);
    let one: Arc<dyn RetryStrategy> = Arc::new(template.clone().build().unwrap());
    let scopes: Scopes<Adaptive> = template.scopes().build().unwrap();
    let scopes: Arc<dyn RetryStrategy> = Arc::new(scopes);
    for strategy in [one, scopes] {
        // The first throttle and the first waiter make what all later ones share.
        let (mut now, mut in_line) = (strategy.clock().now(), 0);
        while in_line == 0 {
            (now, in_line) = operate(Arc::clone(&strategy), now, 2);
        }
        in_line = 0;
        let counted = measure(|| (_, in_line) = operate(Arc::clone(&strategy), now, 2));
        assert_eq!(counted.count_total, 0);
        assert!(in_line > 0, "it never had to wait");
    }
}
