//! What the public types print.

use std::{sync::Arc, time::Duration};

use paceline::{RetryQuota, Standard};
use paceline_fleet::{
    Away, BudgetSet, DeadlinePassed, EngineFault, Fleet, FleetError, FleetStrategy, Standing,
};

use crate::shown::Shown;

/// No engine is there, and none is needed.
#[tokio::test]
async fn every_public_type_prints_in_one_line_of_values() {
    let builder = Fleet::builder("redis://127.0.0.1:1/").namespace("shop");
    let mut shown = Shown::default();
    shown.add(&builder);
    let fleet = builder.build().unwrap();
    let scope = || fleet.scope("orders", 2_000, Duration::from_secs(1));
    let budget = scope().unwrap().join().unwrap();
    // Before its task has looked for an engine.
    let member = budget.member();
    assert_eq!(
        format!("{budget:?}"),
        format!(
            "Budget {{ member: {member}, standing: Joining, share: 0, held: 0, fault: None, .. }}"
        )
    );
    assert_eq!(member.to_string().len(), 16);
    let set = BudgetSet::new([budget.clone()]).unwrap();
    let open = scope().unwrap().when_away(Away::Open).join().unwrap();
    let charge = BudgetSet::new([open]).unwrap().acquire([7]).await;
    shown.add(&member);
    shown.add(&set);
    shown.add(&charge);
    let retries = || fleet.retry_budget("retries", 5_000).unwrap();
    let quota = Arc::new(RetryQuota::new(500));
    let member = retries().join(&quota).unwrap();
    shown.add(&fleet);
    shown.add(&scope().unwrap());
    shown.add(&retries());
    shown.add(&budget);
    shown.add(&budget.snapshot());
    shown.add(&FleetStrategy::new(Standard::new(), budget.clone()));
    shown.add(&member);
    shown.add(&member.snapshot());
    shown.add(&Away::Closed);
    shown.add(&Standing::Leased);
    shown.add(&EngineFault::Unreachable);
    shown.add(&FleetError::Address);
    let passed = budget.acquire_before(tokio::time::Instant::now()).await;
    shown.add::<DeadlinePassed>(&passed.unwrap_err());
    shown.check(env!("CARGO_MANIFEST_DIR"));
}
