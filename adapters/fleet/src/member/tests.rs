//! One member, with a clock and an engine of the test's.

use core::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use crate::line::Place;

use super::{
    Answer, Away, Duration, EngineFault, Member, Pool, Settings, Standing, Timestamp, after, since,
};
use crate::wire::Ask;

const START: u64 = 1_000;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_nanos(START.wrapping_add(millis).wrapping_mul(1_000_000))
}

fn settings(away: Away) -> Settings {
    let settings = Settings::new(1_000, Duration::from_secs(1)).unwrap();
    Settings { away, ..settings }
}

fn member(away: Away) -> (Member, Pool) {
    (Member::new(settings(away), at(0)), Pool::new())
}

const fn answer(granted: u32) -> Answer {
    Answer {
        granted,
        share: 100_000,
        rate: 1_000_000,
        allowance: 1_000_000,
        members: 10,
        joined: false,
        alone: 100_000,
        lease: Duration::ZERO,
        wait: Duration::ZERO,
        start: Duration::ZERO,
        shut: None,
        knocks: false,
    }
}

/// Asks at `millis`, and gets `granted` at once.
fn lease(member: &mut Member, pool: &Pool, millis: u64, granted: u32) -> Ask {
    let ask = member.ask(at(millis), pool);
    member.answered(at(millis), at(millis), answer(granted), pool);
    ask
}

fn spend(pool: &Pool, millis: u64) -> usize {
    (0..1_000).take_while(|_| pool.take(at(millis), 1)).count()
}

#[test]
fn a_lease_is_poured_evenly_over_half_its_length() {
    let (mut member, pool) = member(Away::Alone);
    lease(&mut member, &pool, 0, 10);
    let mut spent = Vec::new();
    for millis in [0, 10, 20, 50, 100, 200] {
        member.tick(at(millis), &pool);
        spent.push(spend(&pool, millis));
    }
    assert_eq!(spent, [1, 1, 1, 3, 4, 0]);
}

#[test]
fn what_was_spent_is_told_once() {
    let (mut member, pool) = member(Away::Alone);
    lease(&mut member, &pool, 0, 10);
    assert_eq!(spend(&pool, 0), 1);
    member.tick(at(50), &pool);
    assert_eq!(spend(&pool, 50), 5);
    member.tick(at(60), &pool);
    let ask = member.ask(at(60), &pool);
    assert_eq!((ask.seq, ask.report.spent), (2, 6));
    member.answered(at(60), at(60), answer(0), &pool);
    assert_eq!(member.ask(at(70), &pool).report.spent, 0);
}

#[test]
fn an_ask_without_an_answer_is_made_again_as_it_was() {
    let (mut member, pool) = member(Away::Alone);
    let first = member.ask(at(0), &pool);
    member.failed(at(10), EngineFault::TimedOut, &pool);
    pool.pour(3);
    assert_eq!(member.ask(at(999), &pool), first);
    // Too old: another one.
    assert_eq!(member.ask(at(1_000), &pool).seq, first.seq + 1);
}

#[test]
fn the_age_of_a_throttle_is_that_at_the_time_of_the_ask() {
    let (mut member, pool) = member(Away::Alone);
    pool.throttled(at(5), paceline::SendPermit::sent_at(at(2)), Duration::ZERO);
    let ages = [10, 30].map(|millis| member.ask(at(millis), &pool).report.age);
    assert_eq!(ages, [Duration::from_millis(8), Duration::from_millis(28)]);
}

#[test]
fn tokens_die_with_the_lease_and_without_a_fault_nothing_takes_their_place() {
    let (mut member, pool) = member(Away::Alone);
    lease(&mut member, &pool, 0, 10);
    assert!(pool.take(at(999), 1));
    assert!(!pool.take(at(1_000), 1));
    member.tick(at(11_000), &pool);
    let shown = member.snapshot(at(0), &pool);
    assert_eq!(
        (shown.standing, shown.held, shown.expired),
        (Standing::Joining, 0, 9)
    );
    assert_eq!(spend(&pool, 11_000), 0);
}

#[test]
fn an_answer_that_is_read_too_late_grants_nothing() {
    let (mut member, pool) = member(Away::Alone);
    let _ask = member.ask(at(0), &pool);
    member.answered(at(1_000), at(0), answer(10), &pool);
    let shown = member.snapshot(at(0), &pool);
    assert_eq!((shown.held, shown.granted, shown.expired), (0, 0, 10));
    assert_eq!(shown.standing, Standing::Joining);
    // A nanosecond sooner it does.
    let _ask = member.ask(at(2_000), &pool);
    let asked = Timestamp::from_nanos(at(1_000).as_nanos() + 1);
    member.answered(at(2_000), asked, answer(10), &pool);
    assert_eq!(member.snapshot(at(0), &pool).held, 10);
}

#[test]
fn a_lease_outlives_the_engine_until_its_end() {
    let (mut member, pool) = member(Away::Closed);
    lease(&mut member, &pool, 0, 10);
    member.failed(at(500), EngineFault::Unreachable, &pool);
    assert_eq!(member.snapshot(at(0), &pool).standing, Standing::Leased);
    assert!(pool.take(at(999), 1));
    member.tick(at(1_000), &pool);
    assert_eq!(member.snapshot(at(0), &pool).standing, Standing::Closed);
    assert!(!pool.take(at(1_000), 1));
}

#[test]
fn once_a_lease_is_spent_its_end_is_not_waited_for_when_the_engine_is_away() {
    let (mut member, pool) = member(Away::Alone);
    lease(&mut member, &pool, 0, 10);
    for millis in [100, 110] {
        member.tick(at(millis), &pool);
        assert_eq!(spend(&pool, millis), 5);
    }
    member.failed(at(399), EngineFault::TimedOut, &pool);
    assert_eq!(member.snapshot(at(0), &pool).standing, Standing::Leased);
    member.tick(at(400), &pool);
    assert_eq!(member.snapshot(at(0), &pool).standing, Standing::Alone);
}

#[test]
fn alone_it_goes_on_at_its_last_share_and_gives_that_up_for_a_lease() {
    let (mut member, pool) = member(Away::Alone);
    lease(&mut member, &pool, 0, 10);
    member.failed(at(900), EngineFault::Unreachable, &pool);
    let mut spent = 0;
    for tick in 0..=100 {
        let millis = 1_000 + 10 * tick;
        member.tick(at(millis), &pool);
        spent += spend(&pool, millis);
    }
    // A second at 100/s.
    assert_eq!(
        (member.snapshot(at(0), &pool).standing, spent),
        (Standing::Alone, 99)
    );
    member.tick(at(2_050), &pool);
    assert_eq!(pool.available(), 5);
    lease(&mut member, &pool, 2_050, 0);
    assert_eq!(
        (member.snapshot(at(0), &pool).standing, pool.available()),
        (Standing::Leased, 0)
    );
}

#[test]
fn alone_it_hoards_no_more_than_a_twentieth_of_a_second() {
    let (mut member, pool) = member(Away::Alone);
    lease(&mut member, &pool, 0, 0);
    member.failed(at(900), EngineFault::Unreachable, &pool);
    member.tick(at(1_000), &pool);
    member.tick(at(60_000), &pool);
    assert_eq!(spend(&pool, 60_000), 5);
    // Stopped for longer than that, it wakes up with none.
    member.tick(at(61_000), &pool);
    assert_eq!(spend(&pool, 61_250), 0);
}

#[test]
fn who_never_had_a_share_goes_alone_at_the_floor() {
    let (mut member, pool) = member(Away::Alone);
    member.failed(at(0), EngineFault::Unreachable, &pool);
    let mut spent = 0;
    for tick in 0..=1_000 {
        member.tick(at(10 * tick), &pool);
        spent += spend(&pool, 10 * tick);
    }
    assert_eq!(spent, 5); // 0.5/s
}

#[test]
fn an_open_scope_opens_and_closes_again_with_the_engine() {
    let (mut member, pool) = member(Away::Open);
    assert_eq!(spend(&pool, 0), 0);
    member.failed(at(0), EngineFault::Unreachable, &pool);
    assert_eq!(spend(&pool, 0), 1_000);
    lease(&mut member, &pool, 10, 0);
    assert_eq!(spend(&pool, 10), 0);
}

#[test]
fn too_much_held_goes_back_and_is_not_spent_here() {
    let (mut member, pool) = member(Away::Alone);
    pool.backlog();
    lease(&mut member, &pool, 0, 50);
    let held = member.snapshot(at(0), &pool).held;
    let ask = member.ask(at(500), &pool);
    // With no demand it needs one.
    assert_eq!((held, ask.back, ask.held, ask.want), (50, 49, 1, 0));
    assert_eq!(member.snapshot(at(0), &pool).held, 1);
}

#[test]
fn who_leaves_gives_back_everything() {
    let (mut member, pool) = member(Away::Alone);
    lease(&mut member, &pool, 0, 10);
    assert!(pool.take(at(1), 1));
    member.tick(at(1), &pool);
    let ask = member.leave(at(1), &pool);
    assert_eq!(
        (ask.leave, ask.back, ask.want, ask.report.spent),
        (true, 9, 0, 1)
    );
    assert_eq!(spend(&pool, 1), 0);
}

#[test]
fn an_idle_member_asks_at_its_heartbeat_and_a_busy_one_twice_a_lease() {
    let (mut member, pool) = member(Away::Alone);
    lease(&mut member, &pool, 0, 10);
    let due = |member: &Member, millis| member.is_due(at(millis), &pool);
    assert!(!due(&member, 299) && due(&member, 367));
    assert_eq!(spend(&pool, 0), 1);
    member.tick(at(300), &pool);
    lease(&mut member, &pool, 300, 10);
    assert!(!due(&member, 389) && due(&member, 411));
}

#[test]
fn a_member_that_gets_nothing_for_a_second_says_so() {
    let (mut member, pool) = member(Away::Closed);
    let mut shown = Vec::new();
    for millis in (0..=1_100).step_by(100) {
        lease(&mut member, &pool, millis, 0);
        assert!(pool.try_take(at(millis), 1).is_err());
        member.tick(at(millis), &pool);
        let now = member.snapshot(at(millis), &pool);
        shown.push((now.standing, now.fault));
    }
    let fed = (Standing::Leased, None);
    let starved = (Standing::Starved, Some(EngineFault::GrantsNothing));
    assert_eq!((shown[9], shown[10], shown[11]), (fed, starved, starved));
    lease(&mut member, &pool, 1_200, 10);
    assert_eq!(spend(&pool, 1_200), 1);
    member.tick(at(1_200), &pool);
    assert_eq!(member.snapshot(at(1_200), &pool).standing, Standing::Leased);
}

#[test]
fn an_idle_member_is_not_starved() {
    let (mut member, pool) = member(Away::Closed);
    for second in 0..5 {
        lease(&mut member, &pool, 900 * second, 1);
        member.tick(at(900 * second), &pool);
        let shown = member.snapshot(at(900 * second), &pool);
        assert_eq!(shown.standing, Standing::Leased);
    }
}

#[test]
fn a_member_alone_sends_its_part_and_less_as_time_passes() {
    let settings = Settings {
        safe: Some(20_000_000_000),
        ..settings(Away::Alone)
    };
    let pool = Pool::new();
    let second = |member: &mut Member, from: u64| {
        member.tick(at(from - 10), &pool);
        spend(&pool, from - 10);
        let ticks = (0..100).map(|tick| from + 10 * tick);
        let spent = ticks.map(|millis| {
            member.tick(at(millis), &pool);
            spend(&pool, millis)
        });
        spent.sum::<usize>()
    };
    let mut member = Member::new(settings, at(0));
    member.failed(at(0), EngineFault::Unreachable, &pool);
    assert_eq!(second(&mut member, 1_000), 20);
    // Its part of 100/s halves every five minutes, down to the safe rate.
    lease(&mut member, &pool, 2_000, 0);
    member.failed(at(2_000), EngineFault::Unreachable, &pool);
    assert_eq!(second(&mut member, 4_000), 99);
    assert_eq!(second(&mut member, 301_990), 50);
    assert_eq!(second(&mut member, 901_990), 20);
}

#[test]
fn an_engine_that_forgot_does_not_raise_a_part_for_a_minute() {
    let (mut member, pool) = member(Away::Alone);
    lease(&mut member, &pool, 0, 1);
    let part = |member: &mut Member, millis, alone, joined| {
        let _ask = member.ask(at(millis), &pool);
        let heard = Answer {
            joined,
            alone,
            ..answer(1)
        };
        member.answered(at(millis), at(millis), heard, &pool);
        member.ask(at(millis), &pool).alone
    };
    assert_eq!(part(&mut member, 100, 50_000, false), 50_000);
    assert_eq!(part(&mut member, 200, 900_000, true), 50_000);
    assert_eq!(part(&mut member, 10_200, 900_000, false), 50_000);
    assert_eq!(part(&mut member, 60_200, 900_000, false), 900_000);
}

#[test]
fn a_new_member_with_a_long_lease_asks_soon_and_then_more_seldom() {
    let long = Settings {
        lease: Duration::from_secs(10),
        ..settings(Away::Closed)
    };
    let (mut member, pool) = (Member::new(long, at(0)), Pool::new());
    let mut asked = Vec::new();
    for millis in 0..20_000 {
        pool.waiting.store(1, Relaxed);
        member.tick(at(millis), &pool);
        if member.is_due(at(millis), &pool) {
            asked.push(millis);
            lease(&mut member, &pool, millis, 1);
        }
        let _spent = pool.take(at(millis), 1);
    }
    let gaps: Vec<u64> = asked.windows(2).map(|two| two[1] - two[0]).collect();
    assert!(gaps[0] <= 700 && gaps[1] <= 1_400, "{gaps:?}");
    assert!(gaps.last().is_some_and(|gap| *gap >= 2_000), "{gaps:?}");
}

/// After the scope's key was deleted, say.
#[test]
fn one_that_was_forgotten_asks_soon_with_a_long_lease_too() {
    let long = Settings {
        lease: Duration::from_secs(10),
        ..settings(Away::Closed)
    };
    let (mut member, pool) = (Member::new(long, at(0)), Pool::new());
    let mut asked = Vec::new();
    for millis in 0..40_000 {
        pool.waiting.store(1, Relaxed);
        member.tick(at(millis), &pool);
        if member.is_due(at(millis), &pool) {
            if millis >= 20_000 && !asked.iter().any(|time| *time >= 20_000) {
                forget(&mut member, &pool, millis);
            } else {
                lease(&mut member, &pool, millis, 1);
            }
            asked.push(millis);
        }
        let _spent = pool.take(at(millis), 1);
    }
    let gaps: Vec<u64> = asked.windows(2).map(|two| two[1] - two[0]).collect();
    let before = asked.iter().filter(|time| **time < 20_000).count();
    // Not after half a lease, and then it asks as a new member does.
    assert!(gaps[before] <= 55 && gaps[before + 1] <= 1_400, "{gaps:?}");
    assert!(gaps[before - 1] >= 2_000, "{gaps:?}");
}

#[test]
fn a_lease_is_as_long_as_the_engine_asks_for() {
    let (mut member, pool) = member(Away::Closed);
    let _ask = member.ask(at(0), &pool);
    let busy = Answer {
        lease: Duration::from_secs(4),
        ..answer(10)
    };
    member.answered(at(0), at(0), busy, &pool);
    assert_eq!(
        member.ask(at(10), &pool).reach.lease,
        Duration::from_secs(4)
    );
}

/// Asks at `millis`, and hears that the engine did not know the member.
fn forget(member: &mut Member, pool: &Pool, millis: u64) {
    let _ask = member.ask(at(millis), pool);
    let joined = Answer {
        joined: true,
        share: 900_000,
        ..answer(0)
    };
    member.answered(at(millis), at(millis), joined, pool);
}

#[test]
fn an_engine_that_forgets_twice_is_doubted_for_two_seconds() {
    for (away, standing) in [
        (Away::Alone, Standing::Alone),
        (Away::Closed, Standing::Leased),
    ] {
        let (mut member, pool) = member(away);
        lease(&mut member, &pool, 0, 1);
        assert_eq!(spend(&pool, 0), 1);
        forget(&mut member, &pool, 100);
        lease(&mut member, &pool, 200, 0);
        assert_eq!(member.snapshot(at(200), &pool).fault, None);
        forget(&mut member, &pool, 900);
        lease(&mut member, &pool, 1_000, 0);
        let shown = member.snapshot(at(1_000), &pool);
        // Its share is that from before.
        assert_eq!((shown.standing, shown.share), (standing, 100_000));
        let fault = (away == Away::Alone).then_some(EngineFault::Forgets);
        assert_eq!(shown.fault, fault);
        lease(&mut member, &pool, 2_900, 0);
        let shown = member.snapshot(at(2_900), &pool);
        assert_eq!((shown.standing, shown.fault), (Standing::Leased, None));
    }
}

#[test]
fn an_engine_that_forgets_seldom_is_believed() {
    let (mut member, pool) = member(Away::Alone);
    lease(&mut member, &pool, 0, 0);
    for second in 1..5 {
        forget(&mut member, &pool, 2_000 * second);
        lease(&mut member, &pool, 2_000 * second + 100, 0);
        let shown = member.snapshot(at(2_000 * second + 100), &pool);
        assert_eq!((shown.standing, shown.fault), (Standing::Leased, None));
    }
}

#[test]
fn the_wait_after_a_fault_doubles_to_a_quarter_of_a_second() {
    let (mut member, pool) = member(Away::Closed);
    let mut now = at(0);
    for millis in [50, 100, 200, 250, 250] {
        member.failed(now, EngineFault::TimedOut, &pool);
        let wait = pool.hint();
        let percent = wait.as_micros() / (10 * millis);
        assert!((90..=110).contains(&percent), "{wait:?}");
        now = after(now, wait);
        let sooner = Timestamp::from_nanos(now.as_nanos() - 1);
        assert!(!member.is_due(sooner, &pool) && member.is_due(now, &pool));
    }
    member.tick(now, &pool);
    assert_eq!(pool.hint(), Duration::from_millis(10));
}

#[test]
fn a_request_without_a_token_asks_after_a_quarter_of_a_lease() {
    let (mut member, pool) = member(Away::Closed);
    lease(&mut member, &pool, 0, 4);
    assert_eq!(pool.hint(), Duration::from_millis(10));
    assert_eq!(spend(&pool, 0), 1);
    let _refused = pool.try_take(at(0), 1);
    // Three more are on their way.
    assert!(!member.is_due(at(50), &pool));
    member.tick(at(100), &pool);
    assert_eq!(pool.available(), 3);
    assert!(!member.is_due(at(100), &pool));
    assert_eq!(spend(&pool, 100), 3);
    assert!(!member.is_due(at(49), &pool) && member.is_due(at(50), &pool));
    assert!(pool.backlog().refused && !member.is_due(at(100), &pool));
    // The last wait is at least 180 ms.
    for _ in 0..3 {
        member.failed(at(100), EngineFault::TimedOut, &pool);
    }
    let _refused = pool.try_take(at(100), 1);
    assert!(!member.is_due(at(270), &pool));
}

#[test]
fn a_throttle_is_told_after_a_quarter_of_a_lease() {
    let (mut member, pool) = member(Away::Closed);
    lease(&mut member, &pool, 0, 4);
    pool.throttled(at(9), paceline::SendPermit::sent_at(at(4)), Duration::ZERO);
    assert!(!member.is_due(at(49), &pool) && member.is_due(at(50), &pool));
    let report = member.ask(at(50), &pool).report;
    assert_eq!(
        (report.throttled, report.age),
        (1, Duration::from_millis(46))
    );
    assert_eq!(member.snapshot(at(50), &pool).throttled, 1);
}

#[test]
fn a_member_sleeps_until_its_next_token_or_ask() {
    let (mut member, pool) = member(Away::Closed);
    lease(&mut member, &pool, 0, 4);
    let pause = |member: &Member, millis| member.pause(at(millis)).as_millis();
    assert!(pause(&member, 0) >= 299); // idle
    assert_eq!(spend(&pool, 0), 1);
    member.tick(at(0), &pool);
    assert_eq!((pause(&member, 0), pause(&member, 20)), (25, 10));
    assert_eq!(pause(&member, 370), 1);
    member.tick(at(75), &pool);
    assert_eq!(spend(&pool, 75), 3);
    member.tick(at(80), &pool);
    assert!(pause(&member, 80) >= 219); // all are out
    member.failed(at(1_000), EngineFault::TimedOut, &pool);
    assert!(pause(&member, 1_000) >= 45);
    let _refused = pool.try_take(at(1_000), 1);
    member.tick(at(1_000), &pool);
    assert_eq!(pause(&member, 1_000), 10);
}

#[test]
fn a_small_share_is_asked_for_once_a_token() {
    let (mut member, pool) = member(Away::Closed);
    let _refused = pool.try_take(at(0), 1);
    member.young = 8; // neither new, nor idle before
    member.tick(at(0), &pool);
    for (share, from, to) in [(5_000, 180, 220), (1_000, 299, 367), (0, 299, 367)] {
        let _ask = member.ask(at(0), &pool);
        let _refused = pool.try_take(at(0), 1);
        member.tick(at(0), &pool);
        let small = Answer { share, ..answer(0) };
        member.answered(at(0), at(0), small, &pool);
        let next = since(at(0), member.next_ask).as_millis();
        assert!((from..=to).contains(&next), "{share}: {next}");
    }
}

#[test]
fn the_shortest_of_eight_round_trips_sets_the_lease() {
    let (mut member, pool) = member(Away::Closed);
    let mut leases = Vec::new();
    for (turn, trip) in [100, 200, 200, 200, 200, 200, 200, 200, 200]
        .iter()
        .enumerate()
    {
        let asked = 1_000 * turn as u64;
        let _ask = member.ask(at(asked), &pool);
        member.answered(at(asked + trip), at(asked), answer(0), &pool);
        leases.push(member.reach.lease.as_millis());
    }
    assert_eq!(leases, [350, 350, 350, 350, 350, 350, 350, 350, 600]);
}

#[test]
fn what_is_asked_for_is_a_quarter_above_the_demand() {
    let (mut member, pool) = member(Away::Closed);
    lease(&mut member, &pool, 0, 12);
    for millis in [0, 50, 100] {
        member.tick(at(millis), &pool);
        spend(&pool, millis);
    }
    member.tick(at(100), &pool);
    let ask = member.ask(at(100), &pool);
    let spent = u64::from(12 - ask.held);
    assert_eq!((ask.report.spent, ask.demand), (spent, 10_000 * spent));
    // 200 ms of it.
    assert_eq!(u64::from(ask.want + ask.held), (25 * spent).div_ceil(10));
}

#[test]
fn twice_what_is_needed_and_one_is_kept() {
    for (held, back) in [(3, 0), (4, 3)] {
        let (mut member, pool) = member(Away::Closed);
        lease(&mut member, &pool, 0, held);
        let ask = member.ask(at(500), &pool);
        assert_eq!((ask.back, ask.held), (back, held - back));
    }
}

#[test]
fn a_last_word_asks_for_nothing() {
    let (mut member, pool) = member(Away::Closed);
    let ask = member.leave(at(0), &pool);
    assert_eq!((ask.leave, ask.want, ask.held, ask.back), (true, 0, 0, 0));
    lease(&mut member, &pool, 0, 10);
    let ask = member.leave(at(1), &pool);
    assert_eq!((ask.leave, ask.want, ask.held, ask.back), (true, 0, 0, 10));
}

#[test]
fn a_snapshot_shows_the_last_answer() {
    let (mut member, pool) = member(Away::Closed);
    let _refused = pool.try_take(at(0), 1);
    lease(&mut member, &pool, 1_000, 4);
    let shown = member.snapshot(at(1_000), &pool);
    assert_eq!(
        (shown.share, shown.rate, shown.members),
        (100_000, 1_000_000, 10)
    );
    assert_eq!(
        (shown.held, shown.demand, shown.granted, shown.asks),
        (4, 1_000, 4, 1)
    );
}

#[test]
fn a_spent_lease_lasts_while_the_engine_answers() {
    let (mut member, pool) = member(Away::Alone);
    lease(&mut member, &pool, 0, 10);
    for millis in [100, 110] {
        member.tick(at(millis), &pool);
        assert_eq!(spend(&pool, millis), 5);
    }
    member.tick(at(999), &pool);
    assert_eq!(member.snapshot(at(0), &pool).standing, Standing::Leased);
}

#[test]
fn alone_without_a_share_it_hoards_at_its_safe_rate() {
    let settings = Settings {
        safe: Some(200_000_000_000),
        ..settings(Away::Alone)
    };
    let (mut member, pool) = (Member::new(settings, at(0)), Pool::new());
    member.failed(at(0), EngineFault::Unreachable, &pool);
    member.tick(at(1_000), &pool);
    assert_eq!(pool.available(), 10);
}

/// A member of a service that is shut for a second, with so many requests.
fn shut(waiting: u64) -> (Member, Pool) {
    let (mut member, pool) = member(Away::Alone);
    lease(&mut member, &pool, 0, 3);
    pool.waiting.store(waiting, Relaxed);
    member.tick(at(50), &pool);
    let shut = Some(Duration::from_secs(1));
    let heard = Answer { shut, ..answer(0) };
    let _ask = member.ask(at(50), &pool);
    member.answered(at(50), at(50), heard, &pool);
    (member, pool)
}

#[test]
fn while_the_service_is_shut_a_member_returns_what_no_request_waits_for() {
    for (waiting, back, want) in [(0, 3, 0), (1, 2, 0), (9, 0, 6)] {
        let (mut member, pool) = shut(waiting);
        let ask = member.ask(at(1_050), &pool);
        assert_eq!((ask.back, ask.want), (back, want), "{waiting} wait");
    }
    // All of a heavy request, which may knock.
    let (mut member, pool) = shut(0);
    let pool = Arc::new(pool);
    let _place = Place::take(&pool, 500, false);
    let ask = member.ask(at(1_050), &pool);
    assert_eq!((ask.back, ask.want, ask.head), (0, 497, 500));
}

#[test]
fn while_the_service_is_shut_a_member_asks_no_sooner_than_its_heartbeat_and_says_why() {
    let (mut member, pool) = shut(1);
    assert_eq!(pool.withdraw(u32::MAX), 3);
    let shown = member.snapshot(at(60), &pool);
    assert_eq!(
        (shown.shut, shown.knocks),
        (Some(Duration::from_secs(1)), false)
    );
    member.tick(at(300), &pool);
    assert_eq!(pool.hint(), Duration::from_millis(750));
    assert!(!member.is_due(at(382), &pool));
    assert!(member.is_due(at(384), &pool));
}

#[test]
fn the_success_of_a_knock_is_told_at_once() {
    let (mut member, pool) = shut(1);
    let knock = Answer {
        shut: Some(Duration::from_secs(4)),
        knocks: true,
        ..answer(1)
    };
    let _ask = member.ask(at(1_050), &pool);
    member.answered(at(1_050), at(1_050), knock, &pool);
    assert!(member.snapshot(at(1_050), &pool).knocks);
    pool.done(paceline::SendPermit::sent_at(at(1_049)));
    assert!(!member.is_due(at(1_060), &pool));
    pool.done(paceline::SendPermit::sent_at(at(1_051)));
    assert!(member.is_due(at(1_060), &pool));
    let told = member.ask(at(1_061), &pool).report;
    assert_eq!(told.done, Duration::from_millis(10));
}

#[test]
fn where_a_token_takes_longer_than_a_lease_is_good_only_what_waits_is_wanted() {
    let (mut member, pool) = member(Away::Alone);
    let few = Answer {
        rate: 9_000,
        ..answer(0)
    };
    let _ask = member.ask(at(0), &pool);
    member.answered(at(0), at(0), few, &pool);
    assert_eq!(member.ask(at(100), &pool).want, 0);
    member.answered(at(100), at(100), few, &pool);
    pool.waiting.store(1, Relaxed);
    assert_eq!(member.ask(at(200), &pool).want, 1);
}
