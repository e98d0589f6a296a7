//! What scopes show of themselves, and that what was changed in one under way is kept.

use crate::support::scopes::{adaptive, standard, throttle};
use paceline::{Adaptive, Failure, RetryStrategy, Scopes, law::PacedSettings, strategy::Reports};

/// Fails an operation on `key`, which is retried once and given up.
fn fail<S: RetryStrategy + 'static>(scopes: &Scopes<S>, key: &str) {
    let token = scopes.acquire_initial_token(Some(key)).unwrap();
    drop(scopes.refresh_retry_token(token, &Failure::transient(), Reports::new()));
}

#[test]
fn every_scope_is_looked_at_and_none_that_is_gone() {
    let (scopes, _) = adaptive(10);
    let seen = || {
        let mut seen = Vec::new();
        scopes.for_each(|key, state| {
            let snapshot = state.snapshot();
            let engaged = snapshot.rate.is_some_and(|rate| rate.enabled);
            seen.push((key.to_owned(), engaged, snapshot.counts.granted));
        });
        seen.sort();
        seen
    };
    assert_eq!(seen(), []);
    throttle(&scopes, "hot");
    fail(&scopes, "poor");
    drop(scopes.get("idle").unwrap());
    let all = [("hot", true, 0), ("idle", false, 0), ("poor", false, 1)];
    let all = all.map(|(key, engaged, granted)| (key.to_owned(), engaged, granted));
    assert_eq!(seen(), all);
    assert_eq!(scopes.count_in_use(), 0, "to look is no use");
    assert_eq!(scopes.evict_idle(), 1);
    assert_eq!(seen(), [all[0].clone(), all[2].clone()]);
}

#[test]
fn the_snapshot_of_the_strategy_is_that_of_the_shared_state() {
    let scopes = standard(10);
    fail(&scopes, "a");
    assert_eq!(RetryStrategy::snapshot(&scopes).quota.available, 500);
    let token = scopes.acquire_initial_token(None).unwrap();
    drop(scopes.refresh_retry_token(token, &Failure::transient(), Reports::new()));
    let shared = RetryStrategy::snapshot(&scopes);
    assert_eq!((shared.quota.available, shared.counts.granted), (486, 1));
    assert_eq!(shared, scopes.shared().snapshot());
}

#[test]
fn a_scope_whose_law_was_changed_is_kept_until_it_is_changed_back() {
    let scopes = Adaptive::builder().paced(PacedSettings::new()).scopes();
    let scopes = scopes.max_scopes(1).build().unwrap();
    let scope = || scopes.get("a").unwrap();
    let gentle = PacedSettings::builder().beta_permille(950).build().unwrap();
    scope().set_paced(gentle).unwrap();
    assert!(scopes.get("b").is_err());
    scope().set_paced(PacedSettings::new()).unwrap();
    assert!(scopes.get("b").is_ok());
}

#[test]
fn a_scope_that_forgets_its_throttles_may_go() {
    let (scopes, _) = adaptive(1);
    throttle(&scopes, "a");
    assert!(scopes.get("b").is_err());
    scopes.get("a").unwrap().forget_throttles();
    assert!(scopes.get("b").is_ok());
}

#[cfg(feature = "serde")]
#[test]
fn the_counts_can_be_written() {
    let scopes = standard(1);
    let _used = scopes.get("a").unwrap();
    assert!(scopes.get("b").is_err());
    assert_eq!(
        serde_json::to_string(&scopes.snapshot()).unwrap(),
        r#"{"scopes":1,"max_scopes":1,"evicted":0,"refused":1}"#
    );
}
