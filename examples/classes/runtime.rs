//! Virtual time: tasks, and timers that are up to a millisecond late, as a runtime's are.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::{rc::Rc, sync::Arc, task::Wake};
use core::cell::RefCell;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError};

use paceline::{
    Clock, Timestamp,
    wait::{Sleep, Timer},
};

const LATE: u64 = 1_000_000;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The clock, and the timers that hang from it.
#[derive(Clone, Debug)]
pub(crate) struct Hands(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    now: AtomicU64,
    serial: AtomicU64,
    timers: Mutex<BTreeMap<(u64, u64), Waker>>,
    rng: Mutex<fastrand::Rng>,
}

impl Hands {
    pub(crate) fn nanos(&self) -> u64 {
        self.0.now.load(Relaxed)
    }

    /// Sleeps until `nanos`, to the nanosecond.
    pub(crate) async fn sleep_until(&self, nanos: u64) {
        let number = self.0.serial.fetch_add(1, Relaxed);
        poll_fn(|cx| {
            if self.nanos() >= nanos {
                return Poll::Ready(());
            }
            lock(&self.0.timers).insert((nanos, number), cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.nanos())
    }
}

impl Sleep for Hands {
    type Timer = Alarm;

    fn timer(&self) -> Alarm {
        Alarm {
            number: self.0.serial.fetch_add(1, Relaxed),
            due: 0,
            hands: self.clone(),
        }
    }
}

/// A timer of a waiter.
#[derive(Debug)]
pub(crate) struct Alarm {
    number: u64,
    due: u64,
    hands: Hands,
}

impl Alarm {
    fn disarm(&self) {
        lock(&self.hands.0.timers).remove(&(self.due, self.number));
    }
}

impl Timer for Alarm {
    fn arm(&mut self, span: Duration) {
        self.disarm();
        let span = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let late = lock(&self.hands.0.rng).u64(0..LATE);
        self.due = self.hands.nanos().saturating_add(span).saturating_add(late);
    }

    fn poll_elapsed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.due <= self.hands.nanos() {
            self.disarm();
            return Poll::Ready(());
        }
        lock(&self.hands.0.timers).insert((self.due, self.number), cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.disarm();
    }
}

type Task = Pin<Box<dyn Future<Output = ()>>>;

struct Bell {
    task: usize,
    queued: AtomicBool,
    queue: Arc<Mutex<VecDeque<usize>>>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        if !self.queued.swap(true, Relaxed) {
            lock(&self.queue).push_back(self.task);
        }
    }
}

/// Where tasks put new tasks.
#[derive(Clone, Default)]
pub(crate) struct Spawner(Rc<RefCell<Vec<Task>>>);

impl Spawner {
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.0.borrow_mut().push(Box::pin(task));
    }
}

/// Everything that moves.
pub(crate) struct Runtime {
    pub(crate) hands: Hands,
    pub(crate) spawner: Spawner,
    tasks: Vec<Option<(Task, Arc<Bell>)>>,
    free: Vec<usize>,
    queue: Arc<Mutex<VecDeque<usize>>>,
}

impl Runtime {
    pub(crate) fn new(seed: u64) -> Self {
        let shared = Shared {
            now: AtomicU64::new(0),
            serial: AtomicU64::new(0),
            timers: Mutex::default(),
            rng: Mutex::new(fastrand::Rng::with_seed(seed)),
        };
        Self {
            hands: Hands(Arc::new(shared)),
            spawner: Spawner::default(),
            tasks: Vec::new(),
            free: Vec::new(),
            queue: Arc::default(),
        }
    }

    fn add(&mut self, future: Task) {
        let task = self.free.pop().unwrap_or(self.tasks.len());
        if task == self.tasks.len() {
            self.tasks.push(None);
        }
        let bell = Arc::new(Bell {
            task,
            queued: AtomicBool::new(true),
            queue: Arc::clone(&self.queue),
        });
        self.tasks[task] = Some((future, bell));
        lock(&self.queue).push_back(task);
    }

    /// Polls the woken tasks until none is.
    fn settle(&mut self) {
        loop {
            let new = self.spawner.0.take();
            for task in new {
                self.add(task);
            }
            let Some(number) = lock(&self.queue).pop_front() else {
                return;
            };
            let Some((future, bell)) = &mut self.tasks[number] else {
                continue;
            };
            bell.queued.store(false, Relaxed);
            let waker = Waker::from(Arc::clone(bell));
            if future
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_ready()
            {
                self.tasks[number] = None;
                self.free.push(number);
            }
        }
    }

    /// Lets time pass until `end`.
    pub(crate) fn run_until(&mut self, end: u64) {
        self.settle();
        loop {
            let due = lock(&self.hands.0.timers).pop_first();
            let Some(((due, _), waker)) = due.filter(|((due, _), _)| *due < end) else {
                self.hands.0.now.store(end, Relaxed);
                return;
            };
            self.hands.0.now.fetch_max(due, Relaxed);
            waker.wake();
            self.settle();
        }
    }
}
