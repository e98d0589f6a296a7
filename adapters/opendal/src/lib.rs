#![doc = include_str!("../README.md")]

extern crate alloc;

mod batches;
mod bounds;
mod capacity;
mod host;
mod lanes;
mod layer;
mod transport;

pub use lanes::Lanes;
pub use layer::PacingLayer;
