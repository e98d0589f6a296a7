//! The parts of a request that are measured.

/// A part of a request. The cases on one path are alternatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// What the hardware asks.
    Floor,
    /// A success, told to a quota that is full.
    QuotaSuccess,
    /// Five tokens taken from a quota, and put back.
    QuotaPair,
    /// A quota that is empty is asked.
    QuotaRefused,
    /// A whole healthy request in standard mode.
    Standard,
    /// A whole healthy request in adaptive mode, nothing throttled yet.
    Adaptive,
    /// A token taken and its response recorded while throttling is answered to; the caller has the
    /// time.
    Engaged,
    /// The same through the strategies, which read their clock.
    EngagedRequest,
    /// A token taken by the time on a clock that is read.
    GrantedByClock,
    /// A token taken by the caller's time.
    Granted,
    /// A token of each of three limits, or none, by the time on a clock that is read.
    ThreeLimits,
    /// A limiter is found among ten thousand, and a token taken of it.
    Keyed,
    /// A token that a task need not wait for.
    Acquired,
    /// A refusal by the caller's time.
    Refused,
    /// A refusal by the time on a clock that is read.
    RefusedByClock,
    /// A delay with jitter is computed.
    Backoff,
}

impl Path {
    /// All of them, in the order of the report.
    pub const ALL: [Self; 16] = [
        Self::Floor,
        Self::QuotaSuccess,
        Self::QuotaPair,
        Self::QuotaRefused,
        Self::Standard,
        Self::Adaptive,
        Self::Engaged,
        Self::EngagedRequest,
        Self::GrantedByClock,
        Self::Granted,
        Self::ThreeLimits,
        Self::Keyed,
        Self::Acquired,
        Self::Refused,
        Self::RefusedByClock,
        Self::Backoff,
    ];

    /// Returns a name for the command line.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::QuotaSuccess => "quota-success",
            Self::QuotaPair => "quota-pair",
            Self::QuotaRefused => "quota-refused",
            Self::Standard => "standard",
            Self::Adaptive => "adaptive",
            Self::Engaged => "engaged",
            Self::EngagedRequest => "engaged-request",
            Self::GrantedByClock => "granted-by-clock",
            Self::Granted => "granted",
            Self::ThreeLimits => "three-limits",
            Self::Keyed => "keyed",
            Self::Acquired => "acquired",
            Self::Refused => "refused",
            Self::RefusedByClock => "refused-by-clock",
            Self::Backoff => "backoff",
        }
    }

    /// Returns what people call it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Floor => "what the hardware asks",
            Self::QuotaSuccess => "quota: success when full",
            Self::QuotaPair => "quota: acquire and release",
            Self::QuotaRefused => "quota: refused",
            Self::Standard => "standard strategy, whole healthy request",
            Self::Adaptive => "adaptive strategy, whole healthy request, never throttled",
            Self::Engaged => "adaptive, throttled: acquire and record, caller's time",
            Self::EngagedRequest => "adaptive strategy, throttled, whole request",
            Self::GrantedByClock => "a granted acquire that reads a clock",
            Self::Granted => "a granted acquire, caller's time",
            Self::ThreeLimits => "a token of each of three limits, by a clock",
            Self::Keyed => "a key among 10,000 and a granted acquire, by a clock",
            Self::Acquired => "an asynchronous acquire that need not wait, by a clock",
            Self::Refused => "a refused acquire, caller's time",
            Self::RefusedByClock => "a refused acquire that reads a clock",
            Self::Backoff => "a backoff delay with jitter",
        }
    }
}
