//! The error code in the body of an answer of AWS.

mod xml;

use super::json;

/// The JSON members that may hold the code. The first of them counts.
const KEYS: [&[u8]; 3] = [b"__type", b"code", b"Code"];
/// The longest text that counts as a code, in bytes.
const LONGEST: usize = 128;

/// Returns the error code in the body of an answer of AWS, or `None` if there is none.
///
/// | body | code |
/// |---|---|
/// | XML | the text of `Error/Code`, `ErrorResponse/Error/Code` or `Response/Errors/Error/Code`, from the root |
/// | JSON | of the outermost object the string `__type`, else `code`, else `Code`, without what stands before `#` and after `:` |
///
/// A code is up to 128 letters, digits, `.`, `_` and `-`. The search is one pass and allocates
/// nothing. XML with a document type gives `None`, and so does JSON that ends too early.
///
/// A stored object may look like an error. Pass a body of status 200 only if it may report an
/// error, as for S3's `CopyObject` and `CompleteMultipartUpload`.
///
/// # Examples
///
/// ```
/// use paceline::classify::aws_error_code;
///
/// let body = b"<?xml version=\"1.0\"?><Error><Code>SlowDown</Code></Error>";
/// assert_eq!(aws_error_code(body), Some("SlowDown"));
/// let body = br#"{"__type": "com.amazon.coral.service#ThrottlingException"}"#;
/// assert_eq!(aws_error_code(body), Some("ThrottlingException"));
/// assert_eq!(aws_error_code(b"<ListBucketResult/>"), None);
/// ```
#[must_use]
pub fn aws_error_code(body: &[u8]) -> Option<&str> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let body = body.trim_ascii_start();
    match body.first()? {
        b'<' => xml::error_code(body),
        b'{' => json_code(body),
        _ => None,
    }
}

/// Returns the error code in a JSON object.
fn json_code(body: &[u8]) -> Option<&str> {
    let mut codes = [None; KEYS.len()];
    let mut members = json::members(body);
    for member in members.by_ref().filter(|member| member.depth == 1) {
        let rank = KEYS.iter().position(|key| *key == member.name);
        if let (Some(rank), true) = (rank, member.is_text) {
            codes[rank] = codes[rank].or_else(|| bare_code(member.value));
        }
    }
    codes
        .into_iter()
        .flatten()
        .next()
        .filter(|_| members.depth == 0)
}

/// Returns the code in `text`, without a namespace before `#` and a link after `:`.
pub(super) fn bare_code(text: &[u8]) -> Option<&str> {
    let text = text.split(|byte| *byte == b':').next()?;
    let text = text.rsplit(|byte| *byte == b'#').next()?.trim_ascii();
    let is_code = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    let fits = (1..=LONGEST).contains(&text.len()) && text.iter().all(is_code);
    core::str::from_utf8(text).ok().filter(|_| fits)
}
