#![doc = include_str!("../README.md")]

extern crate alloc;

mod body;
mod error;
mod hosts;
mod middleware;
mod pacing;

pub use body::{BodyNotRepeatable, OneShotBody};
pub use error::DeadlinePassed;
pub use pacing::Pacing;
