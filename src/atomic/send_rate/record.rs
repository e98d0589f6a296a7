//! What is recorded, and how the rate follows from it.

use core::time::Duration;

use super::SendRate;
use super::acquire::{Engaged, Words, elapsed};
use super::gate::LONGEST_QUIET;
use super::limits::Phase;
use super::permit::{Outcome, Recorded, SendPermit};
use crate::Timestamp;
use crate::atomic::sync::Ordering::Relaxed;
use crate::bits::LAST_TIME;
use crate::fixed::Rate;
use crate::law::{
    Controller, Counted, Decision, Drain, Draining, Event, Law as _, Past, Response, State,
};
use crate::line::{FINER, Head, Line, TOKEN};

impl SendRate {
    /// Records the outcome of a request, and returns what that did to the send rate.
    ///
    /// Call it once for every response, throttled or not, and for every attempt that failed without
    /// one. A request that was sent and then given up is [`Outcome::Unknown`].
    #[allow(
        clippy::must_use_candidate,
        reason = "called for its effect, which the models' atomics hide"
    )]
    pub fn record(&self, now: Timestamp, permit: SendPermit, outcome: Outcome) -> Recorded {
        let elapsed = self.elapsed(now);
        let hint = match outcome {
            Outcome::Unknown => return self.record_unanswered(elapsed, permit),
            Outcome::Failed if self.law.moves_with_time() => {
                return self.record_failed(elapsed, permit);
            }
            Outcome::NotThrottled | Outcome::Failed => {
                self.note_answer();
                self.meter.count(permit.weight());
                return self.look(elapsed, permit);
            }
            Outcome::Throttled => Duration::ZERO,
            Outcome::ThrottledFor(hint) => hint,
        };
        self.record_throttled(elapsed, permit, hint)
    }

    // Out of the way of a response that was not throttled.
    #[cold]
    #[inline(never)]
    fn record_throttled(&self, elapsed: u64, permit: SendPermit, hint: Duration) -> Recorded {
        self.note_answer();
        self.gate.engage();
        self.about_to_limit()
            .record_throttled(elapsed, permit, hint)
    }

    /// Records the outcome of a request like [`record`](Self::record), and asks for the time only
    /// if it matters.
    ///
    /// Reading the clock costs more than the rest of an unlimited request. So while nothing is
    /// limited, a thread reads it once for as many requests as came in a millisecond, at most 255.
    /// A thread whose requests come evenly reads it every 2 ms or more often. A slow thread reads
    /// it each time.
    ///
    /// # What it costs in exactness
    ///
    /// No count is lost or late. Only the end of a window, in which the rate is measured, is
    /// noticed late: by 2 ms if requests come evenly, by up to 255 requests of each thread if their
    /// rate drops. So at the first throttle the measured rate may be off by 1/250, and by more if
    /// the traffic had just subsided. From then on every request reads the clock. Threads beyond
    /// 256, and all threads without the feature `std`, read it each time.
    #[allow(
        clippy::must_use_candidate,
        reason = "called for its effect, which the models' atomics hide"
    )]
    pub fn record_with(
        &self,
        now: impl FnOnce() -> Timestamp,
        permit: SendPermit,
        outcome: Outcome,
    ) -> Recorded {
        if outcome != Outcome::NotThrottled || permit.weight() != 1 {
            return self.record(now(), permit, outcome);
        }
        if self.count_untimed() {
            return Recorded::Counted;
        }
        let elapsed = self.elapsed(now());
        self.note_answer();
        if self.gate.load().is_engaged() {
            self.meter.count(1);
        } else {
            self.meter.count_at(elapsed);
        }
        self.look(elapsed, permit)
    }

    /// Counts a request that was not throttled without a look at the clock, if that may be.
    #[inline]
    pub(crate) fn count_untimed(&self) -> bool {
        !self.gate.load().is_engaged() && self.meter.count_untimed()
    }

    /// Does what there is to do after a response was counted, which is nothing while the gate is
    /// quiet.
    #[inline]
    fn look(&self, elapsed: u64, permit: SendPermit) -> Recorded {
        let gate = self.gate.load();
        if gate.is_quiet_for_responses(elapsed) {
            return Recorded::Counted;
        }
        self.look_closely(elapsed, permit, Outcome::NotThrottled)
    }

    /// Counts a request that was given up before it was answered.
    #[cold]
    fn record_unanswered(&self, elapsed: u64, permit: SendPermit) -> Recorded {
        self.meter.count(permit.weight());
        if self.gate.load().is_quiet_for_responses(elapsed) {
            return Recorded::Counted;
        }
        self.look_closely(elapsed, permit, Outcome::Unknown)
    }

    /// Counts a request that failed for another reason than the limit.
    #[cold]
    fn record_failed(&self, elapsed: u64, permit: SendPermit) -> Recorded {
        self.note_answer();
        self.meter.count_failed(permit.weight());
        if self.gate.load().is_quiet_for_responses(elapsed) {
            return Recorded::Counted;
        }
        self.look_closely(elapsed, permit, Outcome::Failed)
    }

    #[inline(never)]
    fn look_closely(&self, elapsed: u64, permit: SendPermit, outcome: Outcome) -> Recorded {
        let gate = self.gate.look();
        let sent = sent_at(self.start(), permit, elapsed);
        let engaged = self.words();
        let law = self.law.get();
        let state = engaged.map_or(State::NONE, |engaged| engaged.state.load());
        let window = self.meter.turn(&law, state, elapsed, sent);
        let Some(engaged) = engaged else {
            self.gate.quiet_until(gate, window.end, false);
            return Recorded::Counted;
        };
        engaged.lending().hand_back(elapsed);
        engaged.lending().collect(elapsed);
        if outcome == Outcome::NotThrottled {
            if permit.is_timed() && !permit.is_earlier() {
                engaged.note_trip(elapsed.saturating_sub(sent));
            }
            engaged.drain(&law, elapsed, permit, false);
        }
        // A request that had no answer says nothing of a service that has said nothing.
        let is_silent =
            outcome == Outcome::Unknown && engaged.reports().phase() == Phase::FirstContact;
        let past = window.counted.filter(|_| !is_silent);
        // A request without a time was sent while nothing was limited: it opens nothing.
        let is_done = outcome == Outcome::NotThrottled && permit.is_timed();
        let done = if is_done { permit.weight() } else { 0 };
        let recorded = engaged.respond(&law, elapsed, sent, done, past);
        if !engaged.state.load().is_engaged() {
            engaged.hold(elapsed);
        }
        engaged.follow(window.at);
        if !engaged.state.load().is_engaged() {
            // After the line has been let go, see `Gate`.
            let quiet = elapsed.saturating_add(LONGEST_QUIET);
            self.gate.quiet_until(gate, window.end.min(quiet), false);
        }
        engaged.wake_due(window.at);
        recorded
    }
}

/// The state that replaces another one, and the cycle that was seen, with the one that begins.
pub(super) struct Next {
    state: State,
    cycle: Option<(u128, u128)>,
}

impl Next {
    fn with(state: State, seen: &Counted, decision: Decision) -> Self {
        let cycle = match decision {
            Decision::Limit { cycle, .. } => cycle.map(|next| (seen.cycle, next)),
            Decision::End => None,
        };
        Self { state, cycle }
    }
}

impl From<State> for Next {
    fn from(state: State) -> Self {
        Self { state, cycle: None }
    }
}

/// Returns when a request was sent that was answered at `elapsed`: then, if it is not known.
pub(super) fn sent_at(start: Timestamp, permit: SendPermit, at: u64) -> u64 {
    if permit.is_timed() {
        elapsed(start, permit.time()).min(at)
    } else {
        at
    }
}

impl Words {
    /// Averages the trip of a request that was looked at into those before. Of two threads at once
    /// one is lost, and the next makes up for it.
    #[inline]
    fn note_trip(&self, trip: u64) {
        // Relaxed, in both places and in the snapshot: an average that is only shown.
        let last = self.promised.trip.load(Relaxed);
        let next = match last {
            0 => trip,
            last => last.wrapping_sub(last >> 3).wrapping_add(trip >> 3), // at most the larger
        };
        self.promised.trip.store(next.max(1), Relaxed);
    }
}

impl Engaged<'_> {
    /// Records a throttle that asked for a pause of `hint`.
    #[cold]
    fn record_throttled(&self, now: u64, permit: SendPermit, hint: Duration) -> Recorded {
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
                sent_at(self.start, permit, now)
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
                since_change: self.promised.baseline.since(last.version(), self.meter),
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
                    self.promised.drain.begin(next.version(), counts);
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
            self.make_room(permit.weight());
        }
        self.reports().follow(now);
        if contradicted {
            return Recorded::Contradicted;
        }
        recorded
    }

    /// Counts a response after the first throttle, until all that was sent before it has come back,
    /// and corrects the state then, if it was wrong.
    fn drain(&self, law: &Controller, now: u64, permit: SendPermit, throttled: bool) {
        let sent = permit.is_timed().then(|| sent_at(self.start, permit, now));
        let response = Response {
            now,
            sent,
            weight: permit.weight(),
            throttled,
        };
        let word = &self.promised.drain;
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
    fn is_draining(&self, state: State) -> bool {
        self.promised.drain.load().of(state.version()).is_some()
    }

    /// Does what the law makes of a response that was not throttled, and of the window that is over
    /// with it. What time alone had added may be taken back: that is no cut.
    fn respond(
        &self,
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
    fn is_used_up(&self, now: u64) -> bool {
        let (_, line) = self.read();
        let little = u128::from(line.capacity().wrapping_div(2).max(TOKEN)) << FINER;
        // Background leaves some of a known rate alone, and uses it up all the same.
        self.available(&line, now) < little || self.is_background_waiting()
    }

    /// Begins to limit if nothing is limited and the law does not allow that: it has just been
    /// given a ceiling, or a thread that had not seen the ceiling has switched the limiter off.
    pub(super) fn hold(&self, now: u64) {
        let Some(memory) = self.law.get().unthrottled().later else {
            return;
        };
        self.gate.engage();
        self.replace_state(now, |last, _| {
            (!last.is_engaged()).then(|| last.next(now, memory))
        });
    }

    /// Returns `true` if there are places in line, or behind it, whose turn has not come.
    fn is_waited_for(&self, now: u64) -> bool {
        self.waiting(&self.read().1, now) > 0 || self.is_background_waiting()
    }

    /// Moves the fill rate to where the law has it at `now`, and lets responses be until that
    /// moves.
    pub(super) fn follow(&self, now: u64) {
        // Before all that the rate is computed from.
        let gate = self.gate.look();
        if !gate.is_engaged() {
            return;
        }
        loop {
            let (head, line) = self.read();
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
                self.renew(now);
                continue;
            }
            let law = self.law.get();
            if line.is_paused() {
                // A pause ends when it was to end, not when a caller looks.
                let rate = law.resumed(state);
                self.change(head, &line, state.since(), rate, state);
                continue;
            }
            // By an older clock than the last cut's it is at the rate of the cut.
            let now = now.max(state.since());
            return self.follow_law(&law, head, &line, state, now, gate);
        }
    }

    /// Moves the rate of `head` along the law's curve.
    fn follow_law(
        &self,
        law: &Controller,
        head: Head,
        line: &Line,
        state: State,
        now: u64,
        gate: super::gate::GateWord,
    ) {
        let reading = self.meter.reading();
        let known = |peak| self.curve.time_to_peak(peak);
        let rate = law.rate(state, now, Some(reading), known);
        // One try: a loss means that another response, which computes the same curve, or a
        // throttle, which must not be undone, came first.
        if rate == line.rate || self.change(head, line, now, rate, state) {
            self.quieten_gate(law, state, now, rate, u64::MAX, gate);
        }
    }

    /// Notes until when `rate`, which was found at `now`, stays: `until` at most.
    pub(super) fn quieten_gate(
        &self,
        law: &Controller,
        state: State,
        now: u64,
        rate: Rate,
        until: u64,
        gate: super::gate::GateWord,
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
        &self,
        now: u64,
        next: impl Fn(State, Rate) -> Option<N>,
    ) -> Recorded {
        loop {
            let last = self.state.load();
            let head = self.line.head();
            // The head was read while this was the last state, so that it follows it or the one
            // before.
            if self.state.load() != last {
                continue;
            }
            if !head.follows(last.version()) {
                self.apply_state(now);
                continue;
            }
            let baseline = self.promised.baseline.load();
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
                self.promised
                    .baseline
                    .carry(baseline, last.version(), next.version());
            } else {
                self.promised
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
    fn effect(&self, last: State, fill: Rate, next: State, now: u64) -> Recorded {
        if !next.is_engaged() {
            return Recorded::Ended;
        }
        let law = self.law.get();
        let (_, rate) = law.first_rate(next, now);
        // Where time has moved the rate to, even if that has not been looked at.
        let fill = if law.moves_with_time() && last.is_engaged() {
            let reading = self.meter.reading();
            law.rate(last, now, Some(reading), |peak| {
                self.curve.time_to_peak(peak)
            })
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
    pub(super) fn apply_state(&self, now: u64) {
        loop {
            // In this order: a head older than the state makes the change fail, never go back.
            let (head, line) = self.read();
            let state = self.state.load();
            if head.follows(state.version()) {
                return;
            }
            let pace = || self.reports().pace(state, now);
            let (from, rate) = match state.is_engaged().then(pace).flatten() {
                Some(pace) => (now, pace.rate_now()),
                None => self.law.get().first_rate(state, now),
            };
            self.change(head, &line, from, rate, state);
        }
    }

    /// Replaces `head`, whose line is `line`, at `at` or when it was changed last. False if another
    /// thread has replaced it first.
    pub(super) fn change(
        &self,
        head: Head,
        line: &Line,
        at: u64,
        rate: Rate,
        state: State,
    ) -> bool {
        if line.is_stale(at) {
            self.renew(at);
            return false;
        }
        let Some(end) = self.line.raise(at) else {
            return false;
        };
        // With the capacity that ends: what it has discarded must not come back with a larger one.
        self.spill(line, end);
        let minted = line.extended_to(end);
        let replaced = self.line.replace(head, minted, end, rate, state.version());
        if replaced {
            self.forget_hint();
        }
        // Here too, for callers who never wait in line: the front must not fall behind until places
        // wrap.
        self.retire(line, end);
        replaced
    }
}
