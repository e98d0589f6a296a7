//! Sets over two declared limits, by a user who means harm: places that are dropped, tries that
//! are refused, reports that are lost, limits that change, and sets that name them in either order.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use core::time::Duration;
use std::sync::Mutex;
use std::thread;

use fastrand::Rng;
use paceline::{
    SendRate, SendSet, Timestamp,
    law::{DeclaredSettings, Dimension, LimitReport, LimitReports, Reset, Spend},
    set::{SetPermit, SetReservation},
};

const MILLI: u64 = 1_000_000;
/// The windows of the two limits, in milliseconds.
const WINDOWS: [u64; 2] = [10_000, 20_000];
const LIMITS: [u64; 2] = [60, 6_000];
const DIMENSIONS: [Dimension; 2] = [Dimension::Requests, Dimension::Tokens];

type Set<'a> = SendSet<&'a SendRate, 2>;

/// A time in milliseconds.
const fn at(millis: u64) -> Timestamp {
    Timestamp::from_nanos(millis * MILLI)
}

/// A service that lets a request go if both of its limits do.
struct Service {
    limits: [u64; 2],
    used: [u64; 2],
    begun: [u64; 2],
    passed: u64,
    refused: u64,
    /// When one was let go last, and the longest time between two.
    last: u64,
    gap: u64,
}

impl Service {
    const fn new() -> Self {
        Self {
            limits: LIMITS,
            used: [0; 2],
            begun: [0; 2],
            passed: 0,
            refused: 0,
            last: 0,
            gap: 0,
        }
    }

    /// Answers a request with what is left of both limits. Resets are whole seconds.
    fn answer(&mut self, now: u64, weights: [u64; 2]) -> LimitReports {
        for (limit, window) in WINDOWS.into_iter().enumerate() {
            let begun = now - now % window;
            if begun > self.begun[limit] {
                (self.begun[limit], self.used[limit]) = (begun, 0);
            }
        }
        let fits = |limit: usize| self.used[limit] + weights[limit] <= self.limits[limit];
        if fits(0) && fits(1) {
            self.used = [0, 1].map(|limit| self.used[limit] + weights[limit]);
            self.passed += 1;
            self.gap = self.gap.max(now.saturating_sub(self.last));
            self.last = now;
        } else {
            self.refused += 1;
        }
        let report = |limit: usize| {
            let ends = self.begun[limit] + WINDOWS[limit];
            LimitReport::new(self.limits[limit].saturating_sub(self.used[limit]))
                .dimension(DIMENSIONS[limit])
                .limit(self.limits[limit])
                .window(Duration::from_millis(WINDOWS[limit]))
                .refills(false)
                .reset(Reset::In(Duration::from_secs(
                    ends.saturating_sub(now).div_ceil(1_000),
                )))
        };
        let mut reports = LimitReports::from(report(0));
        reports.push(report(1));
        reports
    }
}

fn rates(spend: Spend) -> [SendRate; 2] {
    DIMENSIONS.map(|dimension| {
        let settings = DeclaredSettings::new().dimension(dimension).spend(spend);
        SendRate::declared(settings, Timestamp::ZERO)
    })
}

/// The two sets over them, which name them in either order.
fn sets(rates: &[SendRate; 2]) -> [Set<'_>; 2] {
    let [requests, tokens] = rates;
    [
        SendSet::new([requests, tokens]),
        SendSet::new([tokens, requests]),
    ]
}

/// The weights of a request by the limits of a set that names them in this order.
fn weights(order: usize, tokens: u64) -> [u32; 2] {
    let tokens = u32::try_from(tokens).expect("a small number");
    if order == 0 { [1, tokens] } else { [tokens, 1] }
}

/// Hands both limits what came back.
fn hear(rates: &[SendRate; 2], now: u64, order: usize, permit: &SetPermit<2>, told: &LimitReports) {
    for (limit, rate) in rates.iter().enumerate() {
        let place = if order == 0 { limit } else { 1 - limit };
        let permit = permit.get(place).expect("it has a weight in both");
        rate.observe(at(now), permit, told);
    }
}

/// Checks that all is back two silent windows after `now`: a request of both limits goes.
fn all_back(rates: &[SendRate; 2], sets: &[Set<'_>; 2], service: &mut Service, now: u64) {
    let mut now = now + 2 * WINDOWS[1];
    for (order, set) in sets.iter().enumerate() {
        let [requests, tokens] = service.limits;
        for (rate, limit) in rates.iter().zip(service.limits) {
            let shown = rate.snapshot(at(now));
            assert_eq!(shown.waiting, 0);
            let left = shown.declared.expect("it is declared").remaining;
            let limit = f64::from(u32::try_from(limit).expect("small"));
            assert_eq!(left.to_bits(), limit.to_bits());
        }
        let [first, second] = [requests, tokens].map(|all| u32::try_from(all).expect("small"));
        let all = if order == 0 {
            [first, second]
        } else {
            [second, first]
        };
        let mut place = set.reserve(at(now), &all).expect("it is the limit");
        let end = now + 2 * WINDOWS[1];
        let permit = loop {
            match place.claim(at(now)) {
                Ok(permit) => break permit,
                Err(wait) => assert!(now < end, "{wait:?}"),
            }
            now += 100;
        };
        let refused = service.refused;
        let reports = service.answer(now, service.limits);
        assert_eq!(service.refused, refused);
        hear(rates, now, order, &permit, &reports);
        now += 2 * WINDOWS[1];
    }
}

/// A request on its way: when it comes back, the order of its set, and the reports it brings.
type Coming = (u64, usize, SetPermit<2>, Option<LimitReports>);

#[test]
fn a_hostile_user_stops_no_set_and_overruns_no_limit() {
    // Twice as many in release.
    for seed in 0..if cfg!(debug_assertions) { 3 } else { 6 } {
        let (rates, mut rng) = (rates(Spend::Even), Rng::with_seed(seed));
        let sets = sets(&rates);
        let mut service = Service::new();
        let mut coming: Vec<Coming> = Vec::new();
        let mut waiters: [Option<(SetReservation<'_, 2>, u64)>; 12] = [const { None }; 12];
        // Refused after a limit has shrunk, when no report can have said so.
        let (mut excused, end) = (0, 600_000);
        for now in (0..end).step_by(20) {
            // A limit is a third of what it was, and back.
            if now % 100_000 == 50_000 {
                let limit = rng.usize(0..2);
                let is_whole = service.limits[limit] == LIMITS[limit];
                service.limits[limit] = LIMITS[limit] / if is_whole { 3 } else { 1 };
            }
            let changed = now % 100_000 >= 50_000 && now % 100_000 < 50_000 + 2 * WINDOWS[1];
            let mut send = |order, permit: SetPermit<2>, tokens, rng: &mut Rng| {
                let before = service.refused;
                let reports = service.answer(now, [1, tokens]);
                excused += if changed { service.refused - before } else { 0 };
                let is_lost = rng.u64(0..5) == 0;
                let back = now + rng.u64(50..400);
                coming.push((back, order, permit, (!is_lost).then_some(reports)));
            };
            for (number, waiter) in waiters.iter_mut().enumerate() {
                let order = number % 2;
                if waiter.is_none() {
                    let tokens = [10, 100, 1_500][rng.usize(0..3)];
                    let place = sets[order].reserve(at(now), &weights(order, tokens));
                    *waiter = Some((place.expect("below all limits"), tokens));
                }
                let Some((place, tokens)) = waiter else {
                    continue;
                };
                if rng.u64(0..100) == 0 {
                    *waiter = None;
                } else if let Ok(permit) = place.claim(at(now)) {
                    send(order, permit, *tokens, &mut rng);
                    *waiter = None;
                }
            }
            // Tries, most of which one of both limits refuses.
            let (order, tokens) = (rng.usize(0..2), rng.u64(1..1_500));
            if let Ok(permit) = sets[order].try_acquire(at(now), &weights(order, tokens)) {
                send(order, permit, tokens, &mut rng);
            }
            coming.retain(|(back, order, permit, reports)| {
                if *back > now {
                    return true;
                }
                if let Some(reports) = reports {
                    hear(&rates, now, *order, permit, reports);
                }
                false
            });
        }
        drop(waiters);
        let refused = service.refused - excused;
        println!(
            "seed {seed}: {} passed, {refused} and {excused} refused, gap {} ms",
            service.passed, service.gap
        );
        assert!(refused * 200 <= service.passed, "{refused}");
        assert!(excused * 20 <= service.passed, "{excused}");
        assert!(service.gap <= 2 * WINDOWS[1], "{}", service.gap);
        for (_, order, permit, reports) in coming {
            if let Some(reports) = reports {
                hear(&rates, end + 400, order, &permit, &reports);
            }
        }
        all_back(&rates, &sets, &mut service, end + 400);
    }
}

/// A bar that is an eighth too high leaves some of each window.
#[test]
fn a_set_alone_uses_both_limits_to_the_last_request() {
    // The limit that binds is of requests, of both, and of tokens.
    for (tokens, in_a_window) in [(10, 120), (50, 120), (100, 60)] {
        for order in 0..2 {
            let rates = rates(Spend::Fast);
            let set = &sets(&rates)[order];
            let mut service = Service::new();
            let mut waiting = None;
            for window in 1..=20 {
                for now in ((window - 1) * WINDOWS[1]..window * WINDOWS[1]).step_by(20) {
                    let mut place = waiting.take().unwrap_or_else(|| {
                        let place = set.reserve(at(now), &weights(order, tokens));
                        place.expect("below both limits")
                    });
                    if let Ok(permit) = place.claim(at(now)) {
                        let reports = service.answer(now, [1, tokens]);
                        hear(&rates, now, order, &permit, &reports);
                    } else {
                        waiting = Some(place);
                    }
                }
                assert_eq!(service.passed, window * in_a_window, "{tokens} tokens each");
            }
        }
    }
}

/// A clock that each step of a thread moves, and that is never far ahead of a thread which the
/// scheduler has stopped: a reading that is late by many windows takes the line back by as much.
struct Steps {
    now: AtomicU64,
    /// The last reading of each thread.
    read: [AtomicU64; 8],
}

impl Steps {
    const LEAD: u64 = 500;

    fn next(&self, number: usize) -> u64 {
        let now = self.now.fetch_add(5, Relaxed);
        self.read[number].store(now, Relaxed);
        let is_ahead = |read: &AtomicU64| now > read.load(Relaxed) + Self::LEAD;
        while self.read.iter().any(is_ahead) {
            thread::yield_now();
        }
        now
    }

    fn leave(&self, number: usize) {
        self.read[number].store(u64::MAX / 2, Relaxed);
    }
}

#[test]
fn hostile_threads_stop_no_set_and_lose_no_place() {
    let rates = rates(Spend::Even);
    let sets = sets(&rates);
    let service = Mutex::new(Service::new());
    let clock = Steps {
        now: AtomicU64::new(0),
        read: [const { AtomicU64::new(0) }; 8],
    };
    let end = 400_000;
    thread::scope(|scope| {
        for number in 0..8_usize {
            let (rates, sets, service, clock) = (&rates, &sets, &service, &clock);
            scope.spawn(move || {
                let mut rng = Rng::with_seed(number as u64);
                let order = number % 2;
                let send = |now, permit: SetPermit<2>, tokens, is_lost: bool| {
                    let mut service = service.lock().expect("no panic");
                    let reports = service.answer(now, [1, tokens]);
                    drop(service);
                    if !is_lost {
                        hear(rates, now, order, &permit, &reports);
                    }
                };
                loop {
                    let now = clock.next(number);
                    if now >= end {
                        return clock.leave(number);
                    }
                    let tokens = [10, 100, 1_500][rng.usize(0..3)];
                    let weights = weights(order, tokens);
                    if rng.bool() {
                        if let Ok(permit) = sets[order].try_acquire(at(now), &weights) {
                            send(now, permit, tokens, rng.u64(0..5) == 0);
                        }
                        continue;
                    }
                    let place = sets[order].reserve(at(now), &weights);
                    let mut place = place.expect("below all limits");
                    for _ in 0..rng.u64(0..2_000) {
                        let now = clock.next(number);
                        if now >= end {
                            return clock.leave(number);
                        }
                        if let Ok(permit) = place.claim(at(now)) {
                            send(now, permit, tokens, rng.u64(0..5) == 0);
                            break;
                        }
                    }
                }
            });
        }
    });
    let mut service = service.into_inner().expect("no panic");
    println!(
        "{} passed, {} refused, gap {} ms",
        service.passed, service.refused, service.gap
    );
    assert!(
        service.refused * 50 <= service.passed,
        "{}",
        service.refused
    );
    assert!(service.gap <= 2 * WINDOWS[1], "{}", service.gap);
    all_back(&rates, &sets, &mut service, end);
}
