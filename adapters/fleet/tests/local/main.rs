//! Fleets of real processes on a file, in front of a service that throttles.
//!
//! Claims: a process may be killed at any point, and no other one is stopped; a limit, a rate that
//! was learned, a pause and a retry quota outlive the processes; what is wrong with the file has a
//! name, and members do as they were set then. `FLEET_LONG=1` plays the long ones in full.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::float_arithmetic,
    reason = "a test may overflow, and fail"
)]

#[path = "../../rig/mod.rs"]
mod rig;

mod faults;
mod folder;
mod killed;
mod many;
mod outlives;
mod tool;

/// The process of a member, which the other tests start.
#[test]
#[ignore = "started by the other tests"]
fn member() {
    let order = rig::member::order().expect("the other tests give orders");
    rig::member::obey(&order);
}

/// The process of a small tool, which the other tests start.
#[test]
#[ignore = "started by the other tests"]
fn tool() {
    tool::obey();
}

/// Returns `long` if `FLEET_LONG` is set, and `short` otherwise.
pub(crate) fn long<T>(short: T, long: T) -> T {
    if std::env::var_os("FLEET_LONG").is_some() {
        long
    } else {
        short
    }
}
