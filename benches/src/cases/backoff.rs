//! A delay with full jitter.

use alloc::sync::Arc;
use core::hint::black_box;
use core::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use paceline::backoff::{BackoffStrategy, ExponentialBackoff, Random};

use crate::case::{
    Case,
    Whose::{Limit, Ours, Peer},
    plain, stage,
};
use crate::path::Path::Backoff;
use crate::target::Bound::{Nanos, ScalesAsEmptyLoop};

const BASE: Duration = Duration::from_millis(50);
const MOST: Duration = Duration::from_secs(20);

/// What strategies draw from unless told otherwise.
#[derive(Debug)]
struct OfThread;

impl Random for OfThread {
    fn next_u64(&self) -> u64 {
        fastrand::u64(..)
    }
}

/// Returns the cases.
pub(super) fn cases() -> Vec<Case> {
    let case = |whose, name, make| Case::new(Backoff, whose, name, 0, make);
    vec![
        case(Ours, "paceline ExponentialBackoff", || {
            plain(ExponentialBackoff::new(BASE, MOST), |backoff| {
                let delay = backoff.delay(black_box(3), false, OfThread.next_u64());
                black_box(delay) <= MOST
            })
        })
        .target(
            &[Nanos(4.0), ScalesAsEmptyLoop],
            "a random number of the thread and two multiplications",
        ),
        case(
            Ours,
            "paceline, through the traits as strategies ask",
            || {
                let backoff: Arc<dyn BackoffStrategy> =
                    Arc::new(ExponentialBackoff::new(BASE, MOST));
                let random: Arc<dyn Random> = Arc::new(OfThread);
                plain((backoff, random), |(backoff, random)| {
                    let delay = backoff.delay(black_box(3), false, random.next_u64());
                    black_box(delay) <= MOST
                })
            },
        ),
        case(Peer, "backon ExponentialBackoff", || {
            stage(
                (),
                |(), _| backon().build(),
                |(), backoff| black_box(backoff.next()).is_some(),
            )
        }),
        case(Peer, "backon, built for each request", || {
            plain(backon(), |builder| {
                black_box(builder.build().next()).is_some()
            })
        }),
        case(Limit, "a random number, multiplied", || {
            plain(100_000_000_u64, |whole| {
                let scaled = u128::from(*whole) * u128::from(fastrand::u64(..));
                black_box(scaled >> 64) <= u128::from(*whole)
            })
        }),
    ]
}

fn backon() -> ExponentialBuilder {
    ExponentialBuilder::new()
        .with_min_delay(BASE)
        .with_max_delay(MOST)
        .with_jitter()
        .without_max_times()
}
