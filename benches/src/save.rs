//! Measurements in a file, for tables and charts of several machines.
//!
//! Tab-separated: after the line with the machine, which begins with `#`, and one with the names of
//! the columns, there is a row for each case and number of threads.

use core::fmt::Write as _;

use crate::machine::Machine;
use crate::rounds::Results;
use crate::stats::Spread;

const COLUMNS: &str = "path\tcase\twhose\tthreads\tp10\tmedian\tp90\tgranted";

/// One row.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The path's key.
    pub path: String,
    /// The case's name.
    pub case: String,
    /// Whose code it is.
    pub whose: String,
    /// How many threads.
    pub threads: usize,
    /// Operations per microsecond, all threads together.
    pub rate: Spread,
    /// The share that was granted, at the most threads.
    pub granted: f64,
}

/// Returns what was measured as rows.
#[must_use]
pub fn rows(results: &Results<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for case in &results.cases {
        for (place, &threads) in results.course.threads.iter().enumerate() {
            let (Some(rate), Some(granted)) = (case.rate(place), case.granted()) else {
                continue;
            };
            rows.push(Row {
                path: case.case.path.key().to_owned(),
                case: case.case.name.to_owned(),
                whose: format!("{:?}", case.case.whose),
                threads,
                rate,
                granted,
            });
        }
    }
    rows
}

/// Returns the file.
#[must_use]
pub fn text(machine: &Machine, rows: &[Row]) -> String {
    let mut text = format!("# {}\n{COLUMNS}\n", machine.text());
    for row in rows {
        let Row {
            path,
            case,
            whose,
            threads,
            rate: Spread { low, median, high },
            granted,
        } = row;
        // Writing into a string cannot fail.
        let _always_ok = writeln!(
            text,
            "{path}\t{case}\t{whose}\t{threads}\t{low:.4}\t{median:.4}\t{high:.4}\t{granted:.4}"
        );
    }
    text
}

/// Reads a file: the machine, and the rows. `None` if a line has another form.
#[must_use]
pub fn read(text: &str) -> Option<(String, Vec<Row>)> {
    let mut lines = text.lines();
    let machine = lines.next()?.strip_prefix("# ")?.to_owned();
    lines.next().filter(|line| *line == COLUMNS)?;
    Some((machine, lines.map(row).collect::<Option<_>>()?))
}

fn row(line: &str) -> Option<Row> {
    let words: Vec<&str> = line.split('\t').collect();
    let [path, case, whose, threads, low, median, high, granted] = words[..] else {
        return None;
    };
    Some(Row {
        path: path.to_owned(),
        case: case.to_owned(),
        whose: whose.to_owned(),
        threads: threads.parse().ok()?,
        rate: Spread {
            low: low.parse().ok()?,
            median: median.parse().ok()?,
            high: high.parse().ok()?,
        },
        granted: granted.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::{Row, read, text};
    use crate::machine::Machine;
    use crate::stats::Spread;

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let machine = Machine {
            processor: "one".to_owned(),
            cores: 192,
            compiler: "rustc".to_owned(),
            commit: "abc".to_owned(),
            date: "2026-11-21".to_owned(),
        };
        let rows = [Row {
            path: "floor".to_owned(),
            case: "a load".to_owned(),
            whose: "Limit".to_owned(),
            threads: 64,
            rate: Spread {
                low: 1.5,
                median: 2.25,
                high: 1_000.0,
            },
            granted: 1.0,
        }];
        let file = text(&machine, &rows);
        assert_eq!(read(&file), Some((machine.text(), rows.to_vec())));
        assert_eq!(read(&file.replace("64", "many")), None);
        assert_eq!(read("path"), None);
    }
}
