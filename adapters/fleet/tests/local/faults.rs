//! What is wrong with a file has a name, and members do then as they were set.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use paceline_fleet::{Away, Budget, EngineFault, Fleet, FleetError, Standing};

use crate::folder::Folder;

const SECOND: Duration = Duration::from_secs(1);

/// Returns what is wrong with a file: it is refused at once.
async fn fault(path: impl Into<PathBuf>) -> Option<EngineFault> {
    let fleet = match Fleet::local(path) {
        Err(FleetError::Engine { fault, .. }) => return Some(fault),
        fleet => fleet.expect("a path"),
    };
    // A disk is only known to be full when it is written.
    match fleet.check().await {
        Err(FleetError::Engine { fault, .. }) if fault == EngineFault::DiskFull => Some(fault),
        result => {
            result.expect("it was opened");
            None
        }
    }
}

#[test]
fn an_empty_path_is_refused() {
    assert!(matches!(Fleet::local(""), Err(FleetError::Address)));
}

#[tokio::test]
async fn a_file_that_cannot_be_used_has_a_fault() {
    let folder = Folder::new("wrong");
    let file = |name: &str| folder.path().join(name);
    let elsewhere = folder.path().join("missing").join("limits");
    assert_eq!(fault(elsewhere).await, Some(EngineFault::Unreachable));
    assert_eq!(fault(folder.path()).await, Some(EngineFault::Unreachable));
    // Not SQLite's.
    std::fs::write(file("text"), "x".repeat(5_000)).expect("a file");
    assert_eq!(fault(file("text")).await, Some(EngineFault::Corrupt));
    // Another program's, which is left as it is.
    let other = rusqlite::Connection::open(file("other")).expect("a file");
    let made = other.execute_batch("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1);");
    made.expect("tables");
    let before = std::fs::read(file("other")).expect("a file");
    assert_eq!(fault(file("other")).await, Some(EngineFault::Corrupt));
    assert_eq!(std::fs::read(file("other")).expect("a file"), before);
}

#[tokio::test]
async fn a_file_of_another_version_is_left_as_it_is() {
    let folder = Folder::new("version");
    assert_eq!(fault(folder.file()).await, None);
    let connection = rusqlite::Connection::open(folder.file()).expect("SQLite's");
    let newer = connection.pragma_update(None, "user_version", 2);
    newer.expect("it is a number");
    assert_eq!(fault(folder.file()).await, Some(EngineFault::OtherVersion));
    let older = connection.pragma_update(None, "user_version", 1);
    older.expect("it is a number");
    assert_eq!(fault(folder.file()).await, None);
}

#[tokio::test]
async fn a_damaged_file_has_a_fault_and_can_be_replaced_under_its_members() {
    let folder = Folder::new("damaged");
    let scope = Fleet::local(folder.file()).and_then(|fleet| fleet.scope("x", 100, SECOND));
    let scope = scope.expect("in range").when_away(Away::Closed);
    let budget = scope.join().expect("a runtime");
    let _permit = budget.acquire().await;
    let start = budget.snapshot();
    let damage = |name: &str| {
        let path = folder.path().join(name);
        let length = std::fs::metadata(&path).expect("it is there").len();
        let noise: Vec<u8> = (0..length).map(|_| fastrand::u8(..)).collect();
        std::fs::write(path, noise).expect("it takes writes");
    };
    damage("limits-wal");
    damage("limits-shm");
    damage("limits");
    assert_eq!(fault(folder.file()).await, Some(EngineFault::Corrupt));
    let shown = budget.changed(&start).await;
    assert!(shown.fault.is_some(), "{shown:?}");
    for name in ["limits", "limits-wal", "limits-shm"] {
        let _gone = std::fs::remove_file(folder.path().join(name));
    }
    // A new file is made, and the member goes on.
    let again = tokio::time::timeout(5 * SECOND, async {
        let mut shown = budget.snapshot();
        while (shown.standing, shown.fault) != (Standing::Leased, None) {
            shown = budget.changed(&shown).await;
        }
        budget.acquire().await
    });
    assert!(again.await.is_ok(), "{:?}", budget.snapshot());
    assert_eq!(fault(folder.file()).await, None);
}

/// Waits until a member has a lease again.
async fn goes_on(budget: &Budget) -> bool {
    let again = tokio::time::timeout(5 * SECOND, async {
        let mut shown = budget.snapshot();
        while (shown.standing, shown.fault) != (Standing::Leased, None) {
            let _permit = budget.try_acquire(budget.clock().now());
            let _changed = tokio::time::timeout(SECOND / 10, budget.changed(&shown)).await;
            shown = budget.snapshot();
        }
    });
    again.await.is_ok()
}

#[tokio::test]
async fn a_file_that_is_no_store_any_more_is_put_aside() {
    for name in ["emptied", "cut", "noise"] {
        let folder = Folder::new(name);
        let members = [0; 4].map(|_| {
            let scope = Fleet::local(folder.file()).and_then(|fleet| fleet.scope("x", 100, SECOND));
            let scope = scope.expect("in range").when_away(Away::Closed);
            scope.join().expect("a runtime")
        });
        for member in &members {
            let _permit = member.acquire().await;
        }
        let ruin = folder.ruin(name);
        // Each asks again, if only to say that it is there.
        tokio::time::sleep(SECOND).await;
        for member in &members {
            assert!(goes_on(member).await, "{name}: {:?}", member.snapshot());
        }
        let kept = std::fs::read(folder.path().join("limits.damaged"));
        assert!(kept.is_ok_and(|kept| kept == ruin), "{name}");
        assert_eq!(fault(folder.file()).await, None, "{name}");
    }
}

/// Returns how many requests of 100/s the members sent in three seconds, of 300.
async fn sent(members: &[Budget]) -> usize {
    let end = tokio::time::Instant::now() + 3 * SECOND;
    let sending: Vec<_> = members
        .iter()
        .cloned()
        .map(|member| {
            tokio::spawn(async move {
                let mut sent = 0;
                while tokio::time::timeout_at(end, member.acquire()).await.is_ok() {
                    sent += 1;
                }
                sent
            })
        })
        .collect();
    let mut sum = 0;
    for one in sending {
        sum += one.await.expect("it counts");
    }
    sum
}

/// A process that is stopped in the middle of a step is one that keeps the file locked.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_that_keeps_the_file_locked_is_left_behind() {
    let folder = Folder::new("locked");
    let fleet = Fleet::local(folder.file()).expect("a path");
    let members = [Away::Closed, Away::Open, Away::Alone].map(|away| {
        let scope = fleet.scope("x", 100, SECOND).expect("in range");
        scope.when_away(away).join().expect("a runtime")
    });
    for member in &members {
        let _permit = member.acquire().await;
    }
    let other = rusqlite::Connection::open(folder.file()).expect("SQLite's");
    let locked = other.execute_batch("BEGIN IMMEDIATE");
    locked.expect("no other step holds it for long");
    let began = std::time::Instant::now();
    let shown = members[0].changed(&members[0].snapshot()).await;
    assert_eq!(shown.fault, Some(EngineFault::TimedOut));
    for member in &members {
        assert!(goes_on(member).await, "{:?}", member.snapshot());
    }
    let took = began.elapsed();
    let came = sent(&members).await;
    println!("they went on after {took:.1?}, and used {came} of 300 beside the lock");
    assert!(took < 3 * SECOND, "{took:?}");
    assert!((285..=340).contains(&came), "{came}");
    // What it had begun is in a file of another name, and it finds the one of all.
    other.execute_batch("COMMIT").expect("it was begun");
    assert!(folder.path().join("limits.stopped").exists());
    assert_eq!(fault(folder.file()).await, None);
}

/// Where the path stands in the environment of [`says_what_is_wrong`], and what is expected.
const ORDER: &str = "LOCAL_FAULT_ORDER";

/// The process of the tests below.
#[tokio::test]
#[ignore = "started by the other tests"]
async fn says_what_is_wrong() {
    let order = std::env::var(ORDER).expect("the other tests give orders");
    let (path, expected) = order.split_once(' ').expect("two words");
    let mut found = fault(path).await;
    // A disk is full once it has been filled.
    for round in 0..200 {
        if expected != "DiskFull" || found.is_some() {
            break;
        }
        let scope =
            Fleet::local(path).and_then(|fleet| fleet.scope(&format!("{round:0>200}"), 1, SECOND));
        drop(scope.expect("in range").join().expect("a runtime"));
        found = fault(path).await;
    }
    assert_eq!(
        found.map(|fault| format!("{fault:?}")).unwrap_or_default(),
        expected
    );
}

/// Starts [`says_what_is_wrong`] with `command`, which starts the program after it.
fn child(mut command: Command, program: &Path, path: &Path, expected: &str) {
    let order = format!("{} {expected}", path.display());
    let name = "faults::says_what_is_wrong";
    command
        .arg(program)
        .args([name, "--ignored", "--exact", "--nocapture"]);
    let output = command.env(ORDER, order).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    if error.contains("unshare:") || error.contains("setpriv:") || error.contains("mount:") {
        println!("skipped: {error}");
        return;
    }
    assert!(output.status.success(), "{said}{error}");
}

#[test]
fn a_disk_that_is_full_has_its_fault() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let folder = Folder::new("full");
    // A small disk that only this process and its children see.
    let mut command = Command::new("unshare");
    let script = r#"mount -t tmpfs -o size=128k none "$0" && exec "$@""#;
    let path = folder.path().to_str().expect("a plain path");
    command.args([
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        script,
        path,
    ]);
    let program = std::env::current_exe().expect("a program has a path");
    child(command, &program, &folder.file(), "DiskFull");
}

#[test]
fn a_folder_or_a_file_that_may_not_be_written_has_its_fault() {
    if !cfg!(unix) {
        return;
    }
    let folder = Folder::new("read-only");
    let read_only = |path: &Path| {
        let mut permissions = std::fs::metadata(path).expect("it is there").permissions();
        permissions.set_readonly(true);
        std::fs::set_permissions(path, permissions).expect("its own");
    };
    // As a user that may write anything one has to be another one.
    let program = folder.path().join("program");
    let own = std::env::current_exe().expect("a program has a path");
    std::fs::copy(own, &program).expect("a copy of it");
    let without_rights = || {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        command
    };
    child(without_rights(), &program, &folder.file(), "ReadOnly");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let made = runtime.expect("a runtime").block_on(fault(folder.file()));
    assert_eq!(made, None);
    read_only(&folder.file());
    child(without_rights(), &program, &folder.file(), "ReadOnly");
}
