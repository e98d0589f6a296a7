//! What the models look at of the send rate's words: only under `--cfg loom`.

use super::SendRate;
use super::behind::Behind;
use super::gate;
use super::head::HeadWords;
#[cfg(feature = "std")]
use super::limits;
use super::waiters::Waiters;
use crate::atomic::modelled::stand_ins;
use crate::fixed::to_signed;
use crate::line::{Minted, Place, TOKEN};

stand_ins! {
    /// The time of the last change of a line.
    LastChange(HeadWords) {
        let new() = HeadWords::new(Minted::from_place(Place::from_bits(0)), 0);
        raise(now: u64) -> Option<u64>;
    }

    /// The word that says whether there is something to look at.
    Gate(gate::Gate) {
        let quiet_until(end: u64) = gate::Gate::new(end);
        engage();
        disturb();
    }

    /// What was given up in a line.
    GivenUp(Waiters) {
        let new() = Waiters::new(0);
        total() -> u64;
        write_off(tokens: u64);
    }

    /// The counts of the second line.
    SecondLine(Behind) {
        let new() = Behind::new();
        add(tokens: u64);
        take_surplus() -> u64;
        claim(tokens: u64);
        unclaim(weight: u32, over: u64);
        grant(weight: u32);
    }
}

#[cfg(feature = "std")]
stand_ins! {
    /// How many have been let go of a burst.
    Burst(limits::Burst) {
        let of(gone: u64) = limits::Burst::of(gone);
        is_one_of(most: u64) -> bool;
    }
}

impl SendRate {
    /// Returns the word of the law's cycle.
    #[must_use]
    pub fn cycle(&self) -> u128 {
        self.meter.counted().cycle
    }
}

impl Gate {
    /// Returns whether requests look, whether the word is quiet at `now`, and its version.
    #[must_use]
    pub fn read(&self, now: u64) -> (bool, bool, u64) {
        let word = self.0.load();
        (word.is_engaged(), word.is_quiet(now), word.version())
    }
}

impl GivenUp {
    /// Returns how many tokens were given up before `place`.
    #[must_use]
    pub fn before(&self, place: u64) -> u64 {
        self.0.before(Place::from_bits(place))
    }
}

impl SecondLine {
    /// Takes the last place for `weight` tokens.
    #[must_use]
    pub fn promise(&self, weight: u32) -> Option<u64> {
        self.0.promise(weight).ok().map(Place::to_bits)
    }

    /// Gives up a place that was taken for `weight` tokens.
    pub fn give_up(&self, place: u64, weight: u32) {
        self.0.give_up(Place::from_bits(place), weight, None);
    }

    /// Returns the tokens that are waited for, those released that no request has claimed, and those
    /// granted.
    #[must_use]
    pub fn counts(&self) -> [i64; 3] {
        const ONE: i64 = to_signed(TOKEN);
        let [unclaimed, granted] = [self.0.unclaimed(), self.0.granted()].map(to_signed);
        [self.0.waiting().wrapping_div(ONE), unclaimed, granted]
    }
}
