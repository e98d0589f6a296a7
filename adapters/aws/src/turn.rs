//! A turn to send that has not come yet, on its way from the interceptor to the HTTP client.

use alloc::sync::Arc;
use core::{error::Error, fmt, time::Duration};
use std::sync::OnceLock;

use aws_smithy_async::rt::sleep::{AsyncSleep, SharedAsyncSleep};
use aws_smithy_runtime_api::client::result::ConnectorError;
use paceline::{RetryStrategy, SendPermit, SendRefused};

/// The longest sleep before a turn is looked at again: the rate may have risen meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The wait that the HTTP client is asked for, and the place for its answer.
///
/// Travels as an extension of the request. The answer is written once, by the only request that carries it, and read
/// after that request has ended.
#[derive(Clone, Debug)]
pub(crate) struct Awaited(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    strategy: Arc<dyn RetryStrategy>,
    /// To be slept before the turn is asked for: no place is held meanwhile.
    delay: Duration,
    permit: OnceLock<SendPermit>,
}

impl Awaited {
    pub(crate) fn new(strategy: Arc<dyn RetryStrategy>, delay: Duration) -> Self {
        Self(Arc::new(Inner {
            strategy,
            delay,
            permit: OnceLock::new(),
        }))
    }

    /// Returns the permit that the HTTP client sent with, or nothing if it did not send.
    pub(crate) fn permit(&self) -> Option<SendPermit> {
        self.0.permit.get().copied()
    }

    /// Waits for the turn. Dropped before that, it gives the place back.
    pub(crate) async fn wait(self, sleep: Option<SharedAsyncSleep>) -> Result<(), ConnectorError> {
        let pause = async |span| match &sleep {
            Some(sleep) => {
                sleep.sleep(span).await;
                Ok(())
            }
            None => Err(NoSleep.into_error()),
        };
        if !self.0.delay.is_zero() {
            pause(self.0.delay).await?;
        }
        let mut turn = self.0.strategy.send_turn().map_err(refused)?;
        let permit = loop {
            match turn.claim() {
                Ok(permit) => break permit,
                Err(wait) => pause(wait.min(LOOK_AGAIN)).await?,
            }
        };
        // The first one stays, should a wrapper in between have sent the request twice.
        self.0.permit.get_or_init(|| permit);
        Ok(())
    }
}

fn refused(refused: SendRefused) -> ConnectorError {
    ConnectorError::other(refused.into(), None)
}

/// A turn was to be waited for, and the client has no way to sleep.
#[derive(Debug)]
struct NoSleep;

impl NoSleep {
    fn into_error(self) -> ConnectorError {
        ConnectorError::other(self.into(), None)
    }
}

impl fmt::Display for NoSleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the send rate asks for a wait, and the client has no `sleep_impl`")
    }
}

impl Error for NoSleep {}
