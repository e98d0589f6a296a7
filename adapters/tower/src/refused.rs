//! The one error of these layers.

use alloc::sync::Arc;
use core::{error::Error, fmt, time::Duration};

use paceline::{
    AcquireError,
    operation::{Stop, StopReason},
    set::SetError,
};

/// A layer ended a request: its turn would not have come in time, or its deadline has passed.
///
/// In a [`BoxError`](crate::BoxError), found by `downcast_ref`.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use paceline_tower::{BoxError, Refused};
///
/// fn come_back_in(error: &BoxError) -> Option<Duration> {
///     Some(error.downcast_ref::<Refused>()?.wait())
/// }
/// # assert_eq!(come_back_in(&"other".into()), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(Why);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Why {
    /// No token of a send rate in time.
    NotInTime(Duration),
    /// Several send rates refused.
    Set(SetError),
    /// The operation was stopped before another attempt.
    Stopped(Stop),
    /// An attempt under way was cut off at the deadline. With the name of the strategy.
    CutOff(Option<Arc<str>>),
    /// The service was not ready before the deadline. With the name of the strategy.
    NotReady(Option<Arc<str>>),
}

impl Refused {
    pub(crate) const fn cut_off(name: Option<Arc<str>>) -> Self {
        Self(Why::CutOff(name))
    }

    pub(crate) const fn not_ready(name: Option<Arc<str>>) -> Self {
        Self(Why::NotReady(name))
    }

    /// Returns the [name](paceline::RetryStrategy::name) of the strategy, or of the scope. A send
    /// rate has none.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match &self.0 {
            Why::Stopped(stop) => stop.name(),
            Why::CutOff(name) | Why::NotReady(name) => name.as_deref(),
            Why::NotInTime(_) | Why::Set(_) => None,
        }
    }

    /// Returns `true` if time was up: the deadline of the request or of the layer has passed, or
    /// would have before its turn.
    #[must_use]
    pub const fn is_deadline(&self) -> bool {
        match &self.0 {
            Why::CutOff(_) | Why::NotReady(_) => true,
            Why::Stopped(stop) => matches!(stop.why(), StopReason::OutOfTime { .. }),
            Why::NotInTime(_) | Why::Set(_) => false,
        }
    }

    /// Returns the time until it would have been let go, at the rate of the moment. Zero if the
    /// time was up.
    #[must_use]
    pub const fn wait(&self) -> Duration {
        match &self.0 {
            Why::NotInTime(wait) => *wait,
            Why::Set(error) => match error.wait() {
                Some(wait) => wait,
                None => Duration::ZERO,
            },
            Why::Stopped(stop) => stop.wait(),
            Why::CutOff(_) | Why::NotReady(_) => Duration::ZERO,
        }
    }

    /// Returns why the operation was stopped, `None` if it was not the operation that stopped: a
    /// send rate refused, the service was not ready, or an attempt was cut off.
    #[must_use]
    pub const fn stop(&self) -> Option<&Stop> {
        match &self.0 {
            Why::Stopped(stop) => Some(stop),
            _ => None,
        }
    }

    /// Returns what several send rates refused a request for, and which of them, `None` if it was
    /// not they that refused.
    #[must_use]
    pub const fn set(&self) -> Option<SetError> {
        match self.0 {
            Why::Set(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Stop> for Refused {
    fn from(stop: Stop) -> Self {
        Self(Why::Stopped(stop))
    }
}

impl From<AcquireError> for Refused {
    fn from(error: AcquireError) -> Self {
        // One token is no weight that there is not.
        Self(Why::NotInTime(error.wait().unwrap_or_default()))
    }
}

impl From<SetError> for Refused {
    fn from(error: SetError) -> Self {
        Self(Why::Set(error))
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Why::CutOff(Some(name)) | Why::NotReady(Some(name)) = &self.0 {
            write!(f, "{name}: ")?;
        }
        match &self.0 {
            Why::NotInTime(wait) => {
                write!(f, "not sent: the send rate asks for a wait of {wait:?}")
            }
            Why::Set(error) => write!(f, "not sent: {error}"),
            Why::Stopped(stop) => stop.fmt(f),
            Why::NotReady(_) => {
                f.write_str("not sent: the service was not ready before the deadline")
            }
            Why::CutOff(_) => f.write_str("cut off: the deadline has passed"),
        }
    }
}

impl Error for Refused {}
