//! The healthy way of an operation on a scope that is there allocates nothing, by name and by
//! handle.

use paceline::{Adaptive, Failure, RetryStrategy, RetryStrategyExt, strategy::Reports};

/// Returns the allocations of this thread while `work` runs.
fn allocations(work: impl FnOnce()) -> u64 {
    allocation_counter::measure(work).count_total
}

#[test]
fn a_healthy_operation_on_a_scope_allocates_nothing() {
    let scopes = Adaptive::builder()
        .law(paceline::ControlLaw::Aws)
        .scopes()
        .build()
        .unwrap();
    let by_name = || {
        let operation = scopes.operation().scope("eu-west-1/orders");
        operation.run(|_| Ok::<_, Failure>(())).unwrap();
    };
    assert!(allocations(by_name) > 0, "the scope is created");
    assert_eq!(allocations(|| (0..1_000).for_each(|_| by_name())), 0);
    let handle = scopes.get("eu-west-1/orders").unwrap();
    let by_handle = || handle.run(|_| Ok::<_, Failure>(())).unwrap();
    by_handle();
    assert_eq!(allocations(|| (0..1_000).for_each(|_| by_handle())), 0);
    let by_hand = || {
        let token = scopes.acquire_initial_token(Some("eu-west-1/orders"));
        scopes
            .record_success(token.unwrap(), Reports::new())
            .unwrap();
        drop(scopes.get("eu-west-1/orders").unwrap());
    };
    assert_eq!(allocations(by_hand), 0);
}

#[test]
fn a_refused_scope_allocates_no_state() {
    let builder = Adaptive::builder()
        .law(paceline::ControlLaw::Aws)
        .scopes()
        .max_scopes(1);
    let scopes = builder.build().unwrap();
    let _used = scopes.get("used").unwrap();
    let full = || assert!(scopes.get("another").is_err());
    let key = "k".repeat(1_281);
    let too_long = || assert!(scopes.get(&key).is_err());
    assert_eq!(allocations(|| (0..310).for_each(|_| too_long())), 0);
    // Each looks once at the one that stands in line, and the line is made of blocks of 31.
    assert_eq!(allocations(|| (0..310).for_each(|_| full())), 10);
}
