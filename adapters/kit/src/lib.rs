//! Shared parts of the adapters' tests. Nothing of this crate is published.
//!
//! [`Server`] is a service on loopback with scripted answers. [`standard`] and [`fixed`] are
//! strategies that do not hurry. [`keep_promises`] makes the tests of the promises of every
//! adapter.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::missing_panics_doc,
    reason = "small numbers of tests, which panic if a promise is not kept"
)]

extern crate alloc;

mod debug;
mod dropped;
mod limited;
pub mod promises;
mod readme;
mod server;
mod strategies;

use core::time::Duration;

pub use debug::Shown;
pub use dropped::{COST, check_left, check_tokens, polled};
pub use limited::{BULK_IN_PART, GRAPHQL_OK, GRAPHQL_THROTTLED, Limited};
pub use readme::count_lines;
pub use server::{Asked, BROKEN, HINTED, OK, OVERLOADED, Reply, SLOW_DOWN, Said, Server};
pub use strategies::{Always, fixed, standard};

/// One second.
pub const SECOND: Duration = Duration::from_secs(1);
