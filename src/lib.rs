//! Lock-free rate control for clients of services that throttle.
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

mod atomic;
mod aws;
mod cubic;
mod fixed;
mod line;
mod meter;
mod time;

pub use atomic::{
    ControlLaw, Outcome, QuotaPermit, Reservation, RetryQuota, SendPermit, SendRate,
    SendRateSnapshot,
};
pub use time::Timestamp;
