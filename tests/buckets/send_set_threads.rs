//! Sets under real threads: what is taken, settled and given back adds up.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use core::time::Duration;
use std::thread;

use paceline::{SendRate, SendSet, Timestamp, law::PacedSettings, set::SetReservation};

const THREADS: u64 = 8;
const ROUNDS: u64 = 4_000;
/// So many tokens a second, of which the bucket holds as many.
const RATE: u64 = 1_024;

fn rate() -> SendRate {
    let second = Duration::from_secs(1);
    let settings = PacedSettings::fixed(1_024, second)
        .and_then(|fixed| fixed.to_builder().burst(second).build());
    SendRate::paced(settings.expect("in range"), Timestamp::ZERO)
}

/// The tokens that were taken of two limits, at their true costs. Wrapping: a credit is negative.
#[derive(Default)]
struct Taken([AtomicU64; 2]);

impl Taken {
    fn add(&self, costs: [u64; 2]) {
        for (taken, cost) in self.0.iter().zip(costs) {
            taken.fetch_add(cost, Relaxed);
        }
    }
}

/// Eight threads take, settle and drop, by two sets of the same rates in different orders. A clock
/// that hardly moves lets no token overflow, so that not one may be missing or too many.
#[test]
fn tokens_taken_settled_and_dropped_add_up() {
    let rates = [rate(), rate()];
    let sets = [
        SendSet::new([&rates[0], &rates[1]]),
        SendSet::new([&rates[1], &rates[0]]),
    ];
    for rate in &rates {
        assert!(rate.try_acquire_n(Timestamp::ZERO, 1_024).is_ok());
    }
    let (clock, taken) = (AtomicU64::new(0), Taken::default());
    // A token each 2⁻¹⁰ s; four rounds bring one.
    let tick = || Timestamp::from_nanos(clock.fetch_add(244_141, Relaxed));
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (sets, taken, tick) = (&sets, &taken, &tick);
            scope.spawn(move || work(number, sets, taken, tick));
        }
    });
    // Whatever is owed has been paid by then, and no bucket is full.
    let now = clock.load(Relaxed);
    let minted = now * RATE / 1_000_000_000;
    for (rate, taken) in rates.iter().zip(&taken.0) {
        let taken = taken.load(Relaxed).cast_signed();
        let balance = i64::try_from(minted).expect("a small number") - taken;
        assert!(balance < 1_024, "nothing overflowed: {balance}");
        let at = Timestamp::from_nanos(now);
        let next = rate.try_acquire_n(at, 1);
        let owed = next.err().and_then(|error| error.wait());
        let owed = owed.map_or(0, |wait| wait.as_nanos() * u128::from(RATE) / 1_000_000_000);
        let left = (0..2_000).filter(|_| rate.try_acquire(at).is_ok()).count() + 1;
        if balance >= 1 {
            assert_eq!(i64::try_from(left), Ok(balance), "owed {owed}");
        } else {
            let owed = i64::try_from(owed).expect("a small number");
            assert!((owed + balance).abs() <= 1, "owed {owed}, not {balance}");
        }
    }
}

fn work(
    number: u64,
    sets: &[SendSet<&SendRate, 2>; 2],
    taken: &Taken,
    tick: &dyn Fn() -> Timestamp,
) {
    let mut random = fastrand::Rng::with_seed(number);
    let order = usize::from(number % 2 == 1);
    let set = &sets[order];
    // By rate, whatever the order of the set.
    let by_rate = |costs: [u32; 2]| {
        let costs = costs.map(u64::from);
        if order == 0 {
            costs
        } else {
            [costs[1], costs[0]]
        }
    };
    let mut places: Vec<SetReservation<'_, 2>> = Vec::new();
    for _ in 0..ROUNDS / 4 {
        let weights = [random.u32(1..3), random.u32(1..3)];
        let costs = [random.u32(0..4), random.u32(0..4)];
        let permit = match random.u8(0..4) {
            0 if places.len() < 10 => {
                places.push(set.reserve(tick(), &weights).expect("in range"));
                continue;
            }
            1 if !places.is_empty() => {
                drop(places.swap_remove(random.usize(0..places.len())));
                continue;
            }
            2 => set.try_acquire(tick(), &weights).ok(),
            _ => {
                let now = tick();
                let due = places.iter_mut().position(|place| place.claim(now).is_ok());
                due.and_then(|due| places.swap_remove(due).claim(now).ok())
            }
        };
        if let Some(permit) = permit {
            set.settle(tick(), permit, &costs).expect("there is room");
            taken.add(by_rate(costs));
        }
    }
}
