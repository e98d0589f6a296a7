//! A linear scale from 0, with ticks at round numbers.

#![expect(clippy::float_arithmetic, reason = "pixels")]

/// Maps 0 to a greatest value onto a length in pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    greatest: f64,
    length: f64,
    step: f64,
}

impl Scale {
    /// Creates a scale up to `greatest` over `length` pixels with about `ticks` ticks.
    pub(crate) fn new(greatest: f64, length: f64, ticks: f64) -> Self {
        Self {
            greatest,
            length,
            step: round_step(greatest / ticks),
        }
    }

    /// Returns the greatest value on the scale.
    pub(crate) const fn greatest(&self) -> f64 {
        self.greatest
    }

    /// Returns how far `value` is from 0, in pixels. What is off the scale is at its end.
    pub(crate) fn pixels(&self, value: f64) -> f64 {
        value.min(self.greatest) / self.greatest * self.length
    }

    /// Returns the values at which ticks belong.
    pub(crate) fn ticks(&self) -> impl Iterator<Item = f64> + use<> {
        let Self { greatest, step, .. } = *self;
        (0_u32..)
            .map(move |index| f64::from(index) * step)
            .take_while(move |value| *value <= greatest * 1.000_001)
    }

    /// Returns `value` with the decimals that this scale's ticks need.
    pub(crate) fn label(&self, value: f64) -> String {
        if self.step >= 1.0 {
            format!("{value:.0}")
        } else {
            format!("{value:.1}")
        }
    }
}

/// Returns the smallest of 0.1, 0.2, 0.5, 1, 2, 5, 10 and so on that is not below `least`.
fn round_step(least: f64) -> f64 {
    let mut decade = 0.1;
    loop {
        for step in [decade, 2.0 * decade, 5.0 * decade] {
            if step >= least {
                return step;
            }
        }
        decade *= 10.0;
    }
}

#[cfg(test)]
mod tests {
    use super::Scale;

    #[test]
    fn ticks_are_round_and_end_with_the_scale() {
        let scale = Scale::new(43.7, 1_000.0, 10.0);
        let ticks: Vec<_> = scale.ticks().map(|tick| scale.label(tick)).collect();
        let expected = ["0", "5", "10", "15", "20", "25", "30", "35", "40"];
        assert_eq!(ticks, expected);
    }

    #[test]
    fn short_scales_have_decimals() {
        let scale = Scale::new(0.8, 100.0, 4.0);
        let ticks: Vec<_> = scale.ticks().map(|tick| scale.label(tick)).collect();
        assert_eq!(ticks, ["0.0", "0.2", "0.4", "0.6", "0.8"]);
    }

    #[test]
    fn what_is_off_the_scale_is_at_its_end() {
        let scale = Scale::new(40.0, 80.0, 4.0);
        let pixels = [0.0, 10.0, 40.0, 1_000.0].map(|value| scale.pixels(value).to_string());
        assert_eq!(pixels, ["0", "20", "80", "80"]);
    }
}
