//! A line under a lock, with mistakes made on purpose.

use core::time::Duration;
use std::sync::Mutex;

use crate::history::line::{Limiter, List, Pace};

/// What a twin does wrong when a place is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    None,
    /// A token is minted for it: those ahead move up as well.
    AllMoveUp,
    /// Nothing: a token is lost, and those behind wait for it.
    Hole,
    /// The last in line takes it over.
    LastJumpsIn,
}

/// A twin: the plain list under a lock.
pub(crate) struct Plain(Mutex<List>, Mistake);

impl Plain {
    pub(crate) const fn new(pace: Pace, mistake: Mistake) -> Self {
        Self(Mutex::new(List::new(pace)), mistake)
    }

    fn with<R>(&self, work: impl FnOnce(&mut List) -> R) -> R {
        work(&mut self.0.lock().expect("no thread panics"))
    }
}

fn wait_for(pace: Pace, target: i128, at: u64) -> Option<Duration> {
    let missing = target - pace.minted(at);
    let nanos = (missing + pace.per_nano - 1) / pace.per_nano;
    (missing > 0).then(|| Duration::from_nanos(u64::try_from(nanos).expect("a short wait")))
}

impl Limiter for Plain {
    type Place<'a> = u32;

    fn take(&self, at: u64) -> Option<Duration> {
        self.with(|list| {
            let next = list.next(at);
            let wait = wait_for(list.pace, next, at);
            if wait.is_none() {
                list.last = next;
            }
            wait
        })
    }
    fn reserve(&self, at: u64, id: u32) -> u32 {
        self.with(|list| {
            list.last = list.next(at);
            list.waiting.push((id, list.last));
        });
        id
    }
    fn claim(&self, id: &mut u32, at: u64) -> Option<Duration> {
        self.with(|list| wait_for(list.pace, list.place(*id).expect("it waits"), at))
    }
    fn give_up(&self, id: u32) {
        let mistake = self.1;
        self.with(|list| {
            let left = list.place(id).expect("it waits");
            match mistake {
                Mistake::None => list.move_up(id).expect("it waits"),
                Mistake::Hole => return,
                Mistake::AllMoveUp => {
                    for (_, place) in &mut list.waiting {
                        *place -= list.pace.token;
                    }
                }
                Mistake::LastJumpsIn => {
                    if let Some((_, place)) = list.waiting.last_mut() {
                        *place = left;
                    }
                }
            }
            list.last -= list.pace.token;
        });
    }
}
