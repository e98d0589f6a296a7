//! What the request path touches: the granted tokens, and until when they are good.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use core::time::Duration;

use paceline::{RetryQuota, SendPermit, Timestamp};
use tokio::sync::Notify;

use crate::line::Line;
use crate::snapshot::MemberId;
use crate::wire::Nano;

/// Everything is let go: the end of a lease that has none, nor tokens.
const OPEN: u64 = u64::MAX;
/// Nothing is let go.
const CLOSED: u64 = 0;
/// The service is open: nothing that is sent is a knock.
const NO_KNOCK: u64 = u64::MAX;

/// One value in a separate cache line: what requests write, apart from what they only read.
#[derive(Debug)]
#[repr(align(128))]
struct Apart<T>(T);

/// The local bucket of one member, filled by its background task.
///
/// All words are relaxed. Tokens are granted once because [`RetryQuota`] counts them so, whose
/// models stand with the core; the other words are bounds and counts, each valid alone, and none
/// publishes anything.
#[derive(Debug)]
pub(crate) struct Pool {
    tokens: Apart<RetryQuota>,
    /// Until when tokens may be spent, in nanoseconds of the member's clock. Read by each request,
    /// written by the task.
    until: Apart<AtomicU64>,
    /// From when on what is sent is a knock. Read by each success, written by the task.
    knock: Apart<AtomicU64>,
    /// When a knock was sent that was done, or 0.
    done: AtomicU64,
    /// Nanoseconds until a token may be expected, for refused requests.
    hint: AtomicU64,
    refused: Apart<AtomicBool>,
    throttled: AtomicU64,
    /// When the last throttled request was sent, how long it took, and until when to pause.
    last_sent: AtomicU64,
    trip: AtomicU64,
    pause_until: AtomicU64,
    /// Until when a plan is spent, or 0.
    shut_until: AtomicU64,
    /// The member that it is of, and the allowance that it was told while it ran, or 0.
    member: AtomicU64,
    allowance: AtomicU64,
    /// What was spent beyond what was taken: the next tokens pay it.
    owed: AtomicU64,
    /// What tokens may be expected at, in thousandths a second, or 0 if that is not known.
    rate: AtomicU64,
    pub(crate) line: Line,
    /// How many requests are in it, and the tokens that they still need.
    pub(crate) in_line: AtomicU64,
    pub(crate) waiting: AtomicU64,
    /// A request was refused or throttled: the task should look.
    pub(crate) need: Notify,
    /// The last handle is gone.
    pub(crate) stop: Notify,
}

/// Requests without a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Backlog {
    /// The tokens that requests wait for now.
    pub(crate) waiting: u64,
    /// Whether one was refused. It may have asked any number of times.
    pub(crate) refused: bool,
}

/// What the pool has noticed of throttled responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Throttles {
    pub(crate) count: u64,
    pub(crate) last_sent: Timestamp,
    pub(crate) trip: Duration,
    pub(crate) pause_until: Timestamp,
    /// When a knock was sent that was done, or zero.
    pub(crate) done: Timestamp,
}

impl Pool {
    pub(crate) fn new() -> Self {
        let tokens = RetryQuota::new(u32::MAX);
        drop(tokens.try_acquire(u32::MAX)); // a quota starts full, a pool empty
        Self {
            tokens: Apart(tokens),
            until: Apart(AtomicU64::new(CLOSED)),
            knock: Apart(AtomicU64::new(NO_KNOCK)),
            done: AtomicU64::new(0),
            hint: AtomicU64::new(1_000_000),
            refused: Apart(AtomicBool::new(false)),
            throttled: AtomicU64::new(0),
            last_sent: AtomicU64::new(0),
            trip: AtomicU64::new(0),
            pause_until: AtomicU64::new(0),
            shut_until: AtomicU64::new(0),
            member: AtomicU64::new(MemberId::new().0),
            allowance: AtomicU64::new(0),
            owed: AtomicU64::new(0),
            rate: AtomicU64::new(0),
            line: Line::default(),
            in_line: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            need: Notify::new(),
            stop: Notify::new(),
        }
    }

    /// Takes a token of a lease that is good at `now`: one load, and one exchange as on a limited
    /// [`paceline::SendRate`].
    pub(crate) fn take(&self, now: Timestamp, weight: u32) -> bool {
        match self.until.0.load(Relaxed) {
            OPEN => true,
            until => now.as_nanos() < until && self.tokens.0.try_acquire(weight).is_some(),
        }
    }

    /// Takes as many of `most` tokens as there are, and returns how many.
    pub(crate) fn take_some(&self, now: Timestamp, most: u32) -> u32 {
        match self.until.0.load(Relaxed) {
            OPEN => most,
            until if now.as_nanos() < until => self.withdraw(most),
            _ => 0,
        }
    }

    /// Like [`take`](Self::take), but not before the waiters. It says nothing to the task.
    pub(crate) fn take_in_turn(&self, now: Timestamp, weight: u32) -> bool {
        self.in_line.load(Relaxed) == 0 && self.take(now, weight)
    }

    /// Like [`take_in_turn`](Self::take_in_turn), or returns how long it may take.
    pub(crate) fn try_take(&self, now: Timestamp, weight: u32) -> Result<(), Duration> {
        if self.take_in_turn(now, weight) {
            return Ok(());
        }
        // Relaxed: a hint. The load spares other pollers the line.
        if !self.refused.0.load(Relaxed) {
            self.refused.0.store(true, Relaxed);
        }
        self.need.notify_one();
        let waiting = self.waiting.load(Relaxed);
        Err(self.wait_for(waiting.saturating_add(u64::from(weight))))
    }

    /// Returns how long it may be until so many tokens have come, beside those that are there: the
    /// first after the hint, since a part of it has come already. Never zero.
    pub(crate) fn wait_for(&self, tokens: u64) -> Duration {
        let rate = self.rate.load(Relaxed);
        let tokens = tokens.saturating_add(self.owed.load(Relaxed));
        let missing = tokens.saturating_sub(u64::from(self.available()));
        let tokens = missing.saturating_sub(1);
        let nanos = u128::from(tokens)
            .saturating_mul(1_000_000_000_000)
            .checked_div(u128::from(rate));
        let nanos = u64::try_from(nanos.unwrap_or(0)).unwrap_or(u64::MAX);
        self.hint().max(Duration::from_nanos(nanos))
    }

    /// Returns how long it may be until there is a token. Never zero.
    pub(crate) fn hint(&self) -> Duration {
        Duration::from_nanos(self.hint.load(Relaxed).max(1))
    }

    /// Puts back tokens that were taken and not used.
    pub(crate) fn untake(&self, tokens: u32) {
        self.tokens.0.credit(self.pay(tokens));
    }

    /// Takes note of a throttle.
    pub(crate) fn throttled(&self, now: Timestamp, permit: SendPermit, hint: Duration) {
        let sent = permit.time();
        self.last_sent.fetch_max(sent.as_nanos(), Relaxed);
        self.trip.store(nanos_since(sent, now), Relaxed);
        if !hint.is_zero() {
            let hint = u64::try_from(hint.as_nanos()).unwrap_or(u64::MAX);
            let until = now.as_nanos().saturating_add(hint);
            self.pause_until.fetch_max(until, Relaxed);
        }
        self.throttled.fetch_add(1, Relaxed);
        self.need.notify_one();
    }

    /// Takes note of a plan that is spent.
    pub(crate) fn shut(&self, until: Timestamp) {
        self.shut_until.fetch_max(until.as_nanos(), Relaxed);
        self.need.notify_one();
    }

    /// Takes note of a success: of the first one that is a knock. Until then, and while the service
    /// is open, it writes nothing.
    pub(crate) fn done(&self, permit: SendPermit) {
        let sent = permit.time().as_nanos();
        if sent >= self.knock.0.load(Relaxed) {
            self.knock.0.store(NO_KNOCK, Relaxed);
            self.done.store(sent.max(1), Relaxed);
            self.need.notify_one();
        }
    }

    /// Makes what is sent from `now` on a knock, or nothing.
    pub(crate) fn set_knock(&self, from: Option<Timestamp>) {
        let from = from.map_or(NO_KNOCK, Timestamp::as_nanos);
        self.knock.0.store(from, Relaxed);
    }

    /// Returns the throttles since it was last asked.
    pub(crate) fn throttles(&self) -> Throttles {
        Throttles {
            count: self.throttled.swap(0, Relaxed),
            last_sent: Timestamp::from_nanos(self.last_sent.load(Relaxed)),
            trip: Duration::from_nanos(self.trip.load(Relaxed)),
            pause_until: Timestamp::from_nanos(self.pause_until.swap(0, Relaxed)),
            done: Timestamp::from_nanos(self.done.swap(0, Relaxed)),
        }
    }

    /// Returns `true` if there have been throttles since they were last asked for.
    pub(crate) fn has_throttles(&self) -> bool {
        self.throttled.load(Relaxed) > 0
    }

    /// Returns `true` if a knock was done since then.
    pub(crate) fn has_opened(&self) -> bool {
        self.done.load(Relaxed) > 0
    }

    /// Returns until when a plan is spent, or zero.
    pub(crate) fn shut_until(&self) -> Timestamp {
        Timestamp::from_nanos(self.shut_until.load(Relaxed))
    }

    /// Returns how many wait now, and whether one was refused since it was last asked.
    pub(crate) fn backlog(&self) -> Backlog {
        Backlog {
            waiting: self.waiting.load(Relaxed),
            refused: self.refused.0.swap(false, Relaxed),
        }
    }

    /// Returns `true` if a request was refused, or waits.
    pub(crate) fn has_backlog(&self) -> bool {
        self.waiting.load(Relaxed) > 0 || self.refused.0.load(Relaxed)
    }

    pub(crate) fn available(&self) -> u32 {
        self.tokens.0.available()
    }

    pub(crate) fn pour(&self, tokens: u32) {
        if tokens > 0 {
            self.untake(tokens);
            self.line.wake();
        }
    }

    /// Corrects what was taken to what it `cost`.
    pub(crate) fn settle(&self, taken: u32, cost: u32) {
        self.pour(taken.saturating_sub(cost));
        let more = cost.saturating_sub(taken);
        let owed = u64::from(more.saturating_sub(self.withdraw(more)));
        if owed > 0 {
            // Relaxed: tokens are counted by the bucket. Until the debt is seen the next ones may
            // go to requests, and the ones after them pay it.
            self.waiting.fetch_add(owed, Relaxed);
            self.owed.fetch_add(owed, Relaxed);
            self.need.notify_one();
        }
    }

    /// Pays what is owed out of `tokens`, and returns what is left of them.
    fn pay(&self, tokens: u32) -> u32 {
        let rest = |owed: u64| (owed > 0).then(|| owed.saturating_sub(tokens.into()));
        let Ok(owed) = self.owed.fetch_update(Relaxed, Relaxed, rest) else {
            return tokens;
        };
        let paid = u32::try_from(owed).unwrap_or(u32::MAX).min(tokens);
        self.waiting.fetch_sub(paid.into(), Relaxed);
        tokens.saturating_sub(paid)
    }

    /// Takes out as many of `most` tokens as there are, and returns how many.
    pub(crate) fn withdraw(&self, most: u32) -> u32 {
        loop {
            let tokens = self.available().min(most);
            // Others may have been faster; each time around there are fewer.
            if self.tokens.0.try_acquire(tokens).is_some() {
                return tokens;
            }
        }
    }

    pub(crate) fn open(&self) {
        self.until.0.store(OPEN, Relaxed);
        self.line.wake();
    }

    pub(crate) fn close(&self) {
        self.until.0.store(CLOSED, Relaxed);
    }

    /// Lets tokens be spent until `until`.
    pub(crate) fn good_until(&self, until: Timestamp) {
        let until = until.as_nanos().clamp(1, OPEN.wrapping_sub(1));
        self.until.0.store(until, Relaxed);
    }

    pub(crate) fn member(&self) -> MemberId {
        MemberId(self.member.load(Relaxed))
    }

    /// Becomes that of another member.
    pub(crate) fn rename(&self) {
        self.member.store(MemberId::new().0, Relaxed);
    }

    /// Returns the allowance that it was told last.
    pub(crate) fn allowance(&self) -> Option<Nano> {
        Some(self.allowance.load(Relaxed)).filter(|rate| *rate > 0)
    }

    pub(crate) fn set_allowance(&self, rate: Nano) {
        if self.allowance.swap(rate, Relaxed) != rate {
            self.need.notify_one();
        }
    }

    pub(crate) fn set_rate(&self, rate: u64) {
        self.rate.store(rate, Relaxed);
    }

    pub(crate) fn set_hint(&self, hint: Duration) {
        let hint = u64::try_from(hint.as_nanos()).unwrap_or(u64::MAX);
        self.hint.store(hint, Relaxed);
    }
}

/// Returns the nanoseconds from `earlier` to `now`, or zero.
pub(crate) fn nanos_since(earlier: Timestamp, now: Timestamp) -> u64 {
    now.as_nanos().saturating_sub(earlier.as_nanos())
}

/// Returns the time from `earlier` to `now`, or zero.
pub(crate) fn since(earlier: Timestamp, now: Timestamp) -> Duration {
    Duration::from_nanos(nanos_since(earlier, now))
}

/// Returns the time `span` after `time`, or the end of time.
pub(crate) fn after(time: Timestamp, span: Duration) -> Timestamp {
    let span = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    Timestamp::from_nanos(time.as_nanos().saturating_add(span))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Duration, Pool, Relaxed, SendPermit, Timestamp};
    use crate::line::Place;

    const fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    #[test]
    fn a_pool_starts_empty_and_closed() {
        let pool = Pool::new();
        assert_eq!((pool.available(), pool.take(at(0), 1)), (0, false));
        pool.pour(1);
        assert!(!pool.take(at(0), 1));
    }

    #[test]
    fn tokens_are_spent_before_the_end_of_the_lease_and_not_at_it() {
        let pool = Pool::new();
        pool.pour(3);
        pool.good_until(at(10));
        assert!(pool.take(at(9), 1));
        assert!(!pool.take(at(10), 1));
        assert_eq!(pool.available(), 2);
    }

    #[test]
    fn an_open_pool_lets_everything_go_and_a_closed_one_nothing() {
        let pool = Pool::new();
        pool.pour(1);
        pool.open();
        assert!((0..5).all(|_| pool.take(at(u64::MAX), 1)));
        pool.close();
        assert!(!pool.take(at(0), 1));
        assert_eq!(pool.available(), 1);
    }

    #[test]
    fn a_refusal_is_backlog_and_comes_with_a_wait() {
        let pool = Pool::new();
        pool.set_hint(Duration::ZERO);
        assert_eq!(pool.try_take(at(0), 1), Err(Duration::from_nanos(1)));
        assert!(pool.has_backlog());
        assert!(pool.backlog().refused);
        assert!(!pool.backlog().refused);
    }

    #[test]
    fn the_wait_of_a_refusal_is_that_of_all_before_it() {
        let pool = Arc::new(Pool::new());
        pool.set_rate(10_000);
        let _waits = Place::take(&pool, 4, false);
        assert_eq!(pool.try_take(at(0), 1), Err(Duration::from_millis(400)));
    }

    #[test]
    fn a_newcomer_does_not_overtake_the_line() {
        let pool = Arc::new(Pool::new());
        pool.pour(1);
        pool.good_until(at(10));
        let head = Place::take(&pool, 1, false);
        assert!(pool.try_take(at(0), 1).is_err());
        drop(head);
        assert_eq!(pool.try_take(at(0), 1), Ok(()));
    }

    #[test]
    fn throttles_are_told_once_with_the_latest_send() {
        let pool = Pool::new();
        pool.throttled(at(9), SendPermit::sent_at(at(4)), Duration::ZERO);
        pool.throttled(at(9), SendPermit::sent_at(at(2)), Duration::from_nanos(5));
        let told = pool.throttles();
        assert_eq!((told.count, told.last_sent), (2, at(4)));
        assert_eq!(
            (told.trip, told.pause_until),
            (Duration::from_nanos(7), at(14))
        );
        assert_eq!(pool.throttles().count, 0);
    }

    #[test]
    fn of_the_successes_only_the_first_knock_is_told() {
        let pool = Pool::new();
        let done = |nanos| pool.done(SendPermit::sent_at(at(nanos)));
        done(9);
        assert!(!pool.has_opened());
        pool.set_knock(Some(at(5)));
        done(4);
        assert!(!pool.has_opened());
        done(6);
        done(7);
        assert!(pool.has_opened());
        assert_eq!([(); 2].map(|()| pool.throttles().done), [at(6), at(0)]);
        pool.set_knock(Some(at(5)));
        pool.set_knock(None);
        done(6);
        assert!(!pool.has_opened());
    }

    #[test]
    fn no_more_is_withdrawn_than_there_is() {
        let pool = Pool::new();
        pool.pour(5);
        assert_eq!((pool.withdraw(3), pool.withdraw(3)), (3, 2));
    }

    #[test]
    fn a_waiter_is_backlog() {
        let pool = Pool::new();
        assert!(!pool.has_backlog());
        pool.waiting.store(2, Relaxed);
        assert!(pool.has_backlog());
        assert_eq!(pool.backlog().waiting, 2);
    }

    #[test]
    fn a_token_that_was_not_used_is_there_again() {
        let pool = Pool::new();
        pool.untake(1);
        assert_eq!(pool.available(), 1);
    }
}
