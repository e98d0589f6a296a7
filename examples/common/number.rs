//! Numbers as people read them.

#![expect(clippy::float_arithmetic, reason = "shares for people")]

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

/// Returns `share` in percent with `digits` decimals.
pub(crate) fn percent(share: f64, digits: usize) -> String {
    format!("{:.digits$} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::{grouped, percent};

    #[test]
    fn thousands_are_set_apart() {
        let texts = [0, 999, 1_000, 4_003, 1_234_567].map(grouped);
        assert_eq!(texts, ["0", "999", "1,000", "4,003", "1,234,567"]);
    }

    #[test]
    fn shares_are_printed_in_percent() {
        assert_eq!(percent(0.0031, 1), "0.3 %");
        assert_eq!(percent(1.0, 0), "100 %");
    }
}
