//! An operation that has to wait, on its way from the interceptor to the HTTP client and back.

use alloc::sync::Arc;
use core::{
    error::Error,
    fmt,
    future::{Future as _, poll_fn},
    pin::pin,
    task::{Poll, ready},
};
use std::sync::{Mutex, MutexGuard};

use aws_smithy_async::rt::sleep::{AsyncSleep, SharedAsyncSleep, Sleep};
use aws_smithy_runtime_api::client::result::ConnectorError;
use paceline::{
    RetryStrategy,
    operation::{Attempts, Next},
    wait::Rest,
};

/// An operation of a client.
pub(crate) type Pending = Attempts<Arc<dyn RetryStrategy>>;

/// The operation that the HTTP client waits for.
///
/// Travels as an extension of the request. The mutex is only tried, and never waited for. It is
/// contended only if the same request is sent twice.
#[derive(Clone, Debug)]
pub(crate) struct Awaited(Arc<Mutex<Option<Pending>>>);

impl Awaited {
    pub(crate) fn new(attempts: Pending) -> Self {
        Self(Arc::new(Mutex::new(Some(attempts))))
    }

    /// Takes the operation back, at the end of the attempt.
    pub(crate) fn take(&self) -> Option<Pending> {
        self.lock()?.take()
    }

    fn lock(&self) -> Option<MutexGuard<'_, Option<Pending>>> {
        self.0.try_lock().ok()
    }

    /// Waits until the attempt may be sent. If the wait is dropped before, the place goes back with
    /// the operation.
    pub(crate) async fn wait(self, sleep: Option<SharedAsyncSleep>) -> Result<(), ConnectorError> {
        let mut timer: Option<(Rest, Sleep)> = None;
        poll_fn(|cx| {
            loop {
                let rest = {
                    let mut lent = self.lock();
                    let Some(attempts) = lent.as_mut().and_then(|lent| lent.as_mut()) else {
                        return Poll::Ready(Ok(())); // sent twice by a wrapper in between
                    };
                    if attempts.is_sending() {
                        return Poll::Ready(Ok(()));
                    }
                    let clock = Arc::clone(attempts.strategy());
                    match attempts.next(clock.clock(), Some(cx.waker())) {
                        Next::Send(_) => return Poll::Ready(Ok(())),
                        Next::Sleep(rest) | Next::InLine(rest) => rest,
                        Next::Stop(stop) => return Poll::Ready(Err(failed(stop))),
                        _ => return Poll::Ready(Err(failed(NoSleep))),
                    }
                };
                let Some(sleep) = &sleep else {
                    return Poll::Ready(Err(failed(NoSleep)));
                };
                let armed = timer
                    .take()
                    .filter(|(armed, _)| armed.until() == rest.until());
                let (_, timer) = timer.insert(match armed {
                    Some(armed) => armed,
                    None => (rest, sleep.sleep(rest.span())),
                });
                ready!(pin!(timer).poll(cx));
            }
        })
        .await
    }
}

fn failed(error: impl Error + Send + Sync + 'static) -> ConnectorError {
    ConnectorError::other(error.into(), None)
}

/// A request had to wait for its turn, but the client has no way to sleep.
#[derive(Debug)]
struct NoSleep;

impl fmt::Display for NoSleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the send rate asks for a wait, and the client has no `sleep_impl`")
    }
}

impl Error for NoSleep {}
