//! Plays operations of a strategy against a service, from event to event in virtual time.

use alloc::collections::BinaryHeap;
use core::{cmp::Reverse, time::Duration};

use paceline::{
    Failure, Operation, RetryStrategy,
    operation::{Attempts, Next},
    strategy::Reports,
};

use crate::support::Hands;

pub(crate) const MILLI: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000 * MILLI;

/// What comes of a request, and after how long; `None` if it is never answered.
pub(crate) type Answer = (Option<u64>, Result<(), Failure>);

pub(crate) trait Service {
    /// Answers a request of operation `number` that comes at `now`.
    fn answer(&mut self, now: u64, number: usize) -> Answer;

    /// The answer to a request of `number` goes out.
    fn answered(&mut self, number: usize);
}

/// Which operations there are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Load {
    /// So many a second until then.
    Open { each: u64, until: u64 },
    /// So many, by so many workers.
    Closed { workers: usize, operations: usize },
}

impl Load {
    fn operations(self) -> usize {
        match self {
            Self::Open { each, until } => usize::try_from(until / each).expect("small"),
            Self::Closed { operations, .. } => operations,
        }
    }
}

/// How an operation went.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Played {
    pub(crate) begun: u64,
    pub(crate) ended: u64,
    /// How long it waited before its first request.
    pub(crate) waited: u64,
    pub(crate) sends: u32,
    pub(crate) succeeded: bool,
}

enum Event {
    Begin,
    /// The operation may go on.
    Look,
    /// The service has answered.
    Answered,
    /// The client hears of it, or no longer waits.
    Hears(Result<(), Failure>),
}

type Queue = BinaryHeap<Reverse<(u64, u64, usize)>>;

/// A strategy, its clock, and how long a client waits for an answer.
pub(crate) struct Client<'a, S> {
    pub(crate) strategy: &'a S,
    pub(crate) hands: &'a Hands,
    pub(crate) patience: u64,
    /// The scope of an operation.
    pub(crate) scope: fn(usize) -> Option<&'static str>,
}

impl<'a, S: RetryStrategy> Client<'a, S> {
    pub(crate) fn new(strategy: &'a S, hands: &'a Hands) -> Self {
        Self {
            strategy,
            hands,
            patience: 3_600 * SECOND,
            scope: |_| None,
        }
    }

    /// Plays a load to its end, and returns how each operation went.
    pub(crate) fn play(&self, load: Load, service: &mut dyn Service) -> Vec<Played> {
        let count = load.operations();
        let mut played = vec![Played::default(); count];
        let mut under_way: Vec<Option<Attempts<&S>>> = (0..count).map(|_| None).collect();
        let mut plan = Plan::default();
        match load {
            Load::Open { each, .. } => {
                (0..count).for_each(|number| plan.add(number as u64 * each, number, Event::Begin));
            }
            Load::Closed { workers, .. } => {
                (0..workers.min(count)).for_each(|number| plan.add(0, number, Event::Begin));
            }
        }
        let mut next = match load {
            Load::Open { .. } => count,
            Load::Closed { workers, .. } => workers,
        };
        while let Some((now, number, event)) = plan.next() {
            let passed = self.hands.elapsed();
            self.hands
                .sleep(Duration::from_nanos(now).saturating_sub(passed));
            let this = &mut played[number];
            match event {
                Event::Begin => {
                    this.begun = now;
                    let mut operation = Operation::new(self.strategy);
                    if let Some(scope) = (self.scope)(number) {
                        operation = operation.scope(scope);
                    }
                    under_way[number] = Some(operation.start());
                }
                Event::Look => {}
                Event::Answered => {
                    service.answered(number);
                    continue;
                }
                Event::Hears(result) => {
                    let attempts = under_way[number].as_mut().expect("it is under way");
                    let heard = Reports::at(self.hands);
                    this.succeeded = result.is_ok();
                    match result {
                        Ok(()) => attempts.succeeded(heard).expect("it was sent"),
                        Err(failure) => {
                            let _ = attempts.failed(&failure, heard).expect("it was sent");
                        }
                    }
                }
            }
            let attempts = under_way[number].as_mut().expect("it is under way");
            let goes_on = !this.succeeded
                && match attempts.next(self.hands, None) {
                    Next::Sleep(rest) | Next::InLine(rest) => {
                        plan.add(rest.until().as_nanos(), number, Event::Look);
                        true
                    }
                    Next::Send(_) => {
                        if this.sends == 0 {
                            this.waited = now - this.begun;
                        }
                        this.sends += 1;
                        let (after, result) = service.answer(now, number);
                        if let Some(after) = after {
                            plan.add(now + after, number, Event::Answered);
                        }
                        let (after, result) = match after {
                            Some(after) if after <= self.patience => (after, result),
                            _ => (self.patience, Err(Failure::timeout())),
                        };
                        plan.add(now + after, number, Event::Hears(result));
                        true
                    }
                    Next::Stop(_) => false,
                    other => panic!("{other:?}"),
                };
            if !goes_on {
                this.ended = now;
                under_way[number] = None;
                if next < count {
                    plan.add(now, next, Event::Begin);
                    next += 1;
                }
            }
        }
        played
    }
}

/// What is to come.
#[derive(Default)]
struct Plan {
    queue: Queue,
    events: Vec<Option<Event>>,
}

impl Plan {
    fn add(&mut self, at: u64, number: usize, event: Event) {
        self.queue
            .push(Reverse((at, self.events.len() as u64, number)));
        self.events.push(Some(event));
    }

    fn next(&mut self) -> Option<(u64, usize, Event)> {
        let Reverse((at, order, number)) = self.queue.pop()?;
        let event = self.events[usize::try_from(order).expect("small")].take();
        Some((at, number, event.expect("it happens once")))
    }
}
