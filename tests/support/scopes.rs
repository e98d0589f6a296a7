//! Scopes of each kind, and how one is throttled.
#![allow(dead_code, reason = "every test file uses a part of it")]

use paceline::{
    Adaptive, Failure, RetrySafety, RetryStrategy, Scopes, Standard, strategy::Reports,
};

use super::{Arc, Fixed, Hands};

/// Scopes that pay retries from a quota each, `most` of them.
pub(crate) fn standard(most: usize) -> Scopes<Standard> {
    let template = Standard::builder().random(Fixed::whole());
    template.scopes().max_scopes(most).build().unwrap()
}

/// Adaptive scopes, `most` of them, by a clock that only sleeps move.
pub(crate) fn adaptive(most: usize) -> (Scopes<Adaptive>, Arc<Hands>) {
    let hands = Arc::new(Hands::default());
    let template = Adaptive::builder()
        .law(paceline::ControlLaw::Aws)
        .clock(hands.clone());
    let template = template.random(Fixed::whole());
    let scopes = template.scopes().max_scopes(most).build().unwrap();
    (scopes, hands)
}

/// Fails an operation on `key` by throttling that must not be retried: the rate is cut, the quota
/// stays full.
pub(crate) fn throttle(scopes: &Scopes<Adaptive>, key: &str) {
    let token = scopes.acquire_initial_token(Some(key)).unwrap();
    let failure = Failure::throttling().with_retry_safety(RetrySafety::No);
    assert!(
        scopes
            .refresh_retry_token(token, &failure, Reports::new())
            .is_err()
    );
}
