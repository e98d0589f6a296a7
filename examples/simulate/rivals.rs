//! Limiters that others have published, from their rules. Each is the rule alone, in the
//! simulator's queue and with its retries.

#![expect(
    clippy::float_arithmetic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "their rules are in floating point"
)]

use core::cell::{Cell, RefCell};
use core::mem;

use paceline::{SendPermit, Timestamp, law::LimitReports};

use crate::limiter::{Limiter, Reply, Retry, Seat, Want};
use crate::time::{MILLI, SECOND};

/// A rule that is looked at by the first response after a second.
pub(crate) trait Rule {
    const FIRST: Self;

    fn rate(&self) -> f64;
    /// How many tokens the bucket holds.
    fn burst(&self) -> f64;
    /// A second or more has passed, so many of them by `now`.
    fn tick(&mut self, now: u64, seconds: f64, of: &Second);
    /// A request was throttled.
    fn throttled(&mut self, _now: u64) {}
}

/// What came back since the last look.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Second {
    sent: f64,
    done: f64,
    throttled: f64,
}

/// A client that goes by a rule.
#[derive(Debug)]
pub(crate) struct Rival<R>(RefCell<Bucket<R>>);

#[derive(Debug)]
struct Bucket<R> {
    rule: R,
    second: Second,
    /// When the rule was looked at last.
    looked: u64,
    tokens: f64,
    filled: u64,
}

/// How often waiters ask at least, and at most.
const ASK: (u64, u64) = (MILLI, 20 * MILLI);

fn sent(now: u64) -> SendPermit {
    SendPermit::sent_at(Timestamp::from_nanos(now))
}

/// Returns the seconds since `last`, which is `now` from here on.
fn seconds(last: &mut u64, now: u64) -> f64 {
    (now - mem::replace(last, now)) as f64 / SECOND as f64
}

impl<R: Rule> Limiter for Rival<R> {
    fn ask(&self, now: u64, _: Want, _: &mut Seat<'_>) -> Result<SendPermit, u64> {
        let mut it = self.0.borrow_mut();
        let (rate, most) = (it.rule.rate(), it.rule.burst().max(1.0));
        it.tokens = (it.tokens + rate * seconds(&mut it.filled, now)).min(most);
        if it.tokens < 1.0 {
            let wait = (1.0 - it.tokens) / rate * SECOND as f64;
            return Err((wait as u64).clamp(ASK.0, ASK.1));
        }
        it.tokens -= 1.0;
        it.second.sent += 1.0;
        Ok(sent(now))
    }

    fn record(&self, now: u64, _: SendPermit, reply: Reply, _: &LimitReports) {
        let it = &mut *self.0.borrow_mut();
        let throttled = matches!(reply, Reply::Throttled(_));
        if throttled {
            it.second.throttled += 1.0;
        } else {
            it.second.done += 1.0;
        }
        if now >= it.looked + SECOND {
            let seconds = seconds(&mut it.looked, now);
            it.rule.tick(now, seconds, &mem::take(&mut it.second));
        }
        if throttled {
            it.rule.throttled(now);
        }
    }

    fn allowed(&self, _: u64) -> Option<u64> {
        Some((self.0.borrow().rule.rate() * 1e3) as u64)
    }
}

impl<R: Rule> Rival<R> {
    pub(crate) fn new() -> Self {
        Self(RefCell::new(Bucket {
            rule: R::FIRST,
            second: Second::default(),
            looked: 0,
            tokens: R::FIRST.burst(),
            filled: 0,
        }))
    }
}

/// Polars, August 2026 (PR 28591, `http_rate_limit.rs`): search from 1,000/s by doubling, cut to
/// 0.7 of the smaller of the rate and what was delivered, hold 2 s, double up to where it was cut,
/// then a tenth of that each second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Polars {
    rate: f64,
    /// What is delivered, four fifths of it in the last second.
    delivered: f64,
    /// The rate that was cut, if one was.
    anchor: Option<f64>,
    cut_at: u64,
}

impl Polars {
    const FIRST_RATE: f64 = 1_000.0;
    const LOWEST: f64 = 10.0;
    const HIGHEST: f64 = 50_000.0;
}

impl Rule for Polars {
    const FIRST: Self = Self {
        rate: Self::FIRST_RATE,
        delivered: 0.0,
        anchor: None,
        cut_at: 0,
    };

    fn rate(&self) -> f64 {
        self.rate
    }

    fn burst(&self) -> f64 {
        (self.rate / 100.0).min(512.0)
    }

    fn throttled(&mut self, now: u64) {
        if self.anchor.is_some() && now < self.cut_at + SECOND {
            return;
        }
        let (anchor, left) = if self.delivered > 0.0 {
            (self.rate.min(self.delivered.max(Self::LOWEST)), 0.7)
        } else {
            (self.rate, 0.5)
        };
        self.rate = (anchor * left).max(Self::LOWEST);
        self.anchor = Some(anchor);
        self.cut_at = now;
    }

    fn tick(&mut self, now: u64, seconds: f64, of: &Second) {
        if of.done > 0.0 {
            let kept = if self.delivered > 0.0 { 0.2 } else { 0.0 };
            self.delivered = kept * self.delivered + (1.0 - kept) * of.done / seconds;
        }
        if of.sent == 0.0 {
            let above = (self.rate - Self::FIRST_RATE).max(0.0);
            self.rate -= above * (1.0 - 0.9_f64.powi(seconds as i32));
            return;
        }
        if of.sent < 0.8 * self.rate * seconds {
            return;
        }
        self.rate = match self.anchor {
            None if of.throttled > 0.0 => self.rate,
            None => self.rate * 2.0,
            Some(_) if now <= self.cut_at + 2 * SECOND => self.rate,
            Some(anchor) if self.rate < anchor => (self.rate * 2.0).min(anchor),
            Some(anchor) => self.rate + (0.1 * anchor).max(5.0),
        }
        .min(Self::HIGHEST);
    }
}

/// Lance, March 2026 (`lance_aimd_*`): from 2,000/s, half after a second with a throttle, else
/// 300/s more, if there were responses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lance(f64);

impl Rule for Lance {
    const FIRST: Self = Self(2_000.0);

    fn rate(&self) -> f64 {
        self.0
    }

    fn burst(&self) -> f64 {
        100.0
    }

    fn tick(&mut self, _: u64, _: f64, of: &Second) {
        let next = if of.throttled > 0.0 {
            self.0 / 2.0
        } else if of.done > 0.0 {
            self.0 + 300.0
        } else {
            self.0
        };
        self.0 = next.clamp(1.0, 5_000.0);
    }
}

/// Google's client libraries for Rust, 2026 (`gax/src/retry_throttler.rs`, `AdaptiveThrottler`): a
/// retry is not sent with the probability `(requests − 2·accepts)/(requests + 1)`, and uses up an
/// attempt. First attempts are always sent, and the counts are never forgotten.
#[derive(Debug, Default)]
pub(crate) struct Gax {
    requests: Cell<f64>,
    accepts: Cell<f64>,
}

impl Limiter for Gax {
    fn ask(&self, now: u64, _: Want, _: &mut Seat<'_>) -> Result<SendPermit, u64> {
        Ok(sent(now))
    }

    fn record(&self, _: u64, _: SendPermit, reply: Reply, _: &LimitReports) {
        self.requests.set(self.requests.get() + 1.0);
        if reply == Reply::Done {
            self.accepts.set(self.accepts.get() + 1.0);
        }
    }

    fn retry(&self) -> Retry {
        Retry::Throttled
    }

    fn rejects_retry(&self, draw: u32) -> bool {
        let requests = self.requests.get();
        let probability = (requests - 2.0 * self.accepts.get()) / (requests + 1.0);
        f64::from(draw) / f64::from(u32::MAX) <= probability.max(0.0)
    }
}

/// A rule for how many requests may be in flight.
pub(crate) trait Limit {
    const FIRST: Self;

    fn most(&mut self) -> &mut u32;
    /// A request was answered after `trip` nanoseconds, itself and others being `in_flight`.
    fn done(&mut self, in_flight: u32, trip: u64);
}

/// A client of throttle-net 2.0.0 with a limit on requests in flight (`src/adaptive.rs`), from 1 to
/// 100: a throttle halves it, unless the request was sent before it was halved last.
#[derive(Debug)]
pub(crate) struct InFlight<L>(RefCell<Flight<L>>);

#[derive(Debug)]
struct Flight<L> {
    limit: L,
    under_way: u32,
    halved_at: u64,
}

const MOST_IN_FLIGHT: u32 = 100;

impl<L: Limit> InFlight<L> {
    pub(crate) fn new() -> Self {
        Self(RefCell::new(Flight {
            limit: L::FIRST,
            under_way: 0,
            halved_at: 0,
        }))
    }
}

impl<L: Limit> Limiter for InFlight<L> {
    fn ask(&self, now: u64, _: Want, _: &mut Seat<'_>) -> Result<SendPermit, u64> {
        let mut it = self.0.borrow_mut();
        if it.under_way >= *it.limit.most() {
            return Err(ASK.0);
        }
        it.under_way += 1;
        Ok(sent(now))
    }

    fn record(&self, now: u64, permit: SendPermit, reply: Reply, _: &LimitReports) {
        let it = &mut *self.0.borrow_mut();
        let sent = permit.time().as_nanos();
        if reply == Reply::Done {
            it.limit.done(it.under_way, now - sent);
        } else if sent >= it.halved_at {
            let most = it.limit.most();
            *most = (*most / 2).max(1);
            it.halved_at = now;
        }
        it.under_way -= 1;
    }
}

/// Its `Aimd`: one more after a success while the limit is used up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OneMore(u32);

impl Limit for OneMore {
    const FIRST: Self = Self(1);

    fn most(&mut self) -> &mut u32 {
        &mut self.0
    }

    fn done(&mut self, in_flight: u32, _: u64) {
        if in_flight >= self.0 {
            self.0 = (self.0 + 1).min(MOST_IN_FLIGHT);
        }
    }
}

/// Its `Vegas`: one more while the trips say that fewer than three are queued, one less above six.
/// The shortest trip is measured anew after a thousand responses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vegas {
    most: u32,
    shortest: u64,
    responses: u64,
}

impl Limit for Vegas {
    const FIRST: Self = Self {
        most: 1,
        shortest: u64::MAX,
        responses: 0,
    };

    fn most(&mut self) -> &mut u32 {
        &mut self.most
    }

    fn done(&mut self, _: u32, trip: u64) {
        let trip = trip.max(1);
        self.responses += 1;
        if self.responses % 1_000 == 0 {
            self.shortest = trip;
        }
        self.shortest = self.shortest.min(trip);
        let queued = u64::from(self.most) * (trip - self.shortest) / trip;
        self.most = match queued {
            0..3 => (self.most + 1).min(MOST_IN_FLIGHT),
            3..=6 => self.most,
            _ => (self.most - 1).max(1),
        };
    }
}

/// `ScyllaDB`'s S3 client, September 2026 (PR 30775): when more than a fifth of the last fifty
/// outcomes were refusals, nothing is sent for four seconds.
#[derive(Debug, Default)]
pub(crate) struct Freeze {
    /// The last outcomes, the latest in the lowest bit: whether each was a refusal.
    outcomes: Cell<u64>,
    until: Cell<u64>,
}

impl Freeze {
    const OUTCOMES: u32 = 50;
    const SPAN: u64 = 4 * SECOND;
}

impl Limiter for Freeze {
    fn ask(&self, now: u64, _: Want, _: &mut Seat<'_>) -> Result<SendPermit, u64> {
        match self.until.get().checked_sub(now) {
            None | Some(0) => Ok(sent(now)),
            Some(wait) => Err(wait),
        }
    }

    fn record(&self, now: u64, _: SendPermit, reply: Reply, _: &LimitReports) {
        let refused = u64::from(matches!(reply, Reply::Throttled(_)));
        let outcomes = (self.outcomes.get() << 1 | refused) & ((1 << Self::OUTCOMES) - 1);
        self.outcomes.set(outcomes);
        if now >= self.until.get() && outcomes.count_ones() * 5 > Self::OUTCOMES {
            self.outcomes.set(0);
            self.until.set(now + Self::SPAN);
        }
    }
}

#[cfg(test)]
mod tests {
    use paceline::{Class, SendPermit, law::LimitReports};

    use super::{Freeze, Gax, InFlight, Lance, Limit, OneMore, Polars, Rival, Rule, Vegas};
    use crate::limiter::{Limiter, Reply, Seat, Want};
    use crate::time::{MILLI, SECOND};

    const THROTTLED: Reply = Reply::Throttled(None);

    fn ask(limiter: &impl Limiter, now: u64) -> Result<SendPermit, u64> {
        let class = Class::Foreground;
        limiter.ask(now, Want { weight: 1, class }, &mut Seat::default())
    }

    fn record(limiter: &impl Limiter, now: u64, permit: SendPermit, reply: Reply) {
        limiter.record(now, permit, reply, &LimitReports::new());
    }

    /// Sends a request at each of these milliseconds, whose response comes at once.
    fn hear<R: Rule>(rival: &Rival<R>, replies: &[(u64, Reply)]) -> f64 {
        for (millis, reply) in replies {
            let now = millis * MILLI;
            let permit = ask(rival, now).expect("it has a token");
            record(rival, now, permit, *reply);
        }
        rival.0.borrow().rule.rate()
    }

    fn assert_rates<R: Rule>(steps: &[(u64, Reply, f64)]) {
        let rival = Rival::<R>::new();
        for (millis, reply, expected) in steps {
            let rate = hear(&rival, &[(*millis, *reply)]);
            let error = (rate - expected).abs();
            assert!(error < 1e-9, "at {millis} ms: {rate}");
        }
    }

    #[test]
    fn lance_halves_after_a_second_with_a_throttle() {
        assert_rates::<Lance>(&[
            (500, Reply::Done, 2_000.0),
            (1_000, Reply::Done, 2_300.0),
            (1_500, THROTTLED, 2_300.0),
            (1_999, Reply::Done, 2_300.0),
            (2_000, Reply::Done, 1_150.0),
            (3_000, THROTTLED, 575.0),
            (9_000, Reply::Done, 875.0),
        ]);
    }

    #[test]
    fn aimd_keeps_between_one_and_five_thousand() {
        for (reply, bound) in [(Reply::Done, 5_000.0), (THROTTLED, 1.0)] {
            let rival = Rival::<Lance>::new();
            let replies = (0..12).map(|turn| (turn * 2_000, reply));
            let rate = hear(&rival, &replies.collect::<Vec<_>>());
            assert!((rate - bound).abs() < 1e-9, "{rate}");
        }
    }

    #[test]
    fn polars_cuts_once_a_second_and_returns_to_the_anchor() {
        let rival = Rival::<Polars>::new();
        let mut polars = rival.0.into_inner().rule;
        let busy = |done| super::Second {
            sent: 1e6,
            done,
            throttled: 0.0,
        };
        let mut rates = Vec::new();
        // Search doubles; a throttle cuts to 0.7 of what was delivered, once a second.
        polars.tick(SECOND, 1.0, &busy(400.0));
        rates.push(polars.rate);
        for at in [2 * SECOND, 2 * SECOND + 1] {
            polars.throttled(at);
            rates.push(polars.rate);
        }
        // Held; back to where it was cut; a tenth of that more.
        for (second, done) in [(3, 280.0), (5, 280.0), (6, 400.0)] {
            polars.tick(second * SECOND, 1.0, &busy(done));
            rates.push(polars.rate);
        }
        let expected = [2_000.0, 280.0, 280.0, 280.0, 400.0, 440.0];
        let close = |(rate, expected): (&f64, f64)| (rate - expected).abs() < 1e-9;
        assert!(rates.iter().zip(expected).all(close), "{rates:?}");
    }

    #[test]
    fn gax_rejects_retries_when_half_of_all_failed() {
        let gax = Gax::default();
        let hear = |reply, times| {
            for _ in 0..times {
                let permit = ask(&gax, 0).expect("it never holds back");
                record(&gax, 0, permit, reply);
            }
        };
        hear(Reply::Done, 50);
        hear(THROTTLED, 49);
        assert!(!gax.rejects_retry(1));
        // 201 requests of which 50 were accepted: 101 of 202 retries are rejected.
        hear(THROTTLED, 102);
        assert!(gax.rejects_retry(u32::MAX / 2));
        assert!(!gax.rejects_retry(u32::MAX / 2 + 2));
    }

    /// Sends as many as it lets at `now`, and hears of the first of them after so long.
    fn in_flight<L: Limit>(limit: &InFlight<L>, now: u64) -> Vec<SendPermit> {
        core::iter::from_fn(|| ask(limit, now).ok()).collect()
    }

    #[test]
    fn one_more_grows_when_it_is_used_up_and_halves_once_for_each_time() {
        let limit = InFlight::<OneMore>::new();
        for most in 1..=8 {
            let sent = in_flight(&limit, 0);
            assert_eq!(sent.len(), most);
            // The first finds it used up; the others do not.
            for permit in sent {
                record(&limit, SECOND, permit, Reply::Done);
            }
        }
        let sent = in_flight(&limit, 2 * SECOND);
        for permit in sent {
            record(&limit, 3 * SECOND, permit, THROTTLED);
        }
        assert_eq!(*limit.0.borrow_mut().limit.most(), 4);
    }

    #[test]
    fn vegas_goes_by_what_the_trips_say_is_queued() {
        let mut vegas = Vegas::FIRST;
        let mut most = |trips: &[u64]| {
            for trip in trips {
                vegas.done(1, *trip);
            }
            *vegas.most()
        };
        assert_eq!(most(&[MILLI; 19]), 20);
        // Of 20, 4 are queued, then 10, then 9 of 19.
        assert_eq!(most(&[MILLI * 5 / 4]), 20);
        assert_eq!(most(&[2 * MILLI, 2 * MILLI]), 18);
    }

    #[test]
    fn more_than_a_fifth_of_fifty_freezes_for_four_seconds() {
        let freeze = Freeze::default();
        let hear = |reply| {
            let permit = ask(&freeze, 0).expect("it is not frozen");
            record(&freeze, SECOND, permit, reply);
        };
        (0..40).for_each(|_| hear(Reply::Done));
        (0..10).for_each(|_| hear(THROTTLED));
        hear(THROTTLED);
        assert_eq!(ask(&freeze, SECOND).err(), Some(4 * SECOND));
        assert!(ask(&freeze, 5 * SECOND).is_ok());
    }
}
