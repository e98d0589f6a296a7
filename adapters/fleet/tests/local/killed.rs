//! Processes that are killed, at any point of what they do with the file.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::folder::Folder;
use crate::long;
use crate::many::members;
use crate::rig::record::number;
use crate::rig::service::{Limit, Service};
use crate::tool::Tool;
use paceline_fleet::{Away, Fleet, Standing};

const RATE: u32 = 1_000;
const MEMBERS: u8 = 3;

fn service() -> impl Future<Output = Service> {
    Service::start(Limit {
        rate: f64::from(RATE) * 10.0,
        burst: f64::from(RATE) * 10.0,
        trip: Duration::from_millis(5),
    })
}

/// Returns `ok`, or what SQLite finds wrong with the file.
fn integrity(folder: &Folder) -> String {
    let connection = rusqlite::Connection::open(folder.file()).expect("SQLite's");
    let busy = connection.busy_timeout(Duration::from_secs(5));
    busy.expect("a setting");
    connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .expect("it answers")
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_9_in_a_loop_stops_no_other_process() {
    let folder = Folder::new("loop");
    let service = service().await;
    let time = Duration::from_secs(long(6, 60));
    let members = members(&folder.file(), &service, RATE, MEMBERS, time);
    let (began, mut kills) = (Instant::now(), 0_u32);
    while began.elapsed() < time {
        let tool = Tool {
            file: &folder.file(),
            service: service.port(),
            index: MEMBERS,
            rate: RATE,
            requests: 1_000,
        };
        let mut child = tool.start();
        tokio::time::sleep(Duration::from_micros(fastrand::u64(..60_000))).await;
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        kills += 1;
    }
    let record = service.record();
    drop(members);
    let from = Duration::from_secs(2);
    let steady = record.within(from, time);
    let used =
        number(steady.delivered()) / f64::from(RATE) / time.saturating_sub(from).as_secs_f64();
    let of_each = steady.by_member(MEMBERS);
    println!(
        "killed: {kills} times kill -9 in {time:?}: used {used:.3}, of each other {of_each:.0?}"
    );
    assert_eq!(integrity(&folder), "ok");
    let least = of_each.iter().copied().fold(f64::INFINITY, f64::min);
    let fair = f64::from(RATE) * time.saturating_sub(from).as_secs_f64() / f64::from(MEMBERS + 1);
    assert!(least >= 0.7 * fair, "{of_each:?} of {fair}");
    // Each may have lost a lease, which is 200 ms of its share, and a token.
    let lost = f64::from(kills) * (0.2 / f64::from(MEMBERS + 1) + 0.001) / time.as_secs_f64();
    assert!(used >= 0.95 - lost, "{used}, and {lost} may be lost");
    let above = record.excess(f64::from(RATE));
    let bound = f64::from(RATE) * 0.3 + f64::from(MEMBERS + 1) * 17.0 + 16.0;
    assert!(above <= bound, "{above} above the allowance, of {bound}");
}

/// The system calls on the file, from the opening of it to the last word, one killed at each.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_at_any_system_call_stops_no_other() {
    let version = Command::new("strace").arg("--version").output();
    if !version.is_ok_and(|output| output.status.success()) {
        println!("skipped: there is no strace; `ci/check.sh local` installs it");
        return;
    }
    let service = service().await;
    let (mut call, mut killed, mut began_new) = (1_u32, 0_u32, 0_u32);
    // Half of them find no file, and are killed while they make it.
    let (old, step) = (Folder::new("calls"), long(7, 1));
    let fleet = Fleet::local(old.file()).expect("a path");
    let scope = fleet.scope("rig", RATE, Duration::from_secs(1));
    let scope = scope.expect("in range").when_away(Away::Closed);
    let budget = scope.join().expect("a runtime");
    loop {
        let new = Folder::new(&format!("calls-{call}"));
        let mut ended = true;
        for folder in [&old, &new] {
            let tool = Tool {
                file: &folder.file(),
                service: service.port(),
                index: 0,
                rate: RATE,
                requests: 3,
            };
            let file = folder.file();
            let file = file.to_str().expect("a plain path");
            let inject = format!("inject=all:signal=KILL:when={call}");
            let (wal, shm) = (format!("{file}-wal"), format!("{file}-shm"));
            let strace = [
                "strace",
                "-f",
                "-qqq",
                "-o",
                "/dev/null",
                "-P",
                file,
                "-P",
                &wal,
                "-P",
                &shm,
                "-e",
                &inject,
            ];
            let status = tool.command(&strace).status().expect("strace runs");
            killed += u32::from(!status.success());
            began_new += u32::from(!status.success() && std::ptr::eq(folder, &raw const new));
            ended &= status.success();
            // Another process goes on, at once.
            let began = Instant::now();
            let fleet = Fleet::local(folder.file()).expect("a path");
            assert_eq!(fleet.check().await, Ok(()), "killed at call {call}");
            assert_eq!(integrity(folder), "ok", "killed at call {call}");
            assert!(
                began.elapsed() < Duration::from_secs(2),
                "killed at call {call}"
            );
        }
        let permit = tokio::time::timeout(Duration::from_secs(2), budget.acquire()).await;
        assert!(permit.is_ok(), "killed at call {call}");
        if ended {
            break;
        }
        call += step;
    }
    println!(
        "calls: killed at {killed} of {call} system calls each, {began_new} of them on a new file"
    );
    assert!(killed >= 80 / step, "{killed} of {call}");
    let shown = budget.snapshot();
    assert_eq!((shown.standing, shown.faults), (Standing::Leased, 0));
}
