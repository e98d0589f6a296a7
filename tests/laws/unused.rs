//! The paced law in time in which the rate is not used: nothing grows by time alone.
//!
//! The public cases: CUBIC's time does not run while the application limits it (RFC 8312, 5.8; RFC
//! 9438, 5.8), and a window of which less than half was used does not grow (RFC 7661, 4.4).

use alloc::collections::BinaryHeap;

use core::cmp::Reverse;

use paceline::{
    ControlLaw, Outcome, RetryQuota, SendPermit, SendRate, Timestamp, law::PacedSettings,
};

const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLI;
const HOUR: u64 = 3_600 * SECOND;

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

/// A service that allows 100 requests a second, of which it saves up ten.
#[derive(Debug, Default)]
struct Bucket {
    /// When it was full last, moved on by what was taken since.
    full: u64,
}

impl Bucket {
    const EACH: u64 = SECOND / 100;

    fn admits(&mut self, now: u64) -> bool {
        let full = self.full.max(now) + Self::EACH;
        let admits = full <= now + 10 * Self::EACH;
        if admits {
            self.full = full;
        }
        admits
    }
}

/// What a worker does next.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// Asks for a turn for an operation of so many attempts.
    Ask(u32),
    Arrive(u32, u64),
    /// Hears whether the attempt was admitted.
    Hear(u32, u64, bool),
}

/// Carries out `jobs` operations by as many workers from `begin` on, each tried four times.
/// Returns how many are lost.
fn job(rate: &SendRate, quota: &RetryQuota, begin: u64, jobs: usize) -> u64 {
    let mut random = fastrand::Rng::with_seed(begin);
    let mut service = Bucket::default();
    let mut lost = 0;
    let mut events: BinaryHeap<_> = (0..jobs)
        .map(|it| Reverse((begin, it, Step::Ask(0))))
        .collect();
    let mut paid = (0..jobs).map(|_| None).collect::<Vec<_>>();
    while let Some(Reverse((now, worker, step))) = events.pop() {
        let (after, next) = match step {
            Step::Ask(attempts) => match rate.try_acquire(at(now)) {
                Ok(_) => (random.u64(20..=30) * MILLI, Step::Arrive(attempts + 1, now)),
                Err(wait) => (
                    u64::try_from(wait.as_nanos())
                        .expect("a wait is short")
                        .max(1),
                    Step::Ask(attempts),
                ),
            },
            Step::Arrive(attempts, sent) => {
                let admitted = service.admits(now);
                (
                    random.u64(20..=30) * MILLI,
                    Step::Hear(attempts, sent, admitted),
                )
            }
            Step::Hear(_, sent, true) => {
                rate.record(
                    at(now),
                    SendPermit::sent_at(at(sent)),
                    Outcome::NotThrottled,
                );
                match paid[worker].take() {
                    Some(paid) => quota.release(paid),
                    None => quota.credit(1),
                }
                continue;
            }
            Step::Hear(attempts, sent, false) => {
                rate.record(at(now), SendPermit::sent_at(at(sent)), Outcome::Throttled);
                paid[worker] = quota.try_acquire(5);
                if attempts == 4 || paid[worker].is_none() {
                    lost += 1;
                    continue;
                }
                (random.u64(0..SECOND << (attempts - 1)), Step::Ask(attempts))
            }
        };
        events.push(Reverse((now + after, worker, next)));
    }
    lost
}

fn presets() -> [PacedSettings; 3] {
    [
        PacedSettings::new(),
        PacedSettings::shared(),
        PacedSettings::exclusive(),
    ]
}

#[test]
fn only_the_first_of_many_jobs_loses_operations() {
    for settings in presets() {
        for pause in [20, 60, 3_600] {
            let (rate, quota) = (SendRate::paced(settings, at(0)), RetryQuota::new(500));
            let lost = (0..10).map(|number| job(&rate, &quota, number * pause * SECOND, 500));
            let lost: Vec<_> = lost.collect();
            assert!(lost[0] > 300, "nothing is known: {lost:?}");
            assert_eq!(lost[1..], [0; 9], "each {pause} s, {settings:?}");
        }
    }
}

/// Learns 100/s: 64 workers are busy until `end`.
fn learn(rate: &SendRate, end: u64) -> u64 {
    busy(rate, 0, end, |now, service| {
        if service.admits(now) {
            Outcome::NotThrottled
        } else {
            Outcome::Throttled
        }
    })
    .into_iter()
    .max()
    .expect("seconds")
}

/// Has 64 workers send as often as they may, and returns the sends of each second.
fn busy(
    rate: &SendRate,
    from: u64,
    to: u64,
    answer: impl Fn(u64, &mut Bucket) -> Outcome,
) -> Vec<u64> {
    let mut service = Bucket::default();
    let mut sends = vec![0; usize::try_from((to - from) / SECOND).expect("a run is short") + 1];
    let mut events: BinaryHeap<_> = (0..64)
        .map(|worker| Reverse((from, worker, None)))
        .collect();
    while let Some(Reverse((now, worker, sent))) = events.pop() {
        if now >= to {
            break;
        }
        if let Some(sent) = sent {
            let outcome = answer(now, &mut service);
            rate.record(at(now), SendPermit::sent_at(at(sent)), outcome);
        }
        let next = match rate.try_acquire(at(now)) {
            Ok(_) => {
                sends[usize::try_from((now - from) / SECOND).expect("a run is short")] += 1;
                (now + 20 * MILLI, worker, Some(now))
            }
            Err(wait) => (
                now + u64::try_from(wait.as_nanos()).expect("short"),
                worker,
                None,
            ),
        };
        events.push(Reverse(next));
    }
    sends
}

#[test]
fn a_quiet_hour_at_most_doubles_the_rate() {
    for settings in presets() {
        let rate = SendRate::paced(settings, at(0));
        learn(&rate, 60 * SECOND);
        let before = rate.snapshot(at(60 * SECOND)).fill_rate;
        for quiet in [10 * SECOND, 60 * SECOND, HOUR] {
            let after = rate.snapshot(at(60 * SECOND + quiet)).fill_rate;
            assert!(
                (80.0..=2.0 * before).contains(&after),
                "{before}, then {after}"
            );
        }
    }
}

#[test]
fn a_light_minute_leaves_the_rate_and_the_limit() {
    for settings in presets() {
        let rate = SendRate::paced(settings, at(0));
        learn(&rate, 60 * SECOND);
        for step in 0..60 * 40 {
            let now = 60 * SECOND + step * SECOND / 40;
            if let Ok(permit) = rate.try_acquire(at(now)) {
                rate.record(at(now + 10 * MILLI), permit, Outcome::NotThrottled);
            }
        }
        let after = rate.snapshot(at(120 * SECOND));
        assert!(
            after.enabled && (80.0..=210.0).contains(&after.fill_rate),
            "{after:?}"
        );
        assert_eq!(job(&rate, &RetryQuota::new(500), 120 * SECOND, 500), 0);
    }
}

/// What was granted in a window that is taken back stays granted: after an outage the law begins
/// with next to no rate, and the time of that cut is moved on.
#[test]
fn a_window_that_is_taken_back_leaves_no_debt() {
    for settings in presets() {
        let rate = SendRate::paced(settings, at(0));
        learn(&rate, 60 * SECOND);
        busy(&rate, 60 * SECOND, 62 * SECOND, |_, _| Outcome::Throttled);
        busy(&rate, 62 * SECOND, 70 * SECOND, |_, _| {
            Outcome::NotThrottled
        });
        let refused = (0..60 * 40).filter(|step| {
            let now = 71 * SECOND + step * SECOND / 40;
            let permit = rate.try_acquire(at(now));
            if let Ok(permit) = permit {
                rate.record(at(now + 10 * MILLI), permit, Outcome::NotThrottled);
            }
            permit.is_err()
        });
        assert_eq!(refused.count(), 0, "{settings:?}");
    }
}

/// aws-sdk-go-v2 issue 3413 and vector issue 16798: a service whose every answer is a fault, or a
/// connection that is refused.
#[test]
fn failures_do_not_raise_the_rate_and_it_is_used_afterwards() {
    for settings in presets() {
        let rate = SendRate::paced(settings, at(0));
        learn(&rate, 60 * SECOND);
        let sends = busy(&rate, 60 * SECOND, 80 * SECOND, |_, _| Outcome::Failed);
        assert!(sends.iter().all(|sends| *sends <= 110), "{sends:?}");
        let after = busy(&rate, 80 * SECOND, 100 * SECOND, |now, service| {
            if service.admits(now) {
                Outcome::NotThrottled
            } else {
                Outcome::Throttled
            }
        });
        assert!(after.iter().sum::<u64>() >= 1_850, "{after:?}");
    }
}

#[test]
fn to_the_published_law_a_failure_is_an_answer() {
    let [answered, failed] = [Outcome::NotThrottled, Outcome::Failed].map(|outcome| {
        let rate = SendRate::new(ControlLaw::Aws, at(0));
        busy(&rate, 0, 5 * SECOND, |now, _| {
            if now % (7 * MILLI) == 0 {
                Outcome::Throttled
            } else {
                outcome
            }
        });
        rate.snapshot(at(5 * SECOND))
    });
    assert_eq!(answered, failed);
}

/// A pause that ended long ago, which nobody has looked at since.
#[test]
fn after_a_pause_and_a_quiet_day_the_bucket_is_full_once() {
    let rate = SendRate::paced(PacedSettings::new(), at(0));
    for step in 0..100 {
        rate.record(
            at(step * 10 * MILLI),
            SendPermit::sent_at(at(step * 10 * MILLI)),
            Outcome::NotThrottled,
        );
    }
    let hint = core::time::Duration::from_secs(1);
    for second in [2, 5] {
        let now = at(second * SECOND);
        rate.record(now, SendPermit::sent_at(now), Outcome::ThrottledFor(hint));
    }
    let later = 24 * HOUR;
    let shown = rate.snapshot(at(later));
    let granted = (0..1_000)
        .take_while(|_| rate.try_acquire(at(later)).is_ok())
        .count();
    assert!(
        u32::try_from(granted).is_ok_and(|it| f64::from(it) <= shown.capacity),
        "{granted} of {shown:?}"
    );
}
