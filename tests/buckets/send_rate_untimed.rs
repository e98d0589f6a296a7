//! Requests that are let go and counted without a look at the clock.

use core::cell::Cell;
use core::time::Duration;

use paceline::{ControlLaw, Outcome, SendPermit, SendRate, Timestamp, law::PacedSettings};

const MICRO: u64 = 1_000;
const SECOND: u64 = 1_000_000_000;

/// A clock that counts how often it is read.
#[derive(Default)]
struct Clock {
    now: Cell<u64>,
    looks: Cell<u32>,
}

impl Clock {
    fn at(now: u64) -> Self {
        Self {
            now: Cell::new(now),
            looks: Cell::new(0),
        }
    }

    fn read(&self) -> Timestamp {
        self.looks.set(self.looks.get() + 1);
        Timestamp::from_nanos(self.now.get())
    }

    fn pass(&self, nanos: u64) {
        self.now.set(self.now.get() + nanos);
    }

    fn looks(&self) -> u32 {
        self.looks.take()
    }
}

fn limiter(law: ControlLaw) -> SendRate {
    SendRate::new(law, Timestamp::ZERO)
}

/// Sends one request, and records that it came out well.
fn request(rate: &SendRate, clock: &Clock) {
    let permit = rate.try_acquire_with(|| clock.read()).expect("not limited");
    rate.record_with(|| clock.read(), permit, Outcome::NotThrottled);
}

fn throttle(rate: &SendRate, clock: &Clock, permit: SendPermit) {
    rate.record_with(|| clock.read(), permit, Outcome::Throttled);
}

#[test]
fn a_slow_thread_asks_for_the_time_of_every_request() {
    for law in [ControlLaw::Aws, ControlLaw::Paced] {
        let (rate, clock) = (limiter(law), Clock::at(SECOND));
        for _ in 0..50 {
            clock.pass(SECOND / 100);
            request(&rate, &clock);
            assert_eq!(clock.looks(), 2, "once to send and once to record");
        }
    }
}

#[test]
fn a_busy_thread_asks_once_in_256_requests_and_loses_no_count() {
    let (rate, clock) = (limiter(ControlLaw::Aws), Clock::at(0));
    // The window in which they all lie ends with the first look after it.
    for _ in 0..100_000 {
        clock.pass(MICRO);
        request(&rate, &clock);
    }
    let looks = clock.looks();
    assert!((390..900).contains(&looks), "{looks} looks");
    clock.pass(SECOND);
    let permit = SendPermit::sent_at(clock.read());
    rate.record(clock.read(), permit, Outcome::NotThrottled);
    let measured = rate.snapshot(clock.read()).measured_rate;
    // 0.8 × 100,001 in two windows of half a second.
    assert!((measured - 80_000.8).abs() < 1e-3, "{measured}");
}

#[test]
fn the_measured_rate_is_off_by_at_most_a_250th_while_requests_come_evenly() {
    for gap in [MICRO, 7 * MICRO, 150 * MICRO, 3_000 * MICRO] {
        let (rough, exact) = (limiter(ControlLaw::Aws), limiter(ControlLaw::Aws));
        let clock = Clock::at(0);
        while clock.now.get() < 10 * SECOND {
            clock.pass(gap);
            request(&rough, &clock);
            let permit = SendPermit::sent_at(clock.read());
            exact.record(clock.read(), permit, Outcome::NotThrottled);
        }
        let rough = rough.snapshot(clock.read()).measured_rate;
        let exact = exact.snapshot(clock.read()).measured_rate;
        assert!((rough - exact).abs() <= exact / 250.0, "{rough}, {exact}");
    }
}

#[test]
fn a_throttle_is_timed_and_so_is_every_request_after_it() {
    for law in [ControlLaw::Aws, ControlLaw::Paced] {
        let (rate, clock) = (limiter(law), Clock::at(0));
        for _ in 0..10_000 {
            clock.pass(MICRO);
            request(&rate, &clock);
        }
        let permit = rate.try_acquire_with(|| clock.read()).expect("not limited");
        clock.looks();
        throttle(&rate, &clock, permit);
        assert_eq!(clock.looks(), 1);
        assert!(rate.snapshot(clock.read()).enabled);
        clock.pass(3 * SECOND);
        clock.looks();
        let mut place = rate.reserve(clock.read());
        let permit = place
            .claim(clock.read())
            .expect("the floor gives one in two seconds");
        assert_eq!(clock.looks(), 2);
        assert_eq!(permit.time().as_nanos(), clock.now.get());
        rate.record_with(|| clock.read(), permit, Outcome::NotThrottled);
        assert_eq!(clock.looks(), 1);
    }
}

/// What was sent before there was a limit was sent before the first cut, so it says nothing new
/// (rule 1).
#[test]
fn untimed_requests_that_are_throttled_cut_the_paced_rate_once() {
    let (rate, clock) = (limiter(ControlLaw::Paced), Clock::at(0));
    for _ in 0..100_000 {
        clock.pass(10 * MICRO);
        request(&rate, &clock);
    }
    let sent: Vec<_> = (0..50)
        .map(|_| rate.try_acquire_with(|| clock.read()).expect("not limited"))
        .collect();
    assert!(sent.iter().any(|permit| permit.time() == Timestamp::ZERO));
    let mut peaks = Vec::new();
    for permit in sent {
        clock.pass(10 * MICRO);
        throttle(&rate, &clock, permit);
        peaks.push(rate.snapshot(clock.read()).last_max_rate.to_bits());
    }
    assert!(peaks.iter().all(|peak| *peak == peaks[0]));
    let peak = f64::from_bits(peaks[0]);
    assert!((99_000.0..101_000.0).contains(&peak), "{peak}");
}

#[test]
fn a_limiter_that_limits_from_the_start_looks_from_the_start() {
    let settings = PacedSettings::fixed(1_000, Duration::from_secs(1)).expect("in range");
    let (rate, clock) = (SendRate::paced(settings, Timestamp::ZERO), Clock::at(0));
    for _ in 0..20 {
        clock.pass(SECOND / 1_000);
        request(&rate, &clock);
        assert_eq!(clock.looks(), 2);
    }
}
