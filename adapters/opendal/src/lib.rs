#![doc = include_str!("../README.md")]

extern crate alloc;

mod host;
mod layer;
mod transport;

pub use layer::{Lanes, PacingLayer};
