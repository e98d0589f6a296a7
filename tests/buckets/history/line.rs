//! The line of a send rate for recorded histories: the plain list, the calls, and twins with
//! mistakes.

use core::time::Duration;

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
    /// The floor: a token in two seconds, a bucket of one.
    const FLOOR: Self = Self {
        per_nano: 1,
        token: 2_000_000_000,
        since: 0,
    };
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

    pub(crate) fn minted(self, at: u64) -> i128 {
        self.per_nano * i128::from(at - self.since)
    }

    fn capacity(self) -> i128 {
        self.token.max(self.per_nano * i128::from(SECOND))
    }

    /// Returns the time at which `tenths` tenths of a token have been minted.
    pub(crate) fn time_of(self, tenths: u64) -> u64 {
        let nanos = i128::from(tenths) * self.token / self.per_nano / 10;
        self.since + u64::try_from(nanos).expect("a small number")
    }

    /// Whether `wait` is how long it takes at `at` until `target` is minted.
    ///
    /// Places are kept to 2⁻²⁴ of a token, so that much may be missing, and waits are whole
    /// nanoseconds.
    fn is_wait(self, at: u64, target: i128, wait: Duration) -> bool {
        let missing = target - self.minted(at);
        let waited = self.per_nano * i128::try_from(wait.as_nanos()).unwrap_or(i128::MAX / 200);
        missing > 0 && (waited - missing).abs() <= (self.token >> 24) + 2 * self.per_nano
    }
}

/// What a call did, as the thread that made it saw it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Did {
    Take {
        at: u64,
        wait: Option<Duration>,
    },
    Reserve {
        at: u64,
        id: u32,
    },
    Claim {
        at: u64,
        id: u32,
        wait: Option<Duration>,
    },
    GiveUp {
        id: u32,
    },
}

/// A [`Did`] for the model: with how many places may have been given up unseen, and giving up in
/// its two steps.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Seen { did: Did, unseen: u32 },
    MoveUp { id: u32 },
    PutBack { id: u32 },
}

/// Returns the history in steps of the model.
pub(crate) fn steps(history: &[Call<Did>]) -> Vec<Call<Step>> {
    let gives_up = |call: &&Call<Did>| matches!(call.did, Did::GiveUp { .. });
    let left: Vec<_> = history.iter().filter(gives_up).cloned().collect();
    let of = |call: &Call<Did>, did| Call {
        thread: call.thread,
        began: call.began,
        ended: call.ended,
        did,
    };
    history
        .iter()
        .flat_map(|call| match call.did {
            Did::GiveUp { id } => vec![
                of(call, Step::MoveUp { id }),
                of(call, Step::PutBack { id }),
            ],
            did => {
                let overlapping = left.iter().filter(|other| other.overlaps(call));
                let unseen = u32::try_from(overlapping.count()).expect("a small number");
                vec![of(call, Step::Seen { did, unseen })]
            }
        })
        .collect()
}

/// The plain line: how far it reaches, and who stands where.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct List {
    pub(crate) pace: Pace,
    pub(crate) last: i128,
    /// Who waits, and for how much to be minted; in order.
    pub(crate) waiting: Vec<(u32, i128)>,
    /// Who has given up, but whose token is not back yet.
    leaving: Vec<u32>,
}

impl List {
    pub(crate) const fn new(pace: Pace) -> Self {
        Self {
            pace,
            last: 0,
            waiting: Vec::new(),
            leaving: Vec::new(),
        }
    }

    /// Returns the next place: no further back than what the bucket holds.
    pub(crate) fn next(&self, at: u64) -> i128 {
        let oldest = self.pace.minted(at) - self.pace.capacity();
        self.last.max(oldest) + self.pace.token
    }

    pub(crate) fn place(&self, id: u32) -> Option<i128> {
        let found = self.waiting.iter().find(|(other, _)| *other == id);
        found.map(|(_, place)| *place)
    }

    fn leave(&mut self, id: u32) {
        self.waiting.retain(|(other, _)| *other != id);
    }

    /// Whether a caller at `at` may be told to wait for `wait`, if it sees the line up to `unseen`
    /// places too long.
    fn refuses(
        &self,
        at: u64,
        unseen: u32,
        wait: Duration,
        target: impl Fn(&Self) -> i128,
    ) -> bool {
        (0..=i128::from(unseen)).any(|late| {
            let mut seen = self.clone();
            seen.last += late * self.pace.token;
            for (_, place) in &mut seen.waiting {
                *place += late * self.pace.token;
            }
            self.pace.is_wait(at, target(&seen), wait)
        })
    }

    /// Moves those behind `id` up.
    pub(crate) fn move_up(&mut self, id: u32) -> Option<()> {
        let left = self.place(id)?;
        self.leave(id);
        let behind = self.waiting.iter_mut().filter(|(_, place)| *place > left);
        behind.for_each(|(_, place)| *place -= self.pace.token);
        Some(())
    }
}

impl Sequential for List {
    type Step = Step;

    fn after(&self, step: &Step) -> Option<Self> {
        let mut next = self.clone();
        let minted = |at| self.pace.minted(at);
        let holds = match *step {
            Step::MoveUp { id } => {
                next.leaving.push(id);
                next.move_up(id).is_some()
            }
            Step::PutBack { id } => {
                next.leaving.retain(|other| *other != id);
                next.last -= self.pace.token;
                next.leaving.len() < self.leaving.len()
            }
            Step::Seen { did, unseen } => match did {
                Did::Take { at, wait: None } => {
                    next.last = self.next(at);
                    next.last <= minted(at)
                }
                Did::Take {
                    at,
                    wait: Some(wait),
                } => self.refuses(at, unseen, wait, |seen| seen.next(at)),
                Did::Reserve { at, id } => {
                    next.last = self.next(at);
                    // A place whose token is not back yet is out of line already.
                    let gone = i128::try_from(self.leaving.len()).expect("a small number");
                    next.waiting.push((id, next.last - gone * self.pace.token));
                    true
                }
                Did::Claim { at, id, wait } => {
                    let place = self.place(id)?;
                    match wait {
                        None => {
                            next.leave(id);
                            place <= minted(at)
                        }
                        Some(wait) => {
                            self.refuses(at, unseen, wait, |seen| seen.place(id).unwrap_or(place))
                        }
                    }
                }
                Did::GiveUp { .. } => false,
            },
        };
        holds.then_some(next)
    }
}

/// A limiter, or a twin of one.
pub(crate) trait Limiter: Sync {
    type Place<'a>: Send
    where
        Self: 'a;

    fn take(&self, at: u64) -> Option<Duration>;
    fn reserve(&self, at: u64, id: u32) -> Self::Place<'_>;
    fn claim(&self, place: &mut Self::Place<'_>, at: u64) -> Option<Duration>;
    fn give_up(&self, place: Self::Place<'_>);
}

impl Limiter for SendRate {
    type Place<'a> = Reservation<'a>;

    fn take(&self, at: u64) -> Option<Duration> {
        self.try_acquire(Timestamp::from_nanos(at)).err()
    }
    fn reserve(&self, at: u64, _: u32) -> Reservation<'_> {
        self.reserve(Timestamp::from_nanos(at))
    }
    fn claim(&self, place: &mut Reservation<'_>, at: u64) -> Option<Duration> {
        place.claim(Timestamp::from_nanos(at)).err()
    }
    fn give_up(&self, place: Reservation<'_>) {
        drop(place);
    }
}

pub(crate) struct LineObject<L> {
    limiter: L,
    pace: Pace,
    /// When places were taken before the threads began, and when the threads call.
    earlier: u64,
    now: u64,
}

/// What a thread holds: places that it has not claimed, by name, those that it has, and the next
/// name.
pub(crate) struct Held<P> {
    open: Vec<(u32, P)>,
    claimed: Vec<P>,
    name: u32,
}

impl<L> LineObject<L> {
    pub(crate) fn new(make: impl Fn(Pace) -> L, seed: u64) -> Self {
        let pace = if seed % 2 == 0 {
            Pace::FLOOR
        } else {
            Pace::FOUR
        };
        let mut rng = Rng::with_seed(seed);
        let earlier = rng.u64(0..4);
        let later = earlier + rng.u64(0..7);
        Self {
            limiter: make(pace),
            pace,
            // Tenths, so that nothing comes due at the very moment of a call, where rounding
            // decides.
            earlier: pace.time_of(earlier * 10 + 2),
            now: pace.time_of(later * 10 + 6),
        }
    }

    pub(crate) fn model(&self) -> List {
        List::new(self.pace)
    }
}

impl<L: Limiter> Shared for LineObject<L> {
    type Did = Did;
    type Hand<'a>
        = Held<L::Place<'a>>
    where
        Self: 'a;

    fn deal(&self, threads: usize, rng: &mut Rng) -> (Vec<Self::Hand<'_>>, Vec<Did>) {
        let at = self.earlier;
        let mut did = Vec::new();
        let hands = (0..threads).zip((100..).step_by(100));
        let hands = hands.map(|(_, name)| {
            let ids = name..name + rng.u32(..3);
            did.extend(ids.clone().map(|id| Did::Reserve { at, id }));
            Held {
                name: ids.end,
                open: ids.map(|id| (id, self.limiter.reserve(at, id))).collect(),
                claimed: Vec::new(),
            }
        });
        (hands.collect(), did)
    }

    fn call<'a>(&'a self, hand: &mut Self::Hand<'a>, rng: &mut Rng) -> Did {
        let at = self.now;
        let pick = rng.usize(..hand.open.len().max(1));
        match rng.u8(..8) {
            0..3 if !hand.open.is_empty() => {
                let (id, place) = hand.open.swap_remove(pick);
                self.limiter.give_up(place);
                Did::GiveUp { id }
            }
            3..5 if !hand.open.is_empty() => {
                let (id, mut place) = hand.open.swap_remove(pick);
                let wait = self.limiter.claim(&mut place, at);
                if wait.is_none() {
                    hand.claimed.push(place);
                } else {
                    hand.open.push((id, place));
                }
                Did::Claim { at, id, wait }
            }
            5 => Did::Take {
                at,
                wait: self.limiter.take(at),
            },
            _ => {
                let id = hand.name;
                hand.name += 1;
                hand.open.push((id, self.limiter.reserve(at, id)));
                Did::Reserve { at, id }
            }
        }
    }

    fn close(&self) -> Vec<Did> {
        let at = self.now;
        let mut did = Vec::new();
        while !matches!(did.last(), Some(Did::Take { wait: Some(_), .. })) {
            let wait = self.limiter.take(at);
            did.push(Did::Take { at, wait });
        }
        did
    }
}
