//! The comparison as tables of text, which are also Markdown.

use crate::bracket::LEAST;
use crate::case::Whose;
use crate::machine::Machine;
use crate::path::Path;
use crate::rounds::{Measured, Results};
use crate::stats::{Spread, digits};
use crate::target::Bound;

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
         were {dropped} of {attempts} attempts: on two threads if it was under {LEAST} before or after, and if a thread \
         was without its core. A line goes from one core to the other in {} ns ({} rounds).\n",
        machine.text(),
        results.course.rounds,
        results.took.as_secs(),
        spread(results.empty()),
        spread(results.transfer),
        results.quiet_rounds,
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
        cells.push(
            places
                .iter()
                .map(|&place| case.kept(place).to_string())
                .collect::<Vec<_>>()
                .join("/"),
        );
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

/// What came of a bound.
struct Verdict {
    wanted: String,
    found: String,
    met: bool,
}

fn targets(results: &Results<'_>) -> String {
    let mut text = "\n### targets\n\n".to_owned();
    let heads = ["path", "case", "target", "measured", "", "why not"];
    text.push_str(&line(&heads.map(str::to_owned)));
    text.push_str(&line(&vec!["---".to_owned(); heads.len()]));
    for case in &results.cases {
        let Some(target) = case.case.target else {
            continue;
        };
        for &bound in target.bounds {
            let mut cells = vec![case.case.path.key().to_owned(), case.case.name.to_owned()];
            cells.extend(match verdict(results, case, bound) {
                None => ["-", "-", "-", "not measured"].map(str::to_owned),
                Some(Verdict { wanted, found, met }) => {
                    let (word, why) = if met {
                        ("met", "")
                    } else {
                        ("MISSED", target.why_not)
                    };
                    [wanted, found, word.to_owned(), why.to_owned()]
                }
            });
            text.push_str(&line(&cells));
        }
    }
    text
}

fn verdict(results: &Results<'_>, case: &Measured<'_>, bound: Bound) -> Option<Verdict> {
    let other = bound.names().map(|name| results.find(case.case, name));
    let at_most = |wanted, found: Spread, unit, most| Verdict {
        wanted,
        found: format!("{} {unit}", found.text()),
        met: found.median <= most + 0.005, // as it is printed
    };
    let at_least = |wanted, found: Spread, least| Verdict {
        wanted,
        found: format!("{} x", found.text()),
        met: found.median >= least,
    };
    Some(match bound {
        Bound::Nanos(most) => at_most(format!("at most {most} ns"), case.nanos()?, "ns", most),
        Bound::TimeOf(most, name) => {
            let wanted = format!("at most {most} x the time of {name}");
            at_most(wanted, other??.over(case, 0)?, "x", most)
        }
        Bound::Scales(least) => {
            let wanted = format!("two threads: at least {least} x one");
            at_least(wanted, case.scaling()?, least)
        }
        Bound::ScalesAsEmptyLoop => {
            let least = results.empty()?.median * 0.95;
            let wanted = format!("two threads: at least {} x one", digits(least));
            at_least(wanted, case.scaling()?, least)
        }
        Bound::TotalOf(least, name) => {
            let wanted = format!("two threads: at least {least} x those of {name}");
            at_least(wanted, case.over(other??, 1)?, least)
        }
    })
}
