//! The one error of these layers.

use alloc::sync::Arc;
use core::{error::Error, fmt, time::Duration};

use paceline::{
    AcquireError,
    operation::{Stop, StopReason},
    set::SetError,
};

/// A layer ended a request, since its turn would not have come in time, or its deadline has passed.
///
/// `downcast_ref` finds it in a [`BoxError`](crate::BoxError).
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
    /// No token of a send rate would come in time.
    NotInTime(Duration),
    /// Several send rates refused.
    Set(SetError),
    /// The operation was stopped before another attempt.
    Stopped(Stop),
    /// An attempt under way was cut off at the deadline. Has the strategy's name.
    CutOff(Option<Arc<str>>),
    /// The service was not ready before the deadline. Has the strategy's name.
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
    /// rate has no name.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match &self.0 {
            Why::Stopped(stop) => stop.name(),
            Why::CutOff(name) | Why::NotReady(name) => name.as_deref(),
            Why::NotInTime(_) | Why::Set(_) => None,
        }
    }

    /// Returns `true` if the deadline of the request or of the layer has passed, or would have
    /// passed before the turn.
    #[must_use]
    pub const fn is_deadline(&self) -> bool {
        match &self.0 {
            Why::CutOff(_) | Why::NotReady(_) => true,
            Why::Stopped(stop) => matches!(stop.why(), StopReason::OutOfTime { .. }),
            Why::NotInTime(_) | Why::Set(_) => false,
        }
    }

    /// Returns the time until the request would have been sent, at the current rate. It is zero if
    /// the time was up.
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

    /// Returns why the operation was stopped. It is `None` if a send rate refused, the service was
    /// not ready, or an attempt was cut off.
    #[must_use]
    pub const fn stop(&self) -> Option<&Stop> {
        match &self.0 {
            Why::Stopped(stop) => Some(stop),
            _ => None,
        }
    }

    /// Returns which of several send rates refused a request, and why. It is `None` for another
    /// cause.
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
        // A request of one token always has a wait.
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
