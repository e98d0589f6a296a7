//! The two lines of a send rate for recorded histories: the plain lists, the calls, and twins with
//! mistakes.
//!
//! At one reading of the clock, in whole tokens: so many have been minted, and the places of the
//! first line count up to that. What is released behind the line is a number.

use core::time::Duration;
use std::sync::Mutex;

use fastrand::Rng;
use paceline::{ControlLaw, Outcome, Reservation, SendPermit, SendRate, Timestamp};

use crate::history::{Call, Sequential, Shared};

const SECOND: u64 = 1_000_000_000;

/// A rate: so many units a nanosecond, and so many units a token, so that all is in whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pace {
    pub(crate) per_nano: i128,
    pub(crate) token: i128,
    since: u64,
}

impl Pace {
    /// What four requests in half a second and a throttle leave: 0.7 × 0.8 × 8/s = 4.48/s, and a
    /// bucket of as many.
    pub(crate) const FOUR: Self = Self {
        per_nano: 112,
        token: 25_000_000_000,
        since: SECOND / 2,
    };

    /// Returns a limiter whose rate this is.
    pub(crate) fn limiter(self) -> SendRate {
        let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
        let record = |nanos, outcome| {
            let at = Timestamp::from_nanos(nanos);
            rate.record(at, SendPermit::sent_at(at), outcome);
        };
        if self == Self::FOUR {
            for nanos in [0, 0, 0, self.since] {
                record(nanos, Outcome::NotThrottled);
            }
        }
        record(self.since, Outcome::Throttled);
        rate
    }

    /// Returns the time at which `tenths` tenths of a token have been minted.
    pub(crate) fn time_of(self, tenths: u64) -> u64 {
        let nanos = i128::from(tenths) * self.token / self.per_nano / 10;
        self.since + u64::try_from(nanos).expect("a small number")
    }
}

/// What a call did.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Did {
    Take { went: bool },
    Reserve { id: u32 },
    Claim { id: u32, went: bool },
    GiveUp { id: u32 },
    TakeBehind { went: bool },
    ReserveBehind { id: u32 },
    ClaimBehind { id: u32, went: bool },
    GiveUpBehind { id: u32 },
}

impl Did {
    /// Whether the call can have an effect beside that of its one moment: it releases, gives back a
    /// surplus, or gives up a place.
    fn is_long(self) -> bool {
        !matches!(self, Self::Take { .. } | Self::Reserve { .. })
    }
}

/// A [`Did`] for the model: giving up a place of the first line in its two steps.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    Did(Did),
    MoveUp { id: u32 },
    PutBack { id: u32 },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    what: What,
    /// Another call was under way, and one of the two is long.
    free: bool,
    /// Another thread may release just before, or give a surplus back, or not.
    may_follow: bool,
    /// The places that others took behind the line meanwhile.
    newcomers: usize,
}

/// Returns the history in steps of the model.
pub(crate) fn steps(history: &[Call<Did>]) -> Vec<Call<Step>> {
    let others = |call: &Call<Did>| {
        let this = call.clone();
        history
            .iter()
            .filter(move |other| other.thread != this.thread && other.overlaps(&this))
    };
    let is_free =
        |call: &Call<Did>| others(call).any(|other| other.did.is_long() || call.did.is_long());
    let mut all = Vec::new();
    for call in history {
        let free = is_free(call);
        let before = history.iter().filter(|other| other.ended < call.began);
        let last = before.max_by_key(|other| other.ended);
        let new = |other: &&Call<Did>| matches!(other.did, Did::ReserveBehind { .. });
        let newcomers = others(call).filter(new).count();
        let whats = match call.did {
            Did::GiveUp { id } => vec![What::MoveUp { id }, What::PutBack { id }],
            did => vec![What::Did(did)],
        };
        all.extend(whats.into_iter().map(|what| Call {
            thread: call.thread,
            began: call.began,
            ended: call.ended,
            did: Step {
                what,
                free,
                may_follow: free || last.is_some_and(is_free),
                newcomers,
            },
        }));
    }
    all
}

/// The plain lists.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lists {
    minted: i64,
    /// The last place of the first line, and the waiters there with their places.
    last: i64,
    ahead: Vec<(u32, i64)>,
    /// The places that are given up, and the tokens of a surplus, which are not back yet.
    leaving: Vec<u32>,
    returning: i64,
    /// The waiters behind the line, in order, and the tokens that are released to them.
    behind: Vec<u32>,
    released: usize,
}

impl Lists {
    pub(crate) const fn new(minted: i64) -> Self {
        Self {
            minted,
            last: 0,
            ahead: Vec::new(),
            leaving: Vec::new(),
            returning: 0,
            behind: Vec::new(),
            released: 0,
        }
    }

    const fn is_there(&self) -> bool {
        self.last < self.minted
    }

    /// Releases a token that is there. Two threads may do so for one waiter.
    fn release(&self) -> Option<Self> {
        self.is_there().then(|| Self {
            last: self.last + 1,
            released: self.released + 1,
            ..self.clone()
        })
    }

    /// Gives a token back that was released too much: first all in line move up.
    fn begin_to_return(&self) -> Option<Self> {
        (self.released > self.behind.len()).then(|| {
            let mut next = self.clone();
            next.released -= 1;
            next.returning += 1;
            next.move_up_from(0);
            next
        })
    }

    /// Then it is in the bucket again.
    fn end_to_return(&self) -> Option<Self> {
        (self.returning > 0).then(|| Self {
            last: self.last - 1,
            returning: self.returning - 1,
            ..self.clone()
        })
    }

    /// Releases what is there to those that wait, and gives a surplus back, as one thread.
    fn look(&mut self) {
        while self.released < self.behind.len() {
            let Some(next) = self.release() else { break };
            *self = next;
        }
        while let Some(begun) = self.begin_to_return() {
            *self = begun.end_to_return().expect("it has begun");
        }
    }

    /// Whether the turn of a waiter behind the line has come.
    fn due_behind(&self, id: u32) -> Option<bool> {
        let index = self.behind.iter().position(|other| *other == id)?;
        Some(index < self.released)
    }

    fn leave_behind(&mut self, id: u32) {
        self.behind.retain(|other| *other != id);
    }

    /// Whether the turn of a waiter of the first line has come.
    fn due(&self, id: u32) -> Option<bool> {
        let found = self.ahead.iter().find(|(other, _)| *other == id)?;
        Some(found.1 <= self.minted)
    }

    fn leave(&mut self, id: u32) {
        self.ahead.retain(|(other, _)| *other != id);
    }

    /// Takes the last place of the first line. One whose token is not back yet is out of line
    /// already.
    fn stand(&mut self, id: u32) {
        self.last += 1;
        let gone = i64::try_from(self.leaving.len()).expect("a small number");
        self.ahead.push((id, self.last - gone - self.returning));
    }

    /// Gives the place up: those behind it move up.
    fn move_up(&mut self, id: u32) -> Option<()> {
        let index = self.ahead.iter().position(|(other, _)| *other == id)?;
        self.leave(id);
        self.move_up_from(index);
        Some(())
    }

    /// Moves the waiters from `index` on up. A turn that has come stays.
    fn move_up_from(&mut self, index: usize) {
        for (_, place) in self.ahead.iter_mut().skip(index) {
            if *place > self.minted {
                *place -= 1;
            }
        }
    }

    /// Returns the state after what was done, if it could be.
    fn did(&self, step: &Step) -> Option<Self> {
        let mut next = self.clone();
        // One thread alone looks when the limiter does.
        let look = |lists: &mut Self| {
            if !step.free {
                lists.look();
            }
        };
        // A refusal beside others may be of a state that none of the calls has left behind.
        let answers = |went: bool, can_go: bool| if went { can_go } else { step.free || !can_go };
        let holds = match step.what {
            What::MoveUp { id } => {
                next.leaving.push(id);
                next.move_up(id).is_some()
            }
            What::PutBack { id } => {
                next.leaving.retain(|other| *other != id);
                next.last -= 1;
                next.leaving.len() < self.leaving.len()
            }
            What::Did(Did::Take { went }) => {
                next.last += i64::from(went);
                answers(went, self.is_there())
            }
            What::Did(Did::Reserve { id }) => {
                next.stand(id);
                true
            }
            What::Did(Did::Claim { id, went }) => {
                let due = self.due(id)?;
                if went {
                    next.leave(id);
                    look(&mut next);
                }
                answers(went, due)
            }
            What::Did(Did::TakeBehind { went }) => {
                look(&mut next);
                let passes_none = next.released + step.newcomers >= next.behind.len();
                let can_go = next.is_there() && passes_none;
                next.last += i64::from(went);
                answers(went, can_go)
            }
            What::Did(Did::ReserveBehind { id }) => {
                look(&mut next);
                next.behind.push(id);
                look(&mut next);
                true
            }
            What::Did(Did::ClaimBehind { id, went }) => {
                look(&mut next);
                let due = next.due_behind(id)?;
                if went {
                    next.leave_behind(id);
                    next.released = next.released.saturating_sub(1);
                    look(&mut next);
                }
                answers(went, due)
            }
            What::Did(Did::GiveUpBehind { id }) => {
                next.due_behind(id)?;
                next.leave_behind(id);
                true
            }
            What::Did(Did::GiveUp { .. }) => false,
        };
        holds.then_some(next)
    }
}

impl Sequential for Lists {
    type Step = Step;

    fn after(&self, step: &Step) -> Option<Self> {
        if !step.free && self.returning > 0 {
            return None;
        }
        self.did(step)
    }

    fn meanwhile(&self, step: &Step) -> Vec<Self> {
        let next = [self.release(), self.begin_to_return(), self.end_to_return()];
        let next = next.into_iter().flatten();
        next.filter(|_| step.may_follow).collect()
    }
}

/// A limiter of both classes, or a twin of one.
pub(crate) trait Classes: Sync {
    type Place<'a>: Send
    where
        Self: 'a;

    fn take(&self, at: u64, behind: bool) -> bool;
    fn reserve(&self, at: u64, id: u32, behind: bool) -> Self::Place<'_>;
    fn claim(&self, place: &mut Self::Place<'_>, at: u64) -> bool;
    fn give_up(&self, place: Self::Place<'_>);
}

impl Classes for SendRate {
    type Place<'a> = Reservation<'a>;

    fn take(&self, at: u64, behind: bool) -> bool {
        let now = Timestamp::from_nanos(at);
        let taken: Result<_, Duration> = if behind {
            self.background().try_acquire(now)
        } else {
            self.try_acquire(now)
        };
        taken.is_ok()
    }

    fn reserve(&self, at: u64, _: u32, behind: bool) -> Reservation<'_> {
        let now = Timestamp::from_nanos(at);
        if behind {
            self.background().reserve(now)
        } else {
            self.reserve(now)
        }
    }

    fn claim(&self, place: &mut Reservation<'_>, at: u64) -> bool {
        place.claim(Timestamp::from_nanos(at)).is_ok()
    }

    fn give_up(&self, place: Reservation<'_>) {
        drop(place);
    }
}

/// What a twin does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    None,
    /// Background takes a token for which a place of the first line waits.
    PassesTheFirstLine,
    /// The last behind the line gets what is released.
    LastComeFirst,
    /// What was released to a place that is given up is lost.
    KeepsTheSurplus,
}

/// A twin: the plain lists under a lock.
pub(crate) struct Plain(Mutex<Lists>, Mistake);

impl Plain {
    pub(crate) const fn new(minted: i64, mistake: Mistake) -> Self {
        Self(Mutex::new(Lists::new(minted)), mistake)
    }
}

impl Classes for Plain {
    type Place<'a> = (u32, bool);

    fn take(&self, _: u64, behind: bool) -> bool {
        let mut lists = self.0.lock().expect("no thread panics");
        if behind {
            lists.look();
        }
        let went = lists.is_there() && (!behind || lists.released >= lists.behind.len());
        lists.last += i64::from(went);
        went
    }

    fn reserve(&self, _: u64, id: u32, behind: bool) -> (u32, bool) {
        let mut lists = self.0.lock().expect("no thread panics");
        if behind {
            lists.look();
            let last = lists.behind.len();
            let at = if self.1 == Mistake::LastComeFirst {
                0
            } else {
                last
            };
            lists.behind.insert(at, id);
            lists.look();
        } else {
            lists.stand(id);
        }
        (id, behind)
    }

    fn claim(&self, place: &mut (u32, bool), _: u64) -> bool {
        let mut lists = self.0.lock().expect("no thread panics");
        let (id, behind) = *place;
        if behind {
            lists.look();
        }
        if behind && self.1 == Mistake::PassesTheFirstLine && lists.released == 0 {
            lists.last += 1;
            lists.released += 1;
        }
        let due = if behind {
            lists.due_behind(id)
        } else {
            lists.due(id)
        };
        let went = due == Some(true);
        if went && behind {
            lists.leave_behind(id);
            lists.released -= 1;
        } else if went {
            lists.leave(id);
        }
        if went {
            lists.look();
        }
        went
    }

    fn give_up(&self, (id, behind): (u32, bool)) {
        let mut lists = self.0.lock().expect("no thread panics");
        if behind {
            let had = lists.due_behind(id) == Some(true);
            lists.leave_behind(id);
            if had && self.1 == Mistake::KeepsTheSurplus {
                lists.released -= 1;
            }
        } else if lists.move_up(id).is_some() {
            lists.last -= 1;
        }
    }
}

pub(crate) struct ClassesObject<L> {
    limiter: L,
    minted: i64,
    now: u64,
}

/// What a thread holds: places that it has not claimed, those that it has, and the next name.
pub(crate) struct Held<P> {
    open: Vec<(u32, bool, P)>,
    claimed: Vec<P>,
    name: u32,
}

impl<L> ClassesObject<L> {
    /// Some tokens are there, and fewer than a bucket holds.
    pub(crate) fn new(make: impl Fn(Pace, i64) -> L, seed: u64) -> Self {
        let minted = Rng::with_seed(seed).u64(0..4);
        let whole = i64::try_from(minted).expect("a small number");
        Self {
            limiter: make(Pace::FOUR, whole),
            minted: whole,
            now: Pace::FOUR.time_of(minted * 10 + 6),
        }
    }

    pub(crate) const fn model(&self) -> Lists {
        Lists::new(self.minted)
    }
}

impl<L: Classes> Shared for ClassesObject<L> {
    type Did = Did;
    type Hand<'a>
        = Held<L::Place<'a>>
    where
        Self: 'a;

    fn deal(&self, threads: usize, rng: &mut Rng) -> (Vec<Self::Hand<'_>>, Vec<Did>) {
        let mut did = Vec::new();
        let hands = (0..threads).zip((100..).step_by(100));
        let hands = hands.map(|(_, id)| {
            let behind = rng.bool();
            let place = self.limiter.reserve(self.now, id, behind);
            did.push(if behind {
                Did::ReserveBehind { id }
            } else {
                Did::Reserve { id }
            });
            Held {
                open: vec![(id, behind, place)],
                claimed: Vec::new(),
                name: id + 1,
            }
        });
        (hands.collect(), did)
    }

    fn call<'a>(&'a self, hand: &mut Self::Hand<'a>, rng: &mut Rng) -> Did {
        let at = self.now;
        let pick = rng.usize(..hand.open.len().max(1));
        match rng.u8(..9) {
            0 | 1 if !hand.open.is_empty() => {
                let (id, behind, place) = hand.open.swap_remove(pick);
                self.limiter.give_up(place);
                if behind {
                    Did::GiveUpBehind { id }
                } else {
                    Did::GiveUp { id }
                }
            }
            2..5 if !hand.open.is_empty() => {
                let (id, behind, mut place) = hand.open.swap_remove(pick);
                let went = self.limiter.claim(&mut place, at);
                if went {
                    hand.claimed.push(place);
                } else {
                    hand.open.push((id, behind, place));
                }
                if behind {
                    Did::ClaimBehind { id, went }
                } else {
                    Did::Claim { id, went }
                }
            }
            5 => Did::Take {
                went: self.limiter.take(at, false),
            },
            6 => Did::TakeBehind {
                went: self.limiter.take(at, true),
            },
            other => {
                let (id, behind) = (hand.name, other != 7);
                hand.name += 1;
                let place = self.limiter.reserve(at, id, behind);
                hand.open.push((id, behind, place));
                if behind {
                    Did::ReserveBehind { id }
                } else {
                    Did::Reserve { id }
                }
            }
        }
    }

    /// A look gives a surplus back, and then all that is left is taken.
    fn close(&self) -> Vec<Did> {
        let went = self.limiter.take(self.now, true);
        let mut did = vec![Did::TakeBehind { went }];
        while !matches!(did.last(), Some(Did::Take { went: false })) {
            let went = self.limiter.take(self.now, false);
            did.push(Did::Take { went });
        }
        did
    }
}
