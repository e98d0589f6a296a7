//! How a send rate and its snapshots print.

use core::fmt;

use crate::atomic::{BackgroundSnapshot, DeclaredLimit};
use crate::{SendRate, SendRateSnapshot};

/// Prints the permit of a request that waited in several lines, or in how many lines it waits.
pub(crate) fn places(
    f: &mut fmt::Formatter<'_>,
    claimed: Option<impl fmt::Debug>,
    places: usize,
) -> fmt::Result {
    match claimed {
        Some(permit) => write!(f, "claimed: {permit:?}"),
        None => write!(f, "{places} places"),
    }
}

impl fmt::Display for DeclaredLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            remaining,
            limit,
            dimension,
            window,
            ..
        } = self;
        write!(
            f,
            "{remaining:.0} of {limit} {dimension} left, window {window:?}"
        )?;
        if let Some(reset) = self.resets_in {
            write!(f, ", reset in {reset:.1?}")?;
        }
        f.write_str(match (self.given_up, self.contradicted) {
            (true, _) => ", given up",
            (false, true) => ", contradicted",
            (false, false) => "",
        })
    }
}

impl fmt::Display for SendRateSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let measured = Measured(self);
        if !self.enabled {
            return write!(f, "unlimited ({measured})");
        }
        if self.fill_rate.to_bits() == 0 {
            f.write_str("none")?;
        } else {
            write!(f, "{:.1}/s", self.fill_rate)?;
        }
        let Self {
            available,
            capacity,
            waiting,
            ..
        } = self;
        write!(
            f,
            " ({available:.1} of {capacity:.1} available, {waiting} waiting, {measured}, "
        )?;
        match self.peak() {
            Some(peak) => write!(f, "peak {peak:.1}/s)")?,
            None => f.write_str("no peak yet)")?,
        }
        if self.background.waiting > 0 {
            write!(f, ", {{background: {} waiting}}", self.background.waiting)?;
        }
        match self.declared {
            Some(declared) => write!(f, ", declared: {declared}"),
            None if self.unheard => f.write_str(", no declared limit heard"),
            None => Ok(()),
        }?;
        match self.ignored_reports {
            0 => Ok(()),
            reports => write!(f, ", {reports} reports ignored"),
        }
    }
}

/// Shows the measured rate, or that nothing was measured.
struct Measured<'a>(&'a SendRateSnapshot);

impl fmt::Display for Measured<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.measured() {
            Some(measured) => write!(f, "measured {measured:.1}/s"),
            None => f.write_str("nothing measured yet"),
        }
    }
}

/// Shows the fill rate, or a word where the number means nothing.
struct Fill<'a>(&'a SendRateSnapshot);

impl fmt::Debug for Fill<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.enabled, self.0.fill_rate.to_bits()) {
            (false, _) => f.write_str("unlimited"),
            (true, 0) => f.write_str("none"),
            _ => write!(f, "{:.3}/s", self.0.fill_rate),
        }
    }
}

#[expect(
    clippy::missing_fields_in_debug,
    reason = "what is known is said by the fields themselves"
)]
impl fmt::Debug for SendRateSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("SendRateSnapshot");
        shown
            .field("enabled", &self.enabled)
            .field("fill_rate", &Fill(self))
            .field("capacity", &format_args!("{:.3}", self.capacity))
            .field("available", &format_args!("{:.3}", self.available))
            .field(
                "measured_rate",
                &format_args!("{:.3}/s", self.measured_rate),
            )
            .field(
                "last_max_rate",
                &format_args!("{:.3}/s", self.last_max_rate),
            )
            .field("waiting", &self.waiting)
            .field("in_flight", &self.in_flight)
            .field("declared", &self.declared);
        if self.background != BackgroundSnapshot::default() {
            shown.field("background", &self.background);
        }
        if self.unheard {
            shown.field("unheard", &true);
        }
        if self.ignored_reports > 0 {
            shown.field("ignored_reports", &self.ignored_reports);
        }
        shown.finish()
    }
}

/// Shows the settings, and whether sends are limited. The snapshot has what depends on time.
impl fmt::Debug for SendRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendRate")
            .field("law", &self.law())
            .field("limiting", &self.is_limiting())
            .field("paced", &self.paced_settings())
            .finish_non_exhaustive()
    }
}
