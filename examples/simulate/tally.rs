//! What happened in a run: counts, and nothing but integers.

use crate::scene::Scene;
use crate::time::MILLI;
use crate::waits::Waits;

/// How long one bin of the time line is.
pub(crate) const BIN: u64 = 100 * MILLI;

/// What the requests of one span of time came to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bin {
    pub(crate) sent: u64,
    pub(crate) useful: u64,
    pub(crate) throttled: u64,
    /// How many in a thousand seconds the limiter allowed at its start, if it limited.
    pub(crate) allowed: Option<u64>,
    /// The longest that a request waited that began in it, and that someone waited for.
    pub(crate) longest: u64,
}

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
}

impl Tally {
    /// Creates the empty tally of a scene.
    pub(crate) fn new(scene: &Scene) -> Self {
        let bins = usize::try_from(scene.seconds * 1_000 * MILLI / BIN).unwrap_or(0);
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
    pub(crate) fn send(&mut self, now: u64) {
        self.sent += 1;
        self.bin(now).sent += 1;
    }

    /// The service decided about a request.
    pub(crate) fn answer(&mut self, now: u64, client: u32, throttled: bool) {
        if throttled {
            self.throttled += 1;
            self.bin(now).throttled += 1;
        } else {
            self.useful += 1;
            if now >= self.scene.stagger_ms * MILLI * u64::from(self.scene.clients) {
                self.accepted[client as usize] += 1;
            }
            self.bin(now).useful += 1;
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
}
