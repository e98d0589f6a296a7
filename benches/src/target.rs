//! What this crate is held to.

/// One bound of a case. Where another case is named, it is one on the same path, in the same
/// rounds.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    /// One thread takes at most so many nanoseconds.
    Nanos(f64),
    /// One thread takes at most that many times as long as it does for another case.
    TimeOf(f64, &'static str),
    /// Two threads do at least that many times as much as one.
    Scales(f64),
    /// Two threads do at least 0.95 times what an empty loop on two does, over one.
    ScalesAsEmptyLoop,
    /// Two threads do at least that many times as much as they do of another case.
    TotalOf(f64, &'static str),
}

impl Bound {
    /// Returns the case that it names.
    #[must_use]
    pub const fn names(self) -> Option<&'static str> {
        match self {
            Self::TimeOf(_, name) | Self::TotalOf(_, name) => Some(name),
            Self::Nanos(_) | Self::Scales(_) | Self::ScalesAsEmptyLoop => None,
        }
    }
}

/// What one case is held to.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// All of these.
    pub bounds: &'static [Bound],
    /// The reason that stands beside a miss.
    pub why_not: &'static str,
}
