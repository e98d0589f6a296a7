//! The settings of the paced law.

use core::fmt;
use core::num::NonZeroU64;
use core::time::Duration;

pub use self::error::PacedSettingsError;
use super::LearnedRate;
use crate::bits::Field;
use crate::fixed::{Rate, SECOND};

/// Settings of [`ControlLaw::Paced`](crate::ControlLaw::Paced).
///
/// The settings are one of three presets, or made by a [`builder`](Self::builder), which checks all
/// settings at the end. A rate is given as a number of tokens in a span of time, and rounded to the
/// nearest rate of 44 significant bits.
///
/// | setting | default | range |
/// |---|---|---|
/// | preset | for any client | [`new`](Self::new), [`shared`](Self::shared), [`exclusive`](Self::exclusive) |
/// | floor | one token a day | one token a day to 10⁹/s, at most the ceiling |
/// | ceiling | none | the same, at least the floor |
/// | initial rate | none: unlimited until the first throttle; 10 tokens/s with slow start | between floor and ceiling |
/// | cycle, over which the initial rate was counted | none | of a [`LearnedRate`], up to 366 days |
/// | slow start | off | on, off |
/// | longest slope | none | a second's rise between one token a day and 10⁹/s |
/// | β, what a cut leaves of the rate | 90 % | 50 % to 99 % |
/// | longest pause | a minute | up to a day |
/// | burst, the capacity as a time at the fill rate | 50 ms, and at least one token | up to 10 s |
///
/// # Examples
///
/// A limiter that never goes above 100/s, whatever the service allows:
///
/// ```
/// use core::time::Duration;
/// use paceline::{SendRate, Timestamp, law::PacedSettings};
///
/// # fn main() -> Result<(), paceline::law::PacedSettingsError> {
/// let second = Duration::from_secs(1);
/// let settings = PacedSettings::builder().ceiling(100, second).build()?;
/// let rate = SendRate::paced(settings, Timestamp::ZERO);
/// assert!(rate.snapshot(Timestamp::ZERO).enabled);
/// # Ok(())
/// # }
/// ```
///
/// A limiter of one of many clients, none of which goes above 100/s:
///
/// ```
/// # use core::time::Duration;
/// # use paceline::law::PacedSettings;
/// # let second = Duration::from_secs(1);
/// let settings = PacedSettings::shared().to_builder().ceiling(100, second).build()?;
/// # Ok::<(), paceline::law::PacedSettingsError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PacedSettings {
    floor: Rate,
    ceiling: Option<Rate>,
    initial: Option<Rate>,
    /// How long a cycle was at the initial rate, in nanoseconds.
    cycle: Option<NonZeroU64>,
    /// For how long a new limiter sends nothing, in seconds.
    shut: u32,
    slow_start: bool,
    /// The most that the rate may gain in a second. [`Rate::MAX`] if unlimited.
    slope: Rate,
    /// The part of the rate that a cut leaves, 32 fraction bits.
    beta: u64,
    /// The capacity of the bucket, in nanoseconds at the fill rate.
    burst: u64,
    /// The longest pause, in nanoseconds.
    pause: u64,
    profile: Profile,
}

/// The clients that the constants of the law are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub(crate) enum Profile {
    /// Any client.
    Usual,
    /// Many clients that share one limit.
    Shared,
    /// A client that has its limit alone.
    Exclusive,
}

const FLOOR: Field = Field::lowest(Rate::BITS);
const BETA: Field = FLOOR.above(10);
const CEILING: Field = BETA.above(Rate::BITS);

/// The rate at which a slow start begins, in tokens per second.
const SLOWLY: u32 = 10;

const LONGEST_BURST: Duration = Duration::from_secs(10);

const LONGEST_PAUSE: Duration = Duration::from_secs(86_400);

#[cfg(feature = "serde")]
const LONGEST_CYCLE: Duration = Duration::from_secs(86_400 * 366);

impl PacedSettings {
    /// Returns the settings that [`ControlLaw::Paced`](crate::ControlLaw::Paced) has by default.
    #[must_use]
    pub fn new() -> Self {
        Self {
            floor: Rate::from_ratio(1, SECOND * 86_400),
            ceiling: None,
            initial: None,
            cycle: None,
            shut: 0,
            slow_start: false,
            slope: Rate::MAX,
            beta: fraction(900),
            burst: SECOND.wrapping_div(20),
            pause: SECOND.wrapping_mul(60),
            profile: Profile::Usual,
        }
    }

    /// Returns the settings for a limit that ten or more clients share. The settings were measured
    /// with 10 and with 100 clients; for fewer, take [`new`](Self::new).
    ///
    /// A cut lasts longer, and the rate rises again in a straight line. Fewer requests are
    /// throttled, and the clients' parts become more equal. A client that has its limit alone
    /// follows a rise of the limit far more slowly with these settings, and should take
    /// [`new`](Self::new) or [`exclusive`](Self::exclusive).
    #[must_use]
    pub fn shared() -> Self {
        Self {
            profile: Profile::Shared,
            ..Self::new()
        }
    }

    /// Returns the settings for a limit that one client has alone, and that moves.
    ///
    /// The rate returns from a cut, and probes beyond its peak, in half the time. The client
    /// follows a rising limit sooner, at the cost of some more throttled requests. Where clients
    /// share a limit, their parts become less equal.
    #[must_use]
    pub fn exclusive() -> Self {
        Self {
            profile: Profile::Exclusive,
            ..Self::new()
        }
    }

    /// Returns the settings of a plain limiter: always `tokens` in each `per`, whatever the service
    /// throttles.
    ///
    /// Leave a margin of a fifth below a service's limit. Requests do not arrive as evenly as they
    /// were sent. At the limit itself some are refused, and no refusal lowers this rate.
    ///
    /// # Errors
    ///
    /// Fails if the rate is out of range.
    pub fn fixed(tokens: u32, per: Duration) -> Result<Self, PacedSettingsError> {
        let rate = rate("fixed rate", tokens, per)?;
        Ok(Self {
            floor: rate,
            ceiling: Some(rate),
            ..Self::new()
        })
    }

    /// Returns a builder that begins with the settings of [`new`](Self::new).
    pub fn builder() -> PacedSettingsBuilder {
        Self::new().to_builder()
    }

    /// Returns a builder that begins with these settings.
    pub const fn to_builder(self) -> PacedSettingsBuilder {
        PacedSettingsBuilder {
            settings: self,
            learned: None,
            error: None,
        }
    }

    /// Returns the settings that begin at the `learned` rate, kept between floor and ceiling. The
    /// limiter begins in the rate's cycle if there is one, and otherwise with a slow start.
    fn beginning_at(self, learned: Option<LearnedRate>) -> Self {
        let Some(LearnedRate { rate, cycle, shut }) = learned else {
            return self;
        };
        Self {
            initial: Some(self.within(rate)),
            cycle,
            shut: u32::try_from(shut.div_ceil(SECOND)).unwrap_or(u32::MAX),
            slow_start: self.slow_start || cycle.is_none(),
            ..self
        }
    }

    fn ordered(self) -> Result<Self, PacedSettingsError> {
        let rates = [
            ("floor", Some(self.floor)),
            ("initial rate", self.initial),
            ("ceiling", self.ceiling),
        ];
        let mut below = ("floor", self.floor);
        for (setting, rate) in rates {
            let Some(rate) = rate else {
                continue;
            };
            if rate < below.1 {
                return Err(PacedSettingsError::Order {
                    above: below.0,
                    below: setting,
                });
            }
            below = (setting, rate);
        }
        Ok(self)
    }

    /// Returns the rate of a limiter that limits from the start.
    pub(crate) fn start(&self) -> Option<Rate> {
        let slow = || {
            let rate = Rate::from_ratio(SLOWLY, SECOND);
            self.slow_start.then(|| self.within(rate))
        };
        self.initial.or_else(slow).or(self.ceiling)
    }

    /// Returns for how long a new limiter sends nothing, in nanoseconds.
    pub(crate) fn shut(&self) -> u64 {
        u64::from(self.shut).saturating_mul(SECOND)
    }

    /// Returns how long a cycle was at the initial rate, in nanoseconds.
    pub(crate) const fn cycle(&self) -> Option<NonZeroU64> {
        self.cycle
    }

    /// Returns the settings with a slow start.
    #[doc(hidden)]
    #[must_use]
    pub const fn starting_slowly(self) -> Self {
        Self {
            slow_start: true,
            ..self
        }
    }

    /// Returns `true` if the rate rises with each round trip until the first throttle.
    pub(crate) fn starts_slowly(&self) -> bool {
        self.slow_start && self.slope().is_none()
    }

    /// Returns `true` if the limiter may switch itself off.
    pub(crate) fn may_end(&self) -> bool {
        self.ceiling.is_none() && self.slope().is_none()
    }

    /// Returns the most that the rate may gain in a second, if that is limited.
    pub(crate) fn slope(&self) -> Option<Rate> {
        (self.slope != Rate::MAX).then_some(self.slope)
    }

    /// Returns the highest fill rate, if there is one.
    pub(crate) const fn highest(&self) -> Option<Rate> {
        self.ceiling
    }

    /// Returns β in thousandths.
    pub(crate) fn permille(&self) -> u16 {
        // A fraction of thousandths was rounded down.
        let permille = self.beta.wrapping_mul(1_000).div_ceil(1 << 32);
        u16::try_from(permille).unwrap_or(u16::MAX)
    }

    /// Returns the settings that may change under way. Low bits first:
    ///
    /// | bits | field |
    /// |---|---|
    /// | 49 | the lowest rate |
    /// | 10 | β in thousandths |
    /// | 49 | the highest rate; zero if there is none |
    pub(crate) fn tunable_bits(&self) -> u128 {
        FLOOR.put(self.floor.to_bits())
            | BETA.put(u64::from(self.permille()))
            | CEILING.put(self.ceiling.map_or(0, Rate::to_bits))
    }

    /// Returns the settings with the floor, β and ceiling of [`tunable_bits`](Self::tunable_bits).
    /// The initial rate is kept between that floor and ceiling.
    pub(crate) fn with_tunable_bits(self, bits: u128) -> Self {
        let permille = u16::try_from(BETA.get(bits)).unwrap_or(u16::MAX);
        let ceiling = Rate::from_bits(CEILING.get(bits));
        let tuned = Self {
            floor: Rate::from_bits(FLOOR.get(bits)),
            ceiling: (ceiling != Rate::ZERO).then_some(ceiling),
            beta: fraction(permille),
            ..self
        };
        Self {
            initial: self.initial.map(|initial| tuned.within(initial)),
            ..tuned
        }
    }

    /// Checks that these settings start like `other`, with which a limiter was made. A later floor
    /// or ceiling may have moved the initial rate of `other`. Without an initial rate here, any
    /// will do.
    pub(crate) fn starts_like(&self, other: &Self) -> Result<(), PacedSettingsError> {
        let setting = if self.burst != other.burst {
            "burst"
        } else if self.initial.is_some()
            && self.initial != other.initial.map(|rate| self.within(rate))
        {
            "initial rate"
        } else if self.cycle != other.cycle {
            "cycle"
        } else if self.slow_start != other.slow_start {
            "slow start"
        } else if self.slope != other.slope {
            "longest slope"
        } else if self.pause != other.pause {
            "longest pause"
        } else if self.profile != other.profile {
            "preset"
        } else {
            return Ok(());
        };
        Err(PacedSettingsError::Unchangeable { setting })
    }

    /// Returns the longest pause, in nanoseconds.
    pub(crate) const fn longest_pause(&self) -> u64 {
        self.pause
    }

    /// Returns the clients that the law is for.
    pub(crate) const fn profile(&self) -> Profile {
        self.profile
    }

    /// Returns β, with 32 fraction bits.
    pub(crate) const fn beta(&self) -> u64 {
        self.beta
    }

    /// Returns the capacity in nanoseconds at the fill rate.
    pub(crate) const fn burst_nanos(&self) -> u64 {
        self.burst
    }

    /// Returns the lowest fill rate.
    pub(crate) const fn lowest(&self) -> Rate {
        self.floor
    }

    /// Returns `rate`, kept between floor and ceiling.
    pub(crate) fn within(&self, rate: Rate) -> Rate {
        rate.max(self.floor).min(self.ceiling.unwrap_or(Rate::MAX))
    }
}

/// Makes [`PacedSettings`]. Only the last call, [`build`](Self::build), can fail.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use paceline::law::PacedSettings;
///
/// let second = Duration::from_secs(1);
/// let wrong = PacedSettings::builder().floor(20, second).ceiling(10, second).build();
/// assert_eq!(wrong.unwrap_err().to_string(), "the floor is above the ceiling");
/// ```
#[derive(Debug, Clone, Copy)]
#[must_use = "settings are made by `build`"]
pub struct PacedSettingsBuilder {
    settings: PacedSettings,
    learned: Option<LearnedRate>,
    /// The first error.
    error: Option<PacedSettingsError>,
}

impl PacedSettingsBuilder {
    /// Sets the lowest fill rate. Even a service that lets nothing through is asked this often.
    pub fn floor(mut self, tokens: u32, per: Duration) -> Self {
        if let Some(floor) = self.noted(rate("floor", tokens, per)) {
            self.settings.floor = floor;
        }
        self
    }

    /// Sets the highest fill rate. The limiter limits from the start, and never switches itself
    /// off.
    pub fn ceiling(mut self, tokens: u32, per: Duration) -> Self {
        if let Some(ceiling) = self.noted(rate("ceiling", tokens, per)) {
            self.settings.ceiling = Some(ceiling);
        }
        self
    }

    /// Sets the fill rate to start with. The limiter limits from the start.
    pub fn initial_rate(mut self, tokens: u32, per: Duration) -> Self {
        if let Some(initial) = self.noted(rate("initial rate", tokens, per)) {
            self.settings.initial = Some(initial);
            self.settings.cycle = None;
        }
        self
    }

    /// Begins with a slow start: at the initial rate, or 10 tokens/s if none is set. Off by
    /// default.
    ///
    /// Until the first throttle the rate rises with each round trip, every 25 ms at most. The rate
    /// doubles while fewer than ten requests are under way, and grows by an eighth from then on.
    /// Without a slow start, all that many workers have to send meets the limit at once.
    ///
    /// A slow start costs the time until the limit is reached: about 0.4 s to 3,500/s with round
    /// trips of 5 ms, 1.3 s with 50 ms. With a [longest slope](Self::max_slope) the rate rises by
    /// the slope instead.
    pub const fn slow_start(mut self, yes: bool) -> Self {
        self.settings.slow_start = yes;
        self
    }

    /// Lets the rate rise by at most `tokens` per second in each `per`. For services that throttle
    /// the rise itself, and scale with a load that grows slowly.
    ///
    /// The rise counts from where a cut, a pause or the [initial rate](Self::initial_rate) leaves
    /// the rate. Without an initial rate, nothing is limited until the first throttle. With a slope
    /// the limiter never switches itself off, and what a window delivers lifts no rate.
    ///
    /// # Examples
    ///
    /// From 100/s, and 10/s more in each second:
    ///
    /// ```
    /// use core::time::Duration;
    /// use paceline::{SendRate, Timestamp, law::PacedSettings};
    ///
    /// let second = Duration::from_secs(1);
    /// let settings = PacedSettings::builder()
    ///     .initial_rate(100, second)
    ///     .max_slope(10, second)
    ///     .build()?;
    /// let rate = SendRate::paced(settings, Timestamp::ZERO);
    /// let minute = rate.snapshot(Timestamp::from_nanos(60_000_000_000));
    /// assert!((699.0..=700.0).contains(&minute.fill_rate));
    /// # Ok::<(), paceline::law::PacedSettingsError>(())
    /// ```
    pub fn max_slope(mut self, tokens: u32, per: Duration) -> Self {
        if let Some(slope) = self.noted(rate("longest slope", tokens, per)) {
            self.settings.slope = slope;
        }
        self
    }

    /// Begins at the rate that another limiter had [learned](crate::SendRate::learned) `age` ago,
    /// in place of an initial rate. For a service that counts windows, the limiter goes on as if a
    /// window had just begun. Otherwise it begins with a [slow start](Self::slow_start).
    ///
    /// Half of the rate is forgotten each hour, down to the 10 tokens/s of an ordinary slow start.
    /// All is forgotten after a day, or four windows. The rate is kept between floor and ceiling. A
    /// rate that has become too low costs the time of a slow start; the first throttle cuts a rate
    /// that is too high.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use paceline::{Outcome, SendPermit, SendRate, Timestamp, law::PacedSettings};
    ///
    /// let second = Duration::from_secs(1);
    /// let first = PacedSettings::builder().initial_rate(80, second).build()?;
    /// let rate = SendRate::paced(first, Timestamp::ZERO);
    /// let learned = rate.learned(Timestamp::ZERO).unwrap(); // ... kept in a file, say
    ///
    /// let hour = Duration::from_secs(3_600);
    /// let next = PacedSettings::builder().learned(learned, hour).build()?;
    /// let next = SendRate::paced(next, Timestamp::ZERO).snapshot(Timestamp::ZERO);
    /// assert!((39.9..=40.0).contains(&next.fill_rate));
    /// # Ok::<(), paceline::law::PacedSettingsError>(())
    /// ```
    pub fn learned(mut self, rate: LearnedRate, age: Duration) -> Self {
        self.learned = rate.aged(age, Rate::from_ratio(SLOWLY, SECOND));
        self
    }

    /// Sets β, the part of the rate that a cut leaves, in thousandths: 500 to 990. At peaks under
    /// 100/s a cut takes more.
    pub fn beta_permille(mut self, permille: u16) -> Self {
        let beta = if (500..=990).contains(&permille) {
            Ok(fraction(permille))
        } else {
            Err(PacedSettingsError::Beta { permille })
        };
        if let Some(beta) = self.noted(beta) {
            self.settings.beta = beta;
        }
        self
    }

    /// Sets the capacity of the bucket, as a time at the fill rate, at most ten seconds. The bucket
    /// always holds at least one token.
    pub fn burst(mut self, length: Duration) -> Self {
        let burst = if length <= LONGEST_BURST {
            Ok(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX))
        } else {
            Err(PacedSettingsError::Burst { length })
        };
        if let Some(burst) = self.noted(burst) {
            self.settings.burst = burst;
        }
        self
    }

    /// Sets the longest pause that a service may ask for with a throttle: a minute by default, a
    /// day at most. A longer pause counts as this long. During the pause nothing is sent. An
    /// operation that accepts only a shorter pause is refused, and shortens no other operation's
    /// pause.
    ///
    /// An operation obeys a hint only up to its own `max_retry_after`: set both to the same length.
    pub fn max_pause(mut self, pause: Duration) -> Self {
        let longest = if pause <= LONGEST_PAUSE {
            Ok(u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX))
        } else {
            Err(PacedSettingsError::Pause { pause })
        };
        if let Some(longest) = self.noted(longest) {
            self.settings.pause = longest;
        }
        self
    }

    /// Returns the settings.
    ///
    /// # Errors
    ///
    /// Fails with the first value that was out of its range. Also fails if floor, initial rate and
    /// ceiling do not rise in this order; the order of the calls does not matter.
    pub fn build(self) -> Result<PacedSettings, PacedSettingsError> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.settings.ordered()?.beginning_at(self.learned)),
        }
    }

    /// Returns the value, or keeps its error if that is the first.
    fn noted<T>(&mut self, value: Result<T, PacedSettingsError>) -> Option<T> {
        value.map_err(|error| self.error.get_or_insert(error)).ok()
    }
}

/// Names the settings as their setters do, and leaves out unset ones.
impl fmt::Debug for PacedSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("PacedSettings");
        shown.field("preset", &self.profile);
        let rates = [
            ("floor", Some(self.floor)),
            ("ceiling", self.ceiling),
            ("initial_rate", self.initial),
            ("max_slope", self.slope()),
        ];
        for (name, rate) in rates {
            if let Some(rate) = rate {
                shown.field(name, &PerSecond(rate));
            }
        }
        if let Some(cycle) = self.cycle {
            shown.field("cycle", &Duration::from_nanos(cycle.get()));
        }
        if self.slow_start {
            shown.field("slow_start", &true);
        }
        if self.pause != Self::new().pause {
            shown.field("max_pause", &Duration::from_nanos(self.pause));
        }
        shown
            .field("beta_permille", &self.permille())
            .field("burst", &Duration::from_nanos(self.burst))
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for LearnedRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_tuple("LearnedRate");
        shown.field(&PerSecond(self.rate));
        if let Some(cycle) = self.cycle {
            shown.field(&Duration::from_nanos(cycle.get()));
        }
        if self.shut > 0 {
            shown.field(&format_args!(
                "shut for {:?}",
                Duration::from_nanos(self.shut)
            ));
        }
        shown.finish()
    }
}

/// Shows a rate in tokens per second, with three decimals at most.
struct PerSecond(Rate);

impl fmt::Debug for PerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millionths = self.0.tokens_in(SECOND.wrapping_mul(1_000_000));
        if millionths < 10_000 {
            return write!(
                f,
                "1 in {} s",
                self.0.nanos_per_token().saturating_add(SECOND >> 1) / SECOND
            );
        }
        let thousandths = millionths.saturating_add(500).wrapping_div(1_000);
        let (whole, rest) = (thousandths / 1_000, thousandths % 1_000);
        match rest {
            0 => write!(f, "{whole}/s"),
            _ if rest % 100 == 0 => write!(f, "{whole}.{}/s", rest / 100),
            _ if rest % 10 == 0 => write!(f, "{whole}.{:02}/s", rest / 10),
            _ => write!(f, "{whole}.{rest:03}/s"),
        }
    }
}

/// Returns thousandths with 32 fraction bits.
fn fraction(permille: u16) -> u64 {
    (u64::from(permille) << 32).wrapping_div(1_000)
}

fn rate(setting: &'static str, tokens: u32, per: Duration) -> Result<Rate, PacedSettingsError> {
    Rate::settable(tokens, per).ok_or(PacedSettingsError::Rate {
        setting,
        tokens,
        per,
    })
}

#[cfg(feature = "serde")]
fn cycle(cycle: Duration) -> Result<NonZeroU64, PacedSettingsError> {
    let nanos = u64::try_from(cycle.as_nanos()).ok();
    nanos
        .filter(|_| cycle <= LONGEST_CYCLE)
        .and_then(NonZeroU64::new)
        .ok_or(PacedSettingsError::Cycle { cycle })
}

mod error;
#[cfg(feature = "serde")]
pub(super) mod text;

#[cfg(test)]
mod tests;
