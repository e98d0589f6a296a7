//! A whole healthy request in adaptive mode, as the retry loop makes it. Nothing was throttled yet.

use std::sync::Mutex;
use std::time::Instant;

use paceline::{
    Adaptive, Clock, RetryStrategy, Timestamp,
    strategy::{Reports, SendRequest, SendTurn},
};

use super::aws;
use super::twin::{Lock, Rate};
use crate::case::{
    Case, Stage,
    Whose::{Ours, Peer, Twin},
    plain,
};
use crate::path::Path::Adaptive as Healthy;
use crate::target::Bound::{Nanos, ScalesAsEmptyLoop};

/// Returns the cases.
pub(super) fn cases() -> Vec<Case> {
    let case = |whose, name, writes, make| Case::new(Healthy, whose, name, writes, make);
    vec![
        case(Ours, "paceline Adaptive", 0, || {
            plain(Adaptive::new(paceline::ControlLaw::Aws), request)
        })
        .uncountable()
        .target(
            &[Nanos(8.5), ScalesAsEmptyLoop],
            "a token with its permit is made and dropped, and two counts that belong to the thread are written",
        ),
        case(Ours, "paceline Adaptive, exact timing", 0, || {
            let builder = Adaptive::builder().law(paceline::ControlLaw::Aws).exact_timing(true);
            plain(builder.build().expect("the defaults are in range"), request)
        })
        .uncountable(),
        case(Ours, "paceline Adaptive, std's clock", 0, || {
            let builder = Adaptive::builder().law(paceline::ControlLaw::Aws).clock(alloc::sync::Arc::new(StdClock::new()));
            plain(builder.build().expect("the defaults are in range"), request)
        }),
        case(Peer, "aws-smithy-runtime", 22, aws::adaptive),
        case(
            Peer,
            "aws-smithy-runtime, own partition",
            18,
            aws::adaptive_custom,
        ),
        case(Twin, "std mutex, std's clock", 4, twin::<Mutex<Rate>>),
        case(
            Twin,
            "parking_lot mutex, std's clock",
            4,
            twin::<parking_lot::Mutex<Rate>>,
        ),
    ]
}

/// A request that is answered at once and not throttled. True if it was let go at once.
#[inline]
pub(super) fn request<S: RetryStrategy + ?Sized>(strategy: &S) -> bool {
    let Ok(mut token) = strategy.acquire_initial_token(None) else {
        return false;
    };
    let request = SendRequest::new().token(&token);
    let Ok(permit) = strategy.admit(&mut SendTurn::new(), request) else {
        return false;
    };
    token.sent(permit);
    strategy.record_success(token, Reports::new()).is_ok()
}

/// The system's monotonic clock, as `std` reads it.
#[derive(Debug)]
struct StdClock(Instant);

impl StdClock {
    fn new() -> Self {
        Self(Instant::now())
    }
}

impl Clock for StdClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(nanos_since(self.0))
    }
}

fn nanos_since(origin: Instant) -> u64 {
    u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

fn twin<L: Lock<Rate>>() -> Stage {
    plain((L::of(Rate::new()), Instant::now()), |(rate, origin)| {
        let now = nanos_since(*origin);
        let granted = rate.with(|rate| rate.take(now));
        let now = nanos_since(*origin);
        rate.with(|rate| rate.record(now, false));
        granted
    })
}
