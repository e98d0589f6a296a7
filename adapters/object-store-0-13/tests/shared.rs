//! The tests of the adapter for the newest `object_store`, with `object_store` 0.13.

#![allow(clippy::duplicate_mod, reason = "each of them is a program elsewhere")]

extern crate paceline_object_store_0_13 as paceline_object_store;

#[path = "../../object-store/tests/batches.rs"]
mod batches;
#[path = "../../object-store/tests/connector.rs"]
mod connector;
#[path = "../../object-store/tests/failures.rs"]
mod failures;
#[path = "../../object-store/tests/repeats.rs"]
mod repeats;
#[path = "../../object-store/tests/requests.rs"]
mod requests;
