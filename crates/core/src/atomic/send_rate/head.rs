//! The line of tokens in one word.
//!
//! `V(t) = origin + rate · t` numbers the tokens that have been minted by `t`. A change of the rate
//! at `end` is one compare-and-swap, to the line through the same point with the new slope:
//! `origin' = origin + (rate − rate') · end`. A thread that stops leaves nothing half done. One
//! load of `head` is a whole line.
//!
//! # `since`
//!
//! No change has been before `since`. A thread raises `since` to `end` before its swap, so that no
//! change begins before the line that the change replaces. With an older clock the difference of
//! the two rates would otherwise be minted a second time, for the time in between. `since` may be
//! later than the beginning of the line, if the thread that raised `since` stopped or lost its
//! swap. The next change then begins later, which mints the rate that was in force, and no more.
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
//! A paused line has the least rate there is, which no law has otherwise. The end of the pause is
//! the time in the law's state, and not `since`. The change that ends a pause begins at that end,
//! whenever a caller looks.
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
//! bucket is full at the marked time, and takes the mark away. All threads that help compute the
//! same line, because nothing is granted meanwhile; or a lower line, if a place was given up. A
//! thread that stops after the mark leaves the rest to the next caller.
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
    /// What the bucket holds, in nanoseconds at its rate.
    burst: u64,
}

// Orderings, by race; each reason names both outcomes.
//
// A change against a change. `since` is raised before the swap of `head`, which releases it. If the
// swap comes first, a load of the new head acquires it, so the later change finds `since` raised
// and begins no earlier than the line that it replaces. If the load comes first, it has the old
// head, and the swap of that change fails. Either way a look at `since` follows a head that was
// acquired, so the looks are relaxed. Raised, marked or brought back by a swap, `since` goes on
// releasing what the swap before it released. Models:
// `paced::a_change_by_an_older_clock_mints_nothing`,
// `line::of_two_changes_the_later_time_stays`.
//
// `read` against `go_on`, which replaces the head before it takes the mark away. `read` loads
// `since` first, with acquire. If the mark went first, the head that is loaded next is the one
// that goes on from there, or a later one. If the load came first, it finds the mark, and no token
// is taken. In the other order, a caller would take positions of a line that has wrapped for those
// of the next. A head that is newer than `since` mints less, never more. Models:
// `send_rate::a_wrapped_line_goes_on_with_a_full_bucket`,
// `send_rate::a_caller_is_never_between_a_wrapped_line_and_the_next`.
impl HeadWords {
    /// Creates the words of a line that mints nothing, and stands at `place`; of buckets that hold
    /// `burst` nanoseconds at their rate.
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

    /// Returns the current head and its line. A line that has wrapped begins at a time that no
    /// clock shows.
    #[inline]
    pub(super) fn read(&self) -> (Head, Line) {
        // Before the head, see above.
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

    /// Raises the time of the last change to `now`, and returns when the next change begins: then,
    /// or later. `None` if the line has wrapped, and has to be [continued](Self::go_on) first.
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

    /// Takes the time of the last change back to `now`, if it is still `seen`.
    pub(super) fn bring_back(&self, seen: u64, now: u64) -> bool {
        self.since
            .compare_exchange(seen, now, Relaxed, Relaxed)
            .is_ok()
    }

    /// Notes that `line` has wrapped by `now`. From then on no thread takes a token before it goes
    /// on.
    pub(super) fn wrap(&self, line: &Line, now: u64) {
        // A loss means that another thread has noted it, or has changed the line.
        let _ = self
            .since
            .compare_exchange(line.since, now | WRAPPED, Relaxed, Relaxed);
    }

    /// Lets a line that has wrapped go on from `now` with `minted` tokens: with a full bucket. Any
    /// thread may do it for any other: nothing is granted meanwhile, so that all of them
    /// compute the same line, or one that is lower by places that have been given up in
    /// between.
    pub(super) fn go_on(&self, now: u64, minted: impl FnOnce(&Line) -> Minted) {
        let (head, line) = self.read();
        if line.since != now | WRAPPED {
            return;
        }
        let minted = minted(&line);
        // Looked at again, by a swap. If it comes before the one that takes the mark away, that one
        // acquires it: what `minted` was computed from was loaded before any token was granted
        // after that. If the mark went first, this swap fails, and nothing is replaced.
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
    /// another thread has replaced it first. `end` comes from [`raise`](Self::raise).
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
        // Strong: one caller alone must never fail, or a success of the published law would be
        // skipped. Release: a load that comes later finds what was written before this swap. A
        // thread that loses loads all again before it uses it. Acquire: see `touch`.
        self.head
            .compare_exchange(head.to_bits(), next.to_bits(), AcqRel, Relaxed)
            .is_ok()
    }

    /// Lets the thread that changes the line next find what the calling thread has written, unless
    /// the calling thread finds that change.
    ///
    /// It swaps the head for itself. If that comes first, the swap of the change acquires it. If
    /// the change comes first, the look at the line that follows finds it. So a thread that has
    /// changed the line need not have a fence before it looks for waiters, and a fence is a quarter
    /// of the time of a response. Model: `waiters::a_response_is_seen_by_the_waiter_or_wakes_it`.
    pub(super) fn touch(&self) {
        // Relaxed: the waiter's fence comes before it, and it looks at the line afterwards. Each
        // lap is paid for by a thread that has changed the line.
        let mut seen = self.head.load(Relaxed);
        while let Err(actual) = self.head.compare_exchange(seen, seen, Relaxed, Relaxed) {
            seen = actual;
        }
    }
}
