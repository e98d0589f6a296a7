//! Whether a request may be sent twice, by its method, its conditions and its key.

use http::{HeaderMap, HeaderValue, Method, Request};

use crate::Idempotency;

/// Headers whose value lets a service detect a repetition.
const KEYS: [&str; 3] = [
    "idempotency-key",
    "x-idempotency-key",
    "repeatability-request-id",
];

/// The methods that the HTTP Method Registry (<https://www.iana.org/assignments/http-methods>)
/// lists as safe, besides those of RFC 9110.
const SAFE: &str = "PRI PROPFIND QUERY REPORT SEARCH";

/// The methods that the registry lists as idempotent and not as safe, besides those of RFC 9110.
const IDEMPOTENT: &str = "ACL BASELINE-CONTROL BIND CHECKIN CHECKOUT COPY LABEL LINK MERGE \
    MKACTIVITY MKCALENDAR MKCOL MKREDIRECTREF MKWORKSPACE MOVE ORDERPATCH PROPPATCH REBIND UNBIND \
    UNCHECKOUT UNLINK UNLOCK UPDATE UPDATEREDIRECTREF VERSION-CONTROL";

impl Idempotency {
    /// Returns whether `request` may be carried out twice.
    ///
    /// | request | |
    /// |---|---|
    /// | carries a key by which the service detects a repetition | may |
    /// | has a safe method: GET, HEAD, PROPFIND | may |
    /// | has another idempotent method and [no condition](is_conditional): PUT, DELETE, MOVE | may |
    /// | any other: POST, PATCH, LOCK, `PUT` with `If-None-Match`, unknown methods | may not |
    ///
    /// The methods are those of the [HTTP Method
    /// Registry](https://www.iana.org/assignments/http-methods). A key is a header
    /// `Idempotency-Key`, `X-Idempotency-Key` or `Repeatability-Request-Id` with a value that is
    /// not empty. A key helps only if every attempt sends the same key.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "http")] {
    /// use http::Request;
    /// use paceline::Idempotency;
    ///
    /// let order = Request::post("/orders").body("one of these").unwrap();
    /// assert_eq!(Idempotency::of_request(&order), Idempotency::NotIdempotent);
    /// let order = Request::post("/orders").header("idempotency-key", "k-17").body("").unwrap();
    /// assert_eq!(Idempotency::of_request(&order), Idempotency::Idempotent);
    /// let new = Request::put("/orders/17").header("if-none-match", "*").body("").unwrap();
    /// assert_eq!(Idempotency::of_request(&new), Idempotency::NotIdempotent);
    /// # }
    /// ```
    #[must_use]
    pub fn of_request<B>(request: &Request<B>) -> Self {
        Self::of_parts(request.method(), request.uri().query(), request.headers())
    }

    /// Does the same for a request of any client. `query` is the query of its URL.
    #[must_use]
    pub fn of_parts(method: &Method, query: Option<&str>, headers: &HeaderMap) -> Self {
        let is_key = |value: &HeaderValue| !value.as_bytes().trim_ascii().is_empty();
        let has_key = |name| headers.get_all(name).iter().any(is_key);
        let is_in = |methods: &str| methods.split(' ').any(|name| name == method.as_str());
        let is_idempotent = || method.is_idempotent() || is_in(IDEMPOTENT);
        if method.is_safe()
            || is_in(SAFE)
            || KEYS.into_iter().any(has_key)
            || (is_idempotent() && !is_conditional(query, headers))
        {
            Self::Idempotent
        } else {
            Self::NotIdempotent
        }
    }
}

/// Returns `true` if a repeated write would get another answer. Such a request appends, or has a
/// condition that its own success changes.
///
/// A client that repeats such a request after a late answer takes its own write for another
/// client's. RFC 9110 (section 13.1.1) warns of this for `If-Match`.
///
/// | has | for example |
/// |---|---|
/// | a header whose name has the word `if` or `offset`, and not the word `source` | `If-None-Match`, `x-goog-if-generation-match`, `x-amz-write-offset-bytes` |
/// | a header `Overwrite: F` (RFC 4918, section 10.6) | |
/// | a member of the query whose name begins with `if` as a word, and is not of a source | `ifGenerationMatch=0`, `if_seq_no=7` |
/// | a member of the query whose name or value is `append` or `appendblock`, in any case | `comp=appendblock` |
///
/// `query` is the query of the URL.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "http")] {
/// use http::Request;
/// use paceline::classify::is_conditional;
///
/// let new = Request::put("/b").header("if-none-match", "*").body(()).unwrap();
/// assert!(is_conditional(new.uri().query(), new.headers()));
/// let append = Request::put("/b?comp=appendblock").body(()).unwrap();
/// assert!(is_conditional(append.uri().query(), append.headers()));
/// let put = Request::put("/b?comp=block").body(()).unwrap();
/// assert!(!is_conditional(put.uri().query(), put.headers()));
/// # }
/// ```
#[must_use]
pub fn is_conditional(query: Option<&str>, headers: &HeaderMap) -> bool {
    let in_name = |name: &str| {
        let mut words = name.split('-');
        words.clone().any(|word| word == "if" || word == "offset")
            && words.all(|word| word != "source")
    };
    let in_member = |member: &str| {
        let (name, value) = member.split_once('=').unwrap_or((member, ""));
        let after = name.strip_prefix("if").unwrap_or_default();
        let is_if = after.starts_with(|next: char| !next.is_ascii_lowercase());
        let is_append = |text: &str| {
            text.eq_ignore_ascii_case("append") || text.eq_ignore_ascii_case("appendblock")
        };
        (is_if && !after.starts_with("Source")) || is_append(name) || is_append(value)
    };
    headers.keys().any(|name| in_name(name.as_str()))
        || headers.get("overwrite").is_some_and(|value| value == "F")
        || query.is_some_and(|query| query.split('&').any(in_member))
}
