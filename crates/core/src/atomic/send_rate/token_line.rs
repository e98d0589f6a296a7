//! The line of tokens: which token is promised to whom, and when it is minted.
//!
//! The line knows no law, no class and no report. `head` says when a token is minted, and `issued`
//! which token was promised last. `waiters` has the waiters, and the tokens given up. The owner of
//! the line sets the rate.
//!
//! # States
//!
//! With `V` for the tokens minted by now, `c` for the tokens given up, `b` for the bucket's
//! capacity:
//!
//! | state | holds | a try | the next place |
//! |---|---|---|---|
//! | full | `issued − c ≤ V − b` | takes a token, the rest is discarded | is due |
//! | there are tokens | `V − b < issued − c ≤ V − 1` | takes one | is due |
//! | dry | `V − 1 < issued − c ≤ V` | waits | waits less than one token |
//! | ahead | `issued − c > V` | waits | waits behind others |
//!
//! | operation | `issued` | `c` | `head` |
//! |---|---|---|---|
//! | take a token | `+ 1`, from `V − b` if that is more | | |
//! | promise `w` | `+ w`, from `V − b` if that is more | | |
//! | take the last back | `− w`, unless there is one behind it | | |
//! | give back `w` | | `+ w`, before every place | |
//! | give up a place of `w` | as taken back, if it is the last | else `+ w` behind it | |
//! | change the rate | from `V − b`, before `head` | | through the same point |
//!
//! Every other word here is a hint or a count.

use core::convert::Infallible;
use core::ops::Deref;

use super::gate::Gate;
use super::head::HeadWords;
use super::hint::Hint;
use super::table::WaiterSlot;
use super::waiters::{Agreed, Waiters};
use crate::atomic::sync::{AtomicU64, Ordering::Relaxed};
use crate::fixed::Rate;
use crate::line::{FINER as PLACE_SHIFT, Head, Level, Line, Minted, Place, SKEW, TOKEN, Take};

/// Where the line begins: one and a half tokens before the wrap of places and of counts, so that
/// every test crosses the wrap.
pub(super) const BEGINNING: Minted = Minted::from_bits((3_u128 << 63).wrapping_neg());
/// The count of tokens given up at the beginning.
pub(super) const GIVEN_UP: u64 = 1_u64.wrapping_neg();

/// What has been promised, and a hint for callers who are refused.
pub(super) struct Promised<B> {
    /// The last token promised.
    issued: AtomicU64,
    pub(super) hint: Hint,
    /// The tokens of all places that are neither claimed nor given up.
    open: AtomicU64,
    agreed: Agreed,
    /// The least capacity of the bucket, in the units of a place: a token, or the heaviest try
    /// under declared limits.
    heaviest: AtomicU64,
    /// Words of the owner, for which this cache line has room.
    pub(super) beside: B,
}

impl<B> Promised<B> {
    pub(super) fn new(beside: B) -> Self {
        let issued = BEGINNING.to_place().plus(GIVEN_UP.wrapping_mul(TOKEN));
        Self {
            issued: AtomicU64::new(issued.to_bits()),
            hint: Hint::new(),
            open: AtomicU64::new(0),
            agreed: Agreed::new(),
            heaviest: AtomicU64::new(TOKEN),
            beside,
        }
    }

    /// Returns the last token promised.
    pub(super) fn issued(&self) -> Place {
        // Relaxed: see `issue`.
        Place::from_bits(self.issued.load(Relaxed))
    }

    /// Replaces the last token promised by the result of `step`, or returns the step's refusal.
    pub(super) fn issue<R>(
        &self,
        mut step: impl FnMut(Place) -> Result<Place, R>,
    ) -> Result<Place, R> {
        // Relaxed throughout: the word is a chain of read-modify-writes, which is totally ordered,
        // and publishes nothing. `issued` was read after `cancelled`, whose acquire makes `issued`
        // at least as new. Models: `send_rate::grants_never_exceed_what_was_minted`,
        // `send_rate::live_places_never_run_backwards`, `line::places_are_distinct_and_in_order`.
        let issued = &self.issued;
        let mut seen = issued.load(Relaxed);
        loop {
            let next = step(Place::from_bits(seen))?;
            if next.to_bits() == seen {
                return Ok(next);
            }
            match issued.compare_exchange_weak(seen, next.to_bits(), Relaxed, Relaxed) {
                Ok(_) => return Ok(next),
                Err(actual) => seen = actual,
            }
        }
    }

    /// Takes a token, and returns the new `issued`; or returns the current `issued` if there is no
    /// token.
    #[inline]
    pub(super) fn take_one(&self, level: Level) -> Result<Place, Place> {
        // Orderings as in `issue`. Two swaps, each with its own value: a processor that predicts
        // the branch need not wait for both values. Models:
        // `send_rate::two_takers_never_share_a_token`,
        // `send_rate::two_takers_never_share_the_token_of_a_full_bucket`.
        let issued = &self.issued;
        let mut seen = issued.load(Relaxed);
        loop {
            let swapped = match level.take(Place::from_bits(seen)) {
                Take::Full(next) => issued
                    .compare_exchange_weak(seen, next.to_bits(), Relaxed, Relaxed)
                    .map(|_| next),
                Take::Next(next) => issued
                    .compare_exchange_weak(seen, next.to_bits(), Relaxed, Relaxed)
                    .map(|_| next),
                Take::Empty => return Err(Place::from_bits(seen)),
            };
            match swapped {
                Ok(next) => return Ok(next),
                Err(actual) => seen = actual,
            }
        }
    }

    /// Moves the last token promised back to `before`, if it is still `last`: then no place is
    /// behind.
    pub(super) fn take_back(&self, last: Place, before: Place) -> bool {
        // Relaxed: see `issue`. If `issued` has moved on and come back to `last` meanwhile, the
        // state is the same. Model: `line::a_place_given_up_is_counted_once`.
        let issued = &self.issued;
        issued
            .compare_exchange(last.to_bits(), before.to_bits(), Relaxed, Relaxed)
            .is_ok()
    }

    /// Lets the bucket hold at least `tokens`: the weight of a try under declared limits, or of a
    /// request that a shut service has refused.
    pub(super) fn make_room(&self, tokens: u32) {
        // Relaxed: a number that publishes nothing. A caller that has not seen the number yet finds
        // fewer tokens. The larger bucket brings back at most `tokens` that were discarded.
        let heaviest = TOKEN.saturating_mul(tokens.into());
        if heaviest > self.heaviest.load(Relaxed) {
            // Of two requests at once the lighter may win. The heavier asks again.
            self.heaviest.store(heaviest, Relaxed);
        }
    }

    /// Forgets when the next token comes: the line has changed, a place was taken, or tokens were
    /// given back.
    pub(super) fn forget_hint(&self) {
        self.hint.forget();
    }

    /// Notes that a place for `weight` tokens is open.
    pub(super) fn open(&self, weight: u32) {
        // Relaxed, as in `close`: a count that publishes nothing. It is raised after the place is
        // taken, so a write-off by this count is never more than was promised. Model:
        // `forget::what_is_owed_stays_owed_when_places_have_come_and_gone`.
        self.open.fetch_add(u64::from(weight), Relaxed);
    }

    /// Notes that a place for `weight` tokens is open no longer.
    pub(super) fn close(&self, weight: u32) {
        self.open.fetch_sub(u64::from(weight), Relaxed);
    }

    /// Returns the tokens of the places that are open.
    pub(super) fn open_tokens(&self) -> u64 {
        self.open.load(Relaxed)
    }
}

/// A line of tokens: its words, and the gate through which requests come to it.
#[derive(Clone, Copy)]
pub(super) struct TokenLine<'a, B> {
    pub(super) head: &'a HeadWords,
    pub(super) waiters: &'a Waiters,
    pub(super) promised: &'a Promised<B>,
    pub(super) gate: &'a Gate,
}

impl<B> Deref for TokenLine<'_, B> {
    type Target = Promised<B>;

    #[inline]
    fn deref(&self) -> &Promised<B> {
        self.promised
    }
}

impl<B> TokenLine<'_, B> {
    /// Returns the current head and its line, with a bucket that holds the heaviest try.
    #[inline]
    pub(super) fn look(&self) -> (Head, Line) {
        let (head, line) = self.head.read();
        // Relaxed: see `make_room`.
        let least = self.promised.heaviest.load(Relaxed);
        (head, Line { least, ..line })
    }

    /// Returns the current head and its line, which has not wrapped.
    pub(super) fn read(&self) -> (Head, Line) {
        loop {
            let (head, line) = self.look();
            match HeadWords::wrapped_at(&line) {
                None => return (head, line),
                Some(from) => self.go_on(from),
            }
        }
    }

    /// Lets a line that has wrapped go on at `from` with a full bucket.
    #[cold]
    fn go_on(&self, from: u64) {
        self.head.go_on(from, |line| {
            // One unit more, which does not fit the bucket: the line is rounded.
            let held = u128::from(line.capacity().saturating_add(1)) << PLACE_SHIFT;
            Minted::from_place(self.last_rank()).plus(held)
        });
    }

    /// Writes off what does not fit the bucket of `line` at `at`.
    fn spill(&self, line: &Line, at: u64) {
        let cancelled = self.waiters.total();
        let spilled = |issued| Ok::<_, Infallible>(line.spilled(at, issued, cancelled));
        let _ = self.issue(spilled);
    }

    /// Returns the last token promised, less those given back.
    pub(super) fn last_rank(&self) -> Place {
        let cancelled = self.waiters.total();
        // After `cancelled`: see `issue`.
        self.issued().less_tokens(cancelled)
    }

    /// If the line has not been changed for long, moves its start on, and writes off tokens that no
    /// longer fit the bucket.
    #[cold]
    pub(super) fn renew(&self, elapsed: u64) {
        loop {
            let (head, line) = self.read();
            // A line that mints nothing, or one token in 584 years, never wraps.
            if line.rate <= Rate::LEAST || !line.is_old(elapsed) {
                return;
            }
            if line.has_wrapped(elapsed) {
                self.head.wrap(&line, elapsed);
                continue;
            }
            self.spill(&line, elapsed);
            let Some(end) = self.head.raise(elapsed) else {
                continue;
            };
            // `head` is replaced as well: its last field says when it was changed.
            let minted = line.extended_to(end);
            let _ = self
                .head
                .replace(head, minted, end, line.rate, head.throttle());
            self.retire(&line, end);
        }
    }

    /// Replaces `head`, whose line is `line`, by a line of `rate` that follows `version`. The new
    /// line begins at `at`, or at the last change if later. False if another thread has replaced
    /// `head` first.
    pub(super) fn change(
        &self,
        head: Head,
        line: &Line,
        at: u64,
        rate: Rate,
        version: u64,
    ) -> bool {
        if line.is_stale(at) {
            self.renew(at);
            return false;
        }
        let Some(end) = self.head.raise(at) else {
            return false;
        };
        // With the old capacity: tokens that it has discarded must not come back with a larger
        // capacity.
        self.spill(line, end);
        let minted = line.extended_to(end);
        let replaced = self.head.replace(head, minted, end, rate, version);
        if replaced {
            self.forget_hint();
        }
        // Also here, for callers who never wait in line. Otherwise gaps could stay until places
        // wrap.
        self.retire(line, end);
        replaced
    }

    /// Retires the gaps that have come due by `elapsed`, as far as records or many calls vouch for
    /// that time. A wrong clock must not let the waiters ahead of the gaps go.
    pub(super) fn retire(&self, line: &Line, elapsed: u64) {
        if self.waiters.has_gaps() {
            let recorded = self.gate.load().quiet_until().max(line.since);
            let known = recorded
                .saturating_add(SKEW)
                .max(self.promised.agreed.note(elapsed));
            self.waiters
                .retire(line.minted_at(elapsed.min(known)).to_place());
        }
    }

    /// Gives back `tokens`, counted before every place.
    pub(super) fn give_back(&self, tokens: u64) {
        // Before and after: see `Gate`.
        self.gate.disturb();
        self.waiters.write_off(tokens);
        self.forget_hint();
        self.gate.disturb();
    }

    /// Gives up the open `place`, which is for `weight` tokens. The last place in line is taken
    /// back.
    pub(super) fn give_up(&self, place: Place, weight: u32, slot: Option<WaiterSlot>) {
        self.close(weight);
        self.gate.disturb();
        let before = place.less_tokens(u64::from(weight));
        if self.take_back(place, before) {
            self.waiters.leave(slot);
        } else {
            // There is no clock here, so the time of the last change is used.
            let (_, line) = self.read();
            let minted = line.minted_at(line.since).to_place();
            self.waiters.give_up(slot, place, weight, minted);
        }
        self.forget_hint();
        self.gate.disturb();
    }

    /// Gives `tokens` back to the bucket of `line`, as many of them as fit.
    pub(super) fn credit(&self, line: &Line, elapsed: u64, tokens: u32) {
        self.spill(line, elapsed);
        let held = line.minted_at(elapsed).to_place().since(self.last_rank());
        let capacity = i64::try_from(line.capacity()).unwrap_or(i64::MAX);
        let room = capacity.saturating_sub(held).max(0).unsigned_abs();
        self.give_back(u64::from(tokens).min(room.div_ceil(TOKEN)));
    }

    /// Brings the line back to `elapsed`, whatever later times there have been.
    pub(super) fn bring_back(&self, elapsed: u64) {
        loop {
            let (head, line) = self.read();
            if line.rate == Rate::ZERO {
                return;
            }
            if line.is_stale(elapsed) {
                self.renew(elapsed);
                continue;
            }
            self.spill(&line, line.since);
            let minted = line.minted_at(elapsed);
            // `since` first, so that no change begins at a time that is undone here. A thread that
            // stops in between leaves a line that is extended backwards, which mints less.
            if line.since > elapsed && !self.head.bring_back(line.since, elapsed) {
                continue;
            }
            let Some(end) = self.head.raise(elapsed) else {
                continue;
            };
            if self
                .head
                .replace(head, minted, end, line.rate, head.throttle())
            {
                return;
            }
        }
    }

    /// Returns the whole tokens that are promised beyond those minted by `elapsed`.
    pub(super) fn ahead(&self, elapsed: u64) -> u64 {
        let (_, line) = self.read();
        line.ahead(elapsed, self.last_rank()) / TOKEN
    }
}

#[cfg(test)]
#[expect(
    clippy::arithmetic_side_effects,
    reason = "a test may overflow, and fail"
)]
mod tests {
    use super::*;
    use crate::fixed::SECOND;

    /// The words of a line alone, of ten tokens a second and a bucket of a second's worth.
    struct Alone(HeadWords, Waiters, Promised<()>, Gate);

    impl Alone {
        fn new() -> Self {
            let alone = Self(
                HeadWords::new(BEGINNING, SECOND),
                Waiters::new(GIVEN_UP),
                Promised::new(()),
                Gate::new(0),
            );
            assert!(alone.set(0, 10));
            alone
        }

        fn line(&self) -> TokenLine<'_, ()> {
            TokenLine {
                head: &self.0,
                waiters: &self.1,
                promised: &self.2,
                gate: &self.3,
            }
        }

        /// Changes the rate at a time in milliseconds.
        fn set(&self, millis: u64, tokens: u32) -> bool {
            let (head, line) = self.line().read();
            let rate = Rate::from_ratio(tokens, SECOND);
            self.line()
                .change(head, &line, at(millis), rate, head.throttle() + 1)
        }

        /// Takes what there is at a time in milliseconds, and returns how many.
        fn take(&self, millis: u64) -> usize {
            let (_, line) = self.line().read();
            let level = line.level(at(millis), self.1.total());
            (0..100)
                .take_while(|_| self.line().take_one(level).is_ok())
                .count()
        }

        /// Promises a place behind all others.
        fn place(&self, weight: u32) -> Place {
            let units = u64::from(weight) * TOKEN;
            let place = self.line().issue(|last| Ok::<_, ()>(last.plus(units)));
            self.line().open(weight);
            place.expect("nothing refuses")
        }
    }

    /// A little later than a time in milliseconds: rates are rounded down.
    fn at(millis: u64) -> u64 {
        millis * (SECOND / 1_000) + 10
    }

    #[test]
    fn a_line_mints_by_its_rate_and_holds_what_its_bucket_does() {
        let line = Alone::new();
        assert_eq!([0, 100, 350, 350].map(|now| line.take(now)), [0, 1, 2, 0]);
        assert_eq!(line.take(60_000), 10, "the rest is discarded");
        assert!(line.set(60_000, 1));
        assert_eq!([60_900, 61_001].map(|now| line.take(now)), [0, 1]);
    }

    #[test]
    fn what_is_given_back_is_there_again_before_every_place() {
        let line = Alone::new();
        assert_eq!(line.take(1_000), 10);
        line.line().give_back(2);
        assert_eq!(line.take(1_000), 2);
        let (_, read) = line.line().read();
        line.line().credit(&read, at(1_000), 3);
        assert_eq!(line.take(1_000), 3);
        line.line().credit(&read, at(1_500), 30);
        assert_eq!(line.take(1_500), 10, "no more than fit");
    }

    #[test]
    fn the_last_place_is_taken_back_and_another_one_is_counted() {
        let line = Alone::new();
        assert_eq!(line.take(1_000), 10);
        let [first, second, third] = [1, 2, 4].map(|weight| line.place(weight));
        assert_eq!(line.line().ahead(at(1_000)), 7);
        line.line().give_up(third, 4, None);
        assert_eq!(
            (line.line().ahead(at(1_000)), line.1.total()),
            (3, GIVEN_UP)
        );
        line.line().give_up(first, 1, None);
        let counted = line.1.total().wrapping_sub(GIVEN_UP) % (1 << 40);
        assert_eq!((line.line().ahead(at(1_000)), counted), (2, 1));
        assert_eq!(line.line().open_tokens(), 2);
        line.line().give_up(second, 2, None);
        assert_eq!((line.line().ahead(at(1_000)), line.take(1_100)), (0, 1));
    }

    #[test]
    fn a_line_is_taken_back_to_an_earlier_time() {
        let line = Alone::new();
        assert!(line.set(60_000, 20));
        assert_eq!(line.take(100), 0, "that is over a second before");
        line.line().bring_back(at(100));
        let (_, read) = line.line().read();
        assert_eq!((read.since, line.take(101)), (at(100), 10), "what it held");
        assert_eq!([149, 152, 202].map(|now| line.take(now)), [0, 1, 1]);
    }
}
