#![doc = include_str!("../README.md")]

mod delays;
mod hint;
mod retries;

pub use delays::Delays;
pub use hint::retry_after;
pub use retries::Retries;
