//! What the hardware asks for the least that may have to be done.

use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use crossbeam_utils::CachePadded;
use paceline::{Clock, MonotonicClock};
use rustix::time::{ClockId, clock_gettime};

use super::twin::Lock;
use crate::case::{Case, Whose::Limit, plain, stage};
use crate::path::Path::Floor;

/// Returns the cases.
pub(super) fn cases() -> Vec<Case> {
    let case = |name, writes, make| Case::new(Floor, Limit, name, writes, make);
    vec![
        case("empty loop", 0, || {
            plain((), |()| {
                black_box(0);
                true
            })
        }),
        case("relaxed load", 0, || {
            plain(AtomicU64::new(1), |word| word.load(Relaxed) == 1)
        }),
        case("fetch_add, shared line", 1, || {
            plain(AtomicU64::new(0), |word| {
                black_box(word.fetch_add(1, Relaxed));
                true
            })
        }),
        case("CAS loop, shared line", 1, || {
            plain(AtomicU64::new(0), |word| {
                word.fetch_update(Relaxed, Relaxed, |seen| Some(seen + 1))
                    .is_ok()
            })
        }),
        case("fetch_add, own line", 0, || {
            stage(
                (),
                |(), _| Box::new(CachePadded::new(AtomicU64::new(0))),
                |(), own| {
                    black_box(own.fetch_add(1, Relaxed));
                    true
                },
            )
        }),
        case("std mutex", 2, || lock::<std::sync::Mutex<u64>>()),
        case("parking_lot mutex", 2, || lock::<parking_lot::Mutex<u64>>()),
        case("clock: std Instant", 0, || {
            plain((), |()| {
                black_box(Instant::now());
                true
            })
        }),
        case("clock: paceline, time stamp counter", 0, || {
            plain(MonotonicClock::new(), |clock| {
                black_box(clock.now());
                true
            })
        })
        .uncountable(),
        case("clock: the system's coarse one", 0, || {
            plain((), |()| {
                black_box(clock_gettime(ClockId::MonotonicCoarse));
                true
            })
        }),
    ]
}

fn lock<L: Lock<u64>>() -> crate::case::Stage {
    plain(L::of(0), |lock| {
        lock.with(|count| *count += 1);
        true
    })
}
