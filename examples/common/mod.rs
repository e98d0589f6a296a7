//! What the examples share: a service and how it counts, a run and what is counted in it, charts
//! and tables.
#![allow(dead_code, reason = "each example uses a part of it")]

pub(crate) mod chart;
pub(crate) mod columns;
pub(crate) mod limiter;
pub(crate) mod number;
pub(crate) mod policer;
pub(crate) mod run;
pub(crate) mod scale;
pub(crate) mod server;
pub(crate) mod svg;
pub(crate) mod table;
pub(crate) mod tally;
pub(crate) mod time;
pub(crate) mod world;
