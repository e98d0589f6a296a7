//! The fuzz targets, as plain functions over bytes.
//!
//! Each takes the input for a sequence of operations, or for texts to read, runs it on the real
//! type and on a plain model, and compares every answer. The same function runs under libFuzzer
//! (`fuzz_targets/`) and, over the corpus and over generated inputs, as an ordinary test
//! (`tests/targets.rs`).
#![forbid(unsafe_code)]
#![allow(clippy::cast_precision_loss, reason = "counts here stay small")]

pub mod answers;
mod clock;
pub mod config;
pub mod declared;
pub mod headers;
pub mod law;
pub mod limiter;
pub mod line;
pub mod quota;
pub mod sets;
pub mod systems;

// One copy of the equations, shared with the crate's own tests.
#[path = "../../tests/laws/models/aws_model.rs"]
mod aws_model;
#[path = "../../tests/laws/models/law_check.rs"]
mod law_check;
mod profile_model;

use core::iter;

use arbitrary::{Arbitrary, Unstructured};

use clock::{Clock, Gap};

/// Reads steps for as long as there are bytes: any input makes a sequence, a long one a long one.
fn steps<'a, T: Arbitrary<'a>>(data: &mut Unstructured<'a>) -> impl Iterator<Item = T> {
    iter::from_fn(move || {
        (!data.is_empty())
            .then(|| T::arbitrary(data).ok())
            .flatten()
    })
}
