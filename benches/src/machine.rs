//! Where and of what a measurement was taken.

use std::process::Command;
use std::thread::available_parallelism;

/// The machine, the compiler and the commit.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// How many threads run at once.
    pub cores: usize,
    /// The compiler's version.
    pub compiler: String,
    /// The commit, with a `+` if files differ from it.
    pub commit: String,
    /// The day, in UTC.
    pub date: String,
}

impl Machine {
    /// Asks the system.
    #[must_use]
    pub fn here() -> Self {
        let changed = !said("git", &["status", "--porcelain", "-uno"]).is_empty();
        let commit = said("git", &["rev-parse", "--short", "HEAD"]);
        Self {
            processor: processor().unwrap_or_else(|| "unknown processor".to_owned()),
            cores: available_parallelism().map_or(1, core::num::NonZero::get),
            compiler: said("rustc", &["--version"]),
            commit: if changed {
                format!("{commit}+")
            } else {
                commit
            },
            date: said("date", &["-u", "+%F"]),
        }
    }

    /// Returns it in one line.
    #[must_use]
    pub fn text(&self) -> String {
        let Self {
            processor,
            cores,
            compiler,
            commit,
            date,
        } = self;
        format!("{date}; {processor}, {cores} cores; {compiler}; commit {commit}")
    }
}

fn processor() -> Option<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Returns what a program prints, or `unknown`.
fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    match output {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }
        _ => "unknown".to_owned(),
    }
}
