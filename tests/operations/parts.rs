//! Batches of which the service takes a part: in each loop, and against a service that counts items.
#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::float_cmp,
    reason = "a test may overflow, and fail; whole numbers of tokens are exact"
)]

use core::time::Duration;

use crate::support::{Arc, Fixed, Hands, ms};
use paceline::{
    Adaptive, Clock, Failure, Outcome, Part, RetryAfter, RetryStrategy, RetryStrategyExt, SendRate,
    SendSet, Standard, Timestamp,
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

/// Whatever is refused in part is retried by every strategy, and costs as a throttle does.
#[test]
fn each_strategy_retries_a_part() {
    let (standard, adaptive) = (Standard::new(), Adaptive::paced());
    let strategies: [&dyn RetryStrategy; 2] = [&standard, &adaptive];
    for strategy in strategies {
        let hands = Arc::new(Hands::default());
        let mut left = 25_u32;
        let done = strategy
            .operation()
            .clock(&hands)
            .sleep_by(|span| hands.sleep(span))
            .run(|_| {
                let items = left;
                left = left.saturating_sub(20);
                match left {
                    0 => Ok(()),
                    _ => Err(Failure::partly_throttled(left, items)),
                }
            });
        assert!(done.is_ok() && left == 0, "{strategy:?}");
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
