//! Whether a request may be sent twice, by its method and its key.

use http::{HeaderMap, HeaderValue, Method, Request};

use crate::Idempotency;

/// Headers by whose value a service detects a repetition.
const KEYS: [&str; 3] = [
    "idempotency-key",
    "x-idempotency-key",
    "repeatability-request-id",
];

impl Idempotency {
    /// Returns whether `request` may be carried out twice.
    ///
    /// It may if its method says so (RFC 9110, section 9.2.2: GET, HEAD, PUT, DELETE, OPTIONS,
    /// TRACE), or if it carries a key by which the service detects a repetition: one of the
    /// headers `Idempotency-Key`, `X-Idempotency-Key` and `Repeatability-Request-Id` with a
    /// value that is not empty. So POST, PATCH and unknown methods may not. A key only
    /// helps if every attempt sends the same one.
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
    /// # }
    /// ```
    #[must_use]
    pub fn of_request<B>(request: &Request<B>) -> Self {
        Self::of_method(request.method(), request.headers())
    }

    /// Returns the same for a request of any client that has its method and headers.
    #[must_use]
    pub fn of_method(method: &Method, headers: &HeaderMap) -> Self {
        let is_key = |value: &HeaderValue| !value.as_bytes().trim_ascii().is_empty();
        let has_key = |name| headers.get_all(name).iter().any(is_key);
        if method.is_idempotent() || KEYS.into_iter().any(has_key) {
            Self::Idempotent
        } else {
            Self::NotIdempotent
        }
    }
}
