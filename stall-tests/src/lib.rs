//! Threads stopped at every atomic step of every operation: the others must go on.
//!
//! Claim: wherever a thread stops, every call of any other finishes within a stated number of its
//! own atomic steps, no token is granted that was not minted, no later throttle is lost, places
//! stay in order, and what the stopped thread held is all that is lost. A stop is an unwinding out
//! of the operation, right before an atomic access; what the thread held is forgotten, so that no
//! `Drop` runs more of them.
//!
//! `stops` has one thread stopped, then two of them, and one that is overtaken before it stops;
//! `threads` lets several threads run afterwards; `teeth` has a twin with a lock. Out of reach:
//! memory orderings (the models of `loom-tests` see to them), since a stopped thread here runs on
//! the caller's.
//!
//! With the feature `counts` something else: how many shared cache lines an operation reads and
//! writes, in `counts`.
//!
//! Run: `ci/check.sh stall`.
#![cfg(all(stall, test))]
#![cfg_attr(
    not(feature = "counts"),
    expect(
        clippy::float_arithmetic,
        clippy::arithmetic_side_effects,
        reason = "a test may overflow, and fail"
    )
)]

extern crate alloc;

#[cfg(not(feature = "counts"))]
mod classes;
#[cfg(feature = "counts")]
mod counts;
#[cfg(not(feature = "counts"))]
mod declared;
#[cfg(not(feature = "counts"))]
mod hook;
#[cfg(not(feature = "counts"))]
mod leases;
#[cfg(not(feature = "counts"))]
mod paced;
#[cfg(not(feature = "counts"))]
mod quota;
#[cfg(not(feature = "counts"))]
mod scene;
#[cfg(not(feature = "counts"))]
mod sets;
#[cfg(not(feature = "counts"))]
mod stops;
#[cfg(not(feature = "counts"))]
mod teeth;
#[cfg(not(feature = "counts"))]
mod threads;
#[cfg(not(feature = "counts"))]
mod workload;
