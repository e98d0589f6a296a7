//! The declared law beside services that once stopped it, each played alone in virtual time: a
//! service, waiters, and what they forget, refuse or ask for in vain.

use core::mem;
use core::time::Duration;

use paceline::{
    ControlLaw, Outcome, Reservation, SendPermit, SendRate, SendSet, Timestamp, WeightError,
    law::{DeclaredSettings, Dimension, LimitReport, LimitReports, PacedSettings, Reset},
};

const MILLI: u64 = 1_000_000;
const MINUTE: u64 = 60_000;

/// A time in milliseconds.
const fn at(millis: u64) -> Timestamp {
    Timestamp::from_nanos(millis * MILLI)
}

fn declared() -> SendRate {
    SendRate::new(ControlLaw::Declared, Timestamp::ZERO)
}

/// A fixed window, counted where a request arrives.
struct Service {
    limit: u64,
    /// Milliseconds.
    window: u64,
    used: u64,
    begun: u64,
    /// How many were let go, and how many were refused.
    passed: u64,
    refused: u64,
    last: u64,
}

impl Service {
    fn new(limit: u64, window: u64) -> Self {
        Self {
            limit,
            window,
            used: 0,
            begun: 0,
            passed: 0,
            refused: 0,
            last: 0,
        }
    }

    /// Answers a request: whether it was let go, and what the headers say. Resets are whole
    /// seconds.
    fn answer(&mut self, now: u64, weight: u64) -> (bool, LimitReports) {
        self.answer_of(Dimension::Requests, now, weight)
    }

    fn answer_of(&mut self, counts: Dimension, now: u64, weight: u64) -> (bool, LimitReports) {
        let begun = now - now % self.window;
        if begun != self.begun {
            (self.begun, self.used) = (begun, 0);
        }
        let goes = self.used + weight <= self.limit;
        if goes {
            self.used += weight;
            self.passed += 1;
            self.last = now;
        } else {
            self.refused += 1;
        }
        let seconds = (begun + self.window - now).div_ceil(1_000);
        let report = LimitReport::new(self.limit - self.used)
            .dimension(counts)
            .limit(self.limit)
            .window(Duration::from_millis(self.window))
            .refills(false)
            .reset(Reset::In(Duration::from_secs(seconds)));
        (goes, report.into())
    }

    /// Sends a request at once, and tells the limiter what came back.
    fn send(&mut self, rate: &SendRate, now: u64, permit: SendPermit, weight: u64) {
        let (goes, reports) = self.answer(now, weight);
        rate.observe(at(now), permit, &reports);
        let outcome = if goes {
            Outcome::NotThrottled
        } else {
            Outcome::Throttled
        };
        rate.record(at(now), permit, outcome);
    }
}

/// Keeps `waiters` places of one token in line from `from` to `to`, each sent when it is due.
fn keep_in_line(rate: &SendRate, service: &mut Service, waiters: usize, from: u64, to: u64) {
    let mut places: Vec<Reservation<'_>> = (0..waiters).map(|_| rate.reserve(at(from))).collect();
    for now in (from..to).step_by(5) {
        for place in &mut places {
            if let Ok(permit) = place.claim(at(now)) {
                service.send(rate, now, permit, 1);
                *place = rate.reserve(at(now));
            }
        }
    }
}

#[test]
fn a_heavy_place_forgotten_at_first_does_not_stop_the_next() {
    let rate = declared();
    mem::forget(rate.reserve_n(at(0), 60));
    let mut next = rate.reserve_n(at(0), 60).expect("nothing is declared");
    let mut last = rate.reserve_n(at(0), 60).expect("nothing is declared");
    assert!(next.claim(at(19_999)).is_err());
    assert!(next.claim(at(20_000)).is_ok());
    assert!(last.claim(at(20_000)).is_err(), "one goes");
    assert!(last.claim(at(30_001)).is_ok(), "and one every ten seconds");
}

/// Sixteen wait in line for `limit` requests in each `window` milliseconds, for ten minutes.
fn sixteen_waiters_never_stop(limit: u64, window: u64) {
    let (rate, mut service) = (declared(), Service::new(limit, window));
    let to = 600_000;
    keep_in_line(&rate, &mut service, 16, 0, to);
    assert!(service.last >= to - 2 * window, "{}", service.last);
    let whole = limit * to / window;
    assert!(service.passed >= whole * 85 / 100, "{}", service.passed);
    assert!(service.refused <= whole / 100, "{}", service.refused);
}

#[test]
fn windows_of_a_second_never_stop_sixteen_waiters() {
    sixteen_waiters_never_stop(10, 1_000);
}

#[test]
fn windows_of_two_seconds_never_stop_sixteen_waiters() {
    sixteen_waiters_never_stop(6, 2_000);
}

#[test]
fn windows_of_five_seconds_never_stop_sixteen_waiters() {
    sixteen_waiters_never_stop(5, 5_000);
}

/// Two requests wait in a set, the first of them since before its second limit was declared.
#[test]
fn two_sets_do_not_wait_for_each_other() {
    let rate = || {
        let settings = DeclaredSettings::new().first_burst(0);
        SendRate::declared(settings, Timestamp::ZERO)
    };
    let (one, two) = (rate(), rate());
    let (mut first, mut second) = (Service::new(60, MINUTE), Service::new(60, 2 * MINUTE));
    let known = |rate: &SendRate, service: &mut Service, now| {
        let permit = rate.try_acquire(at(now)).expect("it is the first");
        service.send(rate, now, permit, 1);
    };
    let set = SendSet::new([&one, &two]);
    known(&one, &mut first, 0);
    let mut places = vec![set.reserve(at(10), &[40, 40]).expect("in range")];
    known(&two, &mut second, 20);
    places.push(set.reserve(at(30), &[30, 40]).expect("in range"));
    let mut gone = Vec::new();
    for now in (100..8 * MINUTE).step_by(50) {
        for (index, place) in places.iter_mut().enumerate() {
            if gone.iter().any(|(waiter, _)| *waiter == index) {
                continue;
            }
            if let Ok(permit) = place.claim(at(now)) {
                let both = [(&one, &mut first), (&two, &mut second)];
                for (limit, (rate, service)) in both.into_iter().enumerate() {
                    let weight = [[40, 40], [30, 40]][index][limit];
                    let (goes, reports) = service.answer(now, weight);
                    assert!(goes);
                    let permit = permit.get(limit).expect("it has two");
                    rate.observe(at(now), permit, &reports);
                }
                gone.push((index, now));
            }
        }
    }
    // Each is the first in one line. What is promised and unclaimed for a window ends that, and one
    // goes within two windows.
    assert_eq!(gone, [(1, 2 * MINUTE), (0, 4 * MINUTE + 1_000)]);
}

/// What a set asks of one limit while another one refuses costs nothing, however often, and no
/// refund makes more of it than the service gives.
#[test]
fn refused_tries_of_a_set_neither_cost_nor_credit() {
    let a_second = PacedSettings::fixed(1, Duration::from_secs(1)).expect("in range");
    let settings = DeclaredSettings::new().dimension(Dimension::Tokens);
    let tokens = SendRate::declared(settings, Timestamp::ZERO);
    let slow = SendRate::paced(a_second, Timestamp::ZERO);
    let mut service = Service::new(60_000, MINUTE);
    let set = SendSet::new([&tokens, &slow]);
    let mut minutes = [0_u64; 5];
    for now in (0..5 * MINUTE).step_by(10) {
        let Ok(permit) = set.try_acquire(at(now), &[500, 1]) else {
            continue;
        };
        let (goes, reports) = service.answer_of(Dimension::Tokens, now, 500);
        assert!(goes);
        tokens.observe(at(now), permit.get(0).expect("it has one"), &reports);
        minutes[usize::try_from(now / MINUTE).expect("five")] += 1;
    }
    assert!(
        minutes[1..].iter().all(|count| (59..=61).contains(count)),
        "{minutes:?}"
    );
}

#[test]
fn a_forgotten_place_is_lost_once() {
    for weight in [10, 60] {
        let (rate, mut service) = (declared(), Service::new(60, MINUTE));
        keep_in_line(&rate, &mut service, 1, 0, MINUTE);
        mem::forget(rate.reserve_n(at(MINUTE), weight));
        keep_in_line(&rate, &mut service, 8, MINUTE, 3 * MINUTE);
        let before = service.passed;
        keep_in_line(&rate, &mut service, 8, 3 * MINUTE, 8 * MINUTE);
        let each = (service.passed - before) / 5;
        assert!(each >= 58, "{weight}: {each} a minute");
        assert_eq!(service.refused, 0);
    }
}

#[test]
fn a_weight_above_the_limit_is_refused_at_the_door() {
    let (rate, mut service) = (declared(), Service::new(1_000, MINUTE));
    let first = rate.try_acquire(at(0)).expect("it is the first");
    service.send(&rate, 0, first, 1);
    for weight in [1_001, 1_250, u32::MAX] {
        let refused = rate
            .reserve_n(at(10), weight)
            .expect_err("it could never go");
        let expected = WeightError::AboveCapacity {
            weight,
            capacity: 1_000,
        };
        assert_eq!(refused, expected);
    }
    let heaviest = rate.reserve_n(at(10), 1_000);
    assert_eq!(heaviest.map(drop), Ok(()));
}

/// A heavy request goes when the bucket is full, though there are light ones all the time.
#[test]
fn a_request_of_the_whole_limit_goes_within_two_windows() {
    let (rate, mut service) = (declared(), Service::new(60, MINUTE));
    keep_in_line(&rate, &mut service, 4, 0, MINUTE);
    let mut heavy = rate.reserve_n(at(MINUTE), 60).expect("the limit is 60");
    let mut places: Vec<Reservation<'_>> = (0..4).map(|_| rate.reserve(at(MINUTE))).collect();
    let mut gone = None;
    for now in (MINUTE..4 * MINUTE).step_by(50) {
        if gone.is_none() {
            if let Ok(permit) = heavy.claim(at(now)) {
                service.send(&rate, now, permit, 60);
                gone = Some(now);
            }
        }
        for place in &mut places {
            if let Ok(permit) = place.claim(at(now)) {
                service.send(&rate, now, permit, 1);
                *place = rate.reserve(at(now));
            }
        }
    }
    assert!(gone.is_some_and(|gone| gone <= 3 * MINUTE), "{gone:?}");
    assert_eq!(service.refused, 0);
}

#[test]
fn a_report_stops_a_client_for_an_hour_and_no_longer() {
    let rate = declared();
    let first = rate.try_acquire(at(0)).expect("it is the first");
    let never = LimitReport::new(0)
        .limit(1)
        .window(Duration::from_secs(31_536_000));
    rate.observe(at(0), first, &never.into());
    let mut gone = Vec::new();
    for second in 0..3 * 3_600 {
        if rate.try_acquire(at(second * 1_000)).is_ok() {
            gone.push(second);
        }
    }
    assert_eq!(gone, [3_600, 7_200]);
}

/// The bucket of a declared limit holds its heaviest request, so that a try finds what is there.
#[test]
fn a_heavy_try_finds_what_is_left() {
    let tokens = SendRate::declared(
        DeclaredSettings::new().dimension(Dimension::Tokens),
        Timestamp::ZERO,
    );
    let alone = SendSet::new([&tokens]);
    let (mut sent, mut used) = (0_u64, 0_u64);
    for now in (0..3 * MINUTE).step_by(20) {
        if now % MINUTE == 0 {
            used = 0;
        }
        let Ok(permit) = alone.try_acquire(at(now), &[500]) else {
            continue;
        };
        used += 500;
        assert!(used <= 60_000);
        sent += u64::from(now >= MINUTE);
        let report = LimitReport::new(60_000 - used)
            .dimension(Dimension::Tokens)
            .limit(60_000)
            .window(Duration::from_secs(60))
            .refills(false)
            .reset(Reset::In(Duration::from_millis(MINUTE - now % MINUTE)));
        alone.observe(at(now), &permit, &report.into());
    }
    // Of 120 in each minute.
    assert!(sent >= 230, "{sent}");
}

/// Others use up what is left of a day's window, told by true reports: nothing else looks.
#[test]
fn a_day_that_others_used_up_is_asked_for_each_hour_until_nothing_is_left() {
    const HOUR: u64 = 3_600_000;
    let day = 24 * HOUR;
    for lefts in [[4_999, 4_998, 0], [4_999, 4_989, 0], [4_999, 2_499, 3]] {
        let rate = declared();
        let mut now = 0;
        let next = |now: &mut u64| {
            let mut place = rate.reserve(at(*now));
            let asked = *now;
            loop {
                match place.claim(at(*now)) {
                    Ok(permit) => return (permit, *now - asked),
                    Err(wait) => *now += u64::try_from(wait.as_millis()).unwrap() + 1,
                }
            }
        };
        for left in lefts.into_iter().chain([0]) {
            let (permit, waited) = next(&mut now);
            assert!(
                waited <= HOUR + 3_000 || now >= day,
                "{lefts:?}: {waited} ms"
            );
            now += 50;
            let (left, ends) = if now < day {
                (left, day)
            } else {
                (4_999, 2 * day)
            };
            let report = LimitReport::new(left)
                .limit(5_000)
                .window(Duration::from_millis(day))
                .refills(false)
                .reset(Reset::In(Duration::from_millis(ends - now)));
            rate.observe(at(now), permit, &report.into());
            rate.record(at(now), permit, Outcome::NotThrottled);
        }
        // With none left the next goes within a minute of the reset.
        if now < day {
            let _ = next(&mut now);
        }
        assert!((day..day + 60_000).contains(&now), "{lefts:?}: {now}");
    }
}

#[test]
fn background_alone_gets_the_only_token_of_a_limit() {
    for (seconds, refills) in [1, 60, 600]
        .into_iter()
        .flat_map(|s| [(s, true), (s, false)])
    {
        let rate = declared();
        let window = seconds * 1_000;
        let mut now = 0;
        let mut permit = rate.try_acquire(at(now)).expect("it is the first");
        for _ in 0..3 {
            now += 50;
            let report = LimitReport::new(0)
                .limit(1)
                .window(Duration::from_millis(window))
                .refills(refills)
                .reset(Reset::In(Duration::from_millis(window)));
            rate.observe(at(now), permit, &report.into());
            rate.record(at(now), permit, Outcome::NotThrottled);
            let asked = now;
            let mut place = rate.background().reserve(at(now));
            permit = loop {
                match place.claim(at(now)) {
                    Ok(permit) => break permit,
                    Err(wait) => now += u64::try_from(wait.as_millis()).unwrap() + 1,
                }
                let windows = if refills { 2 } else { 4 };
                assert!(now - asked <= windows * window, "{seconds} s, {refills}");
            };
            assert!(
                now - asked >= window - 50 - window / 16,
                "{seconds} s, {refills}"
            );
        }
    }
}
