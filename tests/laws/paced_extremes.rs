//! The paced law where time ends, goes back and leaps, and the one promise that holds in every
//! state: no more than the bucket held, and what the law's rate has minted since.

use core::time::Duration;

use fastrand::Rng;
use paceline::{ControlLaw, Outcome, SendPermit, SendRate, Timestamp, law::PacedSettings};

const SECOND: u64 = 1_000_000_000;
const MILLI: u64 = SECOND / 1_000;
const DAY: u64 = 24 * 3_600 * SECOND;

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

fn record(rate: &SendRate, now: u64, outcome: Outcome) {
    rate.record(at(now), SendPermit::sent_at(at(now)), outcome);
}

fn drain(rate: &SendRate, now: u64) -> u64 {
    let mut granted = 0;
    while rate.try_acquire(at(now)).is_ok() {
        granted += 1;
    }
    granted
}

/// Delivers 100 requests in the second before `cut`, and then throttles one.
fn engaged_at(cut: u64) -> SendRate {
    let rate = SendRate::new(ControlLaw::Paced, Timestamp::ZERO);
    for step in 0..100 {
        record(
            &rate,
            cut - SECOND + step * SECOND / 100,
            Outcome::NotThrottled,
        );
    }
    record(&rate, cut, Outcome::Throttled);
    rate
}

#[test]
fn an_older_clock_than_the_cut_pauses_no_caller() {
    for older in [1, MILLI, 900 * MILLI, DAY] {
        let cut = 2 * DAY;
        let rate = engaged_at(cut);
        drain(&rate, cut);
        let wait = rate.try_acquire(at(cut)).expect_err("empty");
        let due = at(cut).saturating_add(wait);
        assert!(rate.try_acquire(at(cut - older)).is_err());
        record(&rate, cut - older, Outcome::NotThrottled);
        let mut place = rate.reserve(at(cut - older));
        assert!(place.claim(at(cut - older)).is_err());
        drop(place);
        assert!(rate.try_acquire(due).is_ok(), "{older} ns older");
    }
}

#[test]
fn an_older_clock_takes_what_the_bucket_holds_and_leaves_the_rest() {
    let cut = 2 * DAY;
    let rate = engaged_at(cut);
    let now = cut + SECOND;
    record(&rate, now, Outcome::NotThrottled);
    let held = rate.snapshot(at(now)).available;
    assert!((4.0..6.0).contains(&held), "{held}");
    assert!(rate.try_acquire(at(now - MILLI)).is_ok());
    record(&rate, cut - 1, Outcome::NotThrottled);
    assert_eq!(drain(&rate, now) + 1, 4);
}

#[test]
fn a_hint_at_the_end_of_time_brings_it_no_further() {
    for hint in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
        let rate = engaged_at(2 * SECOND);
        record(&rate, u64::MAX, Outcome::ThrottledFor(hint));
        let got = rate.snapshot(at(u64::MAX));
        assert!(
            got.fill_rate < 1_000.0,
            "it was cut then, not at the beginning: {got:?}"
        );
        assert!(drain(&rate, u64::MAX) < 100);
        let wait = rate
            .try_acquire(at(100 * DAY))
            .expect_err("that is to come");
        assert!(wait.as_secs() > 100 * 365 * 86_400, "{wait:?}");
    }
}

#[test]
fn reset_brings_a_limiter_back_from_a_throttle_in_the_far_future() {
    for hint in [0, 1, 60] {
        let rate = engaged_at(2 * SECOND);
        record(&rate, 3 * SECOND, Outcome::NotThrottled);
        record(&rate, u64::MAX - DAY, Outcome::NotThrottled);
        let hint = Outcome::ThrottledFor(Duration::from_secs(hint));
        record(&rate, u64::MAX - DAY, hint);
        let now = 4 * SECOND;
        let wait = rate.try_acquire(at(now)).expect_err("that time is to come");
        assert!(wait.as_secs() > 100 * 365 * 86_400, "{wait:?}");
        rate.reset(at(now));
        // In so long a time next to nothing was done: it is shut.
        assert!(rate.snapshot(at(now)).enabled);
        let wait = rate
            .try_acquire(at(now))
            .map_or_else(|wait| wait, |_| Duration::ZERO);
        assert!(wait <= Duration::from_secs(60), "{wait:?}");
        let permit = SendPermit::sent_at(at(now).saturating_add(wait));
        let now = now + u64::try_from(wait.as_nanos()).expect("a minute") + 1;
        rate.record(at(now), permit, Outcome::NotThrottled);
        assert!(drain(&rate, now) <= 6, "no more than the bucket holds");
        for step in 0..200 {
            record(&rate, now + step * SECOND / 100, Outcome::NotThrottled);
        }
        let measured = rate.snapshot(at(now + 2 * SECOND)).measured_rate;
        assert!(
            (50.0..200.0).contains(&measured),
            "it measures again: {measured}"
        );
    }
}

/// Random calls at the ends of time and a day back: no panic, and nothing but what the bucket holds
/// at once.
#[test]
fn no_time_panics_and_none_lets_more_than_the_bucket_go_at_once() {
    for seed in 0..300 {
        let mut rng = Rng::with_seed(seed);
        let start = [0, DAY, u64::MAX / 2, u64::MAX - 1][rng.usize(..4)];
        let settings = PacedSettings::builder()
            .initial_rate(100, Duration::from_secs(1))
            .build();
        let rate = SendRate::paced(settings.expect("in range"), at(start));
        let (mut now, mut latest) = (start, start);
        for _ in 0..100 {
            now = match rng.u8(..8) {
                0 => [0, u64::MAX, u64::MAX >> 2, 1 << 62][rng.usize(..4)],
                1 => now.saturating_sub(DAY),
                2 => now.saturating_add(DAY),
                _ => now.saturating_add(rng.u64(..SECOND)),
            };
            let sent = [now, 0, u64::MAX, rng.u64(..)][rng.usize(..4)];
            let permit = SendPermit::sent_at(at(sent));
            let hint = Duration::from_millis(rng.u64(..) >> rng.u32(..64));
            match rng.u8(..8) {
                0 => _ = rate.record(at(now), permit, Outcome::Throttled),
                1 => _ = rate.record(at(now), permit, Outcome::ThrottledFor(hint)),
                2..5 => _ = rate.record(at(now), permit, Outcome::NotThrottled),
                5 => drop(rate.reserve(at(now))),
                6 if rng.bool() => {
                    rate.reset(at(now));
                    latest = now;
                }
                _ => {}
            }
            latest = latest.max(now);
            let law = rate.snapshot(at(now));
            // An older clock finds what there was, of which it knows nothing.
            // Time stands still at 2⁶² ns, and a pause that is long over ends there in two steps.
            let moves = now.saturating_sub(start) < u64::MAX >> 2;
            if law.enabled && now == latest && moves && law.capacity < 1_000.0 {
                let granted = drain(&rate, now);
                assert!(
                    granted as f64 <= law.capacity + 1e-6,
                    "seed {seed} at {now}: {granted} of {law:?}"
                );
            }
        }
    }
}

/// A bucket as large as the law allows it, filled at the law's rate.
struct Most {
    tokens: f64,
    since: u64,
}

impl Most {
    /// Mints up to `now`. Between two records the rate never falls, so that the last one of a span
    /// is the highest.
    fn mint(&mut self, rate: &SendRate, now: u64) {
        let law = rate.snapshot(at(now));
        let minted = law.fill_rate * (now - self.since) as f64 / 1e9;
        self.tokens = (self.tokens + minted).min(law.capacity);
        self.since = now;
    }

    /// Takes one for each that the limiter grants.
    fn take(&mut self, rate: &SendRate, now: u64) -> bool {
        if rate.try_acquire(at(now)).is_err() {
            return false;
        }
        assert!(
            self.tokens > 1.0 - 1e-3,
            "granted at {now} with {} there",
            self.tokens
        );
        self.tokens -= 1.0;
        true
    }
}

#[test]
fn never_is_more_granted_than_the_law_has_minted() {
    let mut grants = 0_u64;
    for seed in 0..200 {
        let mut rng = Rng::with_seed(seed);
        let start = rng.u32(2..5_000);
        let settings = PacedSettings::builder()
            .initial_rate(start, Duration::from_secs(1))
            .build();
        let rate = SendRate::paced(settings.expect("in range"), Timestamp::ZERO);
        let (mut now, mut sent) = (0, 0);
        let mut most = Most {
            tokens: rate.snapshot(at(0)).capacity,
            since: 0,
        };
        let limit = u64::from(start) * 3 / 4;
        for _ in 0..2_000 {
            now += rng.u64(..2 * SECOND / limit.max(1));
            most.mint(&rate, now);
            if !rate.snapshot(at(now)).enabled {
                break;
            }
            if most.take(&rate, now) {
                grants += 1;
                sent = now;
            }
            let hint = Duration::from_millis(rng.u64(..2_000));
            let outcome = match rng.u16(..400) {
                0 => Outcome::ThrottledFor(hint),
                1..10 => Outcome::Throttled,
                10..300 => Outcome::NotThrottled,
                _ => continue,
            };
            rate.record(at(now), SendPermit::sent_at(at(sent)), outcome);
            most.mint(&rate, now);
        }
    }
    assert!(grants > 50_000, "{grants}");
}
