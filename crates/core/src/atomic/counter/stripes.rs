//! A count that threads add to without meeting. The count only grows, and is read by adding up its
//! stripes.

use alloc::boxed::Box;

use super::SLOTS;
use super::owner::Owner;
use super::threads::number;
use crate::atomic::lazy::Lazy;
use crate::atomic::sync::{AtomicU32, AtomicU64, Ordering::Relaxed};
use crate::{fixed::to_signed, padded::Padded};

/// How often threads may meet at the first stripes, between two calls of
/// [`forget_meetings`](Stripes::forget_meetings), before each thread gets a stripe.
const MEETINGS: u32 = 128;

/// A count in stripes.
///
/// The first thread that counts has a stripe to itself, and all others share a second: 56 bytes in
/// all. If threads meet there often, the first threads, four for each core, get a stripe each in
/// separate cache lines. The others share further stripes. So a count by one thread at a time stays
/// small, and a count by many threads has no cache line that all of them write.
#[derive(Debug)]
pub(in crate::atomic) struct Stripes {
    /// The thread that counts in `own`.
    owner: Owner,
    /// How often threads have met since the last call of `forget_meetings`.
    met: AtomicU32,
    /// The number of the thread that added to `shared` last, plus one. `seen` has the low bits of
    /// the owner's count then.
    last: AtomicU32,
    seen: AtomicU32,
    own: Stripe,
    shared: AtomicU64,
    more: Lazy<Wide>,
}

/// Stripes for all threads.
#[derive(Debug)]
struct Wide {
    /// One for each thread, by its number.
    own: Box<[Padded<Stripe>]>,
    /// For the other threads. Their number is a power of two.
    shared: Box<[Padded<AtomicU64>]>,
}

impl Wide {
    fn new() -> Self {
        Self {
            own: (0..own_words())
                .map(|_| Padded::new(Stripe::new(0)))
                .collect(),
            shared: (0..cores().min(16))
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
    pub(in crate::atomic) fn new(start: u64) -> Self {
        Self {
            owner: Owner::none(),
            met: AtomicU32::new(0),
            last: AtomicU32::new(0),
            seen: AtomicU32::new(0),
            own: Stripe::new(start),
            shared: AtomicU64::new(0),
            more: Lazy::new(Wide::new),
        }
    }

    /// Adds `count`.
    #[inline]
    pub(in crate::atomic) fn add(&self, count: u64) {
        self.add_as(number(), count);
    }

    /// Adds `count`, for the thread that has `number`.
    #[inline]
    pub(in crate::atomic) fn add_as(&self, number: usize, count: u64) {
        match self.stripe_of(number) {
            Some(stripe) => stripe.add(count),
            None => self.add_among_others(number, count),
        }
    }

    /// Returns the stripe that the calling thread has to itself.
    pub(in crate::atomic) fn stripe(&self) -> Option<&Stripe> {
        self.stripe_of(number())
    }

    /// Returns the stripe that only the thread with `number` writes.
    #[inline]
    fn stripe_of(&self, number: usize) -> Option<&Stripe> {
        if let Some(wide) = self.wide() {
            return wide.own.get(number).map(|stripe| &**stripe);
        }
        let is_own = self.owner.is(number);
        (is_own || self.claims(number)).then_some(&self.own)
    }

    fn wide(&self) -> Option<&Wide> {
        // In a model the wide stripes would exist from the start, and hide the first stripes.
        if cfg!(all(loom, feature = "loom")) {
            return None;
        }
        self.more.get()
    }

    /// Lets `own` belong to the thread with `number` from now on, if no thread owns `own` and only
    /// one thread at a time has the number.
    #[cold]
    fn claims(&self, number: usize) -> bool {
        number < SLOTS && self.owner.claim(number)
    }

    /// Adds `count` for a thread that has no stripe to itself.
    #[cold]
    fn add_among_others(&self, number: usize, count: u64) {
        if let Some(wide) = self.wide() {
            return wide.add(number, count);
        }
        // Relaxed: a read-modify-write of a count, so no addition is lost. The meter's word orders
        // later sums. Model: `send_rate::no_count_is_lost_at_a_turn`.
        self.shared.fetch_add(count, Relaxed);
        // Without `std` there are no wide stripes to make, nor in a model: see `wide`.
        if cfg!(feature = "std") && !cfg!(all(loom, feature = "loom")) && self.meets(number) {
            self.more.get_or_make(Wide::new);
        }
    }

    /// Notes that the thread with `number` has added to `shared`. Threads have met if, since this
    /// thread's last addition, another thread has added there, or the owner to its stripe. Returns
    /// true if they have met often.
    fn meets(&self, number: usize) -> bool {
        let mark = low(number as u64).wrapping_add(1);
        // Relaxed, all of them: hints. A meeting that is lost or counted twice makes wide stripes a
        // little later or sooner.
        let own = low(self.own.count.load(Relaxed));
        if self.last.load(Relaxed) == mark && self.seen.load(Relaxed) == own {
            return false;
        }
        self.last.store(mark, Relaxed);
        self.seen.store(own, Relaxed);
        let met = self.met.load(Relaxed).saturating_add(1);
        self.met.store(met, Relaxed);
        met > MEETINGS
    }

    /// Forgets how often threads have met.
    pub(in crate::atomic) fn forget_meetings(&self) {
        // Relaxed: a hint.
        if self.met.load(Relaxed) != 0 {
            self.met.store(0, Relaxed);
        }
    }

    /// Returns the sum, wrapping.
    pub(in crate::atomic) fn sum(&self) -> u64 {
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

/// Returns the number below which a thread gets words to itself.
///
/// This is more than the cores: run times have threads beside their workers, and numbers are given
/// out in order.
pub(in crate::atomic) fn own_words() -> usize {
    if cfg!(all(loom, feature = "loom")) {
        return 2;
    }
    cores().saturating_mul(4).clamp(16, SLOTS)
}

/// Returns the number of cores, up to [`SLOTS`], rounded up to a power of two; 1 if threads have no
/// numbers.
pub(in crate::atomic) fn cores() -> usize {
    #[cfg(all(feature = "std", not(all(loom, feature = "loom"))))]
    let cores = {
        // Asked once: the system may have to read files for it.
        static CORES: once_cell::race::OnceNonZeroUsize = once_cell::race::OnceNonZeroUsize::new();
        let ask =
            || std::thread::available_parallelism().unwrap_or(core::num::NonZero::<usize>::MIN);
        CORES.get_or_init(ask).get()
    };
    #[cfg(any(not(feature = "std"), all(loom, feature = "loom")))]
    let cores = 1_usize;
    cores.min(SLOTS).next_power_of_two()
}

/// How long a thread may go without a look at the clock, in units of 2¹⁶ ns: 2 ms.
const LONGEST: u64 = 31;
/// A look sooner than this, 0.5 ms, allows more requests until the next look.
const SHORT: u64 = 8;
/// The most requests between two looks.
const MOST: u64 = 255;

/// A count that one thread at a time adds to, and when that thread has to look at the clock again.
#[derive(Debug)]
pub(in crate::atomic) struct Stripe {
    count: AtomicU64,
    /// The count at which the thread must look at the clock.
    until: AtomicU64,
    /// The time of the last look at the clock, in 2¹⁶ ns, above 16 bits of how many requests may go
    /// before the next look.
    pace: AtomicU64,
}

// Relaxed throughout: only the thread that has the stripe writes it, so a value that the thread has
// loaded is still there when it stores. Other threads read the count, which never goes back. The
// next thread with the same number has seen all stores: see `slots`. Model:
// `stripes::a_number_goes_from_thread_to_thread_and_loses_no_count`.
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

    /// Returns `true` if another request may be counted without a look at the clock.
    pub(in crate::atomic) fn is_ahead(&self) -> bool {
        self.leads(self.count.load(Relaxed))
    }

    fn leads(&self, count: u64) -> bool {
        to_signed(self.until.load(Relaxed).wrapping_sub(count)) > 0
    }

    /// Adds one if that may be done without a look at the clock.
    pub(in crate::atomic) fn try_add_one(&self) -> bool {
        let count = self.count.load(Relaxed);
        if !self.leads(count) {
            return false;
        }
        self.count.store(count.wrapping_add(1), Relaxed);
        true
    }

    /// Adds one at `now`, and allows as many more without a look at the clock as come in about a
    /// millisecond.
    pub(in crate::atomic) fn add_one_at(&self, now: u64) {
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
