//! What is released to background, and when.

use core::time::Duration;

use super::acquire::Engaged;
use super::ask::{Ask, Turn};
use super::behind::{Behind, NO_PLACE};
use super::limits::Phase;
use super::permit::{AcquireError, Class, Order};
use super::snapshot::BackgroundSnapshot;
use super::table::WaiterSlot;
use super::waiters::{LATE, Look};
use crate::atomic::sync::Ordering::Relaxed;
use crate::fixed::SECOND;
use crate::line::{LONGEST_QUEUE, Line, Place, TOKEN};

/// The least time between two looks of the first waiter behind the line, in nanoseconds.
const LEAST_LOOK: u64 = SECOND.wrapping_div(1_000);

/// The other waiters sleep so many times their estimated wait, because a release wakes them.
const SLEEPS: u64 = 4;

/// The second line, made by the first request of background, and the first line, from which its
/// tokens come.
#[derive(Clone, Copy)]
pub(super) struct SecondLine<'a> {
    first: &'a Engaged<'a>,
    pub(super) behind: &'a Behind,
}

impl Engaged<'_> {
    pub(super) fn second_line(&self) -> SecondLine<'_> {
        let (first, behind) = (self, self.beside().behind.get_or_make());
        SecondLine { first, behind }
    }

    pub(super) fn second_line_if_made(&self) -> Option<SecondLine<'_>> {
        let (first, behind) = (self, self.beside().behind.get()?);
        Some(SecondLine { first, behind })
    }

    /// Returns `true` if background waits for tokens.
    pub(super) fn is_background_waiting(&self) -> bool {
        let second = self.second_line_if_made();
        second.is_some_and(|second| second.behind.waiting() > 0)
    }
}

impl SecondLine<'_> {
    /// Returns what a snapshot shows of background.
    pub(super) fn snapshot(self, is_limited: bool) -> BackgroundSnapshot {
        let waiting = if is_limited {
            self.behind.waiting_tokens()
        } else {
            0
        };
        let released = self.behind.granted();
        BackgroundSnapshot { waiting, released }
    }

    /// Returns what has been promised to the foreground, in the units of a place. If declared
    /// limits are obeyed, this is what the foreground has sent, because the bucket may overflow
    /// while background waits.
    fn promised_to_foreground(self) -> u64 {
        let Self { first, behind } = self;
        if first.law.listens() {
            let granted = behind.granted();
            return first.sent().wrapping_sub(granted).wrapping_mul(TOKEN);
        }
        first.line().issued().less_tokens(behind.taken()).to_bits()
    }

    /// Returns the tokens of the bucket of `line` that background leaves alone, in the units of a
    /// place.
    ///
    /// Under a learned rate there are none. The law has emptied the service's own bucket, so
    /// requests from a stock that only the limiter has are throttled. At a ceiling the stock is
    /// real.
    fn left_alone(self, line: &Line) -> u64 {
        let law = self.first.law.get();
        let ceiling = law.paced().and_then(|paced| paced.highest());
        let is_known = ceiling.is_some_and(|ceiling| line.rate >= ceiling);
        if !is_known || self.first.reports().phase() == Phase::Declared {
            return 0;
        }
        let beyond = line.capacity().saturating_sub(TOKEN);
        beyond.wrapping_sub(beyond >> 2)
    }

    /// Takes `least` to `most` of the tokens that are there, that no place waits for and that are
    /// not left alone, and returns how many; `None` if nothing is limited.
    fn take_spare(self, elapsed: u64, least: u64, most: u64) -> Option<u64> {
        let Self { first, .. } = self;
        let line = first.line_at(elapsed)?;
        let (spare, _) = first.reports().spare(elapsed, 0);
        let most = most.min(spare);
        if most < least {
            return Some(0);
        }
        let cancelled = first.line().waiters.total();
        let level = line.level(elapsed, cancelled);
        // A heavy try would never find enough tokens beyond those left alone.
        let room = line.capacity().saturating_sub(least.saturating_mul(TOKEN));
        let left = self.left_alone(&line).min(room);
        let mut taken = 0;
        let issued =
            first
                .line()
                .issue(|issued| match level.take_spare(issued, left, least, most) {
                    Some((next, spare)) => {
                        taken = spare;
                        Ok(next)
                    }
                    None => Err(()),
                });
        if issued.is_err() {
            return Some(0);
        }
        first.line().forget_hint();
        Some(taken)
    }

    /// Releases the tokens that are there for background, and gives back a surplus.
    ///
    /// Called by threads that look at the second line, or leave the first line.
    pub(super) fn release(self, elapsed: u64) {
        let Self { first, behind } = self;
        if behind.waiters.has_gaps() {
            behind.waiters.retire(behind.released());
        }
        let wanted = behind.waiting_tokens();
        if wanted > 0 {
            let mut taken = self.take_spare(elapsed, 1, wanted);
            if taken == Some(0) && first.adaptation().catch_up(elapsed) {
                taken = self.take_spare(elapsed, 1, wanted);
            }
            let taken = taken.unwrap_or(0);
            let trickled = u64::from(self.trickle(elapsed));
            let both = taken.saturating_add(trickled);
            if both > 0 {
                behind.add(both);
                behind.note(self.promised_to_foreground(), both, trickled > 0);
            }
        }
        // Another thread may have released for the same request.
        let surplus = behind.take_surplus();
        if surplus > 0 {
            first.credit(elapsed, u32::try_from(surplus).unwrap_or(u32::MAX));
        }
        if behind.waiting() <= 0 {
            self.give_trickle_up();
        }
    }

    /// Takes the trickle's token if its place is due, or takes its place if the trickle is owed.
    fn trickle(self, elapsed: u64) -> bool {
        let Self { first, behind } = self;
        let seen = behind.trickle.load(Relaxed);
        if seen != NO_PLACE {
            let place = Place::from_bits(seen);
            let is_due = first.nanos_until(place, elapsed).is_none() && self.end_trickle(seen);
            if is_due {
                first.line().close(1);
            }
            return is_due;
        }
        let promised = self.promised_to_foreground();
        let mark = behind.mark.load(Relaxed);
        if !behind.owes(promised, mark) {
            return false;
        }
        // Relaxed, here and below: only one thread wins each swap, and the words of the first line
        // order its next steps. Models: `classes::two_threads_put_one_trickle`,
        // `classes::a_late_trickle_replaces_none`, `classes::a_due_trickle_is_released_once`.
        let (marks, trickle) = (&behind.mark, &behind.trickle);
        let moved = marks.compare_exchange(mark, promised, Relaxed, Relaxed);
        if moved.is_ok() {
            if let Ok(Some(place)) = first.debit(elapsed, 1) {
                first.line().open(1);
                let bits = place.to_bits();
                let put = trickle.compare_exchange(NO_PLACE, bits, Relaxed, Relaxed);
                // Another thread has put a place, or the bits mean no place. Then this place goes
                // back.
                if put.is_err() || bits == NO_PLACE {
                    first.give_up(place, 1, None);
                }
            }
        }
        false
    }

    /// Ends the trickle that was `seen`. False if another thread has.
    fn end_trickle(self, seen: u64) -> bool {
        let word = &self.behind.trickle;
        word.compare_exchange(seen, NO_PLACE, Relaxed, Relaxed)
            .is_ok()
    }

    /// Gives up the place of the trickle: no request waits for it, and after 2³⁸ tokens the place
    /// would alias.
    fn give_trickle_up(self) {
        let seen = self.behind.trickle.load(Relaxed);
        if seen != NO_PLACE && self.end_trickle(seen) {
            self.first.give_up(Place::from_bits(seen), 1, None);
        }
    }

    /// Begins to count the trickle anew, after a change that no count survives.
    pub(super) fn restart(self) {
        self.give_trickle_up();
        self.behind.restart(self.promised_to_foreground());
    }

    /// Returns how many tokens, in the units of a place, have to be released until `place` for
    /// `weight` tokens is due.
    fn lacking(self, place: Place, weight: u32) -> u64 {
        let over = self.first.reports().over(weight);
        self.behind.lacking(place, over)
    }

    /// Returns about how many nanoseconds it is until `lacking` more tokens will have been
    /// released, at least 1; `None` if nothing is limited.
    fn until_released(self, elapsed: u64, lacking: u64) -> Option<u64> {
        self.until_there(elapsed, self.behind.paced(lacking))
    }

    /// Returns the nanoseconds until `units` of a place are there for background, if the foreground
    /// takes nothing meanwhile.
    fn until_there(self, elapsed: u64, units: u64) -> Option<u64> {
        let Self { first, .. } = self;
        let units = units.min(LONGEST_QUEUE);
        let line = first.line_at(elapsed)?;
        let cancelled = first.line().waiters.total();
        let last = line.spilled(elapsed, first.line().issued(), cancelled);
        let left = self.left_alone(&line);
        let rank = last.less_tokens(cancelled).plus(left).plus(units);
        let wait = first.wait_of(&line, elapsed, rank).unwrap_or(0);
        let (_, declared) = first.reports().spare(elapsed, units.div_ceil(TOKEN));
        Some(wait.max(declared).max(1))
    }

    /// Returns the nanoseconds until the first waiter behind the line looks, with `lacking` units
    /// of a place until its turn. By then these may be there, or the bucket holds no more.
    fn until_next(self, elapsed: u64, lacking: u64) -> u64 {
        let Self { first, behind } = self;
        let line = first.line_at(elapsed);
        let room = line.map_or(0, |line| {
            line.capacity().saturating_sub(self.left_alone(&line))
        });
        let Some(mut nanos) = self.until_there(elapsed, lacking.min(room).max(TOKEN)) else {
            return 0;
        };
        let trickle = behind.trickle.load(Relaxed);
        if trickle != NO_PLACE {
            let due = first.nanos_until(Place::from_bits(trickle), elapsed);
            nanos = nanos.min(due.unwrap_or(0));
        }
        first.waking().next_look(elapsed, nanos.max(LEAST_LOOK))
    }

    /// Returns the nanoseconds until the waiter at `place` looks, if its turn comes in about
    /// `nanos`.
    pub(super) fn next_look(self, place: Place, weight: u32, elapsed: u64, nanos: u64) -> u64 {
        if self.behind.waiters.is_first(place) {
            let lacking = self.lacking(place, weight);
            return self.until_next(elapsed, lacking).max(1);
        }
        nanos.saturating_mul(SLEEPS).max(LEAST_LOOK)
    }

    /// Returns about how many nanoseconds it is until the turn of `place`, `None` if it has come.
    pub(super) fn nanos_until(self, place: Place, weight: u32, elapsed: u64) -> Option<u64> {
        self.release(elapsed);
        match self.lacking(place, weight) {
            0 => None,
            lacking => self.until_released(elapsed, lacking),
        }
    }

    /// Claims the tokens of `place`, and returns how many of them its turn did not wait for. `None`
    /// if nothing is limited. The place is given up then, and the tokens released to it go to the
    /// places behind.
    pub(super) fn claim(self, place: Place, weight: u32, slot: Option<WaiterSlot>) -> Option<u64> {
        let Self { first, behind } = self;
        let over = first.reports().over(weight);
        if behind.lacking(place, over) > 0 {
            behind.give_up(place, weight, slot);
            return None;
        }
        behind.claim(u64::from(weight).saturating_sub(over));
        behind.grant(weight);
        behind.waiters.leave(slot);
        Some(over)
    }

    /// Returns how long a request for `weight` tokens would wait from now, `None` if the tokens are
    /// there.
    pub(super) fn wait(self, elapsed: u64, weight: u32) -> Option<u64> {
        let Self { first, behind } = self;
        let waiting = u64::try_from(behind.waiting()).unwrap_or(0);
        let most = u64::from(weight).saturating_sub(first.reports().over(weight));
        let units = most.wrapping_mul(TOKEN);
        let line = first.line_at(elapsed)?;
        if waiting == 0 && first.reports().spare(elapsed, 0).0 >= most {
            let cancelled = first.line().waiters.total();
            let level = line.level(elapsed, cancelled);
            let room = line.capacity().saturating_sub(units);
            let left = self.left_alone(&line).min(room);
            if level
                .take_spare(first.line().issued(), left, most, most)
                .is_some()
            {
                return None;
            }
        }
        self.until_released(elapsed, waiting.saturating_add(units))
    }

    /// Wakes the waiters behind the line whose turn has come, and the first other waiter if it
    /// would look too late.
    pub(super) fn wake(self, elapsed: u64, most: usize) {
        let Self { first, behind } = self;
        let is_limited = first.line_at(elapsed).is_some();
        behind.waiters.walk(most, |ahead, rank, timer| {
            let lacking = behind.lacking_until(rank);
            if !is_limited || lacking == 0 {
                return Look::Due;
            }
            let left = timer.saturating_sub(elapsed);
            let next = || self.until_next(elapsed, lacking);
            if ahead == 0 && left > next().saturating_add(LATE) {
                Look::Late
            } else {
                Look::InTime
            }
        });
    }
}

impl Ask<'_> {
    /// Takes the tokens for background if they are there, and no request waits for them.
    pub(super) fn take_behind(self) -> Result<Order, AcquireError> {
        let Self { now, weight, .. } = self;
        self.check_now()?;
        let Some(engaged) = self.rate.engaged() else {
            return Ok(Order::NONE);
        };
        let elapsed = engaged.law.elapsed(now);
        engaged.lending().hand_back(elapsed);
        engaged.adaptation().catch_up(elapsed);
        if engaged.reports().phase() == Phase::Unbound {
            let class = Class::Foreground;
            return Self { class, ..self }.take();
        }
        let second = engaged.second_line();
        second.release(elapsed);
        let tokens = u64::from(weight).saturating_sub(engaged.reports().over(weight));
        // A new request overtakes no waiting request.
        let taken = if second.behind.waiting() > 0 {
            Some(0)
        } else {
            second.take_spare(elapsed, tokens, tokens)
        };
        match taken {
            None => Ok(Order::NONE),
            Some(0) => {
                let waiting = u64::try_from(second.behind.waiting()).unwrap_or(0);
                let lacking = waiting.saturating_add(tokens.wrapping_mul(TOKEN));
                let nanos = second.until_released(elapsed, lacking);
                Err(engaged.not_in_time(now, nanos.unwrap_or(1)))
            }
            Some(_) => {
                let sent = engaged.reports().sent(elapsed, weight, false);
                let order = sent.map_err(|nanos| {
                    engaged.line().give_back(tokens);
                    engaged.not_in_time(now, nanos)
                })?;
                second.behind.grant(weight);
                let promised = second.promised_to_foreground();
                second.behind.note(promised, tokens, false);
                Ok(order)
            }
        }
    }

    /// Takes a place behind the line, whatever the capacity is, if its turn comes within `patience`
    /// by the estimate. No place if the limiter limits nothing.
    pub(super) fn queue_up_behind(self, patience: Option<Duration>) -> Result<Turn, AcquireError> {
        let Self { now, weight, .. } = self;
        let Some(engaged) = self.rate.engaged() else {
            return Ok(Turn::Unlimited);
        };
        let elapsed = engaged.law.elapsed(now);
        engaged.lending().hand_back(elapsed);
        engaged.adaptation().catch_up(elapsed);
        if engaged.reports().phase() == Phase::Unbound || engaged.line_at(elapsed).is_none() {
            return Ok(Turn::Unlimited);
        }
        let second = engaged.second_line();
        second.release(elapsed);
        if let (Some(patience), Some(nanos)) = (patience, second.wait(elapsed, weight)) {
            let wait = engaged.wait(now, nanos);
            if wait > patience {
                return Err(AcquireError::NotInTime { wait });
            }
        }
        let SecondLine { behind, .. } = second;
        if behind.waiting() <= 0 {
            behind.begin(second.promised_to_foreground());
        }
        let place = behind.promise(weight)?;
        second.release(elapsed);
        // A place that is due needs no slot.
        let slot = match behind.lacking(place, 0) {
            0 => None,
            _ => behind.waiters.join(place, weight),
        };
        Ok(Turn::Behind { place, slot })
    }
}

#[cfg(test)]
mod tests;
