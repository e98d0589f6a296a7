//! Lists and deletes, which are streams.

use alloc::sync::Arc;
use std::sync::mpsc;

use futures_util::{
    StreamExt as _, TryStreamExt as _,
    stream::{self, BoxStream},
};
use object_store::{Error, ObjectMeta, Result, path::Path};
use paceline::Idempotency;

use crate::{
    Pacing,
    lane::{Lane, Sending},
};

type Entries = BoxStream<'static, Result<ObjectMeta>>;

/// Takes a turn for each page of a list. One that fails before its first entry is begun anew.
pub(crate) fn listed(lane: Lane, list: impl Fn() -> Entries + Send + Sync + 'static) -> Entries {
    let begun = async move {
        let begin = |_| {
            let mut rest = list();
            async move { Ok((rest.next().await.transpose()?, rest)) }
        };
        let (first, rest) = lane.run(Idempotency::Idempotent, begin).await?;
        let seen = 1;
        let pages = Pages { lane, rest, seen };
        // Nothing is asked for after the end.
        let rest = stream::iter(first.is_some().then_some(pages));
        let rest = rest.flat_map(|pages| stream::unfold(pages, Pages::next));
        Ok::<_, Error>(stream::iter(first).map(Ok).chain(rest))
    };
    stream::once(begun).try_flatten().boxed()
}

/// A list after its first entry.
struct Pages {
    lane: Lane,
    rest: Entries,
    seen: usize,
}

impl Pages {
    async fn next(mut self) -> Option<(Result<ObjectMeta>, Self)> {
        let page = self.lane.pacing.page.max(1);
        let sending = match self.seen.checked_rem(page) {
            Some(0) => match self.lane.begin().await {
                Ok(sending) => Some(sending),
                Err(refused) => return Some((Err(refused), self)),
            },
            _ => None,
        };
        let next = self.rest.next().await;
        match (&next, sending) {
            (Some(Err(error)), Some(sending)) => self.lane.end(sending, Some(error)),
            (Some(Err(error)), None) => self.lane.note(error),
            (_, Some(sending)) => self.lane.end(sending, None),
            (_, None) => {}
        }
        self.seen = self.seen.wrapping_add(1);
        Some((next?, self))
    }
}

/// Takes a turn for each location before the store hears of it.
///
/// Stores answer in the order of the locations, so the lanes record the outcomes in that
/// order. A store that deletes many at once and fails says so once: then the rest record one too
/// early, of which nothing comes but that a success is recorded for a neighbour.
pub(crate) fn deleted(
    pacing: &Arc<Pacing>,
    locations: BoxStream<'static, Result<Path>>,
    delete: impl FnOnce(BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>>,
) -> BoxStream<'static, Result<Path>> {
    let (begun, to_end) = mpsc::channel();
    let pacing = Arc::clone(pacing);
    let in_turn = locations.then(move |location| {
        let (pacing, begun) = (Arc::clone(&pacing), begun.clone());
        async move {
            let in_turn = take_turn(&pacing, location).await;
            let (record, location) = match in_turn {
                Ok((record, location)) => (Some(record), Ok(location)),
                // The store returns it, and there is nothing to record.
                Err(error) => (None, Err(error)),
            };
            // There is no listener only if the stream is not polled.
            drop(begun.send(record));
            location
        }
    });
    let ended = delete(in_turn.boxed()).inspect(move |ended| {
        if let Ok(Some((lane, sending))) = to_end.try_recv() {
            lane.end(sending, ended.as_ref().err());
        }
    });
    ended.boxed()
}

async fn take_turn(
    pacing: &Arc<Pacing>,
    location: Result<Path>,
) -> Result<((Lane, Sending), Path)> {
    let location = location?;
    let lane = pacing.writes(&location);
    let sending = lane.begin().await?;
    Ok(((lane, sending), location))
}
