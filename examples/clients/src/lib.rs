//! What the guide and the READMEs say about client crates, compiled with the real ones.

#![allow(unused, dead_code, reason = "the lines are for readers")]
#![allow(clippy::all, reason = "the lines are for readers")]

include!(concat!(env!("OUT_DIR"), "/pages.rs"));
