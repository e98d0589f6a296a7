//! What a healthy request costs in allocations, beside the store without a wrapper.

extern crate alloc;

use alloc::sync::Arc;

use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload, memory::InMemory, path::Path};
use paceline::{Adaptive, Standard};
use paceline_object_store::{Lanes, PacedStore, Pacing};

/// Counts the allocations of some operations each, once everything is warm.
fn allocations(store: &impl ObjectStore) -> [u64; 3] {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a run time");
    let (x, y, payload) = (
        Path::from("d/x"),
        Path::from("d/y"),
        PutPayload::from_static(b"one"),
    );
    let put = || runtime.block_on(store.put(&x, payload.clone())).map(drop);
    let get = || runtime.block_on(store.get(&x)).map(drop);
    let copy = || runtime.block_on(store.copy(&x, &y));
    let work: [&dyn Fn() -> object_store::Result<()>; 3] = [&put, &get, &copy];
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
