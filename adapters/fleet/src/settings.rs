//! What a caller may choose for a scope.

use core::time::Duration;

use crate::fault::FleetError;
use crate::wire::Milli;

/// What a member does while the engine is away.
///
/// The engine is away when it could not be asked, and there is no lease any more: it was spent and for twice its length
/// there was no answer, it has run out, or there never was one. In every case the request path never waits for it, and a member is back in line by itself with the first answer; what it
/// granted itself until then is discarded, so that no burst comes of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Away {
    /// Goes on alone at its last share, or at the floor if it never had one. A throttle takes three tenths of that, which
    /// come back within seconds.
    #[default]
    Alone,
    /// Lets nothing go.
    Closed,
    /// Lets everything go.
    Open,
}

/// The settings of a scope, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) allowance: Milli,
    pub(crate) initial: Milli,
    pub(crate) floor: Milli,
    pub(crate) burst: Duration,
    pub(crate) lease: Duration,
    pub(crate) valid: Duration,
    pub(crate) patience: Duration,
    pub(crate) away: Away,
}

/// How long a scope that nobody asks for is remembered.
const KEPT: Duration = Duration::from_secs(600);

impl Settings {
    /// Returns the settings of a scope that is allowed `tokens` in each `per`.
    pub(crate) fn new(tokens: u32, per: Duration) -> Result<Self, FleetError> {
        let allowance = milli("allowance", tokens, per)?;
        Ok(Self {
            allowance,
            initial: allowance,
            floor: 500.min(allowance),
            burst: Duration::from_millis(100),
            lease: Duration::from_millis(200),
            valid: Duration::from_secs(1),
            patience: Duration::from_millis(250),
            away: Away::Alone,
        })
    }

    /// Returns how often a busy member asks.
    pub(crate) fn period(&self) -> Duration {
        self.lease.checked_div(2).unwrap_or(self.lease)
    }

    /// Returns how often an idle member says that it is there.
    pub(crate) fn heartbeat(&self) -> Duration {
        self.valid.checked_div(3).unwrap_or(self.valid)
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

/// Returns `tokens` in each `per` in thousandths of a token per second, rounded down but not to zero.
pub(crate) fn milli(
    setting: &'static str,
    tokens: u32,
    per: Duration,
) -> Result<Milli, FleetError> {
    let nanos = per.as_nanos();
    let slowest = u128::from(tokens).saturating_mul(1_000_000_000_000);
    if tokens == 0 || nanos < u128::from(tokens) || nanos > slowest {
        return Err(FleetError::Rate {
            setting,
            tokens,
            per,
        });
    }
    let milli = slowest.checked_div(nanos).unwrap_or(1).max(1);
    Ok(u64::try_from(milli).unwrap_or(u64::MAX))
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

    use super::{FleetError, milli, name, within};

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn rates_are_rounded_down_to_thousandths() {
        assert_eq!(milli("rate", 2_000, SECOND), Ok(2_000_000));
        assert_eq!(milli("rate", 2, 3 * SECOND), Ok(666));
        assert_eq!(milli("rate", 1, 1_000 * SECOND), Ok(1));
        assert_eq!(
            milli("rate", 1, Duration::from_nanos(1)),
            Ok(1_000_000_000_000)
        );
    }

    #[test]
    fn a_rate_out_of_range_is_named() {
        for (tokens, per) in [(0, SECOND), (1, Duration::ZERO), (1, 1_001 * SECOND)] {
            let error = FleetError::Rate {
                setting: "rate",
                tokens,
                per,
            };
            assert_eq!(milli("rate", tokens, per), Err(error));
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
    fn a_name_has_1_to_256_bytes_and_no_control_characters() {
        assert_eq!(name("scope", "a b/ü"), Ok("a b/ü".to_owned()));
        let long = "x".repeat(257);
        for wrong in ["", "a\nb", long.as_str()] {
            let error = FleetError::Name { setting: "scope" };
            assert_eq!(name("scope", wrong), Err(error));
        }
    }
}
