//! The send rate, by one thread: states in which another thread may have stopped.

use alloc::vec::Vec;

use super::ask::Turn;
use super::place::PlaceGuard;
use super::waiters::placed_between;
use super::*;
use crate::atomic::sync::Ordering::Relaxed;
use crate::fixed::{Rate, SECOND};
use crate::law::Draining;
use crate::law::declared::{
    DeclaredSettings, Dimension, LimitName, LimitReport, LimitReports, Observed, Reset,
};
use crate::line::{LONGEST_QUEUE, TOKEN};
use crate::{Class, Outcome, WeightError, law::Recorded};

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

fn limiter() -> SendRate {
    SendRate::new(ControlLaw::Aws, Timestamp::ZERO)
}

#[test]
fn a_gate_that_was_engaged_for_a_throttle_that_never_came_limits_nothing() {
    let rate = limiter();
    rate.gate.engage();
    for now in [0, 1, SECOND] {
        assert!(rate.try_acquire(at(now)).is_ok());
        assert!(rate.reserve(at(now)).claim(at(now)).is_ok());
        rate.record(at(now), SendPermit::sent_at(at(now)), Outcome::NotThrottled);
    }
    assert!(!rate.snapshot(at(SECOND)).enabled);
}

/// At a token in each nanosecond a word of counts wraps after some minutes.
#[test]
fn a_full_bucket_from_which_nothing_is_taken_stays_full() {
    let settings = PacedSettings::fixed(1_000_000_000, Duration::from_secs(1)).expect("in range");
    let rate = SendRate::paced(settings, Timestamp::ZERO);
    assert!(rate.try_acquire(at(0)).is_ok());
    for look in 1..=6 {
        let now = at(look * 140 * SECOND);
        rate.record(now, SendPermit::sent_at(now), Outcome::NotThrottled);
    }
    assert!(rate.try_acquire(at(841 * SECOND)).is_ok());
}

#[test]
fn a_reset_ends_the_count_after_the_first_throttle() {
    let rate = SendRate::new(ControlLaw::Paced, Timestamp::ZERO);
    throttle(&rate, SECOND, SECOND);
    let engaged = rate.about_to_limit();
    let version = engaged.state.load().version();
    let drain = &engaged.beside().drain;
    drain.begin(version, 1);
    assert_eq!(drain.load().of(version), Some(1));
    rate.reset(at(0));
    assert_eq!(drain.load(), Draining::NONE);
}

#[test]
fn a_throttle_takes_effect_at_the_next_call() {
    let ways: [fn(&SendRate) -> bool; 3] = [
        |rate| rate.try_acquire(at(0)).is_err(),
        |rate| rate.reserve(at(0)).claim(at(0)).is_err(),
        |rate| {
            rate.record(at(0), SendPermit::sent_at(at(0)), Outcome::NotThrottled);
            rate.about_to_limit().line().head.head().rate() != Rate::ZERO
        },
    ];
    for limits in ways {
        let rate = limiter();
        rate.gate.engage();
        rate.gate.disturb();
        let limited = rate.about_to_limit();
        let last = limited.state.load();
        assert!(
            limited
                .state
                .replace(last, last.next(0, Rate::MAX.to_bits()))
        );
        assert!(limits(&rate));
    }
}

#[test]
fn a_hint_that_ends_no_later_than_the_pause_changes_nothing() {
    let settings = PacedSettings::fixed(10, Duration::from_secs(1)).expect("in range");
    let rate = SendRate::paced(settings, Timestamp::ZERO);
    let permit = SendPermit::sent_at(at(SECOND >> 1));
    let record = |now, hint| {
        let hint = Duration::from_nanos(hint);
        rate.record(at(now), permit, Outcome::ThrottledFor(hint));
        rate.about_to_limit().state.load()
    };
    let pause = record(SECOND, 2 * SECOND);
    assert_eq!(pause.since(), 3 * SECOND);
    assert_eq!(record(2 * SECOND, SECOND - 1), pause);
    assert_eq!(record(2 * SECOND, SECOND), pause);
    assert_eq!(record(2 * SECOND, SECOND + 1).since(), 3 * SECOND + 1);
}

/// A law that the words do not know: it is one file in `law` and one variant of `Controller`.
#[test]
fn a_law_of_one_file_moves_the_rate() {
    let first = Rate::from_ratio(100, SECOND);
    let law = Controller::Aimd(crate::law::aimd::Aimd { first });
    let rate = SendRate::build(law, Dimension::default(), Timestamp::ZERO);
    let throttle = |now| rate.record(at(now), SendPermit::sent_at(at(now)), Outcome::Throttled);
    let fill = |now| rate.snapshot(at(now)).fill_rate.round();
    assert!(rate.try_acquire(at(0)).is_ok(), "unlimited");
    assert_eq!(throttle(SECOND), Recorded::Cut);
    assert_eq!(fill(SECOND).to_bits(), 100_f64.to_bits());
    let now = 3 * SECOND + SECOND / 2;
    while rate.try_acquire(at(now)).is_ok() {}
    let (_, line) = rate.about_to_limit().line().read();
    assert_eq!(
        line.rate,
        Rate::from_raw(u128::from(first.raw()) * 102 / 100)
    );
    assert_eq!(throttle(now), Recorded::Cut);
    assert_eq!(fill(now).to_bits(), 51_f64.to_bits());
    let response = rate.record(at(now), SendPermit::sent_at(at(0)), Outcome::NotThrottled);
    assert_eq!(response, Recorded::Counted);
}

fn paced(per_second: u32) -> SendRate {
    let settings = PacedSettings::builder().initial_rate(per_second, Duration::from_secs(1));
    SendRate::paced(settings.build().expect("in range"), Timestamp::ZERO)
}

fn succeed(rate: &SendRate, sent: u64, now: u64) -> Recorded {
    rate.record(
        at(now),
        SendPermit::sent_at(at(sent)),
        Outcome::NotThrottled,
    )
}

fn throttle(rate: &SendRate, sent: u64, now: u64) -> Recorded {
    rate.record(at(now), SendPermit::sent_at(at(sent)), Outcome::Throttled)
}

/// Records a throttle that came at so many requests a second.
fn throttle_at(rate: &SendRate, per_second: u32) {
    for _ in 0..per_second {
        succeed(rate, 0, 0);
    }
    succeed(rate, SECOND, SECOND);
    throttle(rate, SECOND, SECOND);
}

const MS: u64 = SECOND.wrapping_div(1_000);

/// Until the window ends, the limit is twice the measured rate. The curve moves all the time.
#[test]
fn responses_look_when_the_published_law_may_move_the_rate() {
    let quiet = |rate: &SendRate, now| {
        succeed(rate, now, now);
        let seen = rate.gate.load();
        (seen.quiet_until(), seen.is_quiet_for_responses(now))
    };
    let rate = limiter();
    throttle(&rate, 0, 0);
    let limited = rate.about_to_limit();
    let drain = &limited.beside().drain;
    assert_eq!(drain.load(), Draining::NONE, "it waits for no others");
    let in_50_ms = (150 * MS) >> 8 << 8;
    assert_eq!(quiet(&rate, 100 * MS), (in_50_ms, true));
    assert_eq!(quiet(&rate, 480 * MS), (500 * MS, true), "a window ends");
    let rate = limiter();
    throttle_at(&rate, 100);
    assert_eq!(quiet(&rate, SECOND + 100 * MS), (0, false));
}

#[test]
fn the_paced_law_is_looked_at_by_steps_and_while_it_drains() {
    let rate = paced(1_000);
    succeed(&rate, 100 * MS, 100 * MS);
    let seen = rate.gate.load();
    assert_eq!(
        seen.quiet_until(),
        6 << 24,
        "the step that 100 ms are in ends"
    );
    assert!(seen.is_quiet_for_responses(100 * MS));
    let limited = rate.about_to_limit();
    let look = |now| {
        rate.gate.disturb();
        limited.adaptation().follow(now);
        let seen = rate.gate.load();
        (seen.is_quiet(now), seen.is_quiet_for_responses(now))
    };
    let drain = &limited.beside().drain;
    drain.begin(limited.state.load().version(), 7);
    assert_eq!(look(200 * MS), (true, false));
    drain.begin(limited.state.load().version(), 8);
    let counts = drain.load().of(limited.state.load().version());
    assert_eq!(counts, Some(7), "begun already");
    drain.clear();
    assert_eq!(look(200 * MS), (true, true));
    assert_eq!(look(SECOND + 100 * MS), (true, false), "its window is over");
}

#[test]
fn a_throttle_at_the_lowest_rate_cuts_nothing() {
    let rate = limiter();
    throttle(&rate, 0, 0);
    for _ in 0..1_000 {
        rate.meter.count(1);
    }
    // By now the measured rate allows more, and so does the curve.
    assert_eq!(throttle(&rate, 10 * SECOND, 10 * SECOND), Recorded::Counted);
}

#[test]
fn a_request_without_a_time_was_sent_before_the_last_cut() {
    let rate = paced(1_000);
    assert_eq!(throttle(&rate, SECOND, SECOND), Recorded::Cut);
    let untimed = rate.record(at(3 * SECOND), SendPermit::NO_TIME, Outcome::Throttled);
    assert_eq!(untimed, Recorded::Counted);
    assert_eq!(throttle(&rate, 3 * SECOND, 3 * SECOND), Recorded::Cut);
}

#[test]
fn a_request_without_a_time_opens_nothing() {
    let rate = paced(1_000);
    for second in 1..4 {
        throttle(&rate, second * SECOND, second * SECOND);
    }
    let now = 3 * SECOND + MS;
    let fill = || rate.snapshot(at(now)).fill_rate;
    assert_eq!(fill().to_bits(), 0, "it is shut");
    rate.record(at(now), SendPermit::NO_TIME, Outcome::NotThrottled);
    assert_eq!(fill().to_bits(), 0, "still");
    succeed(&rate, now, now);
    assert!(fill() > 0.0);
}

#[test]
fn round_trips_are_averaged_over_eight() {
    let start = 7 * SECOND;
    let rate = SendRate::new(ControlLaw::Paced, at(start));
    throttle(&rate, start, start);
    for (trip, average) in [(80, 80), (160, 90), (10, 80)] {
        rate.gate.disturb();
        succeed(&rate, start + SECOND, start + SECOND + trip * MS);
        let known = rate.about_to_limit().beside().trip.load(Relaxed);
        assert_eq!(known, average * MS);
    }
}

#[test]
fn a_pause_ends_at_its_time() {
    let rate = paced(1_000);
    let limited = rate.about_to_limit();
    let last = limited.state.load();
    let pause = last.next(2 * SECOND, last.memory() | 1 << 48);
    assert!(limited.state.replace(last, pause));
    limited.adaptation().apply_state(SECOND);
    for (now, pauses) in [(2 * SECOND - 1, true), (2 * SECOND, false)] {
        limited.adaptation().follow(now);
        assert_eq!(limited.line().read().1.is_paused(), pauses, "{now}");
    }
}

#[test]
fn a_report_after_long_silence_is_in_force_at_once() {
    let settings = DeclaredSettings::new().first_burst(0);
    let rate = SendRate::declared(settings, Timestamp::ZERO);
    let now = 400 * SECOND;
    let report = LimitReport::new(30).limit(60);
    let report = report.reset(Reset::In(Duration::from_secs(60)));
    rate.observe(at(now), SendPermit::sent_at(at(now)), &report.into());
    let (_, line) = rate.about_to_limit().line().read();
    assert!(line.rate <= Rate::from_ratio(1, SECOND), "{:?}", line.rate);
}

#[test]
fn a_line_that_is_renewed_keeps_its_rate() {
    for throttles in [1, 2] {
        let rate = limiter();
        throttle_at(&rate, 100);
        for _ in 1..throttles {
            throttle(&rate, SECOND, SECOND);
        }
        for _ in 0..100 {
            rate.meter.count(1);
        }
        succeed(&rate, 3 * SECOND, 3 * SECOND);
        let limited = rate.about_to_limit();
        let (_, before) = limited.line().read();
        let now = 100 * SECOND;
        assert!(rate.try_acquire(at(now)).is_ok());
        let (head, line) = limited.line().read();
        assert_eq!((line.since, line.rate), (now, before.rate));
        assert!(head.follows(limited.state.load().version()));
    }
}

#[test]
fn a_reset_takes_the_line_back_with_what_its_bucket_holds() {
    let rate = limiter();
    throttle(&rate, 100 * SECOND, 100 * SECOND);
    rate.reset(at(SECOND));
    let limited = rate.about_to_limit();
    let times = [limited.line().read().1.since, limited.state.load().since()];
    assert_eq!(times, [SECOND; 2]);
    assert!(rate.try_acquire(at(SECOND)).is_err(), "it was empty then");
    assert!(rate.try_acquire(at(3 * SECOND)).is_ok());
    limited.state.bring_back(2 * SECOND);
    assert_eq!(limited.state.load().since(), SECOND, "back, not on");
}

#[test]
fn a_window_begins_anew_at_a_reset() {
    let rate = limiter();
    let restart = |rate: &SendRate, now| rate.meter.restart(&rate.law.get(), now);
    assert_eq!(restart(&rate, 600 * MS), SECOND);
    let rate = paced(10);
    assert_eq!(restart(&rate, 600 * MS), 0, "none had begun");
    succeed(&rate, 0, 0);
    assert_eq!(restart(&rate, 600 * MS), SECOND + 600 * MS);
}

#[test]
fn a_gap_is_retired_when_due_and_the_last_place_at_once() {
    let rate = limiter();
    throttle(&rate, 0, 0); // one token in two seconds
    let limited = rate.about_to_limit();
    let total = limited.line().waiters.total();
    let issued = limited.line().issued();
    let mut first = rate.reserve(at(0));
    drop(rate.reserve(at(0)));
    assert_eq!(
        limited.line().last_rank(),
        issued.plus(TOKEN).less_tokens(total)
    );
    let second = rate.reserve(at(0));
    let third = rate.reserve(at(0));
    drop(second);
    assert_eq!(placed_between(total, limited.line().waiters.total()), 1);
    assert!(limited.line().waiters.has_gaps());
    assert!(first.claim(at(2 * SECOND)).is_ok());
    let (_, line) = limited.line().read();
    rate.gate.quiet_until(rate.gate.load(), 2 * SECOND, false);
    limited.line().retire(&line, 2 * SECOND);
    assert!(
        !limited.line().waiters.has_gaps(),
        "those before it are due"
    );
    drop(third);
    assert!(!limited.line().waiters.has_gaps(), "the last one");
}

#[test]
fn a_place_that_is_claimed_leaves_its_slot() {
    let rate = limiter();
    throttle(&rate, 0, 0);
    let mut slots = Vec::new();
    for token in 1..=9 {
        let mut held = PlaceGuard::take(&rate, at(0), 1, Class::Foreground, None).expect("room");
        let Turn::Placed { slot, .. } = held.turn else {
            panic!("there is a line");
        };
        assert!(held.claim_with(|| at(token * 2 * SECOND)).is_ok());
        slots.push(slot);
    }
    assert_eq!(slots[8], slots[0], "of eight");
}

#[test]
fn a_line_has_room_for_its_length_and_then_says_when() {
    let rate = limiter();
    throttle(&rate, 0, 0);
    let limited = rate.about_to_limit();
    let longest = LONGEST_QUEUE / TOKEN;
    for _ in 0..longest / u64::from(u32::MAX) {
        assert_eq!(limited.debit(0, u32::MAX).map(|_| ()), Ok(()));
    }
    let rest = u32::try_from(longest % u64::from(u32::MAX)).expect("less");
    assert!(limited.debit(0, rest + 1).is_err());
    assert_eq!(limited.debit(0, rest).map(|_| ()), Ok(()));
    assert!(limited.debit(0, 1).is_err());
    let wait = rate.reserve(at(0)).claim(at(0));
    assert_eq!(wait, Err(Duration::from_secs(2)), "for one token");
}

#[cfg(feature = "std")]
#[test]
fn only_a_request_of_one_token_goes_without_a_time() {
    let rate = limiter();
    assert!(
        PlaceGuard::take_untimed(&rate, 1).is_err(),
        "the first one looks"
    );
    for _ in 0..9 {
        rate.record_with(|| at(0), SendPermit::NO_TIME, Outcome::NotThrottled);
    }
    assert!(PlaceGuard::take_untimed(&rate, 1).is_ok());
    assert!(PlaceGuard::take_untimed(&rate, 2).is_err());
    throttle(&rate, 0, 0);
    assert!(PlaceGuard::take_untimed(&rate, 1).is_err());
}

#[test]
fn a_heavy_request_is_one_of_the_first_burst() {
    let rate = SendRate::declared(DeclaredSettings::new(), Timestamp::ZERO);
    let mut heavy = rate
        .reserve_n(at(0), 5)
        .expect("it waits for what is declared");
    assert_eq!(heavy.claim(at(0)).map(SendPermit::weight), Ok(5));
    assert!(rate.try_acquire(at(0)).is_err(), "it had the bucket's too");
}

/// Giving a request its missing tokens moves up all places before it. So only the first place gets
/// any.
#[test]
fn no_request_of_the_first_burst_brings_others_with_it() {
    for burst in [1, 2, 4] {
        let settings = DeclaredSettings::new().first_burst(burst);
        let rate = SendRate::declared(settings, Timestamp::ZERO);
        let mut light: Vec<_> = (0..50).map(|_| rate.reserve(at(0))).collect();
        let mut heavy = rate.reserve_n(at(0), 30).expect("it waits");
        assert!(heavy.claim(at(0)).is_err());
        drop(heavy);
        assert!(rate.try_acquire(at(0)).is_err());
        let went = light.iter_mut().map(|place| place.claim(at(0)).is_ok());
        assert_eq!(went.filter(|went| *went).count(), burst as usize);
    }
}

#[test]
fn before_the_first_report_one_request_goes_of_any_weight() {
    let settings = DeclaredSettings::new().dimension(Dimension::Tokens);
    let tried = |rate: &SendRate, now| rate.try_acquire_n(at(now), 50_000).is_ok();
    let behind = |rate: &SendRate, now| rate.background().try_acquire_n(at(now), 50_000).is_ok();
    let reserved = |rate: &SendRate, now| {
        let mut place = rate.reserve_n(at(now), 50_000).expect("it waits");
        place.claim(at(now)).is_ok()
    };
    let reserved_behind = |rate: &SendRate, now| {
        let place = rate.background().reserve_n(at(now), 50_000);
        place.expect("it waits").claim(at(now)).is_ok()
    };
    let ways: [fn(&SendRate, u64) -> bool; 4] = [tried, behind, reserved, reserved_behind];
    for (number, takes) in (0..).zip(ways) {
        let rate = SendRate::declared(settings, Timestamp::ZERO);
        let went = [0, 1, 9 * SECOND, 11 * SECOND, 12 * SECOND].map(|now| takes(&rate, now));
        assert_eq!(went, [true, false, false, true, false], "{number}");
        assert!(rate.try_acquire(at(12 * SECOND)).is_err(), "{number}");
    }
    // A burst of three, and what was not sent goes back.
    let rate = SendRate::declared(settings.first_burst(3), Timestamp::ZERO);
    assert_eq!(
        [0; 4].map(|now| tried(&rate, now)),
        [true, true, true, false]
    );
    let rate = SendRate::declared(settings, Timestamp::ZERO);
    let permit = rate.try_acquire_n(at(0), 50_000).expect("the first");
    rate.ask(at(0), 1, Class::Foreground).take_back(permit);
    assert_eq!([0; 3].map(|now| tried(&rate, now)), [true, false, false]);
}

#[test]
fn a_cost_before_the_first_report_holds_back_nothing() {
    let settings = DeclaredSettings::new().dimension(Dimension::Tokens);
    for cost in [1, 90_000] {
        let rate = SendRate::declared(settings, Timestamp::ZERO);
        let permit = rate.try_acquire_n(at(0), 50_000).expect("the first");
        rate.settle(at(MS), permit, cost).expect("there is room");
        let went = [MS, 9 * SECOND, 11 * SECOND, 12 * SECOND];
        let went = went.map(|now| rate.try_acquire(at(now)).is_ok());
        assert_eq!(went, [false, false, true, false], "{cost}");
    }
}

/// A report of 60 requests a minute, of which so many are left.
fn left(requests: u64) -> LimitReport {
    LimitReport::new(requests)
        .limit(60)
        .reset(Reset::In(Duration::from_secs(60)))
}

#[test]
fn a_report_of_what_is_not_obeyed_changes_nothing() {
    let rate = SendRate::declared(DeclaredSettings::new(), Timestamp::ZERO);
    let permit = rate.try_acquire(at(0)).expect("the first");
    let seen = rate.gate.load();
    let tokens = LimitReports::from(left(9).dimension(Dimension::Tokens));
    assert_eq!(rate.observe(at(MS), permit, &tokens), Observed::Nothing);
    assert_eq!(rate.gate.load(), seen);
    assert!(rate.law.limits().is_none(), "nothing is made for it");
}

#[test]
fn a_throttle_is_explained_by_a_report_of_too_little() {
    for (remaining, share, recorded) in [
        (0, true, Recorded::Counted),
        (4, true, Recorded::Counted),
        (5, false, Recorded::Contradicted),
        (50, false, Recorded::Contradicted),
    ] {
        let rate = SendRate::declared(DeclaredSettings::new(), Timestamp::ZERO);
        let mut heavy = rate.reserve_n(at(0), 5).expect("it waits");
        let permit = heavy.claim(at(0)).expect("the first burst");
        rate.observe(at(MS), permit, &left(remaining).into());
        let found = rate.share_left(at(MS), permit) == Some(0);
        assert_eq!(found, share, "{remaining} left");
        let found = rate.record(at(MS), permit, Outcome::Throttled);
        assert_eq!(found, recorded, "{remaining} left");
    }
}

#[cfg(feature = "std")]
#[test]
fn a_limit_is_whole_again_in_its_next_window() {
    let settings = DeclaredSettings::new().first_burst(0);
    let rate = SendRate::declared(settings, Timestamp::ZERO);
    let report = left(59).window(Duration::from_secs(60)).refills(false);
    let permit = rate.try_acquire(at(0)).expect("as they come");
    rate.observe(at(0), permit, &report.into());
    let limited = rate.about_to_limit();
    let limits = limited.law.limits().expect("one is declared");
    assert!(!limits.is_over(59 * SECOND));
    assert!(limits.is_over(61 * SECOND), "the next window");
}

/// The time to the next look at what is declared.
const IN_50_MS: Result<(), Duration> = Err(Duration::from_millis(50));

#[test]
fn an_answer_without_a_report_holds_back_nothing() {
    let rate = SendRate::declared(DeclaredSettings::new().first_burst(3), Timestamp::ZERO);
    let take = |now| rate.try_acquire(at(now)).map(|_| ());
    assert_eq!([0; 4].map(take), [Ok(()), Ok(()), Ok(()), IN_50_MS]);
    succeed(&rate, 0, MS);
    assert_eq!([2 * MS; 9].map(take), [Ok(()); 9]);
}

#[test]
fn two_trips_after_the_report_a_refusal_says_when_a_token_comes() {
    let rate = SendRate::declared(DeclaredSettings::new(), Timestamp::ZERO);
    let permit = rate.try_acquire(at(0)).expect("the first");
    rate.observe(at(10 * MS), permit, &left(59).into());
    let take = |now| rate.try_acquire(at(now)).map(|_| ()).err();
    // Two trips of 10 ms, and the 50 ms in which the rate is looked at.
    let early = [10, 60, 79].map(|ms| take(ms * MS).expect("one a second"));
    assert_eq!(early, [70, 20, 1].map(Duration::from_millis));
    let foretold = take(80 * MS).expect("one a second");
    assert!(foretold > Duration::from_millis(800), "{foretold:?}");
}

/// A throttle blames the limit with the least left.
#[test]
fn a_throttle_contradicts_one_limit_of_two() {
    let rate = SendRate::declared(DeclaredSettings::new().first_burst(2), Timestamp::ZERO);
    let take = || rate.try_acquire(at(0)).expect("of the first burst");
    let permits = [take(), take()];
    let mut reports = LimitReports::from(left(30).policy(LimitName::new("minute")));
    reports.push(left(20).policy(LimitName::new("other")));
    rate.observe(at(MS), permits[0], &reports);
    // Nothing was declared for more than a minute.
    rate.record(at(70_000 * MS), permits[1], Outcome::Throttled);
    let limits = rate.law.limits().expect("two");
    let doubts = limits
        .ledgers()
        .map(|ledger| ledger.is_contradicted(70_001 * MS));
    assert!(doubts.eq([false, true]));
}

/// If a limit gets another name, its old name is reported no more.
#[test]
fn a_limit_not_told_any_more_sets_no_pace_but_bars() {
    let rate = SendRate::declared(DeclaredSettings::new().first_burst(2), Timestamp::ZERO);
    let take = || rate.try_acquire(at(0)).expect("of the first burst");
    let permits = [take(), take()];
    let told = |remaining, name| left(remaining).policy(LimitName::new(name));
    let mut reports = LimitReports::from(told(0, "old"));
    reports.push(told(50, "new"));
    rate.observe(at(MS), permits[0], &reports);
    let limited = rate.about_to_limit();
    let pace = |now| limited.reports().pace(limited.state.load(), now);
    let is_paused = |now| pace(now).expect("declared").until.is_some();
    assert!(is_paused(MS));
    let later = 12 * SECOND;
    rate.observe(at(later), permits[1], &told(49, "new").into());
    assert!(!is_paused(later), "{:?}", pace(later));
    // Until the old window is over. Resets are whole seconds, so the window may end a second later.
    let barred = limited.reports().may_go(later, 1);
    assert_eq!(barred, Err(49 * SECOND + MS));
}

/// The rate of a window is in force from the first look on. Earlier requests went at the last
/// window's rate.
#[test]
fn a_new_window_mints_nothing_for_the_time_before_it_is_looked_at() {
    let rate = SendRate::declared(DeclaredSettings::new(), Timestamp::ZERO);
    let permit = rate.try_acquire(at(0)).expect("the first");
    let report = left(30).window(Duration::from_secs(60)).refills(false);
    rate.observe(at(0), permit, &report.into());
    let limited = rate.about_to_limit();
    let before = limited.line().read().1.rate;
    assert!(before > Rate::LEAST && before < Rate::from_ratio(1, SECOND));
    let now = 70 * SECOND;
    limited.adaptation().follow(now);
    let (_, line) = limited.line().read();
    assert!(line.rate > before);
    assert_eq!(line.since, now);
}

#[test]
fn where_nothing_is_declared_a_wait_is_that_of_the_paced_law() {
    let rate = SendRate::declared(DeclaredSettings::new(), Timestamp::ZERO);
    for _ in 0..9 {
        succeed(&rate, 0, 0);
    }
    throttle(&rate, 0, SECOND);
    let limited = rate.about_to_limit();
    limited.adaptation().follow(SECOND);
    let mut places: Vec<_> = (0..1_000).map(|_| rate.reserve(at(SECOND))).collect();
    let wait = places[999].claim(at(SECOND)).expect_err("far behind");
    assert!(wait > Duration::from_millis(50), "{wait:?}");
}

#[test]
fn a_place_for_nothing_is_refused_where_nothing_is_limited_yet() {
    let rate = SendRate::declared(DeclaredSettings::new().first_burst(0), Timestamp::ZERO);
    let take = |weight| PlaceGuard::take(&rate, at(0), weight, Class::Foreground, None).err();
    assert_eq!(take(1), None);
    assert_eq!(take(0), Some(WeightError::Zero.into()));
}

/// Time alone moves the rate: the first refusal says what the second one does.
#[test]
fn a_refusal_is_by_what_time_has_made_of_the_rate() {
    let rate = paced(10);
    throttle(&rate, 0, SECOND);
    let limited = rate.about_to_limit();
    limited.adaptation().follow(SECOND);
    let slow = limited.line().read().1.rate;
    let refused = || loop {
        if let Err(wait) = rate.try_acquire(at(2 * SECOND)) {
            break wait;
        }
    };
    let waits = [refused(), refused()];
    assert!(limited.line().read().1.rate > slow);
    assert_eq!(waits[0], waits[1]);
}

#[test]
fn what_was_forgotten_limits_nothing_until_the_next_throttle() {
    let rate = limiter();
    throttle(&rate, 0, 0);
    rate.forget_throttles(at(0));
    succeed(&rate, SECOND, SECOND);
    assert!(!rate.snapshot(at(SECOND)).enabled);
    assert_eq!(throttle(&rate, SECOND, SECOND), Recorded::Cut);
}

#[test]
fn a_window_of_the_paced_law_ends_at_its_time_and_no_sooner() {
    let rate = paced(10);
    for _ in 0..100 {
        succeed(&rate, 0, 0);
    }
    let limited = rate.about_to_limit();
    let turn = |now| {
        let state = limited.state.load();
        let window = rate.meter.turn(&rate.law.get(), state, now, now);
        (window.next.is_some(), window.end)
    };
    let (_, end) = turn(0);
    assert_eq!(turn(end - 1), (false, end));
    assert!(turn(end).0);
}

#[test]
fn a_place_put_back_where_there_was_no_line_joins_one() {
    let rate = limiter();
    let mut place = PlaceGuard::take(&rate, at(0), 1, Class::Foreground, None).expect("no line");
    assert!(place.claim_with(|| at(0)).is_ok());
    place.unclaim();
    throttle(&rate, 0, 0);
    assert!(place.claim_with(|| at(0)).is_err());
}

/// A claim that gives tokens back lets others go. A claim that is undone gives back nothing.
#[test]
fn a_claim_undone_before_the_first_report_lets_no_others_go() {
    for class in [Class::Foreground, Class::Background] {
        let settings = DeclaredSettings::new().dimension(Dimension::Tokens);
        let rate = SendRate::declared(settings, Timestamp::ZERO);
        let take = |_| PlaceGuard::take(&rate, at(0), 100, class, None).expect("a place");
        let mut places: Vec<_> = (0..20).map(take).collect();
        assert!(places[0].claim(at(0)).is_ok(), "{class:?}");
        places[0].unclaim();
        let mut went = |now| {
            let claims = places.iter_mut().map(|place| place.claim_with(|| at(now)));
            claims.flatten().count()
        };
        assert_eq!(went(0), 1, "{class:?}");
        assert_eq!(went(1), 1, "{class:?}: none but the same");
    }
}

#[test]
fn a_request_without_an_answer_lets_no_others_go() {
    let settings = DeclaredSettings::new().dimension(Dimension::Tokens);
    let rate = SendRate::declared(settings, Timestamp::ZERO);
    let ask = |now| rate.try_acquire_n(at(now), 50_000);
    let permit = ask(0).expect("the first");
    rate.record(at(33 * MS), permit, Outcome::Unknown);
    assert!(ask(33 * MS).is_err());
    assert!(ask(9 * SECOND).is_err());
    assert!(ask(10 * SECOND + MS).is_ok(), "one more each ten seconds");
}

/// A limiter whose first report says that so many of 60 are left.
fn told(remaining: u64) -> SendRate {
    let rate = SendRate::declared(DeclaredSettings::new(), Timestamp::ZERO);
    let permit = rate.try_acquire(at(0)).expect("the first");
    let report = left(remaining).window(Duration::from_secs(60));
    rate.observe(at(0), permit, &report.refills(false).into());
    rate
}

/// Sends `requests` whatever the pace is, and returns how many of them go.
fn go(rate: &SendRate, now: u64, requests: usize) -> usize {
    let engaged = rate.about_to_limit();
    let sent = (0..requests).map(|_| engaged.reports().sent(now, 1, false));
    sent.flatten().count()
}

#[test]
fn no_more_goes_than_is_left() {
    assert_eq!(go(&told(2), 0, 5), 2);
    // Each window has 60, though every request looks for the first time.
    assert_eq!(go(&told(2), 70 * SECOND, 150), 60);
    let rate = told(30);
    let order = rate
        .about_to_limit()
        .reports()
        .sent(0, 1, false)
        .expect("30 are left");
    let permit = SendPermit::with_order(at(0), 1, order);
    rate.observe(at(MS), permit, &left(0).into());
    assert_eq!(go(&rate, MS, 5), 0, "a report counts at once");
    // Light requests go without a look at the limit, but a heavy request does not.
    let rate = told(5);
    let engaged = rate.about_to_limit();
    assert!(engaged.reports().sent(0, 1, false).is_ok());
    assert!(engaged.reports().sent(0, 5, false).is_err());
    assert!(engaged.reports().sent(0, 4, false).is_ok());
}

#[test]
fn only_what_was_open_all_along_moves_up() {
    let rate = told(0);
    let engaged = rate.about_to_limit();
    let reserve = |now, count| -> Vec<_> { (0..count).map(|_| rate.reserve(at(now))).collect() };
    let _forgotten = reserve(0, 2);
    engaged.adaptation().follow(61 * SECOND);
    let _later = reserve(100 * SECOND, 200);
    let now = 122 * SECOND;
    let ahead = || {
        let (_, line) = engaged.line().read();
        line.ahead(now, engaged.line().last_rank()).div_ceil(TOKEN)
    };
    let before = ahead();
    engaged.adaptation().follow(now);
    assert_eq!(before - ahead(), 2);
}

#[test]
fn a_limit_of_one_goes_when_its_window_begins() {
    let rate = SendRate::declared(DeclaredSettings::new(), Timestamp::ZERO);
    let permit = rate.try_acquire(at(0)).expect("the first");
    let report = LimitReport::new(0).limit(1).refills(false);
    let report = report.window(Duration::from_secs(60));
    let report = report.reset(Reset::In(Duration::from_secs(5)));
    rate.observe(at(0), permit, &report.into());
    let mut place = rate.reserve(at(SECOND));
    // Resets are whole seconds, so the window may end a second later. The line has no time to mint
    // its token.
    let begins = 6 * SECOND;
    assert!(place.claim(at(begins - 1)).is_err());
    assert!(place.claim(at(begins)).is_ok());
}

/// A wait ends at the latest with the window of the limit that binds, whatever other limits there
/// are.
#[test]
fn a_wait_ends_with_the_window_of_the_limit_that_binds() {
    let rate = SendRate::declared(DeclaredSettings::new(), Timestamp::ZERO);
    let told = |name, left, limit, window, passed| {
        let report = LimitReport::new(left).limit(limit).refills(false);
        let report = report.window(Duration::from_secs(window));
        let report = report.reset(Reset::In(Duration::from_secs(window - passed)));
        report.policy(LimitName::new(name))
    };
    // Other clients take nearly all of a minute's 600, and little of a day's.
    for (left, now) in [(599, 0), (99, 5)] {
        let permit = rate.try_acquire(at(now * SECOND)).expect("600 a minute");
        let mut reports = LimitReports::from(told("minute", left, 600, 60, now));
        reports.push(told("day", 1_000_000 + left, 2_000_000, 86_400, now));
        rate.observe(at(now * SECOND), permit, &reports);
    }
    let limited = rate.about_to_limit();
    let now = 10 * SECOND;
    limited.adaptation().follow(now);
    let pace = limited.reports().pace(limited.state.load(), now);
    let pace = pace.expect("declared");
    assert_eq!(pace.until, None, "99 are left");
    // Resets are whole seconds, so the window may end a second later.
    let ends = 51 * SECOND;
    assert!(pace.rate.nanos_per_token() > ends);
    assert_eq!(pace.one_more, ends);
}

#[test]
fn the_last_send_can_be_taken_back() {
    let rate = told(2);
    let engaged = rate.about_to_limit();
    let sends = [(); 2].map(|()| engaged.reports().sent(0, 1, false).expect("2 are left"));
    let [first, last] = sends.map(|order| SendPermit::with_order(at(0), 1, order));
    engaged.reports().unsend(first);
    assert_eq!(go(&rate, 0, 1), 0, "there was one since");
    engaged.reports().unsend(last);
    assert_eq!(go(&rate, 0, 2), 1);
}

#[test]
fn a_hint_pauses_for_no_longer_than_is_set() {
    let settings = DeclaredSettings::new().max_pause(Duration::from_secs(2));
    let rate = SendRate::declared(settings, Timestamp::ZERO);
    let permit = rate.try_acquire(at(0)).expect("the first");
    rate.observe(at(0), permit, &left(30).into());
    let hint = Duration::from_secs(3_600);
    rate.record(at(0), permit, Outcome::ThrottledFor(hint));
    assert_eq!(
        rate.about_to_limit().reports().sent(0, 1, false).err(),
        Some(2 * SECOND)
    );
}

#[test]
fn a_turn_does_not_wait_for_more_than_the_limit() {
    let rate = told(2);
    let engaged = rate.about_to_limit();
    assert_eq!(
        [1, 60, 61].map(|weight| engaged.reports().over(weight)),
        [0, 0, 1]
    );
}

#[test]
fn a_throttle_that_one_limit_explains_contradicts_none() {
    let rate = SendRate::declared(DeclaredSettings::new(), Timestamp::ZERO);
    let mut heavy = rate.reserve_n(at(0), 5).expect("it waits");
    let permit = heavy.claim(at(0)).expect("the first burst");
    // Too little is left of the first limit, and a smaller part of the second.
    let mut reports = LimitReports::from(left(4).limit(5).policy(LimitName::new("small")));
    reports.push(left(10).policy(LimitName::new("minute")));
    rate.observe(at(MS), permit, &reports);
    let found = rate.record(at(MS), permit, Outcome::Throttled);
    assert_eq!(found, Recorded::Counted);
}
