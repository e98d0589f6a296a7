//! The paced law with the settings of each preset, in `f64` and for one caller. Rates are per
//! second.
//!
//! Where the law counts, the model counts: times are whole nanoseconds, and what was expected is
//! rounded down to whole requests. Where the words of the limiter round, it rounds alike: window
//! starts down to 2¹⁶ ns, times after the first cut down to 2¹⁰ ns, the clock of the curve down to
//! 2²⁴ ns, trips to three bits, peaks to 32 bits and steps of 2.2 × 10⁻⁷ per second, delivered
//! rates to 31 bits and twice such steps. What is left is the rounding of rates to 44 bits and of
//! products to 32 fraction bits. Cycles are in `cycle_model`.

use super::cycle_model::{Cycle, Open, Opened, Seen, Shut, within};

const SECOND: u64 = 1_000_000_000;
/// What a rate of one unit is, per second.
const UNIT: f64 = 1e9 / 18_446_744_073_709_551_616.0;
/// The floor, as rates hold it: one in a day.
const FLOOR: f64 = 213_504.0 * UNIT;
/// The highest rate, one in a nanosecond.
const HIGHEST: f64 = 1e9;
/// The rate of a pause: one unit.
const PAUSED: f64 = UNIT;
const BETA: f64 = 0.9;

/// Which settings the law has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Preset {
    #[default]
    Usual,
    Shared,
    Exclusive,
    /// As usual, with a rise of 20 per second in a second at most.
    Sloped,
}

/// How often each rule has answered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Answers {
    first: u64,
    blind: u64,
    doubtful: u64,
    at_once: u64,
    sent_before: u64,
    too_soon: u64,
    shut: u64,
    on_the_ramp: u64,
    average: u64,
    measured: u64,
    sent_at: u64,
    windows: u64,
    interrupted: u64,
    held: u64,
    lifted: u64,
    lifted_starved: u64,
    ended: u64,
    drained: u64,
    corrected: u64,
    pub(crate) cycles: Cycles,
}

/// How often each rule of cycles has answered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cycles {
    /// The first throttle, of fewer than one a second.
    begun: u64,
    /// A knock was refused, with a hint and without.
    knocked: u64,
    knocked_hinted: u64,
    /// One that was refused had been sent late.
    late: u64,
    /// What was no knock was refused, with a longer hint.
    paused: u64,
    /// A knock was done, and what it opened was a window, for the first time or again.
    opened: u64,
    opened_again: u64,
    /// It was after the longest wait.
    missed: u64,
    /// It was no window: something short, or an outage.
    short: u64,
    outage: u64,
    /// A step of growth, also beyond a calm.
    grown: u64,
    grown_far: u64,
    /// A time without use that left the rate, and one that moved it.
    idle: u64,
    rested: u64,
    /// What was sent since the opening was refused.
    ended: u64,
    /// No window held the rate back any more; and it was shut again after that.
    left: u64,
    came_back: u64,
}

impl Cycles {
    pub(crate) fn counts(self) -> [(&'static str, u64); 17] {
        [
            ("begun", self.begun),
            ("knocked", self.knocked),
            ("knocked_hinted", self.knocked_hinted),
            ("late", self.late),
            ("paused", self.paused),
            ("opened", self.opened),
            ("opened_again", self.opened_again),
            ("missed", self.missed),
            ("short", self.short),
            ("outage", self.outage),
            ("grown", self.grown),
            ("grown_far", self.grown_far),
            ("idle", self.idle),
            ("rested", self.rested),
            ("ended", self.ended),
            ("left", self.left),
            ("came_back", self.came_back),
        ]
    }
}

impl Answers {
    /// How many rules are counted.
    pub(crate) const RULES: usize = 19;
    /// Which of the counts is that of the measured rate.
    pub(crate) const MEASURED: usize = 9;
    /// Which are those of lifts, and of the end.
    pub(crate) const LIFTED_AND_ENDED: [usize; 3] = [14, 15, 16];

    pub(crate) fn counts(self) -> [u64; Self::RULES] {
        [
            self.first,
            self.blind,
            self.doubtful,
            self.at_once,
            self.sent_before,
            self.too_soon,
            self.shut,
            self.on_the_ramp,
            self.average,
            self.measured,
            self.sent_at,
            self.windows,
            self.interrupted,
            self.held,
            self.lifted,
            self.lifted_starved,
            self.ended,
            self.drained,
            self.corrected,
        ]
    }
}

/// What the law remembers of the last cut.
#[derive(Clone, Copy, Debug, Default)]
struct Cut {
    preset: Preset,
    peak: f64,
    ramp: u32,
    trip: u64,
    since: u64,
    /// Whether next to nothing was known.
    blind: bool,
    /// Whether a pause came with it.
    pause: bool,
}

/// What came back after the first cut, of the requests that were sent before it.
#[derive(Clone, Copy, Debug)]
struct Drained {
    /// The round trip of the request that was throttled.
    trip: u64,
    done: u64,
    throttled: u64,
    /// How long after the cut the last of them came.
    last: u64,
}

/// What a throttle says.
#[derive(Clone, Copy, Debug)]
enum Verdict {
    /// The peak and the halvings of the next cut.
    Cut(f64, u32),
    Shut,
}

/// By which rules the rate is found.
#[derive(Clone, Copy, Debug, Default)]
enum Phase {
    #[default]
    Seconds,
    Open(Open),
    Shut(Shut),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct PacedModel {
    pub(crate) enabled: bool,
    pub(crate) answers: Answers,
    phase: Phase,
    cut: Cut,
    /// All responses, and the cycle that is counted.
    sum: u64,
    cycle: Cycle,
    /// The calms before the current window, 1,024 in each, if the window is one of a cycle.
    calms: Option<u64>,
    /// When the current window began, and the responses in it.
    window: Option<u64>,
    count: u64,
    /// The rate of the window before, or zero.
    before: f64,
    since_cut: u64,
    drained: Option<Drained>,
}

impl PacedModel {
    pub(crate) fn new(preset: Preset) -> Self {
        let cut = Cut {
            preset,
            ..Cut::default()
        };
        Self {
            cut,
            ..Self::default()
        }
    }

    pub(crate) fn last_max_rate(&self) -> f64 {
        self.cycle_rate().unwrap_or(self.cut.peak)
    }

    /// The rate at the last opening, or the peak before it was shut.
    fn cycle_rate(&self) -> Option<f64> {
        match self.phase {
            Phase::Seconds => None,
            Phase::Open(open) => Some(open.rate * UNIT),
            Phase::Shut(shut) => Some(shut.rate * UNIT),
        }
    }

    /// The rate below which an error is not relative: the law of seconds holds rates in steps.
    pub(crate) fn least(&self) -> f64 {
        self.cycle_rate().map_or(1.0, |_| 0.001)
    }

    /// Goes on from this peak.
    pub(crate) fn take_over(&mut self, peak: f64) {
        match &mut self.phase {
            Phase::Seconds => self.cut.peak = peak,
            Phase::Open(Open { rate, .. }) | Phase::Shut(Shut { rate, .. }) => {
                *rate = (peak / UNIT).round();
            }
        }
    }

    pub(crate) fn measured_rate(&self, now: u64) -> f64 {
        match self.phase {
            Phase::Open(open) => open.rate * UNIT,
            Phase::Shut(shut) if shut.is_of_windows() => shut.rate * UNIT,
            _ => self.window.map_or(0.0, |_| self.delivered(now, 0)),
        }
    }

    pub(crate) fn fill_rate(&self, now: u64) -> f64 {
        if !self.enabled {
            return HIGHEST;
        }
        if now < self.paused_until() {
            return PAUSED;
        }
        match self.phase {
            Phase::Seconds => self.rate(now),
            Phase::Open(open) => self.open_rate(open, self.calms().unwrap_or(0), now) * UNIT,
            Phase::Shut(shut) => shut.rate() * UNIT,
        }
    }

    /// The rate since the opening, in the units of cycles.
    fn open_rate(&self, open: Open, calms: u64, now: u64) -> f64 {
        let rate = within(open.rate_after(calms));
        match self.cut.preset {
            Preset::Sloped => {
                let elapsed = now.saturating_sub(self.cut.since);
                rate.min(open.rate + 20.0 * seconds(elapsed) / UNIT)
            }
            _ => rate,
        }
    }

    /// When the last pause ends or ended, 0 if there was none.
    pub(crate) fn paused_until(&self) -> u64 {
        let pauses = matches!(self.phase, Phase::Shut(_)) || self.cut.pause;
        if self.enabled && pauses {
            self.cut.since
        } else {
            0
        }
    }

    /// The calms of the window, if it is one of this opening.
    fn calms(&self) -> Option<u64> {
        let began = self.window? >> 16;
        self.calms.filter(|_| began >= self.cut.since >> 16)
    }

    fn seen(&self, now: u64, sent: u64, until: u64) -> Seen {
        Seen {
            now,
            sent,
            until,
            cycle: self.cycle,
            sum: self.sum,
        }
    }

    /// Begins a window of a cycle.
    fn window_of_cycle(&mut self, now: u64, calms: u64) {
        self.window = Some(window_start(now));
        self.count = 0;
        self.before = 0.0;
        self.calms = Some(calms);
    }

    /// Enters the next state. Its time never goes back.
    fn enter(&mut self, since: u64, now: u64, phase: Phase) {
        let since = self.cut.since.max(since);
        // A time that was moved on, and is past, is that of the same cut.
        if since != self.cut.since && since >= now {
            self.since_cut = 0;
        }
        self.cut.since = since;
        self.cut.pause = false;
        self.phase = phase;
        self.drained = None;
    }

    /// A response while a cycle is open.
    fn grow(&mut self, open: Open, now: u64, sent: u64) {
        let Some(calms) = self.calms() else {
            return self.window_of_cycle(now, 0);
        };
        let count = self.count;
        if count < open.step() {
            return;
        }
        let token = super::cycle_model::nanos(self.open_rate(open, calms, now));
        let elapsed = now.saturating_sub(self.window.unwrap_or(now));
        let idle = elapsed.saturating_sub(token.saturating_mul(count));
        if idle > token.max(now - sent) {
            self.cycle = self.cycle.moved(idle);
            self.window_of_cycle(now, 0);
            self.answers.cycles.idle += 1;
            let is_sloped = self.cut.preset == Preset::Sloped;
            if let Some(rested) = open.rested(calms).filter(|_| !is_sloped) {
                self.answers.cycles.rested += 1;
                self.enter(self.cut.since, now, Phase::Open(rested));
            }
            return;
        }
        let calms = (calms + open.calms(count)).min(64 << 10);
        self.window_of_cycle(now, calms);
        self.answers.cycles.grown += 1;
        self.answers.cycles.grown_far += u64::from(calms > 1 << 10);
        let is_long = calms == 64 << 10;
        let is_free = is_long || open.is_free(calms, &self.cycle, self.sum, now);
        if self.cut.preset == Preset::Sloped || !is_free {
            return;
        }
        if is_long {
            self.window_of_cycle(now, 0);
        }
        if let Some(anew) = open.anew(calms) {
            return self.enter(self.cut.since, now, Phase::Open(anew));
        }
        self.answers.cycles.left += 1;
        let rate = open.rate_after(calms) * UNIT;
        let peak = (0..100).fold(rate, |peak, _| rate * peak / self.cut.after_cut(peak));
        self.enter(now, now, Phase::Seconds);
        (self.cut.peak, self.cut.ramp, self.cut.trip) = (kept(peak), 0, 0);
        self.cut.blind = false;
    }

    /// A response while it is shut.
    fn knock_done(&mut self, shut: Shut, now: u64, sent: u64) {
        let opened = shut.opened(self.cut.since, &self.seen(now, sent, now));
        let cycles = &mut self.answers.cycles;
        match opened {
            None => {}
            Some(Opened::Window(open, cycle)) => {
                let again = shut.is_of_windows();
                cycles.opened += u64::from(!again);
                cycles.opened_again += u64::from(again);
                cycles.missed += u64::from(shut.has_missed());
                self.cycle = cycle;
                self.enter(now, now, Phase::Open(open));
            }
            Some(Opened::Seconds { cycle, outage }) => {
                cycles.short += u64::from(!outage);
                cycles.outage += u64::from(outage);
                self.cycle = cycle;
                self.phase = Phase::Seconds;
                self.remember((shut.rate * UNIT, 2), now - sent, now, now);
            }
        }
    }

    /// It is shut, under the law of seconds until now.
    fn shut(&mut self, seen: &Seen) {
        self.answers.shut += 1;
        self.answers.cycles.came_back += u64::from(self.answers.cycles.left > 0);
        let (since, shut, cycle) = Shut::first((self.cut.proven() / UNIT).floor(), seen);
        self.cycle = cycle;
        self.enter(since, seen.now, Phase::Shut(shut));
    }

    /// A throttle while cycles are counted.
    fn refused(&mut self, seen: &Seen) {
        let next = match self.phase {
            Phase::Seconds => return,
            Phase::Open(open) => {
                if seen.sent < self.cut.since {
                    return;
                }
                self.answers.cycles.ended += 1;
                let rate = self.open_rate(open, self.calms().unwrap_or(0), seen.sent);
                Shut::after(&open, rate, seen)
            }
            Phase::Shut(shut) => {
                if let Some((since, next, cycle)) = shut.knocked(self.cut.since, seen) {
                    let hinted = u64::from(next.hinted);
                    self.answers.cycles.knocked_hinted += hinted;
                    self.answers.cycles.knocked += 1 - hinted;
                    self.answers.cycles.late += u64::from(cycle.start != self.cycle.start);
                    self.cycle = cycle;
                    (since, next)
                } else if seen.until > seen.now.max(self.cut.since) {
                    self.answers.cycles.paused += 1;
                    (seen.until, shut.paused())
                } else {
                    return;
                }
            }
        };
        self.enter(next.0, seen.now, Phase::Shut(next.1));
    }

    /// The rate in this window: beyond what is proven at most twice what it began with, and four
    /// times what was delivered in the one before or is proven.
    fn rate(&self, now: u64) -> f64 {
        let rate = self.cut.rate(now);
        let proven = self.cut.proven();
        let Some(began) = self.window.filter(|_| rate > proven) else {
            return rate;
        };
        let times = if self.cut.blind { 16.0 } else { 2.0 };
        let mut most = times * self.cut.rate(began);
        if self.before > 0.0 {
            most = most.min(2.0 * self.before.max(proven));
        }
        rate.min(most.max(proven)).clamp(FLOOR, HIGHEST)
    }

    /// A response that was not throttled.
    pub(crate) fn succeed(&mut self, now: u64, sent: u64) {
        self.sum += 1;
        self.count += 1;
        self.since_cut += 1;
        self.drain(now, sent, false);
        if self.window.is_none() {
            let began = sent.max(now.saturating_sub(SECOND));
            self.window = Some(window_start(began));
            if self.cycle.start.is_none() {
                self.cycle = Cycle::begun(began, 0);
            }
            if let Phase::Shut(shut) = self.phase {
                self.knock_done(shut, now, sent);
            }
            return;
        }
        match self.phase {
            Phase::Seconds => self.deliver(now),
            Phase::Open(open) => self.grow(open, now, sent),
            Phase::Shut(shut) => self.knock_done(shut, now, sent),
        }
    }

    /// A response under the law of seconds.
    fn deliver(&mut self, now: u64) {
        let began = self.window.unwrap_or(now);
        let elapsed = now.saturating_sub(began);
        let allowed = self.rate(now);
        let expected = (allowed * seconds(elapsed)) as u64;
        let unused = self.enabled
            && self.has_grown(began, now)
            && expected >= 32
            && self.count < expected / 2;
        let enough = self.count >= 32 || unused || elapsed >= 8 * SECOND;
        if elapsed < SECOND || !enough {
            return;
        }
        let starved = now.saturating_sub(self.cut.since) < self.cut.ramp_length();
        let interrupted =
            self.before > 0.0 && elapsed >= 2 * SECOND && (starved || self.count > 32);
        let counted = self.count as f64 / seconds(elapsed);
        self.window = Some(window_start(now));
        self.count = 0;
        self.calms = None;
        let anew = if self.enabled {
            elapsed > 16 * SECOND
        } else {
            now.saturating_sub(self.cycle.start.unwrap_or(0)) > 60 * SECOND
        };
        if anew {
            self.cycle = self.cycle.anew(now, self.sum);
        }
        if interrupted && starved {
            self.answers.interrupted += 1;
            return;
        }
        let at_end = allowed;
        if interrupted {
            self.answers.interrupted += 1;
        } else {
            self.answers.windows += 1;
            self.before = significant(counted, 31);
        }
        if self.enabled && !self.lift(now, counted) && !self.hold((began, now), at_end, counted) {
            self.end(now, counted);
        }
    }

    /// Whether twice the peak was delivered, and that is not half of the rate.
    fn is_refuted(&self, rate: f64, counted: f64) -> bool {
        counted >= 2.0 * self.cut.peak && rate >= 4.0 * self.cut.peak
    }

    /// Whether the rate has grown beyond its peak, if that is not as good as all.
    fn has_grown(&self, began: u64, now: u64) -> bool {
        let peak = self.cut.peak;
        self.cut.rate(now) > peak.max(self.cut.rate(began)) && peak < HIGHEST / 2.0
    }

    /// Takes back what the rate has grown beyond the peak in a window that was not used.
    fn hold(&mut self, (began, now): (u64, u64), rate: f64, counted: f64) -> bool {
        let peak = self.cut.peak;
        if self.cut.blind
            || !self.has_grown(began, now)
            || counted >= rate / 2.0
            || self.is_refuted(rate, counted)
        {
            return false;
        }
        let (mut from, mut to) = (began.max(self.cut.since), now);
        while self.cut.rate(from) <= peak && to - from > 1 << 24 {
            let at = from.midpoint(to);
            if self.cut.rate(at) > peak {
                to = at;
            } else {
                from = at;
            }
        }
        self.answers.held += 1;
        self.cut.since += now - from;
        if self.cut.since == now {
            self.since_cut = 0; // as at a cut
        }
        self.drained = None;
        true
    }

    /// A response that was throttled, with a hint in nanoseconds.
    pub(crate) fn throttle(&mut self, now: u64, sent: u64, hint: u64) {
        self.drain(now, sent, true);
        let until = now + hint.min(60 * SECOND);
        let seen = self.seen(now, sent, until);
        if !matches!(self.phase, Phase::Seconds) {
            return self.refused(&seen);
        }
        let hinted = until > now;
        let pauses = hinted && self.obeys_hint(now, sent);
        let since = if pauses { until } else { now };
        let (mut doubt, mut blind) = (false, false);
        let answer = if self.enabled {
            let answer = self.next_cut(now, sent);
            let is_shut = pauses || matches!(answer, Some(Verdict::Shut));
            if is_shut && self.cut.peak > FLOOR {
                return self.shut(&seen);
            }
            answer
        } else {
            let (peak, ramp) = self.first_cut(now, sent, hinted);
            (doubt, blind) = ((1..=3).contains(&ramp), ramp == 10);
            let known = if blind { peak / 1_024.0 } else { peak };
            if self.window.is_some() && known < 1.0 && peak > FLOOR {
                self.answers.cycles.begun += 1;
                self.remember((peak, ramp), now - sent, now, now);
                self.cut.blind = blind;
                return self.shut(&seen);
            }
            Some(Verdict::Cut(peak, ramp))
        };
        // A peak at the floor, which may get a pause and nothing else, is in no trace.
        if let Some(Verdict::Cut(peak, ramp)) = answer {
            self.remember((peak, ramp), now - sent, since, now);
            self.cut.blind = blind;
            if blind {
                self.cut.trip = two_bits(self.cut.trip);
            }
            let trip = (now - sent) >> 10 << 10;
            self.drained = (doubt && trip > 0).then_some(Drained {
                trip,
                done: 0,
                throttled: 0,
                last: 0,
            });
            self.cut.pause = pauses;
        }
    }

    /// Counts what was sent before the first cut, and corrects that when all has come back.
    fn drain(&mut self, now: u64, sent: u64, throttled: bool) {
        let (Some(mut drained), since) = (self.drained, self.cut.since) else {
            return;
        };
        let after = now.saturating_sub(since);
        if sent <= since && after <= 4 * drained.trip {
            let quarter = drained.trip / 4;
            if sent >= since.saturating_sub(drained.trip - quarter) {
                drained.done += u64::from(!throttled);
                drained.throttled += u64::from(throttled);
                drained.last = drained.last.max(after >> 10 << 10);
                self.drained = Some(drained);
            }
            return;
        }
        self.drained = None;
        self.answers.drained += 1;
        let Drained {
            done,
            throttled,
            last,
            ..
        } = drained;
        if done < 8 || done + throttled < 16 || throttled == 0 {
            return;
        }
        let served = done as f64 / (0.75 * seconds(last.max(1)));
        let peak = (2.0 * served).clamp(FLOOR, HIGHEST);
        if kept(peak) < self.cut.peak {
            self.answers.corrected += 1;
            self.cut.peak = kept(peak);
            self.cut.ramp = 1;
        }
    }

    /// Whether nothing gets through.
    fn obeys_hint(&self, now: u64, sent: u64) -> bool {
        if !self.enabled {
            return self.window.is_none() || self.responses() == 0;
        }
        let nothing_before = self.cut.pause || self.cut.ramp > 0;
        let (_, expected) = self.expected(now);
        (nothing_before && self.since_cut == 0) || self.is_next_to_nothing(expected, now, sent)
    }

    /// The rate that was allowed since the last cut, at most its peak, and how many responses that
    /// makes.
    fn expected(&self, now: u64) -> (f64, u64) {
        let allowed = self.cut.rate(now).min(self.cut.peak);
        let span = now.saturating_sub(self.cut.since);
        (allowed, (allowed * seconds(span)) as u64)
    }

    fn is_next_to_nothing(&self, expected: u64, now: u64, sent: u64) -> bool {
        let is_recent = now.saturating_sub(self.cut.since) < (2 * SECOND).max(4 * (now - sent));
        (expected >= 4 && self.since_cut == 0)
            || (is_recent && expected >= 32 && self.since_cut * 8 < expected)
    }

    /// The rate of the window before, for eight responses or a second, and of the current one.
    fn delivered(&self, now: u64, more: u64) -> f64 {
        let elapsed = now.saturating_sub(self.window.unwrap_or(now));
        let count = (self.count + more) as f64;
        let rate = if self.before > 0.0 {
            let kept = (8.0 / self.before).clamp(1.0, 8.0);
            (count + self.before * kept) / (seconds(elapsed) + kept)
        } else {
            count / seconds(elapsed.max(1))
        };
        rate.min(HIGHEST)
    }

    /// About how many responses that is made of.
    fn responses(&self) -> u64 {
        let kept = (8.0 / self.before).clamp(1.0, 8.0);
        // Eight are eight.
        self.count + (self.before * kept + 1e-9) as u64
    }

    /// The peak and the halvings of the first cut.
    fn first_cut(&mut self, now: u64, sent: u64, hinted: bool) -> (f64, u32) {
        self.answers.first += 1;
        let saved = SECOND / 10;
        let at_once = |began| self.before == 0.0 && now.saturating_sub(began) < saved;
        if hinted && self.window.is_some_and(at_once) {
            self.answers.at_once += 1;
            return ((self.count + 1) as f64 / seconds(saved), 0);
        }
        if self.window.is_some() && self.responses() >= 8 {
            let elapsed = now.saturating_sub(self.window.unwrap_or(now));
            let first = self.before == 0.0 && self.count >= 64;
            let shorter = |millis| u32::from(elapsed < millis * SECOND / 1_000);
            let doubt = shorter(100) + shorter(50) + shorter(25);
            let ramp = if first { doubt } else { 0 };
            self.answers.doubtful += u64::from(ramp > 0);
            return (self.delivered(now, 1), ramp);
        }
        self.answers.blind += 1;
        let rate = match self.window {
            Some(_) => self.delivered(now, 1),
            None => 1.0 / seconds((now - sent).max(SECOND / 1_000)),
        };
        ((rate * 1_024.0).min(HIGHEST), 10)
    }

    /// What a throttle says, if that is anything new.
    fn next_cut(&mut self, now: u64, sent: u64) -> Option<Verdict> {
        let Cut {
            peak,
            ramp,
            since,
            pause,
            ..
        } = self.cut;
        if sent < since || (sent == since && !pause) {
            self.answers.sent_before += 1;
            return None;
        }
        let span = now - since;
        let (allowed, expected) = self.expected(now);
        let starved = if ramp > 0 {
            self.since_cut == 0
        } else {
            self.is_next_to_nothing(expected, now, sent)
        };
        let shared = self.cut.preset == Preset::Shared;
        let trips = if shared { 0 } else { 2 };
        let is_dead = !pause && span < trips * (now - sent);
        // Below one a second there is too little in a second for its law.
        let delivered = self.window.map_or(peak, |_| self.delivered(now, 0));
        let is_known = self.responses() >= 6;
        let is_slow = (peak < 1.0 || (is_known && delivered < 1.0)) && !is_dead;
        if (starved || is_slow) && peak > FLOOR {
            return Some(Verdict::Shut);
        }
        if (expected < 32 && span < SECOND / 10) || is_dead {
            self.answers.too_soon += 1;
            return None;
        }
        let in_a_row = u32::from(self.since_cut == 0);
        let sent_at = self.rate(sent);
        let average = (self.since_cut + 2) as f64 / seconds(span);
        if ramp > 0 {
            self.answers.on_the_ramp += 1;
            return Some(Verdict::Cut(average.max(0.7 * sent_at).min(sent_at), 0));
        }
        if average < 0.75 * allowed && span < 2 * SECOND {
            self.answers.average += 1;
            return Some(Verdict::Cut(average, in_a_row));
        }
        let delivered = self.delivered(now, 0);
        if shared || self.responses() < 6 || delivered < 0.57 * sent_at {
            self.answers.sent_at += 1;
            return Some(Verdict::Cut(sent_at, in_a_row));
        }
        self.answers.measured += 1;
        Some(Verdict::Cut(delivered.min(sent_at), in_a_row))
    }

    /// Lifts the rate to what a window has counted, if that is more.
    fn lift(&mut self, now: u64, counted: f64) -> bool {
        let Cut {
            peak,
            ramp,
            trip,
            since,
            ..
        } = self.cut;
        let proven = (counted - 3.0).max(0.0);
        if self.cut.preset == Preset::Sloped
            || now < since
            || self.cut.after_cut(proven) <= self.cut.rate(now)
        {
            return false;
        }
        self.answers.lifted += 1;
        self.answers.lifted_starved += u64::from(ramp > 0);
        let (peak, ramp) = if ramp == 0 || proven >= peak {
            (proven, 0)
        } else if proven > 0.6 * peak {
            (peak, 0)
        } else if proven > 0.25 * peak {
            (peak, 1)
        } else {
            (proven.max(0.2 * peak), 0)
        };
        self.remember((peak, ramp), trip, now, now);
        true
    }

    /// Ends the law if half a minute was calm, and twice the peak is delivered.
    fn end(&mut self, now: u64, counted: f64) {
        let calm = now.saturating_sub(self.cut.since) > 30 * SECOND;
        if self.cut.preset != Preset::Sloped
            && calm
            && !self.cut.blind
            && self.is_refuted(self.cut.rate(now), counted)
        {
            self.enabled = false;
            self.answers.ended += 1;
        }
    }

    fn remember(&mut self, (peak, ramp): (f64, u32), trip: u64, since: u64, now: u64) {
        let peak = peak.clamp(FLOOR, HIGHEST);
        // No more halvings than lead to the floor, but for a first cut.
        let mut most = if self.enabled { 0 } else { 31 };
        while self.enabled && peak / 2_f64.powi(most) > FLOOR {
            most += 1;
        }
        self.enter(since, now, Phase::Seconds);
        self.cut = Cut {
            peak: kept(peak),
            // Of throttles in a row there is one in any case.
            ramp: if ramp == 1 { 1 } else { ramp.min(most as u32) },
            trip: rounded_trip(trip),
            blind: false,
            ..self.cut
        };
        self.enabled = true;
    }
}

impl Cut {
    /// Up to where time alone leads back.
    fn proven(&self) -> f64 {
        if self.blind {
            self.peak / 1_024.0
        } else {
            self.peak
        }
    }

    fn ramp_step(&self) -> u64 {
        (SECOND / 4).max(2 * self.trip)
    }

    fn ramp_length(&self) -> u64 {
        u64::from(self.ramp) * self.ramp_step()
    }

    /// The rate between this cut and the next.
    fn rate(&self, now: u64) -> f64 {
        let elapsed = (now >> 24 << 24).saturating_sub(self.since);
        let rate = self.along(elapsed);
        let rate = match self.preset {
            Preset::Sloped => rate.min(self.along(0) + 20.0 * seconds(elapsed)),
            _ => rate,
        };
        rate.clamp(FLOOR, HIGHEST)
    }

    /// Without a slope.
    fn along(&self, elapsed: u64) -> f64 {
        let (step, ramp) = (self.ramp_step(), self.ramp_length());
        if elapsed < ramp {
            // Doubling in each step, in straight lines.
            let steps = (ramp - elapsed) as f64 / step as f64;
            let whole = steps.ceil();
            self.after_cut(self.peak) * (1.0 + whole - steps) / 2_f64.powf(whole)
        } else if self.preset == Preset::Shared {
            self.straight(seconds(elapsed - ramp))
        } else {
            self.returning(seconds(elapsed - ramp))
        }
    }

    /// A fifth power up to the peak, a cube beyond it, and a line on top.
    fn returning(&self, elapsed: f64) -> f64 {
        let peak = self.peak;
        let trip = seconds(self.trip);
        let (until, doubling) = match self.preset {
            Preset::Exclusive => {
                let shortest = (125.0 / peak).clamp(1.2, 2.5);
                let until = (15.0 / peak).clamp(shortest, 12.0).max(8.0 * trip);
                (until, until.max(4.0 * trip))
            }
            _ => (
                (15.0 / peak).clamp(2.5, 12.0).max(8.0 * trip),
                (15.0 / peak).clamp(2.5, 12.0).max(4.0 * trip),
            ),
        };
        let part = if elapsed < until {
            let cut = 1.0 - self.after_cut(peak) / peak;
            1.0 - cut * (1.0 - elapsed / until).powi(5)
        } else {
            1.0 + ((elapsed - until) / doubling).min(64.0).powi(3)
        };
        let line = (0.15 * peak.sqrt()).min(0.06 * peak);
        peak * part + line * elapsed.min(4_096.0)
    }

    /// A straight line, and a cube once a cut is three times later than it was to be expected.
    fn straight(&self, elapsed: f64) -> f64 {
        let peak = self.peak;
        let cut = 1.0 - self.after_cut(peak) / peak;
        let cuts = 0.55 * (peak / 10.0).min(10.0 / peak).sqrt();
        let alike = (0.05 * peak).min(0.3);
        let line = peak * (1.0 - cut) * (1.0 + cuts * cut * elapsed) + alike * elapsed;
        let calm = 3.0 / (cuts + alike / (cut * peak));
        let doubling = 2.5_f64.max(4.0 * seconds(self.trip));
        line.min(HIGHEST) * (1.0 + ((elapsed - calm).max(0.0) / doubling).min(64.0).powi(3))
    }

    /// What a cut leaves of a peak.
    fn after_cut(&self, peak: f64) -> f64 {
        if peak <= 0.0 {
            return 0.0;
        }
        let (extra, deepest) = match self.preset {
            Preset::Shared => (0.65, 0.3),
            _ => (1.0, (0.18 + 0.06 * peak).min(0.45)),
        };
        peak * (1.0 - (1.0 - BETA + extra / peak.sqrt()).min(deepest))
    }
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

/// Window starts are kept in units of 2¹⁶ ns, and none is zero.
fn window_start(nanos: u64) -> u64 {
    (nanos >> 16).max(1) << 16
}

/// A rate with 32 significant bits, in steps of 4,096 units at least, rounded down.
fn kept(rate: f64) -> f64 {
    significant(rate, 32)
}

/// A rate with so many significant bits of its 44, rounded down. No step is finer than those that
/// are dropped.
fn significant(rate: f64, bits: i32) -> f64 {
    let units = rate / UNIT;
    let step = (units.max(1.0).log2() as i32 - bits + 1).max(44 - bits);
    let step = 2_f64.powi(step);
    // What was kept before stays: floats that are off by 2⁻⁵³ do not take a step.
    (units / step + 1e-4).floor() * step * UNIT
}

/// A trip in units of 2²⁴ ns, to three significant bits, and at most 7 × 2⁷ of them.
/// A trip of three bits as one of two.
fn two_bits(nanos: u64) -> u64 {
    let units = nanos >> 24;
    let step = (units + 1).next_power_of_two().max(8) / 8;
    let even = if units < 8 {
        units & !1
    } else {
        units / step / 2 * 2 * step
    };
    even << 24
}

fn rounded_trip(nanos: u64) -> u64 {
    let units = (nanos >> 24).min(1_023);
    let mut step = 1;
    while units / step >= 8 {
        step *= 2;
    }
    (units / step * step) << 24
}
