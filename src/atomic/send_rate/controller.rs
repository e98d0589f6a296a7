//! A law bound to its words: the state it is in, what has been counted, and its settings.

use alloc::boxed::Box;

use super::limits::{Limits, Unheard};
use crate::atomic::counter::{Stripe, Stripes};
use crate::atomic::lazy::Lazy;
use crate::atomic::sync::{
    AtomicU64, AtomicU128,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::bits::Field;
use crate::fixed::Rate;
use crate::law::aws::{Aws, Windows};
use crate::law::cubic::time_to_peak;
use crate::law::declared::Dimension;
use crate::law::paced::{PacedSettings, PacedSettingsError};
use crate::law::{Controller, Counted, Draining, State, Window};

/// The law of one limiter, with the settings that may change while it is at work.
pub(super) struct BoundLaw {
    /// Boxed, so that a limiter stays small. `None` is the published law, which has no settings.
    tuned: Option<Box<Tuned>>,
    windows: Windows,
    /// Whether declared limits are obeyed.
    listens: bool,
    /// Whether threads may take tokens ahead.
    lends: bool,
}

struct Tuned {
    made_with: Controller,
    /// The settings in force, as the law packs them.
    word: AtomicU128,
    /// Made by the first report. `None` under laws that do not listen.
    limits: Option<Lazy<Limits>>,
    /// Of which dimension declared limits are obeyed.
    obeyed: Dimension,
    unheard: Unheard,
}

// Orderings of `word`. Relaxed: it is all there is to the settings, so they are always those of one
// call, and a thread that reads it twice gets no older ones the second time. Who computes a rate by
// older settings does not get it past the gate, whose version is raised on both sides of a change.
// Models: `paced::a_lower_ceiling_is_obeyed`, `paced::two_changes_at_once_leave_the_rate_of_one`.
impl BoundLaw {
    pub(super) fn new(law: Controller, windows: Windows) -> Self {
        let is_tuned = !matches!(law, Controller::Aws(_));
        let tuned = is_tuned.then(|| {
            Box::new(Tuned {
                made_with: law,
                word: AtomicU128::new(law.to_word()),
                limits: law.declared().map(|_| Lazy::new(Limits::new)),
                obeyed: Dimension::Requests,
                unheard: Unheard::new(),
            })
        });
        Self {
            tuned,
            windows,
            listens: law.declared().is_some(),
            lends: matches!(law, Controller::Paced(_)),
        }
    }

    /// Lets no thread take tokens ahead.
    #[cfg(test)]
    pub(super) fn lend_nothing(&mut self) {
        self.lends = false;
    }

    /// Whether threads may take tokens ahead: not where sends are counted in order, nor where each
    /// response moves the rate.
    #[inline]
    pub(super) const fn lends(&self) -> bool {
        self.lends
    }

    /// Sets which declared limits are obeyed.
    pub(super) fn obey(&mut self, dimension: Dimension) {
        if let Some(tuned) = &mut self.tuned {
            tuned.obeyed = dimension;
        }
    }

    /// Whether declared limits are obeyed.
    #[inline]
    pub(super) const fn listens(&self) -> bool {
        self.listens
    }

    /// Returns which declared limits are obeyed, if the law listens.
    pub(super) fn obeys(&self) -> Option<Dimension> {
        let tuned = self.tuned.as_ref().filter(|_| self.listens)?;
        Some(tuned.obeyed)
    }

    /// Returns the count of answers before the first report, if the law listens.
    pub(super) fn unheard(&self) -> Option<&Unheard> {
        if !self.listens {
            return None;
        }
        Some(&self.tuned.as_ref()?.unheard)
    }

    /// Returns the declared limits, if there has been a report.
    pub(super) fn limits(&self) -> Option<&Limits> {
        if !self.listens {
            return None;
        }
        self.tuned.as_ref()?.limits.as_ref()?.get()
    }

    /// Returns the declared limits, of a law that listens.
    pub(super) fn make_limits(&self) -> Option<&Limits> {
        let limits = self.tuned.as_ref()?.limits.as_ref()?;
        Some(limits.get_or_make(Limits::new))
    }

    /// Returns the law with the settings that are in force.
    pub(super) fn get(&self) -> Controller {
        match &self.tuned {
            None => Controller::Aws(Aws {
                windows: self.windows,
            }),
            Some(tuned) => tuned.made_with.with_word(tuned.word.load(Relaxed)),
        }
    }

    /// Returns the published law, `None` if it is another one.
    pub(super) fn published(&self) -> Option<Aws> {
        self.tuned.is_none().then_some(Aws {
            windows: self.windows,
        })
    }

    /// Whether it is the published law.
    pub(super) const fn is_published(&self) -> bool {
        self.tuned.is_none()
    }

    /// Whether time alone moves the rate.
    pub(super) fn moves_by_itself(&self) -> bool {
        let tuned = self.tuned.as_ref();
        tuned.is_some_and(|tuned| tuned.made_with.moves_by_itself())
    }

    /// Whether the settings are those that the limiter was made with.
    #[cfg(feature = "std")]
    pub(super) fn is_as_made(&self) -> bool {
        let tuned = self.tuned.as_ref();
        tuned.is_none_or(|tuned| tuned.made_with.to_word() == tuned.word.load(Relaxed))
    }

    /// Replaces the settings of the paced law, unless they change one that stays.
    pub(super) fn set_paced(&self, settings: PacedSettings) -> Result<(), PacedSettingsError> {
        let unchangeable = PacedSettingsError::Unchangeable { setting: "law" };
        let tuned = self.tuned.as_ref().ok_or(unchangeable)?;
        let made_with = tuned.made_with.paced().ok_or(unchangeable)?;
        settings.starts_like(&made_with)?;
        // The declared law packs the settings of the paced one.
        tuned
            .word
            .store(Controller::Paced(settings).to_word(), Relaxed);
        Ok(())
    }
}

/// The state word. Its compare-and-swap decides that there was a throttle and what rate follows.
/// Requests go by that rate once `head` has it, which the next recorder sees to if the throttled
/// one has stopped.
pub(super) struct LastState(AtomicU128);

impl LastState {
    pub(super) fn new() -> Self {
        Self(AtomicU128::new(State::NONE.to_bits()))
    }

    pub(super) fn load(&self) -> State {
        // Acquire, with the release below: a thread that sees version `n` must see a head that
        // follows `n − 1` at least, because the one bit that they share cannot tell more
        // than two apart. Model: `send_rate::three_throttles_all_cut`.
        State::from_bits(self.0.load(Acquire))
    }

    /// Moves the time of the state back to `now`, if it is later.
    pub(super) fn bring_back(&self, now: u64) {
        loop {
            let seen = self.load();
            if seen.since() <= now || self.replace(seen, seen.brought_back(now)) {
                return;
            }
        }
    }

    /// Replaces `seen` by `next`. False if there was another state in between.
    pub(super) fn replace(&self, seen: State, next: State) -> bool {
        // Release hands over the head that the next state was made from, see `load`; after a loss
        // all is loaded again. A word comes back only after 65,534 states with the same
        // memory at one reading of the clock.
        self.0
            .compare_exchange(seen.to_bits(), next.to_bits(), Release, Relaxed)
            .is_ok()
    }
}

/// Counts requests, and keeps the law's reading of the counts.
pub(super) struct Meter {
    reading: AtomicU128,
    counts: Stripes,
}

impl Meter {
    /// Creates the meter of a law, and returns the end of the first window.
    pub(super) fn new(law: &Controller) -> (Self, u64) {
        // Just before the wrap, so that every test crosses it.
        let count = u64::MAX.wrapping_sub(1);
        let (reading, end) = law.first_reading(count);
        let meter = Self {
            reading: AtomicU128::new(reading),
            counts: Stripes::new(count),
        };
        (meter, end)
    }

    /// Counts a request that took `weight` tokens: the rate is one of tokens.
    pub(super) fn count(&self, weight: u32) {
        self.counts.add(u64::from(weight));
    }

    /// Counts one request at `now`, and may allow for some without the time.
    pub(super) fn count_at(&self, now: u64) {
        match self.counts.stripe() {
            Some(stripe) => stripe.add_one_at(now),
            None => self.counts.add(1),
        }
    }

    /// Counts one request if the calling thread need not look at the clock for it.
    pub(super) fn count_untimed(&self) -> bool {
        self.counts.stripe().is_some_and(Stripe::try_add_one)
    }

    /// Whether the calling thread need not look at the clock for its next request.
    pub(super) fn is_ahead(&self) -> bool {
        self.counts.stripe().is_some_and(Stripe::is_ahead)
    }

    pub(super) fn reading(&self) -> u128 {
        // Acquire: a thread that sums the counts after this load must see at least those that went
        // into the base that it has read, or the difference would wrap. Pairs with the
        // release in `replace`. Model: `send_rate::a_window_never_counts_below_zero`.
        self.reading.load(Acquire)
    }

    /// Returns the sum of all counts, wrapping.
    pub(super) fn sum(&self) -> u64 {
        self.counts.sum()
    }

    pub(super) fn counted(&self) -> Counted {
        let reading = self.reading();
        // After the load, see there.
        let sum = self.sum();
        Counted { reading, sum }
    }

    /// Replaces `seen` by `next`. False if another thread has replaced it first.
    fn replace(&self, seen: u128, next: u128) -> bool {
        // Release publishes the counts behind the base to the next thread that sums. Strong,
        // because one caller alone must never fail; after a loss all is loaded again.
        // Models: `send_rate::a_window_never_counts_below_zero`,
        // `send_rate::no_count_is_lost_at_a_turn`.
        let replaced = self
            .reading
            .compare_exchange(seen, next, Release, Relaxed)
            .is_ok();
        if replaced {
            self.counts.forget_meetings();
        }
        replaced
    }

    /// Ends the window if it is over at `now`, when a response to a request sent at `sent` has been
    /// counted. The first thread to end it has done so for all: the sum that one window ends
    /// with is the base of the next.
    ///
    /// Returns what the window is, and the reading.
    pub(super) fn turn(
        &self,
        law: &Controller,
        state: State,
        now: u64,
        sent: u64,
    ) -> (Window, u128) {
        loop {
            let reading = self.reading();
            // The sum after the load, see there.
            let window = law.turn(reading, || self.sum(), state, now, sent);
            match window.next {
                None => return (window, reading),
                Some(next) if self.replace(reading, next) => return (window, next),
                Some(_) => {}
            }
        }
    }

    /// Begins a window at `now`, from zero, and returns its end; 0 if there has been none.
    pub(super) fn restart(&self, law: &Controller, now: u64) -> u64 {
        loop {
            let counted = self.counted();
            let Some((next, end)) = law.restarted(counted, now) else {
                return 0;
            };
            if self.replace(counted.reading, next) {
                return end;
            }
        }
    }
}

/// How many responses had been counted when the law entered its state: 16 bits of the state's
/// version above 48 of count.
pub(super) struct CutBaseline(AtomicU64);

impl CutBaseline {
    const VERSION_SHIFT: u32 = 48;
    const COUNT: u64 = (1 << Self::VERSION_SHIFT) - 1;

    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    pub(super) fn load(&self) -> u64 {
        // Relaxed, here and below: a baseline says of which version it is, and a count that is
        // behind it is taken for none.
        self.0.load(Relaxed)
    }

    /// Notes the count at the state of `version`, unless `seen` has been replaced: by that of a
    /// later one.
    pub(super) fn advance(&self, seen: u64, version: u64, meter: &Meter) {
        self.replace(seen, version, meter.sum());
    }

    /// Keeps the count of the state of `last` for that of `version`, which is the same cut.
    pub(super) fn carry(&self, seen: u64, last: u64, version: u64) {
        if seen >> Self::VERSION_SHIFT == last {
            self.replace(seen, version, seen);
        }
    }

    fn replace(&self, seen: u64, version: u64, count: u64) {
        let next = (version << Self::VERSION_SHIFT) | (count & Self::COUNT);
        let _ = self.0.compare_exchange(seen, next, Relaxed, Relaxed);
    }

    /// Returns the responses since the state of `version`. `None` while the thread that entered it
    /// has not noted it.
    pub(super) fn since(&self, version: u64, meter: &Meter) -> Option<u64> {
        let noted = self.load();
        if noted >> Self::VERSION_SHIFT != version {
            return None;
        }
        let counted = meter.sum().wrapping_sub(noted) & Self::COUNT;
        // None if the sum is older.
        Some(counted)
            .filter(|counted| *counted <= Self::COUNT >> 1)
            .or(Some(0))
    }
}

/// What is counted after the first throttle, until all that was sent before it has come back: it
/// may show that the first estimate was wrong.
pub(super) struct DrainWord(AtomicU128);

// Relaxed throughout: all counts are in one word, which says of which state it is. It is begun
// before the state is swapped in, so that a thread that has loaded that state, with acquire, finds
// it begun. Models: `paced::no_response_after_the_first_throttle_goes_uncounted`,
// `paced::responses_that_come_back_at_once_all_count`.
impl DrainWord {
    pub(super) fn new() -> Self {
        Self(AtomicU128::new(0))
    }

    pub(super) fn load(&self) -> Draining {
        Draining::from_bits(self.0.load(Relaxed))
    }

    /// Begins to count for the state of `version`, which is about to be swapped in, unless another
    /// thread has.
    pub(super) fn begin(&self, version: u64, counts: u128) {
        let seen = self.load();
        if seen.of(version).is_none() {
            let _ = self.replace(seen, Draining::new(version, counts));
        }
    }

    /// Counts no more.
    pub(super) fn clear(&self) {
        self.0.store(0, Relaxed);
    }

    /// Replaces the counts. False if another response was counted first.
    pub(super) fn replace(&self, seen: Draining, next: Draining) -> bool {
        let (seen, next) = (seen.to_bits(), next.to_bits());
        self.0
            .compare_exchange(seen, next, Relaxed, Relaxed)
            .is_ok()
    }
}

const PEAK: Field = Field::lowest(Rate::BITS);
const TIME: Field = PEAK.above(64);

/// A peak, and how long after the cut it is reached: a hint that saves a cube root.
pub(super) struct CurveCache(AtomicU128);

impl CurveCache {
    pub(super) fn new() -> Self {
        // The peak of zero, reached at once.
        Self(AtomicU128::new(0))
    }

    /// Returns [`time_to_peak`] of `peak`.
    pub(super) fn time_to_peak(&self, peak: Rate) -> u64 {
        self.time_to_packed(peak.to_bits())
    }

    /// As [`time_to_peak`](Self::time_to_peak), of a packed peak.
    #[inline]
    pub(super) fn time_to_packed(&self, peak: u64) -> u64 {
        // Relaxed: the argument and the value of a pure function, in one word.
        let known = self.0.load(Relaxed);
        if PEAK.get(known) == peak {
            return TIME.get(known);
        }
        self.learn(peak)
    }

    #[cold]
    fn learn(&self, peak: u64) -> u64 {
        let time = time_to_peak(Rate::from_bits(peak));
        self.0.store(PEAK.put(peak) | TIME.put(time), Relaxed);
        time
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::fixed::SECOND;

    #[test]
    fn a_count_is_carried_to_another_state_of_the_same_cut() {
        let (meter, _) = Meter::new(&Controller::Paced(PacedSettings::new()));
        let baseline = CutBaseline::new();
        let since = |version| baseline.since(version, &meter);
        baseline.advance(baseline.load(), 5, &meter);
        meter.count(3);
        assert_eq!([5, 6].map(since), [Some(3), None]);
        baseline.carry(baseline.load(), 4, 6);
        assert_eq!([5, 6].map(since), [Some(3), None], "that is another cut");
        baseline.carry(baseline.load(), 5, 6);
        assert_eq!([5, 6].map(since), [None, Some(3)]);
    }

    /// Another thread may have noted the count a moment before this one adds up its own.
    #[test]
    fn a_sum_that_is_older_than_the_count_noted_is_none_since() {
        let (meter, _) = Meter::new(&Controller::Paced(PacedSettings::new()));
        let baseline = CutBaseline::new();
        baseline.replace(baseline.load(), 5, meter.sum().wrapping_add(1));
        assert_eq!(baseline.since(5, &meter), Some(0));
        meter.count(2);
        assert_eq!(baseline.since(5, &meter), Some(1));
    }

    #[test]
    fn the_time_to_the_last_peak_is_remembered() {
        let cache = CurveCache::new();
        let peak = Rate::from_ratio(100, SECOND);
        let time = cache.time_to_peak(peak);
        assert_eq!(time, time_to_peak(peak));
        let known = cache.0.load(Relaxed);
        assert_eq!((PEAK.get(known), TIME.get(known)), (peak.to_bits(), time));
        // It is believed, whatever it says.
        cache
            .0
            .store(PEAK.put(peak.to_bits()) | TIME.put(7), Relaxed);
        assert_eq!(cache.time_to_peak(peak), 7);
    }
}
