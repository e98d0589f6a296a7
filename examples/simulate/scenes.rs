//! The scenes.

use crate::scene::{Hint, Load, Policer, Scene};

/// What a scene is unless it says otherwise.
const USUAL: Scene = Scene {
    name: "",
    title: "",
    policer: Policer::Bucket(500),
    limit: &[(0, 500)],
    clients: 1,
    mixed: false,
    stagger_ms: 0,
    load: Load::Closed(64),
    people: 0,
    pulse_ms: (0, 0),
    trip_us: 50_000,
    far: 1,
    jitter_percent: 20,
    patient: false,
    errors_permille: 0,
    hint: Hint::None,
    quota: 500,
    reask_ms: 50,
    seconds: 60,
};

/// All of them.
#[rustfmt::skip]
pub(crate) const SCENES: &[Scene] = &[
    Scene { name: "bucket", title: "One client with 64 workers; 500/s, and a bucket of one second", ..USUAL },
    Scene { name: "herd", title: "512 workers overshoot at once, with a quota of 500", load: Load::Closed(512), seconds: 20, ..USUAL },
    Scene { name: "herd-paid", title: "The same with a quota of three retries for each worker", load: Load::Closed(512), quota: 8_000, seconds: 20, ..USUAL },
    Scene { name: "herd-bulk", title: "The same for a pipeline, which repeats throttled attempts until they succeed", load: Load::Closed(512), patient: true, seconds: 20, ..USUAL },
    Scene { name: "3-s-job", title: "A job of 3 s that is repeated likewise: what a slow start costs", load: Load::Closed(512), patient: true, seconds: 3, ..USUAL },
    Scene { name: "small-burst", title: "The bucket holds 10, so that bursts have to be short", policer: Policer::Bucket(10), ..USUAL },
    Scene { name: "large-burst", title: "The bucket holds five seconds' worth, whose end looks like a lower limit", policer: Policer::Bucket(2_500), ..USUAL },
    Scene { name: "window", title: "The service counts whole seconds", policer: Policer::Window, ..USUAL },
    Scene { name: "sliding", title: "The service counts any second", policer: Policer::Sliding, ..USUAL },
    Scene { name: "first-answer", title: "The very first answer is a throttle", policer: Policer::Bucket(50), limit: &[(0, 0), (100, 500)], load: Load::Closed(32), ..USUAL },
    Scene { name: "1/s", title: "A very low limit", policer: Policer::Bucket(2), limit: &[(0, 1)], load: Load::Closed(4), seconds: 240, ..USUAL },
    Scene { name: "1/s-2-clients", title: "Two clients on a very low limit, 1/s each", policer: Policer::Bucket(2), limit: &[(0, 2)], clients: 2, load: Load::Closed(4), seconds: 240, ..USUAL },
    Scene { name: "10/s", title: "A low limit", policer: Policer::Bucket(10), limit: &[(0, 10)], load: Load::Closed(16), seconds: 120, ..USUAL },
    Scene { name: "10,000/s", title: "A high limit", policer: Policer::Bucket(10_000), limit: &[(0, 10_000)], load: Load::Closed(1_000), quota: 10_000, ..USUAL },
    Scene { name: "1e6/s", title: "A very high limit, 1 ms away", policer: Policer::Bucket(100_000), limit: &[(0, 1_000_000)], load: Load::Closed(2_000), trip_us: 1_000, quota: 20_000, seconds: 10, ..USUAL },
    Scene { name: "1-ms", title: "The service is near: a round trip takes 1 ms", trip_us: 1_000, load: Load::Closed(16), ..USUAL },
    Scene { name: "2-s", title: "The service is slow: a round trip takes 2 s, give or take half of it", trip_us: 2_000_000, jitter_percent: 50, load: Load::Closed(2_000), quota: 10_000, seconds: 120, ..USUAL },
    Scene { name: "halved", title: "The limit is halved at 20 s and comes back at 40 s", policer: Policer::Bucket(100), limit: &[(0, 500), (20_000, 250), (40_000, 500)], ..USUAL },
    Scene { name: "doubled", title: "The limit is doubled at 20 s and again at 40 s", policer: Policer::Bucket(100), limit: &[(0, 250), (20_000, 500), (40_000, 1_000)], ..USUAL },
    Scene { name: "flap", title: "The limit changes between 200 and 800 every 6 s", policer: Policer::Bucket(100), limit: &[(0, 200), (6_000, 800), (12_000, 200), (18_000, 800), (24_000, 200), (30_000, 800), (36_000, 200), (42_000, 800), (48_000, 200), (54_000, 800)], ..USUAL },
    Scene { name: "outage", title: "Nothing is allowed for 10 s", policer: Policer::Bucket(100), limit: &[(0, 500), (20_000, 0), (30_000, 500)], ..USUAL },
    Scene { name: "outage-hint", title: "Nothing is allowed for 10 s, and the service says when to come back", policer: Policer::Bucket(100), limit: &[(0, 500), (20_000, 0), (30_000, 500)], hint: Hint::Return, ..USUAL },
    Scene { name: "hint-always", title: "Every throttle says 'in one second'", hint: Hint::Second, ..USUAL },
    Scene { name: "hint-20-clients", title: "Twenty clients, and every throttle says 'in one second'", policer: Policer::Bucket(50), clients: 20, load: Load::Closed(16), hint: Hint::Second, ..USUAL },
    Scene { name: "errors", title: "Two of a hundred requests fail for reasons other than the limit", policer: Policer::Bucket(100), errors_permille: 20, ..USUAL },
    Scene { name: "way-back", title: "50/s for 20 s, then far more than the client wants", policer: Policer::Bucket(50), limit: &[(0, 50), (20_000, 5_000)], load: Load::Closed(16), ..USUAL },
    Scene { name: "idle", title: "5 s of work, then 15 s of nothing", policer: Policer::Bucket(100), pulse_ms: (5_000, 15_000), seconds: 65, ..USUAL },
    Scene { name: "open", title: "Requests come at nine tenths of the limit, in pulses above it", policer: Policer::Bucket(50), load: Load::Open(600), pulse_ms: (3_000, 1_000), quota: 1_000, ..USUAL },
    Scene { name: "classes", title: "People ask for 40 a second beside a back-fill that never ends", policer: Policer::Bucket(100), limit: &[(0, 100)], people: 40, ..USUAL },
    Scene { name: "10-clients", title: "Ten clients on one limit", clients: 10, load: Load::Closed(16), ..USUAL },
    Scene { name: "10-clients-mixed", title: "Five clients beside five of the AWS SDKs on one limit", clients: 10, mixed: true, load: Load::Closed(16), ..USUAL },
    Scene { name: "10-clients-window", title: "Ten clients on one limit that counts whole seconds", policer: Policer::Window, clients: 10, load: Load::Closed(16), ..USUAL },
    Scene { name: "100-clients", title: "A hundred clients, each with a part of 10/s", policer: Policer::Bucket(1_000), limit: &[(0, 1_000)], clients: 100, load: Load::Closed(8), ..USUAL },
    Scene { name: "100-clients-halved", title: "A hundred clients, and the limit is halved and doubled", policer: Policer::Bucket(1_000), limit: &[(0, 2_000), (20_000, 1_000), (40_000, 2_000)], clients: 100, load: Load::Closed(8), ..USUAL },
    Scene { name: "near-and-far", title: "Ten clients, every second one six times further away", clients: 10, load: Load::Closed(64), far: 6, ..USUAL },
    Scene { name: "latecomers", title: "Four clients, of which one more comes every 10 s", clients: 4, stagger_ms: 10_000, load: Load::Closed(32), seconds: 120, ..USUAL },
    Scene { name: "1,000-clients", title: "A thousand clients on 100,000/s, with an outage of 10 s", policer: Policer::Bucket(100_000), limit: &[(0, 100_000), (10_000, 0), (20_000, 100_000)], clients: 1_000, load: Load::Closed(10), reask_ms: 500, seconds: 40, ..USUAL },
    STORM,
    OVERLOAD,
    Scene { name: "internet-overload-unpaid", title: "More work than the limit allows, without a retry quota", quota: u32::MAX, ..OVERLOAD },
    RETURN,
    Scene { name: "internet-outage-unpaid", title: "10,000 clients after an outage of 60 s, without a retry quota", quota: u32::MAX, ..RETURN },
];

/// Ten thousand clients that would send 1.25 million a second if nothing held them back.
#[rustfmt::skip]
const STORM: Scene = Scene { name: "internet-start", title: "10,000 clients start at once against a million a second", policer: Policer::Bucket(100_000), limit: &[(0, 1_000_000)], clients: 10_000, load: Load::Closed(10), trip_us: 80_000, reask_ms: 1_000, seconds: 20, ..USUAL };

/// Clients that want half again as much as is allowed, however their earlier requests ended.
#[rustfmt::skip]
const OVERLOAD: Scene = Scene { name: "internet-overload", title: "10,000 clients want 1.5 million a second of a million", load: Load::Open(150), quota: 100, seconds: 4, ..STORM };

/// The workers again, all of whom find nothing allowed for a minute.
#[rustfmt::skip]
const RETURN: Scene = Scene { name: "internet-outage", title: "10,000 clients after an outage of 60 s", limit: &[(0, 1_000_000), (3_000, 0), (63_000, 1_000_000)], seconds: 78, ..STORM };
