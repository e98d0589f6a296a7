//! The few pieces of S3's protocol that a copy needs, as both sides write and read them.

use hyper::StatusCode;

/// The header that makes a PUT a copy; its value is the path of the source.
pub(crate) const COPY_SOURCE: &str = "x-amz-copy-source";

/// The header in which a client tells which attempt of how many this is.
pub(crate) const ATTEMPT: &str = "amz-sdk-request";

/// The error code of a refusal for going too fast.
pub(crate) const SLOW_DOWN: &str = "SlowDown";

/// An error that the service answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServiceError {
    SlowDown,
    NoSuchKey,
    MethodNotAllowed,
}

impl ServiceError {
    /// Returns the status that S3 gives this error.
    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::SlowDown => StatusCode::SERVICE_UNAVAILABLE,
            Self::NoSuchKey => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        }
    }

    /// Returns the XML body of this error.
    pub(crate) fn body(self) -> String {
        let code = match self {
            Self::SlowDown => SLOW_DOWN,
            Self::NoSuchKey => "NoSuchKey",
            Self::MethodNotAllowed => "MethodNotAllowed",
        };
        format!("<Error><Code>{code}</Code></Error>")
    }
}

/// The body of a successful copy.
pub(crate) const COPIED: &str = "<CopyObjectResult></CopyObjectResult>";

/// Returns the error code in `body`, or `None` if it holds no error.
pub(crate) fn error_code(body: &[u8]) -> Option<&str> {
    let body = core::str::from_utf8(body).ok()?;
    let (_, code) = body.split_once("<Error><Code>")?;
    Some(code.split_once("</Code>")?.0)
}

#[cfg(test)]
mod tests {
    use super::{COPIED, ServiceError, error_code};

    #[test]
    fn the_code_of_an_error_is_read_back_from_its_body() {
        let body = ServiceError::SlowDown.body();
        assert_eq!(error_code(body.as_bytes()), Some("SlowDown"));
    }

    #[test]
    fn a_body_without_an_error_has_no_code() {
        assert_eq!(error_code(COPIED.as_bytes()), None);
        assert_eq!(error_code(b"<Code>SlowDown</Code>"), None);
        assert_eq!(error_code(b"<Error><Code>SlowDown"), None);
        assert_eq!(error_code(&[0xff]), None);
    }
}
