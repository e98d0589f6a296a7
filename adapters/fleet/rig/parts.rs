//! What members of this process get of their parts.

use std::time::{Duration, Instant};

use paceline_fleet::{Budget, Scope};
use tokio::task::JoinSet;

/// How many tasks of a member want to send.
const WORKERS: usize = 24;
/// How long a task waits for the answer of its service.
const TRIP: Duration = Duration::from_millis(5);
const WARM_UP: Duration = Duration::from_secs(4);

/// Members that all want to send more than their part, and what they have sent so far.
#[derive(Debug)]
pub(crate) struct Members {
    /// What all may send per second.
    allowance: f64,
    budgets: Vec<(Budget, u64)>,
    workers: Vec<JoinSet<()>>,
    since: Instant,
}

impl Members {
    /// Lets them join, and go on for a while.
    pub(crate) async fn join(allowance: u32, scopes: Vec<Scope>) -> Self {
        let mut members = Self {
            allowance: f64::from(allowance),
            budgets: Vec::new(),
            workers: Vec::new(),
            since: Instant::now(),
        };
        for scope in scopes {
            let budget = scope.join().expect("a runtime");
            members.workers.push(busy(&budget));
            members.budgets.push((budget, 0));
        }
        let _warm = members.parts(WARM_UP).await;
        members
    }

    /// Replaces a member: the old one leaves first.
    pub(crate) async fn replace(&mut self, index: usize, scope: Scope) {
        self.workers[index].abort_all();
        let budget = scope.join().expect("a runtime");
        self.workers[index] = busy(&budget);
        let (old, _) = std::mem::replace(&mut self.budgets[index], (budget, 0));
        old.leave().await;
    }

    /// Waits for `span`, and returns what each member got in it, by its equal part.
    pub(crate) async fn parts(&mut self, span: Duration) -> Vec<f64> {
        tokio::time::sleep(span).await;
        let passed = self.since.elapsed().as_secs_f64();
        self.since = Instant::now();
        let members = super::record::number(self.budgets.len());
        let part = self.allowance / members * passed;
        let got = self.budgets.iter_mut().map(|(budget, before)| {
            let spent = budget.snapshot().spent;
            let got = spent - std::mem::replace(before, spent);
            f64::from(u32::try_from(got).expect("few requests")) / part
        });
        got.collect()
    }
}

fn busy(budget: &Budget) -> JoinSet<()> {
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        let budget = budget.clone();
        workers.spawn(async move {
            loop {
                let _permit = budget.acquire().await;
                tokio::time::sleep(TRIP).await;
            }
        });
    }
    workers
}

/// Returns which part of the allowance all used, what the worst served member got of its part, and
/// Jain's index.
pub(crate) fn figures(parts: &[f64]) -> [f64; 3] {
    let count = super::record::number(parts.len());
    let (sum, squares) = parts
        .iter()
        .fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    let worst = parts.iter().copied().fold(f64::INFINITY, f64::min);
    [sum / count, worst, sum * sum / (count * squares)]
}
