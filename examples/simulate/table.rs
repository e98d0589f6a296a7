//! The tables: one row for each limiter.

#![expect(clippy::float_arithmetic, reason = "for people to read")]

use crate::columns;
use crate::number::{grouped, percent};
use crate::scene::Scene;
use crate::summary::{Phase, Summary};

/// Rows of cells under a row of headings.
pub(crate) type Table = Vec<Vec<String>>;

/// From so many clients on, the table of what the service has to bear is shown too.
const MANY: u32 = 1_000;

/// Returns the tables of a scene.
pub(crate) fn tables(scene: &Scene, rows: &[(&str, Summary)]) -> Vec<Table> {
    let table = |head: &[&str], cells: fn(&Summary) -> Vec<String>| {
        let head = head.iter().map(|heading| (*heading).to_owned()).collect();
        let rows = rows.iter().map(|(name, summary)| {
            let mut row = vec![(*name).to_owned()];
            row.extend(cells(summary));
            row
        });
        [head].into_iter().chain(rows).collect()
    };
    let mut tables = vec![table(&OUTCOME, outcome)];
    if scene.clients >= MANY {
        tables.push(table(&BURDEN, burden));
    }
    if scene.people > 0 {
        tables.push(table(&PEOPLE, people));
    }
    tables
}

/// Returns the table of all scenes, of which there is at least one: for each limiter the share of
/// the ideal, what was throttled, the operations that failed, and Jain's index if there are several
/// clients, or the part of those under test; and the means over all scenes.
pub(crate) fn overview(rows: &[(Scene, Vec<(&str, Summary)>)]) -> Table {
    let cell = |of: &Summary, jain: bool| {
        let (used, throttled) = (percent(of.share, 1), percent(of.throttled, 2));
        let cell = format!("{used} / {throttled} / {}", count(of.failed));
        match of.part {
            Some(part) => format!("{cell} / part {part:.2}"),
            None if jain => format!("{cell} / {:.3}", of.jain),
            None => cell,
        }
    };
    let names = rows
        .iter()
        .take(1)
        .flat_map(|(_, laws)| laws.iter().map(|(name, _)| *name));
    let head = ["scene"].into_iter().chain(names).map(str::to_owned);
    let mut table = vec![head.collect::<Vec<_>>()];
    table.extend(rows.iter().map(|(scene, laws)| {
        let cells = laws.iter().map(|(_, of)| cell(of, scene.clients > 1));
        [scene.name.to_owned()].into_iter().chain(cells).collect()
    }));
    let means = (0..table[0].len() - 1).map(|law| {
        // The scenes have different phases, which this table does not show.
        let all = rows.iter().map(|(_, laws)| Summary {
            phases: Vec::new(),
            part: None,
            ..laws[law].1.clone()
        });
        cell(&Summary::mean(&all.collect::<Vec<_>>()), false)
    });
    table.push(["mean".to_owned()].into_iter().chain(means).collect());
    table
}

/// Returns a table as lines: for a terminal, or in Markdown.
pub(crate) fn text(table: &Table, markdown: bool) -> String {
    if !markdown {
        return columns::lines(table).join("\n");
    }
    let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
    let mut lines: Vec<_> = table.iter().map(|row| line(row)).collect();
    let rule: Vec<_> = table[0].iter().map(|_| "---".to_owned()).collect();
    lines.insert(1, format!("|{}|", rule.join("|")));
    lines.join("\n")
}

const OUTCOME: [&str; 11] = [
    "limiter",
    "of the ideal",
    "throttled",
    "failed",
    "(refused)",
    "wake-ups",
    "wait p50",
    "p99",
    "Jain",
    "90 % after start",
    "after changes (share)",
];

fn outcome(of: &Summary) -> Vec<String> {
    let (starts, changes): (Vec<_>, Vec<_>) =
        of.phases.iter().cloned().partition(|phase| phase.first);
    vec![
        percent(of.share, 1),
        percent(of.throttled, 2),
        count(of.failed),
        format!("({})", count(of.refused)),
        format!("{:.2}", of.wakes),
        format!("{:.3} s", of.p50),
        format!("{:.3} s", of.p99),
        match of.part {
            Some(part) => format!("{:.3} (part {part:.2})", of.jain),
            None => format!("{:.3}", of.jain),
        },
        list(&starts, |phase| phase.most.words()),
        list(&changes, |phase| {
            format!("{} ({})", phase.most.words(), percent(phase.share, 0))
        }),
    ]
}

const BURDEN: [&str; 8] = [
    "limiter",
    "allowed",
    "sent",
    "got through",
    "sent / allowed",
    "sent / got through",
    "90 % after start, changes",
    "99 % after start, changes",
];

fn burden(of: &Summary) -> Vec<String> {
    vec![
        count(of.ideal),
        count(of.sent),
        count(of.useful),
        format!("{:.3}", of.sent / of.ideal.max(1.0)),
        format!("{:.3}", of.sent / of.useful.max(1.0)),
        list(&of.phases, |phase| phase.most.words()),
        list(&of.phases, |phase| phase.nearly_all.words()),
    ]
}

const PEOPLE: [&str; 4] = ["limiter", "used", "people wait p50", "p99"];

fn people(of: &Summary) -> Vec<String> {
    vec![
        percent(of.share, 1),
        format!("{:.3} s", of.people_p50),
        format!("{:.3} s", of.people_p99),
    ]
}

fn list(phases: &[Phase], words: fn(&Phase) -> String) -> String {
    let all: Vec<_> = phases.iter().map(words).collect();
    if all.is_empty() {
        return "-".to_owned();
    }
    all.join(", ")
}

/// Returns a count, or a mean of counts, with a comma between thousands.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts"
)]
fn count(number: f64) -> String {
    grouped(number.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::{overview, text};
    use crate::scenes::SCENES;
    use crate::summary::Summary;
    use crate::tally::Tally;

    #[test]
    fn the_table_of_all_scenes_ends_with_means() {
        let rows = ["bucket", "10-clients"].map(|name| {
            let scene = SCENES.iter().find(|scene| scene.name == name);
            let mut tally = Tally::new(scene.expect("the scene is there"));
            (tally.sent, tally.throttled, tally.failed) = (100, 10, 4);
            if tally.scene.clients > 1 {
                tally.throttled = 20;
            }
            (tally.scene, vec![("Paced", Summary::of(&tally))])
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

    #[test]
    fn markdown_has_a_rule_below_the_headings() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let table = vec![row(["limiter", "n"]), row(["none", "7"])];
        let lines = "| limiter | n |\n|---|---|\n| none | 7 |";
        assert_eq!(text(&table, true), lines);
        assert!(text(&table, false).starts_with("limiter  n\n"));
    }
}
