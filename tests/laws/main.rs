//! The published law and the paced law: traces beside models in floats, corners and extremes.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::float_arithmetic,
    reason = "numbers of tests: one that overflows fails"
)]

extern crate alloc;

mod bans;
mod cycles;
mod knocks;
mod models;
mod paced;
mod paced_extremes;
mod paced_traces;
mod paced_tuned;
mod published;
mod published_traces;
mod unused;
mod windows;
