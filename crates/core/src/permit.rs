//! What goes into the buckets and comes out of them.

use core::error::Error;
use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;

use crate::Timestamp;

/// Whether something waits for a request, or it has time.
///
/// Both count against one rate, and a throttle of either lowers it. Background gets the tokens that
/// are there and that no foreground request waits for. Beside a foreground that wants more than the
/// rate background gets one token of `21 + n`, where `n` is how many tokens the foreground requests
/// in line ask for: 1 of 85 beside 64 waiters of one token each. So the wait of a background request
/// of `w` tokens is at most that for `w · (21 + n)` tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Class {
    /// First come, first served, ahead of background. Requests are foreground unless they say
    /// otherwise.
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

/// A request that was let go, and when.
///
/// It is `Copy`: recording it twice counts it twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a request that was let go should be recorded once it is answered"]
// Copied as one piece of 16 bytes, wherever it stands: a load across two stores waits for both.
#[repr(align(16))]
pub struct SendPermit {
    sent_at: Timestamp,
    /// Never 0, so that an `Option` of it is no larger.
    weight: NonZeroU32,
    order: u32,
}

/// The place of a request among all sends of a limiter, as far as its permit holds it.
///
/// The low 31 bits of the position that it was sent at, itself included, above a 1, if the limiter
/// obeys declared limits. Of others whether it took tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order(u64);

impl Order {
    /// Nothing was limited, so that it took no tokens.
    pub(super) const NONE: Self = Self(0);
    /// It took tokens.
    pub(super) const CHARGED: Self = Self(2);
    /// It took tokens, at a time that was read for a request a little before.
    pub(super) const CHARGED_EARLIER: Self = Self(Self::CHARGED.0 | EARLIER as u64);

    pub(super) const fn at(position: u64) -> Self {
        Self(((position << 1) | 1) & 0xffff_ffff)
    }

    #[expect(clippy::cast_possible_truncation, reason = "32 bits are used")]
    pub(super) const fn to_bits(self) -> u32 {
        self.0 as u32
    }
}

/// In a place: the time is that of a request a little before.
const EARLIER: u32 = 4;

impl SendPermit {
    /// In the place of a time: the request was let go without a look at the clock, while nothing
    /// was limited.
    const UNTIMED: u64 = u64::MAX;

    /// Returns the permit of a request that was sent at `t`, for traces replayed from elsewhere.
    ///
    /// The last nanosecond that there is, 584 years after the origin, counts as the one before.
    #[inline]
    pub const fn sent_at(t: Timestamp) -> Self {
        Self::of_weight(t, 1)
    }

    /// Returns the permit of a request that took `weight` tokens, at least 1, at `t`.
    pub(crate) const fn of_weight(t: Timestamp, weight: u32) -> Self {
        Self::with_order(t, weight, Order::NONE)
    }

    /// Returns the permit of a request that took `weight` tokens at `t`, with its place among the
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

    /// Returns `true` if the request took tokens, rather than having been let go while nothing was
    /// limited.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub const fn is_charged(self) -> bool {
        self.order & !EARLIER != 0
    }

    /// Returns `true` if its time is that of a request of the same thread a little before.
    pub(super) const fn is_earlier(self) -> bool {
        !self.is_ordered() && self.order & EARLIER != 0
    }

    /// Returns `true` if its place among the sends is known.
    pub(super) const fn is_ordered(self) -> bool {
        self.order & 1 == 1
    }

    /// Returns the position that it was sent at, by that of the last request `sent`, which is the
    /// answer if its own is not known.
    pub(super) const fn order(self, sent: u64) -> u64 {
        if !self.is_ordered() {
            return sent;
        }
        let since = Order::at(sent).to_bits().wrapping_sub(self.order) >> 1;
        sent.wrapping_sub(since as u64)
    }

    /// The permit of a request that was sent at no known time. A constant is copied as a whole, see
    /// the type.
    #[doc(hidden)]
    pub const NO_TIME: Self = Self {
        sent_at: Timestamp::from_nanos(Self::UNTIMED),
        weight: NonZeroU32::MIN,
        order: 0,
    };

    /// Returns its place among the sends, as it holds it.
    /// Returns this permit as of a send at `t`.
    #[doc(hidden)]
    #[inline]
    pub const fn moved(self, t: Timestamp) -> Self {
        Self::with_order(t, self.weight(), self.place())
    }

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

    /// Returns how many tokens the request took, and counts for: 1 unless it was asked for with a
    /// weight.
    #[inline]
    #[must_use]
    pub const fn weight(self) -> u32 {
        self.weight.get()
    }

    /// Returns the permit of the same request with its true cost in tokens, at least 1, for
    /// [`SendRate::record`](crate::SendRate::record): the rate is then measured in true costs.
    ///
    /// It takes no tokens and gives none back: [`SendRate::settle`](crate::SendRate::settle) does,
    /// with the permit as it was granted.
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
/// Returned at once: such a request takes no token and no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WeightError {
    /// The request would take no token.
    Zero,
    /// The bucket never holds as much at today's rate: the request would never go, or hold up
    /// all others.
    AboveCapacity {
        /// The tokens asked for.
        weight: u32,
        /// The most that the bucket holds at today's rate, rounded down, at least 1.
        capacity: u32,
    },
    /// So many tokens are promised already that positions in the line would come near their wrap.
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

/// Why a request got no token. It took none, and has no place in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AcquireError {
    /// The tokens cannot come in time.
    NotInTime {
        /// How long it would have been, at today's rate. Never zero.
        wait: Duration,
    },
    /// There is no such request.
    Weight(WeightError),
}

impl AcquireError {
    /// Returns how long it would have been until the tokens came, `None` if they never could.
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

/// What a retry was paid with.
///
/// It belongs to the one operation that acquired it. Hand it back with
/// [`RetryQuota::release`](crate::RetryQuota::release) when the retry it paid for succeeds; drop it
/// and it is spent.
#[derive(Debug)]
#[must_use = "a permit that is dropped is spent"]
pub struct QuotaPermit {
    cost: u32,
}

impl QuotaPermit {
    /// Returns the permit of a retry that cost so much.
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
