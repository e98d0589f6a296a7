//! For services that keep tower's own retries.

mod budget;
mod retry_policy;

pub use budget::QuotaBudget;
pub use retry_policy::RetryPolicy;
