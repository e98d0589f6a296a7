//! What an operation costs that succeeds at once.

use backon::BlockingRetryable;
use paceline::{Adaptive, Failure, RetryStrategy, Standard};
use paceline_backoff::Retries;

fn operation(strategy: &dyn RetryStrategy) {
    let mut retries = Retries::of(strategy);
    let (delays, condition) = retries.split(|error: &Failure| *error);
    let answer = (|| Ok::<_, Failure>(7))
        .retry(delays)
        .when(condition)
        .call();
    retries.finish(&answer);
}

#[test]
fn nothing_is_allocated() {
    let strategies: [&dyn RetryStrategy; 2] = [&Standard::new(), &Adaptive::paced()];
    for strategy in strategies {
        operation(strategy);
        let counted = allocation_counter::measure(|| operation(strategy));
        assert_eq!(counted.count_total, 0, "{strategy:?}");
    }
}
