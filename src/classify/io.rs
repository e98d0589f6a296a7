//! The errors of the standard library's input and output.

use core::error::Error;
use std::io::{self, ErrorKind};

use super::Classifier;
use crate::{Execution, Failure};

/// The most causes that are looked through: an error may be its own cause.
const DEEPEST: usize = 16;

/// Classifies [`std::io::Error`] by its kind.
///
/// | kinds | failure | the work |
/// |---|---|---|
/// | `ConnectionRefused`, `AddrInUse`, `AddrNotAvailable` | transient | not sent: there was no connection |
/// | `ConnectionReset`, `ConnectionAborted`, `NotConnected`, `BrokenPipe`, `UnexpectedEof`, `HostUnreachable`, `NetworkUnreachable`, `NetworkDown`, `Interrupted` | transient | maybe done |
/// | `TimedOut`, and `WouldBlock`, which a socket's time limit gives on Unix | timeout | maybe done |
/// | `InvalidInput`, `PermissionDenied`, `Unsupported` | not retryable | maybe done |
/// | any other | unknown | |
///
/// An error made from another is looked into: if that is or was caused by an [`io::Error`], its
/// kind decides where the outer one says nothing.
///
/// # Examples
///
/// ```
/// use std::io;
/// use paceline::{Classifier, Execution, Failure, IoErrors};
///
/// let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
/// assert_eq!(IoErrors.classify(&refused).unwrap().execution(), Execution::NotSent);
/// let wrapped = io::Error::other(io::Error::from(io::ErrorKind::TimedOut));
/// assert_eq!(IoErrors.classify(&wrapped), Some(Failure::timeout()));
/// assert_eq!(IoErrors.classify(&io::Error::other("who knows")), None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct IoErrors;

impl IoErrors {
    /// Classifies an error of any type by the first [`io::Error`] that it is or was caused by, and whose
    /// kind is known.
    ///
    /// For clients whose errors wrap those of the system. Sixteen causes are looked through.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{error::Error, fmt, io};
    /// use paceline::{Failure, IoErrors};
    ///
    /// #[derive(Debug)]
    /// struct SendError(io::Error);
    ///
    /// impl fmt::Display for SendError {
    ///     fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str("not sent") }
    /// }
    ///
    /// impl Error for SendError {
    ///     fn source(&self) -> Option<&(dyn Error + 'static)> { Some(&self.0) }
    /// }
    ///
    /// let error = SendError(io::ErrorKind::BrokenPipe.into());
    /// assert_eq!(IoErrors.classify_causes(&error), Some(Failure::transient()));
    /// ```
    #[must_use]
    pub fn classify_causes(&self, error: &(dyn Error + 'static)) -> Option<Failure> {
        let mut next = Some(error);
        for _ in 0..DEEPEST {
            let error = next?;
            next = match error.downcast_ref::<io::Error>() {
                Some(error) => match by_kind(error.kind()) {
                    Some(failure) => return Some(failure),
                    // Its source is that of the error inside, which would be left out.
                    None => error.get_ref().map(|inner| inner as &(dyn Error + 'static)),
                },
                None => error.source(),
            };
        }
        None
    }
}

impl Classifier<io::Error> for IoErrors {
    fn classify(&self, error: &io::Error) -> Option<Failure> {
        self.classify_causes(error)
    }
}

impl Classifier<dyn Error + 'static> for IoErrors {
    fn classify(&self, error: &(dyn Error + 'static)) -> Option<Failure> {
        self.classify_causes(error)
    }
}

const fn by_kind(kind: ErrorKind) -> Option<Failure> {
    match kind {
        ErrorKind::ConnectionRefused | ErrorKind::AddrInUse | ErrorKind::AddrNotAvailable => {
            Some(Failure::transient().with_execution(Execution::NotSent))
        }
        // Routes are lost under connections too, so these three say nothing of what was sent before.
        ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable
        | ErrorKind::NetworkDown
        | ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::NotConnected
        | ErrorKind::BrokenPipe
        | ErrorKind::UnexpectedEof
        | ErrorKind::Interrupted => Some(Failure::transient()),
        ErrorKind::TimedOut | ErrorKind::WouldBlock => Some(Failure::timeout()),
        ErrorKind::InvalidInput | ErrorKind::PermissionDenied | ErrorKind::Unsupported => {
            Some(Failure::not_retryable())
        }
        _ => None,
    }
}
