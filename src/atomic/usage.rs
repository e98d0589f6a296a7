//! Who uses a thing that is dropped when nobody does.

use super::sync::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// A count of users that decides, in one word, whether a thing is used again or retired for good.
///
/// Bits 0 to 61 count the users. Bit 62 is set by whoever enters, and cleared by whoever looks: with it a look notices
/// somebody who has come and gone. Bit 63 is set once, when the thing is retired; then the rest means nothing.
///
/// At most one thread may be between [`look`](Self::look) and [`retire`](Self::retire).
#[derive(Debug)]
#[doc(hidden)]
pub struct Usage(AtomicU64);

const RETIRED: u64 = 1 << 63;
const TOUCHED: u64 = 1 << 62;
const USERS: u64 = TOUCHED.wrapping_sub(1);

impl Usage {
    /// Creates the usage of a thing that has one user, who made it.
    #[must_use]
    pub fn entered() -> Self {
        Self(AtomicU64::new(1))
    }

    /// Begins to use the thing, or returns false if it has been retired.
    #[must_use]
    pub fn enter(&self) -> bool {
        // Relaxed, here and below: read-modify-writes of one word are totally ordered at any ordering, so that either
        // this comes before a retirement, which then fails, or after it. The thing itself was published by the map.
        // Models: `usage::what_is_used_is_never_retired`, `usage::whoever_has_been_there_is_noticed`.
        let before = self.0.fetch_add(1, Relaxed);
        if before & TOUCHED == 0 {
            // Nobody clears it before this user leaves.
            self.0.fetch_or(TOUCHED, Relaxed);
        }
        before & RETIRED == 0
    }

    /// Ends a use.
    pub fn leave(&self) {
        // Release, with the acquire of `look`: what a user did to the thing is seen by who decides whether to retire it.
        // Model: `usage::what_a_user_did_is_seen_before_it_is_retired`.
        self.0.fetch_sub(1, Release);
    }

    /// Looks whether nobody uses the thing: `None` if somebody does or it is retired, else whether somebody has used it
    /// since the last look.
    ///
    /// From then on the thing's state can be read, and [`retire`](Self::retire) fails if it may have changed.
    #[must_use]
    pub fn look(&self) -> Option<bool> {
        // Acquire: see `leave`; in both places, as somebody may have come and gone between them.
        // Models: those of `leave` and `enter`, and `usage::what_its_maker_did_is_seen_too`.
        let seen = self.0.load(Acquire);
        if seen & !TOUCHED != 0 {
            return None;
        }
        if seen == 0 {
            return Some(false);
        }
        let cleared = self.0.compare_exchange(seen, 0, Acquire, Relaxed).is_ok();
        cleared.then_some(true)
    }

    /// Retires the thing for good, or returns false if somebody has entered since the look.
    #[must_use]
    pub fn retire(&self) -> bool {
        // Relaxed: what there is to see was seen by `look`.
        self.0
            .compare_exchange(0, RETIRED, Relaxed, Relaxed)
            .is_ok()
    }

    /// Retires the thing whatever has been done to it, unless it is in use or retired. Anyone may, at any time.
    #[must_use]
    pub fn retire_unlooked(&self) -> bool {
        let seen = self.0.load(Relaxed);
        seen & !TOUCHED == 0
            && self
                .0
                .compare_exchange(seen, RETIRED, Relaxed, Relaxed)
                .is_ok()
    }

    /// Whether it has been retired. Once it has, for ever.
    #[must_use]
    pub fn is_retired(&self) -> bool {
        // Relaxed: the bit is all there is to know.
        self.0.load(Relaxed) & RETIRED != 0
    }

    /// Whether it is in use at the moment.
    #[must_use]
    pub fn is_used(&self) -> bool {
        let seen = self.0.load(Relaxed);
        seen & RETIRED == 0 && seen & USERS != 0
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_is_not_retired_and_what_is_retired_is_not_used() {
        let usage = Usage::entered();
        assert!(usage.is_used());
        assert_eq!(usage.look(), None);
        assert!(!usage.retire() && !usage.retire_unlooked());
        assert!(usage.enter());
        usage.leave();
        assert!(usage.is_used(), "one of two has left");
        usage.leave();
        assert!(!usage.is_used());
        assert_eq!(usage.look(), Some(true), "somebody had entered");
        assert_eq!(usage.look(), Some(false), "nobody since");
        assert!(usage.retire());
        assert!(usage.is_retired() && !usage.is_used());
        assert!(!usage.enter() && !usage.enter());
        assert!(usage.is_retired() && !usage.is_used());
        assert_eq!(usage.look(), None);
        assert!(!usage.retire() && !usage.retire_unlooked());
    }

    #[test]
    fn who_comes_and_goes_between_the_look_and_the_retirement_prevents_it() {
        let usage = Usage::entered();
        usage.leave();
        assert_eq!(usage.look(), Some(false), "its maker does not count");
        assert!(usage.enter());
        usage.leave();
        assert!(!usage.retire());
        assert!(usage.retire_unlooked(), "whatever was done to it");
    }
}
