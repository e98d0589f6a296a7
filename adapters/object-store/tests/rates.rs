//! What takes a turn, at which rate, and in whose line.

mod support;

extern crate alloc;

use alloc::sync::Arc;
use core::time::Duration;

use futures_util::StreamExt as _;
use object_store::{
    GetOptions, ObjectStore, ObjectStoreExt as _, PutPayload, Result, memory::InMemory, path::Path,
};
use paceline::operation::Stop;
use paceline_object_store::{Lanes, PacedStore, Pacing};
use support::{Scripted, fixed, refusing};
use tokio::time::{Instant, timeout};

/// Ten reads and two writes a second. Tokio's timer is up to a millisecond late, so times are in
/// hundredths.
fn lanes() -> Lanes {
    Lanes::shared(fixed(10), fixed(2))
}

fn one() -> Pacing {
    let lanes = lanes();
    Pacing::by(move |_| lanes.clone())
}

async fn put(store: &impl ObjectStore, path: &str) {
    let put = store
        .put(&Path::from(path), PutPayload::from_static(b"one"))
        .await;
    put.expect("it is written");
}

async fn get(store: &impl ObjectStore, path: &str) {
    store.get(&Path::from(path)).await.expect("it is there");
}

#[tokio::test(start_paused = true)]
async fn reads_and_writes_stand_in_lines_of_their_own() {
    let store = PacedStore::new(InMemory::new(), one());
    let begun = Instant::now();
    let mut ends = Vec::new();
    for name in ["a", "b", "c"] {
        put(&store, name).await;
        ends.push(begun.elapsed().as_millis() / 10);
    }
    // Ten reads in the same second; at once, since none was made so far.
    for name in ["a", "b", "c", "a"] {
        get(&store, name).await;
        ends.push(begun.elapsed().as_millis() / 10);
    }
    assert_eq!(ends, [0, 50, 100, 100, 110, 120, 130]);
}

#[tokio::test(start_paused = true)]
async fn each_prefix_has_its_lines_and_the_root_shares_those_for_which_there_is_no_room() {
    let pacing = Pacing::by_prefix(1, |_| lanes()).max_prefixes(2);
    let store = PacedStore::new(InMemory::new(), pacing);
    let begun = Instant::now();
    let mut ends = Vec::new();
    for name in ["a/x", "b/x", "b/deep/x", "c/x", "root", "d/x", "a/x"] {
        put(&store, name).await;
        ends.push((name, begun.elapsed().as_millis() / 10));
    }
    let expected = [
        ("a/x", 0),
        ("b/x", 0),
        ("b/deep/x", 50),
        ("c/x", 50),
        ("root", 100),
        ("d/x", 150),
        ("a/x", 150),
    ];
    assert_eq!(ends, expected);
}

#[tokio::test(start_paused = true)]
async fn stores_share_only_what_they_are_told_to() {
    let both = Arc::new(one());
    let stores = [
        PacedStore::new(InMemory::new(), both.clone()),
        PacedStore::new(InMemory::new(), both),
        PacedStore::new(InMemory::new(), one()),
    ];
    let begun = Instant::now();
    let mut ends = Vec::new();
    for store in [&stores[0], &stores[1], &stores[2], &stores[0].clone()] {
        put(store, "x").await;
        ends.push(begun.elapsed().as_millis() / 10);
    }
    assert_eq!(ends, [0, 50, 50, 100]);
}

#[tokio::test(start_paused = true)]
async fn who_is_dropped_in_line_gives_the_place_back() {
    let (scripted, script) = Scripted::new();
    let store = PacedStore::new(scripted, one());
    put(&store, "x").await;
    put(&store, "y").await;
    script.requests();
    let begun = Instant::now();
    let (x, y) = (&Path::from("x"), &Path::from("y"));
    let moment = Duration::from_millis(60);
    assert!(
        timeout(moment, store.put(x, PutPayload::new()))
            .await
            .is_err()
    );
    assert!(timeout(moment, store.delete(x)).await.is_err());
    assert!(timeout(moment, store.copy(x, y)).await.is_err());
    assert!(timeout(moment, store.rename(x, y)).await.is_err());
    assert!(timeout(moment, store.put_multipart(x)).await.is_err());
    assert_eq!(script.requests(), [""; 0]);
    put(&store, "z").await;
    assert_eq!(begun.elapsed().as_millis() / 10, 50);
}

#[tokio::test(start_paused = true)]
async fn a_strategy_that_does_not_wait_says_so() {
    let (scripted, script) = Scripted::new();
    let store = PacedStore::new(scripted, Pacing::new(refusing(), refusing()).list_page(0));
    put(&store, "x").await;
    let (x, y) = (Path::from("x"), Path::from("y"));
    let mut list = store.list(None);
    assert!(list.next().await.expect("an entry").is_ok());
    let refused = [
        store.put(&x, PutPayload::new()).await.map(drop),
        store.get_opts(&x, GetOptions::default()).await.map(drop),
        store.list_with_delimiter(None).await.map(drop),
        list.next().await.expect("an error").map(drop),
        store.list(None).next().await.expect("an error").map(drop),
        store.copy(&x, &y).await,
        store.rename(&x, &y).await,
        store.delete(&x).await,
        store.put_multipart(&x).await.map(drop),
    ];
    for refused in refused {
        let stop = stop(&refused);
        assert_eq!(stop.wait().as_millis(), 100, "{refused:?}");
        assert_eq!(stop.name(), Some("orders"));
    }
    assert_eq!(script.requests(), ["put", "list"]);
}

/// Returns why the strategy sent nothing.
fn stop(refused: &Result<()>) -> &Stop {
    match refused {
        Err(object_store::Error::Generic { source, .. }) => {
            source.downcast_ref::<Stop>().expect("its own error")
        }
        _ => panic!("{refused:?}"),
    }
}
