//! What the public types print.

use core::time::Duration;

use aws_smithy_http_client::Builder;
use kit::Shown;
use paceline::Standard;
use paceline_aws::{Misconfigured, Pacing};

#[test]
fn every_public_type_prints_in_one_line_of_values() {
    let pacing = Pacing::new(Standard::new()).scope("orders");
    let pacing = pacing.max_retry_after(Duration::from_secs(9));
    let mut shown = Shown::default();
    shown.add(&pacing);
    shown.add(&pacing.default_http_client());
    shown.add(&pacing.interceptor());
    shown.add(&pacing.classifier());
    shown.add(&pacing.plugin(Builder::new().build_http()));
    shown.add(&Misconfigured::NoInterceptor);
    shown.check(env!("CARGO_MANIFEST_DIR"));
    assert_eq!(
        format!("{pacing:?}"),
        "Pacing { strategy: Standard { max_attempts: 3, quota: 500, .. }, scope: Some(\"orders\"), \
         max_retry_after: Some(9s), unavailable: Transient, batches: [] }"
    );
}
