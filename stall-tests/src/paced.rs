//! Threads stopped inside the paced law: the next one who comes finds it as if the call had
//! happened, or had not.

use alloc::sync::Arc;
use core::mem;
use core::time::Duration;

use paceline_core::law::PacedSettings;
use paceline_core::{ControlLaw, Outcome, SendPermit, SendRate, SendRateSnapshot, Timestamp};

use crate::hook::{MOST, bounded, overtaken_and_stopped_at, stopped_at};
use crate::scene::at;
use crate::workload::later;

type Call = fn(&SendRate);

/// The most steps of a call.
const LONG: u64 = 2 * MOST;

fn take(rate: &SendRate, now: Timestamp) -> Result<(), Duration> {
    bounded(LONG, || rate.try_acquire(now)).map(drop)
}

fn look(rate: &SendRate, now: Timestamp) -> SendRateSnapshot {
    bounded(LONG, || rate.snapshot(now))
}

fn record(rate: &SendRate, now: u64, sent: u64, outcome: Outcome) {
    rate.record(at(now), SendPermit::sent_at(at(sent)), outcome);
}

/// Starved from the first response on: a throttle after two seconds, at half a token per second.
fn starved() -> SendRate {
    let rate = SendRate::new(ControlLaw::Paced, Timestamp::ZERO);
    record(&rate, 2_000, 0, Outcome::Throttled);
    rate
}

/// Besides, 39 responses, one less than lifts the rate.
fn delivering() -> SendRate {
    let rate = starved();
    for _ in 0..39 {
        record(&rate, 2_600, 2_100, Outcome::NotThrottled);
    }
    rate
}

/// In a pause until 4.15 s.
fn paused() -> SendRate {
    let rate = delivering();
    let hint = Outcome::ThrottledFor(Duration::from_secs(1));
    record(&rate, 3_150, 3_000, hint);
    rate
}

/// A limiter, the moment that calls are made in it, and the calls.
struct Setting {
    name: &'static str,
    limiter: fn() -> SendRate,
    now: u64,
    calls: &'static [(&'static str, Call)],
}

const CALLS: &[Setting] = &[
    Setting {
        name: "starved",
        limiter: starved,
        now: 3_150,
        calls: &[
            ("throttle", |rate| {
                record(rate, 3_150, 3_000, Outcome::Throttled);
            }),
            ("success", |rate| {
                record(rate, 3_150, 3_000, Outcome::NotThrottled);
            }),
            ("ask", |rate| {
                let _ = rate.try_acquire(at(3_150));
            }),
        ],
    },
    Setting {
        name: "delivering",
        limiter: delivering,
        now: 3_150,
        calls: &[
            ("throttle", |rate| {
                record(rate, 3_150, 3_000, Outcome::Throttled);
            }),
            ("window", |rate| {
                record(rate, 3_150, 3_000, Outcome::NotThrottled);
            }),
            ("pause", |rate| {
                let hint = Outcome::ThrottledFor(Duration::from_millis(500));
                record(rate, 3_150, 3_000, hint);
            }),
            ("reset", |rate| rate.reset(at(3_150))),
        ],
    },
    Setting {
        name: "delivering, a minute later",
        limiter: delivering,
        now: 60_000,
        calls: &[
            ("window", |rate| {
                record(rate, 60_000, 59_000, Outcome::NotThrottled);
            }),
            ("throttle", |rate| {
                record(rate, 60_000, 59_000, Outcome::Throttled);
            }),
        ],
    },
    Setting {
        name: "shut",
        limiter: shut,
        now: 33_100,
        calls: &[
            ("opening", |rate| {
                record(rate, 33_100, 33_000, Outcome::NotThrottled);
            }),
            ("refusal", |rate| {
                record(rate, 33_100, 33_050, Outcome::Throttled);
            }),
        ],
    },
    Setting {
        name: "paused",
        limiter: paused,
        now: 4_200,
        calls: &[
            ("ask", |rate| {
                let _ = rate.try_acquire(at(4_200));
            }),
            ("claim", |rate| mem::forget(rate.reserve(at(4_200)))),
            ("success", |rate| {
                record(rate, 4_200, 4_160, Outcome::NotThrottled);
            }),
        ],
    },
];

/// Takes all there is at `now`: no more than the bucket holds; and then nothing until it is said.
fn take_all(rate: &SendRate, now: Timestamp) {
    let _ = take(rate, now); // lets take effect what is still to
    let seen = look(rate, now);
    if !seen.enabled {
        return assert_eq!(take(rate, now), Ok(()));
    }
    let mut granted = 0_u32;
    while take(rate, now).is_ok() {
        granted += 1;
        assert!(f64::from(granted) <= seen.capacity, "{granted} of {seen:?}");
    }
}

/// How long nothing gets through before a throttle with a hint pauses everything.
const NOTHING: u64 = 20_000;

/// A throttle of a new request cuts, and one with a hint, after which nothing got through, pauses
/// for that long.
fn throttle_and_pause(rate: &SendRate, now: u64) {
    bounded(LONG, || record(rate, now, now - 1, Outcome::Throttled));
    assert!(look(rate, at(now)).enabled, "the throttle is not lost");
    let hint = Outcome::ThrottledFor(Duration::from_millis(300));
    let now = now + NOTHING;
    bounded(LONG, || record(rate, now + 100, now + 50, hint));
    for millis in [100, 250, 399] {
        let wait = take(rate, at(now + millis)).expect_err("a pause");
        assert!(wait >= Duration::from_millis(400 - millis), "{wait:?}");
    }
    take_all(rate, at(now + 400));
    let wait = take(rate, at(now + 400)).expect_err("all is taken");
    assert_eq!(take(rate, later(at(now + 400), wait)), Ok(()));
}

/// Everything that others do at `now` and later, each call in a bounded number of steps.
fn go_on(rate: &SendRate, now: u64) {
    take_all(rate, at(now));
    bounded(LONG, || record(rate, now, now - 1, Outcome::NotThrottled));
    throttle_and_pause(rate, now + 200);
    let now = now + NOTHING;
    for step in 0..40 {
        bounded(LONG, || {
            record(rate, now + 2_000 + step, now + 1_900, Outcome::NotThrottled);
        });
    }
    // Half a minute of calm, twice: it still lets through.
    for seconds in [40, 80] {
        let end = now + seconds * 1_000;
        bounded(LONG, || record(rate, end, end - 1, Outcome::NotThrottled));
    }
    take_all(rate, at(now + 80_000));
}

/// Wherever a thread stops inside the law, everybody else goes on, and the law does too.
#[test]
fn a_thread_stopped_in_the_paced_law_stops_no_other() {
    for setting in CALLS {
        for (name, call) in setting.calls {
            let stopped = (0..=2 * MOST).find(|step| {
                let rate = (setting.limiter)();
                let finished = stopped_at(*step, || call(&rate)).is_some();
                go_on(&rate, setting.now + 1);
                finished
            });
            let steps = stopped.expect("the call finishes");
            assert!(steps > 0, "{}, {name}: no step", setting.name);
            println!("{}, {name}: {steps} steps", setting.name);
        }
    }
}

/// Likewise for two threads, one after the other: the second finishes, unless it is stopped too.
#[test]
fn two_threads_stopped_in_the_paced_law_stop_no_other() {
    for setting in CALLS {
        for (_, first) in setting.calls {
            for (_, second) in setting.calls {
                let steps = (0..=LONG).find(|step| two_stop(setting, *first, *step, *second));
                assert!(steps.is_some(), "the first call finishes");
            }
        }
    }
}

/// Stops `first` at `step` and `second` at each of its steps. True if `first` finished before.
fn two_stop(setting: &Setting, first: Call, step: u64, second: Call) -> bool {
    let mut first_done = false;
    let finished = (0..=LONG).find(|step_of_second| {
        let rate = (setting.limiter)();
        first_done = stopped_at(step, || first(&rate)).is_some();
        let second_done = stopped_at(*step_of_second, || second(&rate)).is_some();
        go_on(&rate, setting.now + 1);
        second_done
    });
    assert!(
        finished.is_some(),
        "{}: the second call finishes",
        setting.name
    );
    first_done
}

/// A service that was shut at 8 s, and has refused a knock at 16.5 s: one goes at 32.5 s.
fn shut() -> SendRate {
    let rate = SendRate::new(ControlLaw::Paced, Timestamp::ZERO);
    record(&rate, 100, 50, Outcome::NotThrottled);
    for refused in [2_000, 8_000, 16_500] {
        record(&rate, refused, refused - 50, Outcome::Throttled);
    }
    rate
}

/// Wherever the thread stops that hears that a knock was done, as between the state and the cycle,
/// and though the knock of the next one never comes back: others get a token after the wait, and
/// after another.
#[test]
fn a_thread_stopped_while_it_opens_and_a_knock_that_is_lost_stop_no_other() {
    let stopped = (0..=2 * MOST).find(|step| {
        let rate = shut();
        let open = || record(&rate, 33_100, 33_000, Outcome::NotThrottled);
        let finished = stopped_at(*step, open).is_some();
        let mut now = at(33_200);
        // The first is the knock that is lost.
        for _ in 0..3 {
            if let Err(wait) = take(&rate, now) {
                // A knock waits no longer than that.
                assert!(wait <= Duration::from_secs(150), "{wait:?} at {step}");
                now = later(now, wait);
                assert_eq!(take(&rate, now), Ok(()), "at {step}");
            }
        }
        finished
    });
    let steps = stopped.expect("the call finishes");
    assert!(steps > 2, "{steps} steps");
    println!("opening: {steps} steps");
}

/// A bucket that holds a thousand tokens, a second's worth, and is full.
fn full() -> SendRate {
    let second = Duration::from_secs(1);
    let settings = PacedSettings::fixed(1_000, second).expect("in range");
    let settings = settings.to_builder().burst(second).build();
    SendRate::paced(settings.expect("in range"), Timestamp::ZERO)
}

fn pause(rate: &SendRate) {
    let hint = Outcome::ThrottledFor(Duration::from_secs(1));
    record(rate, 10_000, 10_000, hint);
}

/// Asserts that nothing is granted in the pause, and no more afterwards than has been minted since.
fn nothing_is_left_but_what_comes(rate: &SendRate) {
    assert!(take(rate, at(10_000)).is_err() && take(rate, at(10_999)).is_err());
    let granted = (0..1_000).filter(|_| take(rate, at(11_100)).is_ok());
    let granted = granted.count();
    assert!((99..=100).contains(&granted), "granted {granted}");
}

/// Callers that read the clock after the words are stopped between the two until a pause has begun:
/// each is granted one token of the line that it has looked at, and no more.
#[test]
fn a_pause_before_the_clock_is_read_costs_a_token_for_each_caller() {
    fn ask(rate: &SendRate, callers: u32) -> u32 {
        if callers == 0 {
            pause(rate);
            return 0;
        }
        let mut others = 0;
        let taken = rate.try_acquire_with(|| {
            others = ask(rate, callers - 1);
            at(10_000)
        });
        others + u32::from(taken.is_ok())
    }
    for callers in 0..5 {
        let rate = full();
        let granted = bounded(u64::from(callers + 1) * LONG, || ask(&rate, callers));
        assert_eq!(granted, callers);
        nothing_is_left_but_what_comes(&rate);
    }
}

/// At whatever step of a call that reads the clock after the words a pause begins, and wherever the
/// call stops then: it is granted one token at most.
#[test]
fn a_pause_at_any_step_of_a_call_costs_one_token() {
    let mut granted = [0; 2];
    for begins in 0..=LONG {
        let mut reached = false;
        for step in begins + 1..=LONG {
            let rate = Arc::new(full());
            let shared = Arc::clone(&rate);
            let call = || rate.try_acquire_with(|| at(10_000)).is_ok();
            let taken = overtaken_and_stopped_at(begins, move || pause(&shared), step, call);
            reached |= taken.is_none() || Arc::strong_count(&rate) == 1;
            if rate.snapshot(at(10_000)).fill_rate.to_bits() != 0 {
                break; // The call was over before the pause began.
            }
            nothing_is_left_but_what_comes(&rate);
            if let Some(taken) = taken {
                granted[usize::from(taken)] += 1;
                break;
            }
        }
        if !reached {
            break;
        }
    }
    println!("refused and granted: {granted:?}");
    assert!(granted[0] > 0 && granted[1] > 0, "{granted:?}");
}
