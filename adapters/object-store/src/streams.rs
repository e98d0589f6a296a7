//! Lists and deletes, which are streams.

use alloc::{sync::Arc, vec, vec::Vec};

use futures_util::{
    StreamExt as _, TryStreamExt as _,
    stream::{self, BoxStream},
};
use object_store::{Error, ObjectMeta, ObjectStore, Result, path::Path};
use paceline::{
    Failure, Idempotency, Part,
    operation::{Verdict, Waiter},
    strategy::Reports,
    wait::DefaultSleep,
};

use crate::{
    Pacing,
    capacity::capacity,
    lane::{Lane, of_stop},
};

type Entries = BoxStream<'static, Result<ObjectMeta>>;

/// Takes a turn for each page of a list. A list that fails before its first entry is begun anew.
pub(crate) fn listed(lane: Lane, list: impl Fn() -> Entries + Send + Sync + 'static) -> Entries {
    let begun = async move {
        let begin = |_| {
            let mut rest = list();
            async move { Ok((rest.next().await.transpose()?, rest)) }
        };
        let (first, rest) = lane.run(Idempotency::Idempotent, begin).await?;
        let seen = 1;
        let pages = Pages { lane, rest, seen };
        // No entry is asked for after the end.
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

/// The most objects that one request deletes, if the service takes several. All tokens of a request
/// must come together in the lane, and a larger batch would wait for long.
const BATCH: usize = 50;
/// How many batches are under way at once.
const BATCHES: usize = 8;

/// Deletes in batches. A batch takes a turn for each of its objects, and objects that the service
/// throttled are sent again, in their order.
pub(crate) fn deleted<T: ObjectStore + ?Sized>(
    pacing: &Arc<Pacing>,
    store: &Arc<T>,
    locations: BoxStream<'static, Result<Path>>,
) -> BoxStream<'static, Result<Path>> {
    let (pacing, store) = (Arc::clone(pacing), Arc::clone(store));
    let batches = locations.ready_chunks(BATCH).flat_map(move |locations| {
        let batches = batches(&pacing, locations);
        stream::iter(batches)
    });
    let ended = batches.map(move |batch| {
        let store = Arc::clone(&store);
        async move {
            match batch {
                Ok((lane, batch)) => delete_all(&lane, &*store, batch).await,
                Err(error) => vec![Err(error)],
            }
        }
    });
    ended.buffered(BATCHES).flat_map(stream::iter).boxed()
}

type Batch = (Lane, Vec<Path>);

/// Splits `locations` where the lane changes. An error in `locations` stays in its place.
fn batches(pacing: &Arc<Pacing>, locations: Vec<Result<Path>>) -> Vec<Result<Batch>> {
    let mut batches: Vec<Result<Batch>> = Vec::new();
    for location in locations {
        let next = location.map(|location| (pacing.writes(&location), location));
        match (batches.last_mut(), next) {
            (Some(Ok((lane, batch))), Ok((next, location)))
                if Arc::ptr_eq(&lane.strategy, &next.strategy) =>
            {
                batch.push(location);
            }
            (_, next) => batches.push(next.map(|(lane, location)| (lane, vec![location]))),
        }
    }
    batches
}

/// Deletes a batch, or smaller batches if the lane does not hold as many tokens.
async fn delete_all(
    lane: &Lane,
    store: &(impl ObjectStore + ?Sized),
    mut batch: Vec<Path>,
) -> Vec<Result<Path>> {
    let (mut most, mut ended) = (batch.len(), Vec::new());
    while !batch.is_empty() {
        let rest = batch.split_off(most.min(batch.len()));
        match delete(lane, store, &batch).await {
            Ok(results) => {
                ended.extend(results);
                batch = rest;
            }
            Err(capacity) => {
                most = usize::try_from(capacity).unwrap_or(most);
                batch.extend(rest);
            }
        }
    }
    ended
}

/// Deletes a batch, and returns the result of each location, in their order. A store that fails as
/// a whole gives one result.
///
/// # Errors
///
/// The capacity of the lane, if the batch is larger.
async fn delete(
    lane: &Lane,
    store: &(impl ObjectStore + ?Sized),
    batch: &[Path],
) -> core::result::Result<Vec<Result<Path>>, u32> {
    let mut waiter = Waiter::new(DefaultSleep::new());
    let mut attempts = lane.start(count(batch.len()));
    // The results of the batch, and the places of the locations left to send.
    let mut ended: Vec<Result<Path>> = Vec::new();
    let mut left: Vec<usize> = (0..batch.len()).collect();
    loop {
        if let Err(stop) = waiter.next(&mut attempts, lane.strategy.clock()).await {
            if let Some(less) = capacity(&stop).filter(|_| ended.is_empty()) {
                return Err(less);
            }
            // After the first attempt each location has its own error.
            let unsent = batch.iter().skip(ended.len());
            ended.extend(unsent.map(|_| Err(of_stop(stop.clone()))));
            return Ok(ended);
        }
        let locations = left.iter().filter_map(|at| batch.get(*at).cloned());
        let locations: Vec<_> = locations.map(Ok).collect();
        let sent = locations.len();
        let results = store.delete_stream(stream::iter(locations).boxed());
        let results: Vec<_> = results.collect().await;
        let is_first = ended.is_empty();
        if results.len() != sent {
            lane.conclude(
                &mut attempts,
                results.iter().find_map(|one| one.as_ref().err()),
            );
            return Ok(if is_first { results } else { ended });
        }
        if is_first {
            ended = results;
        } else {
            for (at, result) in left.iter().zip(results) {
                if let Some(one) = ended.get_mut(*at) {
                    *one = result;
                }
            }
        }
        let error = |at: usize| ended.get(at)?.as_ref().err();
        let is_throttled = |error| lane.pacing.classify(error).is_throttle();
        let first = left.first().and_then(|at| error(*at));
        left.retain(|at| error(*at).is_some_and(is_throttled));
        if left.is_empty() {
            lane.conclude(&mut attempts, first.filter(|_| sent == 1));
            return Ok(ended);
        }
        let failure = match (Part::new(count(left.len()), count(sent)), first) {
            (None, Some(error)) => lane.pacing.classify(error),
            _ => Failure::partly_throttled(count(left.len()), count(sent)),
        };
        let verdict = attempts.failed(&failure, Reports::new());
        match verdict {
            Ok(Verdict::Again(_)) => {}
            // The connector has paced these keys. Some were deleted, so the loop ends.
            _ if lane.pacing.over_connector && left.len() < sent => {
                attempts = lane.start(count(left.len()));
            }
            _ => return Ok(ended),
        }
    }
}

/// Returns how many tokens a batch of `locations` takes.
fn count(locations: usize) -> u32 {
    u32::try_from(locations).unwrap_or(u32::MAX)
}
