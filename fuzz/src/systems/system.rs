//! A system as a list of numbers, which can be printed, read again and made smaller.

use core::{fmt, str::FromStr};

macro_rules! system {
    ($($(#[doc = $doc:literal])+ $name:ident: $plain:literal,)+) => {
        /// A whole system, as plain numbers. Times are in milliseconds unless stated.
        ///
        /// `Display` prints what differs from the plain system, and `FromStr` reads that again.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct System {
            $($(#[doc = $doc])+ pub $name: u64,)+
        }

        impl System {
            /// The names of the numbers.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),+];
            /// The numbers of the plain system, in the order of [`NAMES`](Self::NAMES).
            pub const PLAIN: &'static [u64] = &[$($plain),+];

            /// Returns the number called `name`.
            pub fn number(&mut self, name: &str) -> Option<&mut u64> {
                match name {
                    $(stringify!($name) => Some(&mut self.$name),)+
                    _ => None,
                }
            }

            fn numbers(&self) -> [u64; Self::NAMES.len()] {
                [$(self.$name),+]
            }
        }

        impl Default for System {
            /// The plain system: one worker at a limit that is told in full, and no trouble.
            fn default() -> Self {
                Self { $($name: $plain),+ }
            }
        }
    };
}

system! {
    /// The seed of all chance in the run.
    seed: 0,
    /// 0: clients of one service, 1: sets over two limits, 2: tenants under a limit that they
    /// share, 3: operations of a strategy, 4: a pool whose members are the clients.
    shape: 0,
    /// The law: 0 declared, 1 a fixed rate, 2 paced, 3 published, 4 and 5 the presets for a shared
    /// and an exclusive limit, 6 in bulk, of operations only.
    law: 0,
    /// 0: a window, 1: a refill, 2: a sliding window.
    kind: 0,
    /// The window.
    window: 10_000,
    /// How far into a window the run begins.
    phase: 0,
    /// The limit, in tokens.
    limit: 10,
    /// Of a set: the window and the limit of its other limits.
    window2: 10_000,
    /// See `window2`.
    limit2: 10,
    /// The nodes of the service, which count apart.
    nodes: 1,
    /// What a response says: 0 a report, else the headers of a family (`told.rs`).
    family: 0,
    /// How long the run lasts.
    run: 900_000,
    /// The clients, each with a limiter.
    clients: 1,
    /// The workers of each client.
    workers: 1,
    /// How many of them are background.
    background: 0,
    /// A round trip, in microseconds.
    trip: 100_000,
    /// By how much a trip may be longer, in hundredths of it.
    spread: 0,
    /// How long a worker pauses between requests, in microseconds, at most.
    pause: 0,
    /// The weight of most requests.
    light: 1,
    /// The weight of the heaviest request.
    heavy: 1,
    /// How many of 1,000 requests are heavy.
    heavies: 0,
    /// 1: the window is not told.
    no_window: 0,
    /// 1: the kind is not told.
    no_kind: 0,
    /// The reset: 0 in whole seconds, 1 in milliseconds, 2 as a time in whole seconds.
    reset: 0,
    /// How many of 1,000 responses carry no report.
    lost: 0,
    /// By how much a report is old.
    late: 0,
    /// By how many hundredths of the limit a report says too much.
    over: 0,
    /// 1: refusals do not say how long to wait.
    no_hint: 0,
    /// How many of 1,000 requests are first tried with twice the limit, which can never go.
    above: 0,
    /// How many of 1,000 places are forgotten.
    forget: 0,
    /// How many of 1,000 places are given up in line.
    cancel: 0,
    /// The time between two tries of a poller; 0 for none.
    polls: 0,
    /// The weight of such a try.
    poll_weight: 1,
    /// The time between two tries of a set whose other limit refuses; 0 for none.
    sets: 0,
    /// The weight of such a try.
    set_weight: 1,
    /// 1: the limit that refuses stands first in the set.
    set_order: 0,
    /// The true cost: 0 is the weight, 1 is charged on arrival, 2 is settled at the end.
    cost: 0,
    /// The least true cost, in hundredths of the weight.
    cost_low: 100,
    /// The highest true cost, in hundredths of the weight.
    cost_high: 100,
    /// A settlement comes 0 before the report, 1 after it, 2 either way.
    settle: 0,
    /// By how much it comes later than the response, at most.
    settle_late: 0,
    /// The time after which all waiters of a busy tenant give up, and ask again; of operations the
    /// idle time. 0 for none.
    patience: 0,
    /// For how long before each idle time of operations all is throttled.
    outage: 0,
    /// Of operations: how many of 1,000 are given up in line.
    leave: 0,
    /// Of operations: how many of 1,000 requests are carried out and never answered.
    silent: 0,
    /// Of operations: the time that each has; 0 for no end.
    deadline: 0,
    /// Of operations: the longest wait for a turn; 0 for no end.
    max_wait: 0,
    /// Of operations: the time between two restarts of the client, which forgets all; 0 for none.
    crash: 0,
    /// The time between two restarts of the service, after which all is whole; 0 for none.
    restart: 0,
    /// The time between two changes of the limit; 0 for none.
    change: 0,
    /// The other limit, in hundredths of the limit.
    change_to: 100,
    /// The time between two jumps of clocks; 0 for none.
    jump: 0,
    /// By how much a client's clock jumps ahead.
    jump_by: 0,
    /// How a report is none that can be used (`told.rs`); 0 if it can be.
    unusable: 0,
    /// The time between two calls that forget what was learned, or change the settings; 0 for none.
    amnesia: 0,
}

/// A text that describes no system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError(String);

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a number of a system: {}", self.0)
    }
}

impl core::error::Error for ParseError {}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = Self::NAMES.iter().zip(self.numbers()).zip(Self::PLAIN);
        let mut is_first = true;
        for ((name, number), plain) in all {
            if number != *plain {
                let space = if is_first { "" } else { " " };
                write!(f, "{space}{name}={number}")?;
                is_first = false;
            }
        }
        Ok(())
    }
}

impl FromStr for System {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut system = Self::default();
        for part in text.split_whitespace() {
            let error = || ParseError(part.to_owned());
            let (name, number) = part.split_once('=').ok_or_else(error)?;
            let number = number.parse().map_err(|_| error())?;
            *system.number(name).ok_or_else(error)? = number;
        }
        Ok(system)
    }
}

impl System {
    /// Returns the window in nanoseconds.
    pub(super) fn window_nanos(&self) -> u64 {
        self.window * super::MILLI
    }

    /// Whether responses say how long the window is, or what makes it known.
    pub(super) const fn tells_window(&self) -> bool {
        match self.family {
            0 => self.no_window + self.unusable == 0,
            1 | 8 | 9 | 10 => true,
            _ => false,
        }
    }

    /// Returns how much the bucket of a fixed rate holds, as a time.
    pub(super) fn burst(window: u64) -> u64 {
        (window / 2).clamp(1, 10_000)
    }

    /// Returns the longest round trip in nanoseconds.
    pub(super) fn longest_trip(&self) -> u64 {
        self.trip * 10 * (100 + self.spread)
    }

    /// Returns how exactly resets are told, in nanoseconds.
    pub(super) const fn rounding(&self) -> u64 {
        if self.reset == 1 {
            super::MILLI
        } else {
            super::SECOND
        }
    }

    /// Whether one client hears of everything that is used, as it is, and knows costs beforehand.
    pub(super) fn is_exact(&self) -> bool {
        self.cost == 0 && self.is_told()
    }

    /// Whether all that is used is what one client hears of: a cost that is settled after its
    /// report is in it already.
    pub(super) fn is_counted(&self) -> bool {
        self.is_told() && (self.cost == 0 || (self.cost == 1 && self.settle == 1))
    }

    fn is_told(&self) -> bool {
        let trouble = [
            self.lost,
            self.late,
            self.over,
            self.restart,
            self.change,
            self.jump,
        ];
        self.clients == 1
            && self.nodes == 1
            && self.family + self.no_window + self.no_kind + self.unusable + self.amnesia == 0
            && self.kind < 2
            && self.law < 2
            && trouble == [0; 6]
    }
}
