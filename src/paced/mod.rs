//! The paced law: one client of a service whose limit it is not told, and which may have other clients.
//!
//! The published law ([`aws`](crate::aws)) reads CUBIC's window as a rate. CUBIC is made for a queue, where a loss says
//! that the pipe is full; a policer has no queue, and throttles whatever comes above its limit. So that law cuts once for
//! each request of an overshoot, falls to its floor, and needs `∛(0.75·peak)` seconds to come back: 40 % of the limit is
//! used where one client has it to itself. This one differs in what it takes a throttle for.
//!
//! # Rules
//!
//! The code cites them by number. `t` is the time since the last cut, `n` the responses delivered since then (not
//! throttled), `r` the rate now, `D` the rate delivered in the last window and the current one.
//!
//! 1. *One cut for each overshoot.* A throttle of a request that was sent before the last cut changes nothing, nor does
//!    one within two round trips of it, or in its first 100 ms while fewer than 32 responses were to be expected.
//! 2. *A cut* takes `min(0.45, 0.1 + 1/√peak)` of the peak: at low rates more, so that clients who share a limit come to
//!    equal parts by few cuts. It gives this back as `1 − (1 − t/K)⁵`, half of it within `K/8`, with
//!    `K = 15/peak` between 2.5 s and 12 s.
//! 3. *Beyond the peak* the rate grows as a cube of time, to twice the peak in 2.5 s more, or two round trips if that is
//!    longer: seconds, at any rate.
//! 4. *A line on top*, `min(0.15·√peak, 0.06·peak)` per second and second, gives more to those who have less.
//! 5. *The peak is the rate delivered*: `D`, if it is made of six responses or more, but at most the rate that the request
//!    was sent at; that rate alone if far less was delivered, for then it was not the service that held it back.
//!    Within two seconds of a cut, if less than three quarters of the rate was delivered since then, it is `(n + 2)/t`.
//! 6. *Starvation*: of four responses or more to be expected none came, or fewer than an eighth of 32 or more. The service
//!    lets nothing through at the moment, which says nothing of its limit: the peak stays, the rate is quartered,
//!    again at each further throttle, and doubles every 250 ms (or two round trips) on its way back.
//!    The first throttle after that ends it: the peak is `(n + 2)/t` or 0.7 times the rate, if that is more.
//! 7. *A window that delivered more*, by three a second, than the rate allows lifts it: what was delivered is the peak of a new
//!    cut. After starvation, when it may be far less than is allowed, the old peak stays if a quarter of it was delivered,
//!    and a fifth of it in any case.
//! 8. *The first cut* takes `D` with one response on top for the peak. If there were fewer than eight, it knows
//!    next to nothing: it begins there, and doubles as after starvation. If the first 64 or more came within 100 ms,
//!    the service may have saved them up: it begins at half of `D`, at a quarter below 50 ms, at an eighth below 25 ms,
//!    and doubles likewise, for what was no burst is a rate.
//! 9. *A hint* pauses everything until the time that the service gave, a minute at most.
//! 10. *The end*: half a minute without a cut, nobody in line, and a rate of four times what is delivered. Without a ceiling
//!     the limiter then limits nothing, until the next throttle.
//!
//! The bucket holds 50 ms at the rate, and at least one token: what a policer of small bursts forgives.
//!
//! # What lost
//!
//! Share of the limit used, and of requests throttled, in scenes of `examples/simulate` (bucket; fixed window; a hundred
//! clients), prototypes in floating point, five seeds:
//!
//! | law | bucket | window | 100 clients | |
//! |---|---|---|---|---|
//! | this one | 1.00, 0.5 % | 0.95, 1.7 % | 1.00, 6.6 % | |
//! | the published one | 0.44, 0.9 % | 0.28, 2.0 % | 0.98, 5.7 % | |
//! | AIMD, ×0.7, +5/s² | 0.72, 0.2 % | 0.36 | 10.9 % | the fairest: Jain 0.99 |
//! | AIMD, ×0.7, +20/s² | 0.93 | 0.74 | 22.6 % | the step that suits one rate suits no other |
//! | BBR: the best of ten windows, probing ×1.25 | 1.00, 5.7 % | 1.00, 9.8 % | 30 % | needs a queue to drain; 0.40 after an outage |
//! | PID on 1 % throttled | 0.88, 2.2 % | 0.85 | Jain 0.70 | answers too late to a halved limit |
//! | rule 3 exponential | 1.00 | 0.74 to 0.90 | | overshoots by whole windows |
//!
//! Of the rules: without 7 a fixed window is used to 0.65; with the rate sent for the peak in 5, to 0.59; without 4 ten
//! clients share with Jain 0.87 instead of 0.94. Counting throttled and delivered requests after each cut, for a better
//! estimate in 5, was worth 0.02 in two scenes, and a write by each request.
//!
//! For more equal parts and fewer throttles, each beside the law itself with the same seeds: a peak lowered to 0.9 when the
//! cut comes before `K` is over (CUBIC's fast convergence) takes a fixed window from 0.94 to 0.89, with 3.3 % throttled
//! instead of 2.0; a `K` of 5 s at least throttles 5.3 % of a hundred clients' requests instead of 6.6, but takes Jain to
//! 0.92 from 0.94 where their limit halves. Cuts to 0.75 that only the line gives back, for a client cut early, take a
//! hundred clients' Jain from 0.94 to 0.97, with 6.1 % throttled; but ten clients' from 0.98 to 0.96, a doubled limit's use
//! from 0.94 to 0.82, and a sliding window's from 0.93 to 0.87.
//!
//! Rule 8 with 200 ms instead of 100 throttles 4.8 % of the requests of 512 workers (`herd`) instead of 6.6, and uses 1.00 of
//! 10⁶/s instead of 0.88. But 512 workers on a fixed or a sliding window then starve on their way up, and use 0.75 to 0.81 of
//! it in the first 15 s, instead of 0.89 to 0.96. With the 64 taken for what comes in 200 ms, and no doubling back, a service
//! of 10⁶/s that saves up a thousandth of a second is used to 0.01 in four seconds, instead of 0.80; without a burst in rule
//! 8 at all, to 0.97.
//!
//! Where it is no better than the published law stands in the README: it uses the whole of a limit that many share, so
//! that a few more of their requests are throttled.

mod answer;
mod curve;
mod delivered;
mod memory;
mod settings;

pub(crate) use answer::{Cut, Seen, after_throttle, after_window, first_cut, is_over, started_at};
pub(crate) use curve::{STEP_BITS, is_starved, rate_at};
pub(crate) use delivered::{Delivered, WINDOW, WindowEnd};
pub(crate) use memory::Memory;
pub use settings::{PacedSettings, PacedSettingsError};
