//! A file as the engine: for the processes of one machine, without a server.
//!
//! The scripts are those that the servers run. A step is a transaction of SQLite, so that a process
//! that is killed half way has taken it whole or not at all. A thread takes the steps of a process:
//! no task waits for the disk.

use core::time::Duration;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;

use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::fault::EngineFault;
use crate::wire::Step;

pub(crate) mod file;
pub(crate) mod script;
pub(crate) mod time;

use file::File;

/// How long a caller waits for the file to be opened.
const OPENING: Duration = Duration::from_millis(250);

type Taken = Result<Vec<i64>, EngineFault>;

/// The way to the thread that has the file open. The thread ends with it.
pub(crate) struct Local {
    jobs: mpsc::Sender<Job>,
}

/// What the thread does next.
enum Job {
    Step(Work),
    /// All before is done.
    Flush(mpsc::SyncSender<()>),
}

/// A step to take, and where its answer goes.
struct Work {
    step: Step,
    key: String,
    member: String,
    words: String,
    answer: Answer,
}

enum Answer {
    Task(oneshot::Sender<Taken>),
    Thread(mpsc::SyncSender<Taken>),
}

impl Local {
    /// Starts the thread, and blocks until it has opened the file. One that others have locked, or
    /// that takes long, is opened by the first step.
    pub(crate) fn new(path: PathBuf) -> Result<Self, EngineFault> {
        let (jobs, taken) = mpsc::channel::<Job>();
        let (tried, opened) = mpsc::sync_channel(1);
        let named = thread::Builder::new().name("paceline-fleet".to_owned());
        let began = named.spawn(move || {
            let file = File::new(path, time::clocks());
            let _late = tried.send(file.open());
            for job in taken {
                match job {
                    Job::Step(work) => work.take(&file),
                    Job::Flush(done) => _ = done.send(()),
                }
            }
        });
        began.map_err(|_| EngineFault::OutOfMemory)?;
        match opened.recv_timeout(OPENING) {
            Ok(Err(fault)) if fault != EngineFault::TimedOut => Err(fault),
            _ => Ok(Self { jobs }),
        }
    }

    /// Takes one step, or returns why not, within `patience`.
    pub(crate) async fn take(
        &self,
        step: Step,
        key: &str,
        member: &str,
        words: &str,
        patience: Duration,
    ) -> Taken {
        let (sender, answer) = oneshot::channel();
        self.send(step, key, member, words, Answer::Task(sender))?;
        match timeout(patience, answer).await {
            Ok(answer) => answer.unwrap_or(Err(EngineFault::Other)),
            Err(_) => Err(EngineFault::TimedOut),
        }
    }

    /// Takes one step and blocks for it, at most so long: for a runtime that ends, and polls no
    /// task any more.
    pub(crate) fn take_now(
        &self,
        step: Step,
        key: &str,
        member: &str,
        words: &str,
        patience: Duration,
    ) -> Taken {
        let (sender, answer) = mpsc::sync_channel(1);
        self.send(step, key, member, words, Answer::Thread(sender))?;
        let answer = answer.recv_timeout(patience);
        answer.unwrap_or(Err(EngineFault::TimedOut))
    }

    fn send(
        &self,
        step: Step,
        key: &str,
        member: &str,
        words: &str,
        answer: Answer,
    ) -> Result<(), EngineFault> {
        let work = Work {
            step,
            key: key.to_owned(),
            member: member.to_owned(),
            words: words.to_owned(),
            answer,
        };
        // The thread has ended if it panicked.
        let sent = self.jobs.send(Job::Step(work));
        sent.map_err(|_| EngineFault::Other)
    }

    /// Blocks until what was sent before is done, at most so long.
    pub(crate) fn flush(&self, patience: Duration) {
        let (done, is_done) = mpsc::sync_channel(1);
        if self.jobs.send(Job::Flush(done)).is_ok() {
            let _late = is_done.recv_timeout(patience);
        }
    }
}

impl Work {
    fn take(self, file: &File) {
        // An ask that waited too long behind others will be repeated; a last word is not. The
        // second word of both scripts says which it is.
        let is_last = self.words.split(' ').nth(1) == Some("1");
        if !is_last && matches!(&self.answer, Answer::Task(task) if task.is_closed()) {
            return;
        }
        let taken = file.take(self.step, &self.key, &self.member, &self.words);
        match self.answer {
            Answer::Task(task) => _ = task.send(taken),
            Answer::Thread(thread) => _ = thread.send(taken),
        }
    }
}
