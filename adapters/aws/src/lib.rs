#![doc = include_str!("../README.md")]

extern crate alloc;

mod batch;
mod capacity;
mod classifier;
mod failure;
mod http_client;
mod interceptor;
mod limit;
mod misconfigured;
mod operation;
mod pacing;
mod parts;
mod plugin;
mod turn;

pub use classifier::PacingClassifier;
pub use http_client::PacedHttpClient;
pub use interceptor::PacingInterceptor;
pub use misconfigured::Misconfigured;
pub use pacing::Pacing;
pub use plugin::PacingPlugin;
