//! How far a system may be from what is promised.

/// A request goes within so many windows, if the service would let it go.
pub(super) const GAP_WINDOWS: u64 = 2;
/// Beside that: two trips, and this long, in milliseconds.
pub(super) const GAP_SLACK: u64 = 2_000;
/// All is back so many times later where the window is not told, and so many milliseconds.
pub(super) const UNTOLD_TIMES: u64 = 2;
pub(super) const UNTOLD_SLACK: u64 = 120_000;
/// First contact is not held to it: it may take so long, in milliseconds.
pub(super) const FIRST_CONTACT: u64 = 30_000;
/// A limiter has stopped for good after so many windows at the end without a send.
pub(super) const STOP_WINDOWS: u64 = 10;
/// And no sooner than after so many milliseconds.
pub(super) const STOP_LEAST: u64 = 10_000;
/// A waiter waits at most so many times as long as all before it need in whole windows, ...
pub(super) const STARVE_TIMES: u64 = 4;
/// ... and so many windows.
pub(super) const STARVE_WINDOWS: u64 = 6;
/// Where nothing is declared a waiter waits so many milliseconds more: for a few knocks at a
/// service that other clients have used up, each 100 s after the last.
pub(super) const STARVE_KNOCKS: u64 = 4 * 100_000;
/// Twice that beside clients that forget what they learned: each of them uses up a window at once.
pub(super) const STARVE_AMNESIA: u64 = 2;
/// The rate gives a whole limit in so many nanoseconds at the fastest.
pub(super) const FASTEST: u64 = 1_000_000;
/// Tokens that what is left may be off by when all is answered, and the part of the limit.
pub(super) const ACCOUNT_TOKENS: f64 = 2.0;
pub(super) const ACCOUNT_PART: f64 = 0.02;
/// What operations use at least of what a service offers, under the published law and others.
pub(super) const USED_PUBLISHED: f64 = 0.1;
pub(super) const USED_PACED: f64 = 0.4;
/// What sets of two limits use at least of the one that is less.
pub(super) const USED_PAIR: f64 = 0.6;
/// What a pool uses at least of what all its members offer.
pub(super) const USED_POOL: f64 = 0.9;
/// A client may know of a reset so many times the rounding of resets and a trip later. What was
/// sent before that, or was overtaken by a later request so many trips ago, may be in no report.
pub(super) const RESETS: u64 = 2;
/// Operations: no request in line is left waiting for so many milliseconds while it could go.
pub(super) const GAP_OPERATIONS: u64 = 5_000;
/// Before the first answer under the declared law, a burst goes every so many milliseconds.
pub(super) const FIRST_BURSTS: u64 = 10_000;
/// Under the paced law a client that was only refused yet asks again after so many milliseconds.
pub(super) const UNHEARD: u64 = 4_000;
/// Operations in line look so often at least, in milliseconds.
pub(super) const LOOK: u64 = 50;
/// After so many milliseconds an attempt without an answer is cut off.
pub(super) const CUT_OFF: u64 = 1_000;
/// A thread takes tokens ahead for so many nanoseconds at most.
pub(super) const LEASE: u64 = 1 << 18;
/// A caller that is refused comes again after so many milliseconds at most.
pub(super) const REFUSED: u64 = 200;
/// Where reports cannot be used, a larger part of the requests by so much may be refused than under
/// the paced law, which by chance counts seconds in a run, or cycles, ...
pub(super) const MORE: f64 = 0.3;
/// ... and by so many standard deviations of what is drawn.
pub(super) const CHANCE: f64 = 4.0;
