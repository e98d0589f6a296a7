//! What a retry loop returns when it gives up.

use alloc::sync::Arc;
use core::{error::Error, fmt, time::Duration};

use crate::strategy::refusal::StopReason;

/// The end of an operation that did not succeed. It has the name of the strategy or scope, the
/// reason, and the number of attempts.
///
/// # Examples
///
/// ```
/// use paceline::{Adaptive, RetryStrategyExt, law::PacedSettings};
///
/// let settings = PacedSettings::fixed(1, std::time::Duration::from_secs(1)).unwrap();
/// let orders = Adaptive::builder().name("orders").paced(settings).fail_fast(true).build()?;
/// let send = || orders.operation().run(|_| Ok::<_, paceline::Failure>("sent"));
/// send().unwrap();
/// let stop = send().unwrap_err().stop().clone();
/// assert_eq!(stop.name(), Some("orders"));
/// assert!(stop.to_string().starts_with("orders: not sent: the send rate asks for a wait of"));
/// # Ok::<(), paceline::config::SettingsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    pub(super) name: Option<Arc<str>>,
    pub(super) reason: StopReason,
    pub(super) attempts: u32,
    pub(super) backoff: Duration,
    /// In nanoseconds. A `u64` keeps errors with a stop below 128 bytes.
    pub(super) delay: u64,
}

impl Stop {
    /// Returns the [name](crate::RetryStrategy::name) of the strategy, or of the scope.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns why there was no further attempt.
    #[must_use]
    pub const fn why(&self) -> StopReason {
        self.reason
    }

    /// Returns the attempts that were made.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Returns the delay that a retry would have had if the quota or the time had allowed it, or
    /// the wait that the service asked for with the last failure if that is longer. Else zero.
    #[must_use]
    pub const fn backoff(&self) -> Duration {
        self.backoff
    }

    /// Returns how long to sleep before the failure is returned. It is zero except for operations
    /// that are [long polling](crate::config::StrategyBuilder::long_polling).
    #[must_use]
    pub const fn delay(&self) -> Duration {
        Duration::from_nanos(self.delay)
    }

    /// Returns how long the next attempt would have had to wait: for a backoff, for a turn to send,
    /// or because the service asked for it. Zero if no attempt was to follow and the service asked
    /// for nothing.
    #[must_use]
    pub const fn wait(&self) -> Duration {
        match self.reason {
            StopReason::SendRefused { wait } | StopReason::OutOfTime { wait, .. } => wait,
            StopReason::RetryAfterTooLong { asked, .. } => asked,
            _ => self.backoff,
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            write!(f, "{name}: ")?;
        }
        match (self.reason, self.attempts) {
            (StopReason::MaxAttempts { .. }, 1) => f.write_str("the only attempt failed"),
            (StopReason::MaxAttempts { .. }, made) => write!(f, "all {made} attempts failed"),
            (reason, 0) => write!(f, "not sent: {reason}"),
            (reason, 1) => write!(f, "stopped after 1 attempt: {reason}"),
            (reason, made) => write!(f, "stopped after {made} attempts: {reason}"),
        }
    }
}

impl Error for Stop {}

/// The failure of an operation, and why it was not tried again.
///
/// The operation's own error is the [`source`](Error::source), and [`into_error`](Self::into_error)
/// returns it. If the operation's error implements `Error`, so does this type, and `?` turns it
/// into a `Box<dyn Error + Send + Sync>`.
///
/// # Examples
///
/// ```
/// use std::{error::Error, io};
/// use paceline::{Failure, RetryStrategyExt, Standard};
///
/// fn read() -> io::Result<u8> {
///     Err(io::ErrorKind::NotFound.into())
/// }
///
/// fn boxed() -> Result<u8, Box<dyn Error + Send + Sync>> {
///     Ok(Standard::new().run_with(|_| Failure::not_retryable(), |_| read())?)
/// }
///
/// fn its_own() -> io::Result<u8> {
///     let read = Standard::new().run_with(|_| Failure::not_retryable(), |_| read());
///     read.map_err(|stopped| stopped.into_error_or_else(io::Error::other))
/// }
///
/// let shown = "stopped after 1 attempt: the failure is not retryable";
/// assert_eq!(boxed().unwrap_err().to_string(), shown);
/// assert_eq!(its_own().unwrap_err().kind(), io::ErrorKind::NotFound);
/// ```
#[derive(Debug)]
pub struct RunError<E> {
    error: Option<E>,
    stop: Stop,
}

impl<E> RunError<E> {
    pub(super) const fn new(error: Option<E>, stop: Stop) -> Self {
        Self { error, stop }
    }

    /// Returns the [name](crate::RetryStrategy::name) of the strategy, or of the scope.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.stop.name()
    }

    /// Returns the error of the last attempt. `None` if no attempt was made, or if the attempt was
    /// cut off because its time was up.
    #[must_use]
    pub const fn error(&self) -> Option<&E> {
        self.error.as_ref()
    }

    /// Returns the error of the last attempt, or the stop if there is no error. Then no attempt was
    /// made, or the attempt was cut off.
    ///
    /// # Errors
    ///
    /// [`Stop`] if there is no error of the operation's own.
    pub fn into_error(self) -> Result<E, Stop> {
        self.error.ok_or(self.stop)
    }

    /// Returns the error of the last attempt, or what `otherwise` makes of the stop if there is no
    /// error.
    pub fn into_error_or_else(self, otherwise: impl FnOnce(Stop) -> E) -> E {
        self.error.unwrap_or_else(|| otherwise(self.stop))
    }

    /// Returns why the operation ended, and after how many attempts.
    #[must_use]
    pub const fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Returns why there was no further attempt.
    #[must_use]
    pub const fn why(&self) -> StopReason {
        self.stop.why()
    }

    /// Returns the attempts that were made.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.stop.attempts()
    }

    /// Returns how long a retry would have been delayed: see [`Stop::backoff`].
    #[must_use]
    pub const fn backoff(&self) -> Duration {
        self.stop.backoff()
    }

    /// Returns how long the next attempt would have had to wait: see [`Stop::wait`].
    ///
    /// A loop that goes on with other work can sleep this long.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{Failure, RetryStrategyExt, Standard};
    ///
    /// let strategy = Standard::builder().quota_capacity(0).build()?;
    /// let stopped = strategy.run(|_| Err::<(), _>(Failure::transient())).unwrap_err();
    /// std::thread::sleep(stopped.wait()); // the quota is gone: not at full speed to the next one
    /// # Ok::<(), paceline::config::SettingsError>(())
    /// ```
    #[must_use]
    pub const fn wait(&self) -> Duration {
        self.stop.wait()
    }
}

impl<E> fmt::Display for RunError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stop.fmt(f)
    }
}

impl<E: Error + 'static> Error for RunError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let error = self.error.as_ref()?;
        Some(error)
    }
}
