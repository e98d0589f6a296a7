//! The state of a law: its last decision, and since when that holds.

use super::Decision;
use crate::bits::{Field, TIME_BITS};
use crate::fixed::Rate;

/// What a law remembers of its last decision, in one word. Low bits first:
///
/// | bits | field |
/// |---|---|
/// | 62 | since when the law has been in the state, ns after the limiter's start; later than now during a pause |
/// | 49 | what the law remembers |
/// | 1 | whether the law has ended: the limiter limits nothing until the next throttle |
/// | 16 | version: 0 before the first throttle, then counted up; wraps to 2, so that its lowest bit goes on |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State(u128);

impl State {
    const SINCE: Field = Field::lowest(TIME_BITS);
    const MEMORY: Field = Self::SINCE.above(Rate::BITS);
    const ENDED: Field = Self::MEMORY.above(1);
    const VERSION: Field = Self::ENDED.above(16);

    pub(crate) const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    pub(crate) const fn to_bits(self) -> u128 {
        self.0
    }

    /// The state before the first throttle.
    pub(crate) const NONE: Self = Self(0);

    /// Returns the next state, with `memory`. Its time never goes back.
    pub(crate) fn next(self, now: u64, memory: u64) -> Self {
        let version = match Self::VERSION.next(self.0) {
            0 => 2,
            version => version,
        };
        let since = self.since().max(now);
        Self(Self::SINCE.put(since) | Self::MEMORY.put(memory) | Self::VERSION.put(version))
    }

    /// Returns the next state, by the law's decision.
    pub(crate) fn decided(self, decision: Decision) -> Self {
        match decision {
            Decision::Limit { since, memory, .. } => self.next(since, memory),
            Decision::End => self.ended(),
        }
    }

    /// Returns the next state, in which nothing is limited.
    pub(crate) fn ended(self) -> Self {
        Self(self.next(0, self.memory()).0 | Self::ENDED.put(1))
    }

    /// Returns the state after the law has begun again at `now`, even if `now` is earlier than its
    /// time.
    pub(crate) fn begun_anew(self, now: u64, memory: u64) -> Self {
        self.next(now, memory).brought_back(now)
    }

    /// Returns a state in which nothing is limited and nothing is remembered.
    pub(crate) fn forgotten(self, now: u64) -> Self {
        Self(self.begun_anew(now, 0).0 | Self::ENDED.put(1))
    }

    /// Returns the same state with another memory.
    pub(crate) const fn with_memory(self, memory: u64) -> Self {
        Self((self.0 & !Self::MEMORY.put(u64::MAX)) | Self::MEMORY.put(memory))
    }

    /// Returns the same state with another time.
    pub(crate) const fn brought_back(self, now: u64) -> Self {
        Self((self.0 & !Self::SINCE.put(u64::MAX)) | Self::SINCE.put(now))
    }

    /// Returns `true` if the limiter limits: the law has decided to, and has not ended since.
    pub(crate) const fn is_engaged(self) -> bool {
        self.version() != 0 && Self::ENDED.get(self.0) == 0
    }

    /// Returns since when the law has been in this state. During a pause that time is later than
    /// now.
    pub(crate) const fn since(self) -> u64 {
        Self::SINCE.get(self.0)
    }

    /// Returns `true` if this state, entered after `last` at `now`, belongs to the same cut. Its
    /// time is then that of `last`, or has been moved on to a time before `now`.
    pub(crate) const fn is_of_same_cut(self, last: Self, now: u64) -> bool {
        self.since() == last.since() || self.since() < now
    }

    /// Returns what the law remembers; zero before the first throttle.
    pub(crate) const fn memory(self) -> u64 {
        Self::MEMORY.get(self.0)
    }

    pub(crate) const fn version(self) -> u64 {
        Self::VERSION.get(self.0)
    }
}

const _: () = assert!(State::VERSION.is_last(), "the fields fill the word");

/// What is counted after the first throttle, in one word. The low 112 bits are the law's counts;
/// the rest is the version of the state that the counts may correct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Draining(u128);

impl Draining {
    const VERSION_SHIFT: u32 = 112;

    /// Nothing is counted.
    pub(crate) const NONE: Self = Self(0);

    pub(crate) const fn new(version: u64, counts: u128) -> Self {
        Self(((version as u128) << Self::VERSION_SHIFT) | counts)
    }

    pub(crate) const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    pub(crate) const fn to_bits(self) -> u128 {
        self.0
    }

    const fn version(self) -> u64 {
        (self.0 >> Self::VERSION_SHIFT) as u64
    }

    /// Returns the counts, if they belong to the state of `version`.
    pub(crate) const fn of(self, version: u64) -> Option<u128> {
        if self.0 != 0 && self.version() == version {
            Some(self.0 & ((1 << Self::VERSION_SHIFT) - 1))
        } else {
            None
        }
    }

    /// Returns `true` if the counts belong to a state before the last one, which has `version`.
    /// Such counts must be dropped before their version comes back.
    pub(crate) const fn is_past(self, version: u64) -> bool {
        let age = version.wrapping_sub(self.version()) & 0xffff;
        self.0 != 0 && age != 0 && age < 1 << 15
    }
}

#[cfg(test)]
mod tests {
    use super::{Draining, State};

    #[test]
    fn counts_are_past_behind_their_version_and_not_before() {
        let of_seven = Draining::new(7, 9);
        assert_eq!((of_seven.of(7), of_seven.of(8)), (Some(9), None));
        for (version, past) in [
            (6, false),
            (7, false),
            (8, true),
            (2, false),
            (0x8006, true),
            (0x8007, false),
        ] {
            assert_eq!(of_seven.is_past(version), past, "{version}");
        }
        // Versions wrap.
        assert!(Draining::new(0xffff, 9).is_past(2));
        assert!(!Draining::NONE.is_past(2) && Draining::NONE.of(0).is_none());
    }

    #[test]
    fn a_state_that_ends_remembers_a_forgotten_one_does_not() {
        let shown = |state: State| (state.is_engaged(), state.since(), state.memory());
        let state = State::NONE.next(9, 5);
        assert_eq!(shown(state), (true, 9, 5));
        assert_eq!(shown(state.ended()), (false, 9, 5));
        assert_eq!(shown(state.forgotten(3)), (false, 3, 0));
        assert_eq!(state.ended().version(), 2);
        assert_eq!(state.forgotten(3).version(), 2);
    }
}
