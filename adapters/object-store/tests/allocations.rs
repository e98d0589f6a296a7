//! What a healthy request costs in allocations, beside the store without a wrapper.

extern crate alloc;

use alloc::sync::Arc;

use async_trait::async_trait;
use object_store::{
    ClientOptions, ObjectStore, ObjectStoreExt as _, PutPayload, Result,
    aws::AmazonS3Builder,
    client::{HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService},
    memory::InMemory,
    path::Path,
};
use paceline::{Adaptive, Standard};
use paceline_object_store::{Lanes, PacedConnector, PacedStore, Pacing};

/// Counts the allocations of some operations each, once everything is warm.
fn allocations(store: &impl ObjectStore) -> [u64; 3] {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    let (x, y, payload) = (
        Path::from("d/x"),
        Path::from("d/y"),
        PutPayload::from_static(b"one"),
    );
    let put = || runtime.block_on(store.put(&x, payload.clone())).map(drop);
    let get = || runtime.block_on(store.get(&x)).map(drop);
    let copy = || runtime.block_on(store.copy(&x, &y));
    let work: [&dyn Fn() -> Result<()>; 3] = [&put, &get, &copy];
    work.map(|work| {
        for _ in 0..3 {
            work().expect("all is well");
        }
        allocation_counter::measure(|| work().expect("all is well")).count_total
    })
}

#[test]
fn a_healthy_request_allocates_the_future_that_the_trait_boxes_and_nothing_else() {
    let bare = allocations(&InMemory::new());
    // The same through one more layer of the trait.
    let forced = bare.map(|count| count.saturating_add(1));
    let pacings = [
        Pacing::new(Standard::new(), Standard::new()),
        Pacing::new(Adaptive::paced(), Adaptive::paced()),
        Pacing::by_prefix(1, |_| Lanes::new(Adaptive::paced(), Adaptive::paced())),
    ];
    for pacing in pacings {
        let store = PacedStore::new(InMemory::new(), Arc::new(pacing));
        assert_eq!(allocations(&store), forced, "{bare:?} without");
    }
}

/// Answers at once that all is well.
#[derive(Debug)]
struct Well;

#[async_trait]
impl HttpService for Well {
    async fn call(&self, _: HttpRequest) -> core::result::Result<HttpResponse, HttpError> {
        let response = http::Response::builder().header("etag", "x");
        Ok(response.body(String::new().into()).expect("a response"))
    }
}

impl HttpConnector for Well {
    fn connect(&self, _: &ClientOptions) -> Result<HttpClient> {
        Ok(HttpClient::new(Self))
    }
}

/// Keeps a copy of each request while it is sent.
#[derive(Debug)]
struct Copying(HttpClient);

#[async_trait]
impl HttpService for Copying {
    async fn call(&self, request: HttpRequest) -> core::result::Result<HttpResponse, HttpError> {
        self.0.execute(request.clone()).await
    }
}

impl HttpConnector for Copying {
    fn connect(&self, options: &ClientOptions) -> Result<HttpClient> {
        let inner = Well.connect(options)?;
        Ok(HttpClient::new(Self(inner)))
    }
}

/// Counts the allocations of a write through `connector`, once everything is warm.
fn of_write(connector: impl HttpConnector) -> u64 {
    let store = AmazonS3Builder::new()
        .with_bucket_name("logs")
        .with_skip_signature(true)
        .with_http_connector(connector);
    let store = store.build().expect("a store");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    let x = Path::from("x");
    let write = || {
        runtime
            .block_on(store.put(&x, "one".into()))
            .expect("all is well");
    };
    for _ in 0..3 {
        write();
    }
    allocation_counter::measure(write).count_total
}

#[test]
fn a_healthy_request_through_the_connector_allocates_its_copy_and_nothing_else() {
    let copying = of_write(Copying(HttpClient::new(Well)));
    let lanes = [
        Lanes::new(Standard::new(), Standard::new()),
        Lanes::new(Adaptive::paced(), Adaptive::paced()),
    ];
    for lanes in lanes {
        assert_eq!(of_write(PacedConnector::new(Well, lanes)), copying);
    }
}
