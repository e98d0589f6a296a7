//! The limiters that are compared, in the order of the tables.

use crate::law::{AwsAsking, AwsInLine, Backoff, Law, Nothing, Paced, Told};
use crate::scene::Scene;
use crate::tally::Tally;
use crate::world;

/// A limiter by its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    /// What it does, for people who do not know the name.
    pub(crate) means: &'static str,
    /// Plays a scene with a seed.
    pub(crate) play: fn(&Scene, u64) -> Tally,
}

const fn entry<L: Law>() -> Entry {
    Entry {
        name: L::NAME,
        means: L::MEANS,
        play: world::play::<L>,
    }
}

/// All of them.
pub(crate) const LAWS: &[Entry] = &[
    entry::<Nothing>(),
    entry::<Backoff>(),
    entry::<AwsAsking>(),
    entry::<AwsInLine>(),
    entry::<Paced>(),
    entry::<Told>(),
];
