//! What happened in a run: counts, and nothing but integers until they are read.

#![expect(clippy::float_arithmetic, reason = "shares for people to read")]

use crate::number::{number, share};
use crate::scene::{MICRO, Scene};
use crate::tally::Bin;
use crate::time::MILLI;

/// How long one bin of the time line is.
pub(crate) const BIN: u64 = 100 * MILLI;

/// How long a rate must be held to count as reached, in bins: two seconds.
const HELD: u64 = 20;
/// How many bins there are in a second.
const PER_SECOND: f64 = 10.0;

/// Counts of one run.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) scene: Scene,
    pub(crate) sent: u64,
    pub(crate) throttled: u64,
    /// What the service did not throttle, its failures included.
    pub(crate) useful: u64,
    pub(crate) finished: u64,
    pub(crate) failed: u64,
    pub(crate) refused: u64,
    /// How often a timer woke a client, and how often it slept before a retry: waking from that is
    /// not waiting for a turn.
    pub(crate) wakes: u64,
    pub(crate) sleeps: u64,
    pub(crate) waits: Waits,
    /// Of the requests that someone waits for, where others can wait.
    pub(crate) people: Waits,
    /// Of each client, since all have started.
    pub(crate) accepted: Vec<u64>,
    pub(crate) bins: Vec<Bin>,
    /// How many bins have begun.
    begun: usize,
    pub(crate) events: u64,
    /// A checksum of all events in their order.
    pub(crate) checksum: u64,
    /// What the ideal client gets through before each bin, and in all: millionths of requests.
    ideal: Vec<u64>,
}

impl Tally {
    /// Creates the empty tally of a scene.
    pub(crate) fn new(scene: &Scene) -> Self {
        let bins = index(scene.seconds * 1_000 * MILLI / BIN);
        let ideal = scene.ideal();
        let ends = ideal.chunks(index(BIN / MILLI)).filter_map(<[_]>::last);
        let ideal = [0].into_iter().chain(ends.copied());
        Self {
            scene: *scene,
            sent: 0,
            throttled: 0,
            useful: 0,
            finished: 0,
            failed: 0,
            refused: 0,
            wakes: 0,
            sleeps: 0,
            waits: Waits::new(),
            people: Waits::new(),
            accepted: vec![0; scene.clients as usize],
            bins: vec![Bin::default(); bins],
            begun: 0,
            events: 0,
            checksum: 0xcbf2_9ce4_8422_2325,
            ideal: ideal.collect(),
        }
    }

    fn bin(&mut self, now: u64) -> &mut Bin {
        let last = self.bins.len() - 1;
        let index = usize::try_from(now / BIN).unwrap_or(last);
        &mut self.bins[index.min(last)]
    }

    /// Something of this `kind` happened to `task`.
    pub(crate) fn event(&mut self, now: u64, task: usize, kind: u64) {
        self.events += 1;
        for word in [now, task as u64, kind] {
            self.checksum = (self.checksum ^ word).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Notes what the limiter allows at the start of each bin that has begun by `now`.
    pub(crate) fn allow(&mut self, now: u64, allowed: impl Fn(u64) -> Option<u64>) {
        while let Some(bin) = self.bins.get_mut(self.begun) {
            let start = self.begun as u64 * BIN;
            if start > now {
                break;
            }
            bin.allowed = allowed(start);
            self.begun += 1;
        }
    }

    /// A request was sent.
    pub(crate) fn send(&mut self) {
        self.sent += 1;
    }

    /// The service decided about a request.
    pub(crate) fn answer(&mut self, now: u64, client: u32, throttled: bool) {
        if throttled {
            self.throttled += 1;
            self.bin(now).refused += 1;
        } else {
            self.useful += 1;
            if now >= self.scene.stagger_ms * MILLI * u64::from(self.scene.clients) {
                self.accepted[client as usize] += 1;
            }
            self.bin(now).admitted += 1;
        }
    }

    /// An operation that began then succeeded; its last attempt was sent so long after.
    pub(crate) fn finish(&mut self, begun: u64, waited: u64, person: bool) {
        self.finished += 1;
        self.waits.add(waited);
        if person {
            self.people.add(waited);
            let bin = self.bin(begun);
            bin.longest = bin.longest.max(waited);
        }
    }

    /// An operation failed for good, perhaps because the quota refused a retry.
    pub(crate) fn give_up(&mut self, refused: bool) {
        self.failed += 1;
        self.refused += u64::from(refused);
    }

    /// Returns how many requests the ideal client gets through.
    pub(crate) fn ideal(&self) -> u64 {
        self.ideal[self.bins.len()] / MICRO
    }

    /// Returns the requests that got through, of the ideal.
    pub(crate) fn share(&self) -> f64 {
        share(self.useful * MICRO, self.ideal[self.bins.len()])
    }

    pub(crate) fn throttled_share(&self) -> f64 {
        share(self.throttled, self.sent)
    }

    /// Returns how often a waiter was woken for each request.
    pub(crate) fn wakes_each(&self) -> f64 {
        share(self.wakes.saturating_sub(self.sleeps), self.sent)
    }

    /// Returns what every second client got, as a share of an equal part.
    pub(crate) fn part(&self) -> f64 {
        let tested: u64 = self.accepted.iter().step_by(2).sum();
        2.0 * share(tested, self.accepted.iter().sum())
    }

    /// Returns what got through in these bins, of the ideal.
    pub(crate) fn share_of(&self, (from, to): (u64, u64)) -> f64 {
        let (useful, wanted) = self.within(from, to);
        share(useful * MICRO, wanted)
    }

    /// Returns after how many seconds of these bins so many thousandths of the ideal were reached,
    /// and held for two seconds.
    pub(crate) fn reached(&self, (from, to): (u64, u64), permille: u64) -> Option<f64> {
        let mut starts = from..to.saturating_sub(HELD).max(from);
        let reached = starts.find(|bin| {
            let (useful, wanted) = self.within(*bin, bin + HELD);
            wanted > 0 && useful * 1_000 * MICRO >= wanted * permille
        });
        Some(number(reached? - from) / PER_SECOND)
    }

    /// Returns what got through in these bins, and millionths of what the ideal client gets
    /// through.
    fn within(&self, from: u64, to: u64) -> (u64, u64) {
        let (from, to) = (index(from), index(to));
        let bins = self.bins.iter().take(to).skip(from);
        let ideal = |bin| self.ideal.get(bin).copied().unwrap_or(0);
        (bins.map(|bin| bin.admitted).sum(), ideal(to) - ideal(from))
    }
}

fn index(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// A histogram of spans, 16 bins to an octave.
#[derive(Debug)]
pub(crate) struct Waits {
    counts: Vec<u64>,
    total: u64,
}

impl Waits {
    /// Creates an empty one.
    pub(crate) fn new() -> Self {
        Self {
            counts: vec![0; 1024],
            total: 0,
        }
    }

    /// Counts one.
    pub(crate) fn add(&mut self, nanos: u64) {
        let nanos = nanos.max(16);
        let octave = u64::from(nanos.ilog2());
        let index = octave * 16 + ((nanos >> (octave - 4)) & 15);
        self.counts[usize::try_from(index).unwrap_or(1_023).min(1_023)] += 1;
        self.total += 1;
    }

    /// Returns the lower bound of the bin that holds this quantile, in nanoseconds.
    pub(crate) fn quantile(&self, permille: u64) -> u64 {
        let rank = self.total * permille / 1_000;
        let mut below = 0;
        for (index, count) in (0_u64..).zip(&self.counts) {
            below += count;
            if below > rank {
                let (octave, part) = (index / 16, index % 16);
                return (16 + part) << (octave - 4);
            }
        }
        0
    }
}
