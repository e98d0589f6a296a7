//! When the rate moves: those in line go earlier or later with it, as a twin shows whose waiters
//! look all the time.

use core::time::Duration;

use paceline::{
    ControlLaw, Outcome, Reservation, SendPermit, SendRate, Timestamp,
    law::{DeclaredSettings, LimitReport, Observed, PacedSettings, Reset},
};

use crate::steady::{at_the_floor, fixed};
use crate::world::{MILLI, World, at, limiter, ms};

/// What is recorded, and when, in milliseconds.
type Script = [(u64, Outcome)];

/// Returns when each of `waiters` goes who look every millisecond.
fn twin(rate: &SendRate, waiters: usize, script: &Script, millis: u64) -> Vec<u64> {
    let mut line: Vec<Reservation<'_>> = (0..waiters).map(|_| rate.reserve(at(0))).collect();
    let mut went = Vec::new();
    let mut script = script.iter().peekable();
    for now in 0..=millis {
        let now = now * MILLI;
        while let Some((_, outcome)) = script.next_if(|(when, _)| when * MILLI <= now) {
            rate.record(at(now), SendPermit::sent_at(at(now)), *outcome);
        }
        while went.len() < waiters && line[went.len()].claim(at(now)).is_ok() {
            went.push(now);
        }
    }
    assert_eq!(went.len(), waiters, "the twin's waiters have all gone");
    went
}

/// Lets `waiters` wait in a world where the same is recorded, and checks that each goes within 50
/// ms of its twin.
///
/// Returns how often the one was woken that was woken most.
fn compare(make: impl Fn() -> SendRate, waiters: usize, script: &Script, millis: u64) -> u32 {
    let want = twin(&make(), waiters, script, millis);
    let mut world = World::default();
    let limiter = limiter(make(), &world.hands);
    for _ in 0..waiters {
        world.spawn(limiter.clone().into_tokens(1).acquire());
    }
    for (when, outcome) in script {
        world.run_until(when * MILLI);
        limiter.record(SendPermit::sent_at(at(when * MILLI)), *outcome);
        world.settle();
    }
    world.run_until((millis + 50) * MILLI);
    assert!(
        world.order.iter().copied().eq(0..waiters),
        "first come, first served"
    );
    for (task, want) in world.tasks.iter().zip(want) {
        let ended = task.went_at();
        // The twin looks every millisecond. Here the rate rises at looks only, 50 ms apart at most.
        // So a turn comes up to 25 ms later, and is seen up to 50 ms later still.
        assert!(
            ended.saturating_sub(want) <= 75 * MILLI && want.saturating_sub(ended) <= 2 * MILLI,
            "went at {ended}, not at {want}"
        );
    }
    world.most_wakes()
}

/// Many successes at once, so that the measured rate allows a higher one.
fn successes(from: u64, to: u64, each: u64) -> Vec<(u64, Outcome)> {
    (from..to)
        .step_by(usize::try_from(each).unwrap())
        .map(|when| (when, Outcome::NotThrottled))
        .collect()
}

/// Ten tokens a second and more, after successes; the published law.
fn measured() -> SendRate {
    let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
    for _ in 0..20 {
        rate.record(at(0), SendPermit::sent_at(at(0)), Outcome::NotThrottled);
    }
    rate.record(at(0), SendPermit::sent_at(at(0)), Outcome::Throttled);
    rate
}

#[test]
fn when_the_rate_rises_waiters_go_within_50_ms_of_their_new_turns() {
    // From 0.5/s: the first three look forward to seconds of waiting.
    let script = successes(500, 9_000, 10);
    let most = compare(at_the_floor, 60, &script, 60_000);
    assert!(most < 40, "woken {most} times");
    compare(measured, 60, &script, 60_000);
}

#[test]
fn when_the_rate_rises_each_is_woken_once_more() {
    // The window that is over at 10.6 s has measured 4,000/s.
    let mut script = vec![(10_000, Outcome::NotThrottled); 2_000];
    script.push((10_600, Outcome::NotThrottled));
    let most = compare(at_the_floor, 500, &script, 60_000);
    assert_eq!(most, 2, "to be told, and to go");
}

/// One caller's clock was a minute ahead once, and took the tokens of that time.
#[test]
fn a_reset_lets_those_go_who_waited_for_a_wrong_time() {
    let mut world = World::default();
    let limiter = limiter(fixed(5), &world.hands);
    let rate = limiter.send_rate();
    for _ in 0..300 {
        assert!(rate.reserve(at(0)).claim(at(60_000 * MILLI)).is_ok());
    }
    for _ in 0..5 {
        world.spawn(limiter.clone().into_tokens(1).acquire());
    }
    world.run_until(1_000 * MILLI);
    assert_eq!(world.order.len(), 0, "it is not a minute later");
    rate.reset(at(1_000 * MILLI));
    world.settle();
    assert!(
        world.order.iter().copied().eq(0..5),
        "what was promised is written off"
    );
}

#[test]
fn forgotten_throttles_let_all_go_and_a_higher_ceiling_lets_them_go_sooner() {
    let mut world = World::default();
    let forgetful = limiter(at_the_floor(), &world.hands);
    for _ in 0..5 {
        world.spawn(forgetful.clone().into_tokens(1).acquire());
    }
    world.run_until(1_000 * MILLI);
    assert_eq!(world.order.len(), 0, "the first token comes at 2 s");
    forgetful.send_rate().forget_throttles(at(1_000 * MILLI));
    world.settle();
    assert!(world.order.iter().copied().eq(0..5), "they are told");

    let mut world = World::default();
    let raised = limiter(fixed(1), &world.hands);
    for _ in 0..5 {
        world.spawn(raised.clone().into_tokens(1).acquire());
    }
    world.run_until(500 * MILLI);
    let faster = PacedSettings::fixed(100, Duration::from_secs(1)).unwrap();
    let set = raised.send_rate().set_paced(faster, at(500 * MILLI));
    assert_eq!(set, Ok(()));
    world.settle();
    world.run_until(600 * MILLI);
    assert!(world.order.iter().copied().eq(0..5), "at the new rate");
}

/// The thread that raised the rate has stopped before it woke a waiter: each goes by its own timer,
/// as late as it was told at first, and no later.
#[test]
fn a_waiter_that_is_not_woken_goes_by_its_timer() {
    let mut world = World::default();
    let limiter = limiter(at_the_floor(), &world.hands);
    for task in 0..20 {
        world.spawn(limiter.clone().into_tokens(1).acquire());
        world.deafen(task);
    }
    world.run_until(10_300 * MILLI);
    for _ in 0..2_000 {
        limiter.record(SendPermit::sent_at(at(0)), Outcome::NotThrottled);
    }
    world.run_until(10_600 * MILLI);
    limiter.record(SendPermit::sent_at(at(0)), Outcome::NotThrottled);
    world.settle();
    assert_eq!(world.order.len(), 5, "the others were told nothing");
    let wait = limiter.token().try_acquire().unwrap_err().wait();
    assert!(wait < Some(ms(1_000)), "the line has become fast: {wait:?}");
    world.run_until(40_000 * MILLI);
    assert!(world.order.iter().copied().eq(0..20));
    for (task, turn) in world.tasks.iter().zip(1..) {
        assert_eq!(task.went_at(), turn * 2_000 * MILLI, "as it was told");
    }
    assert_eq!(world.most_wakes(), 1);
}

#[test]
fn when_the_rate_falls_waiters_go_later() {
    let mut script = successes(100, 3_000, 5);
    script.extend([(3_000, Outcome::Throttled), (3_001, Outcome::Throttled)]);
    let most = compare(measured, 80, &script, 300_000);
    assert!(most < 40, "woken {most} times");
}

/// The paced law's curve rises with time, and nothing is recorded.
#[test]
fn the_first_in_line_follows_a_curve_that_rises_by_itself() {
    for tokens in [1, 3, 20, 300] {
        let second = Duration::from_secs(1);
        let make = || {
            let settings = PacedSettings::builder()
                .initial_rate(tokens, second)
                .build()
                .expect("in range");
            let rate = SendRate::paced(settings, Timestamp::ZERO);
            rate.record(at(0), SendPermit::sent_at(at(0)), Outcome::Throttled);
            rate
        };
        let most = compare(make, 40 * tokens as usize, &[], 60_000);
        assert!(most <= 40, "at {tokens}/s woken {most} times");
    }
}

#[test]
fn a_pause_delays_all_and_its_end_delays_none_further() {
    let hint = Outcome::ThrottledFor(ms(3_000));
    let script = [(450, hint), (600, Outcome::NotThrottled)];
    let most = compare(|| fixed(5), 10, &script, 30_000);
    assert!(most <= 4, "woken {most} times");
}

/// Waiters of the largest tables too are told.
#[test]
fn thousands_are_told_when_the_rate_rises() {
    let script = successes(100, 20_000, 1);
    let most = compare(at_the_floor, 10_000, &script, 40_000);
    assert!(most < 60, "woken {most} times");
}

/// Waiters that are polled once and then held, as by a `select!` with a long arm, delay no other
/// when the rate rises, however it rises.
#[test]
fn those_that_are_never_polled_delay_no_other_when_the_rate_rises() {
    for held in [1, 2, 3, 20, 100] {
        let mut world = World::default();
        let limiter = limiter(fixed(1), &world.hands);
        for _ in 0..held {
            world.spawn(limiter.clone().into_tokens(1).acquire());
        }
        for task in 0..held {
            world.hold(task);
        }
        let last = world.spawn(limiter.clone().into_tokens(1).acquire());
        world.run_until(300 * MILLI);
        let faster = PacedSettings::fixed(1_000, Duration::from_secs(1)).unwrap();
        let set = limiter.send_rate().set_paced(faster, at(300 * MILLI));
        assert_eq!(set, Ok(()));
        world.settle();
        world.run_until(200_000 * MILLI);
        let turn = 300 * MILLI + held as u64 * MILLI;
        let went = world.tasks[last].went_at();
        assert!(
            went <= turn + 50 * MILLI,
            "after {held} at {went}, not at {turn}"
        );
    }
    // From 0.5/s to thousands by what is recorded: one response, and then none.
    for held in [1, 2, 3, 20] {
        let mut world = World::default();
        let limiter = limiter(at_the_floor(), &world.hands);
        for _ in 0..held {
            world.spawn(limiter.clone().into_tokens(1).acquire());
        }
        for task in 0..held {
            world.hold(task);
        }
        let last = world.spawn(limiter.clone().into_tokens(1).acquire());
        world.run_until(1_000 * MILLI);
        for _ in 0..2_000 {
            limiter.record(SendPermit::sent_at(at(0)), Outcome::NotThrottled);
        }
        world.run_until(1_600 * MILLI);
        limiter.record(SendPermit::sent_at(at(0)), Outcome::NotThrottled);
        world.settle();
        // The place behind it comes a token later.
        let rate = limiter.send_rate();
        let behind = rate.reserve(at(1_600 * MILLI)).claim(at(1_600 * MILLI));
        let token = 1.0 / rate.snapshot(at(1_600 * MILLI)).fill_rate;
        let turn = 1.6 + behind.unwrap_err().as_secs_f64() - token;
        world.run_until(200_000 * MILLI);
        let went = Duration::from_nanos(world.tasks[last].went_at()).as_secs_f64();
        assert!(went <= turn + 0.05, "after {held} at {went}, not at {turn}");
    }
}

#[test]
fn a_report_of_a_higher_limit_wakes_its_waiters() {
    let mut world = World::default();
    let rate = SendRate::declared(DeclaredSettings::new().first_burst(2), at(0));
    let permits = [(); 2].map(|()| rate.try_acquire(at(0)).expect("of the first burst"));
    let minute = Duration::from_secs(60);
    let report = |left, limit| {
        let report = LimitReport::new(left).limit(limit).window(minute);
        report.reset(Reset::In(minute)).refills(false)
    };
    let limiter = limiter(rate, &world.hands);
    let observed = limiter.observe(permits[0], &report(0, 60).into());
    assert_eq!(observed, Observed::Declared);
    let task = world.spawn(limiter.clone().into_tokens(1).acquire());
    world.run_until(1_000 * MILLI);
    assert!(world.tasks[task].ended.is_none());
    let observed = limiter.observe(permits[1], &report(60_000, 60_000).into());
    assert_eq!(observed, Observed::Changed);
    world.settle();
    world.run_until(1_002 * MILLI);
    // A token of 60,000 in the 58 s after which the window ends at the earliest.
    assert_eq!(world.tasks[task].went_at(), 1_000_966_667);
}
