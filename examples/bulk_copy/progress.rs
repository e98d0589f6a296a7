//! What a run shows while it runs: each mode's row as the mode ends, and on a terminal a line that
//! changes each second.

use alloc::sync::Arc;
use core::time::Duration;
use std::{
    io::{IsTerminal, stderr},
    sync::{Mutex, PoisonError},
};

use tokio::task::JoinHandle;

use crate::{client::Client, mode::Mode, number::grouped, report::Report};

/// The clients of the modes that have begun. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress(Arc<Mutex<Vec<(Mode, Client)>>>);

impl Progress {
    pub(crate) fn begins(&self, mode: Mode, client: &Client) {
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        clients.push((mode, client.clone()));
    }

    /// Returns what was copied so far, in one line.
    fn line(&self, seconds: u32) -> String {
        let clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let copied = |(mode, client): &(Mode, Client)| {
            format!(", {} {}", mode.name(), grouped(client.counts().done))
        };
        let copied: String = clients.iter().map(copied).collect();
        format!("{seconds} s{copied} copied")
    }

    /// Shows the line each second where standard error is a terminal, and nothing elsewhere, until
    /// the task is aborted.
    pub(crate) fn show(&self) -> JoinHandle<()> {
        let progress = self.clone();
        tokio::spawn(async move {
            for seconds in 0_u32.. {
                if stderr().is_terminal() {
                    eprint!("\r\x1b[K{}", progress.line(seconds));
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        })
    }
}

/// Prints the row of a mode that has ended, in the place of the line.
pub(crate) fn ended(report: &Report) {
    if stderr().is_terminal() {
        eprint!("\r\x1b[K");
    }
    println!("{}", report.row());
}

#[cfg(test)]
mod tests {
    use super::Progress;
    use crate::{client::Client, mode::Mode};

    #[test]
    fn the_line_names_each_mode_that_has_begun() {
        let (progress, client) = (Progress::default(), Client::new(([127, 0, 0, 1], 9).into()));
        progress.begins(Mode::Paced, &client.expect("no proxy"));
        assert_eq!(progress.line(7), "7 s, paced 0 copied");
    }
}
