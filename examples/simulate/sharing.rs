//! Limiters that others have published for limits a minute, restated from their rules.

#![expect(
    clippy::float_arithmetic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "their rules are in floating point"
)]

use alloc::rc::Rc;
use core::cell::RefCell;

use paceline::{SendPermit, Timestamp, law::LimitReports};

use crate::limiter::{Limiter, Reply, Retry, Seat, Want};
use crate::time::SECOND;

fn sent(now: u64) -> SendPermit {
    SendPermit::sent_at(Timestamp::from_nanos(now))
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / SECOND as f64
}

/// A token bucket in floating point.
#[derive(Debug)]
struct Bucket {
    rate: f64,
    most: f64,
    tokens: f64,
    filled: u64,
}

impl Bucket {
    fn take(&mut self, now: u64) -> Result<(), u64> {
        let passed = seconds(now - core::mem::replace(&mut self.filled, now));
        self.tokens = (self.tokens + self.rate * passed).min(self.most);
        if self.tokens < 1.0 {
            return Err(((1.0 - self.tokens) / self.rate * SECOND as f64) as u64 + 1);
        }
        self.tokens -= 1.0;
        Ok(())
    }
}

/// Two decimals, as these clients keep their rates.
fn hundredths(rate: f64) -> f64 {
    (rate * 100.0).round() / 100.0
}

/// ATB ([arXiv 2510.04516](https://arxiv.org/abs/2510.04516)): a bucket of 40 that starts with one
/// token, at 40 a minute. A success raises its rate by a fifth, a refusal halves it and empties it.
#[derive(Debug)]
pub(crate) struct Atb(RefCell<Bucket>);

impl Default for Atb {
    fn default() -> Self {
        let rate = hundredths(40.0 / 60.0);
        Self(RefCell::new(Bucket {
            rate,
            most: 40.0,
            tokens: 1.0,
            filled: 0,
        }))
    }
}

impl Limiter for Atb {
    fn ask(&self, now: u64, _: Want, _: &mut Seat<'_>) -> Result<SendPermit, u64> {
        self.0.borrow_mut().take(now).map(|()| sent(now))
    }

    fn record(&self, _: u64, _: SendPermit, reply: Reply, _: &LimitReports) {
        let it = &mut *self.0.borrow_mut();
        match reply {
            Reply::Done => it.rate = hundredths(it.rate * 1.2).max(it.rate + 0.01),
            Reply::Throttled(_) => {
                it.rate = hundredths(it.rate / 2.0).max(0.01);
                it.tokens = 0.0;
            }
            Reply::Failed => {}
        }
    }

    fn retry(&self) -> Retry {
        Retry::AtOnce
    }
}

/// What the clients of AATB tell each other through a server, and the rate of the service that it
/// is told.
#[derive(Debug)]
pub(crate) struct Telemetry {
    /// Requests and the time of the last report, of each client.
    reports: Vec<(f64, u64)>,
    throttles: Vec<u64>,
}

impl Telemetry {
    const WINDOW: u64 = 30 * SECOND;
    /// A second; told, twice what the service allows.
    const SERVICE: f64 = 80.0 / 60.0;

    pub(crate) fn new(clients: u32) -> Rc<RefCell<Self>> {
        let reports = vec![(0.0, 0); clients as usize];
        Rc::new(RefCell::new(Self {
            reports,
            throttles: Vec::new(),
        }))
    }

    /// Returns what was sent in all, by how many clients, and the throttles of the last window.
    fn look(&mut self, now: u64) -> (f64, f64, f64) {
        self.throttles.retain(|at| at + Self::WINDOW > now);
        let active = self
            .reports
            .iter()
            .filter(|(_, at)| *at + 2 * Self::WINDOW > now && *at > 0);
        let (sum, count) = active.fold((0.0, 0.0), |(sum, count), (sent, _)| {
            (sum + sent, count + 1.0)
        });
        (sum, count, self.throttles.len() as f64)
    }
}

/// AATB, from the same paper: ATB whose clients tell each other what they send and are refused.
#[derive(Debug)]
pub(crate) struct Aatb {
    client: usize,
    all: Rc<RefCell<Telemetry>>,
    it: RefCell<Told>,
}

#[derive(Debug)]
struct Told {
    bucket: Bucket,
    sent: f64,
    reported: u64,
    raised: u64,
    /// Nothing is sent before.
    until: u64,
    rng: fastrand::Rng,
}

impl Aatb {
    pub(crate) fn new(client: usize, all: Rc<RefCell<Telemetry>>) -> Self {
        let rate = hundredths(40.0 / 60.0);
        let bucket = Bucket {
            rate,
            most: 40.0,
            tokens: 1.0,
            filled: 0,
        };
        let rng = fastrand::Rng::with_seed(client as u64);
        let it = Told {
            bucket,
            sent: 0.0,
            reported: 0,
            raised: 0,
            until: 0,
            rng,
        };
        Self {
            client,
            all,
            it: RefCell::new(it),
        }
    }
}

impl Limiter for Aatb {
    fn ask(&self, now: u64, _: Want, _: &mut Seat<'_>) -> Result<SendPermit, u64> {
        let it = &mut *self.it.borrow_mut();
        if now >= it.reported + Telemetry::WINDOW {
            self.all.borrow_mut().reports[self.client] = (core::mem::take(&mut it.sent), now);
            it.reported = now;
        }
        if now < it.until {
            return Err(it.until - now);
        }
        it.bucket.take(now)?;
        it.sent += 1.0;
        Ok(sent(now))
    }

    fn record(&self, now: u64, _: SendPermit, reply: Reply, _: &LimitReports) {
        let it = &mut *self.it.borrow_mut();
        let mut all = self.all.borrow_mut();
        let (sum, count, _) = all.look(now);
        let (mean, own) = (sum / count.max(1.0), all.reports[self.client].0);
        if matches!(reply, Reply::Throttled(_)) {
            all.throttles.push(now);
            let (_, _, throttles) = all.look(now);
            let part = if own < 0.5 * mean { 2.0 } else { 3.0 };
            it.bucket.rate = hundredths(it.bucket.rate / part).max(0.01);
            it.bucket.tokens = 0.0;
            let wait = (throttles + 1.0) / Telemetry::SERVICE + it.rng.f64();
            it.until = now + (wait * SECOND as f64) as u64;
            return;
        }
        let (_, _, throttles) = all.look(now);
        if reply == Reply::Done && throttles == 0.0 && now >= it.raised + Telemetry::WINDOW {
            let factor = if own < 0.75 * mean || count <= 1.0 {
                1.4
            } else {
                1.2
            };
            it.bucket.rate = hundredths(it.bucket.rate * factor).max(it.bucket.rate + 0.01);
            it.raised = now;
        }
    }

    fn retry(&self) -> Retry {
        Retry::AtOnce
    }
}

/// Effect 4.1's `HttpClient.withRateLimiter`: a throttle with a hint begins a pause, what is
/// accepted after it is counted, and the next such throttle makes a limit and a window of the count.
/// A throttle forgets them.
#[derive(Debug, Default)]
pub(crate) struct Learner(RefCell<Phase>);

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Phase {
    #[default]
    Unknown,
    /// Nothing is sent before.
    Pause(u64),
    /// So many were accepted since.
    Counting(u64, u64),
    /// So many in a window of so many nanoseconds; used, since.
    Learnt(u64, u64, u64, u64),
}

impl Limiter for Learner {
    fn ask(&self, now: u64, _: Want, _: &mut Seat<'_>) -> Result<SendPermit, u64> {
        let it = &mut *self.0.borrow_mut();
        match *it {
            Phase::Pause(until) if now < until => return Err(until - now),
            Phase::Pause(until) => *it = Phase::Counting(0, until),
            Phase::Learnt(limit, window, _, begun) if now >= begun + window => {
                *it = Phase::Learnt(limit, window, 1, now);
            }
            Phase::Learnt(limit, window, used, begun) if used >= limit => {
                return Err(begun + window - now);
            }
            Phase::Learnt(limit, window, used, begun) => {
                *it = Phase::Learnt(limit, window, used + 1, begun);
            }
            Phase::Unknown | Phase::Counting(..) => {}
        }
        Ok(sent(now))
    }

    fn record(&self, now: u64, permit: SendPermit, reply: Reply, _: &LimitReports) {
        let it = &mut *self.0.borrow_mut();
        let old = |since| permit.time().as_nanos() < since;
        *it = match (*it, reply) {
            // Answers to what was sent in an earlier phase are stale.
            (Phase::Counting(_, since) | Phase::Learnt(_, _, _, since), _) if old(since) => return,
            (Phase::Counting(count, since), Reply::Done) => Phase::Counting(count + 1, since),
            (Phase::Counting(count, since), Reply::Throttled(Some(hint))) if count > 0 => {
                Phase::Learnt(count, now - since + hint, count, since)
            }
            (
                Phase::Unknown | Phase::Counting(..) | Phase::Learnt(..),
                Reply::Throttled(Some(hint)),
            ) => Phase::Pause(now + hint),
            (phase, _) => phase,
        };
    }
}

/// Nall.RateLimiting.Adaptive ([its page](https://nikiforovall.blog/adaptive-rate-limiting-dotnet)):
/// a refusal takes three tenths of the rate, and each ten seconds with a request in line add 120 a
/// minute. It begins at 3,000 a minute, as its race does.
#[derive(Debug)]
pub(crate) struct Nall(RefCell<Race>);

#[derive(Debug)]
struct Race {
    bucket: Bucket,
    waited: bool,
    looked: u64,
    cut: u64,
}

impl Default for Nall {
    fn default() -> Self {
        let bucket = Bucket {
            rate: 50.0,
            most: 1.0,
            tokens: 1.0,
            filled: 0,
        };
        Self(RefCell::new(Race {
            bucket,
            waited: false,
            looked: 0,
            cut: 0,
        }))
    }
}

impl Limiter for Nall {
    fn ask(&self, now: u64, _: Want, _: &mut Seat<'_>) -> Result<SendPermit, u64> {
        let it = &mut *self.0.borrow_mut();
        if now >= it.looked + 10 * SECOND {
            it.looked = now;
            if core::mem::take(&mut it.waited) {
                it.bucket.rate += 2.0;
            }
        }
        let answer = it.bucket.take(now);
        it.waited |= answer.is_err();
        answer.map(|()| sent(now))
    }

    fn record(&self, now: u64, permit: SendPermit, reply: Reply, _: &LimitReports) {
        let it = &mut *self.0.borrow_mut();
        // What was sent before the last cut says nothing of the rate since.
        if matches!(reply, Reply::Throttled(_)) && permit.time().as_nanos() >= it.cut {
            it.bucket.rate = (it.bucket.rate * 0.7).max(1.0 / 60.0);
            it.cut = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Aatb, Atb, Learner, Nall, Telemetry};
    use crate::limiter::{Limiter, Reply, Seat, Want};
    use crate::time::SECOND;
    use alloc::rc::Rc;
    use paceline::{Class, law::LimitReports};

    const THROTTLED: Reply = Reply::Throttled(None);

    fn ask(limiter: &impl Limiter, now: u64) -> Result<(), u64> {
        let want = Want {
            weight: 1,
            class: Class::Foreground,
        };
        limiter.ask(now, want, &mut Seat::default()).map(drop)
    }

    fn hear(limiter: &impl Limiter, now: u64, reply: Reply) {
        limiter.record(now, super::sent(now), reply, &LimitReports::new());
    }

    #[test]
    fn atb_raises_by_a_fifth_and_halves_down_to_one_in_a_hundred_seconds() {
        let atb = Atb::default();
        let mut rates = Vec::new();
        for (reply, times) in [(Reply::Done, 2), (THROTTLED, 7), (Reply::Done, 2)] {
            for _ in 0..times {
                hear(&atb, 0, reply);
                rates.push((atb.0.borrow().rate * 100.0).round() as u64);
            }
        }
        assert_eq!(rates, [80, 96, 48, 24, 12, 6, 3, 2, 1, 2, 3]);
        // It was emptied: at 0.03/s a token takes 33.3 s.
        assert_eq!(ask(&atb, 0).map_err(|wait| wait / SECOND), Err(33));
    }

    #[test]
    fn aatb_waits_for_all_who_were_refused_and_rises_once_a_window() {
        let all = Telemetry::new(2);
        let [one, two] = [0, 1].map(|client| Aatb::new(client, Rc::clone(&all)));
        let rate = |of: &Aatb| (of.it.borrow().bucket.rate * 100.0).round() as u64;
        let at = |seconds: u64| seconds * SECOND;
        assert_eq!(ask(&one, at(40)), Ok(()));
        // It is the only client that is active: 0.67 · 1.4, and not again within 30 s.
        hear(&one, at(40), Reply::Done);
        hear(&one, at(41), Reply::Done);
        assert_eq!(rate(&one), 94);
        // A third, until (1 + 1)/1.33 s and up to a second more have passed.
        hear(&one, at(42), THROTTLED);
        assert_eq!(rate(&one), 31);
        let wait = ask(&one, at(42)).expect_err("it waits");
        assert!((SECOND * 3 / 2..SECOND * 5 / 2).contains(&wait), "{wait}");
        assert_eq!(ask(&two, at(60)), Ok(()));
        // The other rises not while refusals are reported.
        hear(&two, at(71), Reply::Done);
        assert_eq!(rate(&two), 67);
        hear(&two, at(72), Reply::Done);
        assert_eq!(rate(&two), 80);
    }

    #[test]
    fn effect_learns_a_limit_and_a_window_from_two_hints_and_forgets_them_at_the_next() {
        let effect = Learner::default();
        let at = |seconds: u64| seconds * SECOND;
        let hint = |seconds| Reply::Throttled(Some(at(seconds)));
        hear(&effect, at(50), hint(10));
        assert_eq!(ask(&effect, at(50)), Err(at(10)));
        for second in 60..63 {
            assert_eq!(ask(&effect, at(second)), Ok(()));
            hear(&effect, at(second), Reply::Done);
        }
        // Three in the 5 s since 60 s and the 55 s of the hint.
        hear(&effect, at(65), hint(55));
        assert_eq!(ask(&effect, at(65)), Err(at(55)));
        let sent = |second| (0..9).filter(|_| ask(&effect, at(second)).is_ok()).count();
        assert_eq!([119, 120, 179, 180].map(sent), [0, 3, 0, 3]);
        hear(&effect, at(181), hint(7));
        assert_eq!(ask(&effect, at(181)), Err(at(7)));
    }

    #[test]
    fn nall_takes_three_tenths_and_adds_two_a_second_where_somebody_waited() {
        let nall = Nall::default();
        let rate = || (nall.0.borrow().bucket.rate * 100.0).round() as u64;
        assert_eq!(ask(&nall, 0), Ok(()));
        hear(&nall, SECOND, THROTTLED);
        assert_eq!(rate(), 3_500);
        // Sent before the cut.
        nall.record(SECOND, super::sent(0), THROTTLED, &LimitReports::new());
        assert_eq!(rate(), 3_500);
        let asks = [10, 10, 20, 30].map(|second| ask(&nall, second * SECOND).is_ok());
        assert_eq!((asks, rate()), ([true, false, true, true], 3_700));
    }
}
