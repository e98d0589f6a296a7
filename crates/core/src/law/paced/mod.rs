//! The paced law: for a client of a service whose limit is unknown, and which may have other
//! clients.
//!
//! The published law ([`aws`](crate::law::aws)) reads CUBIC's window as a rate. CUBIC is made for a
//! queue, where a loss says that the pipe is full. A policer has no queue, and throttles whatever
//! comes above its limit. So the published law cuts once for each request of an overshoot, falls to
//! its floor, and needs `∛(0.75·peak)` seconds to come back. A client that has the limit alone uses
//! 40 % of it. The paced law reads throttles differently.
//!
//! # Rules
//!
//! The code cites the rules by number. `t` is the time since the last cut, `n` the responses
//! delivered since then (not throttled), `r` the rate now. `D` is the rate delivered over the last
//! window and the current one; the last window counts for as long as eight responses take at its
//! rate, from one second to eight.
//!
//! 1. *One cut for each overshoot.* A throttle changes nothing if its request was sent before the
//!    last cut, or at the same instant. Nor does a throttle within two round trips of the cut, or
//!    within 100 ms while fewer than 32 responses were to be expected. After a pause the two round
//!    trips do not apply: every request was sent after the cut.
//! 2. *A cut* takes `min(0.1 + 1/√peak, 0.45, 0.18 + 0.06·peak)` of the peak. At low rates a cut
//!    takes more, so that clients that share a limit come to equal parts by few cuts. At very low
//!    rates a cut takes less, because the service's bucket cannot save up what a deep cut leaves
//!    unused. The rate returns as `1 − (1 − t/K)⁵`, half of the way within `K/8`. `K` is `15/peak`
//!    between 2.5 s and 12 s, and at least eight round trips. A client hears of a throttle one trip
//!    late, so the growth in a trip, times a trip, is throttled in each cycle.
//! 3. *Beyond the peak* the rate grows as a cube of time. The rate reaches twice the peak after
//!    `15/peak` more, between 2.5 s and 12 s, or after four round trips if these are longer. This
//!    growth is slow at 1/s: two clients that share such a limit are throttled for 19.5 % of their
//!    requests. With 2.5 s at every rate they would be for 21.3 %.
//! 4. *A line on top* adds `min(0.15·√peak, 0.06·peak)` per second in each second. In proportion,
//!    the line gives more to clients that have less.
//! 5. *The peak is the rate delivered*: `D`, if made of six responses or more, but at most the rate
//!    at which the request was sent. If `D` is far less, the client did not use its rate, and the
//!    peak is the rate at which the request was sent. Within two seconds of a cut the peak is `(n +
//!    2)/t`, if less than three quarters of the rate was delivered since the cut.
//! 6. *Shut*: a throttle shows that the service is shut if four responses or more were to be
//!    expected since the cut, and none came. A throttle also shows this if 32 or more were to be
//!    expected, and fewer than an eighth came, within two seconds of the cut or four trips. So does
//!    a throttle if nothing was delivered since a cut after which the rate doubles on its way back.
//!    A shut service lets nothing through at the moment, which says nothing about its rate: rules
//!    16 to 21 apply. A throttle also means shut where the peak, or `D` of six responses or more,
//!    is below one a second. A law of seconds has too few responses there. So does the first
//!    throttle, if `D` with one response on top is less than one a second. A limiter whose peak is
//!    at the floor is never shut.
//! 7. *A window that delivered more*, by three a second, than the rate allows lifts the rate: what
//!    was delivered is the peak of a new cut. While the rate doubles on its way back, it may be far
//!    too low. The old peak then stays if a quarter of the peak was delivered; otherwise a fifth of
//!    it stays at least.
//! 8. *The first cut* takes `D` with one response on top for the peak. With fewer than eight
//!    responses the cut knows next to nothing: the rate begins at `D`, and doubles every 250 ms, or
//!    two round trips. If the first 64 responses or more came within 100 ms, the service may have
//!    saved them up. The rate then begins at half of `D`, at a quarter below 50 ms, at an eighth
//!    below 25 ms. The rate doubles likewise, in case `D` was no burst. With a hint, responses
//!    within 100 ms count as those of 100 ms, and nothing doubles. The refused requests are silent
//!    until the time of the hint, and silence proves nothing.
//! 9. *A hint* pauses everything if nothing gets through, until the time that the service gave, a
//!    minute at most unless [`max_pause`](PacedSettingsBuilder::max_pause) is set. Nothing gets
//!    through if nothing was ever delivered. The same holds if nothing was delivered since the last
//!    cut, although four responses were to be expected. It also holds if the cut came with a pause,
//!    or if the rate doubles on its way back, and nothing was delivered since. The service is shut
//!    until the pause ends. While cycles are counted, each hint pauses. Otherwise the hint is for
//!    the throttled request alone, whose retry waits. If all obeyed, each of twenty clients on one
//!    limit would stop for one throttle, and a fifth of the limit would be lost.
//! 10. *The end* comes when use has refuted the limit that was found. Half a minute after the cut
//!     or later, a window delivers twice the peak or more, the rate is four times the peak, and no
//!     place is in line. Without a ceiling the limiter then limits nothing until the next throttle.
//!     Neither silence nor a light load ends the limit.
//!
//! # Presets
//!
//! Whether clients share a limit is a setting, because the law cannot detect it. Four ways of
//! detection were tried. Each took clients of one limit into different states, which destroys their
//! equality, or took a falling limit for a newcomer.
//!
//! 11. *A shared limit* ([`PacedSettings::shared`]). The quick return of rule 2 undoes a cut before
//!     the cut has moved any client's part: a throttle costs a dip, and hardly equalises. So a cut
//!     takes `c = min(0.3, 0.1 + 0.65/√r)` of the rate `r` at which the request was sent, not of
//!     `D`. The rate returns in a straight line, `r·(1 − c)·(1 + λ·c·t) + min(0.3, 0.05·r)·t`. Here
//!     `λ = 0.55·√min(r/10, 10/r)` is the number of cuts a second that the client aims at. Above
//!     10/s, `λ` falls with the rate, so that a client that has more is cut more often than it aims
//!     at. When a cut is three times later than expected, the rate is multiplied by `1 + x³`, `x`
//!     in units of 2.5 s or four round trips. A throttle belongs to the last cut for one trip, not
//!     two. Rules 6 to 10 hold.
//! 12. *An exclusive limit* ([`PacedSettings::exclusive`]). The least `K` is the time of 125
//!     requests, between 1.2 s and 2.5 s. Beyond the peak the rate doubles in `K`.
//!
//! # A longest slope
//!
//! Some services throttle the rise itself, and scale with a load that comes slowly. With
//! [`max_slope`](PacedSettingsBuilder::max_slope) the rate is at most what the cut left of it, plus
//! the slope times `t`. Rules 7 and 10 do not hold then: rule 7 would lift the rate at once, and
//! rule 10 without a bound.
//!
//! # The first cut corrected
//!
//! 13. Rule 8 may be in doubt about what the service had saved up. When the service throttles for
//!     the first time, its savings are spent, and it serves at its limit from then on. The law
//!     counts the requests that were sent before the cut, but a quarter of a trip or more after the
//!     throttled request. Until the first response to a later request, `n` of them are done and `m`
//!     throttled, the last of them `T` after the cut. If `n ≥ 8`, `n + m ≥ 16` and `m > 0`, the
//!     limit is about `n/(¾·T)`. The peak becomes twice that, with one halving, if this is less
//!     than the peak was. The time of the cut stays. 512 workers (`herd`) fail 290 operations with
//!     this rule and 559 without. The peak is twice the limit because a peak that is too low costs
//!     more. With `n/(¾·T)` itself a limit of 10,000/s is used to 0.94 to 0.97 in 20 s, not 1.00.
//!
//! # Slow start
//!
//! 14. *A slow start* ([`PacedSettingsBuilder::slow_start`]). Without a slow start nothing is
//!     limited before the first throttle. All that a pipeline of 512 workers has to send then meets
//!     the limit at once. Of 512 requests 412 are throttled before the client can know. With a slow
//!     start the rate begins low, and rises in steps until the first throttle, while requests use
//!     the rate up. A step comes with the first response to a request sent after the step before,
//!     at least 25 ms later. The rate doubles, as TCP's window does, while it has fewer than ten
//!     requests under way in a trip. From then on it is multiplied by 9/8, because a policer's
//!     savings hide its limit. With doubling, as much as was saved up is throttled in the trip
//!     after the savings are spent. With 5/4 instead of 9/8, 2.3 % of the requests of `herd-bulk`
//!     are throttled instead of 1.7 %, for 98.2 % of the ideal instead of 98.1 %. With 9/8 from the
//!     beginning 1.8 % are throttled, for 92.2 %.
//!
//!     The first throttle ends the slow start. The rate that was throttled is the peak, but most of
//!     it came from the savings. So the rate begins where halvings of the peak reach `D`, and
//!     doubles as in rule 8. Where rule 10 would end the limit, slow start begins again, at twice
//!     the rate delivered.
//!
//! # Time that is not used
//!
//! 15. *Time alone proves nothing.* Up to the peak, time leads the rate back, because the peak was
//!     delivered. Beyond the peak the service has allowed a rate only if requests used it. So a
//!     window in which less than half of the rate was done moves the time of the cut on. The curve
//!     then stays where it was when the window began, or at the peak. Within a window the rate at
//!     most doubles. The rate is also at most twice the peak, or twice what the window before
//!     delivered if that is more. The half comes from RFC 7661 (4.4), where a window of which less
//!     than half is used does not grow. CUBIC leaves such time out of its curve (RFC 8312, 5.8; RFC
//!     9438, 5.8). A failure is no delivery: neither a server's fault nor a refused connection
//!     raises the rate. Where the first cut knew next to nothing (rule 8), no peak was delivered,
//!     and only use leads the rate back. The rate rises to 16 times its value in the first window,
//!     and later to twice what the last window delivered. Jobs of 500 operations by 512 workers on
//!     100/s lose operations only in the first job; without this rule each job loses 389.
//!
//! # Windows
//!
//! A service that allows forty requests a minute serves them in the first seconds, and then none. A
//! law that measures seconds finds ten a second, and would cut for each request to the shut
//! service. Over a whole cycle, from one opening to the next, the mean is the limit: for a window
//! of any length, a bucket or a log. The README beside this file derives these rules and shows what
//! is worse without each.
//!
//! 16. *Shut*: the law asks a shut service with one request at a time, a knock, as heavy as the
//!     refused request. A wait begins with a pause of a sixteenth, after which the bucket is empty;
//!     the rest of the wait mints the knock. The first wait is the mean spacing of what was
//!     accepted in this cycle, 60 s at most, or 4 s if nothing was accepted. After an opening the
//!     first wait is the time of one knock at the rate. The first wait is at least half a trip, and
//!     just that if a hint comes before anything was accepted. The second wait is twice as long.
//!     Each later wait is longer by `1/(1 + n/400)`, `n` the answers of the cycle. Waits end at 100
//!     s, or a 32nd of the cycle, and are no longer than a knock takes at the floor. After the
//!     curve, waits double up to half a second, and `n` counts to 1,200. A hint pauses until its
//!     time, and the knock comes a wait later. A request sent before the refusal was heard is no
//!     knock. A lighter knock that is refused halves the weight of the next. Time in which a knock
//!     could have gone, but no request came, is in no cycle.
//! 17. *An opening* is shown by a knock that was done, at least half as heavy as the refused
//!     request, or sent after the wait. The opening is taken to lie midway between the last refused
//!     knock and this one. The next rate is the mean: the answers without a throttle since the last
//!     opening, failures too, divided by that time. A cycle of two answers or fewer is no slower
//!     than one knock in its last gap, or in half of that after the longest wait. The rate is at
//!     least half of the rate before, and at most the rate that was refused; after the curve
//!     neither is known.
//! 18. *Short cycles* say little. After a cycle of `m` answers, earlier cycles count with a weight
//!     of `1 − m/2C`; `m` is at least what the rate allows in the cycle.
//! 19. *Growth*: after `x` calms of answers the rate is `r·(1 + β·x^p)`, `β` the larger of a
//!     hundredth and `1/C`, `p = 1 + 2·min(1, C/40)`. Only answers that were done count. Time in
//!     which the rate was not used moves the cycle's start on, and `x` begins anew. The rate keeps
//!     the mean of its growth, at most a doubling. After 64 calms growth begins anew at the rate
//!     reached. With a longest slope the rate is no higher than the slope allows since the opening.
//! 20. *The calm* `C`, the answers until growth is felt, is `40·(1 + rτ)`, and below 1/s `r^¾` of
//!     that. `C` is at least `n/1.5` up to the full `40·(1 + rτ)`, and `n/2` beyond. After the
//!     curve these bounds hold only below one a second, if the service was open for less than an
//!     eighth of the cycle. Otherwise the shut may have been an outage. After five answers or more
//!     the calm falls by an eighth at most. The mean lags in a cycle of twenty answers or more that
//!     grew for more than four calms, or whose mean is 1.3 times the rate. The next rate is then
//!     the root of the mean times the rate that was refused.
//! 21. *Back to seconds*: at a peak of one a second or more, nothing was shut if the first knock is
//!     done within a second. The same holds after two answers or fewer. This rule holds once, and
//!     later only if eight answers came between. A service that was open for longer than shut had
//!     an outage. But if the last cycle was as long, to a quarter, it was a window. After such a
//!     short shut or an outage the old peak stays, and the rate doubles from a quarter of it. At
//!     two a second or more, no window holds a rate that has grown by half after twice the time of
//!     the cycle before.
//!
//! # What a shared limit costs
//!
//! Let a client be cut `p·r` times a second, and let `p` at rest fall with its rate like `r^−κ`.
//! Over `n` independent throttles the client's part has a variance of `1/(κ²·n)` of its mean
//! squared, whatever `c`. `1 − Jain` is about that variance. With a hundred clients κ is about 1 by
//! rules 2 to 4 and 1.3 by rule 11. These values give 0.031 and 0.020 in 60 s; simulated, 0.054 and
//! 0.036. κ cannot be above 1 at all rates, since `p` must lie between 10⁻⁶ and 0.3 from 1/s to
//! 10⁶/s. Rule 11 buys equal parts at the rates where limits are shared.
//!
//! The bucket holds 50 ms at the rate, and at least one token: a burst that a strict policer
//! forgives.
//!
//! The README of `examples/simulate` lists the alternatives that lost against these rules in
//! trials.

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

/// Returns the memory at the start, for a law that falls back to the paced law. Without a rate to
/// start at, the memory limits to [`Rate::MAX`].
pub(crate) fn started(settings: &PacedSettings) -> u64 {
    let unlimited = || started_at(settings, Rate::MAX);
    beginning(settings).unwrap_or_else(unlimited).to_bits()
}

/// Returns the memory of a limiter that limits from the start: within a cycle, if the settings have
/// one.
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

/// Turns the window while cycles are counted: counts growth, and time in which the rate was not
/// used.
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
    // At the most calms, growth begins anew at the rate reached.
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
        // The cycle begins anew after a silence, or each minute while nothing is limited.
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
        // A shut service that did a part of a request has opened.
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
            // This response is the first of the new cycle.
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
