//! Batches of which the service takes a part: in each loop, and against a service that counts items.
#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::float_cmp,
    reason = "a test may overflow, and fail; whole numbers of tokens are exact"
)]

use core::time::Duration;

use crate::support::{Arc, Fixed, Hands, ms};
use paceline::{
    Adaptive, Clock, Failure, Outcome, Part, RetryAfter, RetryStrategyExt, SendRate, SendSet,
    Timestamp,
    backoff::SeededRandom,
    law::PacedSettings,
    operation::{Next, Reported, Verdict},
    strategy::Reports,
};

/// A table that takes so many items a second, and has as many saved up at first.
struct Table {
    each: Duration,
    left: u64,
    last: Timestamp,
    calls: u32,
    refused: u32,
    taken: u32,
}

impl Table {
    const fn new(each: Duration, burst: u64) -> Self {
        Self {
            each,
            left: burst,
            last: Timestamp::ZERO,
            calls: 0,
            refused: 0,
            taken: 0,
        }
    }

    /// Takes the first of `items`, and returns the others in their order.
    fn write(&mut self, now: Timestamp, items: &[u32]) -> Vec<u32> {
        let each = self.each.as_nanos() as u64;
        let minted = now.saturating_since(self.last).as_nanos() as u64 / each;
        self.last = self.last.saturating_add(self.each * minted as u32);
        self.left = (self.left + minted).min(1_000_000_000 / each);
        let taken = items.len().min(self.left as usize);
        self.left -= taken as u64;
        self.calls += 1;
        self.taken += taken as u32;
        self.refused += (items.len() - taken) as u32;
        items[taken..].to_vec()
    }
}

fn failure(left: &[u32], items: usize) -> Failure {
    Failure::partly_throttled(left.len() as u32, items as u32)
}

/// `BatchWriteItem` of 25 items, 40 times, at a table that takes 100 items a second: of the items at
/// most 6 % are refused, in 50 calls, within 9.6 s. None is lost, and none comes out of its turn.
#[test]
fn items_are_paced_and_refused_ones_alone_are_sent_again() {
    let hands = Arc::new(Hands::default());
    let strategy = Adaptive::builder()
        .paced(PacedSettings::new())
        .clock(hands.clone())
        .random(Arc::new(SeededRandom::new(7)))
        .build()
        .unwrap();
    let mut table = Table::new(ms(10), 100);
    let mut written = Vec::new();
    for batch in 0..40 {
        let mut left: Vec<u32> = (batch * 25..batch * 25 + 25).collect();
        let done = strategy
            .operation()
            .clock(&hands)
            .weight(25)
            .sleep_by(|span| hands.sleep(span))
            .run(|_| {
                hands.sleep(ms(20));
                let items = left.clone();
                left = table.write(hands.now(), &items);
                written.extend_from_slice(&items[..items.len() - left.len()]);
                if left.is_empty() {
                    return Ok(());
                }
                Err(failure(&left, items.len()))
            });
        done.unwrap();
    }
    assert!(written.iter().copied().eq(0..1_000), "each once, in order");
    let figures = (table.refused, table.calls, hands.elapsed());
    assert!(table.refused <= 60, "{figures:?}");
    assert!(table.calls <= 50, "{figures:?}");
    assert!(hands.elapsed() <= ms(9_600), "{figures:?}");
}

/// In a loop that is driven by hand the next attempt takes what the refused items take.
#[test]
fn the_next_attempt_weighs_what_was_refused() {
    let hands = Arc::new(Hands::default());
    let hundred = PacedSettings::fixed(100, Duration::from_secs(1)).unwrap();
    let hundred = hundred.to_builder().burst(Duration::from_secs(1)).build();
    let strategy = Adaptive::builder()
        .paced(hundred.unwrap())
        .clock(hands.clone())
        .random(Fixed::whole())
        .build()
        .unwrap();
    let available = || strategy.send_rate().snapshot(hands.now()).available;
    let mut attempts = strategy.operation().clock(&hands).weight(50).start();
    let full = available();
    assert!(matches!(attempts.next(&hands, None), Next::Send(_)));
    assert_eq!(full - available(), 50.0);
    let verdict = attempts.failed(&Failure::partly_throttled(7, 50), Reports::at(&hands));
    assert!(matches!(verdict, Ok(Verdict::Again(_))));
    attempts.slept();
    let before = available();
    assert!(matches!(attempts.next(&hands, None), Next::Send(_)));
    assert_eq!(before - available(), 7.0);
}

/// A service that takes some items of a batch, and returns the indices of the refused ones.
type Takes = fn(u32, usize) -> Vec<usize>;

/// By call: the first items; every other one; the last; none at first; the first and the last.
const SERVICES: [(&str, Takes); 5] = [
    ("a prefix", |_, items| (items.min(10)..items).collect()),
    ("every other", |_, items| (1..items).step_by(2).collect()),
    ("the last", |_, items| {
        (0..items.saturating_sub(9)).collect()
    }),
    ("none at first", |call, items| {
        if call == 1 {
            (0..items).collect()
        } else {
            Vec::new()
        }
    }),
    ("both ends", |_, items| {
        (1..items.saturating_sub(1)).step_by(3).collect()
    }),
];

/// A batch at one of the services: what is left, and what was sent.
struct Batch {
    takes: Takes,
    calls: u32,
    left: Vec<u32>,
    written: Vec<u32>,
    weights: Vec<usize>,
}

impl Batch {
    fn new(takes: Takes) -> Self {
        let (left, written, weights) = ((0..25).collect(), Vec::new(), Vec::new());
        Self {
            takes,
            calls: 0,
            left,
            written,
            weights,
        }
    }

    /// Sends what is left, in its order.
    fn send(&mut self) -> Result<(), Failure> {
        self.calls += 1;
        let items = self.left.len();
        self.weights.push(items);
        let refused = (self.takes)(self.calls, items);
        let sent = core::mem::take(&mut self.left);
        for (index, item) in sent.into_iter().enumerate() {
            let list = if refused.contains(&index) {
                &mut self.left
            } else {
                &mut self.written
            };
            list.push(item);
        }
        match self.left.len() {
            0 => Ok(()),
            left => Err(Failure::partly_throttled(left as u32, items as u32)),
        }
    }

    /// Each item was written once, the refused ones were sent again in their order, and each send
    /// took as many tokens as it had items.
    #[track_caller]
    fn check(&self, what: &str, strategy: &dyn Fn() -> u64) {
        assert!(self.left.is_empty() && self.calls > 1, "{what}");
        assert!(self.weights.is_sorted_by(|a, b| a >= b), "{what}");
        let mut written = self.written.clone();
        written.sort_unstable();
        assert!(written.into_iter().eq(0..25), "{what}: {:?}", self.written);
        let sent: usize = self.weights.iter().sum();
        assert_eq!(strategy(), sent as u64, "{what}: {:?}", self.weights);
    }
}

/// A strategy that counts the tokens it has handed out: no time passes in which one could come back.
fn counting(hands: &Arc<Hands>) -> (Adaptive, f64) {
    let settings = PacedSettings::fixed(10, Duration::from_secs(1)).unwrap();
    let settings = settings.to_builder().burst(Duration::from_secs(10));
    let builder = Adaptive::builder().paced(settings.build().unwrap());
    let strategy = builder
        .clock(hands.clone())
        .random(Arc::new(Fixed(0)))
        .max_attempts(99)
        .build()
        .unwrap();
    let full = strategy.send_rate().snapshot(hands.now()).available;
    (strategy, full)
}

/// Each loop with each kind of service.
#[test]
fn every_loop_sends_the_refused_items_alone() {
    type Loop = fn(&Adaptive, &Arc<Hands>, &mut Batch);
    let loops: [(&str, Loop); 4] = [
        ("run", |strategy, hands, batch| {
            let operation = strategy.operation().clock(hands).weight(25);
            let operation = operation.sleep_by(|span| hands.sleep(span));
            operation.run(|_| batch.send()).unwrap();
        }),
        ("run_with", |strategy, hands, batch| {
            let operation = strategy.operation().clock(hands).weight(25);
            let operation = operation.sleep_by(|span| hands.sleep(span));
            let classify = |(failure, _): &(Failure, &str)| *failure;
            let mut send = || batch.send().map_err(|failure| (failure, "of the host"));
            operation.run_with(classify, |_| send()).unwrap();
        }),
        ("reporting", |strategy, hands, batch| {
            let operation = strategy.operation().clock(hands).weight(25).reporting();
            let operation = operation.sleep_by(|span| hands.sleep(span));
            let mut send = || batch.send().map(Reported::from).map_err(Reported::from);
            operation.run(|_| send()).unwrap();
        }),
        ("by hand", |strategy, hands, batch| {
            let mut attempts = strategy.operation().clock(hands).weight(25).start();
            loop {
                match attempts.next(hands, None) {
                    Next::Send(_) => {}
                    Next::Sleep(rest) | Next::InLine(rest) => {
                        hands.sleep(rest.span());
                        continue;
                    }
                    next => panic!("{next:?}"),
                }
                match batch.send() {
                    Ok(()) => break attempts.succeeded(Reports::at(hands)).unwrap(),
                    Err(failure) => drop(attempts.failed(&failure, Reports::at(hands))),
                }
            }
        }),
    ];
    for (service, takes) in SERVICES {
        for (name, run) in loops {
            let hands = Arc::new(Hands::default());
            let (strategy, full) = counting(&hands);
            let mut batch = Batch::new(takes);
            run(&strategy, &hands, &mut batch);
            batch.check(&format!("{name}, {service}"), &|| {
                let snapshot = strategy.send_rate().snapshot(hands.now());
                (full - snapshot.available).round() as u64
            });
        }
    }
}

#[cfg(feature = "tokio")]
#[tokio::test(start_paused = true)]
async fn every_task_sends_the_refused_items_alone() {
    for (service, takes) in SERVICES {
        let hands = Arc::new(Hands::default());
        let (strategy, full) = counting(&hands);
        let mut batch = Batch::new(takes);
        let operation = strategy.operation().weight(25);
        let done = operation
            .run_async(|_| core::future::ready(batch.send()))
            .await;
        done.unwrap();
        batch.check(service, &|| {
            let snapshot = strategy.send_rate().snapshot(hands.now());
            (full - snapshot.available).round() as u64
        });
    }
}

/// Of a set the limit that is blamed counts its part, and the other counts the request as done.
#[test]
fn a_part_counts_at_each_limit_by_its_own_weight() {
    let settings = PacedSettings::new();
    let rates = [(); 2].map(|()| Arc::new(SendRate::paced(settings, Timestamp::ZERO)));
    let set = SendSet::new(rates.clone());
    let permit = set.try_acquire(Timestamp::ZERO, &[1, 25]).unwrap();
    let second = Timestamp::from_nanos(1_000_000_000);
    set.record_by(second, &permit, Part::outcome(5, 25), &[1]);
    let [calls, items] = rates.map(|rate| rate.snapshot(second).enabled);
    assert!(!calls && items);
    assert_eq!(
        Outcome::from(&Failure::partly_throttled(5, 25)),
        Part::outcome(5, 25)
    );
    assert!(Failure::partly_throttled(25, 25).part().is_none());
}

/// A success that asks for a pause: requests behind it wait, and the rate is not cut.
#[test]
fn a_success_may_ask_for_a_pause() {
    let hands = Arc::new(Hands::default());
    let strategy = Adaptive::builder()
        .paced(PacedSettings::new())
        .clock(hands.clone())
        .build()
        .unwrap();
    let run = |pause: Option<Duration>| {
        let operation = strategy.operation().clock(&hands).reporting();
        let done = operation.sleep_by(|span| hands.sleep(span)).run(|_| {
            let began = hands.elapsed();
            hands.sleep(ms(10));
            let answer = Reported::from(began);
            Ok::<_, Reported<Failure>>(match pause {
                Some(span) => answer.retry_after(RetryAfter::AtLeast(span)),
                None => answer,
            })
        });
        done.unwrap()
    };
    for _ in 0..100 {
        run(None);
    }
    assert_eq!(run(Some(ms(2_000))), ms(1_000));
    // The bucket is empty then: one token comes in 12 ms at the 80 a second of before.
    let [after, next] = [run(None), run(None)];
    assert!((ms(3_010)..ms(3_024)).contains(&after), "{after:?}");
    assert!(
        (after..after + ms(24)).contains(&next),
        "no slower: {next:?}"
    );
}
