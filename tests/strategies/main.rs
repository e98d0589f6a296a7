//! The strategies: rules, defaults, quotas, backoffs, classes and several limits.
#![cfg(feature = "std")]

extern crate alloc;

#[path = "../support/mod.rs"]
mod support;

mod adaptive;
mod backoff_jitter;
mod bulk;
mod declared;
mod defaults;
mod gated_turn;
mod golden_backoff;
mod golden_generation_2_0;
mod golden_generation_2_1;
mod hinted_service;
mod learned_rate;
mod members;
mod rules;
mod seen;
mod several_limits;
mod two_classes;
