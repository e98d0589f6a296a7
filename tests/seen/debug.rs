//! `Debug` of every public type: one readable line of values.
#![expect(clippy::arithmetic_side_effects, reason = "small numbers")]

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use core::any::type_name_of_val;
use core::fmt::Debug;
use core::time::Duration;
use std::path::PathBuf;
use std::sync::Mutex;

use http::{HeaderMap, StatusCode};
use paceline::{
    AcquireError, Adaptive, ControlLaw, Execution, Failure, Fault, Idempotency, Legacy,
    MonotonicClock, Operation, Outcome, Part, RetryAfter, RetryQuota, RetrySafety, RetryStrategy,
    RetryStrategyExt, SendLimiter, SendPermit, SendPool, SendRate, SendSet, Standard, Timestamp,
    TokioClock, WeightError,
    aws_config::{
        ConfigError, ConfigFault, ProfileFile, ProfileFileKind, RetryConfig, RetryMode,
        SettingFault, SettingOrigin,
    },
    backoff::{ExponentialBackoff, Random, SeededRandom},
    classify::{
        BodyBeginning, BodyEnd, HeaderLimits, HttpClassifier, HttpResponseParts, IoErrorClassifier,
        ServiceUnavailable,
    },
    config::{RetryGeneration, SettingsError},
    headers::AttemptHeader,
    law::{
        DeclaredSettings, Dimension, LimitName, LimitReport, LimitReports, Observed, PacedSettings,
        Recorded, Reset, Spend,
    },
    operation::{
        Next, NotSending, OuterAttempt, Plain, Reported, Reporting, StopReason, Verdict, Waiter,
    },
    pool::PoolError,
    scope::ScopeRefused,
    set::{Binding, SetError, Weights},
    strategy::{
        Event, ForeignToken, GatePlace, InitialTokenRefused, NotAdmitted, Reports, RetryRefused,
        SendRequest, SendTurn, StrategyId,
    },
    wait::{AsyncIoSleep, DefaultSleep, Interrupt},
};

const SECOND: Duration = Duration::from_secs(1);

/// A value of a public type: the type's name, and the value in `Debug`.
#[derive(Default)]
struct Shown(Vec<(String, String)>);

impl Shown {
    fn add<T: Debug>(&mut self, value: &T) {
        let name = type_name_of_val(value);
        let path = name.split('<').next().unwrap_or(name);
        let name = path.rsplit("::").next().unwrap_or(path);
        self.0.push((name.to_owned(), format!("{value:?}")));
    }
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_nanos(seconds * 1_000_000_000)
}

/// No jitter: the most that there can be.
#[derive(Debug)]
struct Whole;

impl Random for Whole {
    fn next_u64(&self) -> u64 {
        u64::MAX
    }
}

#[allow(clippy::too_many_lines, reason = "one line for each type")]
fn every_type() -> Shown {
    let mut shown = Shown::default();
    macro_rules! show {
        ($($value:expr),* $(,)?) => { $(shown.add(&$value);)* };
    }
    let fixed = PacedSettings::fixed(10, SECOND).expect("in range");
    let builder = fixed.to_builder().burst(SECOND / 10);
    let fixed = builder.build().expect("in range");
    let rate = SendRate::paced(fixed, at(0));

    // backoff
    let backoff = ExponentialBackoff::new(SECOND / 20, 20 * SECOND);
    show!(backoff, SeededRandom::new(7));

    // classify
    let headers = HeaderMap::from_iter([("retry-after".parse().expect("a name"), 7.into())]);
    show!(
        HeaderLimits::new(),
        HttpClassifier::new().with_service("sts"),
        HttpResponseParts::new(StatusCode::TOO_MANY_REQUESTS, &headers),
        IoErrorClassifier,
        ServiceUnavailable::Throttle,
        paceline::classify::RefusalClassifier::new(),
        paceline::classify::RefusalScope::Caller,
        paceline::classify::BodyRefusals::GraphQl,
        paceline::classify::BodyRefusals::Slack
            .read(br#"{"ok": false, "error": "ratelimited"}"#)
            .expect("it is an answer"),
    );
    let busy = HttpResponseParts::new(StatusCode::TOO_MANY_REQUESTS, &headers);
    let refusal = paceline::classify::RefusalClassifier::new().read(&busy);
    show!(refusal.expect("429 is one"));

    // config
    let unclosed = ProfileFile::parse(ProfileFileKind::Config, "/home/.aws/config", "[default\n");
    show!(
        ConfigError::from(ConfigFault::File(unclosed.unwrap_err())),
        ConfigError::from(ConfigFault::Setting {
            origin: SettingOrigin::Variable("AWS_RETRY_MODE"),
            value: "fast".to_owned(),
            fault: SettingFault::UnknownMode,
        }),
        ConfigError::from(ConfigFault::NotUtf8 {
            file: PathBuf::from("/home/.aws/config"),
        }),
        RetryGeneration::V2_1,
        RetryMode::Adaptive,
        SettingsError::ZeroMaxAttempts,
        RetryConfig::default(),
        RetryConfig::loader().mode(RetryMode::Adaptive),
        Standard::new().settings(),
        Adaptive::builder().paced(fixed),
        Standard::builder().max_attempts(5).long_polling(true),
    );

    // law
    let report = LimitReport::new(9).limit(10).window(60 * SECOND);
    let report = report.reset(Reset::In(SECOND)).dimension(Dimension::Tokens);
    let report = report.policy(LimitName::new("burst"));
    let mut reports = LimitReports::new();
    reports.push(report);
    reports.ignore();
    let reports = reports.with_date(5 * SECOND);
    show!(
        Dimension::Named(LimitName::new("mbx")),
        PacedSettings::fixed(0, SECOND).unwrap_err(),
        Reset::At(5 * SECOND),
        Spend::Even,
        DeclaredSettings::new(),
        LimitName::new("burst"),
        report,
        reports,
        fixed,
        PacedSettings::new(),
        builder,
    );

    let (bytes, end) = (b"<Code>SlowDown</Code>".to_vec(), BodyEnd::Failed("lost"));
    show!(end, BodyBeginning { bytes, end });

    // operation
    let strategy = Standard::builder().build().expect("the defaults");
    let mut attempts = Operation::new(&strategy).scope("orders").start();
    let next = attempts.next(&at(1), None);
    show!(attempts, next);
    let Next::Send(attempt) = next else {
        panic!("{next:?}");
    };
    let verdict = attempts.failed(&Failure::not_retryable(), Reports::at(&at(1)));
    let verdict = verdict.expect("it was under way");
    let Verdict::Stop(stop) = &verdict else {
        panic!("{verdict:?}");
    };
    show!(attempt, verdict, stop, StopReason::MaxAttempts { max: 3 });
    let mut attempts = Operation::new(&strategy).start();
    attempts.next(&at(1), None);
    show!(attempts.detach().expect("it is under way"), NotSending);
    show!(OuterAttempt::new(), AttemptHeader::EnvoyAttemptCount);
    let run = Operation::new(&strategy).run(|_| Err::<(), _>(Failure::not_retryable()));
    show!(run.unwrap_err(), Waiter::new(DefaultSleep::new()));
    show!(Operation::new(&strategy).scope("orders").deadline(SECOND));
    let costs = Weights::from([1, 600]);
    let reported = Reports::new().costing(&costs).beside(Ok::<_, Failure>(7));
    show!(
        reported.expect("it was"),
        Reported::from(7),
        Plain,
        Reporting
    );

    // scope
    let scopes = Adaptive::builder().paced(fixed).scopes();
    show!(scopes, SettingsError::ZeroMaxScopes);
    let scopes = scopes.build().expect("the defaults");
    show!(scopes.get("orders").expect("there is room"), scopes);
    show!(ScopeRefused::Full { max: 2 }, scopes.snapshot());

    // set
    let rates = || Arc::new(SendRate::paced(fixed, at(0)));
    let set = SendSet::new([rates(), rates()]);
    show!(
        set,
        Weights::from([1, 600]),
        Binding {
            limit: 1,
            wait: SECOND
        }
    );
    show!(SetError::Rates { given: 9 });
    let permit = set.try_acquire(at(1), &[1, 1]).expect("tokens are there");
    show!(permit, set.reserve(at(1), &[1, 1]).expect("in range"));
    show!(SendLimiter::new(set));

    // pool
    let pool = SendPool::new([rates(), rates()]).expect("a pool");
    let permit = pool.try_acquire(at(1), 1).expect("tokens are there");
    show!(
        PoolError::<AcquireError>::Members { given: 9, most: 8 },
        pool.snapshot(at(1), 1).next().expect("a member"),
        permit,
        pool.reserve(at(1), 1).expect("in range"),
        pool,
    );

    // snapshot
    let quota = RetryQuota::new(500);
    let _spent = quota.try_acquire(14).expect("it is full");
    let quick = ExponentialBackoff::new(SECOND / 20, SECOND);
    let strategy = Standard::builder().backoff(Arc::new(quick)).max_attempts(2);
    let strategy = strategy.build().expect("nothing is out of range");
    let failing = Operation::new(&strategy).sleep_by(drop);
    let _failed = failing.run(|_| Err::<(), _>(Failure::transient()));
    show!(strategy.snapshot().counts);
    let snapshot = Adaptive::paced().snapshot();
    show!(quota.snapshot(), snapshot.quota, snapshot.counts);
    show!(snapshot, Standard::new().snapshot());
    let two = Adaptive::builder().declared(DeclaredSettings::new());
    let two = two.also(DeclaredSettings::new()).build();
    let two = two.expect("nothing is out of range");
    let mut attempts = Operation::new(&two).weights([1, 1]).start();
    attempts.next(two.clock(), None);
    show!(attempts.charge().expect("it is under way"));

    // strategy
    let builder = Standard::builder().backoff(Arc::new(quick));
    let strategy = builder.random(Arc::new(Whole)).build();
    let strategy = strategy.expect("nothing is out of range");
    let token = || {
        let token = strategy
            .acquire_initial_token(None)
            .expect("no quota for it");
        let token = strategy.refresh_retry_token(token, &Failure::transient(), Reports::new());
        token
            .expect("the quota is full")
            .with_time_left(Some(9 * SECOND))
    };
    let refused = RetryRefused::new(StopReason::MaxAttempts { max: 3 });
    let refused = refused.with_backoff(SECOND).waiting(true);
    show!(
        NotAdmitted::Stalled { span: SECOND },
        NotAdmitted::Wait {
            wait: SECOND,
            look_in: SECOND
        },
        StopReason::NotRetryable,
        ForeignToken(token()),
        InitialTokenRefused,
        Reports::at(&at(1)),
        refused,
        SendRequest::new().at(&at(1)),
        SendTurn::new(),
        GatePlace::default(),
        StrategyId::new(),
    );

    // wait
    let limiter = SendLimiter::new(&rate).clock(at(1));
    show!(
        limiter.token(),
        limiter.token().within(SECOND).acquire(),
        limiter.token().reserve().expect("there is room"),
        AsyncIoSleep::new(),
        DefaultSleep::new(),
        Interrupt::new(),
    );
    let mut attempts = Operation::new(&strategy).start();
    attempts.next(&at(1), None);
    let again = attempts.failed(&Failure::transient(), Reports::at(&at(1)));
    let again = again.expect("it was under way");
    let Verdict::Again(rest) = again else {
        panic!("{again:?}");
    };
    show!(rest, again);
    let sets = SendLimiter::new(SendSet::new([rates(), rates()])).clock(at(1));
    show!(sets.tokens([1, 1]));
    show!(sets.tokens([1, 1]).reserve().expect("in range"));

    // the root
    let two = PacedSettings::fixed(2, SECOND).expect("in range");
    let two = two.to_builder().burst(SECOND).build().expect("in range");
    let slow = SendRate::paced(two, at(0));
    let _first = slow.try_acquire(at(0)).expect("the bucket is full");
    show!(
        AcquireError::NotInTime { wait: SECOND },
        ControlLaw::Paced,
        Execution::Maybe,
        Fault::Server,
        Idempotency::Idempotent,
        Observed::Taken,
        Outcome::ThrottledFor(SECOND),
        Part::new(5, 25).expect("some, and not all"),
        Recorded::Cut,
        RetryAfter::Clamped(SECOND),
        RetrySafety::Maybe,
        WeightError::AboveCapacity {
            weight: 8,
            capacity: 2
        },
        Adaptive::paced(),
        Adaptive::new(ControlLaw::Aws),
        Adaptive::declared(),
        Standard::new(),
        Legacy::new(),
        Failure::throttling().with_retry_after(RetryAfter::AtLeast(SECOND)),
        MonotonicClock::new(),
        TokioClock::new(),
        quota.try_acquire(5).expect("it is there"),
        rate.reserve_n(at(1), 1).expect("it holds one"),
        slow.reserve_n(at(0), 2).expect("it holds two"),
        SendRate::new(ControlLaw::Aws, at(0)),
        quota,
        token(),
        limiter,
        SendPermit::sent_at(at(1)),
        rate,
        SendRate::declared(DeclaredSettings::new(), at(0)),
        rate.snapshot(at(1)),
        at(1),
    );
    let declared = SendRate::declared(DeclaredSettings::new(), at(0));
    let reports = LimitReport::new(9).limit(10).window(SECOND).into();
    declared.observe(at(1), SendPermit::sent_at(at(1)), &reports);
    show!(
        declared
            .snapshot(at(1))
            .declared
            .expect("it was just declared")
    );
    show!(declared.snapshot(at(1)));
    show!(
        declared.background(),
        declared.snapshot(at(1)).background,
        paceline::Class::Background,
    );
    declared.record(at(1), SendPermit::sent_at(at(1)), Outcome::Throttled);
    show!(declared.learned(at(1)).expect("it is limited"));

    // There is an event only while a hook is called with it.
    let heard = Arc::new(Mutex::new(Shown::default()));
    let log = Arc::clone(&heard);
    let watched = Standard::builder().on_event(move |event: &Event<'_>| {
        let mut shown = log.lock().expect("no hook panics");
        shown.add(event);
        shown.add(&event.kind);
    });
    let watched = watched.build().expect("in range");
    watched.run(|_| Ok::<_, Failure>(())).expect("it succeeds");
    shown.0.append(&mut heard.lock().expect("no hook panics").0);

    shown
}

/// The public types by the list of the public interface, with whether they are structs.
fn listed() -> BTreeMap<&'static str, bool> {
    let listed = concat!(
        include_str!("../../api/paceline-core.txt"),
        include_str!("../../api/paceline.txt")
    );
    let lines = listed.lines();
    let types = lines.filter_map(|line| {
        let item = match line.strip_prefix("#[") {
            Some(attribute) => attribute.split_once("] ")?.1,
            None => line,
        };
        let (path, is_struct) = match item.strip_prefix("pub struct ") {
            Some(path) => (path, true),
            None => (item.strip_prefix("pub enum ")?, false),
        };
        let path = path.split(['<', '(']).next()?;
        Some((path.rsplit("::").next()?, is_struct))
    });
    types.collect()
}

#[test]
fn every_public_type_is_shown_here() {
    let shown: BTreeSet<_> = every_type().0.into_iter().map(|(name, _)| name).collect();
    let listed: BTreeSet<_> = listed().into_keys().map(str::to_owned).collect();
    assert!(listed.len() > 100, "{listed:?}");
    assert_eq!(shown, listed);
}

#[test]
fn every_public_type_prints_in_one_line_of_values() {
    let listed = listed();
    for (name, line) in every_type().0 {
        assert!(!line.is_empty(), "{name} prints nothing");
        assert!(line.len() <= 380 && !line.contains('\n'), "{line}");
        // Words of bits, nanoseconds and the inside of the crate.
        for inside in ["0x", "::", "Atomic", "OnceBox", "Padded", "_ns", "nanos"] {
            assert!(!line.contains(inside), "{inside} in {line}");
        }
        let digits = line
            .split(|c: char| !c.is_ascii_digit())
            .map(str::len)
            .max();
        assert!(digits <= Some(9), "a number that is no value: {line}");
        // A struct goes by its name, if by any.
        let first = line.split(|c: char| !c.is_alphanumeric()).next();
        let by_name = first == Some("") || first == Some(&*name);
        assert!(by_name || !listed[&*name], "{name}: {line}");
    }
}

#[test]
fn what_is_kept_in_bits_prints_as_values() {
    let shown = every_type();
    let lines: BTreeSet<_> = shown.0.iter().map(|(_, line)| &**line).collect();
    for line in [
        "Timestamp(1s)",
        "ExponentialBackoff { base: 50ms, throttling_base: 50ms, throttling_floor: 0ns, \
         max_delay: 20s }",
        "SeededRandom { seed: 7, .. }",
        "RetryQuota { available: 481, capacity: 500 }",
        "RetryToken { attempt: 2, max_attempts: Some(3), delay: 50ms, time_left: Some(9s), \
         idempotency: Idempotent, paid: Some(14), .. }",
        "RetryRefused { reason: MaxAttempts { max: 3 }, backoff: 1s, delay: 1s, .. }",
        "SendRate { law: Paced, limiting: true, paced: Some(PacedSettings { preset: Usual, \
         floor: 10/s, ceiling: 10/s, beta_permille: 900, burst: 100ms, .. }), .. }",
        "SendRate { law: Aws, limiting: false, paced: None, .. }",
        "Reported { value: 7, limits: None, costs: Some([1, 600]), retry_after: None }",
        "SendRateSnapshot { enabled: true, fill_rate: 10.000/s, capacity: 1.000, \
         available: 1.000, measured_rate: 0.000/s, last_max_rate: 15.483/s, waiting: 0, \
         in_flight: None, declared: None }",
        "Reservation { in_line: true, class: Foreground, weight: 2, .. }",
        "LimitReports([LimitReport { dimension: Tokens, policy: \"burst\", limit: Some(10), \
         remaining: 9, window: Some(60s), reset: Some(In(1s)), refills: None, cost: None }], \
         date: Some(5s), ignored: 1)",
        "StrategySnapshot { quota: RetryQuotaSnapshot { available: 500, capacity: 500 }, law: Paced, \
         rate: unlimited (nothing measured yet), counts: StrategyCounts { .. } }",
        "StrategyBuilder { max_attempts: 5, long_polling: true, .. }",
        "StrategyCounts { granted: 1, refused_attempts: 1, .. }",
        "Legacy { max_attempts: 5, .. }",
        "Operation { strategy: Standard { max_attempts: 3, quota: 500, .. }, \
         scope: Some(\"orders\"), idempotency: Idempotent, class: Foreground, deadline: Some(1s), \
         attempt_timeout: None, sleep: DefaultSleep, .. }",
        "Waiter { sleep: DefaultSleep, .. }",
    ] {
        assert!(lines.contains(line), "no {line} in {lines:#?}");
    }
}
