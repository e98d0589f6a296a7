//! Bodies that can be sent only once.

use core::{error::Error, fmt};

use reqwest::StatusCode;

/// How a request is handled whose body is a stream, which can be sent only once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OneShotBody {
    /// It is sent; if it fails in a way that is worth a retry, the error is [`BodyNotRepeatable`].
    #[default]
    SendOnce,
    /// It is sent, and whatever comes of it is returned, as if there had been no retry left.
    ReturnAnswer,
    /// It is not sent: the error is [`BodyNotRepeatable`] at once.
    Refuse,
}

/// A request would have been sent again, and its body is a stream that can be read only once.
///
/// Found by [`downcast_ref`](reqwest_middleware::Error::Middleware) in the error of the request.
///
/// # Examples
///
/// ```
/// use paceline_reqwest::BodyNotRepeatable;
/// use reqwest_middleware::Error;
///
/// fn is_stream(error: &Error) -> bool {
///     matches!(error, Error::Middleware(inner) if inner.is::<BodyNotRepeatable>())
/// }
/// # assert!(!is_stream(&Error::middleware(std::fmt::Error)));
/// ```
#[derive(Debug)]
pub struct BodyNotRepeatable {
    /// `None` if it was not sent.
    sent: Option<Sent>,
}

#[derive(Debug)]
enum Sent {
    Answered(StatusCode),
    Failed(reqwest_middleware::Error),
}

impl BodyNotRepeatable {
    pub(crate) const fn not_sent() -> Self {
        Self { sent: None }
    }

    pub(crate) fn after(answer: reqwest_middleware::Result<reqwest::Response>) -> Self {
        let sent = match answer {
            Ok(response) => Sent::Answered(response.status()),
            Err(error) => Sent::Failed(error),
        };
        Self { sent: Some(sent) }
    }

    /// Returns `true` if the request was sent once.
    #[must_use]
    pub const fn was_sent(&self) -> bool {
        self.sent.is_some()
    }

    /// Returns the status of the answer, or `None` if there was none.
    #[must_use]
    pub const fn status(&self) -> Option<StatusCode> {
        match self.sent {
            Some(Sent::Answered(status)) => Some(status),
            _ => None,
        }
    }
}

impl fmt::Display for BodyNotRepeatable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.sent {
            None => f.write_str("the request was not sent"),
            Some(Sent::Answered(status)) => write!(f, "the request was answered {status}"),
            Some(Sent::Failed(_)) => f.write_str("the request failed"),
        }?;
        f.write_str(
            ", and cannot be sent again: its body is a stream; give it bytes to have it retried",
        )
    }
}

impl Error for BodyNotRepeatable {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.sent {
            Some(Sent::Failed(error)) => Some(error),
            _ => None,
        }
    }
}
