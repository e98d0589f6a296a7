//! Many processes of one machine and one allowance, over a file: no server is needed.
//!
//! * `cargo run --release --example local`: 8 processes share 2,000/s for 6 s. `-- share 16 12`:
//!   other numbers of processes and of seconds.
//! * `-- unknown`: 50 processes share 40 in 6 s, which none of them knows, for three minutes: each
//!   alone, and as a fleet. `-- unknown 20 60`: other numbers.
//! * `-- hivemind`: the scenes of arXiv 2604.17111, each agent alone, and as a fleet, with a window
//!   of 6 s. It takes three minutes. `-- hivemind 60`: with the paper's window.
//! * `-- starts`: what a start costs, beside one without a file.
//! * `-- tools`: 8 users start a tool 100 times each, against a limit of 10/s. It takes 80 s.
//! * `-- small`: 10,000 starts, and the size of the file.
//!
//! Each prints its figures, and fails if the bound was not kept.
#![expect(
    clippy::arithmetic_side_effects,
    clippy::float_arithmetic,
    reason = "figures for people"
)]

#[path = "../../rig/mod.rs"]
mod rig;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use paceline::law::PacedSettings;
use paceline::{Clock, MonotonicClock, Outcome, SendRate};
use paceline_fleet::{Away, Fleet};
use rig::agents::SCENES;
use rig::member::{Kind, Order, obey, order};
use rig::record::{Record, number};
use rig::service::{Limit, SERVED, Service};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const SECOND: Duration = Duration::from_secs(1);
/// Processes start, and find each other.
const WARM_UP: Duration = Duration::from_secs(2);

type Outcomes = Result<(), String>;

/// A folder that is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let name = format!("paceline-example-local-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder for temporary files");
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("limits")
    }

    fn bytes(&self) -> u64 {
        let files = std::fs::read_dir(&self.0).expect("it is there").flatten();
        files
            .map(|file| file.metadata().map_or(0, |of| of.len()))
            .sum()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _left = std::fs::remove_dir_all(&self.0);
    }
}

async fn share(members: u8, time: Duration) -> Outcomes {
    let (folder, rate) = (Folder::new(), 2_000_u32);
    let service = Service::start(Limit {
        rate: f64::from(rate),
        burst: f64::from(rate) / 10.0,
        trip: Duration::from_millis(10),
    });
    let service = service.await;
    let start = |index| {
        let order = Order {
            allowance: rate,
            away: Away::Closed,
            workers: 512 / u32::from(members),
            ..Order::new(
                Kind::Fleet,
                index,
                service.port(),
                format!("file:{}", folder.file().display()),
                time,
            )
        };
        order.start(&[])
    };
    let processes: Vec<_> = (0..members).map(start).collect();
    tokio::time::sleep(time).await;
    let all = service.record();
    drop(processes);
    let measured = all.within(WARM_UP, time);
    let used =
        number(measured.delivered()) / f64::from(rate) / time.saturating_sub(WARM_UP).as_secs_f64();
    let above = all.excess(f64::from(rate));
    println!(
        "{members} processes, {rate}/s: used {used:.3}, throttled {:.2} %, Jain {:.4}, {above:.0} above in any window",
        measured.throttled_share() * 100.0,
        measured.jain(members),
    );
    let bound = f64::from(rate) * 0.3 + 2.0 * f64::from(members);
    if above > bound {
        return Err(format!(
            "{above:.0} above the allowance, {bound:.0} are within it"
        ));
    }
    Ok(())
}

/// A limit of a few requests in a time, that no process knows.
async fn unknown(members: u8, time: Duration) -> Outcomes {
    let rate = 40.0 / 6.0;
    println!("{members} processes, 40 in 6 s, for {time:?}");
    let mut refused = [0.0; 2];
    for (place, kind) in [Kind::PacedAlone, Kind::Fleet].into_iter().enumerate() {
        let folder = Folder::new();
        let service = Service::start(Limit {
            rate,
            burst: 40.0,
            trip: Duration::from_millis(10),
        });
        let service = service.await;
        let start = |index| {
            let order = Order::new(
                kind,
                index,
                service.port(),
                format!("file:{}", folder.file().display()),
                time,
            );
            order.start(&[])
        };
        let processes: Vec<_> = (0..members).map(start).collect();
        tokio::time::sleep(time).await;
        let all = service.record();
        drop(processes);
        let delivered = number(all.delivered());
        refused[place] = number(all.sent()) / delivered - 1.0;
        println!(
            "{kind:?}: {:.3} refused for each success, used {:.3}, Jain {:.3}",
            refused[place],
            delivered / (40.0 + rate * time.as_secs_f64()),
            all.jain(members),
        );
    }
    if refused[1] > 0.3 {
        return Err(format!("{:.3} refused, 0.3 are promised", refused[1]));
    }
    Ok(())
}

/// Agents that die at their first failed turn.
async fn hivemind(window: Duration) -> Outcomes {
    println!("scene          agents  alone: dead  fleet: dead  time  refused for each success");
    let mut wrong = String::new();
    for scene in SCENES {
        let folder = Folder::new();
        let engine = format!("file:{}", folder.file().display());
        let alone = scene.play(Kind::AgentAlone, window, &engine, &[]).await;
        let came = scene.play(Kind::Agent, window, &engine, &[]).await;
        println!(
            "{:<14} {:6}  {:11}  {:11}  {:3.0} s {:.2}",
            scene.name,
            scene.agents,
            alone.dead,
            came.dead,
            came.time.as_secs_f64(),
            f64::from(came.refused) / f64::from(came.served),
        );
        if came.dead > 0 {
            wrong += scene.name;
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(format!("dead in {wrong}"))
    }
}

/// Where the order of a tool stands in the environment of its process: the port of a service or 0,
/// which user it is, the limit per second, and the file, or nothing for a start without.
const TOOL: &str = "LOCAL_EXAMPLE_TOOL";

fn tool(file: Option<&Path>, service: u16, user: u8, rate: u32) -> Command {
    let program = std::env::current_exe().expect("a program has a path");
    let file = file.map_or(String::new(), |file| file.display().to_string());
    let mut command = Command::new(program);
    let order = format!("{service} {user} {rate} {file}");
    command.env(TOOL, order).stdin(Stdio::null());
    command
}

/// Sends one request, as its order says.
async fn run(order: &str) -> std::io::Result<()> {
    let words: Vec<&str> = order.splitn(4, ' ').collect();
    let number = |place: usize| words[place].parse::<u32>().expect("a number");
    let (port, user, rate) = (number(0), number(1), number(2));
    if words[3].is_empty() {
        let clock = MonotonicClock::new();
        let fixed = PacedSettings::fixed(rate, SECOND).expect("in range");
        let limiter = SendRate::paced(fixed, clock.now());
        let permit = limiter.try_acquire(clock.now()).expect("the first one");
        limiter.record(clock.now(), permit, Outcome::NotThrottled);
        return Ok(());
    }
    let fleet = Fleet::local(words[3]).expect("a path");
    let scope = fleet.scope("tools", rate, SECOND).expect("in range");
    let budget = scope.when_away(Away::Closed).join().expect("a runtime");
    let permit = budget.acquire().await;
    if port == 0 {
        budget.record(permit, Outcome::NotThrottled);
        return Ok(());
    }
    let port = u16::try_from(port).expect("a port");
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_u8(u8::try_from(user).expect("few")).await?;
    stream.write_u8(b'.').await?;
    let outcome = match stream.read_u8().await? {
        SERVED => Outcome::NotThrottled,
        _ => Outcome::Throttled,
    };
    budget.record(permit, outcome);
    Ok(())
}

fn starts() {
    let folder = Folder::new();
    let timed = |file: Option<&Path>| {
        let began = Instant::now();
        let ended = tool(file, 0, 0, 1_000_000).status();
        assert!(ended.is_ok_and(|ended| ended.success()), "a start failed");
        began.elapsed()
    };
    let file = folder.file();
    timed(Some(&file));
    // In turns, so that both see the same load.
    let (mut without, mut with): (Vec<_>, Vec<_>) =
        (0..200).map(|_| (timed(None), timed(Some(&file)))).unzip();
    without.sort();
    with.sort();
    let (without, with) = (without[100], with[100]);
    println!(
        "200 starts, to the end of the process, median: {without:.2?} without a file, {with:.2?} with one: {:.2?} more",
        with.saturating_sub(without)
    );
}

fn used(record: &Record, rate: f64) -> f64 {
    let (Some(first), Some(last)) = (record.0.first(), record.0.last()) else {
        return 0.0;
    };
    (number(record.delivered()) - 1.0) / last.at.saturating_sub(first.at).as_secs_f64() / rate
}

async fn tools() -> Outcomes {
    let (folder, rate, users, runs) = (Folder::new(), 10_u32, 8_u8, 100);
    let service = Service::start(Limit {
        rate: f64::from(rate),
        burst: 3.0,
        trip: Duration::from_millis(10),
    });
    let service = service.await;
    let (port, file) = (service.port(), folder.file());
    let users_run = (0..users).map(|user| {
        let file = file.clone();
        tokio::task::spawn_blocking(move || {
            for _ in 0..runs {
                let ended = tool(Some(&file), port, user, rate).status();
                assert!(ended.is_ok_and(|ended| ended.success()), "a tool failed");
            }
        })
    });
    for user in users_run.collect::<Vec<_>>() {
        user.await.map_err(|error| error.to_string())?;
    }
    let record = service.record();
    println!(
        "{users} users, {runs} runs each, {rate}/s with bursts of 3: used {:.3}, throttled {:.2} %, Jain {:.3}, {:.0} above in any window",
        used(&record, f64::from(rate)),
        record.throttled_share() * 100.0,
        record.jain(users),
        record.excess(f64::from(rate)),
    );
    Ok(())
}

fn small() {
    let folder = Folder::new();
    let file = folder.file();
    for starts in [1, 99, 900, 9_000] {
        for _ in 0..starts {
            let ended = tool(Some(&file), 0, 0, 1_000_000).status();
            assert!(ended.is_ok_and(|ended| ended.success()), "a start failed");
        }
        println!("after {starts} more starts: {} bytes", folder.bytes());
    }
}

fn main() -> ExitCode {
    if let Some(order) = order() {
        obey(&order);
        return ExitCode::SUCCESS;
    }
    if let Ok(order) = std::env::var(TOOL) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let sent = runtime.expect("a runtime").block_on(run(&order));
        sent.expect("the service is there");
        return ExitCode::SUCCESS;
    }
    let word = |place: usize| std::env::args().nth(place);
    let argument = |place: usize| word(place).and_then(|word| word.parse::<u8>().ok());
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let done = match word(1).as_deref() {
        Some("starts") => {
            starts();
            Ok(())
        }
        Some("tools") => runtime.block_on(tools()),
        Some("small") => {
            small();
            Ok(())
        }
        None | Some("share") => {
            let time = Duration::from_secs(u64::from(argument(3).unwrap_or(6).max(4)));
            runtime.block_on(share(argument(2).unwrap_or(8).clamp(1, 64), time))
        }
        Some("unknown") => {
            let time = Duration::from_secs(u64::from(argument(3).unwrap_or(180)));
            runtime.block_on(unknown(argument(2).unwrap_or(50).clamp(1, 128), time))
        }
        Some("hivemind") => {
            let window = Duration::from_secs(u64::from(argument(2).unwrap_or(6).max(1)));
            runtime.block_on(hivemind(window))
        }
        Some(other) => Err(format!(
            "no part {other}: share, unknown, hivemind, starts, tools, small"
        )),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("failed: {why}");
            ExitCode::FAILURE
        }
    }
}
