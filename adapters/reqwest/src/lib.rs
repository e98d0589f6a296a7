#![doc = include_str!("../README.md")]

extern crate alloc;

mod body;
mod error;
mod hosts;
mod middleware;
mod operation;
mod pacing;

pub use body::{BodyNotRepeatable, OneShotBody};
pub use pacing::Pacing;
