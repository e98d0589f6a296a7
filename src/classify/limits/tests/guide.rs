//! The table of formats in the guide, against the families that the code knows.

use alloc::collections::BTreeSet;

use crate::classify::limits::{
    families::{FAMILIES, Left},
    plain,
};

const GUIDE: &str = include_str!("../../../guide/declared.md");
/// Headers that no table in the code lists.
const OTHERS: [&str; 10] = [
    "ratelimit",
    "ratelimit-remaining",
    "ratelimit-policy",
    "ratelimit-partition",
    "x-ratelimit-remaining",
    "x-ratelimit-usage",
    "x-readratelimit-usage",
    "x-amzn-ratelimit-limit",
    "x-shopify-shop-api-call-limit",
    "x-mbx-used-weight-1m",
];

/// A header that begins with `-` in the guide shares a stem with the header before it.
#[test]
fn the_guide_has_each_family_and_no_other() {
    let (_, rows) = GUIDE.split_once("# Formats").expect("the table");
    let cells = rows.lines().filter_map(|row| row.split('|').nth(2));
    let words = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let words = words.map(str::to_ascii_lowercase);
    let is_header = |word: &String| word.find('-') > Some(0) || word == "ratelimit";
    let told: BTreeSet<String> = words.filter(is_header).collect();
    let headers = FAMILIES.iter().map(|family| match family.left {
        Left::Is(header) if family.limit.is_empty() => header,
        Left::Is(_) => family.limit,
        Left::Used(header, ..) => header,
    });
    let windows = plain::WINDOWS.iter().map(|(_, [limit, _], _)| *limit);
    let shared = plain::FAMILIES.iter().map(|family| family.limit);
    let known = headers.chain(windows).chain(shared).chain(OTHERS);
    assert_eq!(told, known.map(str::to_owned).collect());
}
