//! Classifiers, headers, bodies and the corpus of refusals.

extern crate alloc;

#[cfg(all(feature = "http", feature = "tokio"))]
mod body_beginning;
mod classify;
#[cfg(feature = "http")]
mod classify_http;
mod headers;
#[cfg(feature = "http")]
mod refusals;
#[cfg(all(feature = "http", feature = "tokio"))]
mod refused_finally;
#[cfg(feature = "http")]
mod successes;
