//! Numbers as people read them.

#![expect(clippy::float_arithmetic, reason = "shares for people")]

use core::time::Duration;

/// Returns `part / whole`, or 0 if there is no whole.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    number(part) / number(whole)
}

/// Returns `count` as a float; exact up to 2⁵³.
#[expect(clippy::cast_precision_loss, reason = "no run counts past 2^53")]
pub(crate) const fn number(count: u64) -> f64 {
    count as f64
}

/// Returns the mean of some numbers, of which there is at least one.
pub(crate) fn mean(of: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = number(of.len() as u64);
    of.sum::<f64>() / count
}

/// Returns a span in nanoseconds, or the longest that fits.
pub(crate) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns Jain's index: 1 if all got the same, 1/n if one of n got all.
pub(crate) fn jain(parts: &[u64]) -> f64 {
    let sum = parts.iter().map(|part| number(*part)).sum::<f64>();
    let squares = parts.iter().map(|part| number(*part) * number(*part));
    let squares: f64 = squares.sum();
    if squares == 0.0 {
        return 1.0;
    }
    sum * sum / squares / number(parts.len() as u64)
}

/// Returns `count` with a comma between thousands.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        let left = digits.len().saturating_sub(index);
        if index > 0 && left % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a count with three digits or so: 950, 1,250, 12.5k, 1M.
pub(crate) fn short(count: u64) -> String {
    let (unit, name) = match count {
        0..10_000 => return grouped(count),
        10_000..1_000_000 => (1_000, "k"),
        _ => (1_000_000, "M"),
    };
    let digits = usize::from(count / unit < 100 && count * 10 / unit % 10 > 0);
    format!("{:.digits$}{name}", number(count) / number(unit))
}

/// Returns `share` in percent with `digits` decimals.
pub(crate) fn percent(share: f64, digits: usize) -> String {
    format!("{:.digits$} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::{grouped, percent, short};

    #[test]
    fn thousands_are_set_apart() {
        let texts = [0, 999, 1_000, 4_003, 1_234_567].map(grouped);
        assert_eq!(texts, ["0", "999", "1,000", "4,003", "1,234,567"]);
    }

    #[test]
    fn counts_are_short() {
        let texts = [0, 9_999, 12_345, 50_000, 203_248, 1_000_000, 1_250_000].map(short);
        assert_eq!(texts, ["0", "9,999", "12.3k", "50k", "203k", "1M", "1.2M"]);
    }

    #[test]
    fn shares_are_printed_in_percent() {
        assert_eq!(percent(0.0031, 1), "0.3 %");
        assert_eq!(percent(1.0, 0), "100 %");
    }
}
