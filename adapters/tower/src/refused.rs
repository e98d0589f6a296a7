//! The one error of these layers.

use core::{error::Error, fmt, time::Duration};

use paceline::{AcquireError, SendRefused};

/// A request was not sent: its turn would not have come in time.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    wait: Duration,
}

impl Refused {
    pub(crate) const fn after(wait: Duration) -> Self {
        Self { wait }
    }

    /// Returns the time until it would have been let go, at the rate of the moment. Zero if the time was up.
    #[must_use]
    pub const fn wait(&self) -> Duration {
        self.wait
    }
}

impl From<SendRefused> for Refused {
    fn from(refused: SendRefused) -> Self {
        Self::after(refused.wait)
    }
}

impl From<AcquireError> for Refused {
    fn from(error: AcquireError) -> Self {
        // One token is no weight that there is not.
        Self::after(error.wait().unwrap_or_default())
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wait = self.wait;
        write!(f, "not sent: the send rate asks for a wait of {wait:?}")
    }
}

impl Error for Refused {}
