//! The policy and budget for tower's retries.

mod budget;
mod retry_policy;

pub use budget::QuotaBudget;
pub use retry_policy::RetryPolicy;
