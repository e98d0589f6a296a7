//! How many scopes there may be, and what is never dropped.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::{fmt, panic::AssertUnwindSafe};
use std::{panic::catch_unwind, sync::Barrier, thread};

use crate::support::{
    Bare, Fixed,
    scopes::{adaptive, standard, throttle},
};
use paceline::{
    Failure, Legacy, RetryStrategy, RetryStrategyExt, RetryToken, Standard,
    scope::{ScopeRefused, ScopesBuilder},
    strategy::{ForeignToken, InitialTokenRefused, Reports, RetryRefused, SendRequest, SendTurn},
};

#[test]
fn what_is_in_use_is_never_dropped() {
    let scopes = standard(1);
    let refused = || assert_eq!(scopes.get("b").unwrap_err(), ScopeRefused::Full { max: 1 });
    let handle = scopes.get("a").unwrap();
    refused();
    let second = handle.clone();
    drop(handle);
    refused();
    let token = scopes.acquire_initial_token(Some("a")).unwrap();
    drop(second);
    refused();
    drop(token);
    let under_way = scopes.operation().scope("a");
    let answer = under_way.run(|_| {
        refused();
        Ok::<_, Failure>(())
    });
    assert!(answer.is_ok());
    assert_eq!(scopes.snapshot().evicted, 0);
    assert!(scopes.get("b").is_ok(), "now it is not in use");
    assert!(scopes.find("a").is_none());
    let now = scopes.snapshot();
    assert_eq!((now.scopes, now.max_scopes), (1, 1));
    assert_eq!((now.evicted, now.refused), (1, 4));
}

/// A strategy whose `is_idle` is what a function says.
struct Judged<F>(Legacy, F);

impl<F> fmt::Debug for Judged<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<F: Fn() -> bool + Send + Sync> RetryStrategy for Judged<F> {
    fn acquire_initial_token(
        &self,
        scope: Option<&str>,
    ) -> Result<RetryToken, InitialTokenRefused> {
        self.0.acquire_initial_token(scope)
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        failure: &Failure,
        reports: Reports<'_>,
    ) -> Result<RetryToken, RetryRefused> {
        self.0.refresh_retry_token(token, failure, reports)
    }

    fn record_success(&self, token: RetryToken, reports: Reports<'_>) -> Result<(), ForeignToken> {
        self.0.record_success(token, reports)
    }

    fn is_idle(&self) -> bool {
        (self.1)()
    }
}

#[test]
fn a_refused_key_asks_thirty_two_scopes() {
    let asked = Arc::new(AtomicU32::new(0));
    let count = asked.clone();
    let make = move |_: Option<&str>| {
        let count = count.clone();
        let never = move || {
            count.fetch_add(1, Ordering::Relaxed);
            false
        };
        Ok(Judged(Legacy::new(), never))
    };
    let scopes = ScopesBuilder::new(make).max_scopes(100).build().unwrap();
    for key in 0..100 {
        drop(scopes.get(&key.to_string()).unwrap());
    }
    let refused = |key| {
        asked.store(0, Ordering::Relaxed);
        assert!(scopes.get(key).is_err());
        asked.load(Ordering::Relaxed)
    };
    // Those that were used since they were last looked at are asked if no other is there.
    assert_eq!(["a", "b", "c", "d"].map(refused), [32, 32, 32, 32]);
    assert_eq!(scopes.snapshot().scopes, 100);
}

#[test]
fn a_place_in_line_keeps_its_scope() {
    let (scopes, _) = adaptive(1);
    throttle(&scopes, "a");
    assert!(!scopes.remove("b"));
    let token = scopes.acquire_initial_token(Some("a")).unwrap();
    let mut turn = SendTurn::new();
    let request = SendRequest::new().token(&token);
    assert!(scopes.admit(&mut turn, request).is_err());
    assert!(turn.is_in_line());
    assert!(!scopes.remove("a"), "in use");
    drop(turn);
    assert!(!scopes.remove("a"), "the operation goes on");
    drop(token);
    assert!(scopes.remove("a"));
}

#[test]
fn what_is_not_idle_is_never_dropped() {
    let (scopes, _) = adaptive(2);
    throttle(&scopes, "engaged");
    let token = scopes.acquire_initial_token(Some("poor")).unwrap();
    let token = scopes.refresh_retry_token(token, &Failure::transient(), Reports::new());
    drop(token.unwrap());
    assert_eq!(scopes.count_in_use(), 0);
    assert_eq!(scopes.evict_idle(), 0);
    assert_eq!(scopes.get("c").unwrap_err(), ScopeRefused::Full { max: 2 });
    assert!(!scopes.get("poor").unwrap().is_idle());
    scopes.get("poor").unwrap().quota().credit(14);
    assert!(scopes.get("poor").unwrap().is_idle(), "its quota is full");
    assert!(scopes.get("c").is_ok());
    assert!(scopes.find("poor").is_none());
    let engaged = scopes.find("engaged").unwrap();
    assert!(engaged.send_rate().snapshot(engaged.clock().now()).enabled);
}

#[test]
fn a_strategy_that_does_not_say_whether_it_is_idle_is_kept() {
    let builder = ScopesBuilder::new(|_| Ok(Bare(Standard::new())));
    let scopes = builder.max_scopes(1).build().unwrap();
    drop(scopes.get("a").unwrap());
    assert_eq!(scopes.get("b").unwrap_err(), ScopeRefused::Full { max: 1 });
    assert!(scopes.remove("a"), "unless asked to");
    assert!(scopes.get("b").is_ok());
}

#[test]
fn a_strategy_without_state_is_always_idle() {
    let builder = ScopesBuilder::new(|_| Ok(Legacy::new()));
    let scopes = builder.max_scopes(1).build().unwrap();
    for key in ["a", "b", "c"] {
        let run = scopes.operation().scope(key).sleep_by(|_| {});
        assert!(run.run(|_| Err::<(), _>(Failure::transient())).is_err());
    }
    assert_eq!(
        (scopes.snapshot().evicted, scopes.snapshot().refused),
        (2, 0)
    );
}

#[test]
fn those_used_lately_are_spared() {
    let scopes = standard(3);
    for key in ["a", "b", "c"] {
        drop(scopes.get(key).unwrap());
    }
    drop(scopes.get("a").unwrap());
    drop(scopes.get("d").unwrap());
    assert!(
        scopes.find("b").is_none(),
        "the first that was not used again"
    );
    drop(scopes.get("e").unwrap());
    assert!(scopes.find("c").is_none());
    assert!(scopes.find("a").is_some());
    // All have been used since: one has to go all the same.
    for key in ["a", "d", "e"] {
        drop(scopes.get(key).unwrap());
    }
    assert!(scopes.get("f").is_ok());
    assert_eq!(scopes.snapshot().scopes, 3);
}

#[test]
fn without_room_an_operation_goes_to_the_shared_state_and_is_counted() {
    let scopes = standard(1);
    let handle = scopes.get("a").unwrap();
    let token = scopes.acquire_initial_token(Some("b")).unwrap();
    assert_eq!(token.max_attempts(), Some(3));
    let token = scopes.refresh_retry_token(token, &Failure::transient(), Reports::new());
    assert_eq!(scopes.shared().quota().available(), 486);
    assert_eq!(handle.quota().available(), 500);
    scopes
        .record_success(token.unwrap(), Reports::new())
        .unwrap();
    assert_eq!(scopes.shared().quota().available(), 500);
    assert_eq!(scopes.snapshot().refused, 1);
}

#[test]
fn a_factory_that_panics_leaves_its_place_free() {
    let builder = ScopesBuilder::new(|key| match key {
        Some("bad") => panic!("no such table"),
        _ => Ok(Standard::new()),
    });
    let scopes = builder.max_scopes(1).build().unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| drop(scopes.get("bad")))).is_err());
    assert_eq!(scopes.snapshot().scopes, 0);
    assert!(scopes.get("good").is_ok());
}

#[test]
fn a_scope_is_removed_even_if_engaged_and_begins_anew() {
    let (scopes, _) = adaptive(10);
    throttle(&scopes, "a");
    assert!(!scopes.get("a").unwrap().is_idle());
    assert!(scopes.remove("a"));
    assert!(!scopes.remove("a"), "there is none");
    assert!(scopes.get("a").unwrap().is_idle());
    let now = scopes.snapshot();
    assert_eq!((now.scopes, now.evicted, now.refused), (1, 1, 0));
    for _ in 0..100 {
        drop(scopes.get("b").unwrap());
        assert!(scopes.remove("b"));
    }
    assert_eq!(
        scopes.evict_idle(),
        1,
        "what was removed is not there to evict"
    );
}

#[test]
fn all_that_is_idle_goes_when_asked() {
    let (scopes, _) = adaptive(10);
    for key in ["a", "b", "c"] {
        drop(scopes.get(key).unwrap());
    }
    throttle(&scopes, "engaged");
    let used = scopes.get("used").unwrap();
    assert_eq!(scopes.count_in_use(), 1);
    assert_eq!(scopes.evict_idle(), 3);
    assert_eq!(scopes.evict_idle(), 0);
    drop(used);
    assert_eq!(scopes.evict_idle(), 1);
    assert_eq!(
        (scopes.snapshot().scopes, scopes.snapshot().evicted),
        (1, 4)
    );
    assert!(scopes.find("engaged").is_some());
}

#[test]
fn among_many_the_bound_holds_and_each_finds_room() {
    let scopes = standard(100);
    for number in 0..10_000 {
        assert!(scopes.get(&number.to_string()).is_ok());
    }
    let now = scopes.snapshot();
    assert_eq!((now.scopes, now.evicted, now.refused), (100, 9_900, 0));
    assert_eq!(scopes.evict_idle(), 100);
}

#[test]
fn a_panic_in_is_idle_loses_no_scope_and_no_place() {
    let panics = Arc::new(AtomicBool::new(false));
    let shared = Arc::clone(&panics);
    let builder = ScopesBuilder::new(move |_| {
        let panics = Arc::clone(&shared);
        let fragile = move || {
            assert!(!panics.load(Ordering::SeqCst), "it panics on purpose");
            true
        };
        Ok(Judged(Legacy::new(), fragile))
    });
    let scopes = builder.max_scopes(2).build().unwrap();
    for key in ["a", "b"] {
        drop(scopes.get(key).unwrap());
    }
    panics.store(true, Ordering::SeqCst);
    for _ in 0..5 {
        let get = || drop(scopes.get("c"));
        assert!(catch_unwind(AssertUnwindSafe(get)).is_err());
        assert!(catch_unwind(AssertUnwindSafe(|| scopes.evict_idle())).is_err());
    }
    let now = scopes.snapshot();
    assert_eq!((now.scopes, now.evicted), (2, 0));
    assert!(scopes.find("a").is_some() && scopes.find("b").is_some());
    assert!(scopes.find("c").is_none(), "nothing is left of it");
    panics.store(false, Ordering::SeqCst);
    assert!(scopes.get("c").is_ok() && scopes.get("d").is_ok());
    assert_eq!(scopes.snapshot().evicted, 2, "both stood in the line");
    assert_eq!((scopes.evict_idle(), scopes.snapshot().scopes), (2, 0));
}

#[test]
fn a_panic_while_a_strategy_is_made_loses_no_place() {
    let panics = Arc::new(AtomicBool::new(true));
    let (made, keyed) = (Arc::clone(&panics), Arc::clone(&panics));
    let builder = ScopesBuilder::new(move |key: Option<&str>| {
        let told = key == Some("made") && made.load(Ordering::SeqCst);
        assert!(!told, "told to panic");
        Ok(Legacy::new())
    });
    let scopes = builder.exceptions(move |key| {
        let told = key == "keyed" && keyed.load(Ordering::SeqCst);
        assert!(!told, "told to panic");
        None
    });
    let scopes = scopes.max_scopes(2).build().unwrap();
    for key in ["made", "keyed"].repeat(3) {
        let get = || drop(scopes.get(key));
        assert!(catch_unwind(AssertUnwindSafe(get)).is_err());
        assert_eq!(scopes.snapshot().scopes, 0);
    }
    panics.store(false, Ordering::SeqCst);
    for key in ["made", "keyed"] {
        drop(scopes.get(key).unwrap());
    }
    let now = scopes.snapshot();
    assert_eq!((now.scopes, now.evicted), (2, 0));
    assert_eq!(scopes.evict_idle(), 2);
}

#[test]
fn threads_that_ask_for_one_key_find_the_one_place() {
    for _ in 0..2_000 {
        let scopes = standard(1);
        let start = Barrier::new(4);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    start.wait();
                    assert!(scopes.get("a").is_ok(), "there is room");
                });
            }
        });
        let now = scopes.snapshot();
        assert_eq!((now.scopes, now.refused, now.evicted), (1, 0, 0));
    }
}

/// Each strategy shares the jitter, so that its count is of the strategies there are. The map lets
/// what was taken out of it go later, some at a time.
#[test]
fn strategies_of_scopes_that_are_gone_are_dropped() {
    for removed in [false, true] {
        let random = Fixed::whole();
        let jitter = random.clone();
        let builder = ScopesBuilder::new(move |_| {
            let jitter = jitter.clone();
            Standard::builder().random(jitter).build()
        });
        let scopes = builder.max_scopes(10).build().unwrap();
        for number in 0..2_000 {
            let key = number.to_string();
            drop(scopes.get(&key).unwrap());
            if removed {
                assert!(scopes.remove(&key));
            }
        }
        assert!(Arc::strong_count(&random) < 500, "{removed}");
    }
}
