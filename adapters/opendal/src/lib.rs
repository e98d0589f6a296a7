#![doc = include_str!("../README.md")]

extern crate alloc;

mod layer;
mod transport;

pub use layer::{Lanes, PacingLayer};
