//! Virtual time: tasks, and timers that wake them. Each thread has its own; it stands still while a
//! task runs, so a client is a function that reads from top to bottom.

#![allow(clippy::cast_possible_truncation, reason = "parts of an event")]

use alloc::collections::{BTreeSet, BinaryHeap, VecDeque};
use alloc::{boxed::Box, sync::Arc, task::Wake};
use core::cell::{Cell, RefCell};
use core::cmp::Reverse;
use core::future::poll_fn;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use fastrand::Rng;
use paceline::{
    Clock, Timestamp,
    wait::{Sleep, Timer},
};

use super::number::nanos;

/// A millisecond and a second, in nanoseconds.
pub(crate) const MILLI: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000 * MILLI;

/// Timers of waiters are up to so much late, as a runtime's are.
const LATE: u64 = MILLI;

std::thread_local!(static WORLD: World = World::default());

/// Everything that moves.
#[derive(Default)]
struct World {
    now: Cell<u64>,
    /// Tells apart events of the same instant: first come, first served.
    serial: Cell<u64>,
    /// Those to come, the earliest first.
    events: RefCell<BinaryHeap<Reverse<u128>>>,
    /// The event that came last. Low bits first: 24 of task, 40 of serial, 64 of time.
    last: Cell<u128>,
    /// Those to come that wake nothing.
    cancelled: RefCell<BTreeSet<u128>>,
    /// The task that runs, and those that are woken.
    task: Cell<usize>,
    woken: RefCell<VecDeque<usize>>,
    tasks: RefCell<Vec<Option<Task>>>,
    free: RefCell<Vec<usize>>,
    late: RefCell<Rng>,
}

struct Task {
    future: Pin<Box<dyn Future<Output = ()>>>,
    bell: Arc<Bell>,
    waker: Waker,
}

struct Bell {
    task: usize,
    rung: AtomicBool,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        if !self.rung.swap(true, Relaxed) {
            WORLD.with(|world| world.woken.borrow_mut().push_back(self.task));
        }
    }
}

impl World {
    fn number(&self) -> u64 {
        self.serial.set(self.serial.get() + 1);
        self.serial.get() & ((1 << 40) - 1)
    }

    fn push(&self, at: u64, serial: u64, task: usize) -> u128 {
        let event = (u128::from(at) << 64) | (u128::from(serial) << 24) | task as u128;
        self.events.borrow_mut().push(Reverse(event));
        event
    }

    fn add(&self, future: impl Future<Output = ()> + 'static) -> usize {
        let free = self.free.borrow_mut().pop();
        let mut tasks = self.tasks.borrow_mut();
        let task = free.unwrap_or(tasks.len());
        if task == tasks.len() {
            tasks.push(None);
        }
        let rung = AtomicBool::new(false);
        let bell = Arc::new(Bell { task, rung });
        tasks[task] = Some(Task {
            future: Box::pin(future),
            waker: Waker::from(Arc::clone(&bell)),
            bell,
        });
        task
    }

    /// Polls the woken tasks until none is.
    fn poll_woken(&self) {
        loop {
            let Some(number) = self.woken.borrow_mut().pop_front() else {
                return;
            };
            self.poll(number);
        }
    }

    fn poll(&self, number: usize) {
        let Some(mut task) = self.tasks.borrow_mut()[number].take() else {
            return;
        };
        task.bell.rung.store(false, Relaxed);
        self.task.set(number);
        let mut context = Context::from_waker(&task.waker);
        if task.future.as_mut().poll(&mut context).is_ready() {
            self.free.borrow_mut().push(number);
        } else {
            self.tasks.borrow_mut()[number] = Some(task);
        }
    }

    fn is_cancelled(&self, event: u128) -> bool {
        let mut cancelled = self.cancelled.borrow_mut();
        !cancelled.is_empty() && cancelled.remove(&event)
    }
}

/// Lets time pass from 0 to `end` for the tasks that `begin` spawns, and ends them.
pub(crate) fn run(seed: u64, end: u64, begin: impl FnOnce()) {
    WORLD.with(|world| {
        world.late.borrow_mut().seed(seed);
        begin();
        loop {
            world.poll_woken();
            let next = world.events.borrow_mut().pop();
            let Some(Reverse(event)) = next.filter(|event| (event.0 >> 64) < end.into()) else {
                break;
            };
            world.last.set(event);
            world.now.set((event >> 64) as u64);
            if !world.is_cancelled(event) {
                world.poll(event as usize & ((1 << 24) - 1));
            }
        }
        drop(world.tasks.take());
        for count in [&world.now, &world.serial] {
            count.set(0);
        }
        world.last.set(0);
        world.events.take();
        world.cancelled.take();
        world.woken.take();
        world.free.take();
    });
}

/// Returns the time.
pub(crate) fn now() -> u64 {
    WORLD.with(|world| world.now.get())
}

/// Returns the number of the task that runs. A task that has ended leaves its number to another.
pub(crate) fn task() -> usize {
    WORLD.with(|world| world.task.get())
}

/// Adds a task that runs at once.
pub(crate) fn spawn(future: impl Future<Output = ()> + 'static) {
    WORLD.with(|world| {
        let task = world.add(future);
        world.woken.borrow_mut().push_back(task);
    });
}

/// Adds a task that begins at a time.
pub(crate) fn spawn_at(at: u64, future: impl Future<Output = ()> + 'static) {
    WORLD.with(|world| world.push(at, world.number(), world.add(future)));
}

fn number() -> u64 {
    WORLD.with(World::number)
}

/// Returns the event of this number, which wakes the task that runs.
fn wake_at(at: u64, number: u64) -> u128 {
    WORLD.with(|world| world.push(at, number, world.task.get()))
}

fn has_come(event: u128) -> bool {
    WORLD.with(|world| world.last.get() >= event)
}

/// Sleeps until a time; until now, it lets the other events of this instant come first.
pub(crate) async fn sleep_until(at: u64) {
    let event = wake_at(at, number());
    let poll = || {
        if has_come(event) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    };
    poll_fn(|_| poll()).await;
}

/// The clock, and the waiters' timers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Virtual;

impl Clock for Virtual {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(now())
    }
}

impl Sleep for Virtual {
    type Timer = Alarm;

    fn timer(&self) -> Alarm {
        Alarm {
            number: number(),
            due: 0,
            event: None,
        }
    }
}

/// A timer of a waiter.
#[derive(Debug)]
pub(crate) struct Alarm {
    number: u64,
    due: u64,
    event: Option<u128>,
}

impl Alarm {
    fn disarm(&mut self) {
        if let Some(event) = self.event.take().filter(|event| !has_come(*event)) {
            WORLD.with(|world| world.cancelled.borrow_mut().insert(event));
        }
    }
}

impl Timer for Alarm {
    fn arm(&mut self, span: Duration) {
        self.disarm();
        let late = WORLD.with(|world| world.late.borrow_mut().u64(0..LATE));
        self.due = now().saturating_add(nanos(span)).saturating_add(late);
    }

    fn poll_elapsed(&mut self, _: &mut Context<'_>) -> Poll<()> {
        if self.due <= now() {
            self.disarm();
            return Poll::Ready(());
        }
        self.event
            .get_or_insert_with(|| wake_at(self.due, self.number));
        Poll::Pending
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.disarm();
    }
}
