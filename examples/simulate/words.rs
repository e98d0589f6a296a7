//! Numbers and sentences that must fit into little room.

#![expect(clippy::float_arithmetic, reason = "for people to read")]

use crate::number::{grouped, number, percent};

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

/// Returns a share in percent, with a decimal only where it matters.
pub(crate) fn rounded(share: f64) -> String {
    percent(share, usize::from(share > 0.0 && share < 0.095))
}

/// Breaks a text into lines of at most so many characters, as long as its words are not longer.
pub(crate) fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + word.chars().count() < most {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{rounded, short, wrapped};

    #[test]
    fn counts_are_short() {
        let texts = [0, 9_999, 12_345, 50_000, 203_248, 1_000_000, 1_250_000].map(short);
        assert_eq!(texts, ["0", "9,999", "12.3k", "50k", "203k", "1M", "1.2M"]);
    }

    #[test]
    fn small_shares_have_a_decimal() {
        let texts = [0.0, 0.009, 0.43, 1.0].map(rounded);
        assert_eq!(texts, ["0 %", "0.9 %", "43 %", "100 %"]);
    }

    #[test]
    fn lines_are_full_and_no_longer() {
        assert_eq!(wrapped("aa bb cc dd", 5), ["aa bb", "cc dd"]);
        assert_eq!(wrapped("aa bb cc dd", 4), ["aa", "bb", "cc", "dd"]);
    }
}
