//! What happened in a run.

use crate::scene::{MILLI, Scene};

/// How long one bin of the time line is.
const BIN: u64 = 100 * MILLI;
/// How long a rate must be held to count as reached, in bins.
const HELD: usize = 20;

/// Counts of one run.
#[derive(Debug)]
pub(crate) struct Tally {
    scene: Scene,
    pub(crate) sent: u64,
    pub(crate) throttled: u64,
    pub(crate) finished: u64,
    pub(crate) failed: u64,
    pub(crate) refused: u64,
    wakes: u64,
    sleeps: u64,
    waits: Waits,
    useful: u64,
    /// Of each client, since all have started.
    accepted: Vec<u64>,
    /// Per bin: sent, accepted, throttled.
    pub(crate) bins: Vec<[u64; 3]>,
}

/// What a table shows of a run.
#[derive(Clone, Debug)]
pub(crate) struct Summary {
    /// Of the ideal.
    pub(crate) share: f64,
    /// Of the requests sent.
    pub(crate) throttled: f64,
    pub(crate) failed: u64,
    pub(crate) refused: u64,
    pub(crate) wakes: f64,
    /// Seconds.
    pub p50: f64,
    pub p99: f64,
    pub(crate) jain: f64,
    /// Seconds to nine tenths after each change of the limit, and the share of the ideal until the next.
    pub(crate) reached: Vec<(Option<f64>, f64)>,
}

impl Tally {
    /// Creates the empty tally of a scene.
    pub(crate) fn new(scene: &Scene) -> Self {
        let bins = usize::try_from(scene.seconds * 1_000 * MILLI / BIN).unwrap_or(0);
        Self {
            scene: *scene,
            sent: 0,
            throttled: 0,
            finished: 0,
            failed: 0,
            refused: 0,
            wakes: 0,
            sleeps: 0,
            waits: Waits::new(),
            useful: 0,
            accepted: vec![0; scene.clients as usize],
            bins: vec![[0; 3]; bins],
        }
    }

    fn bin(&mut self, now: u64) -> &mut [u64; 3] {
        let last = self.bins.len() - 1;
        let index = usize::try_from(now / BIN).unwrap_or(last);
        &mut self.bins[index.min(last)]
    }

    /// A timer woke somebody.
    pub(crate) fn wake(&mut self) {
        self.wakes += 1;
    }

    /// Somebody sleeps before a retry: waking from that is not waiting for a turn.
    pub(crate) fn sleep(&mut self) {
        self.sleeps += 1;
    }

    /// A request was sent.
    pub(crate) fn send(&mut self, now: u64) {
        self.sent += 1;
        self.bin(now)[0] += 1;
    }

    /// The service decided about a request.
    pub(crate) fn answer(&mut self, now: u64, client: u32, throttled: bool) {
        if throttled {
            self.throttled += 1;
            self.bin(now)[2] += 1;
        } else {
            self.useful += 1;
            if now >= self.scene.stagger_ms * MILLI * u64::from(self.scene.clients) {
                self.accepted[client as usize] += 1;
            }
            self.bin(now)[1] += 1;
        }
    }

    /// An operation succeeded; its last attempt was sent so long after it had begun.
    pub(crate) fn finish(&mut self, waited: u64) {
        self.finished += 1;
        self.waits.add(waited);
    }

    /// An operation failed for good, perhaps because the quota refused a retry.
    pub(crate) fn give_up(&mut self, refused: bool) {
        self.failed += 1;
        self.refused += u64::from(refused);
    }

    /// Sums up.
    pub(crate) fn summary(&self) -> Summary {
        let ideal = self.scene.ideal();
        Summary {
            share: ratio(self.useful * 1_000_000, ideal.last().copied().unwrap_or(0)),
            throttled: ratio(self.throttled, self.sent),
            failed: self.failed,
            refused: self.refused,
            wakes: ratio(self.wakes.saturating_sub(self.sleeps), self.sent),
            p50: seconds(self.waits.quantile(500)),
            p99: seconds(self.waits.quantile(990)),
            jain: self.jain(),
            reached: self.changes(&ideal),
        }
    }

    /// Returns Jain's index: 1 if all clients got the same, 1/n if one got all.
    fn jain(&self) -> f64 {
        let sum: u128 = self.accepted.iter().map(|n| u128::from(*n)).sum();
        let squares: u128 = self.accepted.iter().map(|n| u128::from(*n).pow(2)).sum();
        if squares == 0 {
            return 1.0;
        }
        #[expect(clippy::cast_precision_loss, reason = "for people to read")]
        let index = (sum * sum) as f64 / squares as f64;
        index / f64::from(self.scene.clients)
    }

    fn changes(&self, ideal: &[u64]) -> Vec<(Option<f64>, f64)> {
        let starts = self.scene.limit.iter().map(|(ms, _)| *ms);
        let ends = starts.clone().skip(1).chain([self.scene.seconds * 1_000]);
        let phases = starts.zip(ends).skip(1);
        phases
            .map(|(from, to)| self.change(ideal, from, to))
            .collect()
    }

    /// Returns when nine tenths of the ideal were reached and held for two seconds, and the share of the phase.
    fn change(&self, ideal: &[u64], from: u64, to: u64) -> (Option<f64>, f64) {
        let per_bin = BIN / MILLI;
        let at = |bin: u64| {
            let ms = usize::try_from(bin * per_bin).unwrap_or(0);
            ideal.get(ms.saturating_sub(1)).copied().unwrap_or(0)
        };
        let done = |from: u64, to: u64| -> u64 {
            let bins = self.bins.iter().skip(usize::try_from(from).unwrap_or(0));
            let count = usize::try_from(to - from).unwrap_or(0);
            bins.take(count).map(|bin| bin[1]).sum()
        };
        let (first, last) = (from / per_bin, to / per_bin);
        let held = HELD as u64;
        let mut starts = first..last.saturating_sub(held).max(first);
        let reached = starts.find(|bin| {
            let wanted = at(bin + held) - at(*bin);
            wanted > 0 && done(*bin, bin + held) * 10_000_000 >= wanted * 9
        });
        #[expect(clippy::cast_precision_loss, reason = "for people to read")]
        let reached = reached.map(|bin| (bin - first) as f64 / 10.0);
        (
            reached,
            ratio(done(first, last) * 1_000_000, at(last) - at(first)),
        )
    }
}

/// A histogram of spans, 16 bins to an octave.
#[derive(Debug)]
struct Waits {
    counts: Vec<u64>,
    total: u64,
}

impl Waits {
    fn new() -> Self {
        Self {
            counts: vec![0; 1024],
            total: 0,
        }
    }

    fn add(&mut self, nanos: u64) {
        let nanos = nanos.max(16);
        let octave = u64::from(nanos.ilog2());
        let index = octave * 16 + ((nanos >> (octave - 4)) & 15);
        self.counts[usize::try_from(index).unwrap_or(1_023).min(1_023)] += 1;
        self.total += 1;
    }

    /// Returns the lower bound of the bin that holds this quantile, in nanoseconds.
    fn quantile(&self, permille: u64) -> u64 {
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

/// Returns `part / whole`, or zero.
#[expect(clippy::cast_precision_loss, reason = "for people to read")]
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

#[expect(clippy::cast_precision_loss, reason = "for people to read")]
fn seconds(nanos: u64) -> f64 {
    if nanos <= 16 { 0.0 } else { nanos as f64 / 1e9 }
}
