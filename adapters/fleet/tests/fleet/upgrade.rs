//! An upgrade: members with two versions of the script at work on one engine.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use paceline_fleet::{Away, Budget, Fleet, Standing};

use crate::rig::engine::Engine;
use crate::rig::record::{Arrival, Record, number};
use crate::scene::alone;
use crate::step::{ASK, Step, later};

const ALLOWANCE: f64 = 1_000.0;
/// What the engine keeps, and what all hold together: a lease, and a token for each of four.
const BOUND: f64 = 100.0 + 200.0 + 4.0;

/// What all have sent.
#[derive(Debug)]
struct Sent {
    began: Instant,
    record: Mutex<Record>,
}

impl Sent {
    fn add(&self, member: u8, tokens: usize) {
        let seen = Arrival {
            at: self.began.elapsed(),
            member,
            throttled: false,
        };
        let mut record = self.record.lock().expect("no thread panics with it");
        record.0.extend((0..tokens).map(|_| seen));
    }

    /// Returns what this version, which has the members 0 and 1, and the later one sent in the last
    /// two seconds, as parts of the allowance.
    fn last(&self) -> (f64, f64) {
        let (now, span) = (self.began.elapsed(), Duration::from_secs(2));
        let record = self.record.lock().expect("no thread panics with it");
        let last = record.within(now.saturating_sub(span), now);
        let (old, new): (Vec<Arrival>, Vec<Arrival>) =
            last.0.iter().partition(|seen| seen.member < 2);
        let part = |sent: usize| number(sent) / ALLOWANCE / span.as_secs_f64();
        (part(old.len()), part(new.len()))
    }

    /// Waits, for four seconds at least and half a minute at most, until `enough` says so of what
    /// was sent last, and returns that.
    async fn until(&self, enough: impl Fn((f64, f64)) -> bool) -> (f64, f64) {
        tokio::time::sleep(Duration::from_secs(4)).await;
        for _ in 0..104 {
            let last = self.last();
            if enough(last) {
                return last;
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        panic!("{:?} of the allowance", self.last());
    }
}

/// A member of this version, which sends all it gets.
fn join(engine: &Engine, member: u8, sent: &Arc<Sent>) -> (Budget, tokio::task::JoinHandle<()>) {
    let fleet = Fleet::open(&engine.address()).unwrap();
    let scope = fleet.scope("upgrade", 1_000, Duration::from_secs(1));
    let budget = scope.unwrap().when_away(Away::Closed).join().unwrap();
    let (spends, sent) = (budget.clone(), Arc::clone(sent));
    let worker = tokio::spawn(async move {
        loop {
            let _permit = spends.acquire().await;
            sent.add(member, 1);
        }
    });
    (budget, worker)
}

/// A member of the later version, which asks twenty times a second, and sends all it gets at once.
#[derive(Debug)]
struct Later {
    ends: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<()>,
}

impl Later {
    fn join(engine: &Engine, name: &'static str, member: u8, sent: &Arc<Sent>) -> Self {
        let client = redis::Client::open(engine.address()).expect("an address");
        let ends = Arc::new(AtomicBool::new(false));
        let (ended, sent) = (Arc::clone(&ends), Arc::clone(sent));
        let thread = std::thread::spawn(move || {
            let mut connection = client.get_connection().expect("the server answers");
            let script = redis::Script::new(&later());
            let mut step = Step {
                member: name,
                seq: 0,
                ..ASK
            };
            while step.leave == 0 {
                step.seq += 1;
                step.leave = u8::from(ended.load(Relaxed));
                let mut call = script.key("paceline:send:v1:{upgrade}");
                let call = call.arg(step.member).arg(step.words());
                let answer: Vec<i64> = call.invoke(&mut connection).expect("the step is taken");
                step.spent = u64::try_from(answer[0]).expect("no grant is negative");
                sent.add(member, usize::try_from(step.spent).expect("few"));
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        Self { ends, thread }
    }

    fn leave(self) {
        self.ends.store(true, Relaxed);
        self.thread.join().expect("it took its steps");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_under_way_uses_the_allowance_and_keeps_the_bound() {
    let _alone = alone();
    let Some(engine) = Engine::start(&[]) else {
        return;
    };
    let sent = Arc::new(Sent {
        began: Instant::now(),
        record: Mutex::new(Record::default()),
    });
    let olds = [0, 1].map(|member| join(&engine, member, &sent));
    let before = sent.until(|(old, _)| old >= 0.95).await;
    let news = [("x", 2), ("y", 3)].map(|(name, member)| Later::join(&engine, name, member, &sent));
    let fair = |(old, new): (f64, f64)| old + new >= 0.95 && old.min(new) >= 0.4;
    let both = sent.until(fair).await;
    let standings = olds.each_ref().map(|(budget, _)| budget.snapshot());
    for (budget, worker) in olds {
        worker.abort();
        let _ended = worker.await;
        drop(budget);
    }
    let after = sent.until(|(_, new)| new >= 0.95).await;
    // And the way back.
    let (budget, worker) = join(&engine, 0, &sent);
    tokio::time::sleep(Duration::from_secs(1)).await;
    for new in news {
        new.leave();
    }
    let back = sent.until(|(old, _)| old >= 0.95).await;
    let faults = budget.snapshot().faults;
    worker.abort();
    println!(
        "upgrade: of the allowance, this version and a later one sent {before:.2?}, {both:.2?}, {after:.2?}, {back:.2?}"
    );
    let excess = sent.record.lock().unwrap().excess(ALLOWANCE);
    println!(
        "upgrade: at most {excess:.0} above the allowance in any window, of {BOUND:.0} allowed"
    );
    for shown in standings {
        assert_eq!((shown.standing, shown.faults), (Standing::Leased, 0));
    }
    assert_eq!(faults, 0);
    assert!(excess <= BOUND, "{excess} above the allowance");
}
