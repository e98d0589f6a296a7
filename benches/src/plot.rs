//! A page of charts: throughput over threads, path by path, and latencies.

use crate::case::{Case, Whose};
use crate::cases;
use crate::chart::{Chart, Series, draw};
use crate::path::Path;
use crate::predict::{CORES, HandOver, Range};
use crate::save::Row;
use crate::svg::escaped;
use crate::tail::{THREADS, Tail};

const OURS: [&str; 3] = ["#1f5fbf", "#3f9fdf", "#00786c"];
const PEERS: [&str; 7] = [
    "#d9541e", "#b8860b", "#8b3a8b", "#a52a2a", "#d67fb0", "#6b5b3a", "#e08a3c",
];
const TWINS: [&str; 2] = ["#777777", "#aaaaaa"];
const LIMITS: [&str; 3] = ["#111111", "#444444", "#222255"];

/// The shares of the latencies' charts, by how many operations one is slower: 10 is p90.
const ONE_IN: [(f64, &str); 6] = [
    (2.0, "p50"),
    (10.0, "p90"),
    (100.0, "p99"),
    (1e3, "p99.9"),
    (1e4, "p99.99"),
    (1e5, "p99.999"),
];

/// Returns the page for measurements of machines, the first of them this one.
#[must_use]
pub fn page(sources: &[(String, Vec<Row>)], hand_over: Option<HandOver>, tails: &[Tail]) -> String {
    let cases = cases::all();
    let mut body = String::new();
    for path in Path::ALL {
        for (machine, rows) in sources {
            body.push_str(&throughput(path, machine, rows, &cases, hand_over));
        }
    }
    let paths = Path::ALL.iter();
    for path in paths.filter(|path| **path != Path::Floor) {
        for threads in THREADS {
            body.push_str(&latency(*path, threads, tails));
        }
    }
    let machines = sources.iter().map(|(machine, _)| escaped(machine));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <title>paceline beside its peers</title>\n<style>{STYLE}</style>\n\
         <h1>paceline beside its peers</h1>\n<p>{}</p>\n{INTRODUCTION}\n{body}</html>\n",
        machines.collect::<Vec<_>>().join("<br>"),
    )
}

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:900px;margin:2em auto;padding:0 1em}\
                     figure{margin:1.5em 0}svg{display:block;max-width:100%;height:auto}";

const INTRODUCTION: &str = "\
<p>Solid lines with marks were measured on the machine that the chart names. Dashed lines are predicted: from the \
speed of one thread and the counted writes of shared cache lines, in the middle of the range that the model gives. \
Both axes are logarithmic. Blue is paceline, grey the same algorithm under a mutex, black what the hardware asks.</p>";

/// Hands out colors.
#[derive(Default)]
struct Colors {
    used: [usize; 4],
}

impl Colors {
    fn next(&mut self, whose: Whose) -> &'static str {
        let (kind, colors): (usize, &[&'static str]) = match whose {
            Whose::Ours => (0, &OURS),
            Whose::Twin => (1, &TWINS),
            Whose::Limit => (2, &LIMITS),
            Whose::Peer => (3, &PEERS),
        };
        let color = colors[self.used[kind] % colors.len()];
        self.used[kind] += 1;
        color
    }
}

fn throughput(
    path: Path,
    machine: &str,
    rows: &[Row],
    cases: &[Case],
    hand_over: Option<HandOver>,
) -> String {
    let mut colors = Colors::default();
    let mut lines = Vec::new();
    for case in cases.iter().filter(|case| case.path == path) {
        let mine = rows
            .iter()
            .filter(|row| row.path == path.key() && row.case == case.name);
        let measured: Vec<(f64, f64)> = mine
            .map(|row| (row.threads as f64, row.rate.median))
            .collect();
        let predicted = predicted(&measured, case, hand_over);
        if !measured.is_empty() {
            lines.push(Series {
                name: case.name.to_owned(),
                color: colors.next(case.whose),
                measured,
                predicted,
            });
        }
    }
    let chart = Chart {
        title: path.title(),
        x_name: "threads, one per core",
        y_name: "million operations/s",
        x_ticks: [1_u32, 2, 4, 8, 16, 32, 64, 192]
            .map(|count| (f64::from(count), count.to_string()))
            .to_vec(),
    };
    figure(&chart, &lines, &format!("{}; {machine}", path.title()))
}

/// Returns the points beyond what was measured.
fn predicted(measured: &[(f64, f64)], case: &Case, hand_over: Option<HandOver>) -> Vec<(f64, f64)> {
    let (Some(hand_over), Some(first), Some(last)) = (hand_over, measured.first(), measured.last())
    else {
        return Vec::new();
    };
    let mut points = vec![*last];
    for (cores, across) in CORES {
        if cores as f64 > last.0 {
            let Range { low, high } = hand_over.predict(first.1, case.writes.0, cores, across);
            points.push((cores as f64, (low * high).sqrt()));
        }
    }
    points
}

fn latency(path: Path, threads: usize, tails: &[Tail]) -> String {
    let mut colors = Colors::default();
    let prefix = format!("{}/", path.key());
    let lines: Vec<Series> = tails
        .iter()
        .filter(|tail| tail.threads == threads)
        .filter_map(|tail| {
            let name = tail.id.strip_prefix(&prefix)?.to_owned();
            let points = ONE_IN.map(|(one_in, _)| {
                let nanos = tail.latency.value_at_quantile(1.0 - 1.0 / one_in);
                (one_in, nanos.max(1) as f64)
            });
            Some(Series {
                name,
                color: colors.next(tail.whose),
                measured: points.to_vec(),
                predicted: Vec::new(),
            })
        })
        .collect();
    let title = format!("{}: {threads} threads", path.title());
    let chart = Chart {
        title: &title,
        x_name: "share of operations that are faster",
        y_name: "ns",
        x_ticks: ONE_IN
            .map(|(one_in, name)| (one_in, name.to_owned()))
            .to_vec(),
    };
    figure(&chart, &lines, &title)
}

fn figure(chart: &Chart<'_>, lines: &[Series], label: &str) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let svg = draw(chart, lines);
    format!(
        "<figure role=\"img\" aria-label=\"{}\">{svg}</figure>\n",
        escaped(label)
    )
}
