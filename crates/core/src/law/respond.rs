//! What a response does to a limiter, decided by its law in one call.

use super::{Controller, Counted, Decision, Drain, Event, Past, State, Window};
use crate::bits::LAST_TIME;
use crate::fixed::Rate;

/// A response that has come back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Response {
    pub(crate) now: u64,
    /// When the request was sent, at most `now`. `None` if the clock was not read. That happens
    /// only for requests sent while nothing was limited.
    pub(crate) sent: Option<u64>,
    /// The tokens of the request that were done, and those that were throttled. Both are 0 for an
    /// attempt that got no answer or failed for another reason.
    pub(crate) done: u32,
    pub(crate) throttled: u32,
    /// The pause that the service asked for, in nanoseconds.
    pub(crate) pause: u64,
    /// Whether the attempt got no answer. A window that ends with such an attempt decides nothing.
    pub(crate) is_silent: bool,
}

/// What the limiter knows when a response comes back.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'a> {
    /// The fill rate.
    pub(crate) fill: Rate,
    pub(crate) reading: u128,
    pub(crate) cycle: u128,
    /// Returns the sum of all counts, and the failures in this window. Called after `reading` was
    /// read.
    pub(crate) counts: &'a dyn Fn() -> (u64, u64),
    /// The counts since the first throttle, if the law still counts for its correction.
    pub(crate) draining: Option<u128>,
    /// How many tokens have been counted since the state was entered, if known.
    pub(crate) since_change: Option<u64>,
    /// The window that this response has ended already.
    pub(crate) past: Option<Past>,
    /// Whether the rate is used up: the bucket is less than half full, or holds no token.
    pub(crate) is_used_up: &'a dyn Fn() -> bool,
    /// Whether a place in line waits for its turn.
    pub(crate) is_waited_for: &'a dyn Fn() -> bool,
}

/// What follows from a response. The limiter stores the effects in this order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effects {
    pub(crate) window: Window,
    pub(crate) drain: Drain,
    /// The state that replaces the last one, and the cycle that begins with it.
    pub(crate) next: Option<State>,
    pub(crate) cycle: Option<u128>,
    /// The counts that begin with `next`, if `next` is the first cut.
    pub(crate) begun: Option<u128>,
}

impl Controller {
    /// Returns the effects of `response` in `state`.
    ///
    /// Under a law that time alone moves, a throttle turns no window, as it is no delivery. A limit
    /// does not end while a place in line waits.
    pub(crate) fn respond(&self, state: State, response: Response, seen: &Seen<'_>) -> Effects {
        let Response { now, sent, .. } = response;
        let is_throttled = response.throttled > 0;
        let window = if is_throttled && self.moves_with_time() {
            Window::unturned(now)
        } else {
            let sent = sent.unwrap_or(now);
            self.turn(seen.reading, seen.cycle, seen.counts, state, now, sent)
        };
        let now = if is_throttled { window.at } else { now };
        let response = Response { now, ..response };
        let drain = match seen.draining {
            Some(counts) if response.done > 0 || is_throttled => {
                self.drain(state, Some(counts), &response)
            }
            _ => Drain::Unchanged,
        };
        let (corrected, next) = match drain {
            Drain::Over(Some(memory)) => (
                state.with_memory(memory),
                Some(state.next(state.since(), memory)),
            ),
            _ => (state, None),
        };
        let mut effects = Effects {
            window,
            drain,
            next,
            cycle: None,
            begun: None,
        };
        // A request without a time was sent while nothing was limited. Such a request opens
        // nothing, and if it is throttled, it was sent before the last cut.
        let is_old = sent.is_none() && is_throttled && state.is_engaged();
        let sent_at = if is_old { 0 } else { sent.unwrap_or(now) };
        let past = seen.past.or(window.counted);
        let past = past.filter(|_| !response.is_silent && !is_throttled);
        let done = if sent.is_some() { response.done } else { 0 };
        if done == 0 && !is_throttled && past.is_none() {
            return effects;
        }
        let longest = self.paced().map_or(0, |paced| paced.longest_pause());
        let pause = response.pause.min(longest);
        let event = Event {
            now,
            sent: sent_at,
            done,
            throttled: response.throttled,
            until: now.saturating_add(pause).min(LAST_TIME),
            fill: seen.fill,
            counted: Counted {
                reading: window.next.unwrap_or(seen.reading),
                sum: (seen.counts)().0,
                cycle: window.cycle.unwrap_or(seen.cycle),
            },
            since_change: seen.since_change,
            past,
            is_used_up: seen.is_used_up,
        };
        let decision = match self.decide(corrected, &event) {
            None => return effects,
            Some(Decision::End) if !is_throttled && (seen.is_waited_for)() => return effects,
            Some(decision) => decision,
        };
        if let Decision::Limit { cycle, .. } = decision {
            effects.cycle = cycle;
        }
        let next = if is_throttled {
            corrected.decided(decision)
        } else {
            self.decided(corrected, now, decision)
        };
        if is_throttled && !state.is_engaged() {
            let sent = Some(sent_at);
            let first = Response { sent, ..response };
            if let Drain::Counted(counts) = self.drain(next, None, &first) {
                effects.begun = Some(counts);
            }
        }
        effects.next = Some(next);
        effects
    }
}
