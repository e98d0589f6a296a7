//! throttle-net 2.0.0 (<https://crates.io/crates/throttle-net>): faults of keys, of hints and of
//! retries.

use core::time::Duration;

use paceline::{
    Adaptive, Clock, Failure, Operation, RetryAfter, RetryStrategy, Scopes, Standard,
    backoff::SeededRandom,
    classify::{Classifier, HeaderLimits, HttpClassifier, HttpResponseParts},
    law::{DeclaredSettings, LimitReport, PacedSettings, Reset},
    operation::{Next, StopReason, Verdict},
    scope::ScopeRefused,
    strategy::Reports,
};

use crate::support::{Arc, Hands, ms};

const SECOND: Duration = Duration::from_secs(1);

/// Scopes of eight tokens a second with a bucket of one, `most` of them.
fn eights(most: usize) -> (Scopes<Adaptive>, Arc<Hands>) {
    let hands = Arc::new(Hands::default());
    let eight = PacedSettings::fixed(8, SECOND)
        .and_then(|fixed| fixed.to_builder().burst(ms(125)).build())
        .expect("in range");
    let template = Adaptive::builder().paced(eight).clock(hands.clone());
    let scopes = template.scopes().max_scopes(most).build();
    (scopes.expect("in range"), hands)
}

/// Takes the one token of a key.
fn drain(scopes: &Scopes<Adaptive>, key: &str, hands: &Hands) {
    let scope = scopes.get(key).expect("there is room");
    assert!(scope.send_rate().try_acquire(hands.now()).is_ok());
}

// tests/regressions.rs: tn2_007_ttl_eviction_keeps_reservation_debt,
// r03_peek_and_available_see_a_forgotten_keys_debt
#[test]
fn a_key_in_debt_is_kept_until_it_is_paid() {
    let (scopes, hands) = eights(1);
    {
        let scope = scopes.get("a").expect("there is room");
        let permit = scope.send_rate().try_acquire(hands.now()).expect("full");
        let settled = scope.send_rate().settle(hands.now(), permit, 81);
        settled.expect("a debit");
    }
    assert_eq!(scopes.evict_idle(), 0);
    assert_eq!(
        scopes.get("b").map(drop),
        Err(ScopeRefused::Full { max: 1 })
    );
    let seen = scopes.find("a").expect("it is kept");
    let wait = seen.send_rate().try_acquire(hands.now());
    assert_eq!(wait, Err(ms(81 * 125)), "80 are owed, and one is asked for");
    drop(seen);
    hands.sleep(ms(81 * 125 - 1));
    assert_eq!(scopes.evict_idle(), 0);
    hands.sleep(ms(1));
    assert_eq!(scopes.evict_idle(), 1);
}

// tests/regressions.rs: tn2_011_a_flood_at_the_cap_no_longer_locks_newcomers_out,
// tn2_011_key_flood_lockout_needs_twice_the_cap
#[test]
fn a_flood_of_drained_keys_locks_out_until_one_recovers() {
    let (scopes, hands) = eights(8);
    for key in 0..8 {
        drain(&scopes, &key.to_string(), &hands);
    }
    // Paceline keeps no ledger of debts: no drained key is forgotten, so that the next is refused.
    let refused = scopes.get("newcomer").map(drop);
    assert_eq!(refused, Err(ScopeRefused::Full { max: 8 }));
    // Its operations go by the shared strategy, and are not lost.
    assert!(scopes.acquire_initial_token(Some("newcomer")).is_ok());
    hands.sleep(ms(125));
    assert!(scopes.get("newcomer").is_ok());
    let now = scopes.snapshot();
    assert_eq!((now.scopes, now.evicted, now.refused), (8, 1, 2));
}

/// Asks for the next step until there is an attempt; returns how long that took.
fn send<S: RetryStrategy>(
    attempts: &mut paceline::operation::Attempts<S>,
    hands: &Hands,
) -> Duration {
    let start = hands.elapsed();
    loop {
        match attempts.next(hands, None) {
            Next::Send(_) => return hands.elapsed().saturating_sub(start),
            Next::Sleep(rest) | Next::InLine(rest) => hands.sleep(rest.span()),
            other => panic!("{other:?}"),
        }
    }
}

// tests/regressions.rs: tn2_008_hostile_headers_cannot_pause_for_years
#[test]
fn hostile_headers_stop_no_client_for_years() {
    let mut headers = http::HeaderMap::new();
    for (name, value) in [
        ("retry-after", "999999999"),
        ("x-ratelimit-limit", "100"),
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "9223372036854775807"),
    ] {
        headers.insert(name, value.parse().expect("it is a value"));
    }
    let parts = HttpResponseParts::new(http::StatusCode::TOO_MANY_REQUESTS, &headers);
    let failure = HttpClassifier::new().classify(&parts).expect("429");
    let reports = HeaderLimits::new().read(&parts);
    let hour = Duration::from_secs(3_600);
    let listens = Adaptive::builder().declared(DeclaredSettings::new());
    let learns = Adaptive::builder().paced(PacedSettings::new());
    for (builder, longest) in [(listens, hour), (learns, ms(61_000))] {
        let hands = Arc::new(Hands::default());
        let strategy = builder.clock(hands.clone()).build().expect("in range");
        let mut attempts = Operation::new(&strategy).start();
        send(&mut attempts, &hands);
        let heard = Reports::at(&*hands).declaring(&reports);
        let verdict = attempts.failed(&failure, heard).expect("it was sent");
        // The answer says 31 years: the operation ends, and its caller learns why.
        let Verdict::Stop(stop) = verdict else {
            panic!("{verdict:?}");
        };
        let StopReason::RetryAfterTooLong { asked, .. } = stop.why() else {
            panic!("{stop:?}");
        };
        assert_eq!(asked, Duration::from_secs(999_999_999));
        let waited = send(&mut Operation::new(&strategy).start(), &hands);
        assert!(waited <= longest + SECOND, "{waited:?} of {longest:?}");
    }
}

// tests/regressions.rs: tn2_008_the_pause_ceiling_is_configurable
#[test]
fn the_longest_pause_of_a_declared_limit_is_a_setting() {
    let hands = Arc::new(Hands::default());
    let settings = DeclaredSettings::new().max_pause(10 * SECOND);
    let builder = Adaptive::builder().declared(settings);
    let strategy = builder.clock(hands.clone()).build().expect("in range");
    let mut attempts = Operation::new(&strategy).start();
    send(&mut attempts, &hands);
    let minute = Duration::from_secs(60);
    let declared = LimitReport::new(99).limit(100).window(minute);
    let reports = declared.reset(Reset::In(minute)).into();
    let heard = Reports::at(&*hands).declaring(&reports);
    attempts.succeeded(heard).expect("it was sent");
    let mut attempts = Operation::new(&strategy).start();
    send(&mut attempts, &hands);
    let day = RetryAfter::AtLeast(Duration::from_secs(86_400));
    let told = Failure::throttling().with_retry_after(day);
    let verdict = attempts.failed(&told, Reports::at(&*hands));
    assert!(matches!(verdict, Ok(Verdict::Stop(_))), "{verdict:?}");
    let waited = send(&mut Operation::new(&strategy).start(), &hands);
    assert!(waited >= 10 * SECOND && waited < 11 * SECOND, "{waited:?}");
}

// tests/retry.rs: decorrelated_jitter_scatters_a_thundering_herd
#[test]
fn clients_that_failed_together_do_not_come_back_together() {
    let mut delays: Vec<_> = (0..1_000)
        .map(|seed| {
            let random = Arc::new(SeededRandom::new(seed));
            let client = Standard::builder()
                .random(random)
                .build()
                .expect("in range");
            let token = client.acquire_initial_token(None).expect("the first");
            let again = client.refresh_retry_token(token, &Failure::transient(), Reports::new());
            again.expect("the quota is full").delay()
        })
        .collect();
    delays.sort();
    assert!(delays[999] <= ms(50), "the backoff of a first retry");
    // Of 50 ms each millisecond gets its twentieth of a thousand, and none much more.
    let most = delays.iter().map(|from| {
        let until = *from + ms(1);
        delays
            .iter()
            .filter(|at| (*from..until).contains(at))
            .count()
    });
    let most = most.max().expect("there are a thousand");
    assert!(most <= 45, "{most} in one millisecond");
    delays.dedup();
    assert_eq!(delays.len(), 1_000, "no two at one time");
}
