//! Operations that are dropped at one of their awaits.

use core::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

use paceline::{Adaptive, Clock, SendRate};

use crate::SECOND;

/// What a retry costs by default, of 500.
pub const COST: u32 = 14;

/// Polls `operation` as many `times` at most, then drops the operation. Returns its result if the
/// operation has ended.
pub async fn polled<T>(times: u32, operation: impl Future<Output = T>) -> Option<T> {
    let mut operation = pin!(operation);
    let mut left = times;
    poll_fn(|context| {
        let Some(fewer) = left.checked_sub(1) else {
            return Poll::Ready(None);
        };
        left = fewer;
        operation.as_mut().poll(context).map(Some)
    })
    .await
}

/// Checks that a rate of one request a second gave a token to each sent request, and that no
/// request has a place in its line.
pub fn check_tokens(rate: &SendRate, clock: &dyn Clock, sent: u32, polls: u32) {
    let now = clock.now();
    let due = Duration::from_nanos(now.as_nanos());
    let wait = SECOND.saturating_mul(sent).saturating_sub(due);
    let token = rate.try_acquire(now);
    assert_eq!(token.err().unwrap_or_default(), wait, "after {polls}");
}

/// Checks what an operation left behind that was dropped after `polls` polls. Its strategy has one
/// request a second. The first request fails, and the second succeeds.
pub fn check_left(strategy: &Adaptive, (requests, answers): (u32, u32), polls: u32) {
    // A retry that was sent is paid, and its success pays the cost back.
    let paid = if (requests, answers) == (2, 1) {
        COST
    } else {
        0
    };
    assert_eq!(strategy.quota().available(), 500 - paid, "after {polls}");
    check_tokens(strategy.send_rate(), strategy.clock(), requests, polls);
}
