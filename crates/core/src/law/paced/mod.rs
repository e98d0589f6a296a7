//! The paced law: one client of a service whose limit it does not know, and which may have other
//! clients.
//!
//! The published law ([`aws`](crate::law::aws)) reads CUBIC's window as a rate. CUBIC is made for a
//! queue, where a loss says that the pipe is full; a policer has no queue, and throttles whatever
//! comes above its limit. So that law cuts once for each request of an overshoot, falls to its
//! floor, and needs `∛(0.75·peak)` seconds to come back: 40 % of the limit is used where one client
//! has it to itself. This one differs in what it takes a throttle for.
//!
//! # Rules
//!
//! The code cites them by number. `t` is the time since the last cut, `n` the responses delivered
//! since then (not throttled), `r` the rate now, `D` the rate delivered in the last window and the
//! current one; the last one counts for as long as eight responses take at its rate, from one
//! second to eight.
//!
//! 1. *One cut for each overshoot.* A throttle of a request that was sent before the last cut, or
//!    at its very time, changes nothing, nor does one within two round trips of it, or in its first
//!    100 ms while fewer than 32 responses were to be expected. After a pause there are no such
//!    trips: what is sent from its end on is news.
//! 2. *A cut* takes `min(0.1 + 1/√peak, 0.45, 0.18 + 0.06·peak)` of the peak: at low rates more, so
//!    that clients that share a limit come to equal parts by few cuts; at very low ones less, as a
//!    service saves up too little for what a deep cut leaves unused. It gives this back as `1 − (1
//!    − t/K)⁵`, half of it within `K/8`, with `K = 15/peak` between 2.5 s and 12 s, and at least
//!    eight round trips: a throttle is heard of one trip late, so that what is throttled in a cycle
//!    is the growth in a trip, times a trip.
//! 3. *Beyond the peak* the rate grows as a cube of time, to twice the peak in `15/peak` more,
//!    between 2.5 s and 12 s, or in four round trips if that is longer. At 1/s that is slow: of
//!    two clients that share so low a limit, 19.5 % of the requests are throttled, and 21.3 % if
//!    it is 2.5 s at any rate.
//! 4. *A line on top*, `min(0.15·√peak, 0.06·peak)` per second and second, gives more to clients
//!    that have less.
//! 5. *The peak is the rate delivered*: `D`, if it is made of six responses or more, but at most
//!    the rate that the request was sent at; that rate alone if far less was delivered, for then it
//!    was not the service that held it back. Within two seconds of a cut, if less than three
//!    quarters of the rate was delivered since then, it is `(n + 2)/t`.
//! 6. *Shut*: of four responses or more to be expected none came, or fewer than an eighth of 32 or
//!    more, within two seconds of a cut or four trips; or nothing was delivered since a cut after
//!    which the rate doubles on its way back. The service lets nothing through at the moment, which
//!    says nothing of its rate: rules 16 to 21. So is a throttle where the peak is below one a
//!    second, or `D`, if it is made of six responses or more: a law of seconds has too few there.
//!    So is the first throttle, if what was delivered with one response on top is less than one a
//!    second. A peak at the floor is never shut.
//! 7. *A window that delivered more*, by three a second, than the rate allows lifts it: what was
//!    delivered is the peak of a new cut. While the rate doubles on its way back, when it may be
//!    far less than is allowed, the old peak stays if a quarter of it was delivered, and a fifth
//!    of it in any case.
//! 8. *The first cut* takes `D` with one response on top for the peak. If there were fewer than
//!    eight, it knows next to nothing: it begins there, and doubles every 250 ms, or two round
//!    trips. If the first 64 or more came within 100 ms, the service may have saved them up: it
//!    begins at half of `D`, at a quarter below 50 ms, at an eighth below 25 ms, and doubles
//!    likewise, for what was no burst is a rate. With a hint, what came within 100 ms counts as
//!    that of 100 ms, and nothing doubles: the requests that were refused are silent until the
//!    time of the hint, and silence proves nothing.
//! 9. *A hint* pauses everything until the time that the service gave, a minute at most unless
//!    [`max_pause`](PacedSettingsBuilder::max_pause) is set, if nothing gets through: nothing was
//!    delivered since the last cut, and four responses were to be expected, or it came with a
//!    pause, or the rate doubles on its way back; or nothing was ever delivered. The service is
//!    shut until then. So it is with each hint while cycles are counted. Otherwise it is for the
//!    request that was throttled, whose retry waits for it: of twenty clients on one limit each
//!    would stop for one throttle, and a fifth of the limit would be lost.
//! 10. *The end*: half a minute after the cut a window delivers twice the peak or more, the rate is
//!     four times the peak, and no place is in line: the limit that was found is refuted by use.
//!     Without a ceiling the limiter then limits nothing, until the next throttle. Neither silence
//!     nor a light load ends it.
//!
//! # Presets
//!
//! Which clients share a limit is not detected: four ways of doing so were tried, and each took
//! clients that share one limit into different states, which destroys their equality, or took a
//! falling limit for a newcomer. So it is a setting.
//!
//! 11. *A shared limit* ([`PacedSettings::shared`]). The quick return of rule 2 undoes a cut before
//!     it has moved any client's part: a throttle costs a dip, and hardly equalises. So a cut takes
//!     `c = min(0.3, 0.1 + 0.65/√r)` of the rate `r` that the request was sent at, not of `D`, and
//!     the rate returns in a straight line, `r·(1 − c)·(1 + λ·c·t) + min(0.3, 0.05·r)·t`, where `λ
//!     = 0.55·√min(r/10, 10/r)` is how many cuts a second are wanted: fewer at higher rates, so
//!     that a client that has more is cut more often than it chose to be. When a cut is three times
//!     later than was to be expected, the rate is multiplied by `1 + x³`, `x` in units of 2.5 s or
//!     four round trips. A throttle belongs to the last cut for one trip, not two. Rules 6 to 10
//!     hold.
//! 12. *An exclusive limit* ([`PacedSettings::exclusive`]). `K` is at least 1.2 s where 125
//!     requests take no longer, and the rate doubles in `K`.
//!
//! # A longest slope
//!
//! Some services throttle the rise itself, and scale with a load that comes slowly. With
//! [`max_slope`](PacedSettingsBuilder::max_slope) the rate is at most what the cut left of it and
//! the slope times `t`. Rule 7 would lift it at once, and rule 10 without a bound: both do not hold
//! then.
//!
//! # The first cut corrected
//!
//! 13. Where rule 8 is in doubt, the service had nothing saved up any more when it throttled for
//!     the first time, so that what it served from then on, it served at its limit. Of the requests
//!     that were sent before the cut, but a quarter of a trip or more after the one that was
//!     throttled, `n` are done and `m` throttled by the first response to a later request, the last
//!     of them `T` after the cut. If `n ≥ 8`, `n + m ≥ 16` and `m > 0`, the limit is about
//!     `n/(¾·T)`, and the peak is twice that, with one halving, if that is less than it was. The
//!     time of the cut stays. 512 workers (`herd`) fail 290 operations with it and 559 without.
//!     Twice, because a peak that is too low costs more: with `n/(¾·T)` itself a limit of 10,000/s
//!     is used to 0.94 to 0.97 in 20 s, not 1.00.
//!
//! # Slow start
//!
//! 14. *A slow start* ([`PacedSettingsBuilder::slow_start`]). Without it nothing is limited before
//!     the first throttle, so that all that a pipeline of 512 workers has to send finds the limit
//!     at once: 412 of 512 requests are throttled before a client can know. With it the rate begins
//!     low, and rises with each round trip until the first throttle: at the first response to a
//!     request that was sent after the step before, if that was 25 ms ago or more, and only while
//!     requests use the rate up. It doubles, as TCP's does, while the rate has fewer than ten
//!     requests under way in a trip, and is multiplied by 9/8 from then on: what a policer has
//!     saved up hides its limit, and with doubling as much as was saved up is throttled in the trip
//!     after that is spent. With 5/4 instead of 9/8 it is 2.3 % of the requests of `herd-bulk`
//!     instead of 1.7, for 98.2 % of the ideal instead of 98.1; with 9/8 from the beginning 1.8 %,
//!     for 92.2.
//!
//!     The first throttle ends it. The rate that was throttled is the peak, but most of it was what
//!     had been saved up: the rate begins where halvings of the peak reach `D`, and doubles as by
//!     rule 8. Where rule 10 would end, slow start begins again, at twice what is
//!     delivered.
//!
//! # Time that is not used
//!
//! 15. *Time proves nothing by itself.* Up to the peak time leads back, for the peak was delivered.
//!     Beyond it the service has allowed a rate only if that was used. So a window in which less
//!     than half of the rate was done moves the time of the cut on, and the curve stays where it
//!     was when the window began, or at the peak. Within a window the rate is at most twice what it
//!     began with, and twice what the window before delivered, or the peak. The half is that of RFC
//!     7661 (4.4), where a window of which less than half is used does not grow. CUBIC leaves the
//!     same time out of its curve (RFC 8312, 5.8; RFC 9438, 5.8). A failure is no delivery here:
//!     neither a server's fault nor a refused connection raises the rate.
//!     Where the first cut knew next to nothing (rule 8), no peak was delivered, and only use leads
//!     back: to 16 times the rate in the first window, and to twice what the last one delivered.
//!     Jobs of 500 operations by 512 workers on 100/s lose none but in the first job, and 389 in
//!     each job without this rule.
//!
//! # Windows
//!
//! A window of a minute gives out its forty in the first seconds, and then nothing. What is
//! measured in seconds is ten a second, and each request at the shut door would be a cut. Over a
//! whole cycle, from one opening to the next, the mean is the limit, for a window of any length, a
//! bucket or a log. The README beside this file derives these rules and has what is worse without
//! each.
//!
//! 16. *Shut* is asked by one request at a time, a knock, as heavy as the one that was refused.
//!     After a pause of a sixteenth of the wait the bucket is empty, and mints the knock in the
//!     rest of the wait. The first wait is the mean spacing of what was accepted, 60 s at most, or
//!     4 s if nothing was in this cycle. From an opening on it is one knock at the rate. It is half
//!     a trip at least, and with a hint no more before anything was accepted. The second wait is
//!     twice as long, and each later one longer by `1/(1 + n/400)`, `n` the answers of the cycle:
//!     to 100 s, or a 32nd of the cycle, and no longer than a knock takes at the floor. After the
//!     curve waits double up to half a second, and `n` counts to 1,200. A hint pauses until its
//!     time, and the knock comes a wait later. What was sent before the refusal was heard is no
//!     knock. A lighter one that is refused halves the weight of the next. Time in which a knock
//!     could have gone, and nothing was asked for, is in no cycle.
//! 17. *An opening* is a knock that was done, half as heavy as the one that was refused or more, or
//!     sent after the wait. It was between the last knock that was refused and
//!     this one: in the middle. The next rate is the mean: what was answered without a throttle
//!     since the last opening, failures too, by the time since then. A cycle of two or fewer is no
//!     slower than its last gap, or half of that after the longest wait. The rate is at least half
//!     of the one before, and at most the rate that was refused; after the curve both are not
//!     known.
//! 18. *Short cycles* say little: one of `m` answers, or as many as its rate allows in its time,
//!     lets those before count with a weight of `1 − m/2C`.
//! 19. *Growth*: after `x` calms of answers the rate is `r·(1 + β·x^p)`, `β` a hundredth or `1/C`,
//!     `p = 1 + 2·min(1, C/40)`. Only what was done counts. Time in which the rate was not used
//!     moves the cycle's start on, and `x` begins anew; the mean of what it grew stays, at most
//!     doubled. After 64 calms growth begins anew at the rate that it has come to. With a longest
//!     slope the rate is no higher than that allows since the opening.
//! 20. *The calm* `C` is `40·(1 + rτ)` answers, and below 1/s `r^¾` of that. It is at least
//!     `n/1.5` up to the full calm, and `n/2` beyond; after the curve only at less than one a
//!     second, if it was light for less than an eighth: else it may have been an outage. After five
//!     answers or more it falls by an eighth at most. After a cycle of twenty answers or more that
//!     grew for more than four calms, or whose mean is 1.3 times the rate, the mean lags: the next
//!     rate is the root of the mean times the rate that was refused.
//! 21. *Back to seconds*: if the first knock is done within a second, or after two answers or
//!     fewer, at a peak of one a second or more, nothing was shut. So it is once, and later if
//!     eight answers came between. If it was light for longer than dark, it was an outage: the old
//!     peak stays, and the rate doubles from a quarter of it; unless the last cycle was as long, to
//!     a quarter: then it is a window. And at two a second or more, where the rate has grown by
//!     half and twice the time of the cycle before has passed, no window holds it.
//!
//! # What a shared limit costs
//!
//! What a limit that many share costs: let a client be cut at `p·r` a second, and let `p` at rest
//! fall with its rate like `r^−κ`. With independent throttles, over a time in which it sees `n` of
//! them, its part has a variance of `1/(κ²·n)` of its mean squared, whatever `c`: `1 − Jain` is
//! about that. With a hundred clients κ is about 1 by rules 2 to 4 and 1.3 by rule 11, which gives
//! 0.031 and 0.020 in 60 s; played, 0.054 and 0.036. κ cannot be above 1 at all rates, since `p`
//! must lie between 10⁻⁶ and 0.3 from 1/s to 10⁶/s: equal parts are bought at the rates where
//! limits are shared.
//!
//! The bucket holds 50 ms at the rate, and at least one token: what a policer of small bursts
//! forgives.
//!
//! The README of `examples/simulate` has what lost against these rules in trials.

mod coarse;
mod curve;
mod cut;
mod cut_state;
mod cycle;
mod decide;
mod delivered;
mod drain;
mod learned;
mod settings;
mod shut;

use core::num::NonZeroU64;

use self::curve::{STEP_BITS, is_starved, rate_at};
use self::cut::{after_step, grown, rate_within, started_at};
use self::cut_state::CutState;
use self::cycle::{Cycle, MOST_CALMS, Open, Seen};
use self::decide::{cut_of, limit, limit_anew, on_pause, on_throttle, on_window, open_rate};
use self::delivered::{Reading, WINDOW, WindowEnd};
use self::drain::{Drained, drain};
pub use self::learned::LearnedRate;
pub use self::settings::{PacedSettings, PacedSettingsBuilder, PacedSettingsError};
use self::shut::Shut;
use super::{
    Counted, Decision, Drain, Event, Law, Past, Quiet, Response, Shown, State, Unthrottled, Window,
};
use crate::fixed::Rate;

/// Returns the memory of a law that limits where it begins, or to nothing that matters: for a law
/// that falls back to this one.
pub(crate) fn started(settings: &PacedSettings) -> u64 {
    let unlimited = || started_at(settings, Rate::MAX);
    beginning(settings).unwrap_or_else(unlimited).to_bits()
}

/// Returns the memory of a limiter that limits from the start: in a cycle, if it has learned of
/// cycles.
fn beginning(settings: &PacedSettings) -> Option<CutState> {
    let rate = settings.start()?;
    let memory = match settings.cycle() {
        Some(length) => Open::learned(rate, length).memory(),
        None => started_at(settings, rate),
    };
    Some(if settings.shut() > 0 {
        memory.with_pause()
    } else {
        memory
    })
}

/// Looks at a response while cycles are counted: what has grown, and time that was not used.
fn turn_of_cycle(
    settings: &PacedSettings,
    open: Open,
    (before, cycle): (Reading, Cycle),
    (sum, failed): (u64, u64),
    state: State,
    (now, sent): (u64, u64),
) -> Window {
    let window = |next: Option<Reading>, counted| Window {
        next: next.map(Reading::to_bits),
        end: now,
        counted,
        at: now,
        cycle: None,
    };
    let Some((began, calms)) = before.calms(state.since()) else {
        return window(Some(Reading::of_cycle(0, now, sum)), None);
    };
    let count = before.delivered(now, sum).map_or(0, |seen| seen.count);
    if count < open.step() {
        return window(None, None);
    }
    let rate = open_rate(settings, open, state.since(), calms, now);
    let token = rate.nanos_per_token();
    let idle = now
        .saturating_sub(began)
        .saturating_sub(token.saturating_mul(count));
    let past = |idle| Past {
        began,
        calms,
        idle,
        ..Past::default()
    };
    if idle > token.max(now.saturating_sub(sent)) {
        return Window {
            cycle: Some(cycle.moved(idle).to_bits()),
            ..window(Some(Reading::of_cycle(0, now, sum)), Some(past(idle)))
        };
    }
    let calms = calms
        .saturating_add(open.calms(count.saturating_sub(failed)))
        .min(MOST_CALMS);
    // No more calms are counted: what has grown is where the next growth begins.
    let is_free = settings.slope().is_none();
    let is_long = is_free && calms == MOST_CALMS;
    let is_over = is_long || (is_free && open.is_beyond(calms, cycle, sum, now));
    let past = is_over.then(|| Past { calms, ..past(0) });
    let counted = if is_long { 0 } else { calms };
    window(Some(Reading::of_cycle(counted, now, sum)), past)
}

impl Law for PacedSettings {
    fn moves_with_time(&self) -> bool {
        true
    }

    fn burst(&self) -> u64 {
        self.burst_nanos()
    }

    fn unthrottled(&self) -> Unthrottled {
        let start = beginning(self).map(CutState::to_bits);
        Unthrottled {
            start,
            later: start.filter(|_| self.highest().is_some()),
        }
    }

    fn begin(&self, last: Option<u128>, sum: u64, now: u64) -> (u128, u64) {
        let Some(last) = last.map(Reading::from_bits) else {
            // The first response begins a window.
            return (Reading::before_the_first(sum).to_bits(), 0);
        };
        if last.began().is_none() {
            return (last.to_bits(), 0);
        }
        let next = Reading::new(last.before(), now, sum);
        (next.to_bits(), now.saturating_add(WINDOW))
    }

    fn turn(
        &self,
        reading: u128,
        cycle: u128,
        counts: impl Fn() -> (u64, u64),
        state: State,
        now: u64,
        sent: u64,
    ) -> Window {
        let before = Reading::from_bits(reading);
        let cycle = Cycle::from_bits(cycle);
        let window = |next: Option<Reading>, end, counted| Window {
            next: next.map(Reading::to_bits),
            end,
            counted,
            at: now,
            cycle: None,
        };
        let Some(began) = before.began() else {
            // The first window begins with its first request, so that the first estimate is about
            // right.
            let began = sent.max(now.saturating_sub(WINDOW));
            let next = Reading::new(Rate::ZERO, began, before.base());
            // A refusal may have begun the cycle.
            let none = cycle.start().is_none();
            let first = Cycle::new(began, before.base());
            let open = Open::of(cut_of(state).memory).filter(|_| state.is_engaged());
            let first = match (open, self.cycle()) {
                (Some(open), Some(length)) => first.learned(open, length),
                _ => first,
            };
            return Window {
                cycle: none.then(|| first.to_bits()),
                ..window(Some(next), began.saturating_add(WINDOW), None)
            };
        };
        if state.is_engaged() && cut_of(state).memory.is_shut() {
            return window(None, now, None);
        }
        if let Some(open) = Open::of(cut_of(state).memory).filter(|_| state.is_engaged()) {
            return turn_of_cycle(self, open, (before, cycle), counts(), state, (now, sent));
        }
        let least = began.saturating_add(WINDOW);
        if now < least {
            return window(None, least, None);
        }
        let (sum, failed) = counts();
        let Some(delivered) = before.delivered(now, sum) else {
            return window(None, now, None);
        };
        let done = delivered.without(failed);
        let cut = cut_of(state);
        let starved = is_starved(cut.memory, cut.since, now);
        let grown = grown(self, cut, (began, before.before()), now);
        let unused = state.is_engaged() && grown.is_some_and(|rate| done.is_unused(rate));
        let ended = delivered.end(starved, unused);
        let next = |rate| Some(Reading::new(rate, now, sum));
        let past = Some(Past {
            began,
            before: before.before(),
            done: done.mean(),
            ..Past::default()
        });
        let end = now.saturating_add(WINDOW);
        // Where nothing is limited of the last minute at least; and after a silence.
        let (since, longest) = if state.is_engaged() {
            (Some(began), WINDOW * 16)
        } else {
            (cycle.start(), WINDOW * 60)
        };
        let is_long = since.is_none_or(|since| now.saturating_sub(since) > longest);
        let anew = is_long || cycle.start().is_none();
        let window = |next, end, counted| Window {
            cycle: anew.then(|| cycle.anew(now, sum).to_bits()),
            ..window(next, end, counted)
        };
        match ended {
            WindowEnd::NotYet => window(None, now, None),
            WindowEnd::Interrupted if starved => window(next(before.before()), end, None),
            WindowEnd::Interrupted => window(next(before.before()), end, past),
            WindowEnd::Counted(rate) => window(next(rate), end, past),
        }
    }

    fn rate(&self, state: State, now: u64, reading: Option<u128>) -> Rate {
        let cut = cut_of(state);
        let shut = Shut::of(cut.memory);
        if (shut.is_some() || cut.memory.has_pause()) && now < cut.since {
            return Rate::LEAST;
        }
        if let Some(shut) = shut {
            return self.within(shut.rate());
        }
        if let Some(open) = Open::of(cut.memory) {
            let calms = reading.and_then(|reading| Reading::from_bits(reading).calms(cut.since));
            let calms = calms.map_or(0, |(_, calms)| calms);
            return open_rate(self, open, cut.since, calms, now);
        }
        let reading = reading.map(Reading::from_bits);
        let window = reading.and_then(|reading| Some((reading.began()?, reading.before())));
        rate_within(self, cut, window, now)
    }

    fn quiet(&self, state: State, now: u64, _: Rate, reading: u128) -> Quiet {
        let memory = cut_of(state).memory;
        if state.is_engaged() && memory.is_of_cycle() {
            return Quiet {
                rate: if now < state.since() {
                    state.since()
                } else {
                    u64::MAX
                },
                window: 0,
                each: true,
            };
        }
        let began = Reading::from_bits(reading).began();
        Quiet {
            rate: ((now >> STEP_BITS).wrapping_add(1)) << STEP_BITS,
            window: began.map_or(0, |began| began.saturating_add(WINDOW)),
            each: state.is_engaged() && cut_of(state).memory.is_slow_start(),
        }
    }

    fn decide(&self, state: State, event: &Event<'_>) -> Option<Decision> {
        let last = cut_of(state);
        // Where the service was shut and did a part of a request it has opened.
        let opens = event.done > 0 && Shut::of(last.memory).is_some();
        if event.throttled > 0 && !opens {
            return on_throttle(self, state, event);
        }
        if event.until > event.now && !opens {
            return on_pause(self, state, event);
        }
        let window = event.past.filter(|_| state.is_engaged());
        if let Some(decision) = window.and_then(|past| on_window(self, last, event, past)) {
            return Some(decision);
        }
        if event.done == 0 {
            return None;
        }
        if let Some(shut) = Shut::of(last.memory) {
            let mut seen = Seen::of(event, event.done);
            // It is the first of what follows.
            seen.sum = seen.sum.wrapping_sub(seen.weight);
            let (memory, cycle) = shut.opened(self, last.since, &seen)?;
            return Some(limit_anew(event.now, memory, cycle));
        }
        let step = after_step(self, last, event.now, event.sent)?;
        (event.is_used_up)().then(|| limit(event.now, step))
    }

    fn drain(&self, state: State, counts: Option<u128>, response: &Response) -> Drain {
        if let Some(counts) = counts {
            return drain(self, cut_of(state), Drained::from_bits(counts), response);
        }
        let trip = response
            .sent
            .map_or(0, |sent| response.now.saturating_sub(sent));
        Drained::begin(cut_of(state).memory, trip).map_or(Drain::Over(None), |drained| {
            Drain::Counted(drained.to_bits())
        })
    }

    fn shown(&self, state: State, counted: Counted, now: u64) -> Shown {
        let delivered = Reading::from_bits(counted.reading).delivered(now, counted.sum);
        let memory = cut_of(state).memory;
        let shut = Shut::of(memory).filter(|_| state.is_engaged());
        let opened = shut
            .filter(|shut| shut.is_of_windows())
            .map(|shut| shut.rate);
        let opened = Open::of(memory).map(|open| open.rate).or(opened);
        let cycle = Cycle::from_bits(counted.cycle);
        if let Some(rate) = opened.filter(|_| state.is_engaged()) {
            return Shown {
                measured: rate,
                is_measured: true,
                peak: rate,
                is_peak_seen: Some(memory) != beginning(self),
                is_shut: shut.is_some(),
                idle: Rate::MAX,
                cycle: NonZeroU64::new(cycle.before()).or(self.cycle()),
            };
        }
        let started = beginning(self);
        Shown {
            measured: delivered.map_or(Rate::ZERO, |delivered| delivered.rate(0)),
            is_measured: delivered
                .is_some_and(|seen| seen.before != Rate::ZERO || seen.elapsed >= WINDOW),
            peak: shut.map_or(memory.peak(), |shut| shut.rate),
            is_peak_seen: shut.is_none_or(|_| cycle.count(counted.sum) >= cut::FIRST_FEW)
                && state.is_engaged()
                && !memory.is_slow_start()
                && Some(memory) != started
                && (shut.is_some()
                    || (memory.ramp() < cut::BLIND_RAMP && memory.peak() < Rate::MAX.half())),
            is_shut: shut.is_some(),
            idle: Rate::MAX,
            cycle: None,
        }
    }

    fn is_at_start(&self, state: State, now: u64) -> bool {
        let Some(initial) = self.start() else {
            return false;
        };
        let began = match beginning(self).and_then(Open::of) {
            Some(open) => open.rate,
            None => rate_at(self, started_at(self, initial), 0, 0),
        };
        let rate = self.rate(state, now, None);
        began.min(initial) <= rate && rate <= began.max(initial)
    }
}
