//! An object service that copies objects, with a limit.

use core::time::Duration;
use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use http_body_util::Full;
use hyper::{
    Method, Request, Response,
    body::{Bytes, Incoming},
};
use tokio::time::sleep;

use crate::{
    number::nanos,
    policer::{Counting, Policer},
    s3::{self, ServiceError},
    server::Serve,
    tally::{Bin, Counts, enter},
};

/// The width of one entry of the time line.
pub(crate) const BIN: Duration = Duration::from_millis(100);

/// The time from a request to its answer, whatever the answer is.
const LATENCY: Duration = Duration::from_millis(5);

/// What a service has counted.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    pub(crate) counts: Counts,
    /// Objects that are where they should be.
    pub(crate) copies: u64,
    pub(crate) timeline: Vec<Bin>,
}

/// A service.
#[derive(Debug)]
pub(crate) struct Service {
    opened: Instant,
    /// Copies a second.
    rate: u32,
    objects: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    policer: Policer,
    sources: HashSet<String>,
    /// From where each object was copied, by where it is.
    copies: HashMap<String, String>,
    counts: Counts,
    timeline: Vec<Bin>,
}

impl Service {
    /// Creates a service with the sources of a run of `objects` objects, which allows so many
    /// copies a second, and at once after a pause.
    pub(crate) fn new((rate, burst): (u32, u32), objects: usize) -> Self {
        let burst = burst.into();
        Self {
            opened: Instant::now(),
            rate,
            objects,
            state: Mutex::new(State {
                policer: Policer::new(Counting::Refill, 1_000_000_000, Some(burst), burst),
                sources: (0..objects).map(source).collect(),
                copies: HashMap::new(),
                counts: Counts::default(),
                timeline: Vec::new(),
            }),
        }
    }

    /// Returns the time since it opened: the clock of its limit and of its ledger.
    pub(crate) fn age(&self) -> Duration {
        self.opened.elapsed()
    }

    /// Returns what the service has counted so far.
    pub(crate) fn ledger(&self) -> Ledger {
        let state = self.state();
        let is_right =
            |number: &usize| state.copies.get(&destination(*number)) == Some(&source(*number));
        Ledger {
            counts: state.counts,
            copies: (0..self.objects).filter(is_right).map(|_| 1).sum(),
            timeline: state.timeline.clone(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies an object if the limit admits it.
    fn copy(&self, now: Duration, from: Option<&str>, to: &str) -> Result<(), ServiceError> {
        let mut state = self.state();
        let result = match from {
            None => Err(ServiceError::MethodNotAllowed),
            _ if !state.policer.admits(nanos(now), self.rate.into()) => Err(ServiceError::SlowDown),
            Some(from) if state.sources.contains(from) => {
                state.copies.insert(to.to_owned(), from.to_owned());
                Ok(())
            }
            Some(_) => Err(ServiceError::NoSuchKey),
        };
        let refused = result == Err(ServiceError::SlowDown);
        state.counts.sent += 1;
        match result {
            Ok(()) => state.counts.done += 1,
            Err(ServiceError::SlowDown) => state.counts.throttled += 1,
            Err(_) => state.counts.rejected += 1,
        }
        let bin = Bin::of(u64::from(!refused), u64::from(refused));
        enter(&mut state.timeline, BIN, now, bin);
        result
    }
}

impl Serve for Service {
    /// Decides at once, answers after the latency.
    async fn serve(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let from = request.headers().get(s3::COPY_SOURCE);
        let from = from.and_then(|value| value.to_str().ok());
        let from = from.filter(|_| request.method() == Method::PUT);
        let answer = self.copy(self.age(), from, request.uri().path());
        sleep(LATENCY).await;
        let body = answer.map_or_else(ServiceError::body, |()| s3::COPIED.to_owned());
        let mut response = Response::new(Full::new(Bytes::from(body)));
        if let Err(error) = answer {
            *response.status_mut() = error.status();
        }
        response
    }
}

/// Returns the path that object `number` is copied from.
pub(crate) fn source(number: usize) -> String {
    format!("/lake/raw/part-{number:06}.parquet")
}

/// Returns the path that object `number` is copied to.
pub(crate) fn destination(number: usize) -> String {
    format!("/backup/raw/part-{number:06}.parquet")
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::{Service, destination, source};
    use crate::s3::ServiceError;

    #[test]
    fn a_copy_over_the_limit_is_refused_and_copies_nothing() {
        let service = Service::new((1, 3), 4);
        let copy = |from, to| {
            let (from, to) = (source(from), destination(to));
            service.copy(Duration::ZERO, Some(&from), &to).err()
        };
        assert_eq!(copy(0, 0), None);
        assert_eq!(copy(9, 1), Some(ServiceError::NoSuchKey));
        assert_eq!(copy(2, 3), None);
        assert_eq!(copy(1, 1), Some(ServiceError::SlowDown));
        let ledger = service.ledger();
        // What was copied to the wrong place does not count.
        assert_eq!((ledger.copies, ledger.counts.done), (1, 2));
        assert_eq!((ledger.counts.throttled, ledger.counts.rejected), (1, 1));
    }
}
