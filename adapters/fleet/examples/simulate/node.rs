//! One member: requests that come evenly and wait, and the member's own code between them and the
//! engine.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use paceline::{SendPermit, Timestamp};

use crate::fault::EngineFault;
use crate::member::Member;
use crate::pool::{Pool, after, since};
use crate::settings::Settings;
use crate::wire::{Answer, Ask};

/// An ask under way: when the engine has it, and when its end is known.
#[derive(Debug)]
struct Asking {
    ask: Ask,
    asked: Timestamp,
    arrives: Timestamp,
    heard: Timestamp,
    result: Option<Result<Answer, EngineFault>>,
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) name: String,
    member: Member,
    pool: Pool,
    asking: Option<Asking>,
    /// Thousandths of a request per second.
    pub(crate) want: u64,
    carry: u64,
    waiting: u64,
    answers: VecDeque<(Timestamp, SendPermit, bool)>,
    /// Served after the warm-up; meaningless unless there from the beginning.
    pub(crate) served: u64,
    /// When its first request came, until that is sent.
    first: Option<Timestamp>,
    began: bool,
    pub(crate) replaced: bool,
}

/// One request, in the units of `carry`.
const REQUEST: u64 = 1_000_000_000_000;
/// A request that has waited for longer gives up, and another one comes.
const PATIENCE: Duration = Duration::from_millis(250);

impl Node {
    pub(crate) fn new(name: String, want: u64, settings: Settings, now: Timestamp) -> Self {
        Self {
            name,
            member: Member::new(settings, now),
            pool: Pool::new(),
            asking: None,
            want,
            carry: 0,
            waiting: 0,
            answers: VecDeque::new(),
            served: 0,
            first: None,
            began: false,
            replaced: false,
        }
    }

    /// Lets the requests of `span` come, and takes what was answered.
    pub(crate) fn pass(&mut self, now: Timestamp, span: Duration) {
        self.carry += self.want * u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let most = self.want * u64::try_from(PATIENCE.as_millis()).unwrap_or(0) / 1_000_000 + 1;
        if self.want > 0 {
            self.waiting = (self.waiting + self.carry / REQUEST).min(most);
        }
        self.carry %= REQUEST;
        if self.waiting > 0 && !self.began {
            (self.began, self.first) = (true, Some(now));
        }
        while let Some(&(due, permit, throttled)) = self.answers.front() {
            if due > now {
                break;
            }
            self.answers.pop_front();
            if throttled {
                self.pool.throttled(now, permit, Duration::ZERO);
            } else {
                self.pool.done(permit);
            }
        }
        if self.asking.as_ref().is_some_and(|ask| ask.heard <= now) {
            self.hear(now);
        }
        self.member.tick(now, &self.pool);
    }

    /// One more request comes.
    pub(crate) const fn comes(&mut self) {
        self.waiting += 1;
    }

    /// So many requests wait, whatever was sent.
    pub(crate) const fn waits_for(&mut self, requests: u64) {
        self.waiting = requests;
    }

    fn hear(&mut self, now: Timestamp) {
        let Some(Asking { asked, result, .. }) = self.asking.take() else {
            return;
        };
        match result.expect("it arrives before its end is known") {
            Ok(answer) => self.member.answered(now, asked, answer, &self.pool),
            Err(fault) => {
                if fault == EngineFault::Broken {
                    self.name.push('\'');
                }
                self.member.failed(now, fault, &self.pool);
            }
        }
    }

    /// Sends a waiting request, if it is let.
    pub(crate) fn send(&mut self, now: Timestamp) -> bool {
        let sent = self.waiting > 0 && self.pool.take(now, 1);
        self.waiting -= u64::from(sent);
        self.pool.waiting.store(self.waiting, Relaxed);
        sent
    }

    /// Returns how long its first request has waited, once.
    pub(crate) fn first(&mut self, now: Timestamp) -> Option<Duration> {
        Some(since(self.first.take()?, now))
    }

    /// Notes what the service will answer to a request of `now`, and when.
    pub(crate) fn answer(&mut self, now: Timestamp, due: Timestamp, throttled: bool) {
        let permit = SendPermit::sent_at(now);
        self.answers.push_back((due, permit, throttled));
    }

    /// Asks, if it is time to. `ways` says how long an ask is on its way there, and back.
    pub(crate) fn ask(&mut self, now: Timestamp, ways: impl FnOnce() -> [Duration; 2]) {
        if self.asking.is_none() && self.member.is_due(now, &self.pool) {
            let [there, back] = ways();
            let arrives = after(now, there);
            self.asking = Some(Asking {
                ask: self.member.ask(now, &self.pool),
                asked: now,
                arrives,
                heard: after(arrives, back),
                result: None,
            });
        }
    }

    /// Returns what it asked, if the engine has that by now and did not answer yet.
    pub(crate) fn arrived(&self, now: Timestamp) -> Option<Ask> {
        let asking = self.asking.as_ref()?;
        (asking.result.is_none() && asking.arrives <= now).then_some(asking.ask)
    }

    /// Notes how its ask ends, and if not by an answer, when.
    pub(crate) fn answered(
        &mut self,
        result: Result<Answer, EngineFault>,
        ends: Option<Timestamp>,
    ) {
        if let Some(asking) = &mut self.asking {
            asking.result = Some(result);
            asking.heard = ends.unwrap_or(asking.heard);
        }
    }

    /// Returns its last word.
    pub(crate) fn leave(&mut self, now: Timestamp) -> Ask {
        self.member.leave(now, &self.pool)
    }
}
