//! Many cores on paper: what the counted writes of shared lines allow.
//!
//! An operation that writes a shared line needs it in its own core's cache, and a line is in one
//! cache at a time. So however many cores there are, all of them together do no more operations
//! than the line changes hands, divided by how often an operation writes one. That is the whole
//! model: the lesser of that and of what the cores would do without each other.
//!
//! It is reckoned twice. At worst each write moves the line, at the time of a ping-pong. At best a
//! core keeps the line until it is done with it, and for several operations, as it does under
//! hammering: then an operation needs it once, for as long as one shared `fetch_add` takes of two
//! threads. Across sockets a line takes longer. David, Guerraoui and Trigonakis, "Everything you
//! always wanted to know about synchronization but were afraid to ask" (SOSP 2013), table 2, have
//! 289 cycles for one hop and 400 for two on an eight-socket Xeon of 2.13 GHz: 136 and 188 ns;
//! hence [`ACROSS`].

use crate::case::Whose;
use crate::rounds::{Measured, Results};
use crate::stats::digits;

/// Nanoseconds of a line's way from one socket to another.
pub const ACROSS: [f64; 2] = [100.0, 300.0];

/// The numbers of cores for which is predicted, and whether lines cross sockets there.
pub const CORES: [(usize, bool); 4] = [(2, false), (8, false), (64, true), (192, true)];

/// What hand-overs take here, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct HandOver {
    /// By the ping-pong.
    pub worst: f64,
    /// By a `fetch_add` of two threads.
    pub best: f64,
}

/// From how many to how many operations per microsecond.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// At worst.
    pub low: f64,
    /// At best.
    pub high: f64,
}

impl HandOver {
    /// Takes it from what was measured.
    #[must_use]
    pub fn of(results: &Results<'_>) -> Option<Self> {
        let mut cases = results.cases.iter();
        let shared = cases.find(|case| case.case.id() == "floor/fetch_add, shared line")?;
        Some(Self {
            worst: results.transfer?.median,
            best: 1e3 / shared.rate(1)?.median,
        })
    }

    /// Predicts for `cores` the rate of an operation that one core does at `rate`.
    #[must_use]
    pub fn predict(self, rate: f64, writes: u32, cores: usize, across: bool) -> Range {
        let free = rate * cores as f64;
        let bound = |nanos: f64, moves: u32| match moves {
            0 => free,
            moves => free.min(1e3 / (nanos * f64::from(moves))),
        };
        let [near, far] = ACROSS;
        let (worst, best) = if across {
            (far.max(self.worst), near.max(self.best))
        } else {
            (self.worst, self.best)
        };
        Range {
            low: bound(worst, writes),
            high: bound(best, writes.min(1)),
        }
    }
}

/// Returns the table of predictions, with the measured rate of two threads beside the predicted
/// one; or why there is none.
#[must_use]
pub fn table(results: &Results<'_>) -> String {
    let rounds = results.course.rounds;
    if results.transfer.is_none() {
        return format!(
            "\nNothing is predicted: the machine was quiet in none of {rounds} rounds, so that no hand-over of a line \
             was measured.\n"
        );
    }
    let Some(hand_over) = HandOver::of(results) else {
        return "\nNothing is predicted: the floor's shared `fetch_add` was not asked for, or never went \
                undisturbed.\n"
            .to_owned();
    };
    let mut text = format!(
        "\n### many cores: PREDICTED, but for the column that says otherwise\n\n\
         Millions of operations a second, all cores together. A hand-over of a line takes {} ns at best and {} ns at \
         worst (measured here, in the {} of {rounds} rounds in which the machine was quiet), {} to {} ns across \
         sockets (from the literature), as for 64 and 192 cores.\n\n",
        digits(hand_over.best),
        digits(hand_over.worst),
        results.quiet_rounds,
        ACROSS[0],
        ACROSS[1],
    );
    let heads = [
        "case",
        "lines written",
        "2 cores, MEASURED",
        "2 cores",
        "8 cores",
        "64 cores",
        "192 cores",
    ];
    text.push_str(&crate::table::line(&heads.map(str::to_owned)));
    text.push_str(&crate::table::line(&vec!["---".to_owned(); heads.len()]));
    for case in &results.cases {
        if let Some(row) = row(hand_over, case) {
            text.push_str(&row);
        }
    }
    text
}

fn row(hand_over: HandOver, case: &Measured<'_>) -> Option<String> {
    let one = case.rate(0)?.median;
    let two = case.rate(1)?.median;
    let writes = case.case.writes.0;
    let name = case.case.id();
    let name = if case.case.whose == Whose::Ours {
        format!("**{name}**")
    } else {
        name
    };
    let mut cells = vec![name, writes.to_string(), digits(two)];
    for (cores, across) in CORES {
        let Range { low, high } = hand_over.predict(one, writes, cores, across);
        let range = if low < high {
            format!("{}..{}", digits(low), digits(high))
        } else {
            digits(low)
        };
        // Ten percent is what medians differ by from run to run.
        let off = cores == 2 && !(low * 0.9..=high * 1.1).contains(&two);
        cells.push(if off { format!("{range} (off)") } else { range });
    }
    Some(crate::table::line(&cells))
}

#[cfg(test)]
mod tests {
    use super::{HandOver, Range};

    const HERE: HandOver = HandOver {
        worst: 50.0,
        best: 20.0,
    };

    #[test]
    fn what_writes_no_shared_line_scales() {
        let range = HERE.predict(100.0, 0, 64, true);
        let expected = Range {
            low: 6_400.0,
            high: 6_400.0,
        };
        assert_eq!(range, expected);
    }

    #[test]
    fn the_line_bounds_what_writes_it() {
        let near = HERE.predict(100.0, 2, 8, false);
        assert_eq!((near.low, near.high), (10.0, 50.0));
        let far = HERE.predict(100.0, 1, 192, true);
        assert!((far.high - 10.0).abs() < 1e-9 && (far.low - 1e3 / 300.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_slow_by_itself_is_not_bound_by_the_line() {
        let range = HERE.predict(1.0, 1, 2, false);
        assert_eq!((range.low, range.high), (2.0, 2.0));
    }
}
