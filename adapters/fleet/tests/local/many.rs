//! Many processes on one file, and how well they share it.

use std::path::Path;
use std::time::{Duration, Instant};

use paceline_fleet::{Away, Fleet};

use crate::folder::Folder;
use crate::long;
use crate::rig::agents::Scene;
use crate::rig::member::{Kind, Order, Process};
use crate::rig::record::{Record, number};
use crate::rig::service::{Limit, Service};
use crate::tool::Tool;

/// What leads a process of these tests to its order.
const MEMBER: [&str; 4] = ["member", "--ignored", "--exact", "--quiet"];

/// Members that have more to send than they may, on `file`.
pub(crate) fn members(
    file: &Path,
    service: &Service,
    allowance: u32,
    count: u8,
    time: Duration,
) -> Vec<Process> {
    let start = |index| {
        let order = Order {
            allowance,
            away: Away::Closed,
            workers: 16,
            ..Order::new(
                Kind::Fleet,
                index,
                service.port(),
                format!("file:{}", file.display()),
                time,
            )
        };
        order.start(&MEMBER)
    };
    (0..count).map(start).collect()
}

/// Returns the part of `rate` that was delivered between the first and the last that is in
/// `record`.
fn used(record: &Record, rate: f64) -> f64 {
    let (Some(first), Some(last)) = (record.0.first(), record.0.last()) else {
        return 0.0;
    };
    let span = last.at.saturating_sub(first.at).as_secs_f64();
    (number(record.delivered()) - 1.0).max(0.0) / span / rate
}

/// The tests measure time, and other tests run beside them.
#[tokio::test(flavor = "multi_thread")]
async fn tools_that_live_a_moment_behave_as_one_client() {
    let folder = Folder::new("tools");
    let (rate, runs) = long((20, 10), (10, 100));
    let service = Service::start(Limit {
        rate: f64::from(rate),
        burst: f64::from(rate) / 2.0,
        trip: Duration::from_millis(10),
    });
    let service = service.await;
    let (port, file) = (service.port(), folder.file());
    let users = (0..8).map(|index| {
        let file = file.clone();
        tokio::task::spawn_blocking(move || {
            let tool = Tool {
                file: &file,
                service: port,
                index,
                rate,
                requests: 1,
            };
            for _ in 0..runs {
                let ended = tool.start().wait().expect("it ends");
                assert!(ended.success(), "a tool failed");
            }
        })
    });
    for user in users.collect::<Vec<_>>() {
        user.await.expect("its tools ran");
    }
    let record = service.record();
    let used = used(&record, f64::from(rate));
    println!(
        "tools: 8 x {runs} runs at {rate}/s: used {used:.3}, throttled {:.4}, Jain {:.3}, {:.0} above in any window",
        record.throttled_share(),
        record.jain(8),
        record.excess(f64::from(rate)),
    );
    assert_eq!(record.sent(), 8 * runs);
    assert!(record.throttled_share() <= 0.01);
    assert!(used >= long(0.8, 0.95), "{used}");
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_share_a_file_as_they_share_a_server() {
    let folder = Folder::new("many");
    let (count, rate, time) = long((4, 400, 4), (16, 2_000, 12));
    let service = Service::start(Limit {
        rate: f64::from(rate) * 10.0,
        burst: f64::from(rate) * 10.0,
        trip: Duration::from_millis(5),
    });
    let service = service.await;
    let time = Duration::from_secs(time);
    let members = members(&folder.file(), &service, rate, count, time);
    tokio::time::sleep(time).await;
    let record = service.record();
    drop(members);
    let from = Duration::from_secs(2);
    let measured = record.within(from, time);
    let used =
        number(measured.delivered()) / f64::from(rate) / time.saturating_sub(from).as_secs_f64();
    let above = record.excess(f64::from(rate));
    println!(
        "many: {count} processes at {rate}/s: used {used:.3}, Jain {:.4}, {above:.0} above in any window",
        measured.jain(count),
    );
    // What the file keeps, what members hold, and what was on its way: see the crate's
    // documentation.
    let bound = f64::from(rate) * 0.3 + f64::from(count) * 17.0;
    assert!(above <= bound, "{above} above the allowance, of {bound}");
    assert!(used >= long(0.9, 0.98) && measured.jain(count) >= 0.98);
}

/// Eight in a second, and 32 turns: four windows.
#[tokio::test(flavor = "multi_thread")]
async fn no_agent_dies_of_refusals_errors_or_resets() {
    let folder = Folder::new("agents");
    let scene = Scene {
        name: "small",
        agents: 8,
        turns: 4,
        limit: 8,
        errors: 0.1,
        resets: 0.1,
        in_flight: 3,
        latency: (20.0, 5.0),
        slow: 0.1,
    };
    let engine = format!("file:{}", folder.file().display());
    let window = Duration::from_secs(1);
    let came = scene.play(Kind::Agent, window, &engine, &MEMBER).await;
    println!("agents: {came:?}");
    // A turn that was served is not taken again.
    assert_eq!((came.dead, came.served), (0, 32));
    assert!(came.time >= 3 * window, "the service limits");
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_go_on_when_their_file_is_ruined() {
    for how in ["emptied", "cut", "noise"] {
        let folder = Folder::new(how);
        let (count, rate, time) = (4, 400, Duration::from_secs(8));
        let service = Service::start(Limit {
            rate: f64::from(rate) * 10.0,
            burst: f64::from(rate) * 10.0,
            trip: Duration::from_millis(5),
        });
        let service = service.await;
        let members = members(&folder.file(), &service, rate, count, time);
        tokio::time::sleep(Duration::from_secs(3)).await;
        let _kept = folder.ruin(how);
        tokio::time::sleep(Duration::from_secs(5)).await;
        let record = service.record();
        drop(members);
        let after = record.within(Duration::from_secs(5), time);
        let used = number(after.delivered()) / f64::from(rate) / 3.0;
        let (jain, above) = (after.jain(count), record.excess(f64::from(rate)));
        println!("{how}: used {used:.3} afterwards, Jain {jain:.4}, {above:.0} above");
        // A file that forgot may grant and lend both bounds once more.
        let bound = 2.0 * f64::from(rate) * 0.3 + f64::from(count) * 18.0;
        assert!(above <= bound, "{above} above the allowance, of {bound}");
        assert!(used >= 0.9 && jain >= 0.95, "{how}: {used}, {jain}");
    }
}

#[tokio::test]
async fn starts_leave_the_file_as_small_as_it_was() {
    let folder = Folder::new("small");
    let mut sizes = Vec::new();
    for starts in [long(300, 1_000), long(600, 9_000)] {
        for _ in 0..starts {
            // A member, its connection and its thread, as a new process has them.
            let fleet = Fleet::local(folder.file()).expect("a path");
            let scope = fleet.scope("tools", 1_000_000, Duration::from_secs(1));
            let budget = scope.expect("in range").join().expect("a runtime");
            let _permit = budget.acquire().await;
            budget.leave().await;
        }
        sizes.push(folder.bytes());
    }
    println!("small: {sizes:?} bytes");
    assert!(sizes[1] <= sizes[0].max(700_000), "{sizes:?}");
    let connection = rusqlite::Connection::open(folder.file()).expect("SQLite's");
    let rows = |table: &str| -> u32 {
        let count = format!("SELECT count(*) FROM {table}");
        connection
            .query_row(&count, [], |row| row.get(0))
            .expect("a table")
    };
    assert_eq!([rows("field"), rows("expiry"), rows("clock")], [1, 1, 1]);
}

#[tokio::test]
async fn a_start_on_a_file_takes_milliseconds() {
    let folder = Folder::new("start");
    let mut waits = Vec::new();
    for _ in 0..20 {
        let began = Instant::now();
        let fleet = Fleet::local(folder.file()).expect("a path");
        fleet.check().await.expect("a file like any");
        waits.push(began.elapsed());
    }
    waits.sort();
    println!(
        "start: {:?} at the median, {:?} at most",
        waits[10], waits[19]
    );
    // Not a measurement: other tests run beside it. It is never a matter of time-outs.
    assert!(waits[10] < Duration::from_millis(100), "{waits:?}");
}
