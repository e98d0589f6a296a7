//! What many runs came to.

use std::fmt;
use std::panic::{self, AssertUnwindSafe};

use super::oracle::{Fault, NAMES, Played};
use super::system::System;
use super::world::play;

/// Runs, and what each came to.
#[derive(Debug, Default)]
pub struct Summary {
    runs: Vec<(u64, System, Played)>,
}

impl Summary {
    /// Plays `system`, which is `number` of its kind. A panic counts as a fault.
    pub fn play(&mut self, number: u64, system: System) -> &Played {
        let played = caught(&system);
        self.runs.push((number, system, played));
        &self.runs[self.runs.len() - 1].2
    }

    /// Returns how many runs have a fault called `name`.
    #[must_use]
    pub fn count(&self, name: &str) -> usize {
        self.runs.iter().filter(|run| has(&run.2, name)).count()
    }

    /// Returns the runs with faults, by their numbers.
    pub fn failed(&self) -> impl Iterator<Item = (u64, &System, &Played)> {
        let failed = self
            .runs
            .iter()
            .filter(|(_, _, played)| !played.faults.is_empty());
        failed.map(|(number, system, played)| (*number, system, played))
    }

    /// Returns the shares used, in order.
    fn shares(&self) -> Vec<f64> {
        let measured = self.runs.iter().filter(|run| run.2.offered > 0);
        let mut shares: Vec<_> = measured.map(|run| run.2.share()).collect();
        shares.sort_by(f64::total_cmp);
        shares
    }

    /// Returns by how much a larger part of the requests is refused than under the paced law: the
    /// mean of the runs in which reports cannot be used.
    #[must_use]
    pub fn mean_throttled_more(&self) -> f64 {
        let more = |run: &(u64, System, Played)| Some(run.2.throttled() - run.2.paced?);
        let more: Vec<_> = self.runs.iter().filter_map(more).collect();
        more.iter().sum::<f64>() / more.len().max(1) as f64
    }

    /// Returns the mean share used.
    #[must_use]
    pub fn mean_used(&self) -> f64 {
        let shares = self.shares();
        shares.iter().sum::<f64>() / shares.len().max(1) as f64
    }
}

/// Plays `system`. A panic is a fault.
pub(super) fn caught(system: &System) -> Played {
    let played = panic::catch_unwind(AssertUnwindSafe(|| play(system)));
    played.unwrap_or_else(|cause| {
        let text = cause.downcast_ref::<String>().cloned();
        let text = text.or_else(|| cause.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Played {
            faults: vec![Fault::Panic(text.unwrap_or_default())],
            ..Played::default()
        }
    })
}

fn has(played: &Played, name: &str) -> bool {
    played.faults.iter().any(|fault| fault.name() == name)
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.runs.len();
        writeln!(f, "{} of {runs} systems fail", self.failed().count())?;
        for name in NAMES {
            let count = self.count(name);
            if count > 0 {
                writeln!(f, "  {name}: {count}")?;
            }
        }
        let each = |of: fn(&Played) -> u64| self.runs.iter().map(move |run| of(&run.2));
        let sent: u64 = each(|played| played.sent).sum();
        for exact in [true, false] {
            let those = || self.runs.iter().filter(|run| (run.1.cost == 0) == exact);
            let refused: u64 = those().map(|run| run.2.refused).sum();
            let sent: u64 = those().map(|run| run.2.sent).sum();
            let systems = those().filter(|run| run.2.refused > 0).count();
            let costs = if exact { "known" } else { "estimated" };
            writeln!(
                f,
                "costs {costs}: {refused} of {sent} requests refused, in {systems} of {} systems",
                those().count()
            )?;
        }
        let refused: u64 = each(|played| played.refused).sum();
        let throttled: f64 = self.runs.iter().map(|run| run.2.throttled()).sum();
        writeln!(
            f,
            "throttled: {:.3} % of all, mean of systems {:.3} %",
            100.0 * refused as f64 / sent.max(1) as f64,
            100.0 * throttled / runs.max(1) as f64
        )?;
        let shares = self.shares();
        let part = |hundredths: usize| shares.get(shares.len() * hundredths / 100).copied();
        writeln!(
            f,
            "used: mean {:.3}, 5 % {:.3}, median {:.3}",
            self.mean_used(),
            part(5).unwrap_or(0.0),
            part(50).unwrap_or(0.0)
        )?;
        for (kind, name) in ["window", "refill", "sliding"].into_iter().enumerate() {
            let those = self
                .runs
                .iter()
                .filter(|run| run.1.kind == kind as u64 && run.2.offered > 0);
            let shares: Vec<_> = those.map(|run| run.2.share()).collect();
            if !shares.is_empty() {
                let mean = shares.iter().sum::<f64>() / shares.len() as f64;
                writeln!(f, "  {name}: mean {mean:.3} of {}", shares.len())?;
            }
        }
        Ok(())
    }
}
