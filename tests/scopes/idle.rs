//! When a scope that is not used any more is idle: by each law, after any history.
//!
//! A service with a key for each tenant sees most keys once. Java's and .NET's limiters by key drop
//! what was not used for a while, whatever state it is in: .NET's `PartitionedRateLimiter` after ten
//! seconds of a full bucket (<https://github.com/dotnet/runtime>, `DefaultPartitionedRateLimiter`).
#![expect(
    clippy::arithmetic_side_effects,
    reason = "a test may overflow, and fail"
)]

use core::time::Duration;

use crate::support::{Arc, Fixed, Hands, ms};
use paceline::{
    Adaptive, ControlLaw, Failure, RetryAfter, RetryStrategy, RetryStrategyExt, Scopes, Standard,
    law::{DeclaredSettings, Dimension, LimitReport, LimitReports, PacedSettings, Reset},
    strategy::Reports,
};

const KEYS: usize = 100;
const HOUR: Duration = Duration::from_secs(3_600);

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

const LAWS: [&str; 7] = [
    "published",
    "paced",
    "bulk",
    "fixed",
    "ceiling",
    "declared",
    "declared twice",
];

fn scopes_of(law: &str, hands: &Arc<Hands>, max_attempts: u32) -> Scopes<Adaptive> {
    let builder = Adaptive::builder().clock(hands.clone());
    let builder = builder.random(Fixed::whole()).max_attempts(max_attempts);
    let fixed = PacedSettings::fixed(100, secs(1)).unwrap();
    let ceiling = PacedSettings::builder().ceiling(100, secs(1)).build();
    let declared = DeclaredSettings::new().max_pause(secs(10 * 3_600));
    let builder = match law {
        "paced" => builder.paced(PacedSettings::new()),
        "bulk" => builder.bulk(),
        "fixed" => builder.paced(fixed),
        "ceiling" => builder.paced(ceiling.unwrap()),
        "declared" => builder.declared(declared),
        "declared twice" => {
            let tokens = declared.dimension(Dimension::Tokens);
            builder.declared(declared).also(tokens)
        }
        _ => builder.law(ControlLaw::Aws),
    };
    builder.scopes().max_scopes(KEYS).build().unwrap()
}

type Answers = fn(u32) -> (Result<(), Failure>, Option<LimitReport>);

fn left(remaining: u64) -> LimitReport {
    LimitReport::new(remaining).limit(100)
}

/// Each history of a key, by its name: what the service answers to one request after the other.
const HISTORIES: [(&str, u32, Answers); 12] = [
    ("a success", 1, |_| (Ok(()), None)),
    ("successes", 30, |_| (Ok(()), None)),
    ("a throttle", 1, |_| (Err(Failure::throttling()), None)),
    ("throttles", 5, |_| (Err(Failure::throttling()), None)),
    ("a hint", 1, |_| {
        let hint = RetryAfter::AtLeast(secs(30));
        (Err(Failure::throttling().with_retry_after(hint)), None)
    }),
    ("a throttle, then successes", 20, |n| match n {
        0 => (Err(Failure::throttling()), None),
        _ => (Ok(()), None),
    }),
    ("an error", 1, |_| (Err(Failure::transient()), None)),
    ("a window", 3, |n| {
        let report = left(u64::from(60 - n)).window(secs(60));
        (Ok(()), Some(report.reset(Reset::In(secs(60)))))
    }),
    ("a window that is used up", 3, |_| {
        let report = left(0).window(secs(60)).reset(Reset::In(secs(60)));
        (Ok(()), Some(report))
    }),
    ("no window", 3, |n| {
        let report = left(u64::from(60 - n)).reset(Reset::In(secs(60)));
        (Ok(()), Some(report))
    }),
    ("no reset", 3, |n| {
        let report = left(u64::from(60 - n)).window(secs(60));
        (Ok(()), (n < 2).then_some(report))
    }),
    ("a refill", 3, |n| {
        let report = left(u64::from(60 - n)).window(secs(60)).refills(true);
        (Ok(()), Some(report))
    }),
];

/// Plays `history` on every key, each request within a trip of 20 ms.
fn play(scopes: &Scopes<Adaptive>, hands: &Hands, several: bool, requests: u32, answers: Answers) {
    for key in 0..KEYS {
        let key = format!("tenant-{key}");
        for number in 0..requests {
            let operation = scopes.operation().scope(&key);
            let operation = if several {
                operation.weights([1, 1])
            } else {
                operation
            };
            let operation = operation
                .deadline(secs(120))
                .max_retry_after(3 * HOUR)
                .reporting();
            let _ = operation.sleep_by(|span| hands.sleep(span)).run(|_| {
                hands.sleep(ms(20));
                let (answer, report) = answers(number);
                let mut limits = LimitReports::new();
                if let Some(report) = report {
                    limits.push(report);
                    limits.push(report.dimension(Dimension::Tokens));
                    return Reports::new().declaring(&limits).beside(answer);
                }
                Reports::new().beside(answer)
            });
        }
    }
}

#[test]
fn what_was_not_used_for_an_hour_makes_room_whatever_came_before() {
    let mut kept = Vec::new();
    for law in LAWS {
        for (history, requests, answers) in HISTORIES {
            let hands = Arc::new(Hands::default());
            let scopes = scopes_of(law, &hands, 3);
            play(&scopes, &hands, law == "declared twice", requests, answers);
            hands.sleep(HOUR);
            let dropped = scopes.evict_idle();
            if dropped < KEYS {
                kept.push((law, history, KEYS - dropped));
            }
        }
    }
    assert_eq!(kept, []);
}

/// A retry that failed has used up quota, which only a success brings back.
#[test]
fn a_quota_that_was_not_paid_from_for_an_hour_is_as_a_new_one() {
    let hands = Arc::new(Hands::default());
    let template = Standard::builder().clock(hands.clone());
    let scopes = template.scopes().max_scopes(KEYS).build().unwrap();
    for key in 0..KEYS {
        let key = format!("tenant-{key}");
        let operation = scopes.operation().scope(&key);
        let ended = operation
            .sleep_by(|span| hands.sleep(span))
            .run(|_| Err::<(), _>(Failure::transient()));
        ended.unwrap_err();
    }
    assert_eq!(scopes.evict_idle(), 0, "their quotas are not full");
    hands.sleep(HOUR);
    assert_eq!(scopes.evict_idle(), KEYS);
}

/// What the law still knows of use is kept: a new key is refused, and no state is lost.
#[test]
fn what_was_just_throttled_is_kept() {
    for law in ["published", "paced", "declared"] {
        let hands = Arc::new(Hands::default());
        let scopes = scopes_of(law, &hands, 1);
        play(&scopes, &hands, false, 1, |_| {
            (Err(Failure::throttling()), None)
        });
        hands.sleep(secs(600));
        assert_eq!(scopes.evict_idle(), 0, "{law}");
        assert!(scopes.get("new").is_err(), "{law}");
    }
}

/// The service has said for how long nothing goes.
#[test]
fn a_pause_that_goes_on_is_not_forgotten() {
    let hands = Arc::new(Hands::default());
    let scopes = scopes_of("declared", &hands, 1);
    let banned = |_| {
        let hint = RetryAfter::AtLeast(secs(2 * 3_600));
        let report = left(0).window(secs(60)).reset(Reset::In(secs(60)));
        (
            Err(Failure::throttling().with_retry_after(hint)),
            Some(report),
        )
    };
    play(&scopes, &hands, false, 1, banned);
    hands.sleep(HOUR);
    assert_eq!(scopes.evict_idle(), 0);
    hands.sleep(HOUR);
    assert_eq!(scopes.evict_idle(), KEYS);
}

#[test]
fn a_scope_in_use_is_kept_for_ever() {
    let hands = Arc::new(Hands::default());
    let builder = Adaptive::builder()
        .law(ControlLaw::Paced)
        .clock(hands.clone());
    let scopes = builder.scopes().max_scopes(1).build().unwrap();
    let used = scopes.get("used").unwrap();
    hands.sleep(HOUR * 1_000);
    assert!(used.is_idle());
    assert_eq!(scopes.evict_idle(), 0);
}
