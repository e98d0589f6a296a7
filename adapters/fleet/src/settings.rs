//! What a caller may choose for a scope.

use core::fmt;
use core::time::Duration;

use crate::fault::FleetError;
use crate::wire::{Milli, Nano};

/// What a member does while the engine is away.
///
/// The engine is away when an ask failed and there is no lease: it was spent and there was no
/// answer for twice its length, it has expired, or there never was one. Requests never wait for the
/// engine. With the first answer the member has a lease again. It discards what it granted itself
/// until then, so that there is no burst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Away {
    /// Goes on alone at its last share, as far as the engine has lent it: together, members that
    /// are cut off send no more than the allowance. That halves every five minutes, down to the
    /// safe rate. A throttle takes three tenths of it, which come back within seconds.
    #[default]
    Alone,
    /// Lets nothing go.
    Closed,
    /// Lets everything go.
    Open,
}

/// The settings of a scope, checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) allowance: Nano,
    pub(crate) initial: Nano,
    pub(crate) floor: Nano,
    /// The rate of a member that has never seen the engine, and the least of one that is alone.
    pub(crate) safe: Option<Nano>,
    /// Derived from the lease if not set, as the validity is.
    pub(crate) burst: Option<Duration>,
    pub(crate) lease: Duration,
    pub(crate) valid: Option<Duration>,
    pub(crate) patience: Duration,
    pub(crate) weight: u32,
    pub(crate) away: Away,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("allowance", &PerSecond(self.allowance))
            .field("initial", &PerSecond(self.initial))
            .field("floor", &PerSecond(self.floor))
            .field("safe", &self.safe.map(PerSecond))
            .field("lease", &self.lease)
            .field("weight", &self.weight)
            .field("away", &self.away)
            .finish_non_exhaustive()
    }
}

/// A rate as it is shown: "0.5/s".
struct PerSecond(Nano);

impl fmt::Debug for PerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        let rest = format!("{rest:09}");
        match rest.trim_end_matches('0') {
            "" => write!(f, "{whole}/s"),
            rest => write!(f, "{whole}.{rest}/s"),
        }
    }
}

/// The allowance of a scope whose limit is not known, 10⁹/s: so the script knows it.
const UNKNOWN: Nano = 1_000_000_000_000_000_000;
/// How long a scope without asks is remembered.
const KEPT: Duration = Duration::from_secs(600);

impl Settings {
    /// Returns the settings of a scope that is allowed `tokens` in each `per`.
    pub(crate) fn new(tokens: u32, per: Duration) -> Result<Self, FleetError> {
        Ok(Self::of(nano("allowance", tokens, per)?))
    }

    fn of(allowance: Nano) -> Self {
        Self {
            allowance,
            initial: allowance,
            floor: 500_000_000.min(allowance),
            safe: None,
            burst: None,
            lease: Duration::from_millis(200),
            valid: None,
            patience: Duration::from_millis(250),
            weight: 1,
            away: Away::Alone,
        }
    }

    /// Returns the settings of a scope whose limit is not known.
    pub(crate) fn unknown() -> Self {
        Self {
            allowance: UNKNOWN,
            initial: 10_000_000_000,
            floor: 1_000_000,
            ..Self::of(UNKNOWN)
        }
    }

    /// Returns the spans that hold where a round trip to the engine takes `trip`, at most two
    /// seconds.
    ///
    /// A member has to hold what it spends until the answer to its next ask, so that a lease has
    /// room for a round trip and for the time between two asks, which is half a lease. It is no
    /// shorter than the engine asks for, by its `load`.
    pub(crate) fn reach(&self, trip: Duration, load: Duration) -> Reach {
        let trip = trip.min(FARTHEST);
        let half = |span: Duration| span.checked_div(2).unwrap_or(span);
        let far = half(self.lease.saturating_add(trip.saturating_mul(5)));
        let near = self.lease.max(far);
        let lease = near.max(load.min(LONGEST));
        let valid = self
            .valid
            .unwrap_or(self.lease.saturating_mul(5).min(LONGEST));
        let leases = if self.lease == lease { 2 } else { 3 };
        Reach {
            lease,
            near,
            gap: half(load.min(LONGEST)),
            burst: self.burst.unwrap_or_else(|| half(near)),
            valid: valid.max(lease.saturating_mul(leases)),
        }
    }

    /// Returns the rate of a member alone that has no share yet.
    pub(crate) fn unseen(&self) -> Milli {
        in_milli(self.safe.unwrap_or(self.floor))
    }
}

/// The longest lease that an engine is believed to need, and the longest validity of one that it
/// did not ask for: what a member that is gone holds, or a foreign program wrote, ends with it.
pub(crate) const LONGEST: Duration = Duration::from_secs(30);
/// The longest round trip to the engine that leases are made for.
const FARTHEST: Duration = Duration::from_secs(2);

/// What is derived from the lease, and from how far the engine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    pub(crate) lease: Duration,
    /// What it would be without the engine's load.
    pub(crate) near: Duration,
    /// How long the engine's load keeps a member from asking again.
    pub(crate) gap: Duration,
    pub(crate) burst: Duration,
    pub(crate) valid: Duration,
}

impl Reach {
    /// Returns how often a busy member asks.
    pub(crate) fn period(&self) -> Duration {
        self.lease.checked_div(2).unwrap_or(self.lease)
    }

    /// Returns how often an idle member says that it is there.
    pub(crate) fn heartbeat(&self) -> Duration {
        self.valid.checked_div(3).unwrap_or(self.valid)
    }

    /// Returns the least patience with an engine that has this load: all may ask at once.
    pub(crate) fn patience(&self) -> Duration {
        self.gap.checked_div(2).unwrap_or(self.gap)
    }

    /// Returns after how long a silent member is forgotten by the engine.
    pub(crate) fn absent(&self) -> Duration {
        self.valid.saturating_mul(2)
    }

    /// Returns after how long a silent scope is.
    pub(crate) fn keep(&self) -> Duration {
        KEPT.max(self.valid.saturating_mul(4))
    }
}

/// Returns `span` if it is within its range.
pub(crate) fn within(
    setting: &'static str,
    given: Duration,
    least: Duration,
    most: Duration,
) -> Result<Duration, FleetError> {
    if given < least || given > most {
        return Err(FleetError::Span {
            setting,
            given,
            least,
            most,
        });
    }
    Ok(given)
}

/// Returns `rate` in thousandths, rounded down but not to zero.
pub(crate) fn in_milli(rate: Nano) -> Milli {
    rate.wrapping_div(1_000_000).max(1)
}

/// Returns `tokens` in each `per` in billionths of a token per second, rounded down.
pub(crate) fn nano(setting: &'static str, tokens: u32, per: Duration) -> Result<Nano, FleetError> {
    let nanos = per.as_nanos();
    let slowest = u128::from(tokens).saturating_mul(1_000_000_000_000);
    if tokens == 0 || nanos < u128::from(tokens) || nanos > slowest {
        return Err(FleetError::Rate {
            setting,
            tokens,
            per,
        });
    }
    let nano = slowest.saturating_mul(1_000_000).checked_div(nanos);
    Ok(u64::try_from(nano.unwrap_or(1)).unwrap_or(u64::MAX))
}

/// Returns a namespace or a scope that may be part of a key.
pub(crate) fn name(setting: &'static str, given: &str) -> Result<String, FleetError> {
    if given.is_empty() || given.len() > 256 || given.chars().any(char::is_control) {
        return Err(FleetError::Name { setting });
    }
    Ok(given.to_owned())
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::{FleetError, Settings, in_milli, name, nano, within};

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn rates_are_rounded_down_to_billionths() {
        assert_eq!(nano("rate", 2_000, SECOND), Ok(2_000_000_000_000));
        assert_eq!(nano("rate", 2, 3 * SECOND), Ok(666_666_666));
        assert_eq!(nano("rate", 2, 1_001 * SECOND), Ok(1_998_001));
        assert_eq!(nano("rate", 1, 1_000 * SECOND), Ok(1_000_000));
        assert_eq!(
            nano("rate", 1, Duration::from_nanos(1)),
            Ok(1_000_000_000_000_000_000)
        );
        assert_eq!((in_milli(1), in_milli(1_998_001)), (1, 1));
    }

    #[test]
    fn a_lease_brings_its_burst_and_validity_along() {
        let mut settings = Settings::new(1_000, SECOND).unwrap();
        let millis = |settings: &Settings, trip| {
            let reach = settings.reach(Duration::from_millis(trip), Duration::ZERO);
            [reach.lease, reach.burst, reach.valid].map(|span| span.as_millis())
        };
        assert_eq!(millis(&settings, 0), [200, 100, 1_000]);
        settings.lease = SECOND;
        assert_eq!(millis(&settings, 0), [1_000, 500, 5_000]);
        settings.burst = Some(Duration::from_millis(20));
        settings.valid = Some(3 * SECOND);
        assert_eq!(millis(&settings, 0), [1_000, 20, 3_000]);
    }

    #[test]
    fn a_lease_grows_with_the_round_trip() {
        let settings = Settings::new(1_000, SECOND).unwrap();
        let leases = [40, 100, 250, 600, 9_000].map(|trip| {
            settings
                .reach(Duration::from_millis(trip), Duration::ZERO)
                .lease
                .as_millis()
        });
        assert_eq!(leases, [200, 350, 725, 1_600, 5_100]);
        let far = settings.reach(Duration::from_millis(600), Duration::ZERO);
        assert_eq!(far.valid, Duration::from_millis(4_800));
        // A busy engine asks for longer ones, of which it need not keep more.
        let busy = settings.reach(Duration::ZERO, 4 * SECOND);
        let spans = [busy.lease, busy.burst, busy.valid].map(|span| span.as_millis());
        assert_eq!(spans, [4_000, 100, 12_000]);
        // Nobody asks twice in half of one, and an answer may take as long as all need to ask.
        assert_eq!((busy.gap, busy.patience()), (2 * SECOND, SECOND));
        let hostile = settings.reach(Duration::ZERO, 900 * SECOND);
        assert_eq!(hostile.lease, 30 * SECOND);
    }

    #[test]
    fn a_rate_out_of_range_is_named() {
        for (tokens, per) in [(0, SECOND), (1, Duration::ZERO), (1, 1_001 * SECOND)] {
            let error = FleetError::Rate {
                setting: "rate",
                tokens,
                per,
            };
            assert_eq!(nano("rate", tokens, per), Err(error));
        }
    }

    #[test]
    fn a_span_is_taken_up_to_both_ends() {
        let span = |given| within("lease", given, SECOND, 2 * SECOND);
        assert_eq!(span(SECOND), Ok(SECOND));
        assert_eq!(span(2 * SECOND), Ok(2 * SECOND));
        let below = Duration::from_nanos(999_999_999);
        assert!(matches!(span(below), Err(FleetError::Span { given, .. }) if given == below));
        assert!(span(3 * SECOND).is_err());
    }

    #[test]
    fn rates_are_shown_per_second() {
        let mut settings = Settings::new(2_000, SECOND).unwrap();
        settings.safe = Some(2_050_000_000);
        assert_eq!(
            format!("{settings:?}"),
            "Settings { allowance: 2000/s, initial: 2000/s, floor: 0.5/s, safe: Some(2.05/s), \
             lease: 200ms, weight: 1, away: Alone, .. }"
        );
        assert_eq!(settings.unseen(), 2_050);
        settings.safe = None;
        assert_eq!(settings.unseen(), 500);
    }

    #[test]
    fn a_limit_that_is_not_known_begins_at_ten_a_second() {
        let settings = Settings::unknown();
        let rates = [settings.allowance, settings.initial, settings.floor];
        assert_eq!(rates.map(in_milli), [1_000_000_000_000, 10_000, 1]);
    }

    #[test]
    fn a_name_has_1_to_256_bytes_and_no_control_characters() {
        assert_eq!(name("scope", "a b/ü"), Ok("a b/ü".to_owned()));
        assert!(name("scope", &"x".repeat(256)).is_ok());
        let long = "x".repeat(257);
        for wrong in ["", "a\nb", long.as_str()] {
            let error = FleetError::Name { setting: "scope" };
            assert_eq!(name("scope", wrong), Err(error));
        }
    }
}
