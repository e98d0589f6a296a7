//! Cycles of the paced law in `f64`: what is counted from one opening to the next, and how a shut
//! service is asked. Each function is one rule; `paced_model` says when it applies.
//!
//! Rates are in units of 2⁻⁶⁴ per nanosecond, as the limiter holds them, so that 44 bits of a rate
//! are exact here. Times are whole nanoseconds, calms are quarters of an answer. Growth, roots and
//! powers have 16 fraction bits in the limiter. They are rounded down to as many here.

const SECOND: u64 = 1_000_000_000;
/// One token in a nanosecond.
const TOKEN: f64 = 18_446_744_073_709_551_616.0;
/// One token a day, and the highest rate.
const LOWEST: f64 = 213_504.0;
const HIGHEST: f64 = TOKEN - 1_048_576.0;
/// Waits, and the time that earlier cycles count for, are counted in so many nanoseconds.
const TICK: u64 = 1 << 20;

/// The rate at the last opening, and for how many answers it is calm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) rate: f64,
    pub(crate) calm: u64,
}

/// What is kept of an open time until the next, and the wait for the next knock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shut {
    pub(crate) rate: f64,
    /// By how much the rate had grown; `None` after the law of seconds.
    grown: Option<f64>,
    knocked: bool,
    wait: u64,
    pub(crate) hinted: bool,
}

/// The current cycle.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cycle {
    pub(crate) start: Option<u64>,
    /// The count when it began.
    pub(crate) from: u64,
    /// The time that earlier cycles count for.
    before: u64,
    calm: u64,
    /// How long it was light, if it began under the law of seconds.
    light: u64,
}

/// A response, and what had been counted with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) now: u64,
    pub(crate) sent: u64,
    /// The end of the pause that came with it, or now.
    pub(crate) until: u64,
    pub(crate) cycle: Cycle,
    pub(crate) sum: u64,
}

/// What a knock opens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Opened {
    /// A window.
    Window(Open, Cycle),
    /// No window: the law of seconds goes on, starved. After an outage, or what was short.
    Seconds { cycle: Cycle, outage: bool },
}

impl Cycle {
    pub(crate) fn begun(start: u64, from: u64) -> Self {
        Self {
            start: Some((start >> 16).max(1) << 16),
            from,
            ..Self::default()
        }
    }

    /// The same history, and a new beginning.
    pub(crate) fn anew(self, now: u64, sum: u64) -> Self {
        let Self { start, from, .. } = Self::begun(now, sum);
        Self {
            start,
            from,
            ..self
        }
    }

    /// Without time that was not used.
    pub(crate) fn moved(self, idle: u64) -> Self {
        Self {
            start: self.start.map(|start| start + (idle >> 16 << 16)),
            ..self
        }
    }

    pub(crate) fn lasted(&self, now: u64) -> u64 {
        self.start.map_or(0, |start| now.saturating_sub(start))
    }

    fn count(&self, sum: u64) -> u64 {
        self.start.map_or(0, |_| sum - self.from)
    }
}

impl Open {
    /// The calm is 40 answers and 40 for each that is under way, less below 1/s; two thirds of what
    /// a cycle accepted up to that; and half of it in any case.
    fn at(rate: f64, accepted: Option<u64>, trip: u64) -> Self {
        let under_way = (rate / TOKEN * (4 * trip) as f64).floor();
        let full = 40.0 * (4.0 + under_way);
        let mut calm = (full * three_quarters(rate)).floor();
        if let Some(accepted) = accepted {
            let accepted = accepted as f64;
            let most = (accepted * 8.0 / 3.0).floor().min(full);
            calm = calm.max(most).max(2.0 * accepted);
        }
        Self {
            rate: fourteen_bits(rate),
            calm: up(calm.max(4.0) as u64, 6),
        }
    }

    /// The share of a cube in the growth.
    fn cube(&self) -> f64 {
        down(self.calm as f64 / 160.0).min(1.0)
    }

    /// By how much the rate has grown after so many 1,024ths of a calm.
    fn grown(&self, calms: u64) -> f64 {
        let growth = down(0.01).max(down(4.0 / self.calm as f64));
        down(growth * power(calms as f64 / 1_024.0, 1.0 + 2.0 * self.cube()))
    }

    pub(crate) fn rate_after(&self, calms: u64) -> f64 {
        nearest((self.rate * (1.0 + self.grown(calms))).floor())
    }

    pub(crate) fn step(&self) -> u64 {
        (self.calm / 64).max(1)
    }

    pub(crate) fn calms(&self, answers: u64) -> u64 {
        answers * 4_096 / self.calm
    }

    /// No window holds it back: half as much again, by 32 answers, at 2/s or more, in more than
    /// twice the time of the cycles before.
    pub(crate) fn is_free(&self, calms: u64, cycle: &Cycle, sum: u64, now: u64) -> bool {
        cycle.count(sum) >= 32
            && self.rate * 1e9 >= 2.0 * TOKEN
            && self.grown(calms) >= 0.5
            && cycle.lasted(now) > 2 * cycle.before
    }

    /// Growth that begins anew where it has come to, below 2/s.
    pub(crate) fn anew(&self, calms: u64) -> Option<Self> {
        let rate = self.rate_after(calms);
        (self.rate.max(rate) * 1e9 < 2.0 * TOKEN).then(|| Self::at(rate, None, 0))
    }

    /// After a time without use the mean of the growth is kept, at most doubled.
    pub(crate) fn rested(&self, calms: u64) -> Option<Self> {
        let mean = down(self.grown(calms) / (2.0 + 2.0 * self.cube()));
        (calms > 1_024).then(|| Self {
            rate: fourteen_bits(nearest((self.rate * (1.0 + mean.min(1.0))).floor())),
            ..*self
        })
    }
}

impl Shut {
    /// The first refusal under the law of seconds: the own spacing, a minute at most, 4 s if
    /// nothing was accepted.
    pub(crate) fn first(peak: f64, seen: &Seen) -> (u64, Self, Cycle) {
        let own = match seen.cycle.count(seen.sum) {
            // A hint says enough.
            0 if seen.until > seen.now => 0,
            0 => 4 * SECOND,
            count => seen.cycle.lasted(seen.now) / count,
        };
        let shut = Self {
            rate: fourteen_bits(peak),
            grown: None,
            knocked: false,
            wait: own.max(seen.trip() / 2).min(60 * SECOND),
            hinted: false,
        };
        let cycle = match seen.cycle.start {
            Some(_) => seen.cycle,
            None => seen.cycle.anew(seen.now, seen.sum),
        };
        let light = whole(cycle.lasted(seen.now) / TICK, 6) * TICK;
        let (since, shut) = shut.waiting(seen);
        (since, shut, Cycle { light, ..cycle })
    }

    /// The refusal of what was sent since the opening, at `rate`: the spacing of the rate at the
    /// opening, or half a trip.
    pub(crate) fn after(open: &Open, rate: f64, seen: &Seen) -> (u64, Self) {
        let grown = down(rate / open.rate - 1.0).max(0.0);
        let shut = Self {
            rate: open.rate,
            grown: Some(growth_kept(grown)),
            knocked: false,
            wait: nanos(open.rate).max(seen.trip() / 2),
            hinted: false,
        };
        shut.waiting(seen)
    }

    /// The wait as it is kept, and from when on a token is minted.
    fn waiting(self, seen: &Seen) -> (u64, Self) {
        let longest = (100 * SECOND).max(seen.cycle.lasted(seen.now) / 32);
        let wait = self.wait.min(longest).min(nanos(LOWEST));
        let wait = up(wait.div_ceil(TICK).max(1), 5) * TICK;
        let hinted = seen.until > seen.now;
        let since = if hinted {
            seen.until
        } else {
            seen.now + wait / 16
        };
        (
            since,
            Self {
                wait,
                hinted,
                ..self
            },
        )
    }

    /// With a pause until the time that a hint gave.
    pub(crate) fn paused(self) -> Self {
        Self {
            hinted: true,
            ..self
        }
    }

    /// Whether there was an opening before.
    pub(crate) fn is_of_windows(&self) -> bool {
        self.grown.is_some()
    }

    /// When the last refusal was heard, or was to end.
    fn heard(&self, since: u64) -> u64 {
        if self.hinted {
            since
        } else {
            since.saturating_sub(self.wait / 16)
        }
    }

    fn is_knock(&self, since: u64, sent: u64) -> bool {
        let heard = self.heard(since);
        sent > heard || (sent == heard && self.hinted)
    }

    /// One token in what is left of the wait after the pause.
    pub(crate) fn rate(&self) -> f64 {
        let pause = if self.hinted { 0 } else { self.wait / 16 };
        within(nearest((TOKEN / (self.wait - pause) as f64).round()))
    }

    /// For how long a knock sent then could have gone.
    fn unasked(&self, since: u64, sent: u64) -> u64 {
        sent.saturating_sub(self.heard(since) + self.wait)
    }

    /// A knock was refused: the wait doubles, and grows by 1/(1 + n/400) of it from then on. The
    /// cycle goes on without the time in which no knock was sent.
    pub(crate) fn knocked(&self, since: u64, seen: &Seen) -> Option<(u64, Self, Cycle)> {
        if !self.is_knock(since, seen.sent) {
            return None;
        }
        let mut accepted = seen.cycle.count(seen.sum);
        if self.grown.is_none() {
            accepted = accepted.min(1_200);
        }
        let doubles = !self.knocked || (self.grown.is_none() && self.wait < SECOND / 2);
        let more = if doubles {
            self.wait
        } else {
            (self.wait as f64 * 400.0 / (400.0 + accepted as f64)).floor() as u64
        };
        let next = Self {
            knocked: true,
            wait: self.wait + more,
            ..*self
        };
        let cycle = seen.cycle.moved(self.unasked(since, seen.sent));
        let (since, next) = next.waiting(&Seen { cycle, ..*seen });
        Some((since, next, cycle))
    }

    /// Whether a knock was refused after the longest wait.
    pub(crate) fn has_missed(&self) -> bool {
        self.knocked && self.wait >= 100 * SECOND
    }

    /// A knock was done.
    pub(crate) fn opened(&self, since: u64, seen: &Seen) -> Option<Opened> {
        if !self.is_knock(since, seen.sent) {
            return None;
        }
        let heard = self.heard(since);
        let unasked = self.unasked(since, seen.sent);
        let asked = seen.sent - unasked;
        // The refused knock was under way for a trip. A hint is when the pause ended, of which no
        // gap follows.
        let refused = if self.hinted {
            heard
        } else {
            heard.saturating_sub(seen.trip())
        };
        let gap = (!self.hinted).then(|| asked.saturating_sub(refused));
        // After the longest wait it was open for half of the gap.
        let gap = gap.map(|gap| gap / if self.has_missed() { 2 } else { 1 });
        let begun = seen.cycle.start.unwrap_or(heard);
        let middle = refused.midpoint(asked).max(begun);
        let from = seen.sum - 1;
        let count = seen.cycle.count(from).max(1);
        let span = (middle - begun).max(SECOND / 1_000);
        let at = middle + unasked;
        let next = |before: u64, open: &Open| Cycle {
            before: whole((before / TICK).max(1), 6) * TICK,
            calm: open.calm,
            ..Cycle::begun(at, from)
        };
        let Some(grown) = self.grown else {
            if let Some(outage) = self.is_of_seconds(count, span, seen) {
                let cycle = Cycle {
                    before: whole((span / TICK).max(1), 6) * TICK,
                    ..Cycle::begun(at, from)
                };
                return Some(Opened::Seconds { cycle, outage });
            }
            // Of what was forgotten nothing is known but the peak.
            let mean = match seen.cycle.start {
                Some(_) => at_least_a_gap(per(count, span), count, gap),
                None => self.rate,
            };
            // If it was light for a good part, that may have been an outage.
            let is_window = mean * 1e9 < TOKEN && seen.cycle.light < span / 8;
            let accepted = is_window.then_some(count);
            let open = Open::at(within(mean), accepted, seen.trip());
            return Some(Opened::Window(open, next(span, &open)));
        };
        let (mean, time) = self.mean(grown, (count, span, gap), &seen.cycle);
        let mut open = Open::at(within(mean), Some(count), seen.trip());
        if count >= 5 {
            open.calm = up(open.calm.max(seen.cycle.calm / 8 * 7), 6);
        }
        Some(Opened::Window(open, next(time, &open)))
    }

    /// Whether this was no window: it was light for longer than it was dark, unless the cycle
    /// before was as long. Or it was short, at 1/s or more: the first knock was done within a
    /// second, or after two answers or fewer; but if that comes again, only with eight answers.
    fn is_of_seconds(&self, count: u64, span: u64, seen: &Seen) -> Option<bool> {
        let Cycle { light, before, .. } = seen.cycle;
        let dark = span.saturating_sub(light);
        let is_window = before.abs_diff(span) < span / 4;
        if dark < light && !is_window {
            return Some(true);
        }
        let is_short = !self.knocked && (dark < SECOND || count <= 2);
        let comes_again = before > 0 && count < 8;
        (is_short && self.rate * 1e9 >= TOKEN && !comes_again).then_some(false)
    }

    /// The next rate, and the time that it counts for.
    fn mean(&self, grown: f64, cycle: (u64, u64, Option<u64>), last_cycle: &Cycle) -> (f64, u64) {
        let (count, span, gap) = cycle;
        let expected = (self.rate / TOKEN * span as f64).floor();
        let answers = expected.max(count as f64);
        // In 65,536ths: 1 − m/2C.
        let spent = (answers * 131_072.0 / last_cycle.calm as f64).floor();
        let kept = (65_536.0 - spent).max(0.0) / 65_536.0;
        let before = (last_cycle.before as f64 * kept).floor();
        let time = span as f64 + before;
        let mean = nearest(((count as f64 * TOKEN + self.rate * before) / time).floor());
        let (own, last) = (
            per(count, span),
            nearest((self.rate * (1.0 + grown)).floor()),
        );
        let usual = Open {
            rate: self.rate,
            calm: last_cycle.calm,
        };
        let lags = grown > usual.grown(4_096) || own > nearest((self.rate * 1.3).round());
        let next = if count >= 20 && lags && last > own {
            nearest((own * power(down(last / own), 0.5)).floor())
        } else {
            at_least_a_gap(mean, count, gap)
        };
        (next.max((self.rate / 2.0).floor()).min(last), time as u64)
    }
}

impl Seen {
    fn trip(&self) -> u64 {
        self.now - self.sent
    }
}

/// Of two or fewer the gap between the last knocks says more.
fn at_least_a_gap(mean: f64, count: u64, gap: Option<u64>) -> f64 {
    match gap {
        Some(gap) if count <= 2 => mean.max(per(1, gap)),
        _ => mean,
    }
}

fn per(tokens: u64, nanos: u64) -> f64 {
    nearest((tokens as f64 * TOKEN / nanos.max(1) as f64).floor()).min(HIGHEST)
}

/// How long a token takes.
pub(crate) fn nanos(rate: f64) -> u64 {
    (TOKEN / rate).ceil() as u64
}

pub(crate) fn within(rate: f64) -> f64 {
    rate.clamp(LOWEST, HIGHEST)
}

/// The last place of so many significant bits.
fn place(value: u64, bits: u32) -> u64 {
    let mut unit = 1;
    while value / unit >= 1 << bits {
        unit *= 2;
    }
    unit
}

/// So many significant bits, rounded up.
fn up(value: u64, bits: u32) -> u64 {
    let unit = place(value, bits);
    value.div_ceil(unit) * unit
}

/// So many significant bits, rounded down.
fn whole(value: u64, bits: u32) -> u64 {
    let unit = place(value, bits);
    value / unit * unit
}

/// What is remembered of growth: 7 fraction bits, then four significant ones, rounded up; 1,792 at
/// most.
fn growth_kept(grown: f64) -> f64 {
    (up((grown * 128.0).ceil() as u64, 4) as f64 / 128.0).min(1_792.0)
}

/// 14 significant bits, rounded down. What had so many stays.
fn fourteen_bits(rate: f64) -> f64 {
    let unit = 2_f64.powi(rate.log2().floor() as i32 - 13).max(1.0);
    (rate / unit + 1e-9).floor() * unit
}

/// 44 significant bits.
fn nearest(rate: f64) -> f64 {
    let unit = 2_f64
        .powi(rate.max(1.0).log2().floor() as i32 - 43)
        .max(1.0);
    (rate / unit).round() * unit
}

/// 16 fraction bits, rounded down.
fn down(value: f64) -> f64 {
    (value * 65_536.0).floor() / 65_536.0
}

/// A power by straight lines between powers of two.
fn power(base: f64, exponent: f64) -> f64 {
    if base <= 0.0 {
        return 0.0;
    }
    let top = base.log2().floor();
    let log = top + down(base / top.exp2() - 1.0);
    let log = down(log * exponent);
    down((1.0 + log - log.floor()) * log.floor().exp2())
}

/// A rate in tokens per second to the power of ¾, at most 1.
fn three_quarters(rate: f64) -> f64 {
    let unit = 4_294_967_296.0;
    let rate = ((rate * 1e9 / unit).floor() / unit).min(1.0);
    let root = down(rate.sqrt());
    down(root * down(root.sqrt()))
}
