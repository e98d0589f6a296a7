//! The comparison as tables of text, which are also Markdown.

use crate::bracket::LEAST;
use crate::case::Whose;
use crate::machine::Machine;
use crate::path::Path;
use crate::rounds::{Measured, Results};
use crate::stats::{Spread, digits};
use crate::target::{Scaling, Target, Time};

/// Returns all tables.
#[must_use]
pub fn tables(machine: &Machine, results: &Results<'_>) -> String {
    let mut text = head(machine, results);
    for path in Path::ALL {
        let cases: Vec<_> = on(results, path).collect();
        if !cases.is_empty() {
            text.push_str(&of_path(results, path, &cases));
        }
    }
    text.push_str(&targets(results));
    text
}

fn head(machine: &Machine, results: &Results<'_>) -> String {
    let (dropped, attempts) = results.dropped();
    let spread = |spread: Option<Spread>| spread.map_or("not known".to_owned(), |s| s.text());
    format!(
        "{}\n\n{} rounds in {} s. Medians (10th..90th percentile). An empty loop on two threads over one: {}; dropped \
         were {dropped} of {attempts} attempts, in which it was under {LEAST} before or after, or a thread was without \
         its core. A line goes from one core to the other in {} ns.\n",
        machine.text(),
        results.course.rounds,
        results.took.as_secs(),
        spread(results.empty()),
        spread(results.transfer),
    )
}

fn on<'r, 'a>(
    results: &'r Results<'a>,
    path: Path,
) -> impl Iterator<Item = &'r Measured<'a>> + use<'r, 'a> {
    results
        .cases
        .iter()
        .filter(move |case| case.case.path == path)
}

/// Returns the peer that is fastest at a number of threads.
#[must_use]
pub fn best_peer<'r, 'a>(
    results: &'r Results<'a>,
    path: Path,
    threads: usize,
) -> Option<&'r Measured<'a>> {
    let peers = on(results, path).filter(|case| case.case.whose == Whose::Peer);
    let rated = peers.filter_map(|peer| Some((peer, peer.rate(threads)?.median)));
    Some(rated.max_by(|(_, a), (_, b)| a.total_cmp(b))?.0)
}

fn of_path(results: &Results<'_>, path: Path, cases: &[&Measured<'_>]) -> String {
    let threads = &results.course.threads;
    let mut text = format!("\n### {}: {}\n\n", path.key(), path.title());
    let mut heads = vec!["case".to_owned(), "ns, 1 thread".to_owned()];
    heads.extend(threads.iter().map(|count| format!("M/s, {count}")));
    if let Some(second) = threads.get(1) {
        heads.push(format!("{second} over 1"));
    }
    heads.push("granted".to_owned());
    let places: Vec<usize> = (0..threads.len()).collect();
    heads.extend(threads.iter().map(|count| format!("x best peer, {count}")));
    heads.push("rounds".to_owned());
    text.push_str(&line(&heads));
    text.push_str(&line(&vec!["---".to_owned(); heads.len()]));
    for case in cases {
        let cell = |spread: Option<Spread>| spread.map_or("-".to_owned(), |s| s.text());
        let mut cells = vec![name(case), cell(case.nanos())];
        cells.extend(places.iter().map(|&place| cell(case.rate(place))));
        if threads.len() > 1 {
            cells.push(cell(case.scaling()));
        }
        cells.push(case.granted().map_or("-".to_owned(), |g| format!("{g:.3}")));
        cells.extend(places.iter().map(|&place| {
            let best = best_peer(results, path, place);
            cell(best.and_then(|best| case.over(best, place)))
        }));
        cells.push(case.kept().count().to_string());
        text.push_str(&line(&cells));
    }
    text
}

fn name(case: &Measured<'_>) -> String {
    match case.case.whose {
        Whose::Ours => format!("**{}**", case.case.name),
        Whose::Peer => case.case.name.to_owned(),
        Whose::Twin => format!("twin: {}", case.case.name),
        Whose::Limit => format!("limit: {}", case.case.name),
    }
}

/// Returns a row.
pub(crate) fn line(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

/// What came of a target.
struct Verdict {
    wanted: String,
    found: String,
    met: bool,
}

fn targets(results: &Results<'_>) -> String {
    let mut text = "\n### targets\n\n".to_owned();
    let heads = [
        "path",
        "case",
        "one thread",
        "measured",
        "",
        "two threads",
        "measured",
        "",
        "why not",
    ];
    text.push_str(&line(&heads.map(str::to_owned)));
    text.push_str(&line(&vec!["---".to_owned(); heads.len()]));
    for case in &results.cases {
        let Some(target) = case.case.target else {
            continue;
        };
        let (time, scaling) = (time(results, case, target), scaling(results, case, target));
        let why = match (&time, &scaling) {
            (Some(time), Some(scaling)) if time.met && scaling.met => "",
            (None, _) | (_, None) => "not measured",
            _ => target.why_not,
        };
        let mut cells = vec![case.case.path.key().to_owned(), case.case.name.to_owned()];
        for verdict in [time, scaling] {
            let Some(verdict) = verdict else {
                cells.extend(["-", "-", "-"].map(str::to_owned));
                continue;
            };
            let word = if verdict.met { "met" } else { "MISSED" };
            cells.extend([verdict.wanted, verdict.found, word.to_owned()]);
        }
        cells.push(why.to_owned());
        text.push_str(&line(&cells));
    }
    text
}

/// How far behind a case may be and count as even: medians differ by that much from run to run.
const EVEN: f64 = 0.95;

fn time(results: &Results<'_>, case: &Measured<'_>, target: Target) -> Option<Verdict> {
    let nanos = case.nanos()?;
    Some(match target.time {
        Time::Nanos(most) => Verdict {
            wanted: format!("{most} ns"),
            found: format!("{} ns", nanos.text()),
            met: nanos.median <= most,
        },
        Time::AsCase(name) => as_case(case, results.find(case.case, name)?, 0)?,
    })
}

fn scaling(results: &Results<'_>, case: &Measured<'_>, target: Target) -> Option<Verdict> {
    let found = case.scaling()?;
    let at_least = |wanted: String, least: f64| Verdict {
        wanted,
        found: format!("{} x", found.text()),
        met: found.median >= least,
    };
    Some(match target.scaling {
        Scaling::AsEmptyLoop => {
            let empty = results.empty()?.median;
            at_least(format!("{} x", digits(empty * 0.95)), empty * 0.95)
        }
        Scaling::Times(least) => at_least(format!("{least} x"), least),
        Scaling::ShareOf(share, name) => {
            let other = results.find(case.case, name)?.scaling()?.median;
            at_least(
                format!("{share} of {} x, {name}", digits(other)),
                share * other,
            )
        }
        Scaling::AsCase(name) => as_case(case, results.find(case.case, name)?, 1)?,
    })
}

fn as_case(case: &Measured<'_>, other: &Measured<'_>, threads: usize) -> Option<Verdict> {
    let ratio = case.over(other, threads)?;
    Some(Verdict {
        wanted: format!("as fast as {}", other.case.name),
        found: format!("{} of its speed", ratio.text()),
        met: ratio.median >= EVEN,
    })
}
