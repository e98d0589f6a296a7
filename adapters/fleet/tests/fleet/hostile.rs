//! Foreign values, engines that refuse, and secrets that stay secret.

use std::time::{Duration, Instant};

use paceline_fleet::{Away, EngineFault, Fleet, FleetError, Standing};

use redis::Connection;

use crate::rig::engine::Engine;
use crate::scene::alone;
use crate::step::{ASK, Step};

const KEY: &str = "k";

fn connect(engine: &Engine) -> Connection {
    let client = redis::Client::open(engine.address()).expect("an address");
    client.get_connection().expect("the server answers")
}

fn take(step: &Step, engine: &mut Connection) -> redis::RedisResult<Vec<i64>> {
    let script = redis::Script::new(include_str!("../../src/step.lua"));
    let mut call = script.key(KEY);
    call.arg(step.member).arg(step.words()).invoke(engine)
}

#[test]
fn everything_expires() {
    let _alone = alone();
    let Some(engine) = Engine::start(&[]) else {
        return;
    };
    let mut engine = connect(&engine);
    take(&ASK, &mut engine).unwrap();
    let left: i64 = redis::cmd("PTTL").arg(KEY).query(&mut engine).unwrap();
    assert!((500_000..=600_000).contains(&left), "kept for {left} ms");
}

#[test]
fn a_broken_value_is_an_error_and_no_grant() {
    let _alone = alone();
    let Some(engine) = Engine::start(&[]) else {
        return;
    };
    let mut engine = connect(&engine);
    let good = "9e15 1e15 1000 1000 0 1e15 1 0 0 0 0 0 0 0 0 0 0 0 0 1 0 0 0 0 0";
    let scopes = [
        "",
        "x",
        "1 2 3",
        "nan",
        "-1",
        "1e999",
        &good.replacen("1e15", "nan", 1),
        &good.replacen("1e15", "-5", 1),
        good.split_once(' ').expect("words").1,
    ];
    for value in scopes {
        redis::cmd("HSET")
            .arg(KEY)
            .arg("s")
            .arg(value)
            .exec(&mut engine)
            .unwrap();
        let error = take(&ASK, &mut engine).unwrap_err();
        assert_eq!(error.code(), Some("BROKEN"), "{value:?}: {error}");
    }
    redis::cmd("DEL").arg(KEY).exec(&mut engine).unwrap();
    for value in [
        "",
        "1 2",
        "x 1 1 1 1 1 1 1 1 1 1 1",
        "1 1 1 1 1 1 1 1 1 1 1 inf",
    ] {
        redis::cmd("HSET")
            .arg(KEY)
            .arg("ma")
            .arg(value)
            .exec(&mut engine)
            .unwrap();
        let error = take(&ASK, &mut engine).unwrap_err();
        assert_eq!(error.code(), Some("BROKEN"), "{value:?}: {error}");
    }
    redis::cmd("SET")
        .arg(KEY)
        .arg("mine")
        .exec(&mut engine)
        .unwrap();
    assert_eq!(
        take(&ASK, &mut engine).unwrap_err().code(),
        Some("WRONGTYPE")
    );
}

#[test]
fn more_tokens_in_a_key_than_there_can_be_are_no_more_than_the_burst() {
    let _alone = alone();
    let Some(engine) = Engine::start(&[]) else {
        return;
    };
    let mut engine = connect(&engine);
    // One that was last changed days from now would start empty, whatever it has.
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_micros();
    let rich = format!("{now} 1e15 1000 1000 0 1e15 1 0 0 0 0 0 0 0 0 0 0 0 0 1 0 0 0 0 0");
    redis::cmd("HSET")
        .arg(KEY)
        .arg("s")
        .arg(rich)
        .exec(&mut engine)
        .unwrap();
    let began = Instant::now();
    let granted: i64 = (1..=50)
        .map(|seq| take(&Step { seq, ..ASK }, &mut engine).unwrap()[0])
        .sum();
    // The engine's clock mints a thousand a second meanwhile.
    let minted = i64::try_from(began.elapsed().as_millis()).unwrap();
    assert!(
        (50..200 + minted).contains(&granted),
        "granted {granted}, minted {minted}"
    );
}

/// Returns what a member of a scope at `address` says once it has a fault, and takes a token if it
/// is let.
async fn fault_at(address: &str, away: Away) -> (EngineFault, Standing, bool) {
    let fleet = Fleet::open(address).unwrap();
    let scope = fleet
        .scope("hostile", 1_000, Duration::from_secs(1))
        .unwrap();
    let budget = scope.when_away(away).join().unwrap();
    for _ in 0..200 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let shown = budget.snapshot();
        if let Some(fault) = shown.fault {
            // At the floor there is a token in two seconds.
            let deadline = tokio::time::Instant::now() + Duration::from_millis(2_500);
            let taken = budget.acquire_before(deadline).await;
            return (fault, budget.snapshot().standing, taken.is_ok());
        }
    }
    panic!("no fault at {address}: {:?}", budget.snapshot());
}

#[tokio::test]
async fn every_way_of_being_away_has_its_error_and_its_policy() {
    let _alone = alone();
    let unreachable = "redis://127.0.0.1:1/";
    let away = [
        (Away::Alone, Standing::Alone, true),
        (Away::Closed, Standing::Closed, false),
        (Away::Open, Standing::Open, true),
    ];
    for (away, standing, lets) in away {
        assert_eq!(
            fault_at(unreachable, away).await,
            (EngineFault::Unreachable, standing, lets)
        );
    }
    let closed = |fault| (fault, Standing::Closed, false);
    let Some(locked) = Engine::start(&["--requirepass", "sesame"]) else {
        return;
    };
    let port = locked.port();
    for wrong in [
        format!("redis://127.0.0.1:{port}/"),
        format!("redis://:wrong@127.0.0.1:{port}/"),
    ] {
        assert_eq!(
            fault_at(&wrong, Away::Closed).await,
            closed(EngineFault::Unauthorized),
            "{wrong}"
        );
    }
    let Some(full) = Engine::start(&["--maxmemory", "1"]) else {
        return;
    };
    assert_eq!(
        fault_at(&full.address(), Away::Closed).await,
        closed(EngineFault::OutOfMemory)
    );
    let Some(lonely) = Engine::start(&["--min-replicas-to-write", "1"]) else {
        return;
    };
    assert_eq!(
        fault_at(&lonely.address(), Away::Closed).await,
        closed(EngineFault::ReadOnly)
    );
    let Some(taken) = Engine::start(&[]) else {
        return;
    };
    taken.says("SET paceline:send:v1:{hostile} mine").unwrap();
    assert_eq!(
        fault_at(&taken.address(), Away::Closed).await,
        closed(EngineFault::Broken)
    );
}

/// Returns why an engine at `address` is refused.
async fn refused(address: &str) -> Option<EngineFault> {
    match Fleet::connect(address).await {
        Err(FleetError::Engine { fault, .. }) => Some(fault),
        Err(error) => panic!("{error}"),
        Ok(_) => None,
    }
}

#[tokio::test]
async fn an_engine_that_cannot_be_used_is_refused_by_name() {
    let _alone = alone();
    let Some(primary) = Engine::start(&[]) else {
        return;
    };
    assert_eq!(refused(&primary.address()).await, None);
    let Some(replica) = Engine::start(&["--repl-diskless-sync-delay", "0"]) else {
        return;
    };
    replica.follow(&primary).await;
    assert_eq!(
        refused(&replica.address()).await,
        Some(EngineFault::ReadOnly)
    );
    let full = Engine::start(&["--maxmemory", "1"]).expect("there is a server");
    assert_eq!(
        refused(&full.address()).await,
        Some(EngineFault::OutOfMemory)
    );
    let renamed = Engine::start(&["--rename-command", "EVALSHA", "hidden"]);
    let renamed = renamed.expect("there is a server");
    assert_eq!(
        refused(&renamed.address()).await,
        Some(EngineFault::NoCommand)
    );
    let port = primary.port();
    let rights = "+eval +evalsha +script|load +time +hmget +hset +hdel +pexpire";
    for (user, pattern, more) in [
        ("keys", "~other:*", "+hgetall"),
        ("rights", "~paceline:*", ""),
    ] {
        let order = format!("ACL SETUSER {user} on >sesame {pattern} -@all {rights} {more}");
        assert_eq!(primary.says(&order).ok().as_deref(), Some("+OK\r\n"));
        let address = format!("redis://{user}:sesame@127.0.0.1:{port}/");
        assert_eq!(
            refused(&address).await,
            Some(EngineFault::Unauthorized),
            "{user}"
        );
    }
}

#[tokio::test]
async fn a_sentinel_is_refused_by_name() {
    let _alone = alone();
    let Some(sentinel) = Engine::start_sentinel() else {
        return;
    };
    assert_eq!(
        refused(&sentinel.address()).await,
        Some(EngineFault::Sentinel)
    );
}

#[tokio::test]
async fn the_right_password_opens_and_is_never_shown() {
    let _alone = alone();
    let Some(locked) = Engine::start(&["--requirepass", "sesame"]) else {
        return;
    };
    let fleet = Fleet::open(&format!("redis://:sesame@127.0.0.1:{}/", locked.port())).unwrap();
    let scope = fleet
        .scope("hostile", 1_000, Duration::from_secs(1))
        .unwrap();
    let shown = format!("{fleet:?} {scope:?}");
    let budget = scope.join().unwrap();
    let permit = budget.acquire().await;
    assert_eq!(budget.snapshot().fault, None);
    let shown = format!("{shown} {budget:?} {permit:?} {:?}", budget.snapshot());
    assert!(!shown.contains("sesame"), "{shown}");
}
