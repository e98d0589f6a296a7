#![doc = include_str!("../README.md")]

extern crate alloc;

mod bounds;
mod host;
mod lanes;
mod layer;
mod transport;

pub use lanes::Lanes;
pub use layer::PacingLayer;
