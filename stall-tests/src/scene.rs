//! The limiters that threads stop in, and the operations that they stop in.

use alloc::sync::Arc;
use core::mem;

use paceline_core::{ControlLaw, Outcome, Reservation, SendPermit, SendRate, Timestamp};

use crate::hook;

pub(crate) fn at(millis: u64) -> Timestamp {
    Timestamp::from_nanos(millis * 1_000_000)
}

pub(crate) fn record(rate: &SendRate, now: Timestamp, outcome: Outcome) {
    rate.record(now, SendPermit::sent_at(now), outcome);
}

/// How many places were taken at [`Stage::Queued`].
const PLACES: u32 = 13;

/// What a limiter has gone through when the thread stops in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It has measured 32/s, and was never throttled.
    Quiet,
    /// It was throttled at 0.6 s, and mints 22.4/s.
    Limited,
    /// Besides, thirteen places were taken, more than the first table has slots, and some given up.
    Queued,
}

impl Stage {
    pub(crate) const ALL: [Self; 3] = [Self::Quiet, Self::Limited, Self::Queued];

    pub(crate) fn limiter(self) -> Arc<SendRate> {
        let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
        for _ in 0..19 {
            record(&rate, at(0), Outcome::NotThrottled);
        }
        record(&rate, at(600), Outcome::NotThrottled);
        if self != Self::Quiet {
            record(&rate, at(600), Outcome::Throttled);
        }
        Arc::new(rate)
    }

    /// Takes the places in line, and returns those that others still hold: the first ones, which
    /// come due while threads stop, and the last.
    pub(crate) fn queue(self, rate: &SendRate) -> Vec<Reservation<'_>> {
        if self != Self::Queued {
            return Vec::new();
        }
        let mut places: Vec<_> = (0..PLACES).map(|_| rate.reserve(at(650))).collect();
        let last = places.pop().expect("there are places");
        let forgotten = places.split_off(4);
        for (number, place) in forgotten.into_iter().enumerate() {
            if number % 3 != 0 {
                mem::forget(place);
            }
        }
        places.push(last);
        places
    }
}

/// The operations, each at a different moment. A window ends at 1 s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    TryAcquire,
    Reserve,
    Claim,
    GiveUp,
    Success,
    SuccessThatTurns,
    Throttle,
    ThrottleThatTurns,
    Snapshot,
    Reset,
    Forget,
}

use Operation::{
    Claim, Forget, GiveUp, Reserve, Reset, Snapshot, Success, SuccessThatTurns, Throttle,
    ThrottleThatTurns, TryAcquire,
};

impl Operation {
    pub(crate) const ALL: [Self; 11] = [
        TryAcquire,
        Reserve,
        Claim,
        GiveUp,
        Success,
        SuccessThatTurns,
        Throttle,
        ThrottleThatTurns,
        Snapshot,
        Reset,
        Forget,
    ];

    /// Returns the most tokens that are lost if it never goes on.
    pub(crate) const fn holds(self) -> u32 {
        match self {
            TryAcquire | Reserve | Claim | GiveUp => 1,
            Success | SuccessThatTurns | Throttle | ThrottleThatTurns | Snapshot => 0,
            // All that were promised, and are written off.
            Reset | Forget => PLACES,
        }
    }

    /// Runs all of it on `rate`. What it takes is never given back.
    pub(crate) fn run(self, rate: &SendRate) {
        let mut held = self.prepared(rate);
        self.with(rate, &mut held);
        mem::forget(held);
    }

    /// Runs it through `run` on a place that was prepared before, and forgets the place.
    pub(crate) fn stopped(
        self,
        rate: &SendRate,
        run: impl FnOnce(&mut dyn FnMut()) -> bool,
    ) -> bool {
        let mut held = self.prepared(rate);
        let finished = run(&mut || self.with(rate, &mut held));
        mem::forget(held);
        finished
    }

    /// Runs it until step `step`. False if it finished before.
    pub(crate) fn stops_at(self, step: u64, rate: &SendRate) -> bool {
        !self.stopped(rate, |operation| {
            hook::stopped_at(step, operation).is_some()
        })
    }

    /// Takes the place that it is about, if it is about one.
    pub(crate) fn prepared(self, rate: &SendRate) -> Option<Reservation<'_>> {
        matches!(self, Claim | GiveUp).then(|| rate.reserve(at(700)))
    }

    fn with<'a>(self, rate: &'a SendRate, held: &mut Option<Reservation<'a>>) {
        match self {
            TryAcquire => {
                let _: Result<SendPermit, _> = rate.try_acquire(at(1_050));
            }
            Reserve => mem::forget(rate.reserve(at(1_050))),
            Claim => {
                let place = held.as_mut().expect("a place was prepared");
                let _: Result<SendPermit, _> = place.claim(at(1_050));
            }
            GiveUp => drop(held.take()),
            Success => record(rate, at(900), Outcome::NotThrottled),
            SuccessThatTurns => record(rate, at(1_050), Outcome::NotThrottled),
            Throttle => record(rate, at(900), Outcome::Throttled),
            ThrottleThatTurns => record(rate, at(1_050), Outcome::Throttled),
            Snapshot => {
                let _: paceline_core::SendRateSnapshot = rate.snapshot(at(1_050));
            }
            Reset => rate.reset(at(800)),
            Forget => rate.forget_throttles(at(900)),
        }
    }
}
