//! What the public types print.

use core::time::Duration;

use kit::Shown;
use paceline::Standard;
use paceline_opendal::{Lanes, PacingLayer};

#[test]
fn every_public_type_prints_in_one_line_of_values() {
    let layer = PacingLayer::new(Standard::new(), Standard::new());
    let layer = layer.deadline(Duration::from_secs(9));
    let mut shown = Shown::default();
    shown.add(&Lanes::new(Standard::new(), Standard::new()));
    shown.add(&layer);
    shown.check(env!("CARGO_MANIFEST_DIR"));
    assert_eq!(
        format!("{layer:?}"),
        "PacingLayer { deadline: Some(9s), max_retry_after: None, .. }"
    );
}
