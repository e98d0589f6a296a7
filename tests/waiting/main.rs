//! Waiting for send tokens, in virtual time and in real time.
#![allow(
    clippy::arithmetic_side_effects,
    reason = "numbers of tests: one that overflows fails"
)]

extern crate alloc;

mod classes;
mod forms;
mod in_flight;
mod interrupts;
mod loops;
mod panics;
mod pools;
mod proportion;
mod rises;
mod runtimes;
mod set_twice;
mod sets;
mod steady;
mod world;
