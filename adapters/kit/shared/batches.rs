//! Batches of deletes: how many keys a request has, and how many of them its answer refuses. The
//! adapters have links to this file in their `src`.
//!
//! - S3, [DeleteObjects](https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html):
//!   a success whose XML has an `<Error>` for each key that was refused.
//! - Azure,
//!   [Blob Batch](https://learn.microsoft.com/en-us/rest/api/storageservices/blob-batch): a success
//!   in parts, each of which is an answer with a status.

use paceline::{
    Failure, RetrySafety,
    classify::{BodyBeginning, BodyEnd, Classifier, HttpResponseParts, ServiceUnavailable},
};

/// The most bytes that are read of an answer, except that the last piece is read whole. In a longer
/// answer no key counts as refused.
const LONGEST: usize = 1 << 20;

type Answers = dyn for<'a> Classifier<HttpResponseParts<'a>> + Send + Sync;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    S3,
    Azure,
}

/// A request that deletes several objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    kind: Kind,
    /// How many objects there are, at least 1.
    pub(crate) keys: u32,
}

impl Batch {
    /// Returns the batch of a request, or `None` if the request is no batch.
    ///
    /// A body that is not in memory counts as one key.
    pub(crate) fn of(method: &str, query: Option<&str>, body: &[u8]) -> Option<Self> {
        let mut members = query.filter(|_| method == "POST")?.split('&');
        // A key contains neither mark, because keys escape `<` and blanks.
        let (kind, key) = members.find_map(|member| match member {
            "delete" | "delete=" => Some((Kind::S3, &b"<Key>"[..])),
            "comp=batch" => Some((Kind::Azure, &b" HTTP/1.1\r\n"[..])),
            _ => None,
        })?;
        let keys = u32::try_from(from_each(body, key).count());
        let keys = keys.unwrap_or(u32::MAX).max(1);
        Some(Self { kind, keys })
    }

    /// Returns the failure of a success with this body. `None` if, by the body, no key was
    /// throttled.
    ///
    /// If only a part was throttled, the request is not sent again, since its other keys are
    /// deleted already.
    pub(crate) fn classify<E>(
        self,
        answers: &Answers,
        answer: HttpResponseParts<'_>,
        beginning: &BodyBeginning<E>,
    ) -> Option<Failure> {
        if !matches!(beginning.end, BodyEnd::Whole) {
            return None;
        }
        let refused = match self.kind {
            Kind::S3 => refused_by_s3(answers, answer, &beginning.bytes),
            Kind::Azure => refused_by_azure(&beginning.bytes),
        };
        let refused = u32::try_from(refused?).unwrap_or(u32::MAX);
        let failure = Failure::partly_throttled(refused, self.keys);
        match (refused, failure.part()) {
            (0, _) => None,
            (_, None) => Some(failure),
            (_, Some(_)) => Some(failure.with_retry_safety(RetrySafety::No)),
        }
    }
}

/// Returns `true` if there is more of an answer to read, and the answer is not too long.
pub(crate) fn wants_more<E>(beginning: &BodyBeginning<E>) -> bool {
    matches!(beginning.end, BodyEnd::Long) && beginning.bytes.len() < LONGEST
}

/// Counts the keys that are throttled, or returns `None` if the body ends too early.
fn refused_by_s3(answers: &Answers, answer: HttpResponseParts<'_>, body: &[u8]) -> Option<usize> {
    body.trim_ascii_end().strip_suffix(b"</DeleteResult>")?;
    let refused = from_each(body, b"<Error>").filter(|from| {
        let end = from.windows(8).position(|window| window == b"</Error>");
        let error = end.and_then(|end| from.get(..end)).unwrap_or_default();
        let failure = answers.classify(&answer.with_refusal(error));
        failure.is_some_and(|failure| failure.is_throttle())
    });
    Some(refused.count())
}

/// Counts the parts that are throttled, or returns `None` if the body ends too early.
fn refused_by_azure(body: &[u8]) -> Option<usize> {
    let body = body.trim_ascii();
    let delimiter = body.split(|byte| *byte == b'\n').next()?.trim_ascii_end();
    body.strip_suffix(b"--")?.strip_suffix(delimiter)?;
    let refused = from_each(body, b"\nHTTP/1.1 ").filter(|part| {
        let status = part
            .get(10..13)
            .and_then(|status| core::str::from_utf8(status).ok());
        let status = status.and_then(|status| status.parse().ok());
        let failure =
            status.map(|status| Failure::from_http_status(status, ServiceUnavailable::Throttle));
        failure.is_some_and(|failure| failure.is_throttle())
    });
    Some(refused.count())
}

/// Returns the rest of `text` from each occurrence of `mark`.
fn from_each<'a>(text: &'a [u8], mark: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let windows = text.windows(mark.len()).enumerate();
    windows.filter_map(move |(at, window)| text.get(at..).filter(|_| window == mark))
}

#[cfg(test)]
mod tests {
    use paceline::{Part, classify::RefusalClassifier};

    use super::*;

    const S3: &[u8] = b"<Delete><Object><Key>a</Key></Object><Object><Key>b</Key></Object>\
        <Object><Key>c</Key></Object></Delete>";
    const SOME: &str = "<DeleteResult><Deleted><Key>a</Key></Deleted>\
        <Error><Key>b</Key><Code>SlowDown</Code><Message>later</Message></Error>\
        <Error><Key>c</Key><Code>AccessDenied</Code></Error></DeleteResult>\n";
    const AZURE: &[u8] =
        b"--b\r\nContent-Type: application/http\r\n\r\nDELETE /c/a HTTP/1.1\r\n\r\n\
        --b\r\nContent-Type: application/http\r\n\r\nDELETE /c/b HTTP/1.1\r\n\r\n--b--\r\n";
    const PARTS: &str = "--r\r\nContent-ID: 0\r\n\r\nHTTP/1.1 202 Accepted\r\n\r\n\
        --r\r\nContent-ID: 1\r\n\r\nHTTP/1.1 503 The server is busy.\r\n\r\n--r--\r\n";

    fn said(batch: Option<Batch>, body: &str, end: BodyEnd<()>) -> Option<Failure> {
        let bytes = body.as_bytes().to_vec();
        let response = http::Response::new(());
        let answer = HttpResponseParts::of(&response);
        let beginning = BodyBeginning { bytes, end };
        batch?.classify(&RefusalClassifier::new(), answer, &beginning)
    }

    fn s3() -> Option<Batch> {
        Batch::of("POST", Some("delete="), S3)
    }

    fn azure() -> Option<Batch> {
        Batch::of("POST", Some("restype=container&comp=batch"), AZURE)
    }

    #[test]
    fn a_batch_has_so_many_keys() {
        assert_eq!(s3().map(|batch| batch.keys), Some(3));
        assert_eq!(azure().map(|batch| batch.keys), Some(2));
        let unread = Batch::of("POST", Some("x-id=1&delete"), b"");
        assert_eq!(unread.map(|batch| batch.keys), Some(1));
        for (method, query) in [
            ("GET", Some("delete")),
            ("POST", None),
            ("POST", Some("deleted")),
        ] {
            assert_eq!(Batch::of(method, query, S3), None, "{method} {query:?}");
        }
    }

    #[test]
    fn a_part_is_what_was_throttled_and_is_not_sent_again_as_it_is() {
        for (batch, body, part) in [
            (s3(), SOME, Part::new(1, 3)),
            (azure(), PARTS, Part::new(1, 2)),
        ] {
            let failure = said(batch, body, BodyEnd::Whole).expect("a part was throttled");
            assert_eq!(failure.part(), part);
            assert_eq!(failure.retry_safety(), RetrySafety::No);
        }
        let all = SOME
            .replace("AccessDenied", "SlowDown")
            .replace("Deleted", "Error");
        let all = all.replace("a</Key>", "a</Key><Code>SlowDown</Code>");
        let failure = said(s3(), &all, BodyEnd::Whole).expect("all were throttled");
        assert_eq!(failure, Failure::throttling());
    }

    #[test]
    fn a_body_that_is_cut_or_something_else_says_nothing() {
        for (batch, body) in [(s3(), SOME), (azure(), PARTS)] {
            for end in 0..body.trim_end().len() {
                let cut = body.get(..end).unwrap_or_default();
                assert_eq!(said(batch, cut, BodyEnd::Whole), None, "{cut}");
            }
            for end in [BodyEnd::Late, BodyEnd::Long, BodyEnd::Failed(())] {
                assert_eq!(said(batch, body, end), None);
            }
            for other in [
                "",
                "--",
                "ok",
                "{\"error\": \"SlowDown\"}",
                "<html>SlowDown</html>",
            ] {
                assert_eq!(said(batch, other, BodyEnd::Whole), None, "{other}");
            }
        }
    }
}
