//! The declared law beside services whose headers say too little, or something else than they seem
//! to: each played whole in virtual time, and compared with the paced law.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use core::time::Duration;
use std::thread;

use fastrand::Rng;
use paceline::law::{DeclaredSettings, Dimension, LimitReport, LimitReports, Observed, Reset};
use paceline::{ControlLaw, Outcome, Reservation, SendPermit, SendRate, Timestamp};

const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLI;
/// The service's clock at the start, in seconds: on a whole window of every service.
const EPOCH: u64 = 1_800_000_000;

/// What a service answers.
struct Reply {
    goes: bool,
    hint: Option<Duration>,
    reports: LimitReports,
}

impl Reply {
    fn new(goes: bool, report: LimitReport, now: u64) -> Self {
        let date = Duration::from_secs(EPOCH + now / SECOND);
        Self {
            goes,
            hint: None,
            reports: LimitReports::from(report).with_date(date),
        }
    }
}

/// Clients, and how long they are played.
#[derive(Clone, Copy)]
struct Play {
    clients: usize,
    /// Of each client.
    workers: usize,
    /// A round trip lies between these, in milliseconds.
    trip: (u64, u64),
    seconds: u64,
    /// What a request is estimated to cost, and what it costs.
    weight: u32,
    cost: u32,
    /// How often an operation is sent.
    sends: u32,
    seed: u64,
}

const PLAY: Play = Play {
    clients: 1,
    workers: 16,
    trip: (50, 150),
    seconds: 600,
    weight: 1,
    cost: 1,
    sends: 5,
    seed: 7,
};

/// What came of it.
#[derive(Debug, Default)]
struct Tally {
    sent: u64,
    refused: u64,
    /// What was let go, and what of it in the second half.
    done: u64,
    late: u64,
}

impl Tally {
    /// Returns how many of a thousand requests were refused.
    fn throttled(&self) -> u64 {
        self.refused * 1_000 / self.sent.max(1)
    }

    /// Returns how many thousandths of `offered` tokens in the whole run were used.
    fn used(&self, offered: u64) -> u64 {
        self.done * 1_000 / offered
    }
}

enum Step {
    Ask,
    Arrive,
    Hear,
}

struct Worker<'a> {
    client: usize,
    step: Step,
    sends: u32,
    place: Option<Reservation<'a>>,
    permit: Option<SendPermit>,
    reply: Option<Reply>,
    back: u64,
}

const fn at(now: u64) -> Timestamp {
    Timestamp::from_nanos(1_000 * SECOND + now)
}

/// Plays clients with limiters of `law` against a `service`, which is told the time, the cost and
/// the client.
fn play(
    play: Play,
    law: impl Fn(Timestamp) -> SendRate,
    mut service: impl FnMut(u64, u64, &mut Rng) -> Reply,
) -> Tally {
    let rates: Vec<_> = (0..play.clients).map(|_| law(at(0))).collect();
    let mut rng = Rng::with_seed(play.seed);
    let (mut tally, mut events) = (Tally::default(), BinaryHeap::new());
    let mut workers: Vec<_> = (0..play.clients * play.workers)
        .map(|number| Worker {
            client: number % play.clients,
            step: Step::Ask,
            sends: 0,
            place: None,
            permit: None,
            reply: None,
            back: 0,
        })
        .collect();
    for index in 0..workers.len() {
        events.push(Reverse((rng.u64(0..SECOND), index)));
    }
    while let Some(Reverse((now, index))) = events.pop() {
        if now >= play.seconds * SECOND {
            break;
        }
        let worker = &mut workers[index];
        let rate = &rates[worker.client];
        let next = match worker.step {
            Step::Ask => {
                let place = worker.place.get_or_insert_with(|| {
                    rate.reserve_n(at(now), play.weight).expect("it may go")
                });
                match place.claim(at(now)) {
                    Ok(permit) => {
                        (worker.place, worker.permit) = (None, Some(permit));
                        worker.sends += 1;
                        tally.sent += 1;
                        let trip = rng.u64(play.trip.0 * MILLI..=play.trip.1 * MILLI);
                        worker.back = trip / 2;
                        worker.step = Step::Arrive;
                        now + trip / 2
                    }
                    Err(wait) => {
                        let wait = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
                        now + wait.clamp(MILLI / 10, 50 * MILLI)
                    }
                }
            }
            Step::Arrive => {
                let reply = service(now, play.cost.into(), &mut rng);
                if reply.goes {
                    tally.done += u64::from(play.cost);
                    if now >= play.seconds * SECOND / 2 {
                        tally.late += u64::from(play.cost);
                    }
                } else {
                    tally.refused += 1;
                }
                worker.reply = Some(reply);
                worker.step = Step::Hear;
                now + worker.back
            }
            Step::Hear => {
                let permit = worker.permit.take().expect("it was sent");
                let reply = worker.reply.take().expect("it has arrived");
                rate.observe(at(now), permit, &reply.reports);
                let outcome = match (reply.goes, reply.hint) {
                    (true, _) => Outcome::NotThrottled,
                    (false, Some(hint)) => Outcome::ThrottledFor(hint),
                    (false, None) => Outcome::Throttled,
                };
                rate.record(at(now), permit, outcome);
                if reply.goes && play.cost != play.weight {
                    let _ = rate.settle(at(now), permit, play.cost);
                }
                worker.step = Step::Ask;
                if reply.goes || worker.sends >= play.sends {
                    worker.sends = 0;
                    now
                } else {
                    let backoff = rng.u64(0..SECOND << (worker.sends - 1).min(4));
                    let hint = reply.hint.unwrap_or_default().min(Duration::from_secs(60));
                    now + backoff + u64::try_from(hint.as_nanos()).expect("a minute at most")
                }
            }
        };
        events.push(Reverse((next, index)));
    }
    tally
}

fn declared(start: Timestamp) -> SendRate {
    SendRate::new(ControlLaw::Declared, start)
}

fn paced(start: Timestamp) -> SendRate {
    SendRate::new(ControlLaw::Paced, start)
}

/// A limit that is counted, in nanoseconds.
struct Count {
    limit: u64,
    window: u64,
    used: u64,
    /// When the window began.
    begun: u64,
}

impl Count {
    const fn new(limit: u64, window: u64) -> Self {
        Self {
            limit,
            window,
            used: 0,
            begun: 0,
        }
    }

    /// Takes `cost` of a window of the clock, and returns whether that was there.
    fn aligned(&mut self, now: u64, cost: u64) -> bool {
        let begun = now - now % self.window;
        if self.begun != begun {
            (self.begun, self.used) = (begun, 0);
        }
        self.take(cost)
    }

    /// Takes `cost` of a window that begins with its first request.
    fn first_use(&mut self, now: u64, cost: u64) -> bool {
        if self.used == 0 || now >= self.begun + self.window {
            (self.begun, self.used) = (now, 0);
        }
        self.take(cost)
    }

    fn take(&mut self, cost: u64) -> bool {
        let goes = self.used + cost <= self.limit;
        if goes {
            self.used += cost;
        }
        goes
    }

    fn left(&self) -> u64 {
        self.limit - self.used
    }

    fn rest(&self, now: u64) -> u64 {
        self.begun + self.window - now
    }
}

/// A bucket that refills, in tokens times its window.
struct Bucket {
    limit: u64,
    window: u64,
    level: u128,
    at: u64,
}

impl Bucket {
    fn new(limit: u64, window: u64) -> Self {
        Self {
            limit,
            window,
            level: u128::from(limit) * u128::from(window),
            at: 0,
        }
    }

    fn take(&mut self, now: u64, cost: u64) -> bool {
        let passed = u128::from(now - self.at) * u128::from(self.limit);
        let whole = u128::from(self.limit) * u128::from(self.window);
        (self.level, self.at) = ((self.level + passed).min(whole), now);
        let cost = u128::from(cost) * u128::from(self.window);
        let goes = self.level >= cost;
        if goes {
            self.level -= cost;
        }
        goes
    }

    fn left(&self) -> u64 {
        u64::try_from(self.level / u128::from(self.window)).expect("at most the limit")
    }

    /// Returns the time until `tokens` are there.
    fn until(&self, tokens: u64) -> u64 {
        let lacking = (u128::from(tokens) * u128::from(self.window)).saturating_sub(self.level);
        u64::try_from(lacking / u128::from(self.limit)).expect("it is short")
    }
}

const fn seconds(nanos: u64) -> Duration {
    Duration::from_secs(nanos.div_ceil(SECOND))
}

/// Returns what came of `declared` and `paced` at one service.
fn both<S>(how: Play, service: impl Fn() -> S) -> [Tally; 2]
where
    S: FnMut(u64, u64, &mut Rng) -> Reply,
{
    [play(how, declared, service()), play(how, paced, service())]
}

/// A service of 3 a second, whose reports are as `report` makes them of the time.
fn three_a_second(
    report: impl Fn(LimitReport, u64) -> LimitReport,
) -> impl FnMut(u64, u64, &mut Rng) -> Reply {
    let mut count = Count::new(3, SECOND);
    move |now, cost, _| {
        let goes = count.aligned(now, cost);
        let told = LimitReport::new(count.left()).limit(3);
        Reply::new(goes, report(told, now), now)
    }
}

const fn epoch(now: u64) -> Duration {
    Duration::from_secs(EPOCH + now / SECOND)
}

/// Limit and remaining without a reset, as NCBI says them (ropensci/rentrez#132), and other reports
/// of which nothing follows: they are as good as none.
#[test]
fn reports_that_cannot_be_used_throttle_no_more_than_the_paced_law() {
    type Form = fn(LimitReport, u64) -> LimitReport;
    let forms: [(&str, Form); 6] = [
        ("no reset", |told, _| told),
        ("remaining alone", |told, _| {
            LimitReport::new(told.remaining())
        }),
        ("a reset that is past", |told, now| {
            told.reset(Reset::At(
                epoch(now).saturating_sub(Duration::from_secs(1_504)),
            ))
        }),
        ("a reset of zero", |told, _| {
            told.reset(Reset::In(Duration::ZERO))
        }),
        ("a window of zero", |told, _| told.window(Duration::ZERO)),
        ("more than there is time", |told, _| {
            told.reset(Reset::In(Duration::MAX)).window(Duration::MAX)
        }),
    ];
    for (name, form) in forms {
        let [told, paced] = both(PLAY, || three_a_second(form));
        assert!(
            told.throttled() <= paced.throttled() + 10,
            "{name}: {told:?}, {paced:?}"
        );
        assert!(told.used(1_800) >= 850, "{name}: {told:?}");
    }
}

/// The headers of GitHub, and no `Date`.
#[test]
fn a_reset_at_a_time_is_nothing_without_a_date() {
    // One play differs from the next by two points.
    let plays = (7..11).map(|seed| {
        let seconds = 7_200;
        let how = Play {
            seconds,
            seed,
            ..PLAY
        };
        both(how, || {
            let mut hour = Count::new(5_000, 3_600 * SECOND);
            move |now, cost, _: &mut Rng| {
                let goes = hour.aligned(now, cost);
                let report = LimitReport::new(hour.left()).limit(5_000);
                let reports = report
                    .reset(Reset::At(epoch(hour.begun + hour.window)))
                    .into();
                Reply {
                    goes,
                    hint: None,
                    reports,
                }
            }
        })
    });
    let mut throttled = [0, 0];
    for tallies in plays {
        for (sum, tally) in throttled.iter_mut().zip(tallies) {
            *sum += tally.throttled();
        }
    }
    let [told, paced] = throttled;
    assert!(told <= paced + 4 * 10, "{told}, {paced}");
}

/// Returns what twelve waiters send in a minute that are each refused 50 ms later, and whose
/// limiter has `begun` somehow.
fn twelve_waiters(begun: impl Fn(&SendRate)) -> usize {
    let rate = declared(at(0));
    begun(&rate);
    let mut flying = Vec::new();
    let (mut places, mut sends): (Vec<_>, usize) =
        ((0..12).map(|_| rate.reserve(at(0))).collect(), 0);
    for now in (0..60 * SECOND).step_by(5_000_000) {
        flying.retain(|(due, permit)| {
            if *due <= now {
                rate.observe(at(now), *permit, &LimitReport::new(0).limit(3).into());
                rate.record(at(now), *permit, Outcome::Throttled);
            }
            *due > now
        });
        for place in &mut places {
            if let Ok(permit) = place.claim(at(now)) {
                flying.push((now + 50 * MILLI, permit));
                *place = rate.reserve(at(now));
                sends += 1;
            }
        }
    }
    sends
}

#[test]
fn twelve_waiters_send_no_more_than_without_reports() {
    let hear = |rate: &SendRate| {
        let permit = rate.try_acquire(at(0)).expect("it is the first");
        let report = LimitReport::new(2).limit(3).window(Duration::from_secs(1));
        rate.observe(at(0), permit, &report.into());
    };
    let sends = [
        twelve_waiters(|_| {}),
        twelve_waiters(|rate| {
            hear(rate);
            rate.reset(at(0));
        }),
        twelve_waiters(|rate| {
            hear(rate);
            rate.forget_throttles(at(0));
        }),
    ];
    assert!(sends.iter().all(|sends| *sends <= 76), "{sends:?}");
}

/// The same with threads, each of which keeps three places.
#[test]
fn threads_send_no_more_than_without_reports() {
    let rate = declared(at(0));
    let (clock, sends) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut places: Vec<_> = (0..3).map(|_| rate.reserve(at(0))).collect();
                loop {
                    let now = clock.fetch_add(MILLI, Relaxed);
                    if now > 60 * SECOND {
                        return;
                    }
                    for place in &mut places {
                        let Ok(permit) = place.claim(at(now)) else {
                            continue;
                        };
                        sends.fetch_add(1, Relaxed);
                        let later = at(now + 50 * MILLI);
                        rate.observe(later, permit, &LimitReport::new(0).limit(3).into());
                        rate.record(later, permit, Outcome::Throttled);
                        *place = rate.reserve(later);
                    }
                }
            });
        }
    });
    // By the clock of one thread another one is a little late.
    assert!(sends.into_inner() <= 150);
}

/// The reset is when one request fits, as `DigitalOcean` says in `OpenAI`'s names
/// (<https://docs.digitalocean.com/reference/api/reference/serverless-inference/>).
#[test]
fn a_reset_that_brings_one_token_back_is_given_up() {
    for (limit, most) in [(120, 100), (90, 130)] {
        let tally = play(PLAY, declared, {
            let mut bucket = Bucket::new(limit, 60 * SECOND);
            move |now, cost, _: &mut Rng| {
                let goes = bucket.take(now, cost);
                let fits = (EPOCH * SECOND + now + bucket.until(1)).div_ceil(SECOND);
                let report = LimitReport::new(bucket.left()).limit(limit);
                let reset = Reset::At(Duration::from_secs(fits));
                Reply::new(goes, report.reset(reset), now)
            }
        });
        assert!(tally.throttled() <= most, "{limit}: {tally:?}");
    }
}

/// Once it is given up, that is said, and the paced law decides.
#[test]
fn what_was_given_up_is_shown() {
    let rate = declared(at(0));
    let report = |reset| {
        let reset = Reset::In(Duration::from_secs(reset));
        LimitReports::from(LimitReport::new(0).limit(100).reset(reset))
    };
    let mut seen = Vec::new();
    for now in (0..9 * SECOND).step_by(10_000_000).map(at) {
        if let Ok(permit) = rate.try_acquire(now) {
            seen.push(rate.observe(now, permit, &report(1)));
            rate.record(now, permit, Outcome::Throttled);
        }
    }
    assert!(seen.contains(&Observed::GivenUp), "{seen:?}");
    let shown = rate.snapshot(at(9 * SECOND)).declared.expect("it is shown");
    assert!(shown.given_up && shown.to_string().ends_with("given up"));
}

/// A window that begins with its first request, told in whole seconds, as `UniFi` Protect does
/// (uilibs/uiprotect#984).
#[test]
fn windows_from_first_use_are_kept_to() {
    for (limit, window, clients, least) in [
        (10, 1, 1, 880),
        (3, 1, 1, 880),
        (20, 1, 1, 880),
        (20, 2, 1, 930),
        (5, 5, 1, 920),
        (10, 1, 2, 770),
    ] {
        let how = Play { clients, ..PLAY };
        let mut count = Count::new(limit, window * SECOND);
        let tally = play(how, declared, move |now, cost, _| {
            let goes = count.first_use(now, cost);
            let report = LimitReport::new(count.left())
                .limit(limit)
                .window(Duration::from_secs(window))
                .reset(Reset::In(seconds(count.rest(now))));
            Reply::new(goes, report, now)
        });
        let is_used = tally.used(limit * PLAY.seconds / window) >= least;
        let rare = tally.throttled() <= 5;
        assert!(is_used && rare, "{limit} in {window} s: {tally:?}");
    }
}

/// The same in seconds of the clock: two clients that each take the other's tokens for its own.
#[test]
fn two_clients_share_a_second_that_is_told_roughly() {
    for (limit, least, most) in [(6, 830, 5), (10, 940, 5), (3, 980, 115)] {
        let how = Play { clients: 2, ..PLAY };
        let mut count = Count::new(limit, SECOND);
        let tally = play(how, declared, move |now, cost, _| {
            let goes = count.aligned(now, cost);
            let report = LimitReport::new(count.left())
                .limit(limit)
                .window(Duration::from_secs(1))
                .reset(Reset::In(seconds(count.rest(now))));
            Reply::new(goes, report, now)
        });
        let is_used = tally.used(limit * PLAY.seconds) >= least;
        assert!(is_used && tally.throttled() <= most, "{limit}: {tally:?}");
    }
}

/// A reset in milliseconds, as Prisjakt tells it (<https://developer.prisjakt.nu>).
#[test]
fn a_reset_that_falls_by_a_thousand_a_second_is_in_milliseconds() {
    for (limit, window, run) in [(10_000, 3_600, 3_600), (100, 60, 1_800), (7, 20, 1_800)] {
        let how = Play {
            seconds: run,
            ..PLAY
        };
        let mut count = Count::new(limit, window * SECOND);
        let tally = play(how, declared, move |now, cost, _| {
            let goes = count.aligned(now, cost);
            let reset = Duration::from_secs(count.rest(now) / MILLI);
            let report = LimitReport::new(count.left()).limit(limit);
            Reply::new(goes, report.reset(Reset::In(reset)), now)
        });
        let is_used = tally.used(limit * run / window) >= 900;
        assert!(is_used && tally.throttled() <= 10, "{limit}: {tally:?}");
    }
}

/// The headers of GitHub, of which some have a `Date` that is off by a second.
#[test]
fn an_odd_date_does_not_make_a_refill_of_a_window() {
    let odd = [
        (1, 1_200),
        (10, 120),
        (10, 1_200),
        (500, 120),
        (500, 1_200),
        (1_000, 1_200),
    ];
    for ((share, until), told) in odd.into_iter().flat_map(|odd| [(odd, false), (odd, true)]) {
        let how = Play {
            seconds: 1_200,
            ..PLAY
        };
        let mut count = Count::new(600, 60 * SECOND);
        let tally = play(how, declared, move |now, cost, rng| {
            let goes = count.aligned(now, cost);
            let odd = now < until * SECOND && rng.u64(0..1_000) < share;
            let report = LimitReport::new(count.left()).limit(600);
            let report = report.reset(Reset::At(epoch(count.begun + count.window)));
            let report = if told {
                report.window(Duration::from_secs(60))
            } else {
                report
            };
            let date = epoch(now) + Duration::from_secs(odd.into());
            Reply {
                goes,
                hint: None,
                reports: LimitReports::from(report).with_date(date),
            }
        });
        let is_used = tally.used(12_000) >= 950;
        assert!(
            is_used && tally.throttled() <= 10,
            "{share}, {told}: {tally:?}"
        );
    }
}

/// The headers of GitHub, and a secondary limit that refuses two of 1,000 requests for a minute
/// (<https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api>).
#[test]
fn a_secondary_limit_that_refuses_a_few_slows_no_hour() {
    let how = Play {
        seconds: 4 * 3_600,
        ..PLAY
    };
    let mut count = Count::new(5_000, 3_600 * SECOND);
    let tally = play(how, declared, move |now, cost, rng| {
        let secondary = rng.u64(0..1_000) < 2;
        let goes = !secondary && count.aligned(now, cost);
        let report = LimitReport::new(count.left()).limit(5_000);
        let report = report.reset(Reset::At(epoch(count.begun + count.window)));
        let hint = secondary.then_some(Duration::from_secs(60));
        Reply {
            hint,
            ..Reply::new(goes, report, now)
        }
    });
    let is_used = tally.used(20_000) >= 950;
    assert!(is_used && tally.throttled() <= 5, "{tally:?}");
}

/// Requests of a language model that cost a third of their estimate, which is known at their end.
#[test]
fn estimates_that_are_too_high_are_learned() {
    let how = Play {
        workers: 256,
        trip: (30_000, 120_000),
        seconds: 3_600,
        weight: 3_000,
        cost: 1_000,
        ..PLAY
    };
    let law =
        |start| SendRate::declared(DeclaredSettings::new().dimension(Dimension::Tokens), start);
    let mut bucket = Bucket::new(100_000, 60 * SECOND);
    let tally = play(how, law, move |now, cost, _| {
        let goes = bucket.take(now, cost);
        let whole = Duration::from_millis(bucket.until(100_000).div_ceil(MILLI));
        let report = LimitReport::new(bucket.left())
            .limit(100_000)
            .dimension(Dimension::Tokens)
            .reset(Reset::In(whole))
            .refills(true);
        Reply::new(goes, report, now)
    });
    let is_used = tally.used(6_000_000) >= 750;
    assert!(is_used && tally.throttled() <= 10, "{tally:?}");
}

/// "0 left, reset in a minute" as the first report, without a limit: the next goes after it.
#[test]
fn a_limit_that_is_not_told_holds_back_all_the_same() {
    let rate = declared(at(0));
    let mut sent = 0;
    for now in (0..60 * SECOND).step_by(10_000_000) {
        if let Ok(permit) = rate.try_acquire(at(now)) {
            let report = LimitReport::new(0).reset(Reset::In(seconds(60 * SECOND - now)));
            rate.observe(at(now), permit, &report.into());
            rate.record(at(now), permit, Outcome::Throttled);
            sent += 1;
        }
    }
    assert_eq!(sent, 1);
    // How much it is is not known.
    assert!(rate.reserve_n(at(60 * SECOND), 5).is_ok());
}
