//! Paceline beside its peers: what is measured ([`cases`]), how ([`pool`], [`rounds`]), and what is
//! made of the results.
//!
//! A case is one operation on one object that threads share. Cases on the same [`path`] of a
//! request are alternatives.
#![expect(
    clippy::float_arithmetic,
    clippy::arithmetic_side_effects,
    clippy::cast_precision_loss,
    reason = "numbers for people; an overflow is to be seen"
)]

extern crate alloc;

pub mod bracket;
pub mod caller;
pub mod case;
pub mod cases;
mod chart;
pub mod machine;
pub mod memory;
pub mod path;
pub mod plot;
pub mod pool;
pub mod predict;
pub mod rounds;
pub mod save;
pub mod stats;
pub mod table;
pub mod tail;
pub mod target;

#[path = "../../examples/common/svg.rs"]
mod svg;
