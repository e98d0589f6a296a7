//! The names of the laws, the outcomes that a law hears, and their effects.

use core::{fmt, num::NonZeroU16, time::Duration};

/// The law by which the fill rate answers to throttling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum ControlLaw {
    /// The adaptive mode that the AWS SDKs document, to the letter.
    Aws,
    /// The law of this crate. It paces at the rate that is delivered, cuts once for each overshoot,
    /// and is back at the limit within seconds at any rate. The law uses 0.9 to 1.0 of a limit of
    /// which the published law uses a third. While a service lets nothing through, the law asks
    /// seldom, one request at a time. It learns limits per minute, hour or day as the mean over
    /// each cycle. [`PacedSettings`](crate::law::PacedSettings) has its floor, ceiling and more;
    /// the rules stand in `crates/core/src/law/paced/mod.rs`.
    Paced,
    /// The law that follows what the service declares in its responses
    /// ([`SendRate::observe`](crate::SendRate::observe)). What is left of a limit lasts until the
    /// reset, for one client or for several. Where nothing is declared, this law is
    /// [`Paced`](Self::Paced). [`DeclaredSettings`](crate::law::DeclaredSettings) has its settings;
    /// the rules stand in `crates/core/src/law/declared/mod.rs`.
    Declared,
}

/// Shows the name of the law in text settings.
impl fmt::Display for ControlLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Aws => "aws",
            Self::Paced => "paced",
            Self::Declared => "declared",
        })
    }
}

/// The outcome of a request, as far as the send rate has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The service answered the request, and did not throttle it: a success, or an error of the
    /// request itself such as "not found".
    NotThrottled,
    /// The request failed, but neither because of a limit nor by its own fault: a fault of the
    /// service, a refused connection, a timeout.
    ///
    /// For [`ControlLaw::Paced`] and [`ControlLaw::Declared`] a failure is neither a throttle nor a
    /// delivery, so no failure raises the rate. For [`ControlLaw::Aws`] a failure is the same as
    /// [`NotThrottled`](Self::NotThrottled).
    Failed,
    /// The service throttled the request.
    Throttled,
    /// The service throttled the request, and said for how long nothing should be sent.
    ///
    /// If nothing gets through at the moment, [`ControlLaw::Paced`] pauses for that long, a minute
    /// at most unless [`max_pause`](crate::law::PacedSettingsBuilder::max_pause) is set. During the
    /// pause nothing is granted, not even what the bucket holds. Nothing gets through if nothing
    /// was ever delivered, or nothing since the last cut although at least four responses were to
    /// be expected. Where the law counts windows, each throttle with a hint pauses. Otherwise the
    /// hint is for this request only, whose retry waits that long. [`ControlLaw::Aws`] ignores the
    /// hint.
    ThrottledFor(Duration),
    /// The service did one part of the request and throttled the other, as it may for a batch.
    ///
    /// The permit's tokens are split: the part that was done counts as delivered, the other as
    /// throttled. [`Part::outcome`] makes this outcome from two numbers.
    PartlyThrottled(Part),
    /// The service did the request, and asked that nothing be sent for this time: a success with
    /// `Retry-After`.
    ///
    /// [`ControlLaw::Paced`] and [`ControlLaw::Declared`] pause for that long, a minute at most
    /// unless [`max_pause`](crate::law::PacedSettingsBuilder::max_pause) is set, and cut nothing.
    /// For [`ControlLaw::Aws`] this outcome is the same as [`NotThrottled`](Self::NotThrottled).
    PauseAfter(Duration),
    /// The request was sent, and its caller gave up before the answer.
    ///
    /// The request counts as sent, so cancelled requests do not make the measured rate too low.
    /// Such a request gives no round trip, and is no sign that the service has room.
    Unknown,
}

impl Outcome {
    /// Whether the service throttled the request.
    pub(crate) const fn is_throttled(self) -> bool {
        matches!(
            self,
            Self::Throttled | Self::ThrottledFor(_) | Self::PartlyThrottled(_)
        )
    }
}

/// The part of a request that the service throttled: some of its items, but not all.
///
/// # Examples
///
/// ```
/// use paceline::{Outcome, Part};
///
/// let part = Part::new(5, 25).unwrap(); // five of a batch of 25
/// assert_eq!((part.of(25), part.of(100), part.of(1)), (5, 20, 1));
/// assert_eq!(Part::outcome(0, 25), Outcome::NotThrottled);
/// assert_eq!(Part::outcome(5, 25), Outcome::PartlyThrottled(part));
/// assert_eq!(Part::outcome(25, 25), Outcome::Throttled);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The part, in 2⁻¹⁶ of the request.
    share: NonZeroU16,
}

impl Part {
    /// Returns the part of `refused` items among `items`, or `None` for none or all of them.
    ///
    /// The part is kept to 2⁻¹⁶, which is exact for up to 65,535 items.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "less than 2¹⁶")]
    pub const fn new(refused: u32, items: u32) -> Option<Self> {
        if refused == 0 || refused >= items {
            return None;
        }
        let (refused, items) = (refused as u64, items as u64);
        let share = match ((refused << 16).saturating_add(items >> 1)).checked_div(items) {
            Some(share @ 0..=0xffff) => share as u16,
            _ => u16::MAX,
        };
        Some(match NonZeroU16::new(share) {
            Some(share) => Self { share },
            None => Self {
                share: NonZeroU16::MIN,
            },
        })
    }

    /// Returns the outcome of a request of `items` of which the service throttled `refused`.
    #[must_use]
    pub const fn outcome(refused: u32, items: u32) -> Outcome {
        match Self::new(refused, items) {
            Some(part) => Outcome::PartlyThrottled(part),
            None if refused == 0 => Outcome::NotThrottled,
            None => Outcome::Throttled,
        }
    }

    /// Returns this part of `weight`, rounded to the nearest: at least 1, unless `weight` is 0.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "at most the weight")]
    pub const fn of(self, weight: u32) -> u32 {
        let share = (weight as u64).saturating_mul(self.share.get() as u64);
        match share.saturating_add(1 << 15) >> 16 {
            0 if weight > 0 => 1,
            part => part as u32,
        }
    }
}

/// What a response did to the send rate: [`SendRate::record`](crate::SendRate::record).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Recorded {
    /// The response was counted. The rate may have moved along the law's curve, or risen to what
    /// was delivered.
    Counted,
    /// The response lowered the rate, began to limit it, or was a refusal by a service that is
    /// shut.
    Cut,
    /// The response ended the limit: nothing is limited until the next throttle.
    Ended,
    /// The request was throttled although enough was left of the limit that the service declares.
    Contradicted,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_its_own_items_is_what_was_refused() {
        for items in [2_u32, 3, 25, 500, 1_000, 65_535] {
            for refused in [1, items / 3, items / 2, items.saturating_sub(1)] {
                let part = Part::new(refused.max(1), items).expect("some, and not all");
                assert_eq!(part.of(items), refused.max(1), "of {items}");
            }
        }
        let most = Part::new(u32::MAX.saturating_sub(1), u32::MAX).expect("not all");
        let least = Part::new(1, u32::MAX).expect("one");
        assert_eq!((least.of(0), least.of(1), most.of(0)), (0, 1, 0));
        assert!(most.of(u32::MAX) < u32::MAX && least.of(u32::MAX) >= 1);
        assert_eq!(
            [(0, 5), (5, 5), (6, 5), (0, 0)].map(|(n, m)| Part::new(n, m)),
            [None; 4]
        );
    }
}
