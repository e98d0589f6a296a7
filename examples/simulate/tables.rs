//! The tables: one row for each limiter, with the means of its runs.

#![expect(clippy::float_arithmetic, reason = "for people to read")]

use crate::Played;
use crate::counts::Tally;
use crate::number::{self, grouped, jain, number, percent};
use crate::scene::Scene;
use crate::table::{Column, Table, rows};

/// From so many clients on, the table of what the service has to bear is shown too.
const MANY: u32 = 1_000;

/// Returns the tables of a scene.
pub(crate) fn tables(scene: &Scene, played: &[Played]) -> Vec<Table> {
    let mut tables = vec![rows(&OUTCOME, played)];
    if scene.clients >= MANY {
        tables.push(rows(&BURDEN, played));
    }
    if scene.people > 0 {
        tables.push(rows(&PEOPLE, played));
    }
    tables
}

const OUTCOME: [Column<Played>; 11] = [
    ("limiter", |(law, _)| law.name.to_owned()),
    ("of the ideal", |(_, of)| percent(mean(of, Tally::share), 1)),
    ("throttled", |(_, of)| {
        percent(mean(of, Tally::throttled_share), 2)
    }),
    ("failed", |(_, of)| count(of, |run| run.failed)),
    ("(refused)", |(_, of)| {
        format!("({})", count(of, |run| run.refused))
    }),
    ("wake-ups", |(_, of)| {
        format!("{:.2}", mean(of, Tally::wakes_each))
    }),
    ("wait p50", |(_, of)| {
        seconds(of, |run| run.waits.quantile(500))
    }),
    ("p99", |(_, of)| seconds(of, |run| run.waits.quantile(990))),
    ("Jain", |(_, of)| {
        let jain = format!("{:.3}", mean(of, |run| jain(&run.accepted)));
        if of[0].scene.mixed {
            return format!("{jain} (part {:.2})", mean(of, Tally::part));
        }
        jain
    }),
    ("90 % after start", |(_, of)| {
        list(of, |(from, _)| from == 0, |phase| reached(of, phase, 900))
    }),
    ("after changes (share)", |(_, of)| {
        let words = |phase| {
            let share = percent(mean(of, |run| run.share_of(phase)), 0);
            format!("{} ({share})", reached(of, phase, 900))
        };
        list(of, |(from, _)| from > 0, words)
    }),
];

const BURDEN: [Column<Played>; 8] = [
    ("limiter", |(law, _)| law.name.to_owned()),
    ("allowed", |(_, of)| count(of, Tally::ideal)),
    ("sent", |(_, of)| count(of, |run| run.sent)),
    ("got through", |(_, of)| count(of, |run| run.useful)),
    ("sent / allowed", |(_, of)| ratio(of, Tally::ideal)),
    ("sent / got through", |(_, of)| ratio(of, |run| run.useful)),
    ("90 % after start, changes", |(_, of)| {
        list(of, |_| true, |phase| reached(of, phase, 900))
    }),
    ("99 % after start, changes", |(_, of)| {
        list(of, |_| true, |phase| reached(of, phase, 990))
    }),
];

const PEOPLE: [Column<Played>; 4] = [
    ("limiter", |(law, _)| law.name.to_owned()),
    ("used", |(_, of)| percent(mean(of, Tally::share), 1)),
    ("people wait p50", |(_, of)| {
        seconds(of, |run| run.people.quantile(500))
    }),
    ("p99", |(_, of)| seconds(of, |run| run.people.quantile(990))),
];

fn mean(of: &[Tally], value: impl Fn(&Tally) -> f64) -> f64 {
    number::mean(of.iter().map(value))
}

fn count(of: &[Tally], value: fn(&Tally) -> u64) -> String {
    rounded(mean(of, |run| number(value(run))))
}

/// Returns a mean of counts with a comma between thousands.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts"
)]
fn rounded(number: f64) -> String {
    grouped(number.round() as u64)
}

/// Returns what was sent for each of these.
fn ratio(of: &[Tally], value: fn(&Tally) -> u64) -> String {
    let [sent, all] =
        [|run: &Tally| run.sent, value].map(|of_run| mean(of, |run| number(of_run(run))));
    format!("{:.3}", sent / all.max(1.0))
}

/// Returns a wait; the shortest that is counted is none.
fn seconds(of: &[Tally], nanos: fn(&Tally) -> u64) -> String {
    let seconds = |run: &Tally| match nanos(run) {
        0..=16 => 0.0,
        nanos => number(nanos) / 1e9,
    };
    format!("{:.3} s", mean(of, seconds))
}

/// Returns something of each of these phases of the limit.
fn list(
    of: &[Tally],
    these: fn((u64, u64)) -> bool,
    words: impl Fn((u64, u64)) -> String,
) -> String {
    let phases = of[0].scene.phases().filter(|phase| these(*phase));
    let all: Vec<_> = phases.map(words).collect();
    if all.is_empty() {
        return "-".to_owned();
    }
    all.join(", ")
}

/// Returns when so many thousandths of the ideal were reached and held in the mean, and in how many
/// runs if not in all.
fn reached(of: &[Tally], phase: (u64, u64), permille: u64) -> String {
    let times: Vec<_> = of
        .iter()
        .filter_map(|run| run.reached(phase, permille))
        .collect();
    if times.is_empty() {
        return "never".to_owned();
    }
    let mean = format!("{:.1} s", number::mean(times.iter().copied()));
    if times.len() < of.len() {
        return format!("{mean} in {} of {}", times.len(), of.len());
    }
    mean
}

/// What the table of all scenes has of a limiter in one scene: the share of the ideal, what was
/// throttled, the operations that failed; and Jain's index if there are several clients, or the
/// part of those under test.
pub(crate) type Cell = ([f64; 3], String);

/// Returns each limiter's name and cell.
pub(crate) fn cells(played: &[Played]) -> Vec<(&'static str, Cell)> {
    let cell = |of: &[Tally]| {
        let scene = of[0].scene;
        let more = match scene.clients {
            _ if scene.mixed => format!(" / part {:.2}", mean(of, Tally::part)),
            1 => String::new(),
            _ => format!(" / {:.3}", mean(of, |run| jain(&run.accepted))),
        };
        let failed = mean(of, |run| number(run.failed));
        let [used, throttled] = [Tally::share, Tally::throttled_share].map(|part| mean(of, part));
        ([used, throttled, failed], more)
    };
    let cells = played.iter().map(|(law, runs)| (law.name, cell(runs)));
    cells.collect()
}

/// Returns the table of all scenes, of which there is at least one, and their means.
pub(crate) fn overview(rows: &[(&str, Vec<(&str, Cell)>)]) -> Table {
    let text = |([used, throttled, failed], more): &Cell| {
        let (used, throttled) = (percent(*used, 1), percent(*throttled, 2));
        format!("{used} / {throttled} / {}{more}", rounded(*failed))
    };
    let row = |name: &str, cells: &mut dyn Iterator<Item = String>| {
        [name.to_owned()].into_iter().chain(cells).collect()
    };
    let laws = &rows[0].1;
    let mut table = vec![row(
        "scene",
        &mut laws.iter().map(|(law, _)| (*law).to_owned()),
    )];
    for (scene, laws) in rows {
        table.push(row(scene, &mut laws.iter().map(|(_, cell)| text(cell))));
    }
    let mean = |law: usize| {
        let of = |index: usize| number::mean(rows.iter().map(|(_, laws)| laws[law].1.0[index]));
        text(&([0, 1, 2].map(of), String::new()))
    };
    table.push(row("mean", &mut (0..laws.len()).map(mean)));
    table
}

#[cfg(test)]
mod tests {
    use super::{cells, overview, reached};
    use crate::counts::Tally;
    use crate::laws::LAWS;
    use crate::number::jain;
    use crate::scenes::SCENES;

    fn tally(name: &str) -> Tally {
        let scene = SCENES.iter().find(|scene| scene.name == name);
        Tally::new(scene.expect("the scene is there"))
    }

    #[test]
    fn the_table_of_all_scenes_ends_with_means() {
        let rows = ["bucket", "10-clients"].map(|name| {
            let mut tally = tally(name);
            (tally.sent, tally.throttled, tally.failed) = (100, 10, 4);
            if tally.scene.clients > 1 {
                tally.throttled = 20;
            }
            (name, cells(&[(&LAWS[4], vec![tally])]))
        });
        let lines: Vec<_> = overview(&rows).iter().map(|row| row.join(" | ")).collect();
        assert_eq!(
            lines,
            [
                "scene | Paced",
                "bucket | 0.0 % / 10.00 % / 4",
                "10-clients | 0.0 % / 20.00 % / 4 / 1.000",
                "mean | 0.0 % / 15.00 % / 4",
            ]
        );
    }

    /// Returns a tally of `halved` whose client sends nothing until this bin, and then what the
    /// limit allows.
    fn silent_until(start: usize) -> Tally {
        let mut tally = tally("halved");
        for (index, bin) in tally.bins.iter_mut().enumerate().skip(start) {
            bin.admitted = if (200..400).contains(&index) { 25 } else { 50 };
        }
        tally
    }

    fn phases(of: &[Tally]) -> Vec<String> {
        let phases = of[0].scene.phases();
        phases.map(|phase| reached(of, phase, 900)).collect()
    }

    #[test]
    fn a_limit_is_reached_when_it_is_used_for_two_seconds() {
        // From 2.8 s on, nine tenths of the next two seconds are used.
        assert_eq!(phases(&[silent_until(30)]), ["2.8 s", "0.0 s", "0.0 s"]);
        assert_eq!(phases(&[silent_until(600)]), ["never"; 3]);
    }

    #[test]
    fn a_mean_says_in_how_many_runs_the_limit_was_reached() {
        let runs = [30, 50, 600].map(silent_until);
        assert_eq!(phases(&runs)[0], "3.8 s in 2 of 3");
    }

    #[test]
    fn the_part_of_the_clients_under_test_is_1_if_all_get_the_same() {
        let mut tally = tally("10-clients-mixed");
        for (tested, others, part) in [(7, 7, "1.00"), (3, 1, "1.50"), (0, 5, "0.00")] {
            tally.accepted = [tested, others].repeat(5);
            assert_eq!(format!("{:.2}", tally.part()), part);
        }
    }

    #[test]
    fn equal_parts_are_fair_and_one_that_gets_all_is_not() {
        let mut tally = tally("10-clients");
        tally.accepted = vec![7; 10];
        assert_eq!(format!("{:.3}", jain(&tally.accepted)), "1.000");
        tally.accepted = [vec![7], vec![0; 9]].concat();
        assert_eq!(format!("{:.3}", jain(&tally.accepted)), "0.100");
    }
}
