#![cfg_attr(all(feature = "grpc", feature = "policy"), doc = include_str!("../README.md"))]
#![cfg_attr(
    not(all(feature = "grpc", feature = "policy")),
    doc = "paceline in tower: see the documentation with all features."
)]

extern crate alloc;

mod bounds;
mod classify;
mod conclude;
#[cfg(feature = "grpc")]
mod grpc;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "policy")]
mod policy;
mod rate;
mod refused;
mod replay;
mod retry;

/// An error of any type, as tower's own layers return it.
pub type BoxError = Box<dyn core::error::Error + Send + Sync>;

pub use classify::{Classify, failure_of};
pub use conclude::Conclude;
#[cfg(feature = "grpc")]
pub use grpc::{GrpcBody, GrpcResults};
#[cfg(feature = "http")]
pub use http::{BodyReader, Buffered, HttpRequests, HttpResults, ReadBodies, Replayed};
#[cfg(feature = "policy")]
pub use policy::{QuotaBudget, RetryPolicy};
pub use rate::{
    Rated, RatedSet, SendRateFuture, SendRateLayer, SendRateService, SendSetLayer, SendSetService,
};
pub use refused::Refused;
pub use replay::{Clones, Replay};
pub use retry::{Retried, Retry, RetryFuture, RetryLayer};
