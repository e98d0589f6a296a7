//! How the rate follows from what is recorded: an outcome goes in, and a rate or a pause comes out.
//!
//! The law is a pure function of the state, of what was counted, and of the time. The state's word
//! decides which throttle counts. Whoever finds that the line does not follow the state yet changes
//! the line.
//!
//! | operation | state | line | gate |
//! |---|---|---|---|
//! | a throttle, or an answer that moves the state | replaced, by one swap | follows it | disturbed, before and after |
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
use super::state::Next;
use crate::bits::LAST_TIME;
use crate::fixed::Rate;
use crate::law::{Controller, Drain, Draining, Event, Past, Recorded, Response, State, Window};
use crate::line::{FINER, Head, Line, TOKEN};
use crate::{Outcome, SendPermit};

/// A limiter that limits, as its law moves the rate.
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
    /// Begins to limit with a full bucket, before any request.
    pub(super) fn begin(self, memory: u64) {
        let last = self.state.load();
        let _ = self.state.replace(last, last.next(0, memory));
        self.apply_state(0);
        let (_, line) = self.line().read();
        let _ = self
            .line()
            .issue(|issued| Ok::<_, Infallible>(issued.less(line.capacity())));
    }

    /// Takes in an answer that was not throttled, and the `window` that it was counted in; `gate`
    /// was seen before.
    pub(super) fn answered(
        self,
        elapsed: u64,
        permit: SendPermit,
        outcome: Outcome,
        window: Window,
        gate: GateWord,
    ) -> Recorded {
        let law = self.law.get();
        let sent = self.law.sent_at(permit, elapsed);
        self.lending().hand_back(elapsed);
        self.lending().collect(elapsed);
        let is_answer = outcome == Outcome::NotThrottled;
        if is_answer {
            if permit.is_timed() && !permit.is_earlier() {
                self.note_trip(elapsed.saturating_sub(sent));
            }
            self.drain(&law, elapsed, permit, false);
        }
        // A request that had no answer says nothing of a service that has said nothing.
        let is_silent =
            outcome == Outcome::Unknown && self.reports().phase() == Phase::FirstContact;
        let past = window.counted.filter(|_| !is_silent);
        // A request without a time was sent while nothing was limited: it opens nothing.
        let is_done = is_answer && permit.is_timed();
        let done = if is_done { permit.weight() } else { 0 };
        let recorded = self.respond(&law, elapsed, sent, done, past);
        if !self.state.load().is_engaged() {
            self.hold(elapsed);
        }
        self.follow(window.at);
        if !self.state.load().is_engaged() {
            // After the line has been let go, see `Gate`.
            let quiet = elapsed.saturating_add(LONGEST_QUIET);
            self.gate.quiet_until(gate, window.end.min(quiet), false);
        }
        self.waking().due(window.at);
        recorded
    }

    /// Records a throttle that asked for a pause of `hint`.
    #[cold]
    pub(super) fn throttled(self, now: u64, permit: SendPermit, hint: Duration) -> Recorded {
        self.lending().hand_back(now);
        let law = self.law.get();
        let mut now = now;
        if !law.moves_with_time() {
            self.meter.count(permit.weight());
            let window = self.meter.turn(&law, self.state.load(), now, now);
            now = window.at;
        }
        self.drain(&law, now, permit, true);
        let contradicted = self.reports().refuse(now, permit, hint);
        let pause = u64::try_from(hint.as_nanos()).unwrap_or(u64::MAX);
        // Of the published law a hint is only looked at.
        let longest = law.paced().map_or(0, |paced| paced.longest_pause());
        let until = now.saturating_add(pause.min(longest)).min(LAST_TIME);
        let recorded = self.replace_state(now, |last, fill| {
            let sent = if permit.is_timed() || !last.is_engaged() {
                self.law.sent_at(permit, now)
            } else {
                0 // while nothing was limited yet, so before the last cut
            };
            let event = Event {
                now,
                sent,
                done: 0,
                throttled: permit.weight(),
                until,
                fill,
                counted: self.meter.counted(),
                since_change: self.beside().baseline.since(last.version(), self.meter),
                past: None,
                is_used_up: &|| true,
            };
            let decision = law.respond(last, &event)?;
            let next = last.decided(decision);
            if !last.is_engaged() {
                // Before the state: see `DrainWord`.
                let first = Response {
                    now,
                    sent: Some(sent),
                    weight: permit.weight(),
                    throttled: true,
                };
                if let Drain::Counted(counts) = law.drain(next, None, &first) {
                    self.beside().drain.begin(next.version(), counts);
                }
            }
            Some(Next::with(next, &event.counted, decision))
        });
        // A shut service is asked by requests as heavy as the refused one, or by none.
        if permit.weight() > 1
            && law
                .shown(self.state.load(), self.meter.counted(), now)
                .is_shut
        {
            self.line().make_room(permit.weight());
        }
        self.reports().follow(now);
        if contradicted {
            return Recorded::Contradicted;
        }
        recorded
    }

    /// Counts a response after the first throttle, until all that was sent before it has come back,
    /// and corrects the state then, if it was wrong.
    fn drain(self, law: &Controller, now: u64, permit: SendPermit, throttled: bool) {
        let sent = permit.is_timed().then(|| self.law.sent_at(permit, now));
        let response = Response {
            now,
            sent,
            weight: permit.weight(),
            throttled,
        };
        let word = &self.beside().drain;
        loop {
            // In this order: see `DrainWord`.
            let state = self.state.load();
            let seen = word.load();
            let Some(counts) = seen.of(state.version()) else {
                if seen.is_past(state.version()) {
                    let _ = word.replace(seen, Draining::NONE);
                }
                return;
            };
            let next = match law.drain(state, Some(counts), &response) {
                Drain::Unchanged => return,
                Drain::Counted(counts) => Draining::new(state.version(), counts),
                Drain::Over(None) => Draining::NONE,
                Drain::Over(Some(memory)) => {
                    // If there was another throttle meanwhile it is that one's rate.
                    self.replace_state(now, |last, _| {
                        (last == state).then(|| last.next(last.since(), memory))
                    });
                    return;
                }
            };
            if word.replace(seen, next) {
                return;
            }
        }
    }

    /// Returns `true` if responses are counted to correct the first throttle, so that each has to
    /// look.
    fn is_draining(self, state: State) -> bool {
        self.beside().drain.load().of(state.version()).is_some()
    }

    /// Does what the law makes of a response that was not throttled, and of the window that is over
    /// with it. What time alone had added may be taken back: that is no cut.
    fn respond(
        self,
        law: &Controller,
        now: u64,
        sent: u64,
        done: u32,
        past: Option<Past>,
    ) -> Recorded {
        if done == 0 && past.is_none() {
            return Recorded::Counted;
        }
        let respond = |last: State, fill| {
            let event = Event {
                now,
                sent,
                done,
                throttled: 0,
                until: now,
                fill,
                counted: self.meter.counted(),
                since_change: None,
                past,
                is_used_up: &|| self.is_used_up(now),
            };
            let decision = law.respond(last, &event)?;
            let goes_on = !decision.is_end() || !self.is_waited_for(now);
            let next = law.decided(last, now, decision);
            goes_on.then(|| Next::with(next, &event.counted, decision))
        };
        // Most responses change nothing.
        if respond(self.state.load(), Rate::ZERO).is_none() {
            return Recorded::Counted;
        }
        match self.replace_state(now, respond) {
            Recorded::Cut => Recorded::Counted,
            recorded => recorded,
        }
    }

    /// Returns `true` if the bucket holds less than half of what it can, or no token.
    fn is_used_up(self, now: u64) -> bool {
        let (_, line) = self.line().read();
        let little = u128::from(line.capacity().wrapping_div(2).max(TOKEN)) << FINER;
        // Background leaves some of a known rate alone, and uses it up all the same.
        self.available(&line, now) < little || self.is_background_waiting()
    }

    /// Begins to limit if nothing is limited and the law does not allow that: it has just been
    /// given a ceiling, or a thread that had not seen the ceiling has switched the limiter off.
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

    /// Moves the fill rate to where the law has it at `now`, and lets responses be until that
    /// moves.
    pub(super) fn follow(self, now: u64) {
        // Before all that the rate is computed from.
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
            // By an older clock than the last cut's it is at the rate of the cut.
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
        // One try: a loss means that another response, which computes the same curve, or a
        // throttle, which must not be undone, came first.
        if rate == line.rate || self.line().change(head, line, now, rate, state.version()) {
            self.quieten_gate(law, state, now, rate, u64::MAX, gate);
        }
    }

    /// Notes until when `rate`, which was found at `now`, stays: `until` at most.
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
        // Until a wait can be foretold, any look may find another one.
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

    /// Replaces the law's state by what `next` makes of it and the fill rate, and lets that take
    /// effect; or leaves it.
    ///
    /// What is recorded is never lost: the call ends when it, or a later state, has taken effect,
    /// or when `next` makes nothing of the state.
    pub(super) fn replace_state<N: Into<Next>>(
        self,
        now: u64,
        next: impl Fn(State, Rate) -> Option<N>,
    ) -> Recorded {
        loop {
            let last = self.state.load();
            let head = self.line().head.head();
            // The head was read while this was the last state, so that it follows it or the one
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
            let Some(Next { state: next, cycle }) = next(last, fill).map(Into::into) else {
                return Recorded::Counted;
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

    /// Returns what it does to a limiter with the fill rate `fill` that `last` has become `next`.
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

    /// Lets the law's last state take effect, if it has not yet. Any thread may do it for the one
    /// that was throttled: the rate follows from the state's word.
    pub(super) fn apply_state(self, now: u64) {
        loop {
            // In this order: a head older than the state makes the change fail, never go back.
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

    /// Moves the rate to where the law has it, if time alone may have moved it since it was last
    /// looked at.
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

    /// Returns where the law's curve from `state` is at `now`, even if no thread has looked yet.
    pub(super) fn curve_at(self, state: State, now: u64) -> Rate {
        self.law.get().rate(state, now, Some(self.meter.reading()))
    }
}
