//! Who may go, and how long the others have to wait.
//!
//! `try_acquire_with` loads the words before it reads the clock. A pause or a cut may come between
//! the loads and the clock. Then that call may be granted one token of the line that it has loaded:
//! one token for each caller that stands between the two. Stall test:
//! `a_pause_at_any_step_of_a_call_costs_one_token`.

use core::ops::Deref;
use core::time::Duration;

use super::behind::MaybeBehind;
use super::controller::BoundLaw;
use super::gate::{Gate, GateWord};
use super::head::LineWords;
use super::hint::Hint;
use super::lease::{Lease, Leases};
use super::limits::{Burst, Phase};
use super::meter::Meter;
use super::permit::Order;
use super::state::{CurveCache, CutBaseline, DrainWord, LastState};
use super::waiters::{Agreed, Waiters};
use crate::Timestamp;
use crate::atomic::lazy::Lazy;
use crate::atomic::sync::{AtomicU64, Ordering::Relaxed};
use crate::bits::LAST_TIME;
use crate::fixed::Rate;
use crate::line::{
    FINER as PLACE_SHIFT, Head, LONGEST, Level, Line, Minted, Place, SKEW, TOKEN, Take,
};
use crate::padded::Padded;

/// The words that a limiter needs once it limits; before its first throttle it has none.
pub(super) struct Words {
    pub(super) line: LineWords,
    pub(super) state: LastState,
    pub(super) curve: CurveCache,
    pub(super) waiters: Waiters,
    /// What every limited request writes, in its own cache line.
    pub(super) promised: Padded<Promised>,
    /// How often what threads keep for themselves has been voided: see `lease`.
    pub(super) changes: AtomicU64,
    /// Made when a thread first takes tokens ahead.
    pub(super) leases: Lazy<Leases>,
}

/// What has been promised, and a hint for callers who get nothing.
pub(super) struct Promised {
    /// The last token promised.
    issued: AtomicU64,
    pub(super) hint: Hint,
    /// The tokens of all places that are neither claimed nor given up.
    pub(super) open: AtomicU64,
    agreed: Agreed,
    /// The position of the last request sent, if declared limits are obeyed.
    pub(super) sent: AtomicU64,
    /// The requests of the first burst that have been given a token.
    pub(super) first: Burst,
    /// The least that the bucket holds, in the units of a place: a token, or the heaviest try at a
    /// declared limit.
    heaviest: AtomicU64,
    // Used seldom. They stand here because this cache line has room.
    /// Used for one round trip after a first throttle.
    pub(super) drain: DrainWord,
    pub(super) baseline: CutBaseline,
    /// How long requests are under way, in nanoseconds: 0 before the first that was looked at.
    pub(super) trip: AtomicU64,
    /// The second line. It stands here for the same reason.
    pub(super) behind: MaybeBehind,
}

/// Where positions of sends begin: just before the wrap of what a permit holds of them, so that
/// every test crosses it.
pub(super) const FIRST_SEND: u64 = (1 << 31) - 2;

/// Where the line begins: one and a half tokens before the wrap of places and of counts, so that
/// every test crosses it.
const BEGINNING: Minted = Minted::from_bits((3_u128 << 63).wrapping_neg());
/// How many places had been given up by then.
const GIVEN_UP: u64 = 1_u64.wrapping_neg();

impl Words {
    /// Creates the words of a line that mints nothing, for buckets that hold `burst` nanoseconds at
    /// their rate.
    pub(super) fn new(burst: u64) -> Self {
        let issued = BEGINNING.to_place().plus(GIVEN_UP.wrapping_mul(TOKEN));
        Self {
            line: LineWords::new(BEGINNING, burst),
            state: LastState::new(),
            curve: CurveCache::new(),
            waiters: Waiters::new(GIVEN_UP),
            promised: Padded::new(Promised {
                issued: AtomicU64::new(issued.to_bits()),
                hint: Hint::new(),
                open: AtomicU64::new(0),
                agreed: Agreed::new(),
                sent: AtomicU64::new(FIRST_SEND),
                first: Burst::of(1), // the bucket begins with its token
                heaviest: AtomicU64::new(TOKEN),
                drain: DrainWord::new(),
                baseline: CutBaseline::new(),
                trip: AtomicU64::new(0),
                behind: MaybeBehind::new(),
            }),
            changes: AtomicU64::new(0),
            leases: Lazy::new(Leases::new),
        }
    }

    /// Returns the last token promised.
    pub(super) fn issued(&self) -> Place {
        // Relaxed: see `Engaged::issue`.
        Place::from_bits(self.promised.issued.load(Relaxed))
    }

    /// Returns the position of the last request sent, of a limiter that obeys declared limits.
    pub(super) fn sent(&self) -> u64 {
        // Relaxed: see `Reports::send`.
        self.promised.sent.load(Relaxed)
    }
}

/// A limiter that limits, or is about to: its words, and those that it has from the start.
#[derive(Clone, Copy)]
pub(super) struct Engaged<'a> {
    pub(super) words: &'a Words,
    pub(super) gate: &'a Gate,
    pub(super) meter: &'a Meter,
    pub(super) law: &'a BoundLaw,
    pub(super) start: Timestamp,
}

impl Deref for Engaged<'_> {
    type Target = Words;

    fn deref(&self) -> &Words {
        self.words
    }
}

impl Engaged<'_> {
    /// Takes a token, or returns the nanoseconds until there is one.
    #[inline]
    pub(super) fn try_acquire(&self, gate: GateWord, now: Timestamp) -> Result<Order, u64> {
        let elapsed = self.unbounded(now);
        if let Some(lease) = self.lending().own() {
            // Relaxed: see `end_leases`.
            if lease.reckon(self.changes.load(Relaxed), now.as_nanos(), true) {
                return Ok(Order::CHARGED);
            }
            self.lending().hand_back_of(lease, elapsed);
        }
        self.try_bucket(gate, now, elapsed)
    }

    /// Takes a token of the bucket.
    #[expect(
        clippy::inline_always,
        reason = "it stands in two places, and most callers come through one"
    )]
    #[inline(always)]
    fn try_bucket(&self, gate: GateWord, now: Timestamp, elapsed: u64) -> Result<Order, u64> {
        let taken = if let Some(wait) = self.promised.hint.wait(gate, elapsed) {
            Err(wait)
        } else {
            let (_, line) = self.look_at_line();
            let cancelled = self.waiters.total();
            self.try_line(gate, &line, cancelled, elapsed)
        };
        taken.map_err(|nanos| self.since_now(now, nanos))
    }

    /// As [`try_acquire`](Self::try_acquire), and reads the clock after the words. Also returns
    /// what it said.
    ///
    /// The words do not wait for a time stamp counter then, which lets nothing pass that comes
    /// after it. If the rate falls in between, one token may be granted that only the line
    /// before it had.
    #[inline]
    pub(super) fn try_acquire_with(
        &self,
        gate: GateWord,
        now: impl FnOnce() -> Timestamp,
    ) -> (Timestamp, Result<Order, u64>) {
        let (_, line) = self.look_at_line();
        let cancelled = self.waiters.total();
        let now = now();
        let elapsed = self.unbounded(now);
        let taken = match self.promised.hint.wait(gate, elapsed) {
            Some(wait) => Err(wait),
            None => self.try_line(gate, &line, cancelled, elapsed),
        };
        (now, taken.map_err(|nanos| self.since_now(now, nanos)))
    }

    /// As [`try_acquire_with`](Self::try_acquire_with), of a thread that has a lease.
    #[inline]
    pub(super) fn try_lease_with(
        &self,
        lease: &Lease,
        gate: GateWord,
        now: impl FnOnce() -> Timestamp,
    ) -> (Timestamp, Result<Order, u64>) {
        // Relaxed: see `end_leases`.
        let changes = self.changes.load(Relaxed);
        let now = now();
        let elapsed = self.unbounded(now);
        if lease.reckon(changes, now.as_nanos(), false) {
            lease.note_time(now.as_nanos());
            return (now, Ok(Order::CHARGED));
        }
        self.lending().hand_back_of(lease, elapsed);
        (now, self.try_bucket(gate, now, elapsed))
    }

    /// Returns the time since the start, not limited to what words hold.
    #[inline]
    const fn unbounded(&self, now: Timestamp) -> u64 {
        now.as_nanos().saturating_sub(self.start.as_nanos())
    }

    /// Takes a token of `line`, which has been loaded before `cancelled`, and returns its order.
    #[expect(
        clippy::inline_always,
        reason = "the line stays in registers: 1 ns of 11"
    )]
    #[inline(always)]
    fn try_line(
        &self,
        gate: GateWord,
        line: &Line,
        cancelled: u64,
        elapsed: u64,
    ) -> Result<Order, u64> {
        // Long after the last change, and before it, is another case.
        let is_other = elapsed.wrapping_sub(line.since) >= LONGEST || line.rate <= Rate::LEAST;
        if is_other || self.reports().may_go(elapsed, 1).is_err() {
            return self.try_again(elapsed);
        }
        let level = Level::new(line.extended_to(elapsed), line.capacity(), cancelled);
        let lends = self.law.lends() && line.rate.raw() >= Leases::LEAST_RATE;
        if lends && self.lending().take_ahead(elapsed) {
            return Ok(Order::CHARGED);
        }
        match self.take_one(level) {
            Ok(issued) => {
                if level.is_dry(issued) && gate.is_quiet(elapsed) {
                    let next = issued.plus(TOKEN).less_tokens(cancelled);
                    let wait = line.wait_for(elapsed, next).unwrap_or(0);
                    self.promised.hint.note(gate, elapsed.saturating_add(wait));
                }
                self.send_granted(elapsed)
            }
            Err(issued) if gate.is_quiet(elapsed) || !self.law.moves_with_time() => {
                Err(line.wait_for_next(elapsed, issued, cancelled))
            }
            Err(_) => self.try_again(elapsed),
        }
    }

    /// Sends the request that a token was taken for, or gives the token back: another one has just
    /// taken what was left of a declared limit.
    #[inline]
    fn send_granted(&self, elapsed: u64) -> Result<Order, u64> {
        if self.law.listens() {
            return self.send_counted(elapsed);
        }
        Ok(Order::CHARGED)
    }

    #[inline(never)]
    fn send_counted(&self, elapsed: u64) -> Result<Order, u64> {
        let sent = self.reports().sent(elapsed, 1, false);
        sent.inspect_err(|_| self.give_back(1))
    }

    /// Tries with all that may be in the way: a throttle that has yet to take effect, a curve that
    /// has moved, a line that has to be renewed, a pause.
    #[inline(never)]
    fn try_again(&self, elapsed: u64) -> Result<Order, u64> {
        let elapsed = elapsed.min(LAST_TIME);
        self.lending().collect(elapsed);
        let granted = || {
            if self.state.load().is_engaged() {
                self.send_granted(elapsed)
            } else {
                Ok(Order::NONE)
            }
        };
        self.renew(elapsed);
        if self.reports().phase() == Phase::Declared {
            self.catch_up(elapsed);
            self.reports().may_go(elapsed, 1)?;
        }
        let Some(nanos) = self.take(elapsed) else {
            return granted();
        };
        let first = self.reports().goes_first(None, elapsed);
        if !self.catch_up(elapsed) && !first {
            return Err(nanos);
        }
        let gate = self.gate.look();
        let Some(nanos) = self.take(elapsed) else {
            return granted();
        };
        if gate.is_quiet(elapsed) {
            self.promised.hint.note(gate, elapsed.saturating_add(nanos));
        }
        Err(nanos)
    }

    /// Moves the rate to where the law has it, if time alone may have moved it since it was last
    /// looked at.
    pub(super) fn catch_up(&self, elapsed: u64) -> bool {
        let moves = self.law.moves_with_time() && !self.gate.load().is_quiet(elapsed);
        if moves {
            self.follow(elapsed);
        }
        moves
    }

    /// Returns the time since the start, as words hold it.
    pub(super) fn elapsed(&self, now: Timestamp) -> u64 {
        elapsed(self.start, now)
    }

    /// Returns the wait of `nanos` after `now`, or after the start if that is later.
    pub(super) const fn wait(&self, now: Timestamp, nanos: u64) -> Duration {
        Duration::from_nanos(self.since_now(now, nanos))
    }

    /// Returns how long after `now` it is `nanos` after it, or after the start if that is later.
    const fn since_now(&self, now: Timestamp, nanos: u64) -> u64 {
        let early = self.start.as_nanos().saturating_sub(now.as_nanos());
        nanos.saturating_add(early)
    }

    /// Returns the nanoseconds until the turn of `place`, after a look at the law; `None` if it has
    /// come.
    pub(super) fn nanos_until(&self, place: Place, elapsed: u64) -> Option<u64> {
        let rank = |line: &_| {
            self.retire(line, elapsed);
            place.less_tokens(self.waiters.before(place))
        };
        self.nanos_until_rank(rank, elapsed)
    }

    /// As [`nanos_until`](Self::nanos_until), of the place whose rank `rank` returns.
    pub(super) fn nanos_until_rank(
        &self,
        rank: impl Fn(&Line) -> Place,
        elapsed: u64,
    ) -> Option<u64> {
        let wait = || {
            let line = self.line_at(elapsed)?;
            self.wait_of(&line, elapsed, rank(&line))
        };
        let nanos = wait()?;
        if self.catch_up(elapsed) {
            return wait();
        }
        Some(nanos)
    }

    /// Returns the nanoseconds until `line`, or the one after its pause, reaches `rank`, or until
    /// that can be foretold; `None` if it has.
    pub(super) fn wait_of(&self, line: &Line, elapsed: u64, rank: Place) -> Option<u64> {
        let nanos = if line.is_paused() {
            // A turn that has come stays, unless the service itself has asked for the pause.
            let is_declared = self.reports().phase() == Phase::Declared;
            if is_declared && line.wait_for(elapsed, rank).is_none() {
                return None;
            }
            let resumed = self.resumed(line, elapsed);
            let left = resumed.since.saturating_sub(elapsed);
            let after = resumed.wait_for(elapsed.max(resumed.since), rank);
            left.saturating_add(after.unwrap_or(0)).max(1)
        } else {
            let nanos = line.wait_for(elapsed, rank)?;
            let pace = self.reports().pace(self.state.load(), elapsed);
            pace.map_or(nanos, |pace| {
                let others = line.wait_for(elapsed, rank.less_tokens(1)).unwrap_or(0);
                nanos.min(pace.one_more.saturating_add(others))
            })
        };
        Some(nanos.min(self.reports().until_foretold(elapsed)))
    }

    /// Returns the line after the pause of `line`: the one that the change which ends it makes.
    fn resumed(&self, line: &Line, elapsed: u64) -> Line {
        let state = self.state.load();
        let (end, rate) = match self.reports().pace(state, elapsed) {
            Some(pace) => (pace.until.unwrap_or(elapsed), pace.rate),
            None => (state.since(), self.law.get().resumed(state)),
        };
        line.changed(end.max(line.since), rate)
    }

    /// Returns the current line, or `None` if the limiter limits nothing.
    pub(super) fn line_at(&self, elapsed: u64) -> Option<Line> {
        loop {
            let (_, line) = self.read();
            if line.rate == Rate::ZERO {
                if !self.state.load().is_engaged() {
                    return None;
                }
                self.apply_state(elapsed);
            } else if line.is_stale(elapsed) {
                self.renew(elapsed);
            } else {
                return Some(line);
            }
        }
    }

    /// Returns the current head and its line, of a bucket that holds the heaviest try.
    #[inline]
    pub(super) fn look_at_line(&self) -> (Head, Line) {
        let (head, line) = self.line.read();
        // Relaxed: see `make_room`.
        let least = self.promised.heaviest.load(Relaxed);
        (head, Line { least, ..line })
    }

    /// Lets the bucket hold at least `tokens`: a try at a limiter that obeys declared limits, or a
    /// request that a shut service has refused.
    pub(super) fn make_room(&self, tokens: u32) {
        // Relaxed: a number that publishes nothing. A caller that has not seen it yet finds fewer
        // tokens. What it brings back of what was discarded is no more than itself.
        let heaviest = TOKEN.saturating_mul(tokens.into());
        if heaviest > self.promised.heaviest.load(Relaxed) {
            // Of two at once the lighter may win; the heavier asks again.
            self.promised.heaviest.store(heaviest, Relaxed);
        }
    }

    /// Returns the current head and its line, which has not wrapped.
    pub(super) fn read(&self) -> (Head, Line) {
        loop {
            let (head, line) = self.look_at_line();
            match LineWords::wrapped_at(&line) {
                None => return (head, line),
                Some(from) => self.go_on(from),
            }
        }
    }

    /// Lets a line that has wrapped go on at `from` with a full bucket.
    #[cold]
    fn go_on(&self, from: u64) {
        self.line.go_on(from, |line| {
            // One unit more, which does not fit the bucket: the line is rounded.
            let held = u128::from(line.capacity().saturating_add(1)) << PLACE_SHIFT;
            Minted::from_place(self.last_rank()).plus(held)
        });
    }

    /// Moves the start of a line along that has not been changed for long, and writes off what no
    /// longer fits the bucket.
    #[cold]
    pub(super) fn renew(&self, elapsed: u64) {
        loop {
            let (head, line) = self.read();
            // A line that mints nothing, or one token in 584 years, never wraps.
            if line.rate <= Rate::LEAST || !line.is_old(elapsed) {
                return;
            }
            if line.has_wrapped(elapsed) {
                self.line.wrap(&line, elapsed);
                continue;
            }
            self.spill(&line, elapsed);
            let Some(end) = self.line.raise(elapsed) else {
                continue;
            };
            // The word is replaced as well: its last field says when that was.
            let minted = line.extended_to(end);
            let _ = self
                .line
                .replace(head, minted, end, line.rate, head.throttle());
            self.retire(&line, end);
        }
    }

    /// Writes off what does not fit the bucket of `line` at `at`.
    pub(super) fn spill(&self, line: &Line, at: u64) {
        let cancelled = self.waiters.total();
        let spilled =
            |issued| Ok::<_, core::convert::Infallible>(line.spilled(at, issued, cancelled));
        let _ = self.issue(spilled);
    }

    /// Takes a token if there is one or nothing is limited; else returns the nanoseconds until
    /// there is.
    fn take(&self, elapsed: u64) -> Option<u64> {
        let line = self.line_at(elapsed)?;
        let cancelled = self.waiters.total();
        let issued = self.take_one(line.level(elapsed, cancelled)).err()?;
        if !line.is_paused() {
            let nanos = line.wait_for_next(elapsed, issued, cancelled);
            return Some(nanos.min(self.reports().until_foretold(elapsed)));
        }
        // The bucket is empty until the pause ends.
        let end = self.resumed(&line, elapsed).since.max(elapsed);
        let next = line.spilled(end, issued, cancelled).plus(TOKEN);
        self.wait_of(&line, elapsed, next.less_tokens(cancelled))
    }

    /// Takes a token, and returns where `issued` is then; or where it is if there is none.
    #[inline]
    fn take_one(&self, level: Level) -> Result<Place, Place> {
        // Orderings as in `issue`. Two swaps, each with what it writes: a processor that guesses
        // which one it is need not wait for both. Models: `send_rate::two_takers_never_share_a_token`,
        // `send_rate::two_takers_never_share_the_token_of_a_full_bucket`.
        let issued = &self.promised.issued;
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

    /// Replaces the last token promised by what `step` makes of it, or returns the step's refusal.
    pub(super) fn issue<R>(
        &self,
        mut step: impl FnMut(Place) -> Result<Place, R>,
    ) -> Result<Place, R> {
        // Relaxed throughout: the word is a chain of read-modify-writes, which is totally ordered,
        // and publishes nothing. It was read after `cancelled`, whose acquire makes it at
        // least as new. Models: `send_rate::grants_never_exceed_what_was_minted`,
        // `send_rate::live_places_never_run_backwards`, `line::places_are_distinct_and_in_order`.
        let issued = &self.promised.issued;
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

    /// Takes the last token promised back to `before`, if it is still `last`: no place is behind
    /// it.
    pub(super) fn take_back(&self, last: Place, before: Place) -> bool {
        // Relaxed: see `issue`. A thread that has loaded `last` and swaps it later goes on from the
        // same state. Model: `line::a_place_given_up_is_counted_once`.
        let issued = &self.promised.issued;
        issued
            .compare_exchange(last.to_bits(), before.to_bits(), Relaxed, Relaxed)
            .is_ok()
    }

    /// Returns the last token promised, less those given back.
    pub(super) fn last_rank(&self) -> Place {
        let cancelled = self.waiters.total();
        // After `cancelled`: see `issue`.
        self.issued().less_tokens(cancelled)
    }

    /// Returns how many tokens are promised that `line` has not minted at `elapsed`, counting one
    /// that is begun.
    pub(super) fn waiting(&self, line: &Line, elapsed: u64) -> u64 {
        // To a clock that is behind, tokens of leases are not there yet: no request waits for them.
        let cancelled = self.waiters.total();
        let last = self
            .lending()
            .unspent(line, elapsed, cancelled)
            .less_tokens(cancelled);
        // A change of rate may take the line back by one unit, which is no token that is waited
        // for.
        let ahead = self
            .after_pause(line, elapsed)
            .unwrap_or(*line)
            .ahead(elapsed, last);
        ahead.saturating_sub(1).div_ceil(TOKEN)
    }

    /// Returns the tokens in the bucket of `line` at `elapsed`, with 64 fraction bits.
    pub(super) fn available(&self, line: &Line, elapsed: u64) -> u128 {
        let cancelled = self.waiters.total();
        let issued = self.lending().unspent(line, elapsed, cancelled);
        let Some(resumed) = self.after_pause(line, elapsed) else {
            return line.available(elapsed, issued, cancelled);
        };
        // A pause empties the bucket.
        let issued = line.spilled(resumed.since, issued, cancelled);
        resumed.available(elapsed, issued, cancelled)
    }

    /// Returns the line after the pause of `line` if there was one, and it is over at `elapsed`.
    fn after_pause(&self, line: &Line, elapsed: u64) -> Option<Line> {
        let resumed = line.is_paused().then(|| self.resumed(line, elapsed))?;
        (elapsed >= resumed.since).then_some(resumed)
    }

    /// Forgets when the next token comes: the line has changed, a place was taken, or tokens were
    /// given back.
    pub(super) fn forget_hint(&self) {
        self.promised.hint.forget();
    }

    /// Retires the places given up that have come due by `elapsed`, as far as records or many calls
    /// vouch for that clock: a wrong one must not let the waiters ahead of them go.
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
}

/// Returns the time from `start` to `now`, as words hold it.
pub(super) fn elapsed(start: Timestamp, now: Timestamp) -> u64 {
    now.as_nanos()
        .saturating_sub(start.as_nanos())
        .min(LAST_TIME)
}
