//! Whole systems in virtual time: services, clients and their workers, and the send rates between.
//!
//! A [`System`] is a short list of numbers: the service and its limit, what its responses say, the
//! clients, their workers, and what goes wrong. [`play`] runs one, event by event, against the
//! public API, and returns what came of it by the service's own count. The service enforces its
//! limit at the moment that a request arrives, half a trip after it was sent.
//!
//! The oracles ([`Fault`]) are the promises of the declared law:
//!
//! - *liveness*: if the service would let a waiting request go, and no pause is in force, one goes
//!   within two windows;
//! - *safety*: one client that hears true reports is not refused, but for the first burst, and for
//!   what was in flight over a reset or overtaken by a later request;
//! - *accounting*: when all is answered, what is left is what the service says.
//!
//! Background, where there is any, has promises beside these (`classes.rs`), and so have operations
//! (`promises.rs`).
//!
//! Beside them: no waiter starves, a snapshot is plausible, and everything comes back when all is
//! dropped. The bounds stand in `bounds.rs`.

mod bounds;
mod bytes;
mod classes;
mod draw;
mod operations;
mod operations_steps;
mod oracle;
mod pools;
mod promises;
mod service;
mod sets;
mod sets_steps;
mod shrink;
mod summary;
mod system;
mod told;
mod wait;
mod worker;
mod world;

pub use bytes::systems;
pub use draw::{Range, draw};
pub use oracle::{Fault, Played};
pub use summary::Summary;
pub use system::{ParseError, System};
pub use world::play;

const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
