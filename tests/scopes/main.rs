//! Scopes: a state for each resource, in a bounded store.
#![cfg(feature = "scopes")]

extern crate alloc;

#[path = "../support/mod.rs"]
mod support;

mod bound;
mod idle;
mod seen;
mod store;
