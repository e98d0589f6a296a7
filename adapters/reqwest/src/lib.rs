// The README needs the feature.
#![cfg_attr(any(not(doctest), feature = "llm"), doc = include_str!("../README.md"))]

extern crate alloc;

mod body;
mod bounds;
mod error;
mod hosts;
#[cfg(feature = "llm")]
mod llm;
mod middleware;
mod pacing;
#[cfg(feature = "llm")]
mod service;

pub use body::{BodyNotRepeatable, OneShotBody};
pub use error::DeadlinePassed;
#[cfg(feature = "llm")]
pub use llm::{ModelLimit, ModelPacing, ModelSnapshot, Tokens};
pub use pacing::Pacing;
#[cfg(feature = "llm")]
pub use service::ClientService;
