//! Waiting for a turn to send: out of the way of requests whose turn has come.

use alloc::{boxed::Box, sync::Arc};
use core::{future::Future, pin::Pin, time::Duration};

use paceline::{RetryStrategy, SendPermit};
use tokio::time::{Instant, sleep};

use crate::Refused;

/// A wait that has a place in line. Boxed, as the place borrows from what it is a place of.
pub(crate) type InLine = Pin<Box<dyn Future<Output = Result<SendPermit, Refused>> + Send>>;

/// The longest sleep before a turn is looked at again: the rate may have risen meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Waits for a turn of `strategy`, until `deadline` at most. Of both at once it has come.
pub(crate) fn wait_with<S: RetryStrategy + ?Sized + 'static>(
    strategy: Arc<S>,
    deadline: Option<Instant>,
) -> InLine {
    Box::pin(async move {
        let mut turn = strategy.send_turn()?;
        loop {
            match turn.claim() {
                Ok(permit) => return Ok(permit),
                Err(wait) if left(deadline).is_some_and(|left| wait > left) => {
                    return Err(Refused::after(wait));
                }
                Err(wait) => sleep(wait.min(LOOK_AGAIN)).await,
            }
        }
    })
}

/// Returns the end of `span` from now, or `None` if it has none: then no clock is read.
pub(crate) fn by(span: Option<Duration>) -> Option<Instant> {
    span.and_then(|span| Instant::now().checked_add(span))
}

/// Returns what is left until `deadline`.
pub(crate) fn left(deadline: Option<Instant>) -> Option<Duration> {
    deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
}
