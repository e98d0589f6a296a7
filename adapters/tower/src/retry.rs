//! Retries, with turns to send.

mod future;
mod layer;
mod retried;

pub use future::RetryFuture;
pub use layer::{Retry, RetryLayer};
pub use retried::Retried;
