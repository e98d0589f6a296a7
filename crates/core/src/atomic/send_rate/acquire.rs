//! Which requests may go, and how long the others wait.
//!
//! `try_acquire_with` loads the words before it reads the clock. A pause or a cut may come between
//! the loads and the clock. Then that call may be granted one token of the line that it has loaded.
//! That is one token for each caller between the two steps. Stall test:
//! `a_pause_at_any_step_of_a_call_costs_one_token`.

use core::ops::Deref;
use core::time::Duration;

use super::SendRate;
use super::behind::MaybeBehind;
use super::controller::BoundLaw;
use super::gate::{Gate, GateWord};
use super::head::HeadWords;
use super::lease::{Lease, Leases};
use super::limits::{Burst, Phase};
use super::meter::Meter;
use super::permit::{AcquireError, Order};
use super::state::{CutBaseline, DrainWord, LastState};
use super::token_line::{BEGINNING, GIVEN_UP, Promised, TokenLine};
use super::waiters::Waiters;
use crate::Timestamp;
use crate::atomic::lazy::Lazy;
use crate::atomic::sync::{AtomicU64, Ordering::Relaxed};
use crate::bits::LAST_TIME;
use crate::fixed::Rate;
use crate::line::{LONGEST, Level, Line, Place, TOKEN};
use crate::padded::Padded;

/// The words that a limiter needs once it limits; before its first throttle it has none.
pub(super) struct Words {
    head: HeadWords,
    pub(super) state: LastState,
    waiters: Waiters,
    /// What every limited request writes, in its own cache line.
    promised: Padded<Promised<Beside>>,
    /// How often all leases have been ended: see `lease`.
    pub(super) changes: AtomicU64,
    /// Made when a thread first takes tokens ahead.
    pub(super) leases: Lazy<Leases>,
}

/// Words in the cache line of the last token promised.
pub(super) struct Beside {
    /// The position of the last request sent, if declared limits are obeyed.
    pub(super) sent: AtomicU64,
    /// The requests of the first burst that have been given a token.
    pub(super) first: Burst,
    // The fields below are used seldom. They stand here because this cache line has room.
    /// Used for one round trip after a first throttle.
    pub(super) drain: DrainWord,
    pub(super) baseline: CutBaseline,
    /// The average round trip in nanoseconds; 0 before the first response that was looked at.
    pub(super) trip: AtomicU64,
    /// The second line. It stands here for the same reason.
    pub(super) behind: MaybeBehind,
}

/// Where positions of sends begin: just before the wrap of the bits that a permit holds, so that
/// every test crosses the wrap.
pub(super) const FIRST_SEND: u64 = (1 << 31) - 2;

impl Words {
    /// Creates the words of a line that mints nothing, for buckets that hold `burst` nanoseconds at
    /// their rate.
    pub(super) fn new(burst: u64) -> Self {
        let beside = Beside {
            sent: AtomicU64::new(FIRST_SEND),
            first: Burst::of(1), // the bucket begins with its token
            drain: DrainWord::new(),
            baseline: CutBaseline::new(),
            trip: AtomicU64::new(0),
            behind: MaybeBehind::new(),
        };
        Self {
            head: HeadWords::new(BEGINNING, burst),
            state: LastState::new(),
            waiters: Waiters::new(GIVEN_UP),
            promised: Padded::new(Promised::new(beside)),
            changes: AtomicU64::new(0),
            leases: Lazy::new(Leases::new),
        }
    }

    pub(super) fn beside(&self) -> &Beside {
        &self.promised.beside
    }

    /// Averages the trip of a request into the earlier trips. Of two trips noted at once one is
    /// lost, and the next trip makes up for it.
    #[inline]
    pub(super) fn note_trip(&self, trip: u64) {
        // Relaxed, in both places and in the snapshot: an average that is only shown.
        let last = self.beside().trip.load(Relaxed);
        let next = match last {
            0 => trip,
            last => last.wrapping_sub(last >> 3).wrapping_add(trip >> 3), // at most the larger
        };
        self.beside().trip.store(next.max(1), Relaxed);
    }

    /// Returns the position of the last request sent, of a limiter that obeys declared limits.
    pub(super) fn sent(&self) -> u64 {
        // Relaxed: see `Reports::send`.
        self.beside().sent.load(Relaxed)
    }
}

/// A limiter that limits, or is about to: the words made for this, and the words that it has from
/// the start.
#[derive(Clone, Copy)]
pub(super) struct Engaged<'a> {
    pub(super) words: &'a Words,
    pub(super) gate: &'a Gate,
    pub(super) meter: &'a Meter,
    pub(super) law: &'a BoundLaw,
}

impl Deref for Engaged<'_> {
    type Target = Words;

    fn deref(&self) -> &Words {
        self.words
    }
}

impl<'a> Engaged<'a> {
    #[inline]
    pub(super) const fn new(rate: &'a SendRate, words: &'a Words) -> Self {
        Self {
            words,
            gate: &rate.gate,
            meter: &rate.meter,
            law: &rate.law,
        }
    }

    /// Returns the line of tokens.
    #[inline]
    pub(super) fn line(&self) -> TokenLine<'a, Beside> {
        TokenLine {
            head: &self.words.head,
            waiters: &self.words.waiters,
            promised: &self.words.promised,
            gate: self.gate,
        }
    }

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
        let taken = if let Some(wait) = self.line().hint.wait(gate, elapsed) {
            Err(wait)
        } else {
            let (_, line) = self.line().look();
            let cancelled = self.line().waiters.total();
            self.try_line(gate, &line, cancelled, elapsed)
        };
        taken.map_err(|nanos| self.since_now(now, nanos))
    }

    /// Does the same as [`try_acquire`](Self::try_acquire), but reads the clock after the words.
    /// Also returns the time read.
    ///
    /// In this order the loads do not wait for the time stamp counter, which holds back later
    /// instructions. If the rate falls in between, one token may be granted that only the old line
    /// had. `lease` is the lease of the calling thread, if it has had one.
    #[inline(never)]
    pub(super) fn try_timed(
        &self,
        lease: Option<&Lease>,
        gate: GateWord,
        now: impl FnOnce() -> Timestamp,
    ) -> (Timestamp, Result<Order, u64>) {
        if let Some(lease) = lease {
            // Relaxed: see `end_leases`.
            let changes = self.changes.load(Relaxed);
            let now = now();
            let elapsed = self.unbounded(now);
            if lease.reckon(changes, now.as_nanos(), false) {
                lease.note_time(now.as_nanos());
                return (now, Ok(Order::CHARGED));
            }
            self.lending().hand_back_of(lease, elapsed);
            return (now, self.try_bucket(gate, now, elapsed));
        }
        let (_, line) = self.line().look();
        let cancelled = self.line().waiters.total();
        let now = now();
        let elapsed = self.unbounded(now);
        let taken = match self.line().hint.wait(gate, elapsed) {
            Some(wait) => Err(wait),
            None => self.try_line(gate, &line, cancelled, elapsed),
        };
        (now, taken.map_err(|nanos| self.since_now(now, nanos)))
    }

    /// Returns the time since the start, not limited to what words hold.
    #[inline]
    const fn unbounded(&self, now: Timestamp) -> u64 {
        now.as_nanos().saturating_sub(self.law.start.as_nanos())
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
        // A time long after the last change, or before it, is handled apart.
        let is_other = elapsed.wrapping_sub(line.since) >= LONGEST || line.rate <= Rate::LEAST;
        if is_other || self.reports().may_go(elapsed, 1).is_err() {
            return self.try_again(elapsed);
        }
        let level = Level::new(line.extended_to(elapsed), line.capacity(), cancelled);
        let lends = self.law.lends() && line.rate.raw() >= Leases::LEAST_RATE;
        if lends && self.lending().take_ahead(elapsed) {
            return Ok(Order::CHARGED);
        }
        match self.line().take_one(level) {
            Ok(issued) => {
                if level.is_dry(issued) && gate.is_quiet(elapsed) {
                    let next = issued.plus(TOKEN).less_tokens(cancelled);
                    let wait = line.wait_for(elapsed, next).unwrap_or(0);
                    self.line()
                        .promised
                        .hint
                        .note(gate, elapsed.saturating_add(wait));
                }
                self.send_granted(elapsed)
            }
            Err(issued) if gate.is_quiet(elapsed) || !self.law.moves_with_time() => {
                Err(line.wait_for_next(elapsed, issued, cancelled))
            }
            Err(_) => self.try_again(elapsed),
        }
    }

    /// Counts the granted request as sent. Gives its token back if another request has just taken
    /// the rest of a declared limit.
    #[inline]
    fn send_granted(&self, elapsed: u64) -> Result<Order, u64> {
        let sent = self.reports().sent(elapsed, 1, false);
        sent.inspect_err(|_| self.line().give_back(1))
    }

    /// Tries again after handling all that may be in the way. This is a throttle not yet in effect,
    /// a curve that has moved, a line to be renewed, or a pause.
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
        self.line().renew(elapsed);
        if self.reports().phase() == Phase::Declared {
            self.adaptation().catch_up(elapsed);
            self.reports().may_go(elapsed, 1)?;
        }
        let Some(nanos) = self.take(elapsed) else {
            return granted();
        };
        let first = self.reports().goes_first(None, elapsed);
        if !self.adaptation().catch_up(elapsed) && !first {
            return Err(nanos);
        }
        let gate = self.gate.look();
        let Some(nanos) = self.take(elapsed) else {
            return granted();
        };
        if gate.is_quiet(elapsed) {
            self.line()
                .promised
                .hint
                .note(gate, elapsed.saturating_add(nanos));
        }
        Err(nanos)
    }

    /// Returns the wait of `nanos` after `now`, or after the start if that is later.
    pub(super) const fn wait(&self, now: Timestamp, nanos: u64) -> Duration {
        Duration::from_nanos(self.since_now(now, nanos))
    }

    /// Returns the refusal of a request that would have to wait for `nanos` after `now`.
    pub(super) const fn not_in_time(&self, now: Timestamp, nanos: u64) -> AcquireError {
        let wait = self.wait(now, nanos);
        AcquireError::NotInTime { wait }
    }

    /// Returns `nanos`, plus the time from `now` to the start if the start is later.
    const fn since_now(&self, now: Timestamp, nanos: u64) -> u64 {
        let early = self.law.start.as_nanos().saturating_sub(now.as_nanos());
        nanos.saturating_add(early)
    }

    /// Returns the nanoseconds until the turn of `place`, after a look at the law; `None` if it has
    /// come.
    pub(super) fn nanos_until(&self, place: Place, elapsed: u64) -> Option<u64> {
        let rank = |line: &_| {
            self.line().retire(line, elapsed);
            place.less_tokens(self.line().waiters.before(place))
        };
        self.nanos_until_rank(rank, elapsed)
    }

    /// Returns the same as [`nanos_until`](Self::nanos_until), for the place whose rank `rank`
    /// returns.
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
        if self.adaptation().catch_up(elapsed) {
            return wait();
        }
        Some(nanos)
    }

    /// Returns the nanoseconds until `line`, or the line after its pause, reaches `rank`, or until
    /// that can be foretold. `None` if `rank` has been reached.
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

    /// Returns the line after the pause of `line`: the line that the change at the end of the pause
    /// makes.
    pub(super) fn resumed(&self, line: &Line, elapsed: u64) -> Line {
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
            let (_, line) = self.line().read();
            if line.rate == Rate::ZERO {
                if !self.state.load().is_engaged() {
                    return None;
                }
                self.adaptation().apply_state(elapsed);
            } else if line.is_stale(elapsed) {
                self.line().renew(elapsed);
            } else {
                return Some(line);
            }
        }
    }

    /// Takes a token. Returns `None` if it did or if nothing is limited, else the nanoseconds until
    /// there is a token.
    fn take(&self, elapsed: u64) -> Option<u64> {
        let line = self.line_at(elapsed)?;
        let cancelled = self.line().waiters.total();
        let issued = self.line().take_one(line.level(elapsed, cancelled)).err()?;
        if !line.is_paused() {
            let nanos = line.wait_for_next(elapsed, issued, cancelled);
            return Some(nanos.min(self.reports().until_foretold(elapsed)));
        }
        // The bucket is empty until the pause ends.
        let end = self.resumed(&line, elapsed).since.max(elapsed);
        let next = line.spilled(end, issued, cancelled).plus(TOKEN);
        self.wait_of(&line, elapsed, next.less_tokens(cancelled))
    }

    /// Returns how many promised tokens `line` has not minted at `elapsed`, rounded up.
    pub(super) fn waiting(&self, line: &Line, elapsed: u64) -> u64 {
        // For a clock that is behind, tokens of leases are not minted yet. No request waits for
        // these.
        let cancelled = self.line().waiters.total();
        let last = self
            .lending()
            .unspent(line, elapsed, cancelled)
            .less_tokens(cancelled);
        // A change of rate may take the line back by one unit, which is no promised token.
        let ahead = self
            .after_pause(line, elapsed)
            .unwrap_or(*line)
            .ahead(elapsed, last);
        ahead.saturating_sub(1).div_ceil(TOKEN)
    }

    /// Returns the tokens in the bucket of `line` at `elapsed`, with 64 fraction bits.
    pub(super) fn available(&self, line: &Line, elapsed: u64) -> u128 {
        let cancelled = self.line().waiters.total();
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
}
