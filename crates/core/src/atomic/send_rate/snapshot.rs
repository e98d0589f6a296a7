//! The state of a limiter for people to read: the only floating point of the crate.

use core::time::Duration;

use super::SendRate;
use super::acquire::Engaged;
use crate::Timestamp;
use crate::atomic::sync::Ordering::Relaxed;
use crate::fixed::Rate;
use crate::law::{Dimension, LearnedRate, LimitName, State};
use crate::line::capacity;

/// The state of a [`SendRate`], for diagnostics.
///
/// Each field was true at some moment of the call, but perhaps not all at the same moment. While no
/// other thread is at work, all fields belong together. The state itself is in fixed point.
/// `Display` and `Debug` say "unlimited" while sends are not limited, and "none" in a pause.
#[derive(Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate fact")]
pub struct SendRateSnapshot {
    /// Whether the limiter limits: there has been a throttle.
    pub enabled: bool,
    /// Tokens per second, 0 during a pause. Under [`ControlLaw::Paced`](crate::ControlLaw::Paced)
    /// this is the law's rate at this moment. Under a declared limit, it is the rest of the limit
    /// divided by the time to the reset. Just before a reset this is far above the limit's average,
    /// which [`declared`](Self::declared) has. While not enabled, it is the rate at which the
    /// published law would fill, or the paced law's highest rate.
    pub fill_rate: f64,
    /// The most tokens that the bucket holds; 0 during a pause.
    pub capacity: f64,
    /// The tokens in the bucket, 0 if there is a line. While not enabled, the capacity.
    pub available: f64,
    /// The measured rate of requests, per second. The paced law measures only requests that were
    /// not throttled. If it counts windows, this is the rate at the last opening.
    pub measured_rate: f64,
    /// The rate at which the last throttle came, as the law takes it, per second; 0 before the
    /// first throttle. The paced law shows the peak that it returns to, or the rate at the last
    /// opening if it counts windows.
    pub last_max_rate: f64,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) is_measured: bool,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) is_peak_seen: bool,
    /// The tokens promised and not minted yet: the weight of each place in line that has not been
    /// given up. A place that has come due no longer counts, even if unclaimed. While not enabled,
    /// 0.
    pub waiting: u64,
    /// The state of [background](crate::Class::Background).
    pub background: BackgroundSnapshot,
    /// How many requests of one token to have in flight. This is the number sent in one and a half
    /// round trips, plus 1, rounded up to four significant bits. Further requests only stand in
    /// line; with fewer the rate may not be reached. `None` while not enabled, before a round trip
    /// is known, and from half of the highest possible rate, which limits nothing.
    pub in_flight: Option<u64>,
    /// The declared limit of which the least is left, under
    /// [`ControlLaw::Declared`](crate::ControlLaw::Declared).
    pub declared: Option<DeclaredLimit>,
    /// Whether a limiter of [`ControlLaw::Declared`](crate::ControlLaw::Declared) has had three
    /// answers or more, and no report of a limit. Then the service declares none, or the reports do
    /// not reach [`observe`](SendRate::observe). Attempts that failed without an answer count as
    /// answers. Throttles that are [forgotten](SendRate::forget_throttles) begin the count again,
    /// and so does a [reset](SendRate::reset).
    pub unheard: bool,
    /// How many reports were [ignored](SendRate::ignored_reports).
    pub ignored_reports: u64,
}

impl SendRateSnapshot {
    /// Returns the [measured rate](Self::measured_rate), or `None` before the first window is over:
    /// until then the field has no meaning.
    #[must_use]
    pub fn measured(&self) -> Option<f64> {
        self.is_measured.then_some(self.measured_rate)
    }

    /// Returns the [rate of the last throttle](Self::last_max_rate), or `None` before the first
    /// throttle: until then the field is the law's first value. Also `None` after a first throttle
    /// that came before eight responses, because the law has guessed its peak.
    #[must_use]
    pub fn peak(&self) -> Option<f64> {
        self.is_peak_seen.then_some(self.last_max_rate)
    }
}

/// The state of background at one [`SendRate`], for diagnostics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct BackgroundSnapshot {
    /// The tokens that background waits for. While the limiter is not enabled, 0.
    pub waiting: u64,
    /// The tokens that background has got since the limiter was made, while the limiter was
    /// enabled. If this stays at 0, no request is marked as background.
    pub released: u64,
}

/// A limit that a service has declared, for diagnostics.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct DeclaredLimit {
    /// What the limit counts.
    pub dimension: Dimension,
    /// The limit's name, empty if it has none.
    pub policy: LimitName,
    /// How large the limit is.
    pub limit: u64,
    /// The time in which the limit may be used once, as declared or found out. Before that the
    /// window is a guess. It may stay a guess if it takes a few seconds and resets are whole
    /// seconds.
    pub window: Duration,
    /// Whether the limit comes back all the time (true) or at a reset (false); `None` while
    /// unknown.
    pub refills: Option<bool>,
    /// What is left, by the last report and the requests sent since.
    pub remaining: f64,
    /// The longest time until all of the limit is back at once; `None` if it refills, or if no
    /// reset is known.
    pub resets_in: Option<Duration>,
    /// How long ago the last report came.
    pub heard_ago: Duration,
    /// Whether a recent throttle has contradicted the limit. Then the paced law helps to set the
    /// rate.
    pub contradicted: bool,
    /// Whether the limit was given up, because two resets in a row brought nothing back. Then the
    /// paced law decides.
    pub given_up: bool,
}

impl SendRate {
    /// Returns the state at `now`, and changes nothing.
    #[must_use]
    pub fn snapshot(&self, now: Timestamp) -> SendRateSnapshot {
        let elapsed = self.law.elapsed(now);
        let law = self.law.get();
        let engaged = self.words();
        let state = engaged.map_or(State::NONE, |engaged| engaged.state.load());
        let read = engaged.map(|engaged| (engaged, engaged.line().read()));
        let shown = law.shown(state, self.meter.counted(), elapsed);
        let limited = read.filter(|_| state.is_engaged());
        let (fill, held, available, waiting) = match limited {
            Some((engaged, (head, line))) => (
                engaged.adaptation().fill_rate(state, head, &line, elapsed),
                // A line that does not follow the state yet still has its own bucket, and requests
                // find it.
                (!head.follows(state.version())).then(|| line.capacity()),
                engaged.available(&line, elapsed),
                engaged.waiting(&line, elapsed),
            ),
            None => (shown.idle, None, u128::MAX, 0),
        };
        let held = held.unwrap_or_else(|| capacity(fill, self.law.get().burst()));
        let capacity = u128::from(held) << 40;
        SendRateSnapshot {
            enabled: state.is_engaged(),
            fill_rate: if fill == Rate::LEAST {
                0.0
            } else {
                per_second(fill)
            },
            capacity: tokens(capacity),
            available: tokens(available.min(capacity)),
            measured_rate: per_second(shown.measured),
            last_max_rate: per_second(shown.peak),
            is_measured: shown.is_measured,
            is_peak_seen: shown.is_peak_seen,
            waiting,
            background: engaged
                .as_ref()
                .and_then(Engaged::second_line_if_made)
                .map(|second| second.snapshot(limited.is_some()))
                .unwrap_or_default(),
            in_flight: limited
                .map(|(engaged, _)| engaged.beside().trip.load(Relaxed))
                .filter(|trip| *trip > 0 && fill < Rate::MAX.half())
                .map(|trip| in_flight(fill, trip)),
            declared: self.declared_limit(now),
            unheard: self.law.is_unheard(),
            ignored_reports: self.ignored_reports(),
        }
    }

    /// Returns the rate for the limiter of the next process to [begin
    /// at](crate::law::PacedSettingsBuilder::learned): the last peak, or the current rate if lower.
    /// For a service that counts windows, it is the rate at the last opening, with the time over
    /// which that was counted. If the service is shut or a declared limit is spent, the result
    /// includes the time until that ends. `None` while nothing is limited, and under the published
    /// law.
    #[must_use]
    pub fn learned(&self, now: Timestamp) -> Option<LearnedRate> {
        let elapsed = self.law.elapsed(now);
        let law = self.law.get();
        let engaged = self.words().filter(|_| law.paced().is_some())?;
        let state = engaged.state.load();
        // A spent limit has one token for the request that asks each hour.
        let spent = self
            .declared_limit(now)
            .filter(|limit| limit.remaining <= 1.0);
        if let Some((spent, reset)) = spent.and_then(|spent| Some((spent, spent.resets_in?))) {
            let [window, shut] = [spent.window, reset]
                .map(|span| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
            let limit = u32::try_from(spent.limit).unwrap_or(u32::MAX);
            let rate = Rate::from_ratio(limit, window);
            return Some(LearnedRate::new(rate, None).shut_for(shut));
        }
        if !state.is_engaged() {
            return None;
        }
        let shut = state.since().saturating_sub(elapsed);
        let (head, line) = engaged.line().read();
        let shown = law.shown(state, self.meter.counted(), elapsed);
        let rate = match engaged.adaptation().fill_rate(state, head, &line, elapsed) {
            Rate::LEAST => shown.peak, // in a pause
            _ if shown.is_shut => shown.peak,
            fill => fill.min(shown.peak),
        };
        Some(LearnedRate::new(rate, shown.cycle).shut_for(shut))
    }

    /// Returns which declared limits are obeyed, if the law listens.
    #[doc(hidden)]
    #[must_use]
    pub fn obeys(&self) -> Option<Dimension> {
        self.law.obeys()
    }

    /// Returns `true` if declared limits are obeyed, and several answers came without a report.
    #[doc(hidden)]
    #[must_use]
    pub fn is_unheard(&self) -> bool {
        self.law.is_unheard()
    }

    /// Returns `true` if sends are limited.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn is_limiting(&self) -> bool {
        let state = self.engaged().map(|engaged| engaged.state.load());
        state.is_some_and(State::is_engaged)
    }
}

/// Converts an amount with 20 fraction bits to tokens.
#[expect(
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    reason = "for diagnostics"
)]
pub(super) fn whole(amount: i128) -> f64 {
    amount.max(0) as f64 / f64::from(1 << 20)
}

/// Returns how many requests are under way at `rate` in one and a half trips of `trip` nanoseconds,
/// and one more. The number is rounded up to four bits, so that it rarely changes.
fn in_flight(rate: Rate, trip: u64) -> u64 {
    let count = rate
        .tokens_in(trip.saturating_add(trip >> 1))
        .saturating_add(1);
    let rest = u64::BITS
        .wrapping_sub(4)
        .saturating_sub(count.leading_zeros());
    let step = 1_u64.wrapping_shl(rest);
    count.div_ceil(step).saturating_mul(step)
}

/// Converts units of 2⁻⁶⁴ to tokens.
#[expect(
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    reason = "for diagnostics"
)]
fn tokens(units: u128) -> f64 {
    units as f64 / 18_446_744_073_709_551_616.0
}

#[expect(clippy::float_arithmetic, reason = "for diagnostics")]
fn per_second(rate: Rate) -> f64 {
    tokens(rate.raw().into()) * 1e9
}

#[cfg(test)]
#[expect(clippy::float_arithmetic, reason = "for diagnostics")]
mod tests {
    use super::*;
    use crate::fixed::SECOND;
    use crate::law::{LimitReport, PacedSettings, Reset};
    use crate::{ControlLaw, Outcome, SendPermit};

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    fn record(rate: &SendRate, nanos: u64, outcome: Outcome) {
        rate.record(at(nanos), SendPermit::sent_at(at(nanos)), outcome);
    }

    fn assert_close(got: f64, want: f64) {
        assert!((got - want).abs() < 1e-6 * want, "got {got}, want {want}");
    }

    #[test]
    fn before_the_first_throttle_it_shows_what_the_law_would_fill_at() {
        let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
        for _ in 0..10 {
            record(&rate, 0, Outcome::NotThrottled);
        }
        record(&rate, SECOND >> 1, Outcome::NotThrottled);
        let early = rate.snapshot(at(2 * SECOND));
        assert!(!early.enabled);
        assert_close(early.fill_rate, 3.2); // 0.4 · 2³
        let late = rate.snapshot(at(10 * SECOND));
        assert_close(late.measured_rate, 17.6);
        assert_close(late.fill_rate, 35.2); // twice that
        assert_close(late.capacity, 35.2);
        assert_close(late.available, 35.2);
        assert_eq!(late.last_max_rate.to_bits(), 0);
        let paced = SendRate::new(ControlLaw::Paced, Timestamp::ZERO).snapshot(at(SECOND));
        assert!(!paced.enabled);
        assert_close(paced.fill_rate, 1e9);
    }

    /// As if the recording thread had stopped right after its compare-and-swap.
    #[test]
    fn a_throttle_that_has_yet_to_take_effect_is_shown_as_if_it_had() {
        let rate = SendRate::new(ControlLaw::Aws, Timestamp::ZERO);
        record(&rate, 0, Outcome::Throttled);
        let limited = rate.about_to_limit();
        let last = limited.state.load();
        let next = last.next(SECOND, Rate::from_ratio(10, SECOND).to_bits());
        assert!(limited.state.replace(last, next));
        let shown = rate.snapshot(at(5 * SECOND));
        assert!(shown.enabled);
        assert_close(shown.fill_rate, 7.0);
        assert_close(shown.capacity, 1.0); // of the line that is still in force
        assert_close(shown.last_max_rate, 10.0);
        limited.adaptation().apply_state(5 * SECOND);
        assert_eq!(
            rate.snapshot(at(5 * SECOND)).fill_rate.to_bits(),
            shown.fill_rate.to_bits()
        );
    }

    /// A plan of five hours that is spent: the next process waits out what is left of it.
    #[test]
    fn what_is_shut_is_shut_for_the_next_process() {
        let (hour, start) = (Duration::from_secs(3_600), Timestamp::ZERO);
        let rate = SendRate::new(ControlLaw::Declared, start);
        let permit = rate.try_acquire(start).expect("nothing is known yet");
        let plan = LimitReport::new(0).limit(1_000).window(5 * hour);
        rate.observe(start, permit, &plan.reset(Reset::In(4 * hour)).into());
        let later = start.saturating_add(hour);
        let learned = rate.learned(later).expect("a limit is spent");
        // An hour later three hours are left, and two of them are over when the next process reads
        // the rate.
        let settings = PacedSettings::builder().learned(learned, 2 * hour);
        let next = SendRate::paced(settings.build().expect("in range"), start);
        // A reset in whole seconds may be a second later, and the first of 1,000 tokens in five
        // hours comes 18 s after that.
        let first = hour.saturating_add(Duration::from_secs(19));
        let wait = next.try_acquire(start).expect_err("it is shut");
        let late = wait.saturating_sub(first); // a rate is a fraction of 2⁻⁴⁴
        assert!(wait >= first && late < Duration::from_millis(1), "{wait:?}");
        assert!(next.try_acquire(start.saturating_add(wait)).is_ok());
        #[cfg(feature = "serde")]
        {
            let text = serde_json::to_string(&learned).expect("it is text");
            assert!(
                text.contains(r#""shut":{"secs":10801,"nanos":0}"#),
                "{text}"
            );
            let read: LearnedRate = serde_json::from_str(&text).expect("as it was written");
            assert_eq!(read, learned);
        }
        let over = PacedSettings::builder().learned(learned, 4 * hour);
        let next = SendRate::paced(over.build().expect("in range"), start);
        assert!(next.try_acquire(start).is_ok(), "it is over");
    }
}
