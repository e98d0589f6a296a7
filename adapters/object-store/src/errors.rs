//! The failures of stores' errors.

use object_store::Error;
use paceline::{
    Failure,
    classify::{Classifier, IoErrorClassifier, ServiceUnavailable},
};

/// The text before the status in `object_store`'s own errors, whose types are private: for a
/// request, and for a key in a batch of deletes of Azure.
const BEFORE_STATUS: [&str; 2] = ["status code: ", "(code: "];

/// Classifies the errors of `object_store`.
///
/// | error | failure |
/// |---|---|
/// | [`Error::Generic`] whose text has `SlowDown` or `ServerBusy` | throttling |
/// | … whose text has `status code: 429`, `503` or `509`, or `(code: 503)` and the like | throttling |
/// | … `status code: 408`, `500`, `502`, `504`, or `InternalError` | transient |
/// | … that was caused by an [`std::io::Error`] | as [`IoErrorClassifier`] says |
/// | any other | not retryable |
///
/// Errors contain no headers of an answer, so there is no `Retry-After`. Stores that retry
/// themselves return only the last error.
///
/// # Examples
///
/// ```
/// use object_store::Error;
/// use paceline::classify::Classifier;
/// use paceline_object_store::StoreErrors;
///
/// let source = "Server returned non-2xx status code: 429 Too Many Requests: ".into();
/// let error = Error::Generic { store: "GCS", source };
/// assert!(StoreErrors.classify(&error).unwrap().is_throttle());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreErrors;

impl StoreErrors {
    pub(crate) fn failure(error: &Error) -> Failure {
        let Error::Generic { source, .. } = error else {
            return Failure::not_retryable();
        };
        let text = source.to_string();
        let has = |code: &str| text.contains(code);
        if has("SlowDown") || has("ServerBusy") {
            return Failure::throttling();
        }
        if let Some(status) = status(&text) {
            let failure = Failure::from_http_status(status, ServiceUnavailable::Throttle);
            return failure;
        }
        if has("InternalError") {
            return Failure::transient();
        }
        let known = IoErrorClassifier.classify_causes(&**source);
        known.unwrap_or(Failure::not_retryable())
    }
}

impl Classifier<Error> for StoreErrors {
    fn classify(&self, error: &Error) -> Option<Failure> {
        Some(Self::failure(error))
    }
}

/// Returns the first status in `text`.
fn status(text: &str) -> Option<u16> {
    let mut found = BEFORE_STATUS
        .iter()
        .filter_map(|before| text.split_once(before));
    let (_, rest) = found.next()?;
    rest.get(..3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io::{self, ErrorKind};

    use paceline::{Execution, Fault};

    use super::*;

    fn generic(text: &str) -> Failure {
        let (store, source) = ("S3", text.into());
        StoreErrors::failure(&Error::Generic { store, source })
    }

    #[test]
    fn a_status_is_read_out_of_the_text() {
        let of = |status| {
            generic(&format!(
                "Error performing GET - Server returned non-2xx status code: {status} X"
            ))
        };
        let throttling = Failure::throttling();
        let expected = [
            (429, throttling.with_fault(Fault::Client)),
            (503, throttling.with_fault(Fault::Server)),
            (509, throttling.with_fault(Fault::Server)),
            (408, Failure::timeout().with_fault(Fault::Client)),
            (500, Failure::transient()),
            (502, Failure::transient()),
            (504, Failure::transient()),
            (400, Failure::not_retryable().with_fault(Fault::Client)),
            (416, Failure::not_retryable().with_fault(Fault::Client)),
        ];
        for (status, failure) in expected {
            assert_eq!(of(status), failure, "{status}");
        }
    }

    #[test]
    fn a_code_is_found_wherever_it_stands() {
        assert_eq!(
            generic("Server returned error response: <Code>SlowDown</Code>"),
            Failure::throttling()
        );
        assert_eq!(
            generic("status code: 500: ServerBusy"),
            Failure::throttling()
        );
        assert_eq!(generic("<Code>InternalError</Code>"), Failure::transient());
        let key = "Bulk delete request failed for key a: Busy (code: 503)";
        assert!(generic(key).is_throttle());
        for nothing in [
            "",
            "status code: ",
            "status code: 42",
            "status code: ???",
            "status code: 4ü",
            "who knows",
        ] {
            assert_eq!(generic(nothing), Failure::not_retryable(), "{nothing}");
        }
    }

    #[test]
    fn an_error_of_the_system_is_looked_for() {
        let of = |kind| {
            let source = Box::new(io::Error::from(kind));
            StoreErrors::failure(&Error::Generic {
                store: "S3",
                source,
            })
        };
        assert_eq!(of(ErrorKind::ConnectionReset), Failure::transient());
        assert_eq!(
            of(ErrorKind::ConnectionRefused).execution(),
            Execution::NotSent
        );
        assert_eq!(of(ErrorKind::Other), Failure::not_retryable());
    }

    #[test]
    fn what_the_store_names_is_final() {
        let (path, source) = (String::new(), "status code: 503".into());
        assert_eq!(
            StoreErrors::failure(&Error::NotFound { path, source }),
            Failure::not_retryable()
        );
        let source = "status code: 503".into();
        assert_eq!(
            StoreErrors::failure(&Error::NotSupported { source }),
            Failure::not_retryable()
        );
    }
}
