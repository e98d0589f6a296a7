//! What a scene is: a service, its clients, and who asks for what.

pub(crate) const MILLI: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000 * MILLI;
const MINUTE: u64 = 60 * SECOND;

/// How the service counts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Policer {
    /// The limit is one of a second, and a bucket holds so many.
    Bucket(u64),
    /// The limit is one of so many nanoseconds, comes back at once, and is declared.
    Window(u64),
    /// It comes back all the time, and is declared.
    Refill(u64),
}

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
    pub(crate) policer: Policer,
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
    policer: Policer::Bucket(100),
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
    policer: Policer::Window(MINUTE),
    limit: 600,
    known: Known::Even,
    seconds: 1_800,
    ..USUAL
};

/// All of them.
pub(crate) const SCENES: &[Scene] = &[
    Scene {
        name: "1/s, learned",
        policer: Policer::Bucket(2),
        limit: 1,
        workers: 8,
        seconds: 7_200,
        ..USUAL
    },
    Scene {
        name: "10/s, learned",
        policer: Policer::Bucket(10),
        limit: 10,
        seconds: 1_800,
        ..USUAL
    },
    USUAL,
    Scene {
        name: "10,000/s, learned",
        policer: Policer::Bucket(10_000),
        limit: 10_000,
        workers: 1_024,
        seconds: 90,
        ..USUAL
    },
    Scene {
        name: "100/s, fixed",
        known: Known::Fixed,
        ..USUAL
    },
    Scene {
        name: "weights to 50, 2,000/s",
        policer: Policer::Bucket(2_000),
        limit: 2_000,
        heaviest: 50,
        ..USUAL
    },
    Scene {
        name: "foreground 95 %",
        comes: Comes::Steadily,
        percent: 95,
        seconds: 3_600,
        ..USUAL
    },
    Scene {
        name: "foreground 110 %",
        comes: Comes::Steadily,
        percent: 110,
        seconds: 120,
        ..USUAL
    },
    Scene {
        name: "50 at once",
        comes: Comes::Clumps(50),
        ..USUAL
    },
    Scene {
        name: "ten clients, 1,000/s",
        policer: Policer::Bucket(1_000),
        limit: 1_000,
        clients: 10,
        seconds: 300,
        ..USUAL
    },
    DECLARED,
    Scene {
        name: "window 600/min, Fast",
        known: Known::Fast,
        ..DECLARED
    },
    Scene {
        name: "window, 50 at once",
        known: Known::Fast,
        comes: Comes::Clumps(50),
        ..DECLARED
    },
    Scene {
        name: "window 60/min, 10 at once",
        known: Known::Fast,
        limit: 60,
        comes: Comes::Clumps(10),
        seconds: 7_200,
        ..DECLARED
    },
    Scene {
        name: "window, ten clients",
        known: Known::Fast,
        clients: 10,
        workers: 8,
        ..DECLARED
    },
    Scene {
        name: "refill 600/min, Even",
        policer: Policer::Refill(MINUTE),
        ..DECLARED
    },
    Scene {
        name: "refill 600/min, Fast",
        policer: Policer::Refill(MINUTE),
        known: Known::Fast,
        ..DECLARED
    },
    Scene {
        name: "refill, 50 at once",
        policer: Policer::Refill(MINUTE),
        known: Known::Fast,
        comes: Comes::Clumps(50),
        ..DECLARED
    },
    Scene {
        name: "50 tokens beside 50,000, of 200,000/min",
        policer: Policer::Refill(MINUTE),
        known: Known::Fast,
        limit: 200_000,
        workers: 8,
        percent: 10,
        heaviest: 99,
        background: Some(50_000),
        ..DECLARED
    },
];

impl Scene {
    /// Returns the nanoseconds that a token takes at the limit.
    pub(crate) fn token(&self) -> u64 {
        let span = match self.policer {
            Policer::Bucket(_) => SECOND,
            Policer::Window(window) | Policer::Refill(window) => window,
        };
        span / self.limit
    }
}
