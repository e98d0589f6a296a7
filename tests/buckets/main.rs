//! The retry quota, the send rate and sets of send rates: counts, waits, places, weights and threads.
#![allow(
    clippy::arithmetic_side_effects,
    reason = "numbers of tests: one that overflows fails"
)]

extern crate alloc;

mod history;
mod linearizability;
mod nobody_left;
mod quota;
mod send_charge;
mod send_pool;
mod send_rate;
mod send_rate_corners;
mod send_rate_extremes;
mod send_rate_forgotten;
mod send_rate_places;
mod send_rate_threads;
mod send_rate_untimed;
mod send_rate_weights;
mod send_set;
mod send_set_threads;
mod support;
