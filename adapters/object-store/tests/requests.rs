//! How many turns each operation takes.

mod support;

extern crate alloc;

use alloc::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use object_store::{ObjectStore as _, ObjectStoreExt as _, path::Path};
use paceline_object_store::{Lanes, PacedStore, Pacing};
use support::{Script, Scripted, fixed};
use tokio::time::Instant;

/// Ten turns a second for all requests, lists of four to a page, and the objects `d/0` to `d/5`.
struct Fixture {
    store: PacedStore<Scripted>,
    script: Arc<Script>,
}

fn path(n: u32) -> Path {
    Path::from(format!("d/{n}"))
}

impl Fixture {
    async fn new() -> Self {
        let all = fixed(10);
        let pacing = Pacing::by(move |_| Lanes::shared(all.clone(), all.clone())).list_page(4);
        let (scripted, script) = Scripted::new();
        for n in 0..6 {
            scripted
                .put(&path(n), "one".into())
                .await
                .expect("it is written");
        }
        script.requests();
        let store = PacedStore::new(scripted, pacing);
        Self { store, script }
    }

    /// Counts the turns that `work` takes, and returns the requests that it makes.
    async fn counted(
        &self,
        work: impl AsyncFnOnce(&PacedStore<Scripted>),
    ) -> (u128, Vec<&'static str>) {
        // The next turn stands behind all of them, and the one before has to be over.
        self.store.head(&path(5)).await.expect("it is there");
        self.script.requests();
        let begun = Instant::now();
        work(&self.store).await;
        let requests = self.script.requests();
        self.store.head(&path(5)).await.expect("it is there");
        let turns = begun.elapsed().as_millis() / 100;
        (turns.saturating_sub(1), requests)
    }
}

#[tokio::test(start_paused = true)]
async fn of_objects() {
    let fixture = Fixture::new().await;
    let puts = fixture.counted(async |store| {
        for n in 0..6 {
            store
                .put(&path(n), "two".into())
                .await
                .expect("it is written");
        }
    });
    assert_eq!(puts.await, (6, vec!["put"; 6]));

    let big = vec![0; 3_000_000];
    fixture
        .store
        .inner()
        .put(&path(9), big.into())
        .await
        .expect("it is written");
    let ranges = fixture.counted(async |store| {
        // Two that are far from each other, and one beside the first.
        let ranges = [0..2, 4..6, 2_900_000..2_900_001];
        let parts = store
            .get_ranges(&path(9), &ranges)
            .await
            .expect("its parts");
        assert_eq!(parts.iter().map(Bytes::len).collect::<Vec<_>>(), [2, 2, 1]);
    });
    assert_eq!(ranges.await, (2, vec!["get", "get"]));

    let copy = fixture.counted(async |store| {
        store.copy(&path(0), &path(20)).await.expect("a copy");
    });
    assert_eq!(copy.await, (1, vec!["copy"]));
    let rename = fixture.counted(async |store| {
        store
            .rename(&path(20), &path(21))
            .await
            .expect("another name");
    });
    assert_eq!(rename.await, (2, vec!["copy", "delete"]));

    let delete = fixture.counted(async |store| {
        let locations = stream::iter([0, 1, 2].map(path).map(Ok)).boxed();
        let gone: Vec<_> = store
            .delete_stream(locations)
            .try_collect()
            .await
            .expect("they are gone");
        assert_eq!(gone, [0, 1, 2].map(path));
    });
    assert_eq!(delete.await, (3, vec!["delete"; 3]));
}

#[tokio::test(start_paused = true)]
async fn of_lists() {
    let fixture = Fixture::new().await;
    let prefix = Path::from("d");
    let two_pages = fixture.counted(async |store| {
        let listed: Vec<_> = store
            .list(Some(&prefix))
            .try_collect()
            .await
            .expect("a list");
        assert_eq!(listed.len(), 6);
    });
    assert_eq!(two_pages.await, (2, vec!["list"; 2]));
    let offset = fixture.counted(async |store| {
        let listed = store.list_with_offset(Some(&prefix), &path(4));
        let listed: Vec<_> = listed
            .map_ok(|entry| entry.location)
            .try_collect()
            .await
            .expect("a list");
        assert_eq!(listed, [path(5)]);
    });
    // This store lists all for it.
    assert_eq!(offset.await, (1, vec!["list"; 2]));
    let nothing = fixture.counted(async |store| {
        assert!(store.list(Some(&Path::from("none"))).next().await.is_none());
    });
    assert_eq!(nothing.await, (1, vec![]));
    let unread = fixture.counted(async |store| drop(store.list(None)));
    assert_eq!(unread.await, (0, vec![]));
    let directory = fixture.counted(async |store| {
        let listed = store.list_with_delimiter(None).await.expect("a list");
        assert_eq!(listed.common_prefixes.first(), Some(&prefix));
    });
    assert_eq!(directory.await, (1, vec!["list"]));
}

#[tokio::test(start_paused = true)]
async fn of_uploads_in_parts() {
    let fixture = Fixture::new().await;
    let whole = fixture.counted(async |store| {
        let mut upload = store.put_multipart(&path(30)).await.expect("an upload");
        for part in ["in ", "parts"] {
            upload.put_part(part.into()).await.expect("a part");
        }
        upload.complete().await.expect("an object");
    });
    assert_eq!(whole.await, (4, vec!["create", "part", "part", "complete"]));
    let written = fixture
        .store
        .get(&path(30))
        .await
        .expect("it is there")
        .bytes()
        .await;
    assert_eq!(written.expect("its bytes"), "in parts");
    let given_up = fixture.counted(async |store| {
        let mut upload = store.put_multipart(&path(31)).await.expect("an upload");
        drop(upload.put_part("one".into()));
        upload.abort().await.expect("no upload");
    });
    assert_eq!(given_up.await, (2, vec!["create", "abort"]));
}
