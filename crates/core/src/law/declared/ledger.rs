//! One declared limit: what a service has told about it, and how a report or a throttle moves that.
//!
//! All of it are functions of values. Amounts have 20 fraction bits, rates are tokens per second
//! with 32, and times are nanoseconds after the limiter's start. The rules stand in the parent
//! module. What is left, and what follows from it, is in [`level`](super::level); what has to be
//! inferred in [`infer`](super::infer).

use super::clock::Clock;
use super::report::LimitName;
use super::seen::Seen;
use crate::fixed::SECOND;

/// One token as an amount.
pub(super) const UNIT: i128 = 1 << 20;
/// The largest limit, in tokens.
pub(super) const MOST_TOKENS: u64 = 1 << 40;
/// The longest span that counts, 833 days.
pub(super) const LONGEST_SPAN: u64 = 1 << 56;
/// How exactly a service says a time that is not whole seconds.
pub(super) const FINE: u64 = 1_000_000;
/// A limit that was not heard of for so long makes room for another one.
const LONG: u64 = 10 * SECOND;
/// A report stops a client for no longer, unless a window is spent: then one request asks again.
pub(super) const LONGEST_STOP: u64 = 3_600 * SECOND;
/// The longest window that stops a client until its reset: a month.
const LONGEST_SPENT: u64 = 31 * 86_400 * SECOND;
/// At most this part of a limit is kept back.
const MOST_KEPT: i128 = 4;
/// What is kept back because reports say too much shrinks by this part of itself in each window.
const KEPT_PART: i64 = 256;

/// How a limit comes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// Not known yet: paced as a window.
    #[default]
    Unknown,
    /// All the time, at the limit per window.
    Refill,
    /// All at once, at the reset.
    Window,
    /// What was used one window ago comes back.
    Sliding,
}

/// Where the length of a window comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// It is a guess.
    #[default]
    Guessed,
    /// It follows from two resets, or from what a refill says it needs to be whole.
    Learned,
    /// The service has told it.
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

    /// Returns `true` if it begins after `other` has ended.
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
    // What was told, or inferred.
    pub(crate) policy: LimitName,
    /// Tokens; 0 before the first report.
    pub(crate) limit: u64,
    /// Whether the service has told how much it is. If not, there may be more.
    pub(crate) limit_told: bool,
    /// Nanoseconds in which the limit may be used once.
    pub(crate) window: u64,
    pub(super) source: Source,
    pub(super) kind: Kind,
    pub(super) kind_told: bool,
    /// How many reports in a row had another reset than a window can have.
    pub(super) moved: u8,

    // The anchor: after the send at `position` so much was left, at this time.
    pub(super) left: i64,
    pub(super) position: u64,
    pub(super) at: u64,
    /// When the window ends.
    pub(super) reset: Within,
    /// Whether nothing has been heard of the window that has begun.
    pub(super) fresh: bool,
    /// Whether there was only one report yet.
    pub(super) first: bool,
    /// The position at the last reset; where tokens come back little by little, that of the anchor
    /// before the silent window.
    pub(super) rolled: u64,

    pub(super) clock: Clock,
    pub(super) seen: Seen,

    // What is believed.
    /// Whether a window may begin with its first request, and not where the last one ended.
    pub(super) opens: bool,
    /// How many resets in a row brought nothing back.
    pub(super) doubt: u8,
    /// Whether what is told has another meaning, so that nothing follows from it.
    pub(crate) given_up: bool,

    // Trouble.
    pub(super) pause: u64,
    /// Until when the paced law has a say.
    pub(super) contradicted: u64,
    /// Whether `L/W` did not help against the limit that is not declared.
    pub(super) unhelped: bool,
    /// What is kept back because reports say too much.
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

/// Returns how far the position `order` is after `other`, negative if it is before.
pub(super) const fn after(order: u64, other: u64) -> i64 {
    i64::from_ne_bytes(order.wrapping_sub(other).to_ne_bytes())
}

impl Ledger {
    /// Returns `true` if a limit has been declared, and what was told of it is believed.
    pub(crate) const fn is_declared(&self) -> bool {
        self.limit > 0 && !self.given_up
    }

    /// Returns `true` if it is the ledger of a limit, which may have been given up.
    pub(crate) const fn is_known(&self) -> bool {
        self.limit > 0
    }

    /// Returns the ledger once a request has cost far less than it was estimated to.
    pub(crate) const fn cheaper(&self) -> Self {
        let mut next = *self;
        next.seen.cheaper = true;
        next
    }

    /// Returns `true` if its words may be used for another limit: it was not heard of for long.
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

    /// Returns `true` if all of it comes back at a reset that is known.
    pub(super) const fn resets(&self) -> bool {
        !self.comes_back() && self.reset.is_known()
    }

    /// Returns the window, if the service has told it.
    pub(super) fn told_window(&self) -> Option<u64> {
        (self.source == Source::Told).then_some(self.window)
    }

    /// Returns what the last report said was left, if it was of the send at `order`.
    pub(crate) fn told_left(&self, order: u64) -> Option<u64> {
        (self.is_declared() && self.told && self.told_order == order).then_some(self.told_left)
    }

    /// Returns `true` if a report that was taken counts the send at `order`.
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

    /// Returns for how long a report stops a client: until the reset, if the service has told the
    /// window, and that nothing is left of it.
    fn longest_stop(&self) -> u64 {
        let is_spent = self.left <= 0 && self.source == Source::Told && self.resets();
        match self.window {
            window @ LONGEST_STOP..=LONGEST_SPENT if is_spent => window,
            _ => LONGEST_STOP,
        }
    }

    /// Returns when the window ends, or when the longest time without a report does.
    pub(super) fn ends_at(&self) -> u64 {
        let stop = self.longest_stop().max(self.seen.trip);
        let quiet = self.quiet_since().saturating_add(stop);
        self.window_ends().min(quiet)
    }

    /// Returns `true` if nothing that was told holds any more: the window has ended, or the longest
    /// time without a report, and the service asks for no pause.
    pub(crate) fn is_over(&self, now: u64) -> bool {
        now >= self.pause.max(self.ends_at())
    }

    /// Returns when the last report came, or when a window or an hour began since.
    fn quiet_since(&self) -> u64 {
        self.at.max(self.heard_at)
    }

    /// Returns what is kept back: the heaviest request where others may be quicker, and what
    /// reports say too much.
    pub(super) fn kept_back(&self) -> i128 {
        let others = self.seen.kept_for_others();
        (others + i128::from(self.kept)).min(amount(self.limit) / MOST_KEPT)
    }

    /// Returns what comes back in `nanos` after the anchor.
    pub(super) fn back(&self, nanos: u64) -> i128 {
        let of = match self.kind {
            Kind::Unknown | Kind::Window => 0,
            Kind::Refill => amount(self.limit),
            // As if it had been used evenly.
            Kind::Sliding => amount(self.limit) - i128::from(self.left),
        };
        of.max(0) * i128::from(nanos) / i128::from(self.window.max(1))
    }

    /// Returns the ledger of the window that has begun by `now`, if one has.
    ///
    /// Without a reset, or where tokens come back little by little, a window begins when nothing
    /// was heard for so long: what was sent before that is back.
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
        // Nothing is known of others once nothing was heard for a window. Half of what they took is
        // too much to forget in each second.
        next.seen.others = match self.window {
            _ if self.fresh => 0,
            0..=SECOND => Seen::mean(self.seen.others, 0, self.window),
            _ => self.seen.others / 2,
        };
        Some(next)
    }

    /// Returns the ledger once the longest time has passed without a report: as much is left as one
    /// request takes. What others took before is too old to be foreseen, or it would bar that request.
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
