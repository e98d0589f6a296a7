//! Scopes: a state for each key, of which tokens find theirs again.
#![expect(
    clippy::unchecked_time_subtraction,
    reason = "a test may overflow, and fail"
)]

use core::time::Duration;

use crate::support::{
    Arc, Hands,
    scopes::{adaptive, standard, throttle},
};
use paceline::{
    Adaptive, Failure, RetryStrategy, RetryStrategyExt, Scopes, Standard,
    config::SettingsError,
    operation::StopReason,
    scope::{ScopeRefused, ScopesBuilder},
    strategy::{NotAdmitted, Reports, SendRequest, SendTurn},
};

fn available(scopes: &Scopes<Standard>, key: &str) -> u32 {
    scopes.find(key).unwrap().quota().available()
}

#[test]
fn an_operation_by_name_goes_to_a_state_of_its_own() {
    let scopes = standard(10);
    let fail = |scope: Option<&str>| {
        let operation = scopes.operation().sleep_by(|_| {});
        let stopped = match scope {
            Some(scope) => operation
                .scope(scope)
                .run(|_| Err::<(), _>(Failure::transient())),
            None => operation.run(|_| Err::<(), _>(Failure::transient())),
        };
        assert_eq!(
            stopped.unwrap_err().why(),
            StopReason::MaxAttempts { max: 3 }
        );
    };
    fail(Some("a"));
    assert_eq!(available(&scopes, "a"), 500 - 2 * 14);
    assert!(scopes.find("b").is_none());
    fail(Some("b"));
    fail(Some("a"));
    assert_eq!(available(&scopes, "a"), 500 - 4 * 14);
    assert_eq!(available(&scopes, "b"), 500 - 2 * 14);
    assert_eq!(scopes.shared().quota().available(), 500);
    fail(None);
    assert_eq!(scopes.shared().quota().available(), 500 - 2 * 14);
    assert_eq!(available(&scopes, "a"), 500 - 4 * 14);
}

#[test]
fn a_token_finds_its_scope_again_and_pays_back_there() {
    let scopes = standard(10);
    let token = scopes.acquire_initial_token(Some("a")).unwrap();
    let token = scopes.refresh_retry_token(token, &Failure::transient(), Reports::new());
    let token = token.unwrap();
    assert_eq!((token.attempt(), available(&scopes, "a")), (2, 486));
    assert_eq!(scopes.count_in_use(), 1);
    scopes.record_success(token, Reports::new()).unwrap();
    assert_eq!(available(&scopes, "a"), 500);
    assert_eq!(scopes.count_in_use(), 0, "the operation is over");
}

#[test]
fn a_hoisted_handle_and_an_operation_by_name_share_the_state() {
    let scopes = standard(10);
    let handle = scopes.get("a").unwrap();
    assert_eq!(handle.key(), "a");
    let token = handle.acquire_initial_token(None).unwrap();
    let token = handle.refresh_retry_token(token, &Failure::transient(), Reports::new());
    assert_eq!(available(&scopes, "a"), 486);
    // A token of the scope's strategy names no scope, so that for the scopes it is not theirs.
    let foreign = scopes
        .record_success(token.unwrap(), Reports::new())
        .unwrap_err();
    handle.record_success(foreign.0, Reports::new()).unwrap();
    assert_eq!(available(&scopes, "a"), 500);
}

#[test]
fn a_throttled_scope_slows_no_other() {
    let (scopes, hands) = adaptive(10);
    throttle(&scopes, "hot");
    let send = |key: &str| {
        let before = hands.elapsed();
        let operation = scopes.operation().scope(key);
        let operation = operation.sleep_by(|span| hands.sleep(span));
        operation.run(|_| Ok::<_, Failure>(())).unwrap();
        hands.elapsed() - before
    };
    assert_eq!(send("cold"), Duration::ZERO);
    assert_eq!(send("hot"), Duration::from_secs(2), "at 0.5 tokens/s");
    assert_eq!(send("cold"), Duration::ZERO);
}

#[test]
fn a_strategy_that_fails_fast_does_so_for_the_scope_alone() {
    let template = Adaptive::builder()
        .law(paceline::ControlLaw::Aws)
        .fail_fast(true);
    let template = template.clock(Arc::new(Hands::default()));
    let scopes = template.scopes().build().unwrap();
    throttle(&scopes, "hot");
    let run = |key| scopes.operation().scope(key).run(|_| Ok::<_, Failure>(()));
    let wait = Duration::from_secs(2);
    assert_eq!(
        run("hot").unwrap_err().why(),
        StopReason::SendRefused { wait }
    );
    assert!(run("cold").is_ok());
    let token = scopes.acquire_initial_token(Some("hot")).unwrap();
    let admit = |request| scopes.admit(&mut SendTurn::new(), request);
    let refused = NotAdmitted::Refused { wait };
    assert_eq!(admit(SendRequest::new().token(&token)), Err(refused));
    assert!(admit(SendRequest::new()).is_ok(), "the shared state");
}

#[test]
fn a_key_is_any_string_up_to_its_bound_in_bytes() {
    let scopes = Standard::builder().scopes().build().unwrap();
    let (longest, longer) = ("a".repeat(1_280), "a".repeat(1_281));
    for key in ["", longest.as_str(), "\0\n", "\u{10ffff}"] {
        assert_eq!(scopes.get(key).unwrap().key(), key);
    }
    let (len, max) = (1_281, 1_280);
    let too_long = ScopeRefused::KeyTooLong { len, max };
    assert_eq!(scopes.get(&longer).unwrap_err(), too_long);
    let characters = "\u{10ffff}".repeat(320) + "a";
    assert_eq!(scopes.get(&characters).unwrap_err(), too_long);
    assert!(scopes.find(&longer).is_none());
    assert_eq!(
        too_long.to_string(),
        "a scope's key of 1281 bytes, more than 1280"
    );
    let now = scopes.snapshot();
    assert_eq!((now.scopes, now.refused), (4, 2));
    let token = scopes.acquire_initial_token(Some(&longer));
    assert!(
        scopes
            .record_success(token.unwrap(), Reports::new())
            .is_ok(),
        "unscoped"
    );
}

#[test]
fn wrong_settings_are_found_when_they_are_used() {
    let none = Standard::builder().scopes().max_scopes(0).build();
    assert_eq!(none.unwrap_err(), SettingsError::ZeroMaxScopes);
    let wrong = SettingsError::ZeroMaxAttempts;
    let standard = Standard::builder().max_attempts(0).scopes().build();
    assert_eq!(standard.unwrap_err(), wrong);
    let adaptive = Adaptive::builder()
        .law(paceline::ControlLaw::Aws)
        .max_attempts(0)
        .scopes()
        .build();
    assert_eq!(adaptive.unwrap_err(), wrong);
    let builder = Standard::builder().scopes().max_scopes(1);
    let scopes = builder
        .exceptions(|key| (key == "odd").then(|| Standard::builder().max_attempts(0).build()))
        .build()
        .unwrap();
    assert_eq!(
        scopes.get("odd").unwrap_err(),
        ScopeRefused::Settings(wrong)
    );
    let now = scopes.snapshot();
    assert_eq!((now.scopes, now.refused), (0, 1), "its place is free again");
    assert!(scopes.get("even").is_ok());
}

#[test]
fn settings_are_the_templates_unless_an_exception_says_otherwise() {
    let builder = Standard::builder().max_attempts(2).scopes();
    let scopes = builder
        .exceptions(|key| (key == "b").then(|| Standard::builder().max_attempts(9).build()))
        .exceptions(|key| (key == "c").then(|| Standard::builder().max_attempts(4).build()))
        .build()
        .unwrap();
    let max = |key| scopes.get(key).unwrap().settings().max_attempts;
    assert_eq!((max("a"), max("b"), max("c")), (2, 9, 4));
    assert_eq!(scopes.shared().settings().max_attempts, 2);
    let settings = |key| core::ptr::from_ref(scopes.get(key).unwrap().settings());
    assert_eq!(settings("a"), settings("d"), "shared in memory");
    assert_ne!(settings("a"), settings("b"));
}

#[test]
fn a_quota_that_was_given_is_shared_and_does_not_keep_scopes() {
    let quota = Arc::new(paceline::RetryQuota::new(100));
    let template = Standard::builder().quota(quota.clone());
    let scopes = template.scopes().max_scopes(1).build().unwrap();
    for key in ["a", "b"] {
        let token = scopes.acquire_initial_token(Some(key)).unwrap();
        drop(
            scopes
                .refresh_retry_token(token, &Failure::transient(), Reports::new())
                .unwrap(),
        );
    }
    assert_eq!(quota.available(), 100 - 2 * 14);
    assert_eq!(scopes.snapshot().evicted, 1);
}

#[test]
fn clones_share_and_scopes_built_apart_do_not() {
    let (scopes, apart) = (standard(10), standard(10));
    let clone = scopes.clone();
    let token = scopes.acquire_initial_token(Some("a")).unwrap();
    let token = clone.refresh_retry_token(token, &Failure::transient(), Reports::new());
    let token = token.unwrap();
    assert_eq!(available(&clone, "a"), 486);
    drop(apart.get("a").unwrap());
    assert_eq!(available(&apart, "a"), 500);

    // A token of the one is foreign to the other, which changes nothing and gives it back.
    let refused = apart.refresh_retry_token(token, &Failure::transient(), Reports::new());
    let token = refused.unwrap_err().into_foreign();
    let token = token.expect("it is foreign");
    let token = apart.record_success(token, Reports::new()).unwrap_err().0;
    assert_eq!(scopes.count_in_use(), 1, "it holds its scope still");
    assert_eq!(
        (available(&scopes, "a"), available(&apart, "a")),
        (486, 500)
    );
    scopes.record_success(token, Reports::new()).unwrap();
    assert_eq!(available(&scopes, "a"), 500);
    let alone = Standard::new().acquire_initial_token(None).unwrap();
    assert!(scopes.record_success(alone, Reports::new()).is_err());
}

#[test]
fn scopes_within_scopes_are_refused() {
    let builder = ScopesBuilder::new(|_| Ok(Standard::builder().scopes().build().unwrap()));
    let scopes = builder.max_scopes(1).build().unwrap();
    let _used = scopes.get("a").unwrap();
    // The second key is refused outside, and taken inside.
    for key in ["a", "one more"] {
        let sends = core::cell::Cell::new(0);
        let stopped = scopes.operation().scope(key).run(|_| {
            sends.set(sends.get() + 1);
            Err::<(), _>(Failure::transient())
        });
        let why = stopped.unwrap_err().why();
        assert_eq!(why, StopReason::InitialTokenRefused, "{key}");
        assert_eq!(sends.get(), 1, "{key}");
    }
}

#[test]
fn what_they_print_names_what_counts() {
    let scopes = standard(2);
    let handle = scopes.get("a").unwrap();
    assert!(format!("{scopes:?}").contains("max_scopes: 2"));
    assert!(format!("{handle:?}").contains("key: \"a\""));
    let full = ScopeRefused::Full { max: 2 };
    assert_eq!(
        full.to_string(),
        "2 scopes are kept, and none that was looked at is idle"
    );
}

#[test]
fn scopes_answer_as_their_strategy_does() {
    let scopes = standard(3);
    assert_eq!(scopes.snapshot().max_scopes, 3);
    assert!(!scopes.obeys_limits());
    let token = scopes.acquire_initial_token(Some("a")).unwrap();
    assert!(scopes.charge(&token).is_none());
    let template = Adaptive::builder().declared(paceline::law::DeclaredSettings::new());
    let scopes = template.scopes().build().unwrap();
    assert!(scopes.obeys_limits());
    let mut token = scopes.acquire_initial_token(Some("a")).unwrap();
    let admitted = scopes.admit(&mut SendTurn::new(), SendRequest::new().token(&token));
    token.sent(admitted.unwrap());
    assert!(scopes.charge(&token).is_some());
}
