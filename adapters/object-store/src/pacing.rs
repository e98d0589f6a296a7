//! The settings: which strategy decides for which path.

use alloc::{boxed::Box, sync::Arc};
use core::{fmt, time::Duration};

use object_store::{Error, path::Path};
use paceline::{Failure, RetryStrategy, Standard, classify::Classifier};

use crate::{Lanes, bounds::Bounds, errors::StoreErrors, lane::Lane, prefix::Prefixes};

/// The most prefixes with their own lanes, unless [`Pacing::max_prefixes`] sets another number.
const MAX_PREFIXES: usize = 1_024;
/// The most entries that S3 and Google put into an answer.
const PAGE: usize = 1_000;

type Choose = dyn Fn(&Path) -> Lanes + Send + Sync;

/// The choice of lanes for a path, and the meaning of errors.
///
/// Reads are gets, heads and lists; everything else is a write.
///
/// Several stores can share a `Pacing` in an `Arc`, with all its rates and quotas.
///
/// # Examples
///
/// ```
/// use object_store::memory::InMemory;
/// use paceline::Adaptive;
/// use paceline_object_store::{Lanes, PacedStore, Pacing};
///
/// let pacing = Pacing::by_prefix(1, |_prefix| Lanes::new(Adaptive::paced(), Adaptive::paced()));
/// let store = PacedStore::new(InMemory::new(), pacing);
/// ```
///
/// Fixed rates, which S3 promises for a prefix:
///
/// ```
/// use std::time::Duration;
/// use paceline::{Adaptive, law::PacedSettings};
/// use paceline_object_store::Lanes;
///
/// let fixed = |rate| Adaptive::builder().paced(PacedSettings::fixed(rate, Duration::from_secs(1)).unwrap()).build().unwrap();
/// let lanes = Lanes::new(fixed(5_500), fixed(3_500));
/// ```
pub struct Pacing {
    scopes: Scopes,
    classifier: Box<dyn Classifier<Error> + Send + Sync>,
    pub(crate) page: usize,
    pub(crate) bounds: Bounds,
    pub(crate) over_connector: bool,
}

enum Scopes {
    One(Lanes),
    Prefixes(Prefixes),
    Chosen(Box<Choose>),
}

impl Pacing {
    /// Uses one strategy for all reads and one for all writes.
    #[must_use]
    pub fn new(read: impl RetryStrategy + 'static, write: impl RetryStrategy + 'static) -> Self {
        Self::of(Scopes::One(Lanes::new(read, write)))
    }

    /// Uses [`Lanes::bulk`] for all reads and writes.
    #[must_use]
    pub fn bulk() -> Self {
        Self::of(Scopes::One(Lanes::bulk()))
    }

    /// Takes no turns and repeats no request, for a store whose `PacedConnector` does both. The
    /// store then only repeats the refused keys of a batch of deletes.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "http")] {
    /// use object_store::{Result, aws::{AmazonS3, AmazonS3Builder}, client::HttpConnector};
    /// use paceline_object_store::{Lanes, PacedConnector, PacedStore, Pacing};
    ///
    /// fn store(inner: impl HttpConnector) -> Result<PacedStore<AmazonS3>> {
    ///     let connector = PacedConnector::new(inner, Lanes::bulk()).refusals_by_key();
    ///     let store = AmazonS3Builder::from_env().with_http_connector(connector).build()?;
    ///     Ok(PacedStore::new(store, Pacing::over_connector()))
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn over_connector() -> Self {
        let once = Standard::builder().max_attempts(1).build();
        let once = Arc::new(once.unwrap_or_else(|_| Standard::new()));
        Self {
            over_connector: true,
            ..Self::of(Scopes::One(Lanes::shared(once.clone(), once)))
        }
    }

    /// Makes lanes for each prefix when it is first used. A prefix is the first `depth` directories
    /// of a path, or all if the path has fewer.
    ///
    /// Paths without a directory share lanes with the prefixes for which there is no room. These
    /// lanes are made at once, for the prefix `""`. With a `depth` of 0 all paths share them. A
    /// list uses the lanes of the prefix that it lists.
    pub fn by_prefix(depth: usize, make: impl Fn(&str) -> Lanes + Send + Sync + 'static) -> Self {
        let prefixes = Prefixes::new(depth, Box::new(make), MAX_PREFIXES);
        Self::of(Scopes::Prefixes(prefixes))
    }

    /// Asks `choose` for the lanes of each operation, by its path. The path of a copy is its
    /// destination, and the path of a list its prefix.
    ///
    /// `choose` has to keep the lanes: see [`Lanes::clone`](Lanes).
    pub fn by(choose: impl Fn(&Path) -> Lanes + Send + Sync + 'static) -> Self {
        Self::of(Scopes::Chosen(Box::new(choose)))
    }

    fn of(scopes: Scopes) -> Self {
        Self {
            scopes,
            classifier: Box::new(StoreErrors),
            page: PAGE,
            bounds: Bounds::default(),
            over_connector: false,
        }
    }

    /// Sets how many prefixes have their own lanes, 1,024 by default; the first prefixes get them.
    /// This has an effect only after [`by_prefix`](Self::by_prefix). Threads that bring new
    /// prefixes at the same moment may exceed the number by one each.
    #[must_use]
    pub fn max_prefixes(mut self, prefixes: usize) -> Self {
        self.scopes = match self.scopes {
            Scopes::Prefixes(map) => Scopes::Prefixes(map.with_max(prefixes)),
            other => other,
        };
        self
    }

    /// Lets `classifier` say what errors mean. If it returns `None`, [`StoreErrors`] decides.
    #[must_use]
    pub fn classifier(
        mut self,
        classifier: impl Classifier<Error> + Send + Sync + 'static,
    ) -> Self {
        self.classifier = Box::new(classifier);
        self
    }

    /// Sets how many entries of a list count as one request of the store. The default is 1,000, the
    /// page of S3 and Google; Azure sends 5,000. With 0 each entry counts as a request.
    #[must_use]
    pub const fn list_page(mut self, entries: usize) -> Self {
        self.page = entries;
        self
    }

    /// Gives each operation `span`, with all its attempts and waits. No limit by default.
    ///
    /// No backoff or wait begins that would use up the rest of the time, and no attempt begins
    /// after the deadline. An attempt under way is cut off.
    #[must_use]
    pub const fn deadline(mut self, span: Duration) -> Self {
        self.bounds.deadline = Some(span);
        self
    }

    /// Accepts no longer wait than `span` from the service: 60 s by default. An operation that
    /// should wait longer fails at once.
    #[must_use]
    pub const fn max_retry_after(mut self, span: Duration) -> Self {
        self.bounds.max_retry_after = Some(span);
        self
    }

    pub(crate) fn classify(&self, error: &Error) -> Failure {
        let known = self.classifier.classify(error);
        known.unwrap_or_else(|| StoreErrors::failure(error))
    }

    pub(crate) fn lanes(&self, path: &Path, is_directory: bool) -> Lanes {
        match &self.scopes {
            Scopes::One(lanes) => lanes.clone(),
            Scopes::Prefixes(prefixes) => prefixes.get(path, is_directory),
            Scopes::Chosen(choose) => choose(path),
        }
    }

    /// Returns the lane of reads of an object.
    pub(crate) fn reads(self: &Arc<Self>, path: &Path) -> Lane {
        self.lane(self.lanes(path, false).read)
    }

    /// Returns the lane of writes of an object.
    pub(crate) fn writes(self: &Arc<Self>, path: &Path) -> Lane {
        self.lane(self.lanes(path, false).write)
    }

    /// Returns the lane of lists of a directory.
    pub(crate) fn lists(self: &Arc<Self>, prefix: Option<&Path>) -> Lane {
        let root = Path::default();
        self.lane(self.lanes(prefix.unwrap_or(&root), true).read)
    }

    fn lane(self: &Arc<Self>, strategy: Arc<dyn RetryStrategy>) -> Lane {
        let pacing = Arc::clone(self);
        Lane { strategy, pacing }
    }
}

impl fmt::Debug for Pacing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pacing")
            .field("scopes", &self.scopes)
            .field("page", &self.page)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(lanes) => lanes.fmt(f),
            Self::Prefixes(prefixes) => prefixes.fmt(f),
            Self::Chosen(_) => f.write_str(".."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_503_is_throttling_in_bulk_and_reads_and_writes_begin_slowly() {
        let pacing = Pacing::bulk();
        let error = Error::Generic {
            store: "S3",
            source: "status code: 503".into(),
        };
        assert!(pacing.classify(&error).is_throttle());
        let lanes = pacing.lanes(&Path::from("x"), false);
        for strategy in [lanes.read(), lanes.write()] {
            let token = strategy.acquire_initial_token(None).expect("never refused");
            assert_eq!(token.max_attempts(), None, "throttles do not count");
            assert!(strategy.snapshot().rate.is_some_and(|rate| rate.enabled));
        }
    }
}
