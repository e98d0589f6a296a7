//! What a file keeps after the process that asked for it.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use paceline::{Outcome, RetryQuota};
use paceline_fleet::{Away, Budget, Fleet, Scope, Standing};
use tokio::runtime::{Builder, Runtime};

use crate::folder::Folder;

const SECOND: Duration = Duration::from_secs(1);

/// What a process has: its end is the end of the runtime.
fn process() -> Runtime {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime")
}

fn scope(path: &Path, rate: u32) -> Scope {
    let fleet = Fleet::local(path).expect("a path");
    let scope = fleet.scope("orders", rate, SECOND).expect("in range");
    scope.when_away(Away::Closed)
}

async fn first_token(path: &Path, rate: u32) -> (Budget, Duration) {
    let began = Instant::now();
    let budget = scope(path, rate).join().expect("a runtime");
    let _permit = budget.acquire().await;
    (budget, began.elapsed())
}

/// Returns how many tokens a process gets at once.
async fn taken_at_once(path: &Path, rate: u32) -> u32 {
    let (budget, _) = first_token(path, rate).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    let more = (0..).take_while(|_| budget.try_acquire(budget.clock().now()).is_ok());
    1 + u32::try_from(more.count()).expect("few")
}

#[test]
fn a_new_process_has_its_first_token_from_what_was_saved_up() {
    let folder = Folder::new("first");
    // The file is new, and starts empty.
    process().block_on(first_token(&folder.file(), 10));
    std::thread::sleep(SECOND);
    // A token takes 100 ms at this rate; the next process need not wait for it.
    let (_, wait) = process().block_on(first_token(&folder.file(), 10));
    println!("first: a token after {wait:?}");
    assert!(wait < Duration::from_millis(90), "{wait:?}");
}

#[test]
fn what_a_process_did_not_use_goes_back_when_its_runtime_ends() {
    let folder = Folder::new("back");
    process().block_on(first_token(&folder.file(), 2));
    // Two tokens are all that the file keeps at this rate.
    std::thread::sleep(SECOND + SECOND / 2);
    let held = process().block_on(async {
        let budget = scope(&folder.file(), 2).join().expect("a runtime");
        while budget.snapshot().held == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // It outlives its runtime, as one in a static does.
        budget
    });
    assert_eq!(
        (held.snapshot().standing, held.snapshot().held),
        (Standing::Ended, 0)
    );
    let connection = rusqlite::Connection::open(folder.file()).expect("SQLite's");
    let fields: u32 = connection
        .query_row("SELECT count(*) FROM field", [], |row| row.get(0))
        .expect("a table");
    assert_eq!(fields, 1, "the scope's own, and no member's");
    let scope: String = connection
        .query_row("SELECT value FROM field WHERE name = 's'", [], |row| {
            row.get(0)
        })
        .expect("a row");
    let tokens = scope.split(' ').nth(1).expect("the second is the tokens");
    let tokens: f64 = tokens.parse().expect("a number");
    assert!(tokens > 1.9, "{tokens} of 2");
}

#[test]
fn a_member_that_leaves_has_left_when_it_hears_so() {
    let folder = Folder::new("leave");
    process().block_on(async {
        let (budget, _) = first_token(&folder.file(), 1_000).await;
        let other = budget.clone();
        // Not the last handle: the member stays.
        budget.leave().await;
        assert_eq!(other.snapshot().members, 1);
        other.leave().await;
        let (next, _) = first_token(&folder.file(), 1_000).await;
        assert_eq!(next.snapshot().members, 1);
    });
}

#[test]
fn a_pause_and_a_rate_that_was_learned_outlive_the_process() {
    let folder = Folder::new("pause");
    let pause = Duration::from_millis(1_500);
    let asked = process().block_on(async {
        let (budget, _) = first_token(&folder.file(), 1_000).await;
        let permit = budget.acquire().await;
        budget.record(permit, Outcome::ThrottledFor(pause));
        Instant::now()
    });
    // Nothing has got through, so that the pause is one for all; here by the first word of the one
    // that has ended.
    let (rate, waited) = process().block_on(async {
        let (budget, _) = first_token(&folder.file(), 1_000).await;
        (budget.snapshot().rate, asked.elapsed())
    });
    println!("pause: the next process sent after {waited:?}, at {rate} thousandths/s");
    assert!(
        waited.saturating_add(Duration::from_millis(50)) >= pause,
        "{waited:?}"
    );
    assert!(rate < 1_000_000, "{rate}");
}

#[test]
fn a_retry_quota_is_full_at_first_and_outlives_the_process() {
    let folder = Folder::new("quota");
    let left = |spend: u32| {
        process().block_on(async {
            let quota = Arc::new(RetryQuota::new(500));
            let fleet = Fleet::local(folder.file()).expect("a path");
            let scope = fleet.retry_budget("tools", 60).expect("in range");
            let member = scope.join(&quota).expect("a runtime");
            while quota.available() < 10 {
                tokio::time::sleep(Duration::from_millis(5)).await;
                if member.snapshot().pool == 0 && member.snapshot().members > 0 {
                    break;
                }
            }
            let held = quota.available();
            let _spent = quota.try_acquire(spend.min(held));
            held
        })
    };
    // Of 60 the first one holds 50, spends 45 and gives 5 back.
    assert_eq!([left(45), left(15), left(5)], [50, 15, 0]);
}

#[test]
fn a_process_gets_at_once_no_more_than_the_file_keeps() {
    let folder = Folder::new("kept");
    process().block_on(first_token(&folder.file(), 100));
    std::thread::sleep(SECOND);
    let taken = process().block_on(taken_at_once(&folder.file(), 100));
    assert!((1..=10).contains(&taken), "100 ms at the rate: {taken}");
}
