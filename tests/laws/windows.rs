//! The paced law against limits that are windows of any length, which no service declares: what is
//! used of them, and how much is throttled.
//!
//! The public cases: 40 requests a minute without headers (arXiv 2510.04516), and 15 in a quarter
//! of an hour (docs.x.com, rate limits).

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;
use core::time::Duration;

use paceline::{Outcome, SendPermit, SendRate, Timestamp, law::PacedSettings};

const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLI;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// How a service counts.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// From one beginning to the next, by its clock.
    Aligned,
    /// From the first request after the last window.
    FirstUse,
    /// All of the time before.
    Log,
}

#[derive(Clone, Copy, Debug)]
struct Scene {
    kind: Kind,
    limit: u64,
    window: u64,
    trip: u64,
    /// The least and the most tokens of a request. The limit is so many of the mean.
    weight: (u32, u32),
    /// Or one in sixteen has the most of them, and the others the least.
    is_rare: bool,
    /// Whether a throttle says when there is room again.
    hints: bool,
    /// In thousandths: used at least, throttled at most.
    used: u64,
    throttled: u64,
}

const fn scene(kind: Kind, limit: u64, window: u64, trip: u64, used: u64, throttled: u64) -> Scene {
    Scene {
        kind,
        limit,
        window,
        trip,
        weight: (1, 1),
        is_rare: false,
        hints: false,
        used,
        throttled,
    }
}

impl Scene {
    fn tokens(&self) -> u64 {
        let (least, most) = self.weight;
        self.limit
            * if self.is_rare {
                u64::from(15 * least + most) / 16
            } else {
                u64::from(least + most) / 2
            }
    }
}

struct Service {
    scene: Scene,
    begun: u64,
    /// When, and how many tokens.
    admitted: Vec<(u64, u32)>,
}

impl Service {
    /// Whether a request is admitted at `now`; if not, when there is room again.
    fn admits(&mut self, now: u64, weight: u32) -> Result<(), u64> {
        let Scene { kind, window, .. } = self.scene;
        match kind {
            Kind::Aligned => self.begun = now / window * window,
            Kind::FirstUse if now >= self.begun + window => self.begun = now,
            Kind::FirstUse => {}
            Kind::Log => self.begun = (now + 1).saturating_sub(window),
        }
        self.admitted.retain(|(at, _)| *at >= self.begun);
        let used: u64 = self.admitted.iter().map(|(_, w)| u64::from(*w)).sum();
        if used + u64::from(weight) <= self.scene.tokens() {
            self.admitted.push((now, weight));
            return Ok(());
        }
        Err(match kind {
            Kind::Log => self.admitted[0].0 + window,
            _ => self.begun + window,
        })
    }
}

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

/// Plays 16 workers that always have work, wait in line, and give places up. Returns thousandths of
/// the limit that were used, and of the requests that were throttled, after ten windows and for
/// forty.
fn play(scene: Scene, seed: u64) -> (u64, u64) {
    let settings = PacedSettings::builder()
        .burst(Duration::from_secs(10))
        .build();
    let settings = if scene.weight.1 > 1 {
        settings.expect("in range")
    } else {
        PacedSettings::new()
    };
    let rate = SendRate::paced(settings, at(0));
    let mut service = Service {
        scene,
        begun: 0,
        admitted: Vec::new(),
    };
    let (from, to) = (scene.window.max(MINUTE) * 10, scene.window.max(MINUTE) * 50);
    let (mut done, mut refused, mut looks) = (0, 0, 0);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut weigh = fastrand::Rng::with_seed(seed);
    let mut weigh = || match scene.weight {
        (least, most) if !scene.is_rare => weigh.u32(least..=most),
        (_, most) if weigh.u32(0..16) == 0 => most,
        (least, _) => least,
    };
    let mut weights: Vec<_> = (0..16).map(|_| weigh()).collect();
    let mut places: Vec<_> = (0..16).map(|_| None).collect();
    let mut events: BinaryHeap<_> = (0..16).map(|worker| Reverse((0, worker, None))).collect();
    while let Some(Reverse((now, worker, heard))) = events.pop() {
        if now >= to {
            break;
        }
        if let Some((sent, answer)) = heard {
            let outcome = match answer {
                Ok(()) => Outcome::NotThrottled,
                Err(until) if scene.hints => {
                    Outcome::ThrottledFor(Duration::from_nanos(until - now.min(until)))
                }
                Err(_) => Outcome::Throttled,
            };
            let weight = weights[worker];
            rate.record(
                at(now),
                SendPermit::sent_at(at(sent)).costing(weight),
                outcome,
            );
            if sent >= from {
                *(if answer.is_ok() {
                    &mut done
                } else {
                    &mut refused
                }) += u64::from(weight);
            }
            if answer.is_ok() {
                weights[worker] = weigh();
            }
        }
        // One in a thousand looks gives its place up, and takes another.
        looks += 1;
        if looks % 1_000 == 0 {
            places[worker] = None;
        }
        let place = places[worker].get_or_insert_with(|| {
            let place = rate.reserve_n(at(now), weights[worker]);
            place.expect("a place saves up for what the bucket does not hold")
        });
        let next = match place.claim(at(now)) {
            // It arrives in the middle of the trip.
            Ok(_) => {
                places[worker] = None;
                let trip = random.u64(scene.trip * 3 / 4..=scene.trip * 5 / 4);
                let answer = service.admits(now + trip / 2, weights[worker]);
                Reverse((now + trip, worker, Some((now, answer))))
            }
            // Woken when the rate rises, or a little later.
            Err(wait) => {
                let wait = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
                let wait = wait.clamp(1, (scene.window / 1_000).max(100 * MILLI));
                Reverse((now + wait, worker, None))
            }
        };
        events.push(next);
    }
    let offered = (to - from) / scene.window * scene.tokens();
    (done * 1_000 / offered, refused * 1_000 / (done + refused))
}

#[test]
fn windows_of_any_length_are_used_and_seldom_overrun() {
    use Kind::{Aligned, FirstUse, Log};
    let hinted = Scene {
        hints: true,
        ..scene(Aligned, 40, MINUTE, 500 * MILLI, 950, 15)
    };
    let mixed = |scene| Scene {
        weight: (1, 1_000),
        ..scene
    };
    let heavy = Scene {
        weight: (1_000, 1_000),
        ..scene(Aligned, 40, MINUTE, 500 * MILLI, 940, 30)
    };
    let rare = |scene| Scene {
        is_rare: true,
        ..mixed(scene)
    };
    for scene in [
        heavy,
        rare(scene(Aligned, 500, MINUTE, 500 * MILLI, 850, 20)),
        rare(scene(Aligned, 1_000, HOUR, 500 * MILLI, 950, 20)),
        rare(scene(Log, 500, MINUTE, 500 * MILLI, 800, 20)),
        rare(scene(Aligned, 3_000, 10 * MINUTE, 500 * MILLI, 920, 20)),
        // Its waits are longer than the bucket, which holds no request.
        Scene {
            weight: (1_000, 1_000),
            ..scene(Aligned, 15, 15 * MINUTE, SECOND, 930, 50)
        },
        mixed(scene(Aligned, 500, MINUTE, 500 * MILLI, 960, 20)),
        mixed(scene(Log, 40, MINUTE, 500 * MILLI, 900, 20)),
        mixed(scene(Aligned, 1_000, HOUR, 500 * MILLI, 900, 50)),
        scene(Aligned, 40, MINUTE, 500 * MILLI, 950, 20),
        scene(Log, 40, MINUTE, 500 * MILLI, 930, 20),
        scene(FirstUse, 40, MINUTE, 500 * MILLI, 950, 20),
        scene(Aligned, 10, MINUTE, 2 * SECOND, 930, 30),
        scene(Aligned, 15, 15 * MINUTE, SECOND, 930, 50),
        scene(Aligned, 500, DAY, SECOND, 850, 50),
        scene(Aligned, 500, MINUTE, 500 * MILLI, 960, 10),
        scene(Aligned, 3_000, MINUTE, 200 * MILLI, 960, 10),
        scene(Aligned, 1_000, HOUR, 500 * MILLI, 960, 20),
        scene(Aligned, 300, 10 * SECOND, 200 * MILLI, 960, 10),
        // By chance the law never counts its windows.
        scene(Aligned, 5, SECOND, 100 * MILLI, 900, 70),
        hinted,
    ] {
        let played = [1, 2, 3].map(|seed| play(scene, seed));
        let used = played.iter().map(|(used, _)| used).sum::<u64>() / 3;
        let throttled = played.iter().map(|(_, throttled)| throttled).sum::<u64>() / 3;
        assert!(
            used >= scene.used && throttled <= scene.throttled,
            "{scene:?}: {used}, {throttled}"
        );
    }
}
