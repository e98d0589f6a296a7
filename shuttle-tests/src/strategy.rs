//! The whole adaptive strategy under four threads, with a clock that they move.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use core::time::Duration;

use paceline::{
    Adaptive, Clock, Failure, RetryStrategy, RetryToken, Timestamp,
    backoff::Random,
    strategy::{NotAdmitted, Reports, SendRequest, SendTurn},
};

use crate::{explore, on_threads};

/// A clock that moves when a thread waits. Its word is not shuttle's: no thread is switched out at
/// it.
#[derive(Debug, Default)]
struct Hands(AtomicU64);

impl Hands {
    fn wait(&self, since: Timestamp, span: Duration) {
        let until = since.checked_add(span).expect("within the range");
        self.0.fetch_max(until.as_nanos(), Relaxed);
    }
}

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.load(Relaxed))
    }
}

#[derive(Debug)]
struct NoJitter;

impl Random for NoJitter {
    fn next_u64(&self) -> u64 {
        u64::MAX
    }
}

struct Scene {
    strategy: Adaptive,
    hands: Arc<Hands>,
}

impl Scene {
    fn new() -> Self {
        let hands = Arc::new(Hands::default());
        let builder = Adaptive::builder()
            .law(paceline::ControlLaw::Aws)
            .clock(Arc::clone(&hands) as Arc<dyn Clock>);
        let builder = builder.random(Arc::new(NoJitter)).max_attempts(2);
        let strategy = builder.build().expect("the settings are valid");
        drop(strategy.quota().try_acquire(200)); // room for what successes pay in
        Self { strategy, hands }
    }

    /// Waits for a turn, after another one that is given up if `fickle`.
    fn take_turn(&self, fickle: bool) {
        let claim = |turn: &mut SendTurn| self.strategy.admit(turn, SendRequest::new());
        if fickle {
            let mut given_up = SendTurn::new();
            let _ = claim(&mut given_up);
        }
        let mut turn = SendTurn::new();
        for _ in 0..100 {
            let now = self.hands.now();
            match claim(&mut turn) {
                Ok(_permit) => return,
                Err(NotAdmitted::Wait { wait, .. }) => self.hands.wait(now, wait),
                Err(refused) => panic!("{refused}"),
            }
        }
        panic!("no turn after 100 waits");
    }

    /// Runs an operation whose first sends fail by `failures`; returns what it adds to the quota.
    fn run(&self, failures: &[Failure], fickle: bool) -> i64 {
        let mut token: RetryToken = self.strategy.acquire_initial_token(None).expect("a token");
        let mut paid = 0;
        for failure in failures {
            self.take_turn(fickle);
            match self
                .strategy
                .refresh_retry_token(token, failure, Reports::new())
            {
                Ok(next) => token = next,
                Err(_out_of_attempts) => return -paid,
            }
            // What a retry costs in generation 2.1.
            paid += if failure.is_throttle() { 5 } else { 14 };
        }
        self.take_turn(fickle);
        self.strategy
            .record_success(token, Reports::new())
            .expect("its own token");
        i64::from(failures.is_empty())
    }
}

/// Whatever four threads run, the quota adds up, every turn comes, and the line is empty in the
/// end.
#[test]
fn operations_of_four_threads_add_up() {
    const THROTTLED: Failure = Failure::throttling();
    const FAILED: Failure = Failure::transient();
    explore(500, || {
        let scene = Arc::new(Scene::new());
        let before = i64::from(scene.strategy.quota().available());
        let gains = on_threads(4, &scene, |scene, thread| {
            let mut gain = scene.run(&[], false);
            gain += match thread {
                0 => scene.run(&[THROTTLED], true),
                1 => scene.run(&[FAILED, THROTTLED], false),
                2 => scene.run(&[FAILED], true),
                _ => scene.run(&[], true),
            };
            gain + scene.run(&[], thread % 2 == 0)
        });
        let sum = before + gains.iter().sum::<i64>();
        assert_eq!(
            i64::from(scene.strategy.quota().available()),
            sum,
            "nothing is lost"
        );

        // All turns were used or given up: after a while, the bucket is full.
        scene
            .hands
            .wait(scene.hands.now(), Duration::from_secs(100));
        let seen = scene.strategy.send_rate().snapshot(scene.hands.now());
        assert!(seen.enabled, "there were throttles");
        assert!(
            (seen.available - seen.capacity).abs() < 1e-6,
            "the line is empty again: {seen:?}"
        );
    });
}
