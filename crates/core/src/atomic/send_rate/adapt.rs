//! How the rate follows from what is recorded: an outcome goes in, and a rate or a pause comes out.
//!
//! The law is a pure function of the state, of what was counted, and of the time. A response asks
//! the law once, and again only after another thread has changed a word. The state's word decides
//! which throttle counts. A thread that finds a line older than the state changes the line.
//!
//! | operation | state | line | gate |
//! |---|---|---|---|
//! | a throttle, or an answer that moves the state | one swap | follows | disturbed, before and after |
//! | an answer that does not | | along the law's curve | quiet until that moves |
//! | time passes | | along the law's curve, by the next call that looks | quiet until that moves |
//!
//! A thread may stop between two columns of a row: the next call that looks goes on from there.

use core::convert::Infallible;
use core::ops::Deref;
use core::time::Duration;

use super::acquire::Engaged;
use super::gate::{GateWord, LONGEST_QUIET};
use super::limits::Phase;
use super::state::{Next, Step};
use crate::fixed::Rate;
use crate::law::{Controller, Drain, Draining, Recorded, Response, Seen, State, Window};
use crate::line::{FINER, Head, Line, TOKEN};
use crate::{Outcome, SendPermit};

/// The view of a limiter by which its law moves the rate.
#[derive(Clone, Copy)]
pub(super) struct Adaptation<'a>(&'a Engaged<'a>);

impl<'a> Deref for Adaptation<'a> {
    type Target = Engaged<'a>;

    fn deref(&self) -> &Engaged<'a> {
        self.0
    }
}

impl Engaged<'_> {
    /// Returns what moves the rate.
    #[inline]
    pub(super) const fn adaptation(&self) -> Adaptation<'_> {
        Adaptation(self)
    }
}

impl Adaptation<'_> {
    /// Begins to limit from `since` on, before any request: with a full bucket, or after a pause
    /// with an empty bucket.
    pub(super) fn begin(self, memory: u64, since: u64) {
        let last = self.state.load();
        let _ = self.state.replace(last, last.next(since, memory));
        self.apply_state(0);
        if since > 0 {
            return;
        }
        let (_, line) = self.line().read();
        let _ = self
            .line()
            .issue(|issued| Ok::<_, Infallible>(issued.less(line.capacity())));
    }

    /// Takes in an answer that was not throttled.
    pub(super) fn answered(self, now: u64, permit: SendPermit, outcome: Outcome) -> Recorded {
        let gate = self.gate.look();
        self.lending().hand_back(now);
        self.lending().collect(now);
        let is_answer = outcome == Outcome::NotThrottled;
        if is_answer && permit.is_timed() && !permit.is_earlier() {
            self.note_trip(now.saturating_sub(self.law.sent_at(permit, now)));
        }
        // Before the first report, a request without an answer says nothing about the service.
        let is_silent =
            outcome == Outcome::Unknown && self.reports().phase() == Phase::FirstContact;
        let (recorded, window) = self.respond(Response {
            now,
            sent: permit.is_timed().then(|| self.law.sent_at(permit, now)),
            done: if is_answer { permit.weight() } else { 0 },
            throttled: 0,
            pause: 0,
            is_silent,
        });
        if !self.state.load().is_engaged() {
            self.hold(now);
        }
        self.follow(window.at);
        if !self.state.load().is_engaged() {
            // After the line has ceased to limit: see `Gate`.
            let quiet = now.saturating_add(LONGEST_QUIET);
            self.gate.quiet_until(gate, window.end.min(quiet), false);
        }
        self.waking().due(window.at);
        match recorded {
            // Taking back what time alone had added is no cut.
            Recorded::Cut => Recorded::Counted,
            recorded => recorded,
        }
    }

    /// Records an answer that throttled `refused` tokens of the permit, and asked for a pause of
    /// `hint`. The other tokens were served.
    #[cold]
    pub(super) fn throttled(
        self,
        now: u64,
        permit: SendPermit,
        refused: u32,
        hint: Duration,
    ) -> Recorded {
        self.lending().hand_back(now);
        let done = permit.weight().saturating_sub(refused);
        let counts = if self.law.moves_with_time() {
            done
        } else {
            permit.weight()
        };
        if counts > 0 {
            self.meter.count(counts);
        }
        let contradicted = refused > 0 && self.reports().refuse(now, permit, hint);
        let (recorded, window) = self.respond(Response {
            now,
            sent: permit.is_timed().then(|| self.law.sent_at(permit, now)),
            done,
            throttled: refused,
            pause: u64::try_from(hint.as_nanos()).unwrap_or(u64::MAX),
            is_silent: false,
        });
        let now = window.at;
        // Perhaps only requests as heavy as the refused one will ask the shut service again. So the
        // bucket must hold such a request.
        let law = self.law.get();
        let shown = || law.shown(self.state.load(), self.meter.counted(), now);
        if refused > 1 && shown().is_shut {
            self.line().make_room(refused);
        }
        self.reports().follow(now);
        if contradicted {
            return Recorded::Contradicted;
        }
        recorded
    }

    /// Applies the law's decision on a response, and on a window that the response ends.
    ///
    /// The law is asked once more only if another thread has changed a word meanwhile. A window
    /// that this response has ended stays part of its result. Model:
    /// `paced::a_window_never_undoes_a_throttle`.
    fn respond(self, response: Response) -> (Recorded, Window) {
        let now = response.now;
        let law = self.law.get();
        let mut window = Window::unturned(now);
        let mut past = None;
        let recorded = self.replace_state(now, |last, fill| {
            // After the state: see `DrainWord`.
            let drained = self.beside().drain.load();
            let draining = drained.of(last.version());
            let (reading, cycle) = self.meter.seen();
            // Only a throttle is compared with the count since the last state.
            let since_change = (response.throttled > 0)
                .then(|| self.beside().baseline.since(last.version(), self.meter))
                .flatten();
            let seen = Seen {
                fill,
                reading,
                cycle,
                counts: &|| self.meter.counts(),
                draining,
                since_change,
                past,
                is_used_up: &|| self.is_used_up(now),
                is_waited_for: &|| self.is_waited_for(now),
            };
            let effects = law.respond(last, response, &seen);
            if !self.meter.take_turn((reading, cycle), &effects.window) {
                return Step::Again;
            }
            window = effects.window;
            past = past.or(window.counted);
            let counts = match effects.drain {
                // The counts of a past state must be dropped before its version comes back.
                Drain::Unchanged if drained.is_past(last.version()) => Some(Draining::NONE),
                Drain::Unchanged | Drain::Over(Some(_)) => None,
                Drain::Counted(counts) => Some(Draining::new(last.version(), counts)),
                Drain::Over(None) => Some(Draining::NONE),
            };
            if let Some(counts) = counts {
                let is_replaced = self.beside().drain.replace(drained, counts);
                if !is_replaced && draining.is_some() {
                    return Step::Again;
                }
            }
            // If the state's swap is lost from here on, the winning state has another version. So
            // this response does not count twice.
            let Some(state) = effects.next else {
                return Step::Keep;
            };
            if let Some(counts) = effects.begun {
                // Before the state: see `DrainWord`.
                self.beside().drain.begin(state.version(), counts);
            }
            let cycle = effects
                .cycle
                .map(|next| (window.cycle.unwrap_or(cycle), next));
            Step::Enter(Next { state, cycle })
        });
        (recorded, window)
    }

    /// Returns `true` if responses are counted to correct the first throttle, so that each has to
    /// look.
    fn is_draining(self, state: State) -> bool {
        self.beside().drain.load().of(state.version()).is_some()
    }

    /// Returns `true` if the bucket holds less than half of what it can, or no token.
    fn is_used_up(self, now: u64) -> bool {
        let (_, line) = self.line().read();
        let little = u128::from(line.capacity().wrapping_div(2).max(TOKEN)) << FINER;
        // Background leaves some tokens of a known rate alone. Even so, a rate for which background
        // waits is used up.
        self.available(&line, now) < little || self.is_background_waiting()
    }

    /// Begins to limit if nothing is limited although the law always limits. The law has just got a
    /// ceiling, or a thread that had not seen the ceiling has switched the limiter off.
    pub(super) fn hold(self, now: u64) {
        let Some(memory) = self.law.get().unthrottled().later else {
            return;
        };
        self.gate.engage();
        self.replace_state(now, |last, _| {
            (!last.is_engaged()).then(|| last.next(now, memory))
        });
    }

    /// Returns `true` if there are places in line, or behind it, whose turn has not come.
    fn is_waited_for(self, now: u64) -> bool {
        self.waiting(&self.line().read().1, now) > 0 || self.is_background_waiting()
    }

    /// Moves the fill rate to the law's rate at `now`, and lets responses pass until that rate
    /// moves.
    pub(super) fn follow(self, now: u64) {
        // Before all words that the rate is computed from.
        let gate = self.gate.look();
        if !gate.is_engaged() {
            return;
        }
        loop {
            let (head, line) = self.line().read();
            let state = self.state.load();
            if !head.follows(state.version()) {
                self.apply_state(now);
                continue;
            }
            if state.is_engaged()
                && !line.is_stale(now)
                && self.reports().move_rate(head, &line, state, now, gate)
            {
                return;
            }
            // In a pause there is nothing to move.
            if !state.is_engaged() || (line.is_paused() && now < state.since()) {
                return;
            }
            if line.is_stale(now) {
                self.line().renew(now);
                continue;
            }
            let law = self.law.get();
            if line.is_paused() {
                // A pause ends when it was to end, not when a caller looks.
                let rate = law.resumed(state);
                self.line()
                    .change(head, &line, state.since(), rate, state.version());
                continue;
            }
            // By a clock older than the last cut, the rate is the rate of the cut.
            let now = now.max(state.since());
            return self.follow_law(&law, head, &line, state, now, gate);
        }
    }

    /// Moves the rate of `head` along the law's curve.
    fn follow_law(
        self,
        law: &Controller,
        head: Head,
        line: &Line,
        state: State,
        now: u64,
        gate: GateWord,
    ) {
        let rate = self.curve_at(state, now);
        // One try: a loss means that another thread came first. It computed the same curve, or
        // recorded a throttle, which must not be undone.
        if rate == line.rate || self.line().change(head, line, now, rate, state.version()) {
            self.quieten_gate(law, state, now, rate, u64::MAX, gate);
        }
    }

    /// Notes until when `rate`, which was found at `now`, stays in force: `until` at most.
    pub(super) fn quieten_gate(
        self,
        law: &Controller,
        state: State,
        now: u64,
        rate: Rate,
        until: u64,
        gate: GateWord,
    ) {
        let reading = self.meter.reading();
        let quiet = law.quiet(state, now, rate, reading);
        let steady = quiet.rate.min(until);
        // Until a wait can be foretold, any look may find another wait.
        if steady > now && self.reports().until_foretold(now) == u64::MAX {
            let steady = steady.min(now.saturating_add(LONGEST_QUIET));
            let counting = quiet.window <= now || quiet.each || self.is_draining(state);
            let quiet = if counting {
                steady
            } else {
                steady.min(quiet.window)
            };
            self.gate.quiet_until(gate, quiet, counting);
        }
    }

    /// Replaces the law's state by what `next` makes of the state and the fill rate, and applies
    /// the new state; or leaves the state.
    ///
    /// No record is lost. The call ends when the new state or a later state has taken effect, or
    /// when `next` leaves the state.
    pub(super) fn replace_state<N: Into<Step>>(
        self,
        now: u64,
        mut next: impl FnMut(State, Rate) -> N,
    ) -> Recorded {
        loop {
            let last = self.state.load();
            let head = self.line().head.head();
            // The head was read while `last` was the state, so the head follows `last` or the state
            // before.
            if self.state.load() != last {
                continue;
            }
            if !head.follows(last.version()) {
                self.apply_state(now);
                continue;
            }
            let baseline = self.beside().baseline.load();
            let fill = head.rate();
            let Next { state: next, cycle } = match next(last, fill).into() {
                Step::Keep => return Recorded::Counted,
                Step::Again => continue,
                Step::Enter(next) => next,
            };
            // Before and after: see `Gate`, and `lease`.
            self.end_leases();
            self.gate.disturb();
            if !self.state.replace(last, next) {
                continue;
            }
            if let Some((seen, next)) = cycle {
                self.meter.change_cycle(seen, next);
            }
            if next.is_of_same_cut(last, now) {
                self.beside()
                    .baseline
                    .carry(baseline, last.version(), next.version());
            } else {
                self.beside()
                    .baseline
                    .advance(baseline, next.version(), self.meter);
            }
            self.end_leases();
            self.gate.disturb();
            self.apply_state(now);
            return self.effect(last, fill, next, now);
        }
    }

    /// Returns the effect on a limiter with the fill rate `fill` when `last` becomes `next`.
    fn effect(self, last: State, fill: Rate, next: State, now: u64) -> Recorded {
        if !next.is_engaged() {
            return Recorded::Ended;
        }
        let law = self.law.get();
        let (_, rate) = law.first_rate(next, now);
        let fill = if law.moves_with_time() && last.is_engaged() {
            self.curve_at(last, now)
        } else {
            fill
        };
        if !last.is_engaged() || rate < fill {
            Recorded::Cut
        } else {
            Recorded::Counted
        }
    }

    /// Applies the law's last state to the line, if not yet done. Any thread may do this for the
    /// throttled thread, because the rate follows from the state's word.
    pub(super) fn apply_state(self, now: u64) {
        loop {
            // In this order, a head older than the state makes the change fail, and no change goes
            // back.
            let (head, line) = self.line().read();
            let state = self.state.load();
            if head.follows(state.version()) {
                return;
            }
            let pace = || self.reports().pace(state, now);
            let (from, rate) = match state.is_engaged().then(pace).flatten() {
                Some(pace) => (now, pace.rate_now()),
                None => self.law.get().first_rate(state, now),
            };
            self.line().change(head, &line, from, rate, state.version());
        }
    }

    /// Moves the rate to the law's rate, if time alone may have moved the latter since the last
    /// look.
    pub(super) fn catch_up(self, elapsed: u64) -> bool {
        let moves = self.law.moves_with_time() && !self.gate.load().is_quiet(elapsed);
        if moves {
            self.follow(elapsed);
        }
        moves
    }

    /// Returns the fill rate by `state` at `now`, even if the line of `head` does not follow yet.
    pub(super) fn fill_rate(self, state: State, head: Head, line: &Line, now: u64) -> Rate {
        let law = self.law.get();
        if law.moves_with_time() {
            if let Some(pace) = self.reports().pace(state, now) {
                return pace.rate_now();
            }
            self.curve_at(state, now)
        } else if head.follows(state.version()) {
            line.rate
        } else {
            law.first_rate(state, now).1
        }
    }

    /// Returns the rate on the law's curve from `state` at `now`, even if no thread has looked yet.
    pub(super) fn curve_at(self, state: State, now: u64) -> Rate {
        self.law.get().rate(state, now, Some(self.meter.reading()))
    }
}
