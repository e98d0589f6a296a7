//! A count that threads add to without meeting: it only grows, and is read by adding it up.

use alloc::boxed::Box;

use super::lazy::Lazy;
use super::padded::Padded;
use super::slots::{SLOTS, number};
use super::sync::{AtomicU32, AtomicU64, Ordering::Relaxed};
use crate::fixed::to_signed;

/// How often others may meet at the first stripes between two [settlements](Stripes::settle) before there are
/// stripes for everybody.
const MEETINGS: u32 = 128;

/// A count in stripes.
///
/// The first thread that counts has one to itself, and all others share another. If they do so often, each
/// of the first threads, four for each core, gets one in a cache line of its own, and the others take turns at what
/// is left. A count that one thread makes at a time is small, then, and one that many make has no line that they all
/// write.
#[derive(Debug)]
pub(super) struct Stripes {
    /// The number of the thread that counts in `own`, plus one; 0 if there is none yet.
    owner: AtomicU32,
    /// The low bits of `shared` when it was settled last.
    met: AtomicU32,
    own: Stripe,
    shared: AtomicU64,
    more: Lazy<Wide>,
}

/// Stripes for everybody.
#[derive(Debug)]
struct Wide {
    /// By the number of the thread.
    own: Box<[Padded<Stripe>]>,
    /// A power of two of them, for the rest.
    shared: Box<[Padded<AtomicU64>]>,
}

impl Wide {
    fn new() -> Self {
        let cores = cores();
        // Some more than cores: run times have threads beside their workers, and numbers are given out in order.
        let own = cores.saturating_mul(4).clamp(16, SLOTS);
        Self {
            own: (0..own).map(|_| Padded::new(Stripe::new(0))).collect(),
            shared: (0..cores.min(16))
                .map(|_| Padded::new(AtomicU64::new(0)))
                .collect(),
        }
    }

    /// Adds `count` for a thread that has no stripe to itself.
    fn add(&self, number: usize, count: u64) {
        let index = number & self.shared.len().wrapping_sub(1);
        if let Some(stripe) = self.shared.get(index) {
            // Relaxed: as in `Stripes::add_among_others`.
            stripe.fetch_add(count, Relaxed);
        }
    }

    fn sum(&self) -> u64 {
        let own = self.own.iter().map(|stripe| &stripe.count);
        let shared = self.shared.iter().map(|stripe| &**stripe);
        // Relaxed: see `Stripes::sum`.
        own.chain(shared)
            .fold(0, |sum, stripe| sum.wrapping_add(stripe.load(Relaxed)))
    }
}

impl Stripes {
    /// Creates a count of `start`, which may lie just before the wrap.
    pub(super) fn new(start: u64) -> Self {
        Self {
            owner: AtomicU32::new(0),
            met: AtomicU32::new(0),
            own: Stripe::new(start),
            shared: AtomicU64::new(0),
            more: Lazy::new(Wide::new),
        }
    }

    /// Adds `count`.
    pub(super) fn add(&self, count: u64) {
        self.add_as(number(), count);
    }

    /// Adds `count`, for the thread that has `number`.
    pub(super) fn add_as(&self, number: usize, count: u64) {
        match self.stripe_of(number) {
            Some(stripe) => stripe.add(count),
            None => self.add_among_others(number, count),
        }
    }

    /// Returns the stripe that the calling thread has to itself.
    pub(super) fn stripe(&self) -> Option<&Stripe> {
        self.stripe_of(number())
    }

    /// Returns the stripe that only the thread with `number` writes.
    fn stripe_of(&self, number: usize) -> Option<&Stripe> {
        match self.wide() {
            Some(wide) => wide.own.get(number).map(|stripe| &**stripe),
            None => self.is_owner(number).then_some(&self.own),
        }
    }

    fn wide(&self) -> Option<&Wide> {
        // A model has all there is from the start: it would never see the first stripes.
        if cfg!(all(loom, feature = "loom")) {
            return None;
        }
        self.more.get()
    }

    /// Whether `own` belongs to the thread with `number`. If it is nobody's it does from now on.
    fn is_owner(&self, number: usize) -> bool {
        let Some(mark) = (number < SLOTS)
            .then(|| u32::try_from(number).ok()?.checked_add(1))
            .flatten()
        else {
            return false;
        };
        // Relaxed: the word never changes again once it names a number, and what is written by that number is handed
        // from thread to thread with it. Model: `stripes::two_threads_never_own_one_stripe`.
        match self.owner.load(Relaxed) {
            0 => self
                .owner
                .compare_exchange(0, mark, Relaxed, Relaxed)
                .is_ok(),
            owner => owner == mark,
        }
    }

    /// Adds `count` for a thread that has no stripe to itself.
    fn add_among_others(&self, number: usize, count: u64) {
        if let Some(wide) = self.wide() {
            return wide.add(number, count);
        }
        // Relaxed: a count, and a read-modify-write, so none is lost. Who sums it afterwards is
        // ordered by the meter's word. Model: `send_rate::no_count_is_lost_at_a_turn`.
        let shared = self.shared.fetch_add(count, Relaxed);
        // Relaxed: a hint.
        let met = low(shared).wrapping_sub(self.met.load(Relaxed));
        if cfg!(feature = "std") && met >= MEETINGS {
            self.more.get_or_make(Wide::new);
        }
    }

    /// Forgets how often threads have met.
    pub(super) fn settle(&self) {
        if self.wide().is_none() {
            // Relaxed: a hint.
            let shared = low(self.shared.load(Relaxed));
            if self.met.load(Relaxed) != shared {
                self.met.store(shared, Relaxed);
            }
        }
    }

    /// Returns the sum, wrapping.
    pub(super) fn sum(&self) -> u64 {
        // Relaxed: see the meter, which orders sums by its own word.
        let first = self.own.count.load(Relaxed);
        let first = first.wrapping_add(self.shared.load(Relaxed));
        self.wide()
            .map_or(first, |wide| first.wrapping_add(wide.sum()))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "only differences are used")]
const fn low(count: u64) -> u32 {
    count as u32
}

/// Returns a power of two: as many as there are cores, or fewer; 1 if threads have no numbers.
fn cores() -> usize {
    #[cfg(feature = "std")]
    let cores = {
        // Asked once: the system may have to read files for it.
        static CORES: once_cell::race::OnceNonZeroUsize = once_cell::race::OnceNonZeroUsize::new();
        let ask =
            || std::thread::available_parallelism().unwrap_or(core::num::NonZero::<usize>::MIN);
        CORES.get_or_init(ask).get()
    };
    #[cfg(not(feature = "std"))]
    let cores = 1_usize;
    cores.min(SLOTS).next_power_of_two()
}

/// How long a thread may go without a look at the clock, in units of 2¹⁶ ns: 2 ms.
const LONGEST: u64 = 31;
/// A look after less than this, 0.5 ms, allows for more next time.
const SHORT: u64 = 8;
/// The most requests between two looks.
const MOST: u64 = 255;

/// A count that one thread at a time adds to, and when that thread has to look at the clock again.
#[derive(Debug)]
pub(super) struct Stripe {
    count: AtomicU64,
    /// The count at which the time is to be asked for.
    until: AtomicU64,
    /// When it was asked for last, in 2¹⁶ ns, above 16 bits of how many requests were let go without it since.
    pace: AtomicU64,
}

// Relaxed throughout: only the thread that has the stripe writes it, so that what it has loaded is still there when
// it stores. Others read the count, which never goes back. The next thread with the same number has seen all, see
// `slots`. Model: `stripes::a_number_goes_from_thread_to_thread_and_loses_no_count`.
impl Stripe {
    fn new(start: u64) -> Self {
        Self {
            count: AtomicU64::new(start),
            until: AtomicU64::new(start),
            pace: AtomicU64::new(0),
        }
    }

    fn add(&self, more: u64) {
        let count = self.count.load(Relaxed);
        self.count.store(count.wrapping_add(more), Relaxed);
    }

    /// Whether another one may be counted without a look at the clock.
    pub(super) fn is_ahead(&self) -> bool {
        self.leads(self.count.load(Relaxed))
    }

    fn leads(&self, count: u64) -> bool {
        to_signed(self.until.load(Relaxed).wrapping_sub(count)) > 0
    }

    /// Adds one if that may be done without a look at the clock.
    pub(super) fn try_add_one(&self) -> bool {
        let count = self.count.load(Relaxed);
        if !self.leads(count) {
            return false;
        }
        self.count.store(count.wrapping_add(1), Relaxed);
        true
    }

    /// Adds one at `now`, and allows for as many without a look at the clock as come in about a millisecond.
    pub(super) fn add_one_at(&self, now: u64) {
        let pace = self.pace.load(Relaxed);
        let now = now >> 16;
        let batch = pace & 0xffff;
        let batch = match now.wrapping_sub(pace >> 16) {
            0..SHORT => batch.wrapping_mul(2).wrapping_add(1).min(MOST),
            SHORT..=LONGEST => batch,
            passed => batch.wrapping_mul(LONGEST).checked_div(passed).unwrap_or(0),
        };
        let count = self.count.load(Relaxed).wrapping_add(1);
        self.pace.store((now << 16) | batch, Relaxed);
        self.until.store(count.wrapping_add(batch), Relaxed);
        self.count.store(count, Relaxed);
    }
}

#[cfg(test)]
mod tests;
