//! A run of several ways to limit a client, each with its own service.

use alloc::sync::Arc;
use core::{
    error::Error,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};
use std::{fs, io, path::Path, process::ExitCode};

use clap::ValueEnum;
use paceline::{Clock, Timestamp};
use tokio::{task::JoinSet, time::Instant};

use super::number::nanos;

/// A clock that follows tokio's: a test can stop it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskClock(Instant);

impl TaskClock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for TaskClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(nanos(self.0.elapsed()))
    }
}

/// A failure of the run itself.
pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// Runs `main` on a run time, and returns its exit code: 2 if the run could not be carried out.
pub(crate) fn main(name: &str, main: impl Future<Output = Result<u8, Failure>>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let code = runtime.map_err(Into::into).and_then(|it| it.block_on(main));
    ExitCode::from(code.unwrap_or_else(|error| {
        eprintln!("{name}: {error}");
        2
    }))
}

/// Returns the modes that were asked for, each once and in their order; all of them if none was.
pub(crate) fn modes<M: ValueEnum + Copy + PartialEq>(asked: &[M]) -> Vec<M> {
    let all = M::value_variants().iter().copied();
    all.filter(|mode| asked.is_empty() || asked.contains(mode))
        .collect()
}

/// Returns the name that a flag takes.
pub(crate) fn name(mode: &impl ValueEnum) -> String {
    let value = mode.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Runs every mode, side by side or one by one, and returns the reports in the order of `modes`.
pub(crate) async fn each<M, R: Send + 'static, F>(
    modes: impl IntoIterator<Item = M>,
    side_by_side: bool,
    run: impl Fn(M) -> F,
) -> Result<Vec<R>, Failure>
where
    F: Future<Output = Result<R, Failure>> + Send + 'static,
{
    let (mut running, mut reports) = (Vec::new(), Vec::new());
    for mode in modes {
        let job = tokio::spawn(run(mode));
        if side_by_side {
            running.push(job);
        } else {
            reports.push(job.await??);
        }
    }
    for job in running {
        reports.push(job.await??);
    }
    Ok(reports)
}

/// Has so many workers take the numbers below `jobs`, one after another, and returns what came of
/// each.
pub(crate) async fn workers<R: Send + 'static, F>(
    workers: usize,
    jobs: usize,
    work: impl Fn(usize, usize) -> F + Clone + Send + 'static,
) -> Result<Vec<R>, Failure>
where
    F: Future<Output = R> + Send,
{
    // Relaxed: taking a number hands over nothing but the number.
    let next = Arc::new(AtomicUsize::new(0));
    let mut running = JoinSet::new();
    for worker in 0..workers.min(jobs) {
        let (next, work) = (Arc::clone(&next), work.clone());
        running.spawn(async move {
            let mut results = Vec::new();
            loop {
                let job = next.fetch_add(1, Relaxed);
                if job >= jobs {
                    return results;
                }
                results.push(work(worker, job).await);
            }
        });
    }
    let mut results = Vec::new();
    while let Some(ended) = running.join_next().await {
        results.extend(ended?);
    }
    Ok(results)
}

/// Prints on what the clients and the services differ, and returns whether it is nothing.
pub(crate) fn agree(differences: impl Iterator<Item = String>) -> bool {
    let differences: Vec<_> = differences.collect();
    if differences.is_empty() {
        println!("The clients and the service counted the same.");
    }
    for line in &differences {
        eprintln!("{line}");
    }
    differences.is_empty()
}

/// Writes a file, in a folder that may not exist.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)
}
