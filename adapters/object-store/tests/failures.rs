//! What is sent again, what the strategy records, and what it costs.

mod support;

extern crate alloc;

use alloc::sync::Arc;
use core::time::Duration;

use futures_util::{StreamExt as _, stream};
use kit::Always;
use object_store::{
    CopyMode, CopyOptions, Error, ObjectStore, ObjectStoreExt as _, PutMode, PutPayload, Result,
    path::Path,
};
use paceline::{Adaptive, Failure, Standard, TokioClock};
use paceline_object_store::{Lanes, PacedStore, Pacing};
use support::{BROKEN, SLOW_DOWN, Script, Scripted, WRONG, standard};

/// A store whose every operation is on one strategy, with an object in it.
async fn store() -> (PacedStore<Scripted>, Arc<Script>, Arc<Standard>) {
    let strategy = standard();
    let lanes = Lanes::shared(strategy.clone(), strategy.clone());
    let (scripted, script) = Scripted::new();
    let store = PacedStore::new(scripted, Pacing::by(move |_| lanes.clone()));
    let put = store
        .put(&Path::from("x"), PutPayload::from_static(b"one"))
        .await;
    put.expect("it is written");
    script.requests();
    (store, script, strategy)
}

/// Does something with the object `x`.
async fn work(what: &str, store: &PacedStore<Scripted>) -> Result<()> {
    let (x, y) = (&Path::from("x"), &Path::from("y"));
    let payload = PutPayload::from_static(b"two");
    match what {
        "put" => store.put(x, payload).await.map(drop),
        "put new" => store
            .put_opts(y, payload, PutMode::Create.into())
            .await
            .map(drop),
        "get" => store.get(x).await.map(drop),
        "list" => store
            .list(None)
            .next()
            .await
            .map_or(Ok(()), |first| first.map(drop)),
        "list all" => store.list_with_delimiter(None).await.map(drop),
        "copy" => store.copy(x, y).await,
        "copy new" => {
            let new = CopyOptions::new().with_mode(CopyMode::Create);
            store.copy_opts(x, y, new).await
        }
        "create" => store.put_multipart(y).await.map(drop),
        "rename" => store.rename(x, y).await,
        "delete" => store.delete(x).await,
        _ => unreachable!("{what}"),
    }
}

#[tokio::test]
async fn what_can_be_sent_again_is_and_what_may_have_been_done_is_not() {
    // Sends after a throttle, after a 500, and after a 400.
    let expected = [
        ("put", [2, 2, 1]),
        ("put new", [2, 1, 1]),
        ("get", [2, 2, 1]),
        ("list", [2, 2, 1]),
        ("list all", [2, 2, 1]),
        ("copy", [2, 2, 1]),
        ("copy new", [2, 1, 1]),
        ("create", [2, 1, 1]),
        ("rename", [1, 1, 1]),
        ("delete", [2, 1, 1]),
    ];
    for (what, sends) in expected {
        for (text, sends) in [SLOW_DOWN, BROKEN, WRONG].into_iter().zip(sends) {
            let (store, script, strategy) = store().await;
            script.fail(&[text]);
            let ended = work(what, &store).await;
            assert_eq!(script.requests().len(), sends, "{what} {text}");
            assert_eq!(ended.is_ok(), sends == 2, "{what} {text}");
            // A retry is paid back by its success, and none is paid that is not made.
            assert_eq!(strategy.quota().available(), 500, "{what} {text}");
        }
    }
}

#[tokio::test]
async fn after_three_attempts_the_stores_own_error_is_returned() {
    let (store, script, strategy) = store().await;
    script.fail(&[SLOW_DOWN, SLOW_DOWN, SLOW_DOWN, SLOW_DOWN]);
    let error = work("get", &store).await.expect_err("it was throttled");
    assert!(
        matches!(
            &error,
            Error::Generic {
                store: "Scripted",
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(
        (script.requests().len(), strategy.quota().available()),
        (3, 490)
    );
}

#[tokio::test]
async fn a_classifier_of_ones_own_is_asked_first() {
    let lanes = Lanes::shared(standard(), standard());
    let (scripted, script) = Scripted::new();
    let missing = |error: &Error| matches!(error, Error::NotFound { .. }).then(Failure::transient);
    let pacing = Pacing::by(move |_| lanes.clone()).classifier(missing);
    let store = PacedStore::new(scripted, pacing);
    assert!(store.get(&Path::from("x")).await.is_err());
    assert_eq!(script.requests(), ["get"; 3]);
    script.fail(&[SLOW_DOWN]);
    assert!(store.list_with_delimiter(None).await.is_ok());
    assert_eq!(script.requests(), ["list"; 2]);
}

/// Returns which of the strategies for reads and for writes have been throttled after `work`.
async fn heard(work: impl AsyncFnOnce(&PacedStore<Scripted>, &Script)) -> [bool; 2] {
    let adaptive = || {
        let strategy = Adaptive::builder()
            .law(paceline::ControlLaw::Aws)
            .clock(Arc::new(TokioClock::new()))
            .backoff(Arc::new(Always(Duration::ZERO)));
        Arc::new(strategy.build().expect("the settings are in range"))
    };
    let (read, write) = (adaptive(), adaptive());
    let lanes = Lanes::shared(read.clone(), write.clone());
    let (scripted, script) = Scripted::new();
    let pacing = Pacing::by(move |_| lanes.clone()).list_page(4);
    let store = PacedStore::new(scripted, pacing);
    for name in ["x", "x1", "x2", "x3", "x4"] {
        let put = store.put(&Path::from(name), PutPayload::new()).await;
        put.expect("it is written");
    }
    work(&store, &script).await;
    [read, write].map(|strategy| {
        let now = strategy.clock().now();
        strategy.send_rate().snapshot(now).enabled
    })
}

#[tokio::test(start_paused = true)]
async fn the_lane_of_an_operation_hears_of_its_throttling() {
    let expected = [
        ("get", [true, false]),
        ("list", [true, false]),
        ("list all", [true, false]),
        ("put", [false, true]),
        ("copy", [false, true]),
        ("rename", [false, true]),
        ("create", [false, true]),
        ("delete", [false, true]),
    ];
    for (what, lanes) in expected {
        let throttled = heard(async |store, script| {
            script.fail(&[SLOW_DOWN]);
            drop(work(what, store).await);
        });
        assert_eq!(throttled.await, lanes, "{what}");
        let broken = heard(async |store, script| {
            script.fail(&[WRONG]);
            drop(work(what, store).await);
        });
        assert_eq!(broken.await, [false, false], "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn so_it_does_of_what_is_in_parts() {
    let second_page = heard(async |store, script| {
        script.fail(&["", SLOW_DOWN]);
        let listed: Vec<_> = store.list(None).map(|entry| entry.is_ok()).collect().await;
        assert_eq!(listed, [true, true, true, true, false]);
    });
    assert_eq!(second_page.await, [true, false]);

    for failing in 0..3 {
        let part = heard(async |store, script| {
            let mut upload = store
                .put_multipart(&Path::from("y"))
                .await
                .expect("an upload");
            let mut failures = [""; 3];
            failures[failing] = SLOW_DOWN;
            script.fail(&failures);
            let ended = [
                upload.put_part("one".into()).await.is_ok(),
                upload.complete().await.is_ok(),
                upload.abort().await.is_ok(),
            ];
            assert_eq!(ended, [0, 1, 2].map(|n| n != failing));
        });
        assert_eq!(part.await, [false, true], "{failing}");
    }
}

#[tokio::test]
async fn of_deletes_each_outcome_goes_to_the_lane_of_its_own_location() {
    let (scripted, script) = Scripted::new();
    let (one, other) = (
        standard(),
        Arc::new(Adaptive::new(paceline::ControlLaw::Aws)),
    );
    let lanes = [
        Lanes::shared(one.clone(), one),
        Lanes::shared(other.clone(), other.clone()),
    ];
    let pacing = Pacing::by(move |path| lanes[usize::from(path.as_ref() == "b")].clone());
    let store = PacedStore::new(scripted, pacing);
    script.fail(&["", SLOW_DOWN, ""]);
    let own = Error::NotImplemented {
        operation: "none".into(),
        implementer: "the caller".into(),
    };
    let [a, b, c] = ["a", "b", "c"].map(|name| Ok(Path::from(name)));
    let locations = stream::iter([Err(own), a, b, c]);
    let gone = store.delete_stream(locations.boxed());
    let gone: Vec<_> = gone.map(|gone| gone.is_ok()).collect().await;
    assert_eq!(gone, [false, true, true, true]);
    assert!(other.send_rate().snapshot(other.clock().now()).enabled);
}
