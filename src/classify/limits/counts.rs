//! Counts and lists of counts.

use super::field::Number;
use crate::headers::{is_digits, number};

/// Reads a count: digits, with or without commas between thousands (`4,987`), and with a fraction,
/// which is dropped (`598.0`).
pub(super) fn count(value: &[u8]) -> Option<u64> {
    let value = value.trim_ascii();
    let mut parts = value.splitn(2, |byte| *byte == b'.');
    let whole = parts.next()?;
    if !parts.next().is_none_or(is_digits) {
        return None;
    }
    if is_digits(whole) {
        return number(whole);
    }
    let mut groups = whole.split(|byte| *byte == b',');
    let first = groups.next()?;
    let is_first = is_digits(first) && first.len() <= 3 && !first.starts_with(b"0");
    if !is_first || !groups.all(|group| group.len() == 3 && is_digits(group)) {
        return None;
    }
    let digits: Vec<u8> = whole.iter().copied().filter(u8::is_ascii_digit).collect();
    number(&digits)
}

/// A member of a list: a count, and the seconds of its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) count: u64,
    pub(super) window: Number,
}

/// Reads `100`, `1, 15000`, `100, 100;w=60` of drafts 03 to 06, `100;w=21600`, and WHOOP's
/// `100;window=60`.
pub(super) fn list(value: &[u8]) -> Option<Vec<Item>> {
    let alone = |count| Item {
        count,
        window: Number::Absent,
    };
    if let Some(count) = count(value) {
        return Some(Vec::from([alone(count)]));
    }
    let mut items: Vec<Item> = Vec::new();
    let mut is_bare = false;
    for part in value.split(|byte| *byte == b',') {
        let mut parameters = part.split(|byte| *byte == b';');
        let digits = parameters.next()?;
        let mut item = alone(count(digits)?);
        // `4,987;w=60` may be 4,987, or 4 and 987. In `100,100;w=60` both counts are one limit.
        let group = digits.trim_ascii_end();
        let is_group = is_bare && group.len() == 3 && is_digits(group);
        if is_group && items.first().is_some_and(|first| first.count != item.count) {
            return None;
        }
        is_bare = !part.contains(&b';') && part.last().is_some_and(u8::is_ascii_digit);
        for parameter in parameters {
            let parameter = parameter.trim_ascii();
            let window = parameter.strip_prefix(b"w=");
            if let Some(seconds) = window.or_else(|| parameter.strip_prefix(b"window=")) {
                item.window = match count(seconds) {
                    None | Some(0) => Number::Wrong,
                    Some(seconds) => Number::Is(seconds),
                };
            }
        }
        items.push(item);
    }
    Some(items)
}
