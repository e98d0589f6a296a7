//! A program against the stable surface, and nothing else: each item with its exact signature.
//! `cargo run --manifest-path ci/surface/Cargo.toml`, and with `--features attempts`.

use core::{fmt::Debug, time::Duration};

use paceline::{
    ControlLaw, Outcome, QuotaPermit, Reservation, RetryQuota, SendPermit, SendRate,
    SendRateSnapshot, Timestamp,
};

fn value<T: Debug + Copy + PartialEq + Eq>() {}
fn shared<T: Debug + Send + Sync>() {}

fn quota() {
    shared::<RetryQuota>();
    static QUOTA: RetryQuota = RetryQuota::new(20);
    let acquire: fn(&RetryQuota, u32) -> Option<QuotaPermit> = RetryQuota::try_acquire;
    let release: fn(&RetryQuota, QuotaPermit) = RetryQuota::release;
    let credit: fn(&RetryQuota, u32) = RetryQuota::credit;
    let available: fn(&RetryQuota) -> u32 = RetryQuota::available;
    let capacity: fn(&RetryQuota) -> u32 = RetryQuota::capacity;

    let paid = acquire(&QUOTA, 14).expect("it is full");
    assert!(acquire(&QUOTA, 14).is_none());
    assert_eq!((available(&QUOTA), capacity(&QUOTA)), (6, 20));
    release(&QUOTA, paid);
    assert_eq!(available(&QUOTA), 20);
    drop(acquire(&QUOTA, 5)); // dropped: spent
    credit(&QUOTA, 1);
    assert_eq!(available(&QUOTA), 16);
}

fn send_rate() {
    value::<Timestamp>();
    value::<ControlLaw>();
    value::<Outcome>();
    value::<SendPermit>();
    shared::<SendRate>();
    let new: fn(ControlLaw, Timestamp) -> SendRate = SendRate::new;
    let acquire: fn(&SendRate, Timestamp) -> Result<SendPermit, Duration> = SendRate::try_acquire;
    let snapshot: fn(&SendRate, Timestamp) -> SendRateSnapshot = SendRate::snapshot;
    const LATE: Timestamp = Timestamp::from_nanos(2_000_000_000);
    const SENT: SendPermit = SendPermit::sent_at(Timestamp::ZERO);
    assert_eq!(LATE.as_nanos(), 2_000_000_000);

    for law in [ControlLaw::Aws, ControlLaw::Paced] {
        let rate = new(law, Timestamp::ZERO);
        rate.record(Timestamp::ZERO, SENT, Outcome::NotThrottled);
        let permit = acquire(&rate, LATE).expect("it limits nothing yet");
        rate.record(LATE, permit, Outcome::Throttled);
        let SendRateSnapshot { enabled, fill_rate, capacity, available, measured_rate, last_max_rate, .. } =
            snapshot(&rate, LATE);
        assert!(enabled && fill_rate > 0.0, "{law:?}");
        for figure in [capacity, available, measured_rate, last_max_rate] {
            assert!(figure.is_finite(), "{law:?}: {figure}");
        }
        let mut now = LATE;
        let mut place: Reservation<'_> = rate.reserve(now);
        let permit = loop {
            match place.claim(now) {
                Ok(permit) => break permit,
                Err(wait) => {
                    assert!(!wait.is_zero());
                    now = Timestamp::from_nanos(now.as_nanos() + wait.as_nanos() as u64);
                }
            }
        };
        assert_eq!(place.claim(now), Ok(permit));
        drop(place);
        let _did = rate.record(now, permit, Outcome::Unknown);
    }
}

#[cfg(feature = "attempts")]
mod attempts {
    use std::sync::{Arc, atomic::{AtomicU64, Ordering::Relaxed}};

    use paceline::{
        Adaptive, Clock, Failure, MonotonicClock, Operation, RetryAfter, RetryStrategy, Standard,
        law::PacedSettings,
        operation::{Attempt, Attempts, Next, NotSending, Stop, StopReason, Verdict},
        strategy::Reports,
        wait::Rest,
    };

    use super::*;

    #[derive(Debug, Default)]
    struct Virtual(AtomicU64);

    impl Clock for Virtual {
        fn now(&self) -> Timestamp {
            Timestamp::from_nanos(self.0.load(Relaxed))
        }
    }

    /// The loop of a host.
    fn carry_out<S: RetryStrategy>(
        strategy: S,
        time: &Virtual,
        mut send: impl FnMut(Attempt) -> Result<(), Failure>,
    ) -> Result<(), Stop> {
        let mut attempts: Attempts<S> = Operation::new(strategy).clock(time).start();
        loop {
            match attempts.next(time, None) {
                Next::Sleep(rest) | Next::InLine(rest) => {
                    let until: Timestamp = rest.until();
                    assert!(rest.span() > Duration::ZERO);
                    time.0.store(until.as_nanos(), Relaxed);
                }
                Next::Send(attempt) => match send(attempt) {
                    Ok(()) => {
                        let reported: Result<(), NotSending> = attempts.succeeded(Reports::at(time));
                        assert_eq!(reported, Ok(()));
                        assert_eq!(attempts.succeeded(Reports::at(time)), Err(NotSending));
                        return Ok(());
                    }
                    Err(failure) => match attempts.failed(&failure, Reports::at(time)) {
                        Ok(Verdict::Again(rest)) => {
                            let _rest: Rest = rest;
                        }
                        Ok(Verdict::Stop(stop)) => return Err(stop),
                        other => panic!("{other:?}"),
                    },
                },
                Next::Stop(stop) => return Err(stop),
                other => panic!("{other:?}"),
            }
        }
    }

    pub fn run() {
        let strategy = Arc::new(Adaptive::paced());
        let time = Virtual::default();
        let sent = carry_out(Arc::clone(&strategy), &time, |attempt| match attempt.number() {
            1 => Err(Failure::throttling()),
            2 => Err(Failure::transient().with_retry_after(RetryAfter::AtLeast(Duration::from_secs(1)))),
            _ => Ok(()),
        });
        assert_eq!(sent, Ok(()));
        assert!(time.now() >= Timestamp::from_nanos(1_000_000_000));

        let stopped = carry_out(&Standard::new(), &Virtual::default(), |_| Err(Failure::transient()));
        let stop = stopped.expect_err("it fails always");
        assert!(matches!(stop.why(), StopReason::MaxAttempts { max: 3 }), "{stop}");
        assert_eq!((stop.attempts(), stop.delay()), (3, Duration::ZERO));

        // A host that counts the attempts and sleeps between them by its own policy.
        let strategy = Adaptive::builder().paced(PacedSettings::new()).max_attempts(u32::MAX);
        let strategy = strategy.build().expect("valid settings");
        let clock = MonotonicClock::new();
        let mut attempts = Operation::new(&strategy).start();
        assert!(matches!(attempts.next(&clock, None), Next::Send(_)));
        let failed = attempts.failed(&Failure::transient(), Reports::at(&clock));
        assert!(matches!(failed, Ok(Verdict::Again(_))));
        attempts.slept();
        assert!(matches!(attempts.next(&clock, None), Next::Send(attempt) if attempt.number() == 2));
    }
}

fn main() {
    quota();
    send_rate();
    #[cfg(feature = "attempts")]
    attempts::run();
    println!("the stable surface is as promised");
}
