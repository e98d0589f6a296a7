//! What is recorded, and how the rate follows from it.

use core::convert::Infallible;
use core::time::Duration;

use super::bits::LAST_TIME;
use super::gate::Gate;
use super::law::{Law, cut_of};
use super::limit::Limited;
use super::meter::Meter;
use super::permit::{Outcome, SendPermit};
use super::segments::Head;
use super::send_rate::SendRate;
use super::throttle::Throttle;
use crate::cubic::time_to_peak;
use crate::fixed::{Rate, SECOND};
use crate::line::Line;
use crate::meter::Windows;
use crate::paced::{
    self, Delivered, PacedSettings, Seen, WindowEnd, after_throttle, after_window, first_cut,
};
use crate::{Timestamp, aws};

/// The longest pause that a hint brings: a wrong one must not stop a client for good.
const LONGEST_PAUSE: u64 = SECOND.wrapping_mul(60);

impl SendRate {
    /// Records what became of a request.
    ///
    /// Call it once for every response, throttled or not, and for every attempt that failed without one.
    pub fn record(&self, now: Timestamp, permit: SendPermit, outcome: Outcome) {
        let elapsed = self.elapsed(now);
        let hint = match outcome {
            Outcome::NotThrottled => return self.record_delivered(elapsed, permit),
            Outcome::Throttled => Duration::ZERO,
            Outcome::ThrottledFor(hint) => hint,
        };
        self.gate.engage();
        self.about_to_limit()
            .record_throttled(elapsed, permit, hint);
    }

    /// Records what became of a request like [`record`](Self::record), and asks for the time only if it matters.
    ///
    /// A look at the clock costs more than all the rest of a request that nothing holds back. While nothing is limited, a
    /// thread that counts requests one after the other asks for the time of one of them, and then not before as many
    /// have come as came in a millisecond, 255 at most. A thread whose requests come evenly looks every 2 ms or oftener, and one
    /// that is slow looks each time.
    ///
    /// # What it costs in exactness
    ///
    /// No count is ever lost or late: only the ends of the windows, in which the rate is measured, are noticed late; by 2 ms
    /// if requests come evenly, and by up to 255 requests of each thread if their rate drops. So at the first throttle the
    /// measured rate may be off by 1/250, and more if the traffic had just subsided. From then on
    /// every request looks. Threads beyond 256, and all without the feature `std`, look each time.
    pub fn record_with(
        &self,
        now: impl FnOnce() -> Timestamp,
        permit: SendPermit,
        outcome: Outcome,
    ) {
        if outcome != Outcome::NotThrottled || permit.weight() != 1 {
            return self.record(now(), permit, outcome);
        }
        if self.count_untimed() {
            return;
        }
        let elapsed = self.elapsed(now());
        if self.gate.is_engaged() {
            self.meter.count(1);
        } else {
            self.meter.count_at(elapsed);
        }
        self.follow(elapsed, permit);
    }

    /// Counts a request that was not throttled without a look at the clock, if that may be.
    #[inline]
    pub(crate) fn count_untimed(&self) -> bool {
        !self.gate.is_engaged() && self.meter.count_untimed()
    }

    fn record_delivered(&self, elapsed: u64, permit: SendPermit) {
        self.meter.count(permit.weight());
        self.follow(elapsed, permit);
    }

    /// Does what has to be done after a request was counted that was not throttled.
    fn follow(&self, elapsed: u64, permit: SendPermit) {
        if self.gate.is_quiet(elapsed) {
            return;
        }
        match (&self.law, self.limited()) {
            (Law::Aws, limited) => {
                let elapsed = turn_window(&self.gate, &self.meter, self.windows, elapsed);
                if let Some(limited) = limited {
                    limited.follow_curve(elapsed);
                    limited.nudge(elapsed);
                }
            }
            (Law::Paced(_), None) => {
                let sent = sent_at(self.start(), permit, elapsed);
                let (end, _) = self.meter.end_window(elapsed, sent, false);
                self.gate.open_until(end);
            }
            (Law::Paced(tuning), Some(limited)) => {
                let sent = sent_at(self.start(), permit, elapsed);
                if elapsed >= self.gate.window_end() {
                    let settings = tuning.get();
                    limited.end_window(&settings, elapsed, sent);
                    if !limited.throttle.load().is_engaged() {
                        limited.hold_to_ceiling(&tuning.get(), elapsed);
                    }
                }
                limited.follow_curve(elapsed);
                limited.nudge(elapsed);
            }
        }
    }
}

/// Turns the window of the measured rate if `elapsed` is past it, and returns the time to record at:
/// `elapsed`, or the beginning of the window if that is later.
///
/// A thread that was stopped between reading its clock and recording does not take the line back further.
fn turn_window(gate: &Gate, meter: &Meter, windows: Windows, elapsed: u64) -> u64 {
    let window = meter.turn(windows, elapsed);
    gate.open_until(window.end);
    elapsed.max(window.start)
}

/// Returns when a request was sent that was answered at `elapsed`: then, if nobody knows.
fn sent_at(start: Timestamp, permit: SendPermit, elapsed: u64) -> u64 {
    if permit.is_timed() {
        super::limit::elapsed(start, permit.time()).min(elapsed)
    } else {
        elapsed
    }
}

impl Limited<'_> {
    /// Records a throttle that asked for a pause of `hint`.
    #[cold]
    fn record_throttled(&self, elapsed: u64, permit: SendPermit, hint: Duration) {
        match self.law {
            // The published law does not ask when a request was sent, nor what the service said.
            Law::Aws => {
                self.meter.count(permit.weight());
                let elapsed = turn_window(self.gate, self.meter, self.windows, elapsed);
                self.replace_throttle(elapsed, |last, head| {
                    let fill = last.is_engaged().then(|| head.rate());
                    let peak = aws::peak(self.meter.measured(), fill);
                    Some(last.next(elapsed, peak))
                });
            }
            Law::Paced(tuning) => {
                let settings = tuning.get();
                let pause = u64::try_from(hint.as_nanos()).unwrap_or(u64::MAX);
                let until = elapsed
                    .saturating_add(pause.min(LONGEST_PAUSE))
                    .min(LAST_TIME);
                self.replace_throttle(elapsed, |last, _| {
                    let sent = if permit.is_timed() || !last.is_engaged() {
                        sent_at(self.start, permit, elapsed)
                    } else {
                        0 // while nothing was limited yet, so before the last cut
                    };
                    self.paced_throttle(&settings, last, elapsed, sent, until)
                });
            }
        }
    }

    /// Ends the window of the delivered rate if it is over, and does what the paced law makes of it.
    fn end_window(&self, settings: &PacedSettings, elapsed: u64, sent: u64) {
        let throttle = self.throttle.load();
        let cut = cut_of(throttle);
        let starved = paced::is_starved(cut.memory, cut.since, elapsed);
        let (end, known) = self.meter.end_window(elapsed, sent, starved);
        self.gate.open_until(end);
        let WindowEnd::Counted(rate) = known else {
            return;
        };
        if !throttle.is_engaged() {
            return;
        }
        self.replace_throttle(elapsed, |last, _| {
            if !last.is_engaged() {
                return None;
            }
            let cut = cut_of(last);
            if let Some(memory) = after_window(settings, cut, elapsed, rate) {
                return Some(last.next_with(elapsed, memory.to_bits()));
            }
            let delivered = self.meter.delivered(elapsed)?;
            let over = paced::is_over(settings, cut, elapsed, &delivered);
            (over && !self.is_waited_for(elapsed)).then(|| last.ended())
        });
    }

    /// Whether somebody stands in line.
    fn is_waited_for(&self, elapsed: u64) -> bool {
        let (_, line) = self.segments.read();
        let issued = self.last_rank();
        line.wait_for(elapsed, issued).is_some()
    }

    /// Returns what a throttle makes of the paced law's memory. `until` is when the pause ends that it asks for.
    fn paced_throttle(
        &self,
        settings: &PacedSettings,
        last: Throttle,
        now: u64,
        sent: u64,
        until: u64,
    ) -> Option<Throttle> {
        let delivered: Option<Delivered> = self.meter.delivered(now);
        let seen = Seen {
            now,
            sent,
            since_cut: self.mark.since_cut(last.version(), self.meter),
            delivered,
        };
        let memory = if last.is_engaged() {
            after_throttle(settings, cut_of(last), &seen)
        } else {
            Some(first_cut(settings, &seen))
        };
        let pauses = until > now;
        // Nothing new but the pause, perhaps.
        let memory = match memory {
            None if pauses && until > last.since() => cut_of(last).memory,
            memory => memory?,
        };
        let memory = if pauses { memory.with_pause() } else { memory };
        Some(last.next_with(until, memory.to_bits()))
    }

    /// Whether nothing is to be gained by [`follow_curve`](Self::follow_curve) at `elapsed`, under the paced law.
    pub(super) fn is_followed(&self, elapsed: u64) -> bool {
        let edition = self.law.edition();
        self.followed.is_at(self.throttle.load(), edition, elapsed)
    }

    /// Moves the fill rate along the curve, unless the limiter limits nothing or another thread does.
    pub(super) fn follow_curve(&self, elapsed: u64) {
        if !self.gate.is_engaged() {
            return;
        }
        loop {
            let head = self.segments.head();
            let throttle = self.throttle.load();
            if !head.follows(throttle.version()) {
                self.apply_throttle(elapsed);
                continue;
            }
            if !throttle.is_engaged() {
                return;
            }
            match self.law {
                Law::Aws => self.follow_published(head, throttle, elapsed),
                // In a pause, or by an older clock than the last cut's, there is nothing to move.
                Law::Paced(_) if elapsed < throttle.since() => {}
                // A pause ends when it was to end, not when somebody looks.
                Law::Paced(_) if head.since() < throttle.since() => {
                    let rate = self.law.resumed(throttle);
                    self.change(head, throttle.since(), rate, throttle.version());
                    continue;
                }
                Law::Paced(_) => self.follow_paced(head, throttle, elapsed),
            }
            return;
        }
    }

    fn follow_published(&self, head: Head, throttle: Throttle, elapsed: u64) {
        let rate = self.law.rate(
            throttle,
            elapsed,
            || self.meter.measured(),
            |peak| self.followed.time_to_peak(peak),
        );
        if rate != head.rate() {
            // One try: a loss means that another success, which computes the same curve, or a
            // throttle, which must not be undone, came first.
            self.change(head, elapsed, rate, throttle.version());
        }
    }

    fn follow_paced(&self, head: Head, throttle: Throttle, elapsed: u64) {
        let edition = self.law.edition();
        if self.followed.is_at(throttle, edition, elapsed) {
            return;
        }
        let rate = self.law.rate(throttle, elapsed, || Rate::MAX, time_to_peak);
        // One try: as above. But who came first may have gone by older settings.
        if rate == head.rate() || self.change(head, elapsed, rate, throttle.version()) {
            self.followed.note(throttle, edition, elapsed);
        }
    }

    /// Replaces the throttle's word by what `next` makes of it, and lets that take effect; or leaves it.
    ///
    /// What is recorded is never lost: the call ends when it, or a later one, has taken effect, or when it makes
    /// nothing of the word.
    pub(super) fn replace_throttle(
        &self,
        elapsed: u64,
        next: impl Fn(Throttle, Head) -> Option<Throttle>,
    ) {
        loop {
            let last = self.throttle.load();
            let head = self.segments.head();
            // The head was read while this was the last throttle, so that it follows it or the one before.
            if self.throttle.load() != last {
                continue;
            }
            if !head.follows(last.version()) {
                self.apply_throttle(elapsed);
                continue;
            }
            let mark = self.mark.load();
            let Some(next) = next(last, head) else {
                return;
            };
            if self.throttle.replace(last, next) {
                if !self.law.is_published() {
                    self.mark.advance(mark, next.version(), self.meter);
                }
                return self.apply_throttle(elapsed);
            }
        }
    }

    /// Lets the last throttle's rate take effect, if it has not yet. Anyone may do it for the one that was
    /// throttled: the rate follows from the throttle's word.
    pub(super) fn apply_throttle(&self, elapsed: u64) {
        loop {
            // In this order: a head older than the throttle makes the change fail, never go back.
            let head = self.segments.head();
            let throttle = self.throttle.load();
            if head.follows(throttle.version()) {
                return;
            }
            let (since, rate) = self.law.first_rate(throttle, elapsed);
            self.change(head, since, rate, throttle.version());
        }
    }

    /// Ends segment `head` at `elapsed`, and begins one at `rate`. Does nothing if another thread has ended it: false.
    pub(super) fn change(&self, head: Head, elapsed: u64, rate: Rate, throttle: u64) -> bool {
        let (current, line) = self.segments.read();
        current == head
            && self.end_segment(head, &line, elapsed.max(head.since()), |end| {
                head.next(end, rate, throttle)
            })
    }

    /// Replaces `head`, whose line is `line`, at `end`. False if another thread has replaced it first.
    pub(super) fn end_segment(
        &self,
        head: Head,
        line: &Line,
        end: u64,
        next: impl Fn(u64) -> Head,
    ) -> bool {
        let cancelled = self.cancellations.total();
        // With the capacity that ends: what it has discarded must not come back with a larger one.
        let _ = self.issue(|issued| Ok::<_, Infallible>(line.settled(end, issued, cancelled)));
        let replaced = self.segments.replace(head, next(end));
        // Here too, for callers who never wait in line: the front must not fall behind until places wrap.
        self.retire(line, end);
        replaced
    }
}
