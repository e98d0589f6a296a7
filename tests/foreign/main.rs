//! What other projects learnt the hard way, played against paceline.
//!
//! Each test is written anew from the description of a fault or a scene. The comment above it names
//! the repository, the file and the test that it comes from. A test asserts what paceline promises,
//! which is not always what the other project does.
//!
//! Not played, since paceline has none of them: circuit breakers, bulkheads, sliding logs, limits
//! by the time that answers take, lists of nodes, accounts of users, and more than two priorities.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_precision_loss,
    clippy::float_arithmetic,
    reason = "numbers of tests: one that overflows fails"
)]

extern crate alloc;

#[path = "../support/mod.rs"]
mod support;
#[allow(dead_code, reason = "the tests of waiting use all of it")]
#[path = "../waiting/world.rs"]
mod world;

mod dialogue;
mod failsafe;
mod herd;
mod play;
mod throttle_net;
mod throttle_net_keys;
mod throttle_net_threads;
mod vector;
