//! throttle-net 2.0.0 (<https://crates.io/crates/throttle-net>), `tests/retry.rs`: a herd that is
//! refused. There its retries are scattered; here it is also said when they end.

use paceline::{
    Adaptive, ControlLaw, Failure, RetryStrategy, backoff::SeededRandom, law::PacedSettings,
};

use crate::play::{Answer, Client, Load, MILLI, SECOND, Service};
use crate::support::{Arc, Hands};

/// It refuses all until then, and answers after 50 ms.
struct Refuses {
    until: u64,
    sends: usize,
}

impl Service for Refuses {
    fn answer(&mut self, now: u64, _: usize) -> Answer {
        self.sends += 1;
        let is_refused = now < self.until;
        let answer = if is_refused {
            Err(Failure::throttling())
        } else {
            Ok(())
        };
        (Some(50 * MILLI), answer)
    }

    fn answered(&mut self, _: usize) {}
}

/// Plays so many operations that begin at once. Returns the requests, the operations that were
/// done, those whose retry the quota refused, and when the last one ended, in milliseconds.
fn play(paced: bool, operations: usize, until: u64) -> (usize, usize, u64, u64) {
    let hands = Arc::new(Hands::default());
    let builder = Adaptive::builder().random(Arc::new(SeededRandom::new(7)));
    let builder = if paced {
        builder.paced(PacedSettings::new())
    } else {
        builder.law(ControlLaw::Aws)
    };
    let strategy = builder.clock(hands.clone()).build().expect("in range");
    let workers = operations;
    let load = Load::Closed {
        workers,
        operations,
    };
    let mut service = Refuses { until, sends: 0 };
    let played = Client::new(&strategy, &hands).play(load, &mut service);
    let done = played.iter().filter(|one| one.succeeded).count();
    let last = played.iter().map(|one| one.ended / MILLI).max();
    let refused = strategy.snapshot().counts.refused_quota;
    (service.sends, done, refused, last.expect("there are some"))
}

// tests/retry.rs: a herd is scattered. A quota of 500 pays a hundred retries, however many fail; of
// a service that lets nothing through the law of windows sends one in a 32nd of the time at last,
// and the published one in 2 s.
#[test]
fn a_herd_that_is_refused_for_good_ends_with_its_quota() {
    for operations in [1_000, 10_000] {
        let refused = operations as u64;
        let sends = operations + 100;
        let paced = play(true, operations, u64::MAX);
        assert_eq!(paced, (sends, 0, refused, 23_536_019));
        let published = play(false, operations, u64::MAX);
        assert_eq!(published, (sends, 0, refused, 200_099));
    }
}

#[test]
fn a_herd_that_is_refused_for_a_second_is_back_in_seconds() {
    assert_eq!(play(true, 10_000, SECOND), (10_100, 98, 9_902, 8_566));
    assert_eq!(play(false, 10_000, SECOND), (10_100, 100, 9_900, 5_757));
}
