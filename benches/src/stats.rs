//! Medians, and how far values spread.

/// A median with the 10th and the 90th percentile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The 10th percentile.
    pub low: f64,
    /// The median.
    pub median: f64,
    /// The 90th percentile.
    pub high: f64,
}

impl Spread {
    /// Returns the spread of `values`, or `None` of none.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        if values.is_empty() {
            return None;
        }
        values.sort_by(f64::total_cmp);
        Some(Self {
            low: quantile(&values, 10),
            median: quantile(&values, 50),
            high: quantile(&values, 90),
        })
    }

    /// Returns the reciprocal values, times `factor`.
    #[must_use]
    pub fn inverse(self, factor: f64) -> Self {
        Self {
            low: factor / self.high,
            median: factor / self.median,
            high: factor / self.low,
        }
    }

    /// Returns the values with three digits that count.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { low, median, high } = *self;
        format!("{} ({}..{})", digits(median), digits(low), digits(high))
    }
}

/// Returns the value below which `percent` of `sorted` lie.
fn quantile(sorted: &[f64], percent: usize) -> f64 {
    sorted[(sorted.len() - 1) * percent / 100]
}

/// Returns the median of `values`. There is at least one.
#[must_use]
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    quantile(&values, 50)
}

/// Returns `value` with three digits that count.
#[must_use]
pub fn digits(value: f64) -> String {
    match value {
        v if v < 10.0 => format!("{v:.2}"),
        v if v < 100.0 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Spread, digits};

    #[test]
    fn a_spread_is_that_of_the_sorted_values() {
        let spread = Spread::of((0..=10).rev().map(f64::from));
        let expected = Spread {
            low: 1.0,
            median: 5.0,
            high: 9.0,
        };
        assert_eq!(spread, Some(expected));
        assert_eq!(Spread::of([]), None);
        assert_eq!(digits(expected.inverse(9.0).low), "1.00");
    }

    #[test]
    fn three_digits_count() {
        let texts = [0.314, 9.99, 31.44, 5_815.4].map(digits);
        assert_eq!(texts, ["0.31", "9.99", "31.4", "5815"]);
    }
}
