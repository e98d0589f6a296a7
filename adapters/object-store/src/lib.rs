#![doc = include_str!("../README.md")]

extern crate alloc;

#[cfg(feature = "http")]
mod batches;
mod bounds;
mod capacity;
#[cfg(feature = "http")]
mod connector;
mod errors;
mod lane;
mod lanes;
mod pacing;
mod prefix;
mod store;
mod streams;
mod upload;

#[cfg(feature = "http")]
pub use connector::PacedConnector;
pub use errors::StoreErrors;
pub use lanes::Lanes;
pub use pacing::Pacing;
pub use store::PacedStore;
