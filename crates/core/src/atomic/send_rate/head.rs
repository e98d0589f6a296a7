//! The line of tokens in one word.
//!
//! `V(t) = origin + rate · t` numbers the tokens that have been minted by `t`. A change of the rate
//! at `end` is one compare-and-swap, to the line through the same point with the new slope:
//! `origin' = origin + (rate − rate') · end`. A thread that stops leaves nothing half done. One
//! load of `head` gives a whole line.
//!
//! # `since`
//!
//! No new change begins before `since`. A thread raises `since` to `end` before its swap, so no
//! change begins before the line that the change replaces. Otherwise a change by an older clock
//! would mint the difference of the two rates a second time, for the time in between. `since` may
//! be later than the beginning of the line, if the thread that raised `since` stopped or lost its
//! swap. The next change then begins later. Until then tokens are minted at the rate that was in
//! force, and no more.
//!
//! Readers load `since` before `head`. The line that a reader then loads may begin later than its
//! `since`. Extended backwards, that line has no more tokens than at its beginning, a time that
//! some thread has read.
//!
//! # Clocks
//!
//! A caller whose clock is up to a second before `since` finds `V(since)`: some thread has read
//! that time. A caller further behind is granted nothing. So a record far in the future mints
//! nothing for callers at true time.
//!
//! # Pauses
//!
//! A paused line has the least rate possible, which no law uses otherwise. The end of the pause is
//! the time in the law's state, and not `since`. The change that ends a pause begins at this end,
//! however late a caller looks.
//!
//! # Renewals and wraps
//!
//! Places wrap after 2⁴⁰ tokens. After 68 s without a change, a caller that takes a token renews
//! the line. The caller spills `issued`, raises `since` and replaces `head`, whose last 8 bits say
//! when `head` was changed. Reads, claims and places renew the line only once 2³⁷ tokens have been
//! minted. So a claim by a wrong clock moves nothing.
//!
//! After 2³⁸ tokens, a day idle at three million a second, differences of places would alias. Then
//! a caller marks `since`, and no token is granted. Any thread swaps in the line on which the
//! bucket is full at the marked time, and removes the mark. All threads that help compute the same
//! line, because nothing is granted meanwhile. If a place was given up meanwhile, they compute a
//! lower line. A thread that stops after the mark leaves the rest to the next caller.
//!
//! # A word that comes back
//!
//! Equal words are the same function of time, so a swap of `head` that succeeds on a word which has
//! come back is right. Only the version and the beginning of the line may differ. Two lines that
//! differ in nothing but the beginning come from changes at the same time to 2⁻³⁰ token. `Head`
//! says how its last field tells such lines apart.

use crate::atomic::sync::{
    AtomicU64, AtomicU128,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use crate::fixed::Rate;
use crate::line::{Head, Line, Minted};

/// In `since`: the line has wrapped, and goes on with a full bucket from the time in the other
/// bits.
const WRAPPED: u64 = 1 << 63;

/// The words of the line.
pub(super) struct HeadWords {
    head: AtomicU128,
    since: AtomicU64,
    /// The nanoseconds in which the rate fills the bucket.
    burst: u64,
}

// Orderings, by race; each reason names both outcomes.
//
// A change against a change. A thread raises `since` before its swap of `head`, which releases the
// raise. If the swap comes first, another thread's load of the new head acquires the raise. So the
// later change finds `since` raised, and begins no earlier than the line that it replaces. If the
// load comes first, it returns the old head, and the swap of the later change fails. Either way a
// look at `since` follows an acquired head, so these looks are relaxed. Each swap of `since`
// (raise, mark, bring back) goes on releasing what the swap before it released. Models:
// `paced::a_change_by_an_older_clock_mints_nothing`, `line::of_two_changes_the_later_time_stays`.
//
// `read` against `go_on`. `go_on` replaces the head before it removes the mark. `read` loads
// `since` first, with acquire. If the mark was removed first, `read` then loads the head of
// `go_on`, or a later head. If the load came first, it finds the mark, and no token is taken. If
// `read` loaded `head` first, a caller would take positions of a wrapped line for positions of the
// next. A head newer than `since` mints less, never more. Models:
// `send_rate::a_wrapped_line_goes_on_with_a_full_bucket`,
// `send_rate::a_caller_is_never_between_a_wrapped_line_and_the_next`.
impl HeadWords {
    /// Creates the words of a line that stands at `place` and mints nothing. A bucket holds what
    /// its rate mints in `burst` nanoseconds.
    pub(super) fn new(place: Minted, burst: u64) -> Self {
        Self {
            head: AtomicU128::new(Head::through(place, 0, Rate::ZERO, 0).to_bits()),
            since: AtomicU64::new(0),
            burst,
        }
    }

    #[inline]
    pub(super) fn head(&self) -> Head {
        Head::from_bits(self.head.load(Acquire))
    }

    /// Returns the current head and its line. The `since` of a wrapped line is a time that no clock
    /// shows.
    #[inline]
    pub(super) fn read(&self) -> (Head, Line) {
        // Before the head: see the orderings above.
        let since = self.since.load(Acquire);
        let head = self.head();
        (head, head.line(since, self.burst))
    }

    /// Returns the time that a line which has wrapped goes on from, `None` if it has not wrapped.
    pub(super) const fn wrapped_at(line: &Line) -> Option<u64> {
        if line.since >= WRAPPED {
            Some(line.since ^ WRAPPED)
        } else {
            None
        }
    }

    /// Raises `since` to `now`, if it is earlier, and returns when the next change begins. `None`
    /// if the line has wrapped, and has to be [continued](Self::go_on) first.
    pub(super) fn raise(&self, now: u64) -> Option<u64> {
        let mut seen = self.since.load(Relaxed);
        loop {
            if seen >= now {
                return (seen < WRAPPED).then_some(seen);
            }
            match self
                .since
                .compare_exchange_weak(seen, now, Relaxed, Relaxed)
            {
                Ok(_) => return Some(now),
                Err(actual) => seen = actual,
            }
        }
    }

    /// Sets `since` back to `now`, if it is still `seen`.
    pub(super) fn bring_back(&self, seen: u64, now: u64) -> bool {
        self.since
            .compare_exchange(seen, now, Relaxed, Relaxed)
            .is_ok()
    }

    /// Notes that `line` has wrapped by `now`. From then on no thread takes a token before the line
    /// goes on.
    pub(super) fn wrap(&self, line: &Line, now: u64) {
        // A loss means that another thread has noted the wrap, or has changed the line.
        let _ = self
            .since
            .compare_exchange(line.since, now | WRAPPED, Relaxed, Relaxed);
    }

    /// Lets a wrapped line go on from `now` with `minted`, which fills the bucket. Any thread may
    /// do this for another. Nothing is granted meanwhile, so all threads compute the same line, or
    /// a line that is lower by the places given up in between.
    pub(super) fn go_on(&self, now: u64, minted: impl FnOnce(&Line) -> Minted) {
        let (head, line) = self.read();
        if line.since != now | WRAPPED {
            return;
        }
        let minted = minted(&line);
        // `since` is looked at again, by a swap. If this swap comes before the swap that removes
        // the mark, the latter acquires it. So the words behind `minted` were loaded before any
        // token was granted after the removal. If the removal comes first, this swap fails, and
        // nothing is replaced.
        let marked = line.since;
        let looked = self
            .since
            .compare_exchange(marked, marked, Release, Relaxed);
        if looked.is_ok() {
            let _ = self.replace(head, minted, now, line.rate, head.throttle());
            let _ = self.since.compare_exchange(marked, now, AcqRel, Relaxed);
        }
    }

    /// Replaces `head` by the line that goes on from `minted` at `end` with `rate`. False if
    /// another thread has replaced `head` first. `end` comes from [`raise`](Self::raise).
    #[inline]
    pub(super) fn replace(
        &self,
        head: Head,
        minted: Minted,
        end: u64,
        rate: Rate,
        throttle: u64,
    ) -> bool {
        let next = Head::through(minted, end, rate, throttle);
        // Strong: a lone caller must never fail, or a success of the published law would be
        // skipped. Release: a later load finds what was written before this swap. A thread that
        // loses loads all words again before it uses them. Acquire: see `touch`.
        self.head
            .compare_exchange(head.to_bits(), next.to_bits(), AcqRel, Relaxed)
            .is_ok()
    }

    /// Ensures one of two outcomes. Either the thread that changes the line next finds what the
    /// calling thread has written, or the calling thread finds the change.
    ///
    /// The call swaps the head for the same head. If this swap comes first, the swap of the change
    /// acquires it. If the change comes first, the caller's next look at the line finds it. So a
    /// thread that has changed the line needs no fence before it looks for waiters. Such a fence
    /// would take a quarter of the time of a response. Model:
    /// `waiters::a_response_is_seen_by_the_waiter_or_wakes_it`.
    pub(super) fn touch(&self) {
        // Relaxed: the waiter's fence comes before the swap, and the waiter looks at the line after
        // it. Each further lap means that another thread has changed the line.
        let mut seen = self.head.load(Relaxed);
        while let Err(actual) = self.head.compare_exchange(seen, seen, Relaxed, Relaxed) {
            seen = actual;
        }
    }
}
