//! The names of the laws, what a law hears, and what came of it.

use core::{fmt, num::NonZeroU16, time::Duration};

/// How the fill rate answers to throttling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum ControlLaw {
    /// The adaptive mode that the AWS SDKs document, to the letter.
    Aws,
    /// The law of this crate: it paces at the rate that is delivered, cuts once for each overshoot,
    /// and is back at the limit within seconds at any rate. It uses 0.9 to 1.0 of a limit of which
    /// the published law uses a third. Where a service lets nothing through it asks seldom, one
    /// request at a time, and learns limits a minute, an hour or a day by the mean over each.
    /// [`PacedSettings`](crate::law::PacedSettings) has its floor, ceiling and more; the rules
    /// stand in `crates/core/src/law/paced/mod.rs`.
    Paced,
    /// It goes by what the service declares in its responses
    /// ([`SendRate::observe`](crate::SendRate::observe)): what remains of a limit lasts until its
    /// reset, for one client or for several. Where nothing is declared it is
    /// [`Paced`](Self::Paced). [`DeclaredSettings`](crate::law::DeclaredSettings) has its settings;
    /// the rules stand in `crates/core/src/law/declared/mod.rs`.
    Declared,
}

/// Its name in settings as text.
impl fmt::Display for ControlLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Aws => "aws",
            Self::Paced => "paced",
            Self::Declared => "declared",
        })
    }
}

/// The outcome of a request, as far as the send rate is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The service answered it, and did not throttle it: a success, or an error of the request's own
    /// such as "not found".
    NotThrottled,
    /// It failed, and not because of a limit or of what it asked for: a fault of the service, a
    /// refused connection, a timeout.
    ///
    /// To [`ControlLaw::Paced`] and [`ControlLaw::Declared`] it is no throttle and no delivery, so
    /// that the rate grows by no failure. To [`ControlLaw::Aws`] it is the same as
    /// [`NotThrottled`](Self::NotThrottled).
    Failed,
    /// The service throttled it.
    Throttled,
    /// The service throttled it, and said for how long nothing should be sent.
    ///
    /// If nothing gets through at the moment, [`ControlLaw::Paced`] pauses for that long, a minute
    /// at most unless [`max_pause`](crate::law::PacedSettingsBuilder::max_pause) is set: nothing is
    /// granted, not even what the bucket holds. Nothing gets through if nothing was ever delivered,
    /// or nothing since the last cut although at least four responses were to be expected. Where
    /// the law counts windows, each throttle with a hint pauses. Otherwise the hint is for this
    /// request only, whose retry waits for it. To [`ControlLaw::Aws`] it is a throttle like others.
    ThrottledFor(Duration),
    /// The service did one part of the request and throttled the other: batches are answered so.
    ///
    /// Of the permit's tokens the part that was done counts as delivered, and the other part as
    /// throttled. [`Part::outcome`] makes it of two numbers.
    PartlyThrottled(Part),
    /// The service did it, and asked that nothing be sent for so long: a success with `Retry-After`.
    ///
    /// [`ControlLaw::Paced`] and [`ControlLaw::Declared`] pause for that long and cut nothing, a
    /// minute at most unless [`max_pause`](crate::law::PacedSettingsBuilder::max_pause) is set. To
    /// [`ControlLaw::Aws`] it is the same as [`NotThrottled`](Self::NotThrottled).
    PauseAfter(Duration),
    /// It was sent, and its caller gave it up before the answer.
    ///
    /// It counts as sent, so that cancelled requests do not make the measured rate too low. As an
    /// answer it counts for nothing: it is no round trip, and no sign that the service has room.
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

/// How much of a request the service throttled: some of its items, and not all of them.
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
    /// In 2⁻¹⁶ of the request.
    share: NonZeroU16,
}

impl Part {
    /// Returns the part of `refused` items among `items`, or `None` if it is none of them or all.
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
    /// It was counted. The rate may have moved along the law's curve, or risen to what was
    /// delivered.
    Counted,
    /// It lowered the rate, began to limit it, or was refused by a service that is shut.
    Cut,
    /// It ended the limit: nothing is limited until the next throttle.
    Ended,
    /// It was throttled although enough was left of the limit that the service declares.
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
