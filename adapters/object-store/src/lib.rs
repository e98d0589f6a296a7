#![doc = include_str!("../README.md")]

extern crate alloc;

mod errors;
mod lane;
mod pacing;
mod prefix;
mod store;
mod streams;
mod upload;

pub use errors::StoreErrors;
pub use pacing::{Lanes, Pacing};
pub use store::PacedStore;
