//! The errors of the standard library's input and output.

use core::{
    error::Error,
    fmt::{self, Write},
    ops::RangeInclusive,
};
use std::io::{self, ErrorKind};

use super::Classifier;
use crate::{Execution, Failure};

/// The most errors of a chain that are examined. An error may be its own cause.
const DEEPEST: usize = 16;

/// Classifies [`std::io::Error`] by its kind.
///
/// | kinds | failure | the work |
/// |---|---|---|
/// | `ConnectionRefused`, `AddrInUse`, `AddrNotAvailable` | transient | not sent: there was no connection |
/// | `ConnectionReset`, `ConnectionAborted`, `NotConnected`, `BrokenPipe`, `UnexpectedEof`, `HostUnreachable`, `NetworkUnreachable`, `NetworkDown`, `Interrupted` | transient | maybe done |
/// | `TimedOut`, and `WouldBlock`, which a socket's time limit gives on Unix | timeout | maybe done |
/// | `InvalidInput`, `PermissionDenied`, `Unsupported` | not retryable | maybe done |
/// | a name that does not resolve | transient | not sent |
/// | any other | unknown | |
///
/// The standard library has no kind for names that do not resolve. This classifier recognizes such
/// a name by the text of the standard library or of hyper's connector, and on Windows by the
/// system's code. The SDKs retry it, as they retry every failure to connect (botocore's
/// `EndpointConnectionError`, smithy-rs's connector errors).
///
/// If an [`io::Error`] has an unknown kind, the error inside it is examined, and then the causes.
/// The first `io::Error` of a known kind decides.
///
/// # Examples
///
/// ```
/// use std::io;
/// use paceline::{Execution, Failure, classify::{Classifier, IoErrorClassifier}};
///
/// let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
/// assert_eq!(IoErrorClassifier.classify(&refused).unwrap().execution(), Execution::NotSent);
/// let wrapped = io::Error::other(io::Error::from(io::ErrorKind::TimedOut));
/// assert_eq!(IoErrorClassifier.classify(&wrapped), Some(Failure::timeout()));
/// assert_eq!(IoErrorClassifier.classify(&io::Error::other("who knows")), None);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct IoErrorClassifier;

impl IoErrorClassifier {
    /// Classifies an error of any type by the first [`io::Error`] of a known kind in its chain of
    /// causes.
    ///
    /// It is for clients whose errors wrap system errors. At most sixteen errors of the chain are
    /// examined.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{error::Error, fmt, io};
    /// use paceline::{Failure, classify::IoErrorClassifier};
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
    /// assert_eq!(IoErrorClassifier.classify_causes(&error), Some(Failure::transient()));
    /// ```
    #[must_use]
    pub fn classify_causes(&self, error: &(dyn Error + 'static)) -> Option<Failure> {
        let mut next = Some(error);
        for _ in 0..DEEPEST {
            let error = next?;
            next = match error.downcast_ref::<io::Error>() {
                Some(error) => match by_kind(error.kind()).or_else(|| lookup(error)) {
                    Some(failure) => return Some(failure),
                    // `source` would skip the error inside and return its cause.
                    None => error.get_ref().map(|inner| inner as &(dyn Error + 'static)),
                },
                None if says(error, HYPER_LOOKUP) => return Some(NOT_CONNECTED),
                None => error.source(),
            };
        }
        None
    }
}

impl Classifier<io::Error> for IoErrorClassifier {
    fn classify(&self, error: &io::Error) -> Option<Failure> {
        self.classify_causes(error)
    }
}

impl Classifier<dyn Error + 'static> for IoErrorClassifier {
    fn classify(&self, error: &(dyn Error + 'static)) -> Option<Failure> {
        self.classify_causes(error)
    }
}

/// How hyper-util's connector reports a failed lookup, with any resolver.
const HYPER_LOOKUP: &str = "dns error";
/// How the standard library's message begins when `getaddrinfo` fails.
const STD_LOOKUP: &str = "failed to lookup address information";
/// `WSAHOST_NOT_FOUND`, `WSATRY_AGAIN`, `WSANO_RECOVERY` and `WSANO_DATA`.
const WINDOWS_LOOKUP: RangeInclusive<i32> = 11_001..=11_004;

const NOT_CONNECTED: Failure = Failure::transient().with_execution(Execution::NotSent);

/// Returns the failure if a name did not resolve, or `None` for another error.
fn lookup(error: &io::Error) -> Option<Failure> {
    let by_code = |code| cfg!(windows) && WINDOWS_LOOKUP.contains(&code);
    let is_lookup = match error.raw_os_error() {
        Some(code) => by_code(code),
        None => says(error, STD_LOOKUP),
    };
    is_lookup.then_some(NOT_CONNECTED)
}

/// Returns `true` if an error's message begins with `text`.
fn says(error: &dyn Error, text: &str) -> bool {
    let mut left = Left(text);
    // `write!` fails if the texts differ, or if the error's `Display` fails.
    let _ = write!(left, "{error}");
    left.0.is_empty()
}

/// The rest of the text that the message must still contain.
struct Left<'a>(&'a str);

impl Write for Left<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.0 = match self.0.strip_prefix(part) {
            Some(left) => left,
            None if part.starts_with(self.0) => "",
            None => return Err(fmt::Error),
        };
        Ok(())
    }
}

const fn by_kind(kind: ErrorKind) -> Option<Failure> {
    match kind {
        ErrorKind::ConnectionRefused | ErrorKind::AddrInUse | ErrorKind::AddrNotAvailable => {
            Some(NOT_CONNECTED)
        }
        // A route can be lost while a connection is open, so a request may have been sent before
        // each of the first three.
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
