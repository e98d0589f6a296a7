//! What a scene is: a service, its clients, and who asks for what.

use crate::policer::Counting;
use crate::time::SECOND;

/// What the clients know of the limit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Known {
    /// Nothing: the paced law learns it.
    Learned,
    /// All: a fixed rate.
    Fixed,
    /// What the service declares, spent evenly or fast.
    Even,
    Fast,
}

/// How the foreground comes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Comes {
    /// Two seconds on and two off in the mean, one by one.
    Bursts,
    /// One by one.
    Steadily,
    /// So many at once.
    Clumps(u64),
}

/// One scene.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene {
    pub(crate) name: &'static str,
    pub(crate) counting: Counting,
    /// Seconds. The limit is one of so many.
    pub(crate) window: u64,
    /// What a bucket holds, if not a window's worth.
    pub(crate) burst: Option<u64>,
    pub(crate) limit: u64,
    pub(crate) known: Known,
    pub(crate) clients: usize,
    /// The workers of each client that go on without end, as background.
    pub(crate) workers: usize,
    pub(crate) comes: Comes,
    /// What the foreground asks for while it comes, in hundredths of the limit.
    pub(crate) percent: u64,
    /// The greatest weight of a request.
    pub(crate) heaviest: u64,
    /// The weight of each request of the background, if that is another one.
    pub(crate) background: Option<u32>,
    pub(crate) seconds: u64,
}

const USUAL: Scene = Scene {
    name: "100/s, learned",
    counting: Counting::Refill,
    window: 1,
    burst: None,
    limit: 100,
    known: Known::Learned,
    clients: 1,
    workers: 64,
    comes: Comes::Bursts,
    percent: 40,
    heaviest: 1,
    background: None,
    seconds: 600,
};

const DECLARED: Scene = Scene {
    name: "window 600/min, Even",
    counting: Counting::Window,
    window: 60,
    limit: 600,
    known: Known::Even,
    seconds: 1_800,
    ..USUAL
};

/// All of them.
#[rustfmt::skip]
pub(crate) const SCENES: &[Scene] = &[
    Scene { name: "1/s, learned", burst: Some(2), limit: 1, workers: 8, seconds: 7_200, ..USUAL },
    Scene { name: "10/s, learned", limit: 10, seconds: 1_800, ..USUAL },
    USUAL,
    Scene { name: "10,000/s, learned", limit: 10_000, workers: 1_024, seconds: 90, ..USUAL },
    Scene { name: "100/s, fixed", known: Known::Fixed, ..USUAL },
    Scene { name: "weights to 50, 2,000/s", limit: 2_000, heaviest: 50, ..USUAL },
    Scene { name: "foreground 95 %", comes: Comes::Steadily, percent: 95, seconds: 3_600, ..USUAL },
    Scene { name: "foreground 110 %", comes: Comes::Steadily, percent: 110, seconds: 120, ..USUAL },
    Scene { name: "50 at once", comes: Comes::Clumps(50), ..USUAL },
    Scene { name: "ten clients, 1,000/s", limit: 1_000, clients: 10, seconds: 300, ..USUAL },
    DECLARED,
    Scene { name: "window 600/min, Fast", known: Known::Fast, ..DECLARED },
    Scene { name: "window, 50 at once", known: Known::Fast, comes: Comes::Clumps(50), ..DECLARED },
    Scene { name: "window 60/min, 10 at once", known: Known::Fast, limit: 60, comes: Comes::Clumps(10), seconds: 7_200, ..DECLARED },
    Scene { name: "window, ten clients", known: Known::Fast, clients: 10, workers: 8, ..DECLARED },
    Scene { name: "refill 600/min, Even", counting: Counting::Refill, ..DECLARED },
    Scene { name: "refill 600/min, Fast", counting: Counting::Refill, known: Known::Fast, ..DECLARED },
    Scene { name: "refill, 50 at once", counting: Counting::Refill, known: Known::Fast, comes: Comes::Clumps(50), ..DECLARED },
    Scene { name: "50 tokens beside 50,000, of 200,000/min", counting: Counting::Refill, known: Known::Fast, limit: 200_000, workers: 8, percent: 10, heaviest: 99, background: Some(50_000), ..DECLARED },
];

impl Scene {
    /// Returns the nanoseconds that a token takes at the limit.
    pub(crate) fn token(&self) -> u64 {
        self.window * SECOND / self.limit
    }

    /// Returns whether the service declares its limit.
    pub(crate) const fn declares(&self) -> bool {
        matches!(self.known, Known::Even | Known::Fast)
    }
}
