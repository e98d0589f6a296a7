//! What is played: who wants how much, and what happens to them and to the engine.

use crate::Away;

/// What each member would send, in requests per second.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Want {
    /// All alike.
    Even(u64),
    /// The first wants so much, the second a half of it, the third a third.
    Zipf(u64),
    /// One in ten wants so much, the others nothing but a request in ten seconds.
    Few(u64),
}

/// How a member reaches the engine, and how much it asks for at once. All in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) trip: u64,
    /// Each way takes up to so much more.
    pub(crate) jitter: u64,
    pub(crate) lease: u64,
}

const PLAIN: Kind = Kind {
    trip: 0,
    jitter: 0,
    lease: 200,
};

/// What happens, and when in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// The engine is away.
    Outage { from: u64, to: u64 },
    /// It is away, and comes back with nothing in it.
    Forgetful { from: u64, to: u64 },
    /// It is away, and a replica takes over that has not heard of the last second.
    FailOver { from: u64, to: u64 },
    /// Answers come after the members' patience.
    Slow { from: u64, to: u64 },
    /// So many members are replaced in each second, every second one of them without a word.
    Churn { from: u64, to: u64, each: u64 },
    /// What the service gives becomes so much of the allowance, in percent.
    Limit { from: u64, percent: u64 },
    /// One more member cannot reach the engine, each so many milliseconds after the last one. In
    /// the same order they come back.
    CutOff { from: u64, to: u64, each: u64 },
    /// All members but the first so many end without a word.
    KillAllBut { from: u64, left: usize },
    /// One more member is replaced by one with this lease, each so many milliseconds after the last
    /// one.
    Lease { from: u64, each: u64, lease: u64 },
}

/// A scene.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene {
    pub(crate) name: &'static str,
    /// How long it is, in seconds.
    pub(crate) length: u64,
    pub(crate) members: usize,
    /// Requests per second.
    pub(crate) allowance: u32,
    pub(crate) want: Want,
    /// What each member is like.
    pub(crate) kind: fn(usize) -> Kind,
    pub(crate) away: Away,
    pub(crate) events: &'static [Event],
    /// How many allowances may be sent: two where some members are cut off and others are not.
    pub(crate) allowances: f64,
    /// The least of the allowance, or of the limit, that has to be used after the warm-up; and in
    /// its worst second.
    pub(crate) used: f64,
    pub(crate) worst: f64,
    /// The least that the worst served member gets of its fair part.
    pub(crate) fair: f64,
    /// For how many seconds on end less than 95 % may be used, and the most steps of the engine in
    /// a second.
    pub(crate) back: usize,
    pub(crate) steps: u64,
    /// For how many milliseconds the first request of a member may wait.
    pub(crate) first: u64,
}

impl Scene {
    pub(crate) fn has_churn(&self) -> bool {
        let churns = |event: &Event| matches!(event, Event::Churn { .. });
        self.events.iter().any(churns)
    }

    pub(crate) fn has_replica(&self) -> bool {
        let fails_over = |event: &Event| matches!(event, Event::FailOver { .. });
        self.events.iter().any(fails_over)
    }
}

const fn scene(name: &'static str, members: usize, allowance: u32, want: Want) -> Scene {
    Scene {
        name,
        length: 16,
        members,
        allowance,
        want,
        kind: |_| PLAIN,
        away: Away::Closed,
        events: &[],
        allowances: 1.0,
        used: 0.97,
        worst: 0.9,
        fair: 0.9,
        back: usize::MAX,
        steps: u64::MAX,
        first: u64::MAX,
    }
}

/// All scenes. Members join in the first second.
pub(crate) const SCENES: &[Scene] = &[
    scene("even", 16, 2_000, Want::Even(500)),
    scene("thousand", 1_000, 20_000, Want::Even(50)),
    scene("thousand-scarce", 1_000, 500, Want::Even(2)),
    scene("uneven", 100, 2_000, Want::Zipf(1_500)),
    Scene {
        fair: 0.85,
        ..scene("thousand-uneven", 1_000, 20_000, Want::Zipf(8_000))
    },
    Scene {
        fair: 0.85,
        ..scene("mostly-idle", 1_000, 10_000, Want::Few(200))
    },
    Scene {
        events: &[Event::Churn {
            from: 4,
            to: 14,
            each: 50,
        }],
        used: 0.9,
        worst: 0.8,
        fair: 0.0, // the members change all the time
        ..scene("churn", 1_000, 20_000, Want::Even(50))
    },
    Scene {
        events: &[Event::Outage { from: 7, to: 12 }],
        away: Away::Alone,
        worst: 0.6,
        ..scene("outage", 50, 2_000, Want::Even(80))
    },
    Scene {
        events: &[Event::Outage { from: 7, to: 12 }],
        away: Away::Alone,
        worst: 0.6,
        ..scene("thousand-outage", 1_000, 20_000, Want::Even(50))
    },
    Scene {
        events: &[Event::Outage { from: 7, to: 12 }],
        used: 0.5,
        worst: 0.0,
        fair: 0.5,
        ..scene("closed-outage", 50, 2_000, Want::Even(80))
    },
    Scene {
        events: &[Event::Forgetful { from: 7, to: 8 }],
        away: Away::Alone,
        worst: 0.6,
        ..scene("forgetful", 50, 2_000, Want::Even(80))
    },
    Scene {
        events: &[Event::FailOver { from: 7, to: 8 }],
        used: 0.85,
        worst: 0.0,
        fair: 0.8,
        ..scene("fail-over", 50, 2_000, Want::Even(80))
    },
    Scene {
        events: &[Event::Slow { from: 7, to: 12 }],
        away: Away::Alone,
        worst: 0.6,
        ..scene("slow-engine", 50, 2_000, Want::Even(80))
    },
    Scene {
        events: &[
            Event::Limit {
                from: 0,
                percent: 60,
            },
            Event::Limit {
                from: 10,
                percent: 30,
            },
        ],
        used: 0.9,
        worst: 0.5,
        fair: 0.8,
        ..scene("limit", 50, 2_000, Want::Even(80))
    },
    Scene {
        events: &[Event::CutOff {
            from: 5,
            to: 35,
            each: 3_000,
        }],
        ..cut_off("cut-off-eight", 8, 65)
    },
    Scene {
        events: &[Event::CutOff {
            from: 5,
            to: 56,
            each: 3_000,
        }],
        ..cut_off("cut-off-sixteen", 16, 110)
    },
    Scene {
        events: &[Event::CutOff {
            from: 5,
            to: 45,
            each: 30,
        }],
        ..cut_off("cut-off-thousand", 1_000, 80)
    },
    Scene {
        events: &[
            Event::CutOff {
                from: 5,
                to: 30,
                each: 1_500,
            },
            Event::Forgetful { from: 31, to: 32 },
            Event::Forgetful { from: 40, to: 41 },
            Event::Forgetful { from: 49, to: 50 },
        ],
        worst: 0.6,
        ..cut_off("cut-off-and-forgotten", 16, 60)
    },
    Scene {
        events: &[Event::KillAllBut { from: 8, left: 700 }],
        worst: 0.5,
        back: 2,
        steps: 5_500,
        first: 1_000,
        fair: 0.75,
        ..scene("thousand-killed", 1_000, 20_000, Want::Even(50))
    },
    Scene {
        events: &[Event::KillAllBut {
            from: 8,
            left: 7_000,
        }],
        length: 24,
        used: 0.85,
        worst: 0.5,
        fair: 0.25, // a lease takes four seconds, and the scene six leases
        back: 10,
        steps: 5_500,
        first: 1_000,
        ..scene("ten-thousand", 10_000, 40_000, Want::Even(10))
    },
    Scene {
        used: 0.0,
        worst: 0.0,
        fair: 0.0,
        steps: 6_500, // all come out of idle together
        first: 1_000,
        ..scene("ten-thousand-idle", 10_000, 40_000, Want::Few(1))
    },
    Scene {
        events: &[Event::Churn {
            from: 6,
            to: 18,
            each: 100,
        }],
        // Those that end hold a lease of four seconds.
        worst: 0.85,
        fair: 0.0, // the members change all the time
        steps: 5_700,
        first: 1_000,
        ..scene("ten-thousand-churn", 10_000, 40_000, Want::Even(10))
    },
    Scene {
        kind: |member| Kind {
            trip: if member < 8 { 0 } else { 200 },
            ..PLAIN
        },
        ..scene("near-and-far", 16, 1_000, Want::Even(500))
    },
    Scene {
        kind: |member| Kind {
            trip: if member < 12 { 0 } else { 250 },
            ..PLAIN
        },
        ..scene("near-and-a-few-far", 16, 1_000, Want::Even(500))
    },
    Scene {
        kind: |_| Kind {
            jitter: 200,
            ..PLAIN
        },
        fair: 0.8, // of sixteen, by luck
        ..scene("jitter", 16, 1_000, Want::Even(500))
    },
    Scene {
        kind: |member| Kind {
            lease: if member < 4 { 1_000 } else { 200 },
            ..PLAIN
        },
        ..scene("leases-of-two-lengths", 8, 1_000, Want::Even(500))
    },
    Scene {
        events: &[
            Event::Lease {
                from: 5,
                each: 1_000,
                lease: 2_000,
            },
            Event::Lease {
                from: 20,
                each: 1_000,
                lease: 200,
            },
        ],
        length: 36,
        worst: 0.85, // each that comes takes a lease of two seconds
        ..scene("lease-changed", 8, 1_000, Want::Even(500))
    },
    Scene {
        events: &[Event::KillAllBut { from: 6, left: 1 }],
        away: Away::Alone,
        worst: 0.0, // the second in which they end
        used: 0.8,
        fair: 0.0,
        ..scene("all-but-one-killed", 8, 1_000, Want::Even(2_000))
    },
    Scene {
        events: &[
            Event::KillAllBut { from: 6, left: 1 },
            Event::Outage { from: 12, to: 30 },
        ],
        away: Away::Alone,
        length: 30,
        worst: 0.0,
        used: 0.3,
        fair: 0.0,
        ..scene("the-last-one-alone", 8, 1_000, Want::Even(2_000))
    },
];

/// A fleet whose members lose the engine one after the other.
const fn cut_off(name: &'static str, members: usize, length: u64) -> Scene {
    Scene {
        length,
        away: Away::Alone,
        allowances: 2.0,
        fair: 0.0,
        ..scene(name, members, 2_000, Want::Even(4_000))
    }
}
