//! Fleets of real processes on a real engine, in front of a service that throttles.
//!
//! Claims: nothing is handed out twice; what the service sees is never above the allowance by more
//! than the stated bound, in any window; and after every fault the allowance is used again within
//! seconds. Each test prints its figures. Without a `redis-server` they print that they are
//! skipped.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::float_arithmetic,
    reason = "a test may overflow, and fail"
)]

extern crate alloc;

#[path = "../../rig/mod.rs"]
mod rig;
/// As the other adapters' tests have it.
#[allow(unreachable_pub, reason = "a module of another crate's tests")]
#[path = "../../../kit/src/debug.rs"]
mod shown;

mod bounds;
mod budget;
mod dashboard;
mod debug;
mod distance;
mod failover;
mod faults;
mod hostile;
mod joins;
mod knock;
mod law;
mod learning;
mod pair;
mod quota;
mod quota_step;
mod scene;
mod sick;
mod states;
mod step;
#[cfg(feature = "tls")]
mod tls;
mod upgrade;

/// The process of a member, which the other tests start.
#[test]
#[ignore = "started by the other tests"]
fn member() {
    let order = rig::member::order().expect("the other tests give orders");
    rig::member::obey(&order);
}
