//! A limiter of which threads take leases, and a plain model of it.

use core::time::Duration;
use std::sync::Mutex;

use fastrand::Rng;
use paceline::{Outcome, SendPermit, SendRate, Timestamp, law::PacedSettings};

use crate::history::{Sequential, Shared};

/// When everything happens: no token is minted meanwhile.
const NOW: Timestamp = Timestamp::from_nanos(1_000_000_000);
/// What the bucket holds then.
pub(crate) const HELD: u32 = 60;
/// A lease is one token in eight of those that are there, and the one that is spent at once.
const LEASE: u32 = HELD / 8 + 1;

/// What leases are tested on.
pub(crate) trait Lends: Sync {
    /// Takes a token for `thread`.
    fn take(&self, thread: usize) -> bool;
    /// Gives back what is left of the lease of `thread`.
    fn hand_back(&self, thread: usize);
    /// Grants nothing from now on.
    fn pause(&self);
    /// Returns the tokens that are there, with those of leases.
    fn left(&self) -> u32;
}

impl Lends for SendRate {
    fn take(&self, _: usize) -> bool {
        self.try_acquire(NOW).is_ok()
    }
    fn hand_back(&self, _: usize) {
        drop(self.reserve(NOW));
    }
    fn pause(&self) {
        let hint = Outcome::ThrottledFor(Duration::from_secs(1));
        self.record(NOW, SendPermit::sent_at(NOW), hint);
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of a few tokens"
    )]
    fn left(&self) -> u32 {
        self.snapshot(NOW).available.round() as u32
    }
}

/// Returns a limiter at a million a second whose bucket is full.
pub(crate) fn limiter() -> SendRate {
    let settings = PacedSettings::fixed(1_000_000, Duration::from_secs(1)).expect("in range");
    let burst = Duration::from_micros(HELD.into());
    let settings = settings.to_builder().burst(burst).build();
    SendRate::paced(settings.expect("in range"), Timestamp::ZERO)
}

/// What a twin does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    None,
    /// A lease that is given back is spent all the same.
    SpentAfterwards,
    /// A lease outlives a pause.
    OutlivesAPause,
    /// What is left of a lease is not given back.
    Lost,
}

/// A twin: a count and a lease for each thread, under a lock.
pub(crate) struct Plain(Mutex<(u32, [u32; 4])>, Mistake);

impl Plain {
    pub(crate) const fn new(mistake: Mistake) -> Self {
        Self(Mutex::new((HELD, [0; 4])), mistake)
    }
}

impl Lends for Plain {
    fn take(&self, thread: usize) -> bool {
        let (left, leases) = &mut *self.0.lock().expect("no thread panics");
        if leases[thread] == 0 {
            let taken = (*left / 8 + 1).min(*left);
            *left -= taken;
            leases[thread] = taken;
        }
        let spent = leases[thread].checked_sub(1);
        leases[thread] = spent.unwrap_or(0);
        spent.is_some()
    }
    fn hand_back(&self, thread: usize) {
        let (left, leases) = &mut *self.0.lock().expect("no thread panics");
        if self.1 != Mistake::Lost {
            *left += leases[thread];
        }
        if self.1 != Mistake::SpentAfterwards {
            leases[thread] = 0;
        }
    }
    fn pause(&self) {
        let (left, leases) = &mut *self.0.lock().expect("no thread panics");
        *left = 0;
        if self.1 != Mistake::OutlivesAPause {
            *leases = [0; 4];
        }
    }
    fn left(&self) -> u32 {
        let (left, leases) = &*self.0.lock().expect("no thread panics");
        *left + leases.iter().sum::<u32>()
    }
}

/// One call and its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Did {
    Took(bool),
    GaveBack,
    Paused,
    Left(u32),
}

/// A limiter, and how many threads use it.
pub(crate) struct LeaseObject<L> {
    limiter: L,
    /// What of others a thread that is refused may not have found.
    lent: u32,
    pauses: bool,
}

impl<L> LeaseObject<L> {
    pub(crate) const fn new(limiter: L, threads: u32, seed: u64) -> Self {
        // And a place that another one has for a moment while it gives its lease back.
        let (lent, pauses) = ((threads - 1) * (LEASE + 1), seed % 4 == 0);
        Self {
            limiter,
            lent,
            pauses,
        }
    }

    pub(crate) const fn model(&self) -> Tokens {
        Tokens {
            left: HELD,
            lent: self.lent,
            is_paused: false,
        }
    }
}

impl<L: Lends> Shared for LeaseObject<L> {
    type Did = Did;
    type Hand<'a>
        = usize
    where
        L: 'a;

    fn deal(&self, threads: usize, _: &mut Rng) -> (Vec<usize>, Vec<Did>) {
        ((0..threads).collect(), Vec::new())
    }

    fn call(&self, thread: &mut usize, rng: &mut Rng) -> Did {
        match rng.u8(..24) {
            0..2 => {
                self.limiter.hand_back(*thread);
                Did::GaveBack
            }
            2 if self.pauses => {
                self.limiter.pause();
                Did::Paused
            }
            _ => Did::Took(self.limiter.take(*thread)),
        }
    }

    fn close(&self) -> Vec<Did> {
        vec![Did::Left(self.limiter.left())]
    }
}

/// The model: how many tokens have not been granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tokens {
    left: u32,
    lent: u32,
    is_paused: bool,
}

impl Sequential for Tokens {
    type Step = Did;

    fn after(&self, did: &Did) -> Option<Self> {
        let after = |left| Some(Self { left, ..*self });
        match *did {
            Did::Took(true) if self.is_paused => None,
            Did::Took(true) => after(self.left.checked_sub(1)?),
            Did::Took(false) => (self.is_paused || self.left <= self.lent).then_some(*self),
            Did::GaveBack => Some(*self),
            Did::Paused => Some(Self {
                is_paused: true,
                ..*self
            }),
            Did::Left(left) => (self.is_paused || self.left == left).then_some(*self),
        }
    }
}
