//! Systems at random.

use fastrand::Rng;

use super::system::System;

/// From which ranges systems are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// One client of a service that tells all, windows of 1 to 60 s, and limits of 5 to 300.
    Narrow,
    /// As narrow, of a service that tells neither its window nor how the limit comes back.
    Untold,
    /// As narrow, with workers of two classes, at a declared or at a fixed rate.
    Classes,
    /// Windows of a second to a day, limits of 5 to a million, and every trouble.
    Wide,
    /// Operations of a strategy, under every law.
    Operations,
    /// Pools, whose members have unequal limits.
    Pools,
    /// As wide, of a service whose reports cannot be used.
    Unusable,
}

/// How many forms of reports there are that cannot be used.
const UNUSABLE: u64 = 7;

/// The most requests of a window, and of a run.
const MOST_IN_WINDOW: u64 = 400;
const MOST_IN_RUN: u64 = 60_000;

/// Returns a number between `low` and `high`, as likely in each octave.
fn spread(rng: &mut Rng, low: u64, high: u64) -> u64 {
    let octaves = high.max(low).ilog2() - low.ilog2();
    let number = low << rng.u32(0..=octaves);
    rng.u64(number..=2 * number).min(high)
}

fn one_in(rng: &mut Rng, n: u64) -> bool {
    rng.u64(0..n) == 0
}

/// Returns the system that `seed` stands for.
#[must_use]
pub fn draw(range: Range, seed: u64) -> System {
    let mut rng = Rng::with_seed(seed);
    let rng = &mut rng;
    let mut system = System {
        seed,
        ..System::default()
    };
    if range == Range::Operations {
        operations(&mut system, rng);
        return system;
    }
    if range == Range::Pools {
        pools(&mut system, rng);
        return system;
    }
    if range == Range::Wide && one_in(rng, 5) {
        if one_in(rng, 3) {
            operations(&mut system, rng);
        } else {
            sets(&mut system, rng);
        }
        return system;
    }
    service(&mut system, range, rng);
    workers(&mut system, range, rng);
    trouble(&mut system, range, rng);
    if matches!(range, Range::Wide | Range::Unusable) {
        wide_trouble(&mut system, rng);
    }
    if range == Range::Unusable {
        unusable(&mut system, rng);
    }
    pace(&mut system, rng);
    system
}

fn service(system: &mut System, range: Range, rng: &mut Rng) {
    match range {
        Range::Narrow | Range::Untold | Range::Classes => {
            system.kind = rng.u64(0..2);
            system.window = 1_000 * spread(rng, 1, 60);
            system.limit = spread(rng, 5, 300);
            system.no_window = u64::from(range == Range::Untold);
            system.no_kind = system.no_window;
            if range == Range::Classes && rng.bool() {
                system.law = 1;
                other_law(system, rng);
            }
        }
        Range::Unusable => {
            system.kind = rng.u64(0..2);
            system.window = 1_000 * spread(rng, 1, 60);
            system.limit = (system.window / 1_000 * rng.u64(1..20)).max(3);
        }
        Range::Wide | Range::Operations | Range::Pools => {
            system.kind = [0, 0, 1, 1, 2][rng.usize(0..5)];
            system.window = 1_000 * spread(rng, 1, 86_400);
            system.limit = spread(rng, 5, 1_000_000);
            system.no_window = u64::from(one_in(rng, 3));
            system.no_kind = u64::from(one_in(rng, 3));
            system.law = [0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3][rng.usize(0..11)];
            other_law(system, rng);
            if system.law == 0 && rng.bool() {
                family(system, rng);
            }
            if one_in(rng, 8) && system.limit >= 40 && system.law == 0 {
                system.nodes = rng.u64(2..=4);
                system.limit -= system.limit % system.nodes;
            }
        }
    }
    system.phase = rng.u64(0..system.window);
    system.reset = rng.u64(0..3);
    system.no_hint = u64::from(one_in(rng, 3));
}

/// The headers of a family, and what they can say.
fn family(system: &mut System, rng: &mut Rng) {
    system.family = rng.u64(1..=11);
    match system.family {
        5 | 6 => system.kind = 1,
        8 => (system.kind, system.window) = (0, 60_000),
        9 => (system.kind, system.window) = (1, 20_000),
        _ => {}
    }
}

/// What laws that hear nothing can do.
fn other_law(system: &mut System, rng: &mut Rng) {
    match system.law {
        0 => {}
        1 => {
            system.kind = 1;
            system.window = system.window.min(3_600_000);
        }
        _ => {
            system.window = system.window.min(300_000);
            system.limit = (system.window / 1_000 * rng.u64(1..50)).max(5);
        }
    }
}

fn workers(system: &mut System, range: Range, rng: &mut Rng) {
    system.clients = match range {
        Range::Narrow | Range::Untold | Range::Classes => 1,
        Range::Wide | Range::Operations | Range::Pools | Range::Unusable => {
            [1, 1, 1, 2, 3, 4][rng.usize(0..6)]
        }
    };
    system.workers = rng.u64(1..=16);
    let classes = range == Range::Unusable && one_in(rng, 3);
    if range == Range::Classes || classes {
        system.workers = rng.u64(4..=32);
        system.background = rng.u64(1..=system.workers / 2);
    }
    system.light = system.limit.div_ceil(MOST_IN_WINDOW);
    if system.law > 1 || range == Range::Unusable {
        system.light = 1;
    }
    if system.law == 1 {
        system.clients = 1;
    }
    let mut whole = system.limit / system.nodes;
    if system.law == 1 {
        whole = (whole * System::burst(system.window) / system.window).max(1);
        system.light = system.light.min(whole);
    }
    system.heavy = system.light;
    if rng.bool() && system.law < 2 && range != Range::Unusable {
        let most = if rng.bool() { whole } else { whole / 4 };
        system.heavy = most.max(system.light);
        system.heavies = spread(rng, 5, 300);
    }
}

fn trouble(system: &mut System, range: Range, rng: &mut Rng) {
    if one_in(rng, 3) {
        system.forget = spread(rng, 1, 10);
    }
    if one_in(rng, 3) {
        system.cancel = spread(rng, 2, 100);
    }
    if one_in(rng, 3) {
        system.sets = spread(
            rng,
            10 + system.window / 1_000,
            (system.window / 10).max(50),
        );
        system.set_order = rng.u64(0..2);
        system.set_weight = system.light;
        if one_in(rng, 3) && system.law == 0 {
            system.set_weight = rng.u64(system.light..=system.limit / system.nodes);
        }
    }
    if one_in(rng, 3) {
        system.cost = match range {
            Range::Narrow | Range::Untold | Range::Classes => 1,
            Range::Wide | Range::Operations | Range::Pools | Range::Unusable => rng.u64(1..3),
        };
        system.cost_low = rng.u64(20..=100);
        system.cost_high = rng.u64(100..=200);
        system.settle = rng.u64(0..3);
        if one_in(rng, 3) {
            system.settle_late = spread(rng, 10, 2 * system.window);
        }
    }
}

fn wide_trouble(system: &mut System, rng: &mut Rng) {
    let window = system.window;
    if one_in(rng, 6) {
        system.above = spread(rng, 1, 50);
    }
    if one_in(rng, 4) {
        system.lost = spread(rng, 5, 600);
    }
    if one_in(rng, 6) {
        system.late = spread(rng, 50, window / 4 + 100).min(5_000);
    }
    if one_in(rng, 8) {
        system.over = rng.u64(1..=20);
    }
    if one_in(rng, 4) {
        system.polls = spread(rng, 10 + window / 1_000, window / 10 + 50);
        system.poll_weight = system.light;
        if rng.bool() && system.law == 0 {
            system.poll_weight =
                rng.u64(system.light..=(system.limit / system.nodes / 2).max(system.light));
        }
    }
    if one_in(rng, 10) {
        system.restart = window * rng.u64(3..20) + rng.u64(0..window);
    }
    if one_in(rng, 6) && system.law != 1 {
        system.change = window * rng.u64(3..20) + rng.u64(0..window);
        system.change_to = rng.u64(20..=400);
        // What can never go is another matter.
        let least = (system.limit * system.change_to / 100 / system.nodes).max(system.light);
        system.heavy = system.heavy.min(least);
        system.poll_weight = system.poll_weight.min(least);
        system.set_weight = system.set_weight.min(least);
    }
    if one_in(rng, 12) {
        system.jump = window * rng.u64(5..20) + rng.u64(0..window);
        system.jump_by = spread(rng, 100, 3 * window);
    }
}

/// What no law can use, and calls that forget what was heard.
fn unusable(system: &mut System, rng: &mut Rng) {
    system.unusable = rng.u64(1..=UNUSABLE);
    // Requests of the paced law weigh the same, and cost what they weigh.
    (system.cost, system.change, system.change_to) = (0, 0, 100);
    (system.late, system.over, system.jump) = (0, 0, 0);
    (system.set_weight, system.poll_weight) = (1, 1);
    if one_in(rng, 3) {
        system.amnesia = spread(rng, 1_000, 100_000);
        // What is forgotten frees background as well.
        system.background = 0;
    }
}

/// Operations of a strategy, whose callers give up.
fn operations(system: &mut System, rng: &mut Rng) {
    system.shape = 3;
    system.law = rng.u64(0..7);
    system.kind = 1;
    system.window = 1_000;
    if system.law == 1 && rng.bool() {
        return leases(system, rng);
    }
    system.workers = spread(rng, 8, 64);
    system.trip = spread(rng, 5_000, 200_000);
    system.pause = spread(rng, 1_000, 100_000);
    let most = system.workers * 500_000 / (2 * system.trip + system.pause);
    system.limit = spread(rng, 5, most.clamp(6, 200));
    system.reset = rng.u64(0..3);
    system.no_hint = rng.u64(0..2);
    if one_in(rng, 3) {
        system.background = rng.u64(1..=system.workers / 2);
    }
    if system.law < 2 && one_in(rng, 3) {
        let whole = system.limit * System::burst(system.window) / system.window;
        system.heavy = rng.u64(1..=whole.max(1));
        system.heavies = spread(rng, 5, 300);
    }
    callers(system, rng);
    if one_in(rng, 3) {
        system.patience = 1_000 * spread(rng, 60, 1_200);
        system.outage = rng.u64(0..=5_000);
    }
    if one_in(rng, 4) {
        system.restart = spread(rng, 3_000, 60_000);
    }
    if one_in(rng, 4) {
        system.crash = spread(rng, 10_000, 60_000);
    }
    // It ends in the middle of a busy time.
    system.run = 2 * (60_000 + system.patience) + 30_000;
}

/// What callers give up, what fails, and how long they have.
fn callers(system: &mut System, rng: &mut Rng) {
    if rng.bool() {
        system.cancel = spread(rng, 20, 1_000);
    }
    if one_in(rng, 3) {
        system.leave = spread(rng, 5, 300);
    }
    if one_in(rng, 3) {
        system.forget = spread(rng, 10, 900);
    }
    if rng.bool() {
        system.lost = spread(rng, 1, 100);
    }
    if one_in(rng, 3) {
        system.silent = spread(rng, 1, 30);
    }
    if one_in(rng, 3) {
        system.deadline = spread(rng, 500, 60_000);
    }
    if one_in(rng, 4) {
        system.max_wait = spread(rng, 50, 10_000);
    }
}

/// A fixed rate at which threads take tokens ahead: there are always some.
fn leases(system: &mut System, rng: &mut Rng) {
    system.window = 50;
    system.limit = spread(rng, 1_000, 10_000);
    system.trip = spread(rng, 500, 4_000);
    // From a third of the limit up to half as much again.
    let whole = system.limit * system.trip * 2 / 50_000;
    system.workers = rng.u64(whole / 3..=whole * 3 / 2).max(8);
    system.pause = rng.u64(0..=system.trip);
    if rng.bool() {
        system.background = rng.u64(1..=system.workers / 2);
    }
    if rng.bool() {
        system.heavy = rng.u64(2..=200);
        system.heavies = spread(rng, 1, 30);
    }
    callers(system, rng);
    // Each would keep its worker for longer than the run.
    system.silent = 0;
    if one_in(rng, 3) {
        system.crash = spread(rng, 50, 300);
    }
    system.run = 600;
}

/// Sets over two limits, or tenants under one.
fn sets(system: &mut System, rng: &mut Rng) {
    system.shape = rng.u64(1..=2);
    system.law = rng.u64(0..2);
    system.kind = if system.law == 0 { rng.u64(0..2) } else { 1 };
    system.reset = rng.u64(0..3);
    system.set_order = rng.u64(0..2);
    system.trip = spread(rng, 5_000, 300_000);
    system.spread = [0, 50, 300][rng.usize(0..3)];
    if one_in(rng, 3) {
        system.cancel = spread(rng, 2, 50);
    }
    if system.shape == 1 {
        system.window = 1_000 * spread(rng, 1, 60);
        system.window2 = if rng.bool() {
            system.window
        } else {
            1_000 * spread(rng, 1, 60)
        };
        system.limit = spread(rng, 5, 300);
        system.limit2 = spread(rng, 5, 3_000);
        system.workers = rng.u64(1..=8);
        let bucket = |limit: u64, window| limit * System::burst(window) / window;
        let mut heavy = system.limit * 9 / 10;
        if system.law == 1 {
            let most = bucket(system.limit2, system.window2) * system.limit / system.limit2;
            heavy = bucket(system.limit, system.window).min(most);
        }
        system.heavy = heavy.max(1);
        system.heavies = spread(rng, 5, 500);
        // The workers are able to use one and a half times what there is.
        let weight = 1 + system.heavies * (system.heavy - 1) / 2_000;
        let most = 1_000 * system.window * system.workers * weight * 2 / (3 * system.limit);
        system.trip = system
            .trip
            .min(most * 200 / (200 + system.spread))
            .max(1_000);
        if one_in(rng, 3) {
            system.forget = spread(rng, 1, 5);
        }
        if one_in(rng, 3) {
            system.sets = spread(rng, 20, 1_000);
        }
    } else {
        system.window = 1_000 * rng.u64(1..=2);
        system.limit = (system.window / 1_000) * spread(rng, 5, 30);
        system.window2 = 60_000;
        // All tenants together want a third of what they share.
        system.clients = rng.u64(2..=5);
        let third = system.limit * 60_000 / system.window / 3 / system.clients;
        system.limit2 = rng.u64(1..=third.max(1));
        system.workers = spread(rng, 100, 300);
        system.patience = spread(rng, 15_000, 60_000);
        system.pause = 1_000;
    }
    system.run = (15 * system.window.max(system.window2)).max(300_000);
}

/// Members with a declared or a known limit each, and workers that want more than all of them.
fn pools(system: &mut System, rng: &mut Rng) {
    system.shape = 4;
    system.law = rng.u64(0..2);
    system.kind = if system.law == 0 { rng.u64(0..2) } else { 1 };
    system.reset = rng.u64(0..3);
    system.clients = rng.u64(2..=8);
    system.window = 1_000 * spread(rng, 1, 60);
    system.window2 = 1_000 * spread(rng, 1, 60);
    system.limit = spread(rng, 5, 300);
    system.limit2 = spread(rng, 5, 300);
    if system.law == 0 && rng.bool() {
        system.heavy = (system.limit.min(system.limit2) / 4).max(1);
        system.heavies = spread(rng, 5, 300);
    }
    if one_in(rng, 3) {
        system.cancel = spread(rng, 2, 100);
    }
    if one_in(rng, 3) {
        system.forget = spread(rng, 1, 5);
    }
    // The workers are able to use one and a half times what there is.
    let each = |limit: u64, window: u64| limit * 1_000_000 / window;
    let others = (system.clients - 1) * each(system.limit2, system.window2);
    let all = each(system.limit, system.window) + others;
    system.trip = spread(rng, 5_000, 300_000);
    system.workers = (all * system.trip * 3 / 2 / 1_000_000_000).clamp(8, 512);
    system.trip = system
        .trip
        .min(system.workers * 1_000_000_000 * 2 / (3 * all).max(1));
    system.run = (15 * system.window.max(system.window2)).max(120_000);
}

/// Chooses trips and pauses, so that workers want half as much again as there is at least.
fn pace(system: &mut System, rng: &mut Rng) {
    let micros = system.window * 1_000;
    let heavies = system.heavies * (system.heavy - system.light) / 2_000;
    let weight = system.light + heavies;
    let workers = system.workers * system.clients;
    let limit = system.limit * system.change_to.max(100) / 100;
    let longest = micros * workers * weight / (limit * 3 / 2).max(1);
    let longest = longest.clamp(1_000, micros / 4);
    let trip = spread(rng, 5_000, 500_000.max(micros / 500)).min(longest);
    system.spread = [0, 10, 50, 300][rng.usize(0..4)].min((longest / trip).saturating_sub(1) * 100);
    system.trip = trip;
    let rest = longest.saturating_sub(trip * (200 + system.spread) / 200);
    system.pause = rng.u64(0..=rest.min(2 * trip));
    let windows = (40 * system.window).max(900_000);
    let most = system.window * MOST_IN_RUN * system.light / limit.max(1);
    let least = 60_000.max(12 * system.window);
    system.run = windows.min(most).max(least);
}
