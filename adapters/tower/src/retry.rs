//! Retries, paid from a quota, and sent at a rate if the strategy has one.

mod course;
mod future;
mod layer;

pub use course::Retried;
pub use future::RetryFuture;
pub use layer::{Retry, RetryLayer};
