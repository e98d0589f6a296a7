//! One declared limit: what a service has told about it, and what holds as time passes.
//!
//! All functions here are of values. Amounts have 20 fraction bits, rates are tokens per second
//! with 32, and times are nanoseconds after the limiter's start. The rules stand in the parent
//! module. [`level`](super::level) has what is left and who may go, [`infer`](super::infer) what
//! has to be inferred.

use super::clock::Clock;
use super::report::LimitName;
use super::seen::Seen;
use crate::fixed::SECOND;

/// One token as an amount.
pub(super) const UNIT: i128 = 1 << 20;
/// The largest limit, in tokens.
pub(super) const MOST_TOKENS: u64 = 1 << 40;
/// The longest span of time that counts, 833 days.
pub(super) const LONGEST_SPAN: u64 = 1 << 56;
/// The precision of a told time that is not in whole seconds, in nanoseconds.
pub(super) const FINE: u64 = 1_000_000;
/// A limit that was not reported for so long makes room for another.
const LONG: u64 = 10 * SECOND;
/// The longest time that a report stops a client, unless a window is spent. After that time one
/// request asks again.
pub(super) const LONGEST_STOP: u64 = 3_600 * SECOND;
/// The longest window that stops a client until its reset: a month.
const LONGEST_SPENT: u64 = 31 * 86_400 * SECOND;
/// At most `1 / MOST_KEPT` of a limit is kept back.
const MOST_KEPT: i128 = 4;
/// What is kept back because reports say too much shrinks by `1 / KEPT_PART` in each window.
const KEPT_PART: i64 = 256;

/// How a limit comes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// Not known yet: paced as a window.
    #[default]
    Unknown,
    /// Little by little, at the limit per window.
    Refill,
    /// All at once, at the reset.
    Window,
    /// What was used one window ago comes back.
    Sliding,
}

/// Where the length of a window comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// The length is a guess.
    #[default]
    Guessed,
    /// The length follows from two resets, or from the time that a refill needs to be whole.
    Learned,
    /// The service has told the length.
    Told,
}

/// An interval in which a number lies: empty if `lo > hi`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Within {
    pub(super) lo: i64,
    pub(super) hi: i64,
}

impl Within {
    pub(super) const fn meets(self, other: Self) -> bool {
        self.lo <= other.hi && other.lo <= self.hi
    }

    /// Returns `true` if this interval begins after `other` ends.
    pub(super) const fn is_after(self, other: Self) -> bool {
        self.lo > other.hi
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self {
            lo: self.lo.max(other.lo),
            hi: self.hi.min(other.hi),
        }
    }

    pub(super) const fn is_known(self) -> bool {
        self.lo != 0 || self.hi != 0
    }

    /// Returns the width.
    pub(super) const fn width(self) -> u64 {
        self.hi.abs_diff(self.lo)
    }

    pub(super) const fn moved(self, by: i64) -> Self {
        Self {
            lo: self.lo.saturating_add(by),
            hi: self.hi.saturating_add(by),
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
    // What the service has told, or what was inferred.
    pub(crate) policy: LimitName,
    /// The limit in tokens; 0 before the first report.
    pub(crate) limit: u64,
    /// Whether the service has told the limit. If not, the limit may be higher.
    pub(crate) limit_told: bool,
    /// The window: the nanoseconds in which the limit may be used once.
    pub(crate) window: u64,
    pub(super) source: Source,
    pub(super) kind: Kind,
    pub(super) kind_told: bool,
    /// How many reports in a row had a reset that no window can have.
    pub(super) moved: u8,

    // The anchor: what was left after the send at `position`, at the time `at`.
    pub(super) left: i64,
    pub(super) position: u64,
    pub(super) at: u64,
    /// When the window ends.
    pub(super) reset: Within,
    /// Whether no report of the window that has begun has come yet.
    pub(super) fresh: bool,
    /// Whether only one report has come yet.
    pub(super) first: bool,
    /// The position at the last reset. Where tokens come back little by little, the anchor's
    /// position before the silent window.
    pub(super) rolled: u64,

    pub(super) clock: Clock,
    pub(super) seen: Seen,

    // What the ledger believes.
    /// Whether a window may begin with its first request, rather than where the last window ended.
    pub(super) opens: bool,
    /// How many resets in a row brought nothing back.
    pub(super) doubt: u8,
    /// Whether the limit is given up, because its reports have another meaning.
    pub(crate) given_up: bool,

    // Pauses and contradictions.
    pub(super) pause: u64,
    /// Until this time the paced law's rate holds where it is lower: a throttle contradicted the
    /// reports. Nanoseconds after the start.
    pub(super) contradicted: u64,
    /// Whether an undeclared limit refused requests that were sent at no more than `L/W` (rule 11).
    pub(super) unhelped: bool,
    /// The amount kept back because reports say too much.
    pub(super) kept: i64,

    // The last report, whether it was taken or not.
    pub(crate) heard_at: u64,
    pub(super) told: bool,
    pub(super) told_order: u64,
    pub(super) told_left: u64,
}

pub(super) const fn amount(tokens: u64) -> i128 {
    (tokens as i128) << 20
}

pub(super) fn to_i64(value: i128) -> i64 {
    i64::try_from(value.clamp(-(1 << 61), 1 << 61)).unwrap_or(0)
}

pub(super) fn to_u64(value: i128) -> u64 {
    u64::try_from(value.clamp(0, 1 << 61)).unwrap_or(0)
}

pub(super) fn signed(nanos: u64) -> i64 {
    to_i64(i128::from(nanos))
}

/// Returns how far the position `order` is after `other`; negative if before.
pub(super) const fn after(order: u64, other: u64) -> i64 {
    i64::from_ne_bytes(order.wrapping_sub(other).to_ne_bytes())
}

impl Ledger {
    /// Returns `true` if a limit has been declared and not given up.
    pub(crate) const fn is_declared(&self) -> bool {
        self.limit > 0 && !self.given_up
    }

    /// Returns `true` if a limit has been declared, even if it is given up.
    pub(crate) const fn is_known(&self) -> bool {
        self.limit > 0
    }

    /// Returns the ledger after a request that cost far less than its estimate.
    pub(crate) const fn cheaper(&self) -> Self {
        let mut next = *self;
        next.seen.cheaper = true;
        next
    }

    /// Returns `true` if the limit was not reported for long, so that its words may hold another
    /// limit.
    pub(crate) fn is_old(&self, now: u64) -> bool {
        now.saturating_sub(self.heard_at) > self.window.min(LONG)
    }

    /// Returns `true` if a throttle has contradicted the reports.
    pub(crate) const fn is_contradicted(&self, now: u64) -> bool {
        now < self.contradicted
    }

    /// Returns `true` if what was used comes back little by little.
    pub(super) const fn comes_back(&self) -> bool {
        matches!(self.kind, Kind::Refill | Kind::Sliding)
    }

    /// Returns `true` if all of the limit comes back at a known reset.
    pub(super) const fn resets(&self) -> bool {
        !self.comes_back() && self.reset.is_known()
    }

    /// Returns the window if the service has told it.
    pub(super) fn told_window(&self) -> Option<u64> {
        (self.source == Source::Told).then_some(self.window)
    }

    /// Returns what was left by the last report, if that was of the send at `order`.
    pub(crate) fn told_left(&self, order: u64) -> Option<u64> {
        (self.is_declared() && self.told && self.told_order == order).then_some(self.told_left)
    }

    /// Returns `true` if the anchor includes the send at `order`.
    pub(crate) const fn counts(&self, order: u64) -> bool {
        after(order, self.position) <= 0
    }

    /// Returns when the window ends.
    fn window_ends(&self) -> u64 {
        if self.resets() {
            u64::try_from(self.reset.hi).unwrap_or(0)
        } else {
            self.at.saturating_add(self.window)
        }
    }

    /// Returns for how long a report stops a client: a whole window, if the service has told the
    /// window and nothing is left of it.
    fn longest_stop(&self) -> u64 {
        let is_spent = self.left <= 0 && self.source == Source::Told && self.resets();
        match self.window {
            window @ LONGEST_STOP..=LONGEST_SPENT if is_spent => window,
            _ => LONGEST_STOP,
        }
    }

    /// Returns when the window ends, or the longest stop if that is sooner.
    pub(super) fn ends_at(&self) -> u64 {
        let stop = self.longest_stop().max(self.seen.trip);
        let quiet = self.quiet_since().saturating_add(stop);
        self.window_ends().min(quiet)
    }

    /// Returns `true` if no report holds any more: the window or the longest stop has ended, and no
    /// pause is in force.
    pub(crate) fn is_over(&self, now: u64) -> bool {
        now >= self.pause.max(self.ends_at())
    }

    /// Returns when the last report came, or the anchor's time if that is later.
    fn quiet_since(&self) -> u64 {
        self.at.max(self.heard_at)
    }

    /// Returns what is kept back: requests where others may be quicker, and what reports say too
    /// much.
    pub(super) fn kept_back(&self) -> i128 {
        let others = self.seen.kept_for_others();
        (others + i128::from(self.kept)).min(amount(self.limit) / MOST_KEPT)
    }

    /// Returns the amount that comes back in the `nanos` after the anchor.
    pub(super) fn back(&self, nanos: u64) -> i128 {
        let of = match self.kind {
            Kind::Unknown | Kind::Window => 0,
            Kind::Refill => amount(self.limit),
            // As if the limit had been used evenly.
            Kind::Sliding => amount(self.limit) - i128::from(self.left),
        };
        of.max(0) * i128::from(nanos) / i128::from(self.window.max(1))
    }

    /// Returns the ledger of the window that has begun by `now`, if one has.
    ///
    /// Without a reset, or where tokens come back little by little, a window begins after a
    /// window's length without a report. What was sent before that time is back.
    pub(crate) fn rolled(&self, now: u64, sent: u64) -> Option<Self> {
        if !self.is_declared() || self.window == 0 {
            return None;
        }
        let (resets, over) = (self.resets(), self.window_ends());
        if now < over {
            return self.probed(now, sent);
        }
        let passed = 1 + (now - over) / self.window;
        let by = passed.saturating_mul(self.window).min(LONGEST_SPAN);
        let unheard = amount(after(sent, self.position).max(0).unsigned_abs());
        let left = amount(self.limit) - if resets { 0 } else { unheard };
        let mut next = Self {
            left: to_i64(left),
            position: sent,
            at: over.saturating_add(by - by.min(self.window)),
            fresh: true,
            first: false,
            rolled: if self.comes_back() {
                self.position
            } else {
                sent
            },
            kept: self.kept - self.kept / KEPT_PART,
            ..*self
        };
        if resets {
            next.reset = self.reset.moved(signed(by));
        }
        // Nothing is known of others after a window without a report. In windows of a second or
        // less, forgetting half of what others took each time would be too much.
        next.seen.others = match self.window {
            _ if self.fresh => 0,
            0..=SECOND => Seen::mean(self.seen.others, 0, self.window),
            _ => self.seen.others / 2,
        };
        Some(next)
    }

    /// Returns the ledger after the longest stop without a report: as much is left as one request
    /// takes. What others took is too old to be foreseen, and would bar that request.
    fn probed(&self, now: u64, sent: u64) -> Option<Self> {
        let stop = self.longest_stop();
        let passed = now.saturating_sub(self.quiet_since()) / stop;
        let one = amount(self.seen.heaviest.max(1));
        if passed == 0 || self.as_told(now, sent).level().0 >= one + self.kept_back() {
            return None;
        }
        let mut alone = *self;
        alone.seen.others = 0;
        alone.left = to_i64((one + alone.kept_back()).min(amount(self.limit)));
        alone.position = sent;
        alone.at = self.quiet_since() + passed * stop;
        Some(alone)
    }
}
