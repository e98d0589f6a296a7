//! What this crate is held to.

/// The most that one thread may take for an operation.
#[derive(Clone, Copy, Debug)]
pub enum Time {
    /// Nanoseconds.
    Nanos(f64),
    /// What another case on the path takes in the same rounds.
    AsCase(&'static str),
}

/// The least that two threads have to do.
#[derive(Clone, Copy, Debug)]
pub enum Scaling {
    /// Nearly what an empty loop scales to in the same rounds: at least 0.95 of it, printed as 1.9
    /// x.
    AsEmptyLoop,
    /// That many times what one does.
    Times(f64),
    /// In all as much as another case on the path.
    AsCase(&'static str),
    /// This share of how another case on the path scales.
    ShareOf(f64, &'static str),
}

/// What one case is held to.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// On one thread.
    pub time: Time,
    /// On two.
    pub scaling: Scaling,
    /// The reason that stands beside a miss: the physics, if it is that, or what is yet to be done.
    pub why_not: &'static str,
}

impl Target {
    /// Creates a target.
    #[must_use]
    pub const fn new(time: Time, scaling: Scaling, why_not: &'static str) -> Self {
        Self {
            time,
            scaling,
            why_not,
        }
    }
}
