//! What the public types print.

use core::time::Duration;

use kit::Shown;
use paceline::{Failure, Standard};
use paceline_backoff::Retries;

#[test]
fn every_public_type_prints_in_one_line_of_values() {
    let strategy = Standard::builder().base_delay(Duration::ZERO).build();
    let strategy = strategy.expect("in range");
    let mut shown = Shown::default();
    shown.add(&Retries::of(&strategy));
    let mut retries = Retries::of(&strategy);
    let (delays, mut decide) = retries.split(|()| Failure::transient());
    shown.add(&delays);
    assert!(decide(&()));
    assert_eq!(format!("{delays:?}"), "Delays { next: Some(0ns) }");
    shown.check(env!("CARGO_MANIFEST_DIR"));
}
