//! Limits that a service declares: one limit, several, services of each kind, and answers that never come.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::float_arithmetic,
    reason = "numbers of tests: one that overflows fails"
)]

extern crate alloc;

mod limits;
mod services;
mod sets;
mod told_otherwise;
mod unheard;
