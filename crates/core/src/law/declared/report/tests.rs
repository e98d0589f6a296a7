use alloc::{
    string::{String, ToString},
    vec::Vec,
};

use super::*;

#[test]
fn names_are_compared_as_a_whole() {
    let name = LimitName::new("premium-tier-per-minute");
    assert_eq!(name, LimitName::new("Premium-Tier-Per-MINUTE"));
    for other in [
        "premium-tier-per-hour",
        "premium-tier-per",
        "premium-tier-per-minute ",
        "premium-tier-per-minute2",
        "",
    ] {
        assert_ne!(name, LimitName::new(other), "{other}");
    }
    // Bytes that are shown as `?` still differ.
    assert_ne!(LimitName::new("a b"), LimitName::new("a?b"));
    assert_ne!(LimitName::new([0xc3]), LimitName::new([0xc4]));
}

#[test]
fn a_name_shows_its_first_sixteen_bytes() {
    let show = |text: &str| LimitName::new(text).to_string();
    assert_eq!(show("premium-tier-per-minute"), "premium-tier-per");
    assert_eq!(show("exactly-sixteen-"), "exactly-sixteen-");
    assert_eq!(show("A b\u{e9}"), "a?b??");
    assert_eq!(show(""), "");
}

/// The test vectors of FNV-1a (draft-eastlake-fnv, appendix C).
#[test]
fn the_hash_of_a_name_is_fnv_1a() {
    for (text, hash) in [
        ("a", 0xaf63_dc4c_8601_ec8c),
        ("foobar", 0x8594_4171_f739_67e8),
        ("FooBar", 0x8594_4171_f739_67e8),
    ] {
        assert_eq!(LimitName::new(text).bits()[0], hash, "{text}");
    }
    assert_eq!(LimitName::new("").bits(), [0; 3]);
    assert_eq!(LimitName::default(), LimitName::new(""));
}

// Partitions are named in headers only.
#[test]
fn words_hold_a_whole_name() {
    for text in ["", "a", "exactly-sixteen-", "premium-tier-per-minute"] {
        for name in [text, text].map(LimitName::new) {
            let partition = name.of_partition("key");
            for name in [name, partition] {
                let again = LimitName::from_bits(name.bits());
                assert_eq!((again, again.as_str()), (name, name.as_str()));
            }
        }
    }
    assert_eq!(LimitName::new("ab").bits()[1..], [0x6261, 0]);
}

#[test]
fn partitions_of_a_policy_are_apart() {
    let mut names = Vec::new();
    let mut is_new = |name: LimitName| {
        let is_new = !names.contains(&name);
        names.push(name);
        is_new
    };
    for policy in ["", "user", "use"] {
        let policy = LimitName::new(policy);
        assert!(is_new(policy), "{policy:?}");
        for key in ["", "r", "R", "a", "one", "one\0"] {
            let partition = policy.of_partition(key);
            assert!(is_new(partition), "{policy:?} {key:?}");
            assert_eq!(partition.as_str(), policy.as_str());
            assert_eq!(partition, policy.of_partition(key));
        }
    }
}

#[test]
fn concurrent_requests_have_their_whole_name() {
    let dimension = Dimension::Named(LimitName::new("Concurrent-Requests"));
    assert_eq!(dimension, Dimension::CONCURRENT_REQUESTS);
    let report = LimitReport::new(3).limit(10).dimension(dimension);
    assert_eq!(report.to_string(), "3 of 10 concurrent-requests left");
    let other = Dimension::Named(LimitName::new("concurrent-reque"));
    assert_eq!(other.to_string(), "concurrent-reque");
}

#[test]
fn a_report_has_what_was_said() {
    let report = LimitReport::new(3).cost(7).refills(true);
    assert_eq!(report.declared_cost(), Some(7));
    assert_eq!(report.declared_refills(), Some(true));
    assert_eq!(LimitReport::new(3).declared_cost(), None);
    let texts: Vec<String> = LimitReports::from(report)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(texts, ["3 requests left"]);
}
