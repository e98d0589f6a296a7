//! Limiters that others have published, from their rules. Each is the rule alone, in the
//! simulator's queue and with its retries.

#![expect(
    clippy::float_arithmetic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "their rules are in floating point"
)]

use core::cell::Cell;

use paceline::{SendPermit, Timestamp};

use crate::law::{Law, Retry, Seat};
use crate::service::Reply;
use crate::time::MILLI;

const SECOND: u64 = 1_000 * MILLI;

/// A rule that is looked at by the first response after a second.
pub(crate) trait Rule: Copy {
    const FIRST: Self;
    /// Whether a second that is over is looked at before the next request or response, and not with
    /// a response.
    const LOOKS_FIRST: bool = false;

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
pub(crate) struct Rival<R: Copy> {
    rule: Cell<R>,
    second: Cell<Second>,
    /// When the rule was looked at last.
    looked: Cell<u64>,
    tokens: Cell<f64>,
    filled: Cell<u64>,
}

/// How often waiters ask at least, and at most.
const ASK: (u64, u64) = (MILLI, 20 * MILLI);

impl<R: Rule + 'static> Law for Rival<R> {
    fn ask(&self, now: u64, _: &mut Option<Seat<'_>>) -> Result<SendPermit, u64> {
        let rate = self.rule.get().rate();
        if R::LOOKS_FIRST {
            self.look(now);
        }
        let rule = self.rule.get();
        let seconds = (now - self.filled.replace(now)) as f64 / SECOND as f64;
        let most = rule.burst().max(1.0);
        let tokens = (self.tokens.get() + rate * seconds).min(most);
        if tokens < 1.0 {
            self.tokens.set(tokens);
            let wait = (1.0 - tokens) / rule.rate() * SECOND as f64;
            return Err((wait as u64).clamp(ASK.0, ASK.1));
        }
        self.tokens.set(tokens - 1.0);
        let mut second = self.second.get();
        second.sent += 1.0;
        self.second.set(second);
        Ok(SendPermit::sent_at(Timestamp::from_nanos(now)))
    }

    fn record(&self, now: u64, _: SendPermit, reply: Reply) {
        if R::LOOKS_FIRST {
            self.look(now);
        }
        let throttled = matches!(reply, Reply::Throttled(_));
        let mut second = self.second.get();
        if throttled {
            second.throttled += 1.0;
        } else {
            second.done += 1.0;
        }
        self.second.set(second);
        if !R::LOOKS_FIRST {
            self.look(now);
        }
        if throttled {
            let mut rule = self.rule.get();
            rule.throttled(now);
            self.rule.set(rule);
        }
    }

    fn allowed(&self, _: u64) -> Option<u64> {
        Some((self.rule.get().rate() * 1e3) as u64)
    }
}

impl<R: Rule + 'static> Rival<R> {
    pub(crate) fn boxed() -> Box<dyn Law> {
        Box::new(Self::new())
    }

    fn new() -> Self {
        Self {
            rule: Cell::new(R::FIRST),
            second: Cell::new(Second::default()),
            looked: Cell::new(0),
            tokens: Cell::new(R::FIRST.burst()),
            filled: Cell::new(0),
        }
    }

    /// Has the rule look at the time since it looked last, if that is a second or more.
    fn look(&self, now: u64) {
        if now < self.looked.get() + SECOND {
            return;
        }
        let seconds = (now - self.looked.replace(now)) as f64 / SECOND as f64;
        let mut rule = self.rule.get();
        rule.tick(now, seconds, &self.second.replace(Second::default()));
        self.rule.set(rule);
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
pub(crate) type Lance = Aimd<false>;

/// OpenDAL's `AimdLayer`, September 2026 (PR 8329, `core/layers/aimd/src/bucket.rs`): Lance's
/// rule and numbers, but a second that is over is looked at by the next request as well, and a
/// response counts for the second in which it comes.
pub(crate) type OpenDal = Aimd<true>;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Aimd<const LOOKS_FIRST: bool>(f64);

impl<const LOOKS_FIRST: bool> Rule for Aimd<LOOKS_FIRST> {
    const FIRST: Self = Self(2_000.0);
    const LOOKS_FIRST: bool = LOOKS_FIRST;

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

impl Law for Gax {
    fn ask(&self, now: u64, _: &mut Option<Seat<'_>>) -> Result<SendPermit, u64> {
        Ok(SendPermit::sent_at(Timestamp::from_nanos(now)))
    }

    fn record(&self, _: u64, _: SendPermit, reply: Reply) {
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
pub(crate) trait Limit: Copy {
    const FIRST: Self;

    fn most(&self) -> u32;
    /// A request was answered after `trip` nanoseconds, itself and others being `in_flight`.
    fn done(&mut self, in_flight: u32, trip: u64);
}

/// A client of throttle-net 2.0.0 with a limit on requests in flight (`src/adaptive.rs`), from 1 to
/// 100: a throttle halves it, unless the request was sent before it was halved last.
#[derive(Debug)]
pub(crate) struct InFlight<L: Copy> {
    limit: Cell<L>,
    /// What is taken from the limit of the rule.
    halved: fn(&mut L),
    under_way: Cell<u32>,
    halved_at: Cell<u64>,
}

const MOST_IN_FLIGHT: u32 = 100;

impl<L: Limit + 'static> Law for InFlight<L> {
    fn ask(&self, now: u64, _: &mut Option<Seat<'_>>) -> Result<SendPermit, u64> {
        if self.under_way.get() >= self.limit.get().most() {
            return Err(ASK.0);
        }
        self.under_way.set(self.under_way.get() + 1);
        Ok(SendPermit::sent_at(Timestamp::from_nanos(now)))
    }

    fn record(&self, now: u64, permit: SendPermit, reply: Reply) {
        let (mut limit, in_flight) = (self.limit.get(), self.under_way.get());
        let sent = permit.time().as_nanos();
        if reply == Reply::Done {
            limit.done(in_flight, now - sent);
        } else if sent >= self.halved_at.get() {
            (self.halved)(&mut limit);
            self.halved_at.set(now);
        }
        self.limit.set(limit);
        self.under_way.set(in_flight - 1);
    }
}

impl<L: Limit + 'static> InFlight<L> {
    fn new(halved: fn(&mut L)) -> Self {
        Self {
            limit: Cell::new(L::FIRST),
            halved,
            under_way: Cell::new(0),
            halved_at: Cell::new(0),
        }
    }
}

/// Its `Aimd`: one more after a success while the limit is used up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OneMore(u32);

impl Limit for OneMore {
    const FIRST: Self = Self(1);

    fn most(&self) -> u32 {
        self.0
    }

    fn done(&mut self, in_flight: u32, _: u64) {
        if in_flight >= self.0 {
            self.0 = (self.0 + 1).min(MOST_IN_FLIGHT);
        }
    }
}

impl InFlight<OneMore> {
    pub(crate) fn boxed() -> Box<dyn Law> {
        Box::new(Self::new(|limit| limit.0 = (limit.0 / 2).max(1)))
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

    fn most(&self) -> u32 {
        self.most
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

impl InFlight<Vegas> {
    pub(crate) fn boxed() -> Box<dyn Law> {
        Box::new(Self::new(|limit| limit.most = (limit.most / 2).max(1)))
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

impl Law for Freeze {
    fn ask(&self, now: u64, _: &mut Option<Seat<'_>>) -> Result<SendPermit, u64> {
        match self.until.get().checked_sub(now) {
            None | Some(0) => Ok(SendPermit::sent_at(Timestamp::from_nanos(now))),
            Some(wait) => Err(wait),
        }
    }

    fn record(&self, now: u64, _: SendPermit, reply: Reply) {
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
    use super::{
        Freeze, Gax, InFlight, Lance, Limit, OneMore, OpenDal, Polars, Rival, Rule, SECOND, Vegas,
    };
    use crate::law::Law;
    use crate::service::Reply;
    use crate::time::MILLI;

    const THROTTLED: Reply = Reply::Throttled(None);

    /// Sends a request at each of these milliseconds, whose response comes at once.
    fn hear<R: Rule + 'static>(rival: &Rival<R>, replies: &[(u64, Reply)]) -> f64 {
        for (millis, reply) in replies {
            let now = millis * MILLI;
            let permit = rival.ask(now, &mut None).expect("it has a token");
            rival.record(now, permit, *reply);
        }
        rival.rule.get().rate()
    }

    fn assert_rates<R: Rule + 'static>(steps: &[(u64, Reply, f64)]) {
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
    fn opendal_counts_a_response_for_its_own_second() {
        assert_rates::<OpenDal>(&[
            (500, Reply::Done, 2_000.0),
            (1_000, THROTTLED, 2_300.0),
            (2_000, Reply::Done, 1_150.0),
            (3_000, Reply::Done, 1_450.0),
        ]);
    }

    #[test]
    fn opendal_looks_with_requests_and_skips_empty_seconds() {
        let rival = Rival::<OpenDal>::new();
        let asked = |millis: u64| {
            let _permit = rival
                .ask(millis * MILLI, &mut None)
                .expect("it has a token");
            rival.rule.get().rate()
        };
        let before = [asked(1_000), asked(1_001)];
        hear(&rival, &[(1_500, THROTTLED)]);
        let after = [asked(1_999), asked(2_000), asked(9_000)];
        let rates = [before[0], before[1], after[0], after[1], after[2]];
        let expected = [2_000.0, 2_000.0, 2_000.0, 1_000.0, 1_000.0];
        assert_eq!(rates.map(f64::to_bits), expected.map(f64::to_bits));
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
        let mut polars = rival.rule.get();
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
        let record = |reply, times| {
            for _ in 0..times {
                let permit = gax.ask(0, &mut None).expect("it never holds back");
                gax.record(0, permit, reply);
            }
        };
        record(Reply::Done, 50);
        record(THROTTLED, 49);
        assert!(!gax.rejects_retry(1));
        // 201 requests of which 50 were accepted: 101 of 202 retries are rejected.
        record(THROTTLED, 102);
        assert!(gax.rejects_retry(u32::MAX / 2));
        assert!(!gax.rejects_retry(u32::MAX / 2 + 2));
    }

    /// Sends as many as it lets at `now`, and hears of the first of them after so long.
    fn in_flight<L: Limit + 'static>(limit: &InFlight<L>, now: u64) -> Vec<paceline::SendPermit> {
        core::iter::from_fn(|| limit.ask(now, &mut None).ok()).collect()
    }

    #[test]
    fn one_more_grows_when_it_is_used_up_and_halves_once_for_each_time() {
        let limit = InFlight::<OneMore>::new(|limit| limit.0 = (limit.0 / 2).max(1));
        for most in 1..=8 {
            let sent = in_flight(&limit, 0);
            assert_eq!(sent.len(), most);
            // The first finds it used up; the others do not.
            for permit in sent {
                limit.record(SECOND, permit, Reply::Done);
            }
        }
        let sent = in_flight(&limit, 2 * SECOND);
        for permit in sent {
            limit.record(3 * SECOND, permit, THROTTLED);
        }
        assert_eq!(limit.limit.get().most(), 4);
    }

    #[test]
    fn vegas_goes_by_what_the_trips_say_is_queued() {
        let mut vegas = Vegas::FIRST;
        let mut most = |trips: &[u64]| {
            for trip in trips {
                vegas.done(1, *trip);
            }
            vegas.most()
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
            let permit = freeze.ask(0, &mut None).expect("it is not frozen");
            freeze.record(SECOND, permit, reply);
        };
        (0..40).for_each(|_| hear(Reply::Done));
        (0..10).for_each(|_| hear(THROTTLED));
        hear(THROTTLED);
        assert_eq!(freeze.ask(SECOND, &mut None).err(), Some(4 * SECOND));
        assert!(freeze.ask(5 * SECOND, &mut None).is_ok());
    }
}
