//! The limiters that are compared, in the order of the tables.

use crate::law::{
    AwsAsking, Backoff, Bulk, Exclusive, InLine, Law, Nothing, Published, Shared, Told, Usual,
};
use crate::rivals::{Gax, Lance, OpenDal, Polars, Rival};
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

const fn entry<L: Law + 'static>() -> Entry {
    Entry {
        name: L::NAME,
        means: L::MEANS,
        play: world::play::<L>,
    }
}

/// What others have published: only if asked for.
pub(crate) const RIVALS: &[Entry] = &[
    entry::<Rival<Polars>>(),
    entry::<Rival<Lance>>(),
    entry::<Rival<OpenDal>>(),
    entry::<Gax>(),
];

/// All of them.
pub(crate) const LAWS: &[Entry] = &[
    entry::<Nothing>(),
    entry::<Backoff>(),
    entry::<AwsAsking>(),
    entry::<InLine<Published>>(),
    entry::<InLine<Usual>>(),
    entry::<InLine<Shared>>(),
    entry::<InLine<Exclusive>>(),
    entry::<InLine<Bulk>>(),
    entry::<Told>(),
];
