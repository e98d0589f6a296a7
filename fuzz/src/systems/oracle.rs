//! What a run came to, and which promises it broke.

use core::fmt;

use super::bounds;
use super::system::System;
use super::{MILLI, SECOND};

/// A promise that a run broke.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// The last send was so many windows before the end, though one could have gone all along.
    Stopped(u64),
    /// A request could have gone for so many milliseconds, and none went.
    Gap(u64),
    /// So many were refused although the client heard of all that is used, and all came to the
    /// service in the order of sends.
    Refused(u64),
    /// A waiter waited for so many windows.
    Starved(u64),
    /// A client's heaviest request did not go after all was dropped and two windows were silent.
    NotBack(u64),
    /// A snapshot cannot be true.
    Snapshot(String),
    /// What is left is not what the service says: in tokens, what it is, and what was shown.
    Account(f64, f64),
    /// A weight within the limit was refused.
    Door(u64),
    /// A weight above the limit took a place.
    Accepted(u64),
    /// The retry quota is this, and by the ledger it is that.
    Quota(u64, u64),
    /// So many attempts of one operation, which are too many.
    Attempts(u64),
    /// An operation went on for so many milliseconds after its time was up.
    Late(u64),
    /// So many tokens were let go before they were minted.
    Minted(u64),
    /// Operations were stopped as stalled after so many idle seconds.
    Drought(u64),
    /// So many hundredths were used, less than a law is to use.
    Unused(f64),
    /// So many tokens of the foreground went before a request of background that waits for so many.
    Trickle(u64, u64),
    /// So many tokens of background went before a request of the foreground.
    Overtaken(u64),
    /// So many of 1,000 requests were refused, and so many under the paced law.
    Throttled(u64, u64),
    /// A panic.
    Panic(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped(windows) => write!(f, "stopped {windows} windows before the end"),
            Self::Gap(millis) => write!(f, "gap of {millis} ms"),
            Self::Refused(count) => write!(f, "refused {count}"),
            Self::Starved(windows) => write!(f, "a wait of {windows} windows"),
            Self::NotBack(client) => write!(f, "not all back at client {client}"),
            Self::Snapshot(text) => write!(f, "snapshot: {text}"),
            Self::Account(left, shown) => write!(f, "{left} left, {shown:.1} shown"),
            Self::Door(weight) => write!(f, "weight {weight} refused at the door"),
            Self::Accepted(weight) => write!(f, "weight {weight} took a place"),
            Self::Quota(is, known) => write!(f, "quota of {is}, not {known}"),
            Self::Attempts(count) => write!(f, "{count} attempts"),
            Self::Late(millis) => write!(f, "{millis} ms too late"),
            Self::Minted(tokens) => write!(f, "{tokens} tokens not minted yet"),
            Self::Drought(seconds) => write!(f, "stalled after {seconds} idle seconds"),
            Self::Unused(hundredths) => write!(f, "used {hundredths:.1} %"),
            Self::Trickle(past, asked) => {
                write!(
                    f,
                    "{past} tokens of foreground before {asked} of background"
                )
            }
            Self::Overtaken(tokens) => write!(f, "{tokens} tokens of background before foreground"),
            Self::Throttled(one, other) => write!(f, "{one} of 1,000 refused, {other} paced"),
            Self::Panic(text) => write!(f, "panic: {text}"),
        }
    }
}

impl Fault {
    /// Whether it holds without exception: of the others a few in hundreds of systems are known.
    #[must_use]
    pub const fn is_hard(&self) -> bool {
        !matches!(
            self,
            Self::Gap(_) | Self::Starved(_) | Self::Refused(_) | Self::Account(..)
        )
    }

    /// Returns the name of the promise.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Stopped(_) => "stopped",
            Self::Gap(_) => "gap",
            Self::Refused(_) => "refused",
            Self::Starved(_) => "starved",
            Self::NotBack(_) => "not back",
            Self::Snapshot(_) => "snapshot",
            Self::Account(..) => "account",
            Self::Door(_) => "door",
            Self::Accepted(_) => "accepted",
            Self::Quota(..) => "quota",
            Self::Attempts(_) => "attempts",
            Self::Late(_) => "late",
            Self::Minted(_) => "minted",
            Self::Drought(_) => "drought",
            Self::Unused(_) => "unused",
            Self::Trickle(..) => "trickle",
            Self::Overtaken(_) => "overtaken",
            Self::Throttled(..) => "throttled",
            Self::Panic(_) => "panic",
        }
    }
}

/// What a run came to, by the service's own count.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Played {
    /// The promises broken.
    pub faults: Vec<Fault>,
    /// Requests that arrived.
    pub sent: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// The tokens that were used in the steady part, and that could have been.
    pub used: u64,
    /// See [`used`](Self::used).
    pub offered: u64,
    /// The longest time in milliseconds in which one could have gone and none went.
    pub gap: u64,
    /// The longest wait in line, in milliseconds.
    pub wait: u64,
    /// By how many tokens what a snapshot showed was off when all was answered; the worst.
    pub off: f64,
    /// The refused part under the paced law, where reports cannot be used.
    pub paced: Option<f64>,
}

/// The names of the promises, those that matter most first.
pub(super) const NAMES: [&str; 19] = [
    "panic",
    "stopped",
    "gap",
    "not back",
    "trickle",
    "overtaken",
    "accepted",
    "quota",
    "attempts",
    "late",
    "minted",
    "drought",
    "unused",
    "throttled",
    "refused",
    "door",
    "snapshot",
    "account",
    "starved",
];

impl Played {
    /// Returns the name of the promise that matters most of those broken, empty if none is.
    #[must_use]
    pub fn worst(&self) -> &'static str {
        let has = |name: &&&str| self.faults.iter().any(|fault| fault.name() == **name);
        NAMES.iter().find(has).copied().unwrap_or_default()
    }

    /// Returns the used part of what was offered.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.used as f64 / self.offered.max(1) as f64
    }

    /// Returns the refused part of what was sent.
    #[must_use]
    pub fn throttled(&self) -> f64 {
        self.refused as f64 / self.sent.max(1) as f64
    }

    pub(super) fn fault(&mut self, fault: Fault) {
        let is_known = self.faults.iter().any(|known| known.name() == fault.name());
        if !is_known {
            self.faults.push(fault);
        }
    }
}

/// Returns whether a larger part of the requests was refused than under the paced law, by more than
/// a point and what chance explains.
pub(super) fn is_throttled_more(played: &Played, paced: &Played) -> bool {
    let share = paced.throttled();
    let chance = (share * (1.0 - share) / played.sent.min(paced.sent).max(1) as f64).sqrt();
    played.throttled() > share + bounds::MORE + bounds::CHANCE * chance
}

/// Returns the window that a limiter may take the system's for: one that is not told may be a
/// minute.
fn believed(system: &System) -> u64 {
    let window = system.window_nanos();
    if system.tells_window() {
        window
    } else {
        window.max(60 * SECOND)
    }
}

/// Returns the longest time in which a request may not go although it could.
pub(super) fn longest_gap(system: &System) -> u64 {
    bounds::GAP_WINDOWS * believed(system) + 2 * system.longest_trip() + bounds::GAP_SLACK * MILLI
}

/// Returns the longest time after which all is back. A window that is not told may be taken for a
/// longer one until it is learned.
pub(super) fn longest_return(system: &System) -> u64 {
    if system.tells_window() {
        longest_gap(system)
    } else {
        bounds::UNTOLD_TIMES * longest_gap(system) + bounds::UNTOLD_SLACK * MILLI
    }
}

/// Returns when a limiter has stopped for good. A window that is not told may be taken for a longer
/// one.
pub(super) fn stopped(system: &System) -> u64 {
    let windows = bounds::STOP_WINDOWS * system.window_nanos();
    let least = windows.max(bounds::STOP_LEAST * MILLI);
    least.max(longest_gap(system))
}

/// Returns the longest wait of a request with `ahead` tokens before it, itself included.
pub(super) fn longest_wait(system: &System, ahead: u64, limit: u64) -> u64 {
    let windows = ahead.div_ceil(limit.max(1)) * bounds::STARVE_TIMES + bounds::STARVE_WINDOWS;
    let knocks = if system.unusable > 0 || matches!(system.law, 2 | 4 | 5) {
        let times = if system.amnesia > 0 && system.clients > 1 {
            bounds::STARVE_AMNESIA
        } else {
            1
        };
        bounds::STARVE_KNOCKS * times
    } else {
        0
    };
    windows * believed(system) + (bounds::FIRST_CONTACT + knocks) * MILLI
}

/// Returns the highest rate that is plausible, in tokens per second.
pub(super) fn highest_rate(limit: u64) -> f64 {
    limit as f64 * SECOND as f64 / bounds::FASTEST as f64
}

/// Returns by how many tokens what is left may be off when all is answered.
pub(super) fn longest_off(system: &System, limit: u64) -> f64 {
    let limit = limit as f64;
    let trip = system.longest_trip() as f64 / system.window_nanos() as f64;
    bounds::ACCOUNT_TOKENS + limit * (bounds::ACCOUNT_PART + trip)
}
