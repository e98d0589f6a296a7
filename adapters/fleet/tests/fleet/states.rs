//! What a member says of itself when it gets nothing.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use paceline::{Clock, MonotonicClock, Timestamp};
use paceline_fleet::{Away, EngineFault, Fleet, FleetError, Scope, Standing};

use crate::rig::engine::{Engine, free_port};
use crate::scene::alone;

fn scope(address: &str, name: &str) -> Scope {
    let fleet = Fleet::open(address).unwrap();
    let scope = fleet.scope(name, 1_000, Duration::from_secs(1)).unwrap();
    scope.when_away(Away::Closed)
}

#[test]
fn a_member_whose_run_time_is_dropped_says_that_it_has_ended() {
    let _alone = alone();
    let Some(engine) = Engine::start(&[]) else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listened = Arc::clone(&heard);
    let scope = scope(&engine.address(), "ended").on_change(move |shown| {
        listened.lock().unwrap().push((shown.standing, shown.fault));
    });
    let budget = runtime.block_on(async { scope.join() }).unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while budget.snapshot().standing != Standing::Leased {
        assert!(Instant::now() < deadline, "{:?}", budget.snapshot());
        std::thread::sleep(Duration::from_millis(5));
    }
    runtime.shutdown_timeout(Duration::from_secs(5));
    let shown = budget.snapshot();
    let ended = (Standing::Ended, Some(EngineFault::TaskEnded));
    assert_eq!((shown.standing, shown.fault), ended);
    assert!(budget.try_acquire(budget.clock().now()).is_err());
    let heard = heard.lock().unwrap();
    // Before its lease a busy machine may be closed for a while.
    assert!(
        heard.ends_with(&[(Standing::Leased, None), ended]),
        "{heard:?}"
    );
}

#[tokio::test]
async fn an_engine_that_forgets_what_it_is_told_is_named() {
    let _alone = alone();
    let Some(engine) = Engine::start(&[]) else {
        return;
    };
    let budget = scope(&engine.address(), "flushed").join().unwrap();
    let waits = budget.clone();
    let worker = tokio::spawn(async move {
        loop {
            let _permit = waits.acquire().await;
        }
    });
    let began = Instant::now();
    let mut states = Vec::new();
    while began.elapsed() < Duration::from_millis(2_500) {
        engine.says("FLUSHALL").unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await;
        states.push((budget.snapshot().standing, budget.snapshot().fault));
    }
    let closed = (Standing::Closed, Some(EngineFault::Forgets));
    assert!(states.contains(&closed), "{:?}", states.last());
    // And it heals once that ends.
    let began = Instant::now();
    while budget.snapshot().standing != Standing::Leased {
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "{:?}",
            budget.snapshot()
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    worker.abort();
}

#[tokio::test]
async fn the_least_rights_are_enough() {
    let _alone = alone();
    let Some(engine) = Engine::start(&[]) else {
        return;
    };
    let rights = "ACL SETUSER worker on >sesame ~paceline:* -@all +eval +evalsha +script|load +time +hmget +hset +hdel \
                  +hgetall +pexpire +hlen +hrandfield +hget";
    assert_eq!(engine.says(rights).unwrap(), "+OK\r\n");
    let address = format!("redis://worker:sesame@127.0.0.1:{}/", engine.port());
    let budget = scope(&address, "rights").join().unwrap();
    let shown = budget.changed(&budget.snapshot()).await;
    assert_eq!((shown.standing, shown.fault), (Standing::Leased, None));
    let quota = Arc::new(paceline::RetryQuota::new(500));
    let retries = Fleet::open(&address)
        .unwrap()
        .retry_budget("rights", 1_000)
        .unwrap();
    let member = retries.join(&quota).unwrap();
    let began = Instant::now();
    while member.snapshot().members == 0 {
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "{:?}",
            member.snapshot()
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(member.snapshot().fault, None);
}

/// A clock that panics once it is set to.
#[derive(Debug)]
struct Trap(MonotonicClock, AtomicBool);

impl Clock for Trap {
    fn now(&self) -> Timestamp {
        assert!(!self.1.load(Relaxed), "the clock was told to panic");
        self.0.now()
    }
}

#[tokio::test]
async fn a_member_whose_task_panics_says_that_it_has_ended() {
    let _alone = alone();
    let Some(engine) = Engine::start(&[]) else {
        return;
    };
    let trap = Arc::new(Trap(MonotonicClock::new(), AtomicBool::new(false)));
    let clock: Arc<dyn Clock> = Arc::<Trap>::clone(&trap);
    let budget = scope(&engine.address(), "panics")
        .clock(clock)
        .join()
        .unwrap();
    let leased = budget.changed(&budget.snapshot()).await;
    assert_eq!((leased.standing, leased.fault), (Standing::Leased, None));
    trap.1.store(true, Relaxed);
    let shown = budget.changed(&leased).await;
    trap.1.store(false, Relaxed);
    let ended = (Standing::Ended, Some(EngineFault::TaskEnded));
    assert_eq!(
        (shown.standing, shown.fault, shown.held),
        (ended.0, ended.1, 0)
    );
    assert!(budget.try_acquire(budget.clock().now()).is_err());
}

/// Returns what is wrong with the engine, before any scope is joined.
async fn checked(address: &str) -> Option<EngineFault> {
    match Fleet::connect(address).await {
        Ok(_fleet) => None,
        Err(FleetError::Engine { fault, .. }) => Some(fault),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn the_constructor_refuses_a_node_of_a_cluster() {
    let _alone = alone();
    let bus = free_port();
    let nodes = std::env::temp_dir().join(format!("paceline-fleet-{bus}.conf"));
    let (port, file) = (bus.to_string(), nodes.to_string_lossy().into_owned());
    let options = [
        "--cluster-enabled",
        "yes",
        "--cluster-port",
        &port,
        "--cluster-config-file",
        &file,
    ];
    let Some(engine) = Engine::start(&options) else {
        return;
    };
    let rights = "ACL SETUSER worker on >sesame ~paceline:* -@all +eval +evalsha +script|load +time +hmget +hset +hdel \
                  +hgetall +pexpire";
    assert_eq!(engine.says(rights).unwrap(), "+OK\r\n");
    let address = format!("redis://worker:sesame@127.0.0.1:{}/", engine.port());
    // Without slots, and then with all of them.
    for slots in ["PING", "CLUSTER ADDSLOTSRANGE 0 16383"] {
        let said = engine.says(slots).unwrap();
        assert!(said.starts_with('+'), "{said}");
        let refused = Fleet::connect(&address).await.unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the engine is a node of a cluster; it has to be a single engine or a proxy",
            "{slots}"
        );
        assert_eq!(checked(&address).await, Some(EngineFault::Cluster));
        // One that was opened only says so by its first fault, state and event.
        let heard = Arc::new(Mutex::new(Vec::new()));
        let listened = Arc::clone(&heard);
        let scope = scope(&address, "cluster").on_change(move |shown| {
            listened.lock().unwrap().push((shown.standing, shown.fault));
        });
        let budget = scope.join().unwrap();
        let shown = budget.changed(&budget.snapshot()).await;
        let closed = (Standing::Closed, Some(EngineFault::Cluster));
        assert_eq!((shown.standing, shown.fault), closed, "{slots}");
        assert_eq!(*heard.lock().unwrap(), [closed], "{slots}");
    }
    drop(engine);
    std::fs::remove_file(nodes).expect("the server wrote it");
}

#[test]
fn an_engine_can_be_checked_before_it_is_used() {
    let _alone = alone();
    let Some(engine) = Engine::start(&[]) else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let check = |address: &str| runtime.block_on(checked(address));
    assert_eq!(check(&engine.address()), None);
    let closed = format!("redis://127.0.0.1:{}/", free_port());
    assert_eq!(check(&closed), Some(EngineFault::Unreachable));
}
