//! vectordotdev/vector, `tests/data/adaptive-concurrency/*.yaml` with
//! `src/sinks/util/adaptive_concurrency/tests.rs`: services by what they do as more is in flight.
//!
//! The numbers are theirs. Their bands are of a limit on requests in flight that goes by the time
//! that answers take, which paceline does not have. Here 64 workers send all requests, and the best
//! fixed number in flight is the ruler.
//!
//! Not played: `fixed-concurrency-*` is the ruler, `slow-send-*` and `medium-send` send less than
//! the service takes, and `retried-request-rtt` measures a round trip that decides nothing here.

use alloc::collections::{BinaryHeap, VecDeque};
use core::{cmp::Reverse, fmt::Write, time::Duration};

use paceline::{Adaptive, Failure, backoff::SeededRandom, law::PacedSettings};

use crate::play::{Answer, Client, Load, Played, SECOND, Service};
use crate::support::{Arc, Hands};

/// What happens to a request beyond the limit.
#[derive(Clone, Copy, Debug)]
enum Action {
    /// It is refused, after the usual time.
    Defer,
    /// It is never answered.
    Drop,
}

/// A service, in thousandths. Times are in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Scene {
    file: &'static str,
    requests: usize,
    delay: u64,
    /// How much longer each request takes for each other one in flight.
    scale: f64,
    /// From how many in flight the time grows by this factor for each one.
    knee: Option<(u32, f64)>,
    jitter: f64,
    /// How many may be in flight, and what happens to more.
    concurrency: Option<(usize, Action)>,
    /// How many may come within a second; more are refused.
    rate: Option<usize>,
}

const PLAIN: Scene = Scene {
    file: "constant-link",
    requests: 500,
    delay: 100,
    scale: 0.0,
    knee: None,
    jitter: 0.0,
    concurrency: None,
    rate: None,
};

#[rustfmt::skip]
const SCENES: [Scene; 7] = [
    PLAIN,
    Scene { file: "jittery-link-small", requests: 1_000, jitter: 0.1, ..PLAIN },
    Scene { file: "slow-link", requests: 200, scale: 1.0, ..PLAIN },
    Scene { file: "shallow-knee", requests: 1_000, knee: Some((10, 1.1)), ..PLAIN },
    Scene { file: "defers-at-high-concurrency", concurrency: Some((5, Action::Defer)), ..PLAIN },
    Scene { file: "drops-at-high-concurrency", concurrency: Some((5, Action::Drop)), ..PLAIN },
    Scene { file: "defers-at-high-rate", requests: 1_000, rate: Some(100), ..PLAIN },
];

struct Sink {
    scene: Scene,
    in_flight: usize,
    lately: VecDeque<u64>,
    rng: fastrand::Rng,
}

impl Sink {
    fn new(scene: Scene) -> Self {
        let rng = fastrand::Rng::with_seed(3);
        let lately = VecDeque::new();
        Self {
            scene,
            in_flight: 0,
            lately,
            rng,
        }
    }

    /// How long an answer takes with so many in flight.
    fn delay(&mut self, in_flight: usize) -> u64 {
        let scene = self.scene;
        let others = u32::try_from(in_flight).expect("small");
        let knee = scene.knee.map_or(0.0, |(start, factor)| {
            factor.powi(i32::try_from(others.saturating_sub(start)).expect("small")) - 1.0
        });
        let exponential = -(1.0 - self.rng.f64()).ln();
        let times = 1.0 + f64::from(others - 1) * scene.scale + knee + exponential * scene.jitter;
        let delay = Duration::from_millis(scene.delay).mul_f64(times);
        u64::try_from(delay.as_nanos()).expect("small")
    }
}

impl Service for Sink {
    fn answer(&mut self, now: u64, _: usize) -> Answer {
        self.lately.push_back(now);
        while self.lately.front().is_some_and(|at| at + SECOND <= now) {
            self.lately.pop_front();
        }
        self.in_flight += 1;
        let crowded = self
            .scene
            .concurrency
            .filter(|(most, _)| self.in_flight > *most);
        let often = self.scene.rate.filter(|most| self.lately.len() > *most);
        match crowded
            .map(|(_, action)| action)
            .or(often.map(|_| Action::Defer))
        {
            None => (Some(self.delay(self.in_flight)), Ok(())),
            Some(Action::Defer) => (Some(self.delay(1)), Err(Failure::throttling())),
            Some(Action::Drop) => {
                self.in_flight -= 1;
                (None, Ok(()))
            }
        }
    }

    fn answered(&mut self, _: usize) {
        self.in_flight -= 1;
    }
}

/// How long a client waits for an answer that may never come.
fn patience(scene: &Scene) -> u64 {
    match scene.concurrency {
        Some((_, Action::Drop)) => SECOND,
        _ => 3_600 * SECOND,
    }
}

/// Requests a second of so many in flight, who ask again at once.
fn fixed(scene: Scene, workers: usize) -> f64 {
    let mut sink = Sink::new(scene);
    let mut queue = BinaryHeap::new();
    let send = |queue: &mut BinaryHeap<_>, sink: &mut Sink, now: u64| {
        let patience = patience(&scene);
        match sink.answer(now, 0) {
            (Some(after), result) => queue.push(Reverse((now + after, true, result.is_ok()))),
            (None, _) => queue.push(Reverse((now + patience, false, false))),
        }
    };
    (0..workers).for_each(|_| send(&mut queue, &mut sink, 0));
    let mut done = 0;
    while let Some(Reverse((now, answered, succeeded))) = queue.pop() {
        if answered {
            sink.answered(0);
        }
        done += usize::from(succeeded);
        if done == scene.requests || now > 100 * SECOND {
            return goodput(done, now);
        }
        send(&mut queue, &mut sink, now);
    }
    unreachable!("each worker asks again")
}

fn goodput(done: usize, nanos: u64) -> f64 {
    done as f64 / Duration::from_nanos(nanos).as_secs_f64()
}

/// Requests a second of so many workers, and how many were lost.
fn paceline(scene: Scene, bulk: bool, workers: usize) -> (f64, usize) {
    let hands = Arc::new(Hands::default());
    let builder = Adaptive::builder().random(Arc::new(SeededRandom::new(7)));
    let builder = if bulk {
        builder.bulk()
    } else {
        builder.paced(PacedSettings::new())
    };
    let strategy = builder.clock(hands.clone()).build().expect("in range");
    let patience = patience(&scene);
    let client = Client {
        patience,
        ..Client::new(&strategy, &hands)
    };
    let load = Load::Closed {
        workers,
        operations: scene.requests,
    };
    let played: Vec<Played> = client.play(load, &mut Sink::new(scene));
    let done = played.iter().filter(|one| one.succeeded);
    let last = done
        .clone()
        .map(|one| one.ended)
        .max()
        .expect("some succeed");
    let done = done.count();
    (goodput(done, last), scene.requests - done)
}

/// Each service: the best number in flight, what that number gets a second, and what of it `paced`
/// and `bulk` get with 64 workers, then with as many as that number.
const TABLE: &str = "\
| constant-link | 64 | 625 | 1.00 | 0.43 | 1.00 | 0.43 |
| jittery-link-small | 64 | 565 | 0.99 | 0.61 | 0.99 | 0.61 |
| slow-link | 64 | 10 | 1.00 | 0.99 | 1.00 | 0.99 |
| shallow-knee | 11 | 100 | 0.04 | 0.04 | 1.00 | 0.97 |
| defers-at-high-concurrency | 5 | 50 | 0.78 | 0.76 | 1.00 | 0.98 |
| drops-at-high-concurrency | 64 | 50 | 0.99, 245 lost | 0.88, 244 lost | 0.99, 245 lost | 0.88, 244 lost |
| defers-at-high-rate | 10 | 100 | 0.86 | 0.60 | 1.00 | 0.97 |
";

#[test]
fn the_best_fixed_number_in_flight_is_the_ruler() {
    let mut table = String::new();
    for scene in SCENES {
        let best = (1..=64).map(|workers| (workers, fixed(scene, workers)));
        let best = best.max_by(|one, other| one.1.total_cmp(&other.1));
        let (workers, best) = best.expect("there are 64");
        let file = scene.file;
        let _ = write!(table, "| {file} | {workers} | {best:.0} |");
        for (bulk, workers) in [(false, 64), (true, 64), (false, workers), (true, workers)] {
            let (goodput, lost) = paceline(scene, bulk, workers);
            // What is dropped is a timeout, which uses up attempts.
            let is_dropped = matches!(scene.concurrency, Some((_, Action::Drop)));
            assert!(!bulk || is_dropped || lost == 0, "{file}: {lost} lost");
            let _ = write!(table, " {:.2}", goodput / best);
            if lost > 0 {
                let _ = write!(table, ", {lost} lost");
            }
            table += " |";
        }
        table += "\n";
    }
    assert_eq!(table, TABLE);
}
