//! The state of one declared limit, and the rules that move it.
//!
//! All of it are functions of values. Amounts have 20 fraction bits, rates are tokens per second
//! with 32, and times are nanoseconds after the limiter's start.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "every amount is below 2⁶¹, every span below 2⁵⁶, and products are made in 128 bits"
)]

use super::Spend;
use super::report::{Dimension, LimitName};
use crate::fixed::{Rate, SECOND};

/// One token as an amount.
const UNIT: i128 = 1 << 20;
/// The largest limit, in tokens.
pub(crate) const MOST_TOKENS: u64 = 1 << 40;
/// The longest span that counts, 833 days.
pub(crate) const LONGEST_SPAN: u64 = 1 << 56;
/// The least time that what is left is spread over.
const LEAST_SPREAD: u64 = 50_000_000;
/// So many answers without a report, and two windows, end what was declared.
const SILENT_ANSWERS: u64 = 8;
/// How exactly a service says a time that is not whole seconds.
const FINE: u64 = 1_000_000;
/// How many others count for what is kept back, and how many of them for one more request.
const MOST_OTHERS: i128 = 8;
const FOR_ONE: i128 = 4;
/// The part of a limit that reports may be off by.
const NOISE: u64 = 32;
/// What is left of a sliding window is spread over this part of it. A client alone comes to rest
/// with a 17th of the limit left, and what went as a burst is spread wider each time it comes back.
const SLIDING_PARTS: u64 = 16;
/// Windows that services have.
const USUAL_WINDOWS: [u64; 4] = [SECOND, 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND];

/// How a limit comes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Not found out yet, or the reports fit neither: paced as a window.
    #[default]
    Unknown,
    /// All the time, at the limit per window.
    Refill,
    /// All at once, at the reset.
    Window,
    /// What was used one window ago comes back.
    Sliding,
}

/// What the limiter does at the moment because of a declared limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// It mints at this rate.
    Rate(Rate),
    /// It grants nothing until this time, and mints at this rate then.
    Wait { until: u64, then: Rate },
}

impl Plan {
    /// Returns the plan that allows less.
    pub(crate) fn stricter(self, other: Self) -> Self {
        match (self, other) {
            (Self::Rate(one), Self::Rate(two)) => Self::Rate(one.min(two)),
            (
                Self::Wait { until: one, then },
                Self::Wait {
                    until: two,
                    then: slow,
                },
            ) => Self::Wait {
                until: one.max(two),
                then: then.min(slow),
            },
            (wait @ Self::Wait { .. }, Self::Rate(_)) | (Self::Rate(_), wait) => wait,
        }
    }

    /// Returns the plan with no more than `most`.
    pub(crate) fn at_most(self, most: Rate) -> Self {
        match self {
            Self::Rate(rate) => Self::Rate(rate.min(most)),
            Self::Wait { until, then } => Self::Wait {
                until,
                then: then.min(most),
            },
        }
    }
}

/// What a report did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// It is the first one of this limit.
    Declared,
    /// It declares another limit or window than before.
    Changed,
    /// It was taken.
    Taken,
    /// It is older than what is known.
    Late,
    /// It says too little to go by, or what cannot be.
    Wrong,
}

/// When a limit is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResetAt {
    In(u64),
    /// Since 1970.
    At(u64),
}

/// A report, and where the limiter stood.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) now: u64,
    /// When the request was sent, and which position it was sent at, itself included.
    pub(crate) sent_at: u64,
    pub(crate) order: u64,
    pub(crate) weight: u32,
    /// The position of the last request sent, and how many responses have been counted.
    pub(crate) sent: u64,
    pub(crate) answered: u64,
    pub(crate) dimension: Dimension,
    pub(crate) policy: LimitName,
    pub(crate) limit: Option<u64>,
    pub(crate) remaining: u64,
    pub(crate) window: Option<u64>,
    pub(crate) reset: Option<ResetAt>,
    pub(crate) refills: Option<bool>,
    /// The time by the service's clock since 1970, in whole seconds.
    pub(crate) date: Option<u64>,
}

/// A throttle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused {
    pub(crate) now: u64,
    pub(crate) sent_at: u64,
    pub(crate) order: u64,
    /// When the pause ends that the service asked for, or now.
    pub(crate) until: u64,
    /// Whether this limit is the one to explain it.
    pub(crate) blamed: bool,
}

/// An interval in which a number lies: empty if `lo > hi`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Within {
    lo: i64,
    hi: i64,
}

impl Within {
    const fn meets(self, other: Self) -> bool {
        self.lo <= other.hi && other.lo <= self.hi
    }

    fn and(self, other: Self) -> Self {
        Self {
            lo: self.lo.max(other.lo),
            hi: self.hi.min(other.hi),
        }
    }

    const fn is_known(self) -> bool {
        self.lo != 0 || self.hi != 0
    }

    fn of(next: &mut impl FnMut() -> u64) -> Self {
        Self {
            lo: from_bits(next()),
            hi: from_bits(next()),
        }
    }
}

/// One declared limit.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says of one number whether it is known"
)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ledger {
    pub(crate) dimension: Dimension,
    pub(crate) policy: LimitName,
    /// Tokens; 0 before the first report.
    pub(crate) limit: u64,
    /// Nanoseconds in which the limit may be used once.
    pub(crate) window: u64,
    pub(crate) kind: Kind,
    /// Whether the window was declared, not guessed.
    window_declared: bool,
    /// Whether nothing has been heard of the window that has begun.
    fresh: bool,
    refuted_window: u8,
    refuted_refill: u8,
    /// How many resets in a row gave nothing back.
    kept: u8,
    /// The anchor: what was left, after the send at this position, at this time.
    left: i64,
    position: u64,
    at: u64,
    /// When the window ends.
    reset: Within,
    /// Nanoseconds in which one token comes back, if the limit refills.
    pace: Within,
    /// The service's clock less the limiter's.
    offset: Within,
    offset_known: bool,
    /// What others take and what this limiter takes, per second.
    foreign: i64,
    own: i64,
    /// What reports say too much, and since when.
    bias: i64,
    bias_at: u64,
    /// Until when a throttle in spite of the reports makes the paced law have a say.
    contradicted: u64,
    pause: u64,
    throttled_at: u64,
    first_at: u64,
    /// The mean time from a request to its report, and the shortest.
    trip: u64,
    shortest: u64,
    heaviest: u64,
    heard_at: u64,
    /// The responses counted at the last report.
    answers: u64,
    /// The last report, whether it was taken or not: of which send, and what it said was left.
    told: bool,
    told_order: u64,
    told_left: u64,
    /// The position at the last reset, and what was used up then.
    rolled: u64,
    used_before: u64,
    /// What sends after the anchor cost beyond their estimates, and the first of those sends.
    settled: i64,
    settled_from: u64,
}

/// The words that a ledger takes.
pub(crate) const WORDS: usize = 35;

const fn amount(tokens: u64) -> i128 {
    (tokens as i128) << 20
}

fn to_i64(value: i128) -> i64 {
    i64::try_from(value.clamp(-(1 << 61), 1 << 61)).unwrap_or(0)
}

fn to_u64(value: i128) -> u64 {
    u64::try_from(value.clamp(0, 1 << 61)).unwrap_or(0)
}

fn signed(nanos: u64) -> i64 {
    to_i64(i128::from(nanos))
}

const fn from_bits(bits: u64) -> i64 {
    i64::from_ne_bytes(bits.to_ne_bytes())
}

/// Returns the amount that a rate of tokens per second brings in `nanos`.
fn brought(rate: i64, nanos: u64) -> i128 {
    i128::from(rate) * i128::from(nanos) / (i128::from(SECOND) << 12)
}

/// Returns the square root of a fraction of 32 bits.
fn root(fraction: u128) -> u128 {
    (fraction << 32).isqrt()
}

/// Returns the window among the usual ones that `nanos` is within 3 % of, or itself.
fn snapped(nanos: u64) -> u64 {
    let near = |usual: &&u64| usual.abs_diff(nanos) <= **usual / 33;
    USUAL_WINDOWS.iter().find(near).copied().unwrap_or(nanos)
}

impl Ledger {
    /// Whether a limit has been declared.
    pub(crate) const fn is_declared(&self) -> bool {
        self.limit > 0
    }

    /// Whether this ledger is of the limit that `seen` is about.
    pub(crate) fn is_of(&self, seen: &Seen) -> bool {
        self.dimension == seen.dimension && self.policy == seen.policy
    }

    /// Whether the paced law decides: reports have stopped.
    fn is_silent(&self, now: u64, answered: u64) -> bool {
        let unheard = now.saturating_sub(self.heard_at) > self.window.saturating_mul(2);
        let answers = answered.wrapping_sub(self.answers);
        unheard && (SILENT_ANSWERS..u64::MAX >> 1).contains(&answers)
    }

    /// Returns when the last report came.
    pub(crate) const fn heard_at(&self) -> u64 {
        self.heard_at
    }

    /// Whether a throttle has contradicted the reports.
    pub(crate) const fn is_contradicted(&self, now: u64) -> bool {
        now < self.contradicted
    }

    /// Returns what is to be done at `now` with `sent` sent and `saved` minted and not taken by
    /// requests heavier than the bucket. `None` if the paced law decides.
    pub(crate) fn plan(
        &self,
        spend: Spend,
        now: u64,
        sent: u64,
        answered: u64,
        saved: u64,
    ) -> Option<Plan> {
        if !self.is_declared() || self.is_silent(now, answered) {
            return None;
        }
        let from = now.max(self.pause);
        let plan = self.plan_at(spend, from, sent, saved);
        if from == now {
            return Some(plan);
        }
        Some(match plan {
            Plan::Rate(then) => Plan::Wait { until: from, then },
            wait @ Plan::Wait { .. } => wait,
        })
    }

    fn plan_at(&self, spend: Spend, now: u64, sent: u64, saved: u64) -> Plan {
        if let Some(next) = self.rolled(now, sent) {
            return next.plan_in_window(spend, now, sent, saved);
        }
        self.plan_in_window(spend, now, sent, saved)
    }

    fn plan_in_window(&self, spend: Spend, now: u64, sent: u64, saved: u64) -> Plan {
        let (level, rest) = self.level(now, sent);
        let free = level - self.kept_back() - i128::from(saved >> 4);
        if free >= UNIT {
            return Plan::Rate(self.rate(spend, now, free, rest));
        }
        if self.comes_back() {
            let lacking = UNIT - free;
            let nanos = lacking * i128::from(self.window) / amount(self.limit).max(1);
            let until = now + to_u64(nanos).clamp(1, LONGEST_SPAN);
            return Plan::Wait {
                until,
                then: self.rate(spend, until, UNIT, rest),
            };
        }
        // The end of the window, to the nanosecond: a waiter that finds it begun while the limiter
        // still pauses would look again at once, and again.
        let end = u64::try_from(self.reset.hi).unwrap_or(0);
        let until = if end > now { end } else { now + LEAST_SPREAD };
        let next = self.rolled(until, sent).unwrap_or(*self);
        let (level, rest) = next.level(until, sent);
        Plan::Wait {
            until,
            then: next.rate(spend, until, (level - next.kept_back()).max(UNIT), rest),
        }
    }

    /// Returns what is left at `now`, and the time until the limit is whole.
    pub(crate) fn level(&self, now: u64, sent: u64) -> (i128, u64) {
        let age = now.saturating_sub(self.at).min(LONGEST_SPAN);
        let unseen = amount(
            from_bits(sent.wrapping_sub(self.position))
                .max(0)
                .unsigned_abs(),
        ) + i128::from(self.settled);
        let foreign = self.foreign.max(0);
        let whole = amount(self.limit);
        if self.comes_back() {
            let seen = age.min(self.trip * 2);
            // Others are foreseen for two trips only, and never to take more than comes back.
            let taken = brought(foreign, seen).min(self.back(seen));
            let level = (i128::from(self.left) + self.back(age) - taken).min(whole) - unseen;
            let rest = if self.kind == Kind::Sliding {
                i128::from(self.window / SLIDING_PARTS)
            } else {
                (whole - level).max(0) * i128::from(self.window) / whole.max(1)
            };
            return (level, to_u64(rest).min(LONGEST_SPAN));
        }
        let taken = brought(foreign, age.min(self.trip * 4));
        let level = i128::from(self.left) - taken - unseen;
        let rest = i128::from(self.reset.lo) - i128::from(now);
        (level, to_u64(rest).min(LONGEST_SPAN))
    }

    /// Whether what was used comes back little by little.
    const fn comes_back(&self) -> bool {
        matches!(self.kind, Kind::Refill | Kind::Sliding)
    }

    /// Returns what comes back in `nanos` after the anchor.
    fn back(&self, nanos: u64) -> i128 {
        let of = match self.kind {
            Kind::Unknown | Kind::Window => 0,
            Kind::Refill => amount(self.limit),
            // As if it had been used evenly.
            Kind::Sliding => amount(self.limit) - i128::from(self.left),
        };
        of.max(0) * i128::from(nanos) / i128::from(self.window.max(1))
    }

    /// Returns what is kept back because others may be quicker: the heaviest request.
    fn kept_back(&self) -> i128 {
        if self.foreign.saturating_mul(10) <= self.own {
            return 0;
        }
        let one = amount(self.heaviest);
        let own = i128::from(self.own.max(1));
        // Of `n` that are equal the others make `n − 1` sends between two of this one.
        let others = i128::from(self.foreign).min(own * MOST_OTHERS);
        one + one * others / (own * FOR_ONE)
    }

    /// Returns this limiter's part of what is taken, to the power of 3/4: with 32 fraction bits.
    fn part(&self) -> u128 {
        let (own, foreign) = (self.own.max(0), self.foreign.max(0));
        let all = u128::from(own.unsigned_abs()) + u128::from(foreign.unsigned_abs());
        if own == 0 || all == 0 {
            return if foreign == 0 { 1 << 32 } else { 1 << 30 };
        }
        let half = root((u128::from(own.unsigned_abs()) << 32) / all);
        (half * root(half)) >> 32
    }

    /// Returns the rate that spends `free` of what is left before the limit is whole.
    pub(crate) fn rate(&self, spend: Spend, now: u64, free: i128, rest: u64) -> Rate {
        let margin = if self.comes_back() {
            0
        } else {
            let unsure = self.reset.hi.abs_diff(self.reset.lo);
            (self.trip * 2)
                .saturating_add(unsure)
                .min(rest.saturating_add(SECOND) / 10)
        };
        let mut spread = rest.saturating_sub(margin);
        if spend == Spend::Fast {
            spread = spread.min(SECOND.max(self.trip * 2));
        }
        let spread = spread.max(self.trip / 2).max(LEAST_SPREAD);
        let free = u128::try_from(free).unwrap_or(0);
        let rate = Rate::from_raw(((free * self.part()) << 12) / u128::from(spread));
        let is_early = now < self.early_until() || (self.fresh && spend == Spend::Even);
        // What is sent just before the reset may count in the next window.
        let is_late = rest <= margin && !self.comes_back();
        let most = if is_early || is_late {
            self.even()
        } else {
            Rate::MAX
        };
        rate.min(most).max(SLOWEST)
    }

    /// Returns the end of the time after the first report in which no more goes than `L/W`.
    pub(crate) const fn early_until(&self) -> u64 {
        self.first_at.saturating_add(self.trip * 2)
    }

    /// Returns when a pause ended that is over at `now`.
    pub(crate) fn resumed_at(&self, now: u64) -> u64 {
        let begun = if self.fresh { self.at } else { 0 };
        match self.pause.max(begun) {
            0 => now,
            end => end.min(now),
        }
    }

    /// Returns the limit as a rate.
    fn even(&self) -> Rate {
        Rate::from_raw((u128::from(self.limit) << 64) / u128::from(self.window.max(1)))
    }

    /// Returns the ledger of the window that has begun by `now`, if one has.
    pub(crate) fn rolled(&self, now: u64, sent: u64) -> Option<Self> {
        let over = u64::try_from(self.reset.hi).unwrap_or(0);
        if self.comes_back() || !self.reset.is_known() || now < over || self.window == 0 {
            return None;
        }
        let (level, _) = self.level(over.min(now), sent);
        let passed = 1 + (now - over) / self.window;
        let by = signed(passed.saturating_mul(self.window).min(LONGEST_SPAN));
        // What is in flight may count in the window that begins.
        let flying = to_u64(brought(self.own.max(0), self.trip * 2) / UNIT);
        let flying = flying
            .min(self.limit / 10)
            .min(sent.wrapping_sub(self.position));
        Some(Self {
            left: to_i64(amount(self.limit)),
            position: sent.wrapping_sub(flying),
            at: over + (passed - 1) * self.window,
            reset: Within {
                lo: self.reset.lo + by,
                hi: self.reset.hi + by,
            },
            fresh: true,
            foreign: self.foreign / 2,
            rolled: sent,
            used_before: to_u64((amount(self.limit) - level) / UNIT),
            settled: 0,
            ..*self
        })
    }

    /// Returns the ledger after a report, and what that did.
    pub(crate) fn heard(&self, seen: &Seen) -> (Self, Heard) {
        let mut next = self.rolled(seen.now, seen.sent).unwrap_or(*self);
        let trip = seen.now.saturating_sub(seen.sent_at).min(LONGEST_SPAN);
        next.note_trip(trip);
        if let Some(date) = seen.date {
            next.note_date(date, seen);
        }
        let limit = seen.limit.unwrap_or(self.limit.max(seen.remaining));
        let in_range = |span: &u64| (1..=LONGEST_SPAN).contains(span);
        if limit == 0 || limit > MOST_TOKENS || seen.remaining > MOST_TOKENS {
            return (*self, Heard::Wrong);
        }
        let window = seen.window.filter(in_range);
        let reset = next.reset_of(seen, window);
        if window.is_none() && reset.is_none() && next.window == 0 {
            return (*self, Heard::Wrong);
        }
        next.heaviest = (next.heaviest - next.heaviest / 64).max(u64::from(seen.weight));
        (next.heard_at, next.answers) = (seen.now, seen.answered);
        (next.told, next.told_order, next.told_left) = (true, seen.order, seen.remaining);
        let before = (self.limit, self.declared_window());
        let changed = limit != self.limit;
        if changed {
            next.begin(limit);
        }
        next.note_window(window, reset, seen);
        if !self.is_declared() {
            (next.dimension, next.policy) = (seen.dimension, seen.policy);
            next.first_at = seen.now;
            next.anchor(seen, reset, false);
            return (next, Heard::Declared);
        }
        let Some(same_window) = next.is_news(seen, reset) else {
            let same_window = reset.is_some_and(|reset| next.reset.meets(reset));
            let said = next.said(seen);
            if next.kind == Kind::Window && same_window && !next.fresh && said < next.left {
                // It was answered after the last one taken.
                next.left = said;
                return (next, Heard::Taken);
            }
            return (next, Heard::Late);
        };
        if !changed {
            next.test(seen, reset);
        }
        next.anchor(seen, reset, same_window && !changed);
        let declared = next.declared_window();
        let other = (next.limit, declared) != before && (changed || before.1.is_some());
        let heard = if other { Heard::Changed } else { Heard::Taken };
        (next, heard)
    }

    /// Returns the ledger once the send at `order` has turned out to cost `more` tokens than it
    /// took, `None` if a report says so already.
    ///
    /// Costs are counted in the order of sends, so a report of that send or of a later one has the
    /// true cost in it, whether it came before this or comes after.
    pub(crate) fn settled(&self, now: u64, sent: u64, order: u64, more: i64) -> Option<Self> {
        let mut next = self.rolled(now, sent).unwrap_or(*self);
        if from_bits(order.wrapping_sub(next.position)) <= 0 {
            return None;
        }
        if next.settled == 0 || from_bits(order.wrapping_sub(next.settled_from)) < 0 {
            next.settled_from = order;
        }
        next.settled = to_i64(i128::from(next.settled) + (i128::from(more) << 20));
        Some(next)
    }

    /// Forgets what was found out of another limit.
    fn begin(&mut self, limit: u64) {
        self.limit = limit;
        (self.refuted_window, self.refuted_refill, self.kept) = (0, 0, 0);
        self.pace = Within::default();
        self.bias = 0;
        if self.kind == Kind::Sliding {
            self.kind = Kind::Unknown;
        }
    }

    fn note_trip(&mut self, trip: u64) {
        if self.trip == 0 {
            (self.trip, self.shortest) = (trip, trip);
        }
        self.shortest = self.shortest.min(trip);
        self.trip = self.trip - self.trip / 8 + trip / 8;
    }

    fn note_date(&mut self, date: u64, seen: &Seen) {
        let here = Within {
            lo: signed(date) - signed(seen.now),
            hi: signed(date) + signed(SECOND) - signed(seen.sent_at),
        };
        self.offset = if self.offset_known && self.offset.meets(here) {
            self.offset.and(here)
        } else {
            here
        };
        self.offset_known = true;
    }

    /// Returns when the limit is whole by a report, on the limiter's clock. A window without a
    /// reset ends when the service's clock shows a multiple of it.
    fn reset_of(&self, seen: &Seen, window: Option<u64>) -> Option<Within> {
        let aligned = || {
            let (date, window) = (seen.date?, window.or(self.declared_window())?);
            let whole = seen.refills != Some(true) && window % SECOND == 0;
            whole.then(|| ResetAt::At(date - date % window + window))
        };
        match seen.reset.or_else(aligned)? {
            ResetAt::In(nanos) if nanos <= LONGEST_SPAN => {
                let unit = if nanos % SECOND == 0 { SECOND } else { FINE };
                Some(Within {
                    lo: signed(seen.sent_at) + signed(nanos) - signed(unit),
                    hi: signed(seen.now) + signed(nanos) + signed(unit),
                })
            }
            ResetAt::At(epoch) if self.offset_known => {
                let here = Within {
                    lo: signed(epoch) - self.offset.hi,
                    hi: signed(epoch) - self.offset.lo,
                };
                (here.lo - signed(seen.now) <= signed(LONGEST_SPAN)).then_some(here)
            }
            _ => None,
        }
    }

    fn declared_window(&self) -> Option<u64> {
        self.window_declared.then_some(self.window)
    }

    fn note_window(&mut self, declared: Option<u64>, reset: Option<Within>, seen: &Seen) {
        self.kind = match (self.kind, seen.refills, seen.reset) {
            (Kind::Sliding, _, _) => Kind::Sliding,
            (_, Some(true), _) => Kind::Refill,
            (_, Some(false), _) | (_, _, Some(ResetAt::At(_))) => Kind::Window,
            (_, _, None) if reset.is_some() => Kind::Window,
            (kind, _, _) => kind,
        };
        if let Some(window) = declared {
            self.window_declared = true;
            if self.window != window {
                self.window = window;
                self.pace = Within::default();
            }
            return;
        }
        let Some(reset) = reset else { return };
        if self.window_declared || self.kind == Kind::Refill {
            return;
        }
        let ahead = to_u64(i128::from(reset.lo) - i128::from(seen.now));
        let used = self.limit.saturating_sub(seen.remaining).max(1);
        let least = match seen.reset {
            // A window that ends before another answer comes may be of any length, and a refill is
            // whole soon because little is used.
            Some(ResetAt::In(nanos)) if self.window == 0 && ahead < self.trip * 2 => {
                let all = i128::from(nanos) * i128::from(self.limit) / i128::from(used);
                to_u64(all).min(LONGEST_SPAN)
            }
            _ => ahead,
        };
        if self.window == 0 && least > ahead && used < self.limit / 16 {
            // Nearly whole, so that it is no guess if it refills, and slow if it does not.
            self.window = snapped(least);
        } else if self.window == 0 || least > self.window {
            let usual = USUAL_WINDOWS.iter().find(|usual| **usual + SECOND >= least);
            self.window = usual.copied().unwrap_or(least);
        }
    }

    /// Whether a report says anything new, and then whether it is of the window of the anchor.
    fn is_news(&self, seen: &Seen, reset: Option<Within>) -> Option<bool> {
        let newer = from_bits(seen.order.wrapping_sub(self.position)) > 0;
        if self.comes_back() {
            return newer.then_some(true);
        }
        let since_roll = from_bits(seen.order.wrapping_sub(self.rolled)) > 0;
        let Some(reset) = reset.filter(|_| self.reset.is_known()) else {
            let news = newer && (!self.fresh || since_roll);
            return news.then_some(true);
        };
        if self.reset.meets(reset) {
            return (newer && !self.overtakes(seen) || self.fresh).then_some(true);
        }
        if reset.lo > self.reset.hi {
            // Before the end of the window it is no new one: the limit refills.
            let ended = signed(seen.now) >= self.reset.lo;
            return (ended || newer).then_some(!ended);
        }
        // A reset before the current one: an old answer, unless there was no reset when one was
        // expected, or this is no window at all.
        let old = if self.fresh {
            !since_roll
        } else {
            self.kind == Kind::Window
        };
        (!old && newer).then_some(true)
    }

    /// Whether a report of a window says more than the last one left, soon after it: rule 5.
    fn overtakes(&self, seen: &Seen) -> bool {
        let sent = amount(seen.order.wrapping_sub(self.position));
        let sent = sent + i128::from(self.settled_by(seen));
        let soon = seen.now < self.at.saturating_add(self.trip * 2);
        let more = i128::from(self.said(seen)) > i128::from(self.left) - sent;
        self.kind == Kind::Window && soon && more
    }

    /// Returns what of the settlements a report has in it.
    fn settled_by(&self, seen: &Seen) -> i64 {
        // A report of a send between two settled ones has one of them in it, and it is not known
        // how much of the sum that is. It goes, so that nothing counts twice.
        if from_bits(seen.order.wrapping_sub(self.settled_from)) >= 0 {
            self.settled
        } else {
            0
        }
    }

    /// Returns what is left by a report: no more than the limit.
    fn said(&self, seen: &Seen) -> i64 {
        let bias = i128::from(self.bias_at(seen.now));
        to_i64((amount(seen.remaining) - bias).clamp(0, amount(self.limit)))
    }

    /// Tests by a report whether the limit refills or has windows.
    fn test(&mut self, seen: &Seen, reset: Option<Within>) {
        let (Some(reset), Some(ResetAt::In(nanos)), None) = (reset, seen.reset, seen.refills)
        else {
            return;
        };
        let begun = signed(seen.sent_at) >= self.reset.lo;
        // No window ends sooner than one window after the last one, though it may begin later.
        let moved = !self.reset.meets(reset) && (!self.fresh || reset.hi < self.reset.lo);
        if self.reset.is_known() && !begun && moved {
            self.refuted_window = self.refuted_window.saturating_add(1);
        }
        let used = self.limit.saturating_sub(seen.remaining);
        if used > self.limit / NOISE && seen.remaining >= 1 {
            let unit = if nanos % SECOND == 0 { SECOND } else { FINE };
            // What is left is rounded to whole tokens, down or up.
            let (used, noise) = (signed(used), signed(self.limit / NOISE));
            let here = Within {
                lo: signed(nanos.saturating_sub(unit)) / (used + noise + 1),
                hi: signed((nanos + unit) * 2) / (2 * (used - noise) - 2).max(1) + 1,
            };
            let known = self.pace.is_known();
            let fits = known && self.pace.meets(here);
            let refuted = u8::from(known && !fits);
            self.refuted_refill = self.refuted_refill.saturating_add(refuted);
            self.pace = if fits { self.pace.and(here) } else { here };
        }
        if self.refuted_window.max(self.refuted_refill) == u8::MAX {
            self.refuted_window /= 2;
            self.refuted_refill /= 2;
        }
        // Reports that lag or lie refute both now and then, but the right one seldom.
        let (window, refill) = (self.refuted_window, self.refuted_refill);
        self.kind = match self.kind {
            Kind::Sliding => Kind::Sliding,
            _ if window >= 2 && window / 4 >= refill && self.pace.is_known() => Kind::Refill,
            _ if refill >= 2 && refill / 4 >= window => Kind::Window,
            _ if window >= 2 && refill >= 2 => Kind::Unknown,
            kind => kind,
        };
        if self.kind == Kind::Refill && !self.window_declared {
            // The harmonic mean, since the bounds are spans divided by what may have been used.
            let (lo, hi) = (i128::from(self.pace.lo), i128::from(self.pace.hi));
            let window = to_u64(2 * lo * hi / (lo + hi).max(1) * i128::from(self.limit));
            self.window = snapped(window.clamp(1, LONGEST_SPAN));
        }
    }

    /// Anchors what is left to a report. `counted` says that what others took since the last one is
    /// known from it.
    fn anchor(&mut self, seen: &Seen, reset: Option<Within>, counted: bool) {
        let left = self.said(seen);
        let remaining = to_i64(amount(seen.remaining));
        if self.bias_at(seen.now) > remaining {
            // It was let through with less than was taken for nothing.
            (self.bias, self.bias_at) = (remaining, seen.now);
        }
        let at = seen.sent_at + self.shortest / 2;
        let settled = self.settled_by(seen);
        self.settled -= settled;
        if counted {
            self.note_rates(seen, left, settled, at.saturating_sub(self.at));
        }
        if self.fresh {
            self.test_sliding(seen);
        }
        self.fresh = false;
        (self.left, self.position, self.at) = (left, seen.order, at);
        if let Some(reset) = reset {
            // A reset that moves refutes the window only if it is held to what was known of it.
            self.reset = if self.reset.meets(reset) {
                self.reset.and(reset)
            } else {
                self.learn_window(reset);
                reset
            };
        }
    }

    /// Learns the window of a service that declares none by the distance of two resets.
    fn learn_window(&mut self, reset: Within) {
        let distance = to_u64(i128::from(reset.lo) - i128::from(self.reset.hi));
        let known = self.window_declared || !self.reset.is_known() || self.kind != Kind::Window;
        if !known && distance > 2 * SECOND {
            let wide = self.reset.hi.abs_diff(self.reset.lo) + reset.hi.abs_diff(reset.lo);
            let snap = USUAL_WINDOWS
                .iter()
                .find(|usual| usual.abs_diff(distance + wide / 2) <= wide / 2 + **usual / 33);
            self.window = snap.copied().unwrap_or(distance + wide / 2);
        }
    }

    fn note_rates(&mut self, seen: &Seen, left: i64, settled: i64, passed: u64) {
        let passed = passed.min(LONGEST_SPAN);
        let whole = amount(self.limit);
        let mut before = i128::from(self.left);
        if self.comes_back() {
            before = (before + self.back(passed)).min(whole);
        }
        let own = amount(
            from_bits(seen.order.wrapping_sub(self.position))
                .max(0)
                .unsigned_abs(),
        ) + i128::from(settled);
        let foreign = before - own - i128::from(left);
        let tau = (5 * SECOND).max(self.trip * 4).min(LONGEST_SPAN);
        let mean = |rate: i64, tokens: i128| {
            let gained = (tokens << 12) * i128::from(SECOND);
            let sum = i128::from(rate) * i128::from(tau) + gained;
            to_i64(sum / i128::from(tau + passed))
        };
        (self.own, self.foreign) = (mean(self.own, own), mean(self.foreign, foreign));
    }

    /// Tests by the first report of a window whether the reset gave anything back.
    fn test_sliding(&mut self, seen: &Seen) {
        // The anchor of a window of which nothing has been heard is its beginning.
        let late = seen.now.saturating_sub(self.at) > self.window / 10;
        if late || self.used_before < 8 {
            return;
        }
        let used = self.limit.saturating_sub(seen.remaining);
        self.kept = if used.saturating_mul(2) > self.used_before {
            self.kept.saturating_add(1)
        } else {
            0
        };
        // A refill looks so too: its first resets are near, and come before what they give back.
        if self.kept >= 2 && self.refuted_refill > 0 {
            self.kind = Kind::Sliding;
        }
    }

    /// Returns what reports say too much: it halves in a hundred windows.
    fn bias_at(&self, now: u64) -> i64 {
        let half = self.window.saturating_mul(100).max(1);
        let age = now.saturating_sub(self.bias_at);
        let halved = self.bias >> (age / half).min(62);
        let within = i128::from(age % half);
        halved - to_i64(i128::from(halved) * within / (2 * i128::from(half)))
    }

    /// Returns what the last report said was left, if it was of the send at `order`.
    pub(crate) fn told_left(&self, order: u64) -> Option<u64> {
        (self.is_declared() && self.told && self.told_order == order).then_some(self.told_left)
    }

    /// Returns how much of the limit is left, in 2⁻³² of it.
    pub(crate) fn share_left(&self, now: u64, sent: u64) -> u64 {
        let (level, _) = self.level(now, sent);
        to_u64((level.max(0) << 32) / amount(self.limit).max(1))
    }

    /// Returns the ledger after a throttle.
    pub(crate) fn refused(&self, refused: &Refused) -> Self {
        let mut next = *self;
        let pause = refused
            .until
            .min(refused.now + self.window.max(60 * SECOND));
        next.pause = next.pause.max(pause);
        if !refused.blamed || refused.sent_at < self.throttled_at {
            return next;
        }
        next.throttled_at = refused.now.max(pause);
        match self.told_left(refused.order) {
            None if from_bits(refused.order.wrapping_sub(self.position)) > 0 => {
                (next.left, next.position, next.at) = (0, refused.order, refused.now);
            }
            None => {}
            Some(left) if left <= self.heaviest.max(1).saturating_sub(1) => {}
            Some(left) if left <= self.limit / 4 => {
                (next.bias, next.bias_at) = (to_i64(amount(left)), refused.now);
                next.left = 0;
            }
            Some(_) => {
                let long = self.window.saturating_mul(10).max(60 * SECOND);
                next.contradicted = refused.now + long.min(LONGEST_SPAN);
            }
        }
        next
    }

    /// Whether a throttle of this kind contradicts the reports.
    pub(crate) fn is_contradicted_by(&self, refused: &Refused) -> bool {
        refused.blamed
            && refused.sent_at >= self.throttled_at
            && self
                .told_left(refused.order)
                .is_some_and(|left| left >= self.heaviest.max(1))
    }

    pub(crate) fn to_words(self) -> [u64; WORDS] {
        let (tag, name) = match self.dimension {
            Dimension::Requests => (0, 0),
            Dimension::Tokens => (1, 0),
            Dimension::Named(name) => (2, name.bits()),
        };
        let kind = match self.kind {
            Kind::Unknown => 0,
            Kind::Refill => 1,
            Kind::Window => 2,
            Kind::Sliding => 3,
        };
        let flags = tag
            | (kind << 2)
            | (u64::from(self.window_declared) << 4)
            | (u64::from(self.fresh) << 5)
            | (u64::from(self.offset_known) << 6)
            | (u64::from(self.told) << 7)
            | (u64::from(self.refuted_window) << 8)
            | (u64::from(self.refuted_refill) << 16)
            | (u64::from(self.kept) << 24);
        let bits = |value: i64| u64::from_ne_bytes(value.to_ne_bytes());
        let halves = |value: u128| [low(value), low(value >> 64)];
        let [name_low, name_high] = halves(name);
        let [policy_low, policy_high] = halves(self.policy.bits());
        [
            flags,
            name_low,
            name_high,
            policy_low,
            policy_high,
            self.limit,
            self.window,
            bits(self.left),
            self.position,
            self.at,
            bits(self.reset.lo),
            bits(self.reset.hi),
            bits(self.pace.lo),
            bits(self.pace.hi),
            bits(self.offset.lo),
            bits(self.offset.hi),
            bits(self.foreign),
            bits(self.own),
            bits(self.bias),
            self.bias_at,
            self.contradicted,
            self.pause,
            self.throttled_at,
            self.first_at,
            self.trip,
            self.shortest,
            self.heaviest,
            self.heard_at,
            self.answers,
            self.told_order,
            self.told_left,
            self.rolled,
            self.used_before,
            bits(self.settled),
            self.settled_from,
        ]
    }

    pub(crate) fn from_words(words: &[u64; WORDS]) -> Self {
        // In the order of `to_words`.
        let mut words = words.iter().copied();
        let mut next = || words.next().unwrap_or_default();
        let flags = next();
        let [name, policy] = [(); 2].map(|()| {
            let low = u128::from(next());
            LimitName::from_bits(low | (u128::from(next()) << 64))
        });
        let byte = |shift: u32| u8::try_from((flags >> shift) & 0xff).unwrap_or(0);
        Self {
            dimension: match flags & 3 {
                0 => Dimension::Requests,
                1 => Dimension::Tokens,
                _ => Dimension::Named(name),
            },
            policy,
            kind: match (flags >> 2) & 3 {
                0 => Kind::Unknown,
                1 => Kind::Refill,
                2 => Kind::Window,
                _ => Kind::Sliding,
            },
            window_declared: flags & (1 << 4) != 0,
            fresh: flags & (1 << 5) != 0,
            offset_known: flags & (1 << 6) != 0,
            told: flags & (1 << 7) != 0,
            refuted_window: byte(8),
            refuted_refill: byte(16),
            kept: byte(24),
            limit: next(),
            window: next(),
            left: from_bits(next()),
            position: next(),
            at: next(),
            reset: Within::of(&mut next),
            pace: Within::of(&mut next),
            offset: Within::of(&mut next),
            foreign: from_bits(next()),
            own: from_bits(next()),
            bias: from_bits(next()),
            bias_at: next(),
            contradicted: next(),
            pause: next(),
            throttled_at: next(),
            first_at: next(),
            trip: next(),
            shortest: next(),
            heaviest: next(),
            heard_at: next(),
            answers: next(),
            told_order: next(),
            told_left: next(),
            rolled: next(),
            used_before: next(),
            settled: from_bits(next()),
            settled_from: next(),
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low half")]
const fn low(value: u128) -> u64 {
    value as u64
}

/// The least rate of a limit that has something left: one token in 6 days, which is no pause.
const SLOWEST: Rate = Rate::from_bits(1 << 15);

#[cfg(test)]
mod tests;
