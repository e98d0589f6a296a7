//! What the public types print.

mod support;

use kit::Shown;
use object_store::memory::InMemory;
use paceline::Standard;
use paceline_object_store::{Lanes, PacedConnector, PacedStore, Pacing, StoreErrors};
use support::hyper::Hyper;

#[test]
fn every_public_type_prints_in_one_line_of_values() {
    let lanes = || Lanes::new(Standard::new(), Standard::new());
    let pacing = || Pacing::new(Standard::new(), Standard::new());
    let mut shown = Shown::default();
    shown.add(&lanes());
    shown.add(&pacing());
    shown.add(&PacedStore::new(InMemory::new(), pacing()));
    shown.add(&PacedConnector::new(Hyper, lanes()));
    shown.add(&StoreErrors);
    shown.check(env!("CARGO_MANIFEST_DIR"));
}
