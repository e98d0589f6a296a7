//! The classes of requests, the permits of the buckets, and their errors.

use core::error::Error;
use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;

use crate::Timestamp;

/// Whether something waits for a request, or the request has time.
///
/// Both classes count against one rate, and a throttle of either lowers the rate. Background gets
/// the tokens for which no foreground request waits. If foreground wants more than the rate,
/// background gets one token of `21 + n`. Here `n` is how many tokens the foreground requests in
/// line ask for: 1 of 85 beside 64 waiters of one token each. So a background request of `w` tokens
/// waits at most as long as `w · (21 + n)` tokens take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Class {
    /// First come, first served, ahead of background. Requests are foreground by default.
    #[default]
    Foreground,
    /// Behind the foreground: a back-fill, an upload, a crawl.
    Background,
}

impl Class {
    /// Returns `true` for [`Background`](Self::Background).
    pub(crate) const fn is_background(self) -> bool {
        matches!(self, Self::Background)
    }
}

/// The record of a request that was let go, and its time.
///
/// A permit is `Copy`. Recording a permit twice counts the request twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a request that was let go should be recorded once it is answered"]
// The alignment makes each copy one piece of 16 bytes. A load across two stores would wait for
// both.
#[repr(align(16))]
pub struct SendPermit {
    sent_at: Timestamp,
    /// Never 0, so that an `Option` of a permit is no larger.
    weight: NonZeroU32,
    order: u32,
}

/// The position of a request among all sends of a limiter, as far as its permit holds it.
///
/// If the limiter obeys declared limits: the low 31 bits of the position after the request's send,
/// above a bit that is 1. Otherwise: whether the request took tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order(u64);

impl Order {
    /// Nothing was limited, so the request took no tokens.
    pub(super) const NONE: Self = Self(0);
    /// The request took tokens.
    pub(super) const CHARGED: Self = Self(2);
    /// The request took tokens, at a time that was read for an earlier request.
    pub(super) const CHARGED_EARLIER: Self = Self(Self::CHARGED.0 | EARLIER as u64);

    pub(super) const fn at(position: u64) -> Self {
        Self(((position << 1) | 1) & 0xffff_ffff)
    }

    #[expect(clippy::cast_possible_truncation, reason = "32 bits are used")]
    pub(super) const fn to_bits(self) -> u32 {
        self.0 as u32
    }
}

/// The bit of an order that says that the permit's time was read for an earlier request.
const EARLIER: u32 = 4;

impl SendPermit {
    /// The value in place of a time, if the clock was not read because nothing was limited.
    const UNTIMED: u64 = u64::MAX;

    /// Returns the permit of a request that was sent at `t`, for traces replayed from elsewhere.
    ///
    /// The last nanosecond of the range, 584 years after the origin, counts as the nanosecond
    /// before.
    #[inline]
    pub const fn sent_at(t: Timestamp) -> Self {
        Self::of_weight(t, 1)
    }

    /// Returns the permit of a request that took `weight` tokens, at least 1, at `t`.
    pub(crate) const fn of_weight(t: Timestamp, weight: u32) -> Self {
        Self::with_order(t, weight, Order::NONE)
    }

    /// Returns the permit of a request that took `weight` tokens at `t`, with its order among the
    /// sends.
    #[inline]
    pub(super) const fn with_order(t: Timestamp, weight: u32, order: Order) -> Self {
        Self {
            sent_at: match t.as_nanos() {
                Self::UNTIMED => Timestamp::from_nanos(Self::UNTIMED.wrapping_sub(1)),
                _ => t,
            },
            weight: match NonZeroU32::new(weight) {
                Some(weight) => weight,
                None => NonZeroU32::MIN,
            },
            order: order.to_bits(),
        }
    }

    /// Returns `true` if the request took tokens, `false` if it was let go while nothing was
    /// limited.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub const fn is_charged(self) -> bool {
        self.order & !EARLIER != 0
    }

    /// Returns `true` if the permit's time was read for an earlier request of the same thread.
    pub(super) const fn is_earlier(self) -> bool {
        !self.is_ordered() && self.order & EARLIER != 0
    }

    /// Returns `true` if the permit holds a position among the sends.
    pub(super) const fn is_ordered(self) -> bool {
        self.order & 1 == 1
    }

    /// Returns the position of the request, given the position of the last request, `sent`. Returns
    /// `sent` if the permit holds no position.
    pub(super) const fn order(self, sent: u64) -> u64 {
        if !self.is_ordered() {
            return sent;
        }
        let since = Order::at(sent).to_bits().wrapping_sub(self.order) >> 1;
        sent.wrapping_sub(since as u64)
    }

    /// The permit of a request without a known time. A constant is copied as one piece, see the
    /// type.
    #[doc(hidden)]
    pub const NO_TIME: Self = Self {
        sent_at: Timestamp::from_nanos(Self::UNTIMED),
        weight: NonZeroU32::MIN,
        order: 0,
    };

    /// Returns this permit as of a send at `t`.
    #[doc(hidden)]
    #[inline]
    pub const fn moved(self, t: Timestamp) -> Self {
        Self::with_order(t, self.weight(), self.place())
    }

    /// Returns the permit's order among the sends.
    pub(super) const fn place(self) -> Order {
        Order(self.order as u64)
    }

    /// Returns when the request was let go, [`Timestamp::ZERO`] if the clock was not read
    /// ([`SendRate::try_acquire_with`](crate::SendRate::try_acquire_with)).
    #[inline]
    #[must_use]
    pub const fn time(self) -> Timestamp {
        if self.is_timed() {
            self.sent_at
        } else {
            Timestamp::ZERO
        }
    }

    pub(crate) const fn is_timed(self) -> bool {
        self.sent_at.as_nanos() != Self::UNTIMED
    }

    /// Returns how many tokens the request took and counts for: 1, unless it was asked for with a
    /// weight.
    #[inline]
    #[must_use]
    pub const fn weight(self) -> u32 {
        self.weight.get()
    }

    /// Returns the permit of the same request with its true cost in tokens, at least 1, for
    /// [`SendRate::record`](crate::SendRate::record): the rate is then measured in true costs.
    ///
    /// This call takes no tokens and gives none back. [`SendRate::settle`](crate::SendRate::settle)
    /// does, with the permit as granted.
    #[inline]
    pub const fn costing(mut self, tokens: u32) -> Self {
        if !self.is_ordered() {
            self.order &= EARLIER;
        }
        if let Some(weight) = NonZeroU32::new(tokens) {
            self.weight = weight;
        } else {
            self.weight = NonZeroU32::MIN;
        }
        self
    }
}

/// A weight that no request can have.
///
/// The error comes at once. The request takes no token and no place in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WeightError {
    /// The request would take no token.
    Zero,
    /// The bucket never holds so many tokens at today's rate. The request would never go, or hold
    /// up all others.
    AboveCapacity {
        /// The tokens asked for.
        weight: u32,
        /// The most that the bucket holds at today's rate, rounded down, at least 1.
        capacity: u32,
    },
    /// So many tokens are promised already that places on the line would come near their wrap.
    LineFull {
        /// The tokens asked for.
        weight: u32,
        /// The tokens promised and not minted yet: 2³⁷ at most.
        waiting: u64,
    },
}

impl fmt::Display for WeightError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero => f.write_str("the request asks for no token"),
            Self::AboveCapacity { weight, capacity } => write!(
                f,
                "the request asks for {weight} tokens, and the bucket holds {capacity} at most"
            ),
            Self::LineFull { weight, waiting } => write!(
                f,
                "the request asks for {weight} tokens, and {waiting} are promised already"
            ),
        }
    }
}

impl Error for WeightError {}

/// Why a request got no token. The request took none, and has no place in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AcquireError {
    /// The tokens cannot come in time.
    NotInTime {
        /// The wait that the request would have needed, at today's rate. Never zero.
        wait: Duration,
    },
    /// No request can have this weight.
    Weight(WeightError),
}

impl AcquireError {
    /// Returns the wait until the tokens would have come, `None` if they never could.
    #[must_use]
    pub const fn wait(&self) -> Option<Duration> {
        match self {
            Self::NotInTime { wait } => Some(*wait),
            Self::Weight(_) => None,
        }
    }
}

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInTime { wait } => {
                write!(f, "not in time: the send rate asks for a wait of {wait:?}")
            }
            Self::Weight(error) => error.fmt(f),
        }
    }
}

impl Error for AcquireError {}

impl From<WeightError> for AcquireError {
    fn from(error: WeightError) -> Self {
        Self::Weight(error)
    }
}

/// The payment for a retry.
///
/// A permit belongs to the operation that acquired it. Give it back with
/// [`RetryQuota::release`](crate::RetryQuota::release) when the retry that it paid for succeeds. A
/// dropped permit is spent.
#[derive(Debug)]
#[must_use = "a permit that is dropped is spent"]
pub struct QuotaPermit {
    cost: u32,
}

impl QuotaPermit {
    /// Returns the permit of a retry that cost so many tokens.
    #[doc(hidden)]
    pub const fn of(cost: u32) -> Self {
        Self { cost }
    }

    /// Returns the tokens that this permit took.
    #[must_use]
    pub const fn cost(&self) -> u32 {
        self.cost
    }
}
