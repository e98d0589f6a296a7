//! The background task of one member: the only one that waits for the engine.

use core::{fmt, future::Future, pin::Pin, time::Duration};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use paceline::{Clock, Timestamp};
use tokio::sync::watch;

use crate::engine::Engine;
use crate::fault::EngineFault;
use crate::member::Member;
use crate::pool::Pool;
use crate::settings::Settings;
use crate::snapshot::{BudgetSnapshot, Standing};
use crate::wire::{Answer, Ask, Step};

/// What a task works with.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) engine: Arc<Engine>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Settings,
    pub(crate) scope: String,
    pub(crate) pool: Arc<Pool>,
    pub(crate) shown: Shown,
}

/// Called when the standing or the fault of a member changes.
#[derive(Clone)]
pub(crate) struct Listener(pub(crate) Arc<dyn Fn(BudgetSnapshot) + Send + Sync>);

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}

/// Where a task shows its member. Dropped with the task, however that ends, it shows the end.
#[derive(Debug)]
pub(crate) struct Shown {
    pool: Arc<Pool>,
    sender: watch::Sender<BudgetSnapshot>,
    listener: Option<Listener>,
    /// The last handle is gone, and the member has left.
    left: bool,
}

impl Shown {
    pub(crate) const fn new(
        pool: Arc<Pool>,
        sender: watch::Sender<BudgetSnapshot>,
        listener: Option<Listener>,
    ) -> Self {
        Self {
            pool,
            sender,
            listener,
            left: false,
        }
    }

    fn show(&self, snapshot: BudgetSnapshot) {
        let last = self.sender.send_replace(snapshot);
        let changes = (last.standing, last.fault) != (snapshot.standing, snapshot.fault);
        if let (true, Some(Listener(listener))) = (changes, &self.listener) {
            // A listener that panics must not end the task, nor the process while that unwinds.
            let _panicked = catch_unwind(AssertUnwindSafe(|| listener(snapshot)));
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.pool.close();
        let last = *self.sender.borrow();
        self.show(BudgetSnapshot {
            standing: Standing::Ended,
            held: 0,
            fault: (!self.left).then_some(EngineFault::TaskEnded),
            ..last
        });
    }
}

/// An ask under way, and when it was made.
type Asking = Pin<Box<dyn Future<Output = (Timestamp, Result<Answer, EngineFault>)> + Send>>;

impl Task {
    /// Runs until the last handle of the budget is dropped, and leaves the fleet then.
    pub(crate) async fn run(self) {
        let mut seat = Seat {
            member: Member::new(self.settings, self.clock.now()),
            task: self,
            heard: false,
        };
        seat.hold().await;
        seat.leave().await;
    }

    /// Returns after `span`, or a millisecond after a request was refused: polling callers must not
    /// make the task spin.
    async fn woken(&self, span: Duration) {
        tokio::select! {
            () = tokio::time::sleep(span) => {}
            () = self.pool.need.notified() => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }

    fn asking(&self, ask: Ask, now: Timestamp) -> Asking {
        let (engine, name) = (Arc::clone(&self.engine), self.pool.member().to_string());
        let (settings, key) = (self.settings, self.engine.key(Step::Send, &self.scope));
        Box::pin(async move {
            let words = ask.words(&settings);
            let patience = settings.patience.max(ask.reach.patience());
            let numbers = engine.take(Step::Send, &key, &name, &words, patience).await;
            (now, numbers.and_then(|numbers| ask.read(&numbers)))
        })
    }
}

/// A member with its task. Dropped with a runtime that ends, it still leaves a file.
#[derive(Debug)]
struct Seat {
    task: Task,
    member: Member,
    /// Its last word was heard.
    heard: bool,
}

impl Seat {
    /// Asks for tokens until the last handle of the budget is dropped.
    async fn hold(&mut self) {
        let Self { task, member, .. } = self;
        let mut asking: Option<Asking> = None;
        loop {
            let now = task.clock.now();
            member.tick(now, &task.pool);
            if asking.is_none() && member.is_due(now, &task.pool) {
                let ask = member.ask(now, &task.pool);
                asking = Some(task.asking(ask, now));
            }
            task.shown.show(member.snapshot(now, &task.pool));
            tokio::select! {
                biased;
                () = task.pool.stop.notified() => break,
                (asked, result) = under_way(&mut asking) => {
                    asking = None;
                    let now = task.clock.now();
                    match result {
                        Ok(answer) => member.answered(now, asked, answer, &task.pool),
                        Err(fault) => {
                            if let EngineFault::Broken = fault {
                                // Perhaps only the record of this member is: a new one starts
                                // without.
                                task.pool.rename();
                            }
                            member.failed(now, fault, &task.pool);
                        }
                    }
                }
                () = task.woken(member.pause(now)) => {}
            }
        }
    }

    async fn leave(&mut self) {
        let Self { task, member, .. } = self;
        let ask = member.leave(task.clock.now(), &task.pool);
        task.shown.left = true;
        let (_, _unheard) = task.asking(ask, task.clock.now()).await;
        self.heard = true;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let Self { task, member, .. } = self;
        if std::thread::panicking() {
            // Perhaps the caller's clock has: it is not asked again.
        } else if task.shown.left {
            if !self.heard {
                task.engine.flush();
            }
        } else {
            let ask = member.leave(task.clock.now(), &task.pool);
            let key = task.engine.key(Step::Send, &task.scope);
            let name = task.pool.member().to_string();
            task.engine
                .part(Step::Send, &key, &name, &ask.words(&task.settings));
        }
    }
}

async fn under_way(asking: &mut Option<Asking>) -> (Timestamp, Result<Answer, EngineFault>) {
    match asking {
        Some(asking) => asking.await,
        None => core::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    type Heard = Arc<Mutex<Vec<BudgetSnapshot>>>;

    fn shown() -> (Shown, watch::Receiver<BudgetSnapshot>, Heard) {
        let (sender, seen) = watch::channel(BudgetSnapshot::default());
        let heard = Heard::default();
        let to = Arc::clone(&heard);
        let listener = Listener(Arc::new(move |snapshot| to.lock().unwrap().push(snapshot)));
        assert_eq!(format!("{listener:?}"), "Listener");
        let shown = Shown::new(Arc::new(Pool::new()), sender, Some(listener));
        (shown, seen, heard)
    }

    #[test]
    fn a_listener_hears_a_change_of_standing_or_fault_only() {
        let (shown, seen, heard) = shown();
        let leased = BudgetSnapshot {
            standing: Standing::Leased,
            held: 7,
            ..BudgetSnapshot::default()
        };
        shown.show(leased);
        let spent = BudgetSnapshot { held: 6, ..leased };
        shown.show(spent);
        assert_eq!(*seen.borrow(), spent);
        assert_eq!(*heard.lock().unwrap(), [leased]);
    }

    #[test]
    fn the_end_of_a_task_closes_the_pool_and_is_shown() {
        for (left, fault) in [(false, Some(EngineFault::TaskEnded)), (true, None)] {
            let (mut shown, seen, heard) = shown();
            let pool = Arc::clone(&shown.pool);
            pool.open();
            shown.show(BudgetSnapshot {
                held: 7,
                asks: 3,
                fault: Some(EngineFault::TimedOut),
                ..BudgetSnapshot::default()
            });
            shown.left = left;
            drop(shown);
            let end = BudgetSnapshot {
                standing: Standing::Ended,
                asks: 3,
                fault,
                ..BudgetSnapshot::default()
            };
            assert_eq!(
                (*seen.borrow(), heard.lock().unwrap().last()),
                (end, Some(&end))
            );
            assert!(!pool.take(Timestamp::ZERO, 1));
        }
    }
}
