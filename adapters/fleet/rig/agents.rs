//! The scenes of `HiveMind` (arXiv 2604.17111): agents that die at their first failed turn.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fastrand::Rng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::member::{Kind, Order};

/// How many agents of how many turns, and before which service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene {
    pub(crate) name: &'static str,
    pub(crate) agents: u8,
    pub(crate) turns: u32,
    /// Requests in a window. One that is refused counts too.
    pub(crate) limit: u32,
    /// The part that is answered 502, and the part whose connection is closed.
    pub(crate) errors: f64,
    pub(crate) resets: f64,
    /// The most in flight. One above is answered 529.
    pub(crate) in_flight: u32,
    /// Milliseconds until an answer, in the middle, and their standard deviation.
    pub(crate) latency: (f64, f64),
    /// The part that takes five times as long.
    pub(crate) slow: f64,
}

const fn micro(name: &'static str, agents: u8, turns: u32) -> Scene {
    Scene {
        name,
        agents,
        turns,
        limit: 50,
        errors: 0.0,
        resets: 0.0,
        in_flight: u32::MAX,
        latency: (80.0, 50.0),
        slow: 0.0,
    }
}

/// As the paper's code has them. Tokens are left out: these agents use few.
pub(crate) const SCENES: [Scene; 7] = [
    micro("micro-5", 5, 8),
    micro("micro-10", 10, 8),
    micro("micro-20", 20, 8),
    micro("micro-50", 50, 6),
    Scene {
        limit: 60,
        errors: 0.08,
        resets: 0.05,
        in_flight: 5,
        latency: (120.0, 60.0),
        ..micro("replay-11", 11, 8)
    },
    Scene {
        limit: 20,
        errors: 0.1,
        resets: 0.05,
        in_flight: 3,
        latency: (200.0, 50.0),
        slow: 0.1,
        ..micro("stress", 20, 10)
    },
    Scene {
        limit: 60,
        latency: (100.0, 30.0),
        slow: 0.2,
        ..micro("latency-spike", 10, 10)
    },
];

/// What came of a scene.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Came {
    pub(crate) dead: u8,
    pub(crate) time: Duration,
    pub(crate) served: u32,
    /// Answered 429 or 529.
    pub(crate) refused: u32,
}

impl Scene {
    /// Plays it with a process for each agent. `arguments` lead a process to its order.
    pub(crate) async fn play(
        self,
        kind: Kind,
        window: Duration,
        engine: &str,
        arguments: &[&str],
    ) -> Came {
        let listener = TcpListener::bind(("127.0.0.1", 0));
        let listener = listener.await.expect("a port is free");
        let service = listener.local_addr().expect("it is bound").port();
        let began = Instant::now();
        let desk = Arc::new(Mutex::new(Desk {
            scene: self,
            window,
            opened: began,
            counted: 0,
            in_flight: 0,
            random: Rng::with_seed(1),
            served: 0,
            refused: 0,
        }));
        let shared = Arc::clone(&desk);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        let start = |index| {
            let order = Order {
                workers: self.turns,
                rest: Duration::from_millis(50),
                ..Order::new(kind, index, service, engine.to_owned(), Duration::ZERO)
            };
            order.start(arguments)
        };
        let agents: Vec<_> = (0..self.agents).map(start).collect();
        let ends = tokio::task::spawn_blocking(|| {
            let dead = agents.into_iter().map(|agent| u8::from(!agent.lives()));
            dead.sum()
        });
        let dead = ends.await.expect("it only waits");
        accepting.abort();
        let desk = desk.lock().expect("no thread panics with it");
        Came {
            dead,
            time: began.elapsed(),
            served: desk.served,
            refused: desk.refused,
        }
    }
}

/// The service.
#[derive(Debug)]
struct Desk {
    scene: Scene,
    window: Duration,
    opened: Instant,
    counted: u32,
    in_flight: u32,
    random: Rng,
    served: u32,
    refused: u32,
}

/// How long an answer takes, its status, and the hint that goes with it in milliseconds. Status 0
/// is a connection that is closed.
type Reply = (Duration, u16, u32);

impl Desk {
    /// Takes a request in.
    fn reply(&mut self) -> Reply {
        let scene = self.scene;
        self.in_flight += 1;
        if self.in_flight > scene.in_flight {
            self.refused += 1;
            return (Duration::ZERO, 529, 0);
        }
        if self.random.f64() < scene.resets {
            return (Duration::ZERO, 0, 0);
        }
        if self.random.f64() < scene.errors {
            return (Duration::ZERO, 502, 0);
        }
        if self.opened.elapsed() >= self.window {
            (self.opened, self.counted) = (Instant::now(), 0);
        }
        self.counted += 1;
        if self.counted > scene.limit {
            self.refused += 1;
            let left = self.window.saturating_sub(self.opened.elapsed());
            let left = u32::try_from(left.as_millis()).unwrap_or(u32::MAX);
            return (Duration::ZERO, 429, left);
        }
        self.served += 1;
        let (middle, deviation) = scene.latency;
        // Twelve of a unit have a variance of 1, and nearly a bell's shape.
        let bell = (0..12).map(|_| self.random.f64()).sum::<f64>() - 6.0;
        let slow = 1.0 + 4.0 * f64::from(u8::from(self.random.f64() < scene.slow));
        let millis = ((middle + deviation * bell) * slow).max(10.0);
        (Duration::from_secs_f64(millis / 1_000.0), 200, 0)
    }
}

/// A connection: a byte for its request.
async fn serve(mut stream: TcpStream, desk: Arc<Mutex<Desk>>) -> std::io::Result<()> {
    stream.read_u8().await?;
    let (time, status, hint) = desk.lock().expect("no thread panics with it").reply();
    tokio::time::sleep(time).await;
    desk.lock().expect("no thread panics with it").in_flight -= 1;
    if status == 0 {
        return Ok(());
    }
    stream.write_u16(status).await?;
    stream.write_u32(hint).await
}
