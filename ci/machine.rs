//! The functions of the line alone, so that their machine code can be read: see `ci/machine.py`.
//!
//! It is the crate's own source, compiled as the crate compiles it. What is inlined elsewhere is
//! compiled once more there, and is not looked at.

#![no_std]
#![allow(dead_code, unused_imports, unreachable_pub)]

mod bits;
mod fixed;
mod law {
    pub(crate) mod cubic;
}
mod line;

use bits::Field;
use fixed::Rate;
use law::cubic::Stretch;
use line::{Head, Level, Line, Minted, Place, Take};

/// The word of a head, low half first, `since`, `burst`, the time, `issued`, what was given up.
#[repr(C)]
pub struct Case {
    low: u64,
    high: u64,
    since: u64,
    burst: u64,
    now: u64,
    issued: u64,
    cancelled: u64,
}

impl Case {
    fn line(&self) -> Line {
        let word = (u128::from(self.high) << 64) | u128::from(self.low);
        Head::from_bits(word).line(self.since, self.burst)
    }

    fn issued(&self) -> Place {
        Place::from_bits(self.issued)
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn extended_to(case: &Case) -> u128 {
    case.line().extended_to(case.now).to_bits()
}

#[unsafe(no_mangle)]
pub extern "C" fn minted_at(case: &Case) -> u128 {
    case.line().minted_at(case.now).to_bits()
}

#[unsafe(no_mangle)]
pub extern "C" fn has_wrapped(case: &Case) -> u64 {
    case.line().has_wrapped(case.now).into()
}

#[unsafe(no_mangle)]
pub extern "C" fn is_stale(case: &Case) -> u64 {
    case.line().is_stale(case.now).into()
}

#[unsafe(no_mangle)]
pub extern "C" fn capacity(case: &Case) -> u64 {
    case.line().capacity()
}

#[unsafe(no_mangle)]
pub extern "C" fn spilled(case: &Case) -> u64 {
    let (issued, cancelled) = (case.issued(), case.cancelled);
    case.line().spilled(case.now, issued, cancelled).to_bits()
}

#[unsafe(no_mangle)]
pub extern "C" fn available(case: &Case) -> u128 {
    case.line().available(case.now, case.issued(), case.cancelled)
}

/// A level at the count in `high` and `low`, of the capacity in `burst`.
fn level(case: &Case) -> Level {
    let minted = Minted::from_bits((u128::from(case.high) << 64) | u128::from(case.low));
    Level::new(minted, case.burst, case.cancelled)
}

/// 1 in the high half and the place in the low one, or 0.
#[unsafe(no_mangle)]
pub extern "C" fn take(case: &Case) -> u128 {
    match level(case).take(case.issued()) {
        Take::Full(place) | Take::Next(place) => (1 << 64) | u128::from(place.to_bits()),
        Take::Empty => 0,
    }
}

/// What a lease takes: all but one token, at least one, at most 255.
#[unsafe(no_mangle)]
pub extern "C" fn take_spare(case: &Case) -> u128 {
    match level(case).take_spare(case.issued(), line::TOKEN, 1, 255) {
        Some((place, spare)) => (u128::from(spare) << 64) | u128::from(place.to_bits()),
        None => 0,
    }
}

/// The word of a line with the rate of the word in the case, through the count in `since` (its high
/// half) and `burst`, at the time, with the number of a throttle in `issued`.
#[unsafe(no_mangle)]
pub extern "C" fn through(case: &Case) -> u128 {
    let minted = Minted::from_bits((u128::from(case.since) << 64) | u128::from(case.burst));
    Head::through(minted, case.now, case.line().rate, case.issued).to_bits()
}

/// The rate at the time by the short way, after a cut at the peak in `low`, which is reached at
/// `high`.
#[unsafe(no_mangle)]
pub extern "C" fn short_way(case: &Case) -> u64 {
    let peak = Rate::of_raw(case.low);
    let stretch = Stretch { from: 0, length: 0, peak, peak_at: case.high };
    stretch.rate_at(case.now).raw()
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
