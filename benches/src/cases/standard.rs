//! A whole healthy request in standard mode.

use std::sync::Mutex;

use paceline::{RetryStrategy, Standard, strategy::Reports};

use super::aws;
use super::twin::{Lock, Quota};
use crate::case::{
    Case, Stage,
    Whose::{Ours, Peer, Twin},
    plain,
};
use crate::path::Path;
use crate::target::Bound::{Nanos, ScalesAsEmptyLoop};

/// Returns the cases.
pub(super) fn cases() -> Vec<Case> {
    let case = |whose, name, writes, make| Case::new(Path::Standard, whose, name, writes, make);
    vec![
        case(Ours, "paceline Standard", 0, || {
            plain(Standard::new(), |strategy| {
                let token = strategy.acquire_initial_token(None);
                token.is_ok_and(|token| strategy.record_success(token, Reports::new()).is_ok())
            })
        })
        .target(
            &[Nanos(2.0), ScalesAsEmptyLoop],
            "a token is made and dropped",
        ),
        case(Peer, "aws-smithy-runtime", 2, aws::standard),
        case(Twin, "std mutex", 2, twin::<Mutex<Quota>>),
        case(
            Twin,
            "parking_lot mutex",
            2,
            twin::<parking_lot::Mutex<Quota>>,
        ),
    ]
}

fn twin<L: Lock<Quota>>() -> Stage {
    plain(L::of(Quota::holding(500, 500)), |quota| {
        quota.with(|quota| quota.credit(1));
        true
    })
}
