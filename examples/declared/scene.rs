//! The scenes: services that declare a limit, and their clients.

use paceline::law::Dimension;

use crate::policer::Counting as Policer;
use crate::time::SECOND;

/// How the headers say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// The reset as a span with milliseconds (`6m0s`, `120ms`).
    Span,
    /// As `Span`, with the window.
    Told,
    /// The reset in whole seconds, and no window.
    Seconds,
    /// The reset as a time to the second, of a limit that is known to refill: Anthropic.
    Stamp,
    /// The reset in whole seconds, with the window: `RateLimit` and `RateLimit-Policy`.
    Ietf,
    /// The reset as seconds since 1970, beside a `Date`: GitHub.
    Epoch,
    /// As `Ietf`, under seven names in turn.
    Renamed,
    /// What was used and the window, and no reset: Binance.
    Used,
    /// Nothing.
    Silent,
}

/// What is wrong with the reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// A third of the responses has no headers.
    Missing,
    /// They say 1.2 times what is left.
    Factor,
    /// They say a fifth of the limit more than is left, until this second.
    More(u64),
    /// They are off by up to 3 % of the limit, either way.
    Noise,
    /// They are three seconds old.
    Lag,
    /// There is another limit of so many in ten seconds, which they do not say.
    Untold(u64),
    /// The same, and its refusals do not say when to come back.
    Unhinted(u64),
    /// From half time on there are none, and refusals do not say when to come back.
    End,
    /// Refused requests count as well.
    Refused,
}

/// One scene.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) policer: Policer,
    pub(crate) style: Style,
    pub(crate) fault: Fault,
    /// From which second on which limit holds.
    pub(crate) limit: &'static [(u64, u64)],
    /// Seconds.
    pub(crate) window: u64,
    pub(crate) windows: u64,
    pub(crate) clients: u32,
    /// Workers of each client.
    pub(crate) workers: u32,
    /// Operations per second of each client that do not wait for earlier ones, instead of workers.
    pub(crate) open: u64,
    /// Requests a minute of each client that someone waits for, beside the workers. Only
    /// their waits are counted then, once all is steady.
    pub(crate) people: u64,
    /// Seconds from one client's start to the next one's.
    pub(crate) stagger: u64,
    /// Nine tenths of the round trips lie between these, in milliseconds.
    pub(crate) trip: (u64, u64),
    /// Whether each further client is twice as far away.
    pub(crate) far: bool,
    /// The least and the largest weight; they are spread evenly.
    pub(crate) least: u32,
    pub(crate) weight: u32,
    /// How many of the clients stop at half time.
    pub(crate) leave: u32,
    /// The first client has only so many workers, if any.
    pub(crate) small: u32,
}

const API: Scene = Scene {
    name: "",
    what: "",
    policer: Policer::Refill,
    style: Style::Span,
    fault: Fault::None,
    limit: &[(0, 600)],
    window: 60,
    windows: 20,
    clients: 1,
    workers: 32,
    open: 0,
    people: 0,
    stagger: 0,
    trip: (50, 2_000),
    far: false,
    least: 1,
    weight: 1,
    leave: 0,
    small: 0,
};

const FOUR: Scene = Scene { clients: 4, ..API };

/// Fixed windows, resets as seconds since 1970; the clients' clocks are two hours off.
#[rustfmt::skip]
const GITHUB: Scene = Scene { policer: Policer::Window, style: Style::Epoch, ..API };
#[rustfmt::skip]
const HOUR: Scene = Scene { window: 3_600, windows: 6, limit: &[(0, 5_000)], ..GITHUB };
#[rustfmt::skip]
const IETF: Scene = Scene { policer: Policer::Window, style: Style::Ietf, ..API };
#[rustfmt::skip]
const LLM: Scene = Scene { limit: &[(0, 500)], workers: 128, trip: (1_000, 20_000), ..API };
/// Windows that are as short as a few round trips.
#[rustfmt::skip]
const SHORT: Scene = Scene { policer: Policer::Window, windows: 300, window: 1, workers: 16, trip: (30, 90), ..API };
#[rustfmt::skip]
const ANTHROPIC: Scene = Scene { style: Style::Stamp, limit: &[(0, 50)], trip: (1_000, 10_000), ..API };

const SIXTY: &[(u64, u64)] = &[(0, 60)];
const HALVED: &[(u64, u64)] = &[(0, 600), (600, 300)];
const DOUBLED: &[(u64, u64)] = &[(0, 300), (600, 600)];

/// All of them.
#[rustfmt::skip]
pub(crate) const SCENES: &[Scene] = &[
    Scene { name: "a4", what: "model, 500/min, trips 1 to 20 s", ..LLM },
    Scene { name: "a6", what: "the same, four clients", clients: 4, workers: 32, ..LLM },
    Scene { name: "a7", what: "refill of 600/min", ..API },
    Scene { name: "a8", what: "the same, four clients", ..FOUR },
    Scene { name: "a9", what: "four clients, one every 120 s", stagger: 120, ..FOUR },
    Scene { name: "b1", what: "5,000 an hour", ..HOUR },
    Scene { name: "b2", what: "the same, four clients", clients: 4, ..HOUR },
    Scene { name: "b3", what: "window of 60/min", limit: SIXTY, ..GITHUB },
    Scene { name: "b4", what: "the same, four clients", limit: SIXTY, clients: 4, ..GITHUB },
    Scene { name: "b5", what: "window of 600/min", ..GITHUB },
    Scene { name: "b6", what: "the same, four clients", clients: 4, ..GITHUB },
    Scene { name: "b7", what: "6,000/min, 128 workers, 50 ms", limit: &[(0, 6_000)], workers: 128, trip: (40, 60), ..GITHUB },
    Scene { name: "b8", what: "the same, four clients", limit: &[(0, 6_000)], workers: 128, trip: (40, 60), clients: 4, ..GITHUB },
    Scene { name: "c1", what: "weights 1 to 50, 6,000/min", style: Style::Used, limit: &[(0, 6_000)], weight: 50, ..GITHUB },
    Scene { name: "c2", what: "the same, four clients", style: Style::Used, limit: &[(0, 6_000)], weight: 50, clients: 4, ..GITHUB },
    Scene { name: "c3", what: "100 each, 6,000/min, four clients", limit: &[(0, 6_000)], least: 100, weight: 100, clients: 4, ..GITHUB },
    Scene { name: "d1", what: "IETF, window of 600/min", ..IETF },
    Scene { name: "d2", what: "the same, four clients", clients: 4, ..IETF },
    Scene { name: "d3", what: "twice as much is asked for", open: 20, ..IETF },
    Scene { name: "d4", what: "IETF, refill of 600/min", policer: Policer::Refill, ..IETF },
    Scene { name: "e1", what: "refill, halved", limit: HALVED, ..API },
    Scene { name: "e2", what: "refill, doubled", limit: DOUBLED, ..API },
    Scene { name: "e3", what: "window, halved", limit: HALVED, ..IETF },
    Scene { name: "e4", what: "window, doubled", limit: DOUBLED, ..IETF },
    Scene { name: "e6", what: "window, headers missing on a third", fault: Fault::Missing, ..IETF },
    Scene { name: "e7", what: "refill, four clients, missing on a third", fault: Fault::Missing, ..FOUR },
    Scene { name: "e8", what: "window, 1.2 times what is left", fault: Fault::Factor, ..IETF },
    Scene { name: "e9", what: "window, a fifth of the limit too much", fault: Fault::More(u64::MAX), ..IETF },
    Scene { name: "ea", what: "refill, 1.2 times what is left", fault: Fault::Factor, ..API },
    Scene { name: "eb", what: "refill, a fifth of the limit too much", fault: Fault::More(u64::MAX), ..API },
    Scene { name: "ec", what: "window of 60/min, a fifth too much at first", limit: SIXTY, fault: Fault::More(600), workers: 8, windows: 300, ..IETF },
    Scene { name: "ed", what: "window, four clients, a fifth too much", fault: Fault::More(u64::MAX), clients: 4, ..IETF },
    Scene { name: "ee", what: "window, refused requests count", fault: Fault::Refused, ..IETF },
    Scene { name: "ef", what: "window, halved when headers end", limit: HALVED, fault: Fault::End, ..IETF },
    Scene { name: "f1", what: "refill, three of four leave", leave: 3, ..FOUR },
    Scene { name: "f2", what: "window, three of four leave", leave: 3, clients: 4, ..IETF },
    Scene { name: "f3", what: "refill, trips x1, 2, 4, 8", far: true, ..FOUR },
    Scene { name: "f4", what: "window, trips x1, 2, 4, 8", far: true, clients: 4, ..IETF },
    Scene { name: "f5", what: "refill without headers", style: Style::Silent, ..API },
    Scene { name: "f6", what: "window without headers", style: Style::Silent, ..IETF },
    Scene { name: "f7", what: "window halved, four clients", limit: HALVED, clients: 4, ..IETF },
    Scene { name: "f8", what: "model, 120/min, four clients", limit: &[(0, 120)], clients: 4, workers: 32, ..LLM },
    Scene { name: "g1", what: "60/min, 128 workers", limit: SIXTY, workers: 128, ..GITHUB },
    Scene { name: "g2", what: "refill of 10/min", limit: &[(0, 10)], ..API },
    Scene { name: "g3", what: "the same, four clients", limit: &[(0, 10)], ..FOUR },
    Scene { name: "g4", what: "refill of 60/min, four clients", limit: SIXTY, ..FOUR },
    Scene { name: "g5", what: "IETF refill, four clients", policer: Policer::Refill, clients: 4, ..IETF },
    Scene { name: "g6", what: "window, one client more every 130 s", stagger: 130, clients: 4, ..IETF },
    Scene { name: "g7", what: "window, four clients, one wants less", small: 2, clients: 4, ..IETF },
    Scene { name: "g8", what: "refill, four clients, one wants less", small: 2, ..FOUR },
    Scene { name: "g9", what: "window of 10/min, four clients", limit: &[(0, 10)], clients: 4, ..IETF },
    Scene { name: "gb", what: "window, four clients, missing on a third", fault: Fault::Missing, clients: 4, ..IETF },
    Scene { name: "h1", what: "refill, 110 in 10 s untold", fault: Fault::Untold(110), ..API },
    Scene { name: "h2", what: "the same, four clients", fault: Fault::Untold(110), ..FOUR },
    Scene { name: "h3", what: "window, four clients, 110 in 10 s untold", fault: Fault::Untold(110), clients: 4, ..IETF },
    Scene { name: "h4", what: "refill, four clients, noise of 3 %", fault: Fault::Noise, ..FOUR },
    Scene { name: "h5", what: "window, four clients, noise of 3 %", fault: Fault::Noise, clients: 4, ..IETF },
    Scene { name: "h6", what: "window, noise of 3 %", fault: Fault::Noise, ..IETF },
    Scene { name: "h7", what: "refill, four clients, three seconds old", fault: Fault::Lag, ..FOUR },
    Scene { name: "h8", what: "window, four clients, three seconds old", fault: Fault::Lag, clients: 4, ..IETF },
    Scene { name: "h9", what: "window, three seconds old", fault: Fault::Lag, ..IETF },
    Scene { name: "ha", what: "sliding window of 600/min", policer: Policer::Sliding, ..API },
    Scene { name: "hb", what: "the same, four clients", policer: Policer::Sliding, ..FOUR },
    Scene { name: "hc", what: "refill of 6,000/min, 100 in 10 s untold", limit: &[(0, 6_000)], fault: Fault::Untold(100), ..API },
    Scene { name: "hd", what: "the same, with no time to come back at", limit: &[(0, 6_000)], fault: Fault::Unhinted(100), ..API },
    Scene { name: "k2", what: "refill of 6,000/min, fifty clients", limit: &[(0, 6_000)], clients: 50, workers: 8, ..API },
    Scene { name: "k3", what: "window of 6,000/min, fifty clients", limit: &[(0, 6_000)], clients: 50, workers: 8, ..GITHUB },
    Scene { name: "k4", what: "window of 600/min, twenty clients", clients: 20, workers: 8, ..GITHUB },
    Scene { name: "m1", what: "window of 6/s, resets to the second", style: Style::Ietf, limit: &[(0, 6)], ..SHORT },
    Scene { name: "m2", what: "window of 10/s, resets to the second", style: Style::Ietf, limit: &[(0, 10)], ..SHORT },
    Scene { name: "m3", what: "window of 5 in 5 s, which is not told", limit: &[(0, 5)], window: 5, ..SHORT },
    Scene { name: "m4", what: "the same, told", style: Style::Told, limit: &[(0, 5)], window: 5, ..SHORT },
    Scene { name: "m5", what: "refill, resets to the second, no window told", style: Style::Seconds, ..API },
    Scene { name: "m6", what: "refill of 50/min, resets as dates", ..ANTHROPIC },
    Scene { name: "m7", what: "the same, four clients", clients: 4, ..ANTHROPIC },
    Scene { name: "m8", what: "50,000 each of a refill of 60,000/min", limit: &[(0, 60_000)], least: 50_000, weight: 50_000, workers: 4, windows: 100, ..API },
    Scene { name: "m9", what: "window of 300/min, seven names in turn", style: Style::Renamed, limit: &[(0, 300)], ..IETF },
    Scene { name: "p1", what: "window, people ask for 240/min beside 64 workers", people: 240, workers: 64, ..GITHUB },
    Scene { name: "p2", what: "the same, four clients", people: 60, workers: 16, clients: 4, ..GITHUB },
    Scene { name: "p3", what: "refill, people ask for 240/min beside 64 workers", people: 240, workers: 64, ..API },
    Scene { name: "p4", what: "sliding window, people ask for 240/min", policer: Policer::Sliding, people: 240, workers: 64, ..API },
];

impl Scene {
    pub(crate) fn limit_at(&self, now: u64) -> u64 {
        let mut past = self.limit.iter().rev();
        let past = past.find(|(from, _)| from * SECOND <= now);
        past.map_or(0, |(_, limit)| *limit)
    }

    /// Returns what is counted.
    pub(crate) const fn dimension(&self) -> Dimension {
        match self.weight {
            0..=1 => Dimension::Requests,
            _ => Dimension::Tokens,
        }
    }

    pub(crate) fn window_nanos(&self) -> u64 {
        self.window * SECOND
    }

    pub(crate) fn end(&self) -> u64 {
        self.windows * self.window_nanos()
    }

    /// From here on a run counts as steady: two windows after its start, or after all have begun.
    pub(crate) fn steady(&self) -> u64 {
        let begun = u64::from(self.clients - 1) * self.stagger * SECOND;
        let from = 2 * self.window_nanos() + begun;
        from.div_ceil(self.window_nanos()) * self.window_nanos()
    }
}
