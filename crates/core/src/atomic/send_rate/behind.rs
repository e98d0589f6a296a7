//! The second line, in which background waits. It stands behind the first line, not in it.
//!
//! A place in the first line is a claim on tokens to come, which no request can overtake. So
//! background has a second line, to which tokens are *released*. These are tokens of the first line
//! that are there, that no place waits for, and that background need not leave alone. A place
//! behind the line is due once enough tokens have been released for it and for all live places
//! before it. The first line has the same rule, with what time has minted in place of the count
//! released.
//!
//! Any thread may release. The thread takes tokens of the first line by the rule of a try, and then
//! adds as many to `released`. So `released` never exceeds what was taken, and never goes back. The
//! live places whose turn has come hold at most `released` tokens, by the argument of the first
//! line with `released` in place of `V`. Each of these tokens was taken once. Two threads that
//! release for one waiter take too much. The next look finds `released` ahead of the line, moves
//! the line on and gives the surplus back.
//!
//! *The trickle.* [`TRICKLE`] tokens may be promised to the foreground after background got its
//! last token, or began to wait. Then the first line gets a place for one token of background,
//! which is released when the place is due. If background has already got more than one token of
//! 21, the trickle comes only after [`LATEST`] tokens.
//!
//! A thread that stops between the take and `released` loses what it took. A thread that stops
//! between moving the line on and giving the surplus back loses the surplus. A thread that stops
//! between `mark` and `trickle` loses one token.
//!
//! Models: `classes::a_token_goes_to_one_of_two_classes`, `classes::one_token_is_released_once`,
//! `classes::a_due_trickle_is_released_once`, `classes::the_end_of_the_limit_lets_background_go`.
//! Model of any two steps of the tables below: `classes::two_steps_at_once_are_both_counted`.
//!
//! # States of the line
//!
//! With `i` for `issued`, `c` for the tokens given up in this line and `r` for `released`:
//!
//! | state | holds | next |
//! |---|---|---|
//! | empty | `i − c = r` | a place is taken |
//! | waits | `i − c > r` | a release, or a place given up |
//! | surplus | `i − c < r` | the line is moved on, and the tokens go back; or a place is taken |
//!
//! | operation | first line | `issued` | `released` | `unclaimed` | `granted` |
//! |---|---|---|---|---|---|
//! | take a place of `w` | | `+ w` | | | |
//! | release `n` | `issued + n`, before | | `+ n` | `+ n`, before `released` | |
//! | claim `w` | | | | `− w` | `+ w` |
//! | give up the last place | | `− w` | | | |
//! | give up another place | | | | | |
//! | give a surplus of `n` back | `n` written off, after | `+ n` | | `− n` | |
//!
//! A place that is given up and is not the last counts in `c`. The tokens released to it then go to
//! the places behind. If nothing is limited any more, a place whose turn has not come is given up
//! when it is claimed. Places are claimed in any order, and released tokens belong to the places
//! furthest ahead.
//!
//! # States of the trickle
//!
//! | `trickle` | means | becomes |
//! |---|---|---|
//! | [`NO_PLACE`] | no token of the trickle | a place, by the thread that moves `mark` |
//! | a place | a token of the first line | [`NO_PLACE`], by the thread that finds it due |

use alloc::boxed::Box;

use once_cell::race::OnceBox;

use super::permit::WeightError;
use super::table::WaiterSlot;
use super::waiters::Waiters;
use crate::atomic::sync::{AtomicU64, Ordering::Relaxed};
use crate::fixed::to_signed;
use crate::line::{LONGEST_QUEUE, Place, TOKEN};

/// After so many tokens for the foreground, background gets a token.
pub(super) const TRICKLE: u64 = 20;

/// After so many tokens the trickle comes at the latest, however far background is ahead of its
/// part.
pub(super) const LATEST: u64 = 60;
/// Background counts as ahead of its part by so many tokens at most.
const AHEAD: u64 = 64;
/// What the foreground is promised for one token of background, in the units of a place.
const PART: i64 = to_signed(TRICKLE.wrapping_mul(TOKEN));

/// The fraction bits of `pace`.
const PACE_BITS: u32 = 8;
const LEAST_PACE: u64 = 1 << PACE_BITS;
const MOST_PACE: u64 = (TRICKLE.wrapping_add(1)) << PACE_BITS;

/// The value of `trickle` without a place. A place with this very value counts as no place.
pub(super) const NO_PLACE: u64 = u64::MAX;

/// Where the line begins: just before the wrap of places and of counts, so that every test crosses
/// the wrap.
const BEGINNING: u64 = TOKEN.wrapping_neg();
/// A value of `paid` far below all that is promised at the beginning.
const NOTHING_PAID: u64 = BEGINNING.wrapping_sub(1 << 62);
const GIVEN_UP: u64 = 1_u64.wrapping_neg();

/// The words of the second line.
pub(super) struct Behind {
    /// The last token asked for.
    issued: AtomicU64,
    /// The last token released.
    released: AtomicU64,
    /// The tokens released that no request has claimed.
    unclaimed: AtomicU64,
    /// The tokens that requests have got, all together.
    granted: AtomicU64,
    /// The tokens promised to the foreground at the last release, or when the first waiter came.
    pub(super) mark: AtomicU64,
    /// The promises to the foreground for which background has had its part. Ahead of all promises
    /// if background got more than its part.
    paid: AtomicU64,
    /// The place of the trickle in the first line, or [`NO_PLACE`].
    pub(super) trickle: AtomicU64,
    /// A moving average of the tokens granted for each released token, including that token.
    pace: AtomicU64,
    pub(super) waiters: Waiters,
}

/// The second line, made by the first request that asks for it.
///
/// This is no `Lazy`. In models a `Lazy` has its value from the start, so models of the first line
/// would explore the second line too.
pub(super) struct MaybeBehind(OnceBox<Behind>);

impl MaybeBehind {
    pub(super) const fn new() -> Self {
        Self(OnceBox::new())
    }

    #[inline]
    pub(super) fn get(&self) -> Option<&Behind> {
        self.0.get()
    }

    pub(super) fn get_or_make(&self) -> &Behind {
        self.0.get_or_init(|| Box::new(Behind::new()))
    }
}

// Relaxed throughout. `issued` and `released` are chains of read-modify-writes, which are totally
// ordered, and publish nothing. `released` is raised after the tokens were taken from the first
// line, whose own swap decides that they were there. So `released` never exceeds what was taken, in
// whatever order other threads see the two words. A surplus and a new place race for one swap of
// `issued`. If the swap for the place is first, the surplus stays, and is released to the place. If
// the swap for the surplus is first, the place is taken behind the surplus. The walk that follows a
// release, and the stand of a waiter, have the fences (rule 6 of the waiters). The count of tokens
// given up is loaded before `issued`, as in the first line. The other words are hints and counts: a
// trickle that comes late or twice is one token of 21. Models:
// `classes::one_token_is_released_once`,
// `classes::a_place_given_up_beside_its_release_loses_nothing`, and for each count
// `classes::two_steps_at_once_are_both_counted`.
impl Behind {
    pub(super) fn new() -> Self {
        let issued = Place::from_bits(BEGINNING);
        Self {
            issued: AtomicU64::new(issued.to_bits()),
            released: AtomicU64::new(issued.less_tokens(GIVEN_UP).to_bits()),
            unclaimed: AtomicU64::new(0),
            granted: AtomicU64::new(0),
            mark: AtomicU64::new(0),
            paid: AtomicU64::new(NOTHING_PAID),
            trickle: AtomicU64::new(NO_PLACE),
            pace: AtomicU64::new(LEAST_PACE),
            waiters: Waiters::new(GIVEN_UP),
        }
    }

    /// Returns the tokens asked for and not released, in the units of a place; negative if too many
    /// were released.
    pub(super) fn waiting(&self) -> i64 {
        let given_up = self.waiters.total();
        let issued = Place::from_bits(self.issued.load(Relaxed));
        issued.less_tokens(given_up).since(self.released())
    }

    /// Returns the whole tokens that background waits for.
    pub(super) fn waiting_tokens(&self) -> u64 {
        u64::try_from(self.waiting()).unwrap_or(0) / TOKEN
    }

    /// Returns the tokens that background has got, all together.
    pub(super) fn granted(&self) -> u64 {
        self.granted.load(Relaxed)
    }

    /// Returns the tokens that were released and that no request has claimed.
    pub(super) fn unclaimed(&self) -> u64 {
        self.unclaimed.load(Relaxed)
    }

    /// Returns the tokens that were taken from the first line, all together.
    pub(super) fn taken(&self) -> u64 {
        self.granted().wrapping_add(self.unclaimed())
    }

    pub(super) fn released(&self) -> Place {
        Place::from_bits(self.released.load(Relaxed))
    }

    /// Returns how many tokens, in the units of a place, have to be released until `place` is due:
    /// 0 if it is due. The place does not wait for `over` of its tokens.
    pub(super) fn lacking(&self, place: Place, over: u64) -> u64 {
        let rank = place.less_tokens(self.waiters.before(place).wrapping_add(over));
        self.lacking_until(rank)
    }

    /// Returns the same as [`lacking`](Self::lacking), for the place with this `rank`.
    pub(super) fn lacking_until(&self, rank: Place) -> u64 {
        u64::try_from(rank.since(self.released())).unwrap_or(0)
    }

    /// Takes a place for `weight` tokens at the end of the line.
    pub(super) fn promise(&self, weight: u32) -> Result<Place, WeightError> {
        let units = u64::from(weight).wrapping_mul(TOKEN);
        let mut seen = self.issued.load(Relaxed);
        loop {
            let waiting = self.waiting();
            if waiting.saturating_add(to_signed(units)) > to_signed(LONGEST_QUEUE) {
                let waiting = self.waiting_tokens();
                return Err(WeightError::LineFull { weight, waiting });
            }
            let next = seen.wrapping_add(units);
            match self
                .issued
                .compare_exchange_weak(seen, next, Relaxed, Relaxed)
            {
                Ok(_) => return Ok(Place::from_bits(next)),
                Err(actual) => seen = actual,
            }
        }
    }

    /// Releases `tokens`, which have been taken from the first line.
    pub(super) fn add(&self, tokens: u64) {
        self.unclaimed.fetch_add(tokens, Relaxed);
        self.released.fetch_add(tokens.wrapping_mul(TOKEN), Relaxed);
    }

    /// Moves the line on by the whole tokens of the surplus, and returns how many they are. A loss
    /// means that a request has come, to which the surplus is released, or that the last request
    /// has gone. In the latter case the next look finds a larger surplus.
    pub(super) fn take_surplus(&self) -> u64 {
        let given_up = self.waiters.total();
        let issued = self.issued.load(Relaxed);
        let last = Place::from_bits(issued).less_tokens(given_up);
        let surplus = u64::try_from(self.released().since(last)).unwrap_or(0) / TOKEN;
        if surplus == 0 {
            return 0;
        }
        let next = issued.wrapping_add(surplus.wrapping_mul(TOKEN));
        let moved = self.issued.compare_exchange(issued, next, Relaxed, Relaxed);
        if moved.is_err() {
            return 0;
        }
        self.unclaimed.fetch_sub(surplus, Relaxed);
        surplus
    }

    /// Counts a request that has got `weight` tokens.
    pub(super) fn grant(&self, weight: u32) {
        self.granted.fetch_add(weight.into(), Relaxed);
    }

    /// Gives up `place`, which is for `weight` tokens. The tokens released to it pass to the places
    /// behind.
    pub(super) fn give_up(&self, place: Place, weight: u32, slot: Option<WaiterSlot>) {
        let before = place.less_tokens(weight.into());
        let taken_back =
            self.issued
                .compare_exchange(place.to_bits(), before.to_bits(), Relaxed, Relaxed);
        match taken_back {
            Ok(_) => self.waiters.leave(slot),
            Err(_) => self.waiters.give_up(slot, place, weight, self.released()),
        }
    }

    /// Begins to count the trickle at `promised`, with nothing owed from before.
    pub(super) fn begin(&self, promised: u64) {
        self.mark.store(promised, Relaxed);
        self.pay(promised, 0);
    }

    /// Forgets how far background is ahead of its part.
    pub(super) fn restart(&self, promised: u64) {
        self.mark.store(promised, Relaxed);
        self.paid.store(promised, Relaxed);
    }

    /// Counts `tokens` of background as its part of what is promised to the foreground.
    fn pay(&self, promised: u64, tokens: u64) {
        let most = to_signed(AHEAD).wrapping_mul(PART);
        let part = to_signed(tokens.min(AHEAD)).wrapping_mul(PART);
        let ahead = to_signed(self.paid.load(Relaxed).wrapping_sub(promised));
        let ahead = ahead
            .max(PART.wrapping_neg())
            .saturating_add(part)
            .min(most);
        self.paid
            .store(promised.wrapping_add_signed(ahead), Relaxed);
    }

    /// Returns `true` if the trickle is owed, with so much `promised` to the foreground. `mark` is
    /// what had been promised when background last got a token.
    pub(super) fn owes(&self, promised: u64, mark: u64) -> bool {
        let since = to_signed(promised.wrapping_sub(mark));
        let unpaid = to_signed(promised.wrapping_sub(self.paid.load(Relaxed)));
        let latest = to_signed(LATEST.wrapping_mul(TOKEN));
        since >= latest || since.min(unpaid) >= PART
    }

    /// Notes a release of `tokens`, with so much `promised` to the foreground. A release of the
    /// trickle counts as the highest pace.
    pub(super) fn note(&self, promised: u64, tokens: u64, by_trickle: bool) {
        let moved = promised.wrapping_sub(self.mark.load(Relaxed));
        self.mark.store(promised, Relaxed);
        self.pay(promised, tokens);
        let sample = if by_trickle {
            MOST_PACE
        } else {
            let foreground = (moved / (TOKEN >> PACE_BITS)).checked_div(tokens);
            LEAST_PACE.saturating_add(foreground.unwrap_or(0))
        };
        let last = self.pace.load(Relaxed);
        let next = last
            .wrapping_sub(last >> 3)
            .wrapping_add(sample.min(MOST_PACE) >> 3);
        self.pace.store(next.clamp(LEAST_PACE, MOST_PACE), Relaxed);
    }

    /// Returns `units` of a place times the average number of tokens granted for each released
    /// token.
    pub(super) fn paced(&self, units: u64) -> u64 {
        let pace = u128::from(self.pace.load(Relaxed));
        let paced = u128::from(units).wrapping_mul(pace) >> PACE_BITS;
        u64::try_from(paced).unwrap_or(u64::MAX)
    }

    /// Takes `tokens` out of what is released and unclaimed.
    pub(super) fn claim(&self, tokens: u64) {
        self.unclaimed.fetch_sub(tokens, Relaxed);
    }

    /// Undoes the claim of a request for `weight` tokens, which did not claim `over` of them.
    pub(super) fn unclaim(&self, weight: u32, over: u64) {
        let claimed = u64::from(weight).saturating_sub(over);
        self.unclaimed.fetch_add(claimed, Relaxed);
        self.granted.fetch_sub(weight.into(), Relaxed);
    }
}
