//! A world in which time moves from timer to timer: a clock, timers and tasks, and a count of how
//! often each was woken.

use alloc::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    task::Wake,
};
use core::{
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    task::{Context, Poll, Waker},
    time::Duration,
};
use std::sync::Mutex;

use paceline::{
    AcquireError, Clock, SendLimiter, SendPermit, SendRate, Timestamp,
    wait::{Sleep, Timer},
};

pub(crate) const MILLI: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000 * MILLI;

pub(crate) fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

type Timers = Mutex<BTreeMap<(u64, u64), Waker>>;

/// The clock, and the timers that hang from it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hands {
    now: Arc<AtomicU64>,
    timers: Arc<Timers>,
    /// How many timers there ever were, and how often they were armed.
    pub(crate) made: Arc<AtomicU64>,
    pub(crate) armed: Arc<AtomicU64>,
    /// Whether a timer is firing now.
    fires: Arc<AtomicBool>,
}

impl Hands {
    pub(crate) fn nanos(&self) -> u64 {
        self.now.load(SeqCst)
    }

    pub(crate) fn set(&self, nanos: u64) {
        self.now.store(nanos, SeqCst);
    }
}

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        at(self.nanos())
    }
}

impl Sleep for Hands {
    type Timer = FakeTimer;

    fn timer(&self) -> FakeTimer {
        FakeTimer {
            number: self.made.fetch_add(1, SeqCst),
            due: None,
            hands: self.clone(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct FakeTimer {
    number: u64,
    due: Option<u64>,
    hands: Hands,
}

impl FakeTimer {
    fn disarm(&mut self) {
        if let Some(due) = self.due.take() {
            self.hands
                .timers
                .lock()
                .unwrap()
                .remove(&(due, self.number));
        }
    }
}

impl Timer for FakeTimer {
    fn arm(&mut self, span: Duration) {
        self.disarm();
        self.hands.armed.fetch_add(1, SeqCst);
        let span = u64::try_from(span.as_nanos()).unwrap();
        self.due = Some(self.hands.nanos() + span);
    }

    fn poll_elapsed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let due = self.due.expect("it is armed");
        if due <= self.hands.nanos() {
            self.disarm();
            return Poll::Ready(());
        }
        let mut timers = self.hands.timers.lock().unwrap();
        timers.insert((due, self.number), cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for FakeTimer {
    fn drop(&mut self) {
        self.disarm();
    }
}

pub(crate) type Limiter = SendLimiter<Arc<SendRate>, Hands, Hands>;

pub(crate) fn limiter(rate: SendRate, hands: &Hands) -> Limiter {
    SendLimiter::new(Arc::new(rate))
        .clock(hands.clone())
        .sleep_on(hands.clone())
}

type Queue = Arc<Mutex<VecDeque<usize>>>;

struct Alarm {
    task: usize,
    queued: AtomicBool,
    queue: Queue,
    /// Whether only its own timer can wake it.
    deaf: AtomicBool,
    hands: Hands,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        if self.deaf.load(SeqCst) && !self.hands.fires.load(SeqCst) {
            return;
        }
        if !self.queued.swap(true, SeqCst) {
            self.queue.lock().unwrap().push_back(self.task);
        }
    }
}

type Waiting = Pin<Box<dyn Future<Output = Result<SendPermit, AcquireError>> + Send>>;

pub(crate) struct Task {
    future: Option<Waiting>,
    alarm: Arc<Alarm>,
    /// How often it was polled; the first poll is not a wake.
    pub(crate) polls: u32,
    pub(crate) ended: Option<(u64, Result<SendPermit, AcquireError>)>,
}

impl Task {
    pub(crate) fn went_at(&self) -> u64 {
        let (at, result) = self.ended.expect("it has ended");
        assert!(result.is_ok(), "{result:?}");
        at
    }
}

/// Everything that moves.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) hands: Hands,
    pub(crate) tasks: Vec<Task>,
    queue: Queue,
    held: Vec<Option<Waiting>>,
    /// The tasks in the order in which they ended.
    pub(crate) order: Vec<usize>,
}

impl World {
    /// Adds a task and polls it.
    pub(crate) fn spawn(
        &mut self,
        future: impl Future<Output = Result<SendPermit, AcquireError>> + Send + 'static,
    ) -> usize {
        let task = self.tasks.len();
        let alarm = Arc::new(Alarm {
            task,
            queued: AtomicBool::new(false),
            queue: Arc::clone(&self.queue),
            deaf: AtomicBool::new(false),
            hands: self.hands.clone(),
        });
        self.tasks.push(Task {
            future: Some(Box::pin(future)),
            alarm: Arc::clone(&alarm),
            polls: 0,
            ended: None,
        });
        alarm.wake();
        self.settle();
        task
    }

    /// Drops a task's future.
    pub(crate) fn drop_task(&mut self, task: usize) {
        self.tasks[task].future = None;
        self.settle();
    }

    /// From now on only its own timer wakes a task.
    pub(crate) fn deafen(&mut self, task: usize) {
        self.tasks[task].alarm.deaf.store(true, SeqCst);
    }

    /// Never polls a task again, and keeps it.
    pub(crate) fn hold(&mut self, task: usize) {
        self.held.push(self.tasks[task].future.take());
    }

    /// Polls the woken tasks until none is.
    pub(crate) fn settle(&mut self) {
        loop {
            let Some(number) = self.queue.lock().unwrap().pop_front() else {
                return;
            };
            let task = &mut self.tasks[number];
            task.alarm.queued.store(false, SeqCst);
            let Some(future) = &mut task.future else {
                continue;
            };
            task.polls += 1;
            assert!(task.polls < 10_000, "it spins");
            let waker = Waker::from(Arc::clone(&task.alarm));
            if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                task.future = None;
                task.ended = Some((self.hands.nanos(), result));
                self.order.push(number);
            }
        }
    }

    /// Lets time pass until `nanos`, from timer to timer.
    pub(crate) fn run_until(&mut self, nanos: u64) {
        loop {
            let due = self.hands.timers.lock().unwrap().pop_first();
            match due {
                Some(((due, _), waker)) if due <= nanos => {
                    self.hands.set(due.max(self.hands.nanos()));
                    self.hands.fires.store(true, SeqCst);
                    waker.wake();
                    self.hands.fires.store(false, SeqCst);
                    self.settle();
                }
                other => {
                    if let Some((key, waker)) = other {
                        self.hands.timers.lock().unwrap().insert(key, waker);
                    }
                    self.hands.set(nanos);
                    return;
                }
            }
        }
    }

    pub(crate) fn most_wakes(&self) -> u32 {
        self.tasks
            .iter()
            .map(|task| task.polls - 1)
            .max()
            .unwrap_or(0)
    }
}
