//! The names of the public interface, by the list in `api/`.

use alloc::collections::BTreeSet;

const INTERFACE: &str = concat!(
    include_str!("../../api/paceline-core.txt"),
    include_str!("../../api/paceline.txt")
);

/// Returns the names of the types and traits that stand at the root.
fn at_the_root() -> BTreeSet<&'static str> {
    let items = INTERFACE.lines().filter_map(|line| {
        let item = match line.strip_prefix("#[") {
            Some(attribute) => attribute.split_once("] ")?.1,
            None => line,
        };
        // What the core has at its root stands at this one, too.
        let kinds = ["pub struct ", "pub enum ", "pub trait ", "pub use "];
        let path = kinds.iter().find_map(|kind| item.strip_prefix(kind))?;
        let name = path.strip_prefix("paceline::")?;
        let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
        name.split_at_checked(end.unwrap_or(name.len()))
    });
    let roots = items
        .filter(|(name, rest)| !rest.starts_with("::") && name.starts_with(char::is_uppercase));
    roots.map(|(name, _)| name).collect()
}

#[test]
fn the_root_has_what_most_programs_name() {
    let buckets = "RetryQuota SendRate SendSet SendPool SendLimiter Background";
    let permits =
        "QuotaPermit SendPermit Reservation Outcome Part SendRateSnapshot ControlLaw Class";
    let errors = "AcquireError WeightError";
    let strategies = "Standard Adaptive Legacy RetryStrategy RetryStrategyExt Scopes Operation";
    let failures =
        "Failure RetryInfo RetryToken RetryAfter RetrySafety Execution Fault Idempotency";
    let time = "Clock MonotonicClock TokioClock Timestamp";
    let groups = [buckets, permits, errors, strategies, failures, time];
    let expected: BTreeSet<_> = groups.iter().flat_map(|names| names.split(' ')).collect();
    assert_eq!(at_the_root(), expected);
}

#[test]
fn names_that_were_replaced_are_gone() {
    let words: BTreeSet<_> = INTERFACE
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .collect();
    for (old, new) in [
        ("Ask", "AcquireRequest"),
        ("Stopped", "StopReason"),
        ("HttpAnswer", "HttpResponseParts"),
        ("HttpResponses", "HttpClassifier"),
        ("IoErrors", "IoErrorClassifier"),
        ("SendGate", "gated"),
        ("paced_with_open_places", "PacedSettingsBuilder"),
        ("Answer", "Outcome"),
    ] {
        assert!(!words.contains(old), "{old} is {new} now");
        assert!(words.contains(new), "{new}");
    }
    assert!(INTERFACE.contains("paceline::RetryAfter::AtLeast"));
    assert!(!INTERFACE.contains("paceline::RetryAfter::Floor"));
}
