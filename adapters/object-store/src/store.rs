//! The wrapper around a store.

use alloc::{boxed::Box, sync::Arc};
use core::fmt;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use object_store::{
    CopyMode, CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions,
    Result, path::Path,
};
use paceline::Idempotency;

use crate::{
    Pacing,
    streams::{deleted, listed},
    upload::PacedUpload,
};

/// A store in which each request waits for its turn. Throttling slows the next requests down.
///
/// The crate's documentation says what counts as a request, and what is retried. Clones share
/// everything.
pub struct PacedStore<T: ?Sized> {
    pacing: Arc<Pacing>,
    inner: Arc<T>,
}

impl<T: ObjectStore> PacedStore<T> {
    /// Wraps `inner`. Other stores can share a `pacing` in an `Arc`.
    pub fn new(inner: T, pacing: impl Into<Arc<Pacing>>) -> Self {
        Self::shared(Arc::new(inner), pacing)
    }
}

impl<T: ObjectStore + ?Sized> PacedStore<T> {
    /// Wraps a store that is in an `Arc` already, such as an `Arc<dyn ObjectStore>`.
    pub fn shared(inner: Arc<T>, pacing: impl Into<Arc<Pacing>>) -> Self {
        let pacing = pacing.into();
        Self { pacing, inner }
    }

    /// Returns the store, whose requests wait for no turn.
    #[must_use]
    pub fn inner(&self) -> &Arc<T> {
        &self.inner
    }

    /// Returns the store without its `Arc`. An `Arc` is a store too, but boxes every future once
    /// more.
    fn store(&self) -> &T {
        &self.inner
    }

    /// Returns the settings.
    #[must_use]
    pub fn pacing(&self) -> &Arc<Pacing> {
        &self.pacing
    }
}

impl<T: ?Sized> Clone for PacedStore<T> {
    fn clone(&self) -> Self {
        Self {
            pacing: Arc::clone(&self.pacing),
            inner: Arc::clone(&self.inner),
        }
    }
}

impl<T: fmt::Debug + ?Sized> fmt::Debug for PacedStore<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacedStore")
            .field("inner", &&*self.inner)
            .field("pacing", &self.pacing)
            .finish()
    }
}

impl<T: fmt::Display + ?Sized> fmt::Display for PacedStore<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PacedStore({})", &*self.inner)
    }
}

// `get_ranges` is left to the trait, which turns it into gets. Each get takes its turn.
#[async_trait]
impl<T: ObjectStore + ?Sized> ObjectStore for PacedStore<T> {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        let idempotency = match opts.mode {
            PutMode::Overwrite => Idempotency::Idempotent,
            // A second put would conflict with the first.
            PutMode::Create | PutMode::Update(_) => Idempotency::NotIdempotent,
        };
        let put = |_| {
            self.store()
                .put_opts(location, payload.clone(), opts.clone())
        };
        self.pacing.writes(location).run(idempotency, put).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let lane = self.pacing.writes(location);
        // A second upload would never be completed, but its parts would cost money.
        let begin = |_| self.store().put_multipart_opts(location, opts.clone());
        let upload = lane.run(Idempotency::NotIdempotent, begin).await?;
        Ok(Box::new(PacedUpload::new(lane, upload)))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let get = |_| self.store().get_opts(location, options.clone());
        let lane = self.pacing.reads(location);
        lane.run(Idempotency::Idempotent, get).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        deleted(&self.pacing, &self.inner, locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let lane = self.pacing.lists(prefix);
        let (inner, prefix) = (Arc::clone(&self.inner), prefix.cloned());
        listed(lane, move || (*inner).list(prefix.as_ref()))
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let lane = self.pacing.lists(prefix);
        let (inner, prefix, offset) = (Arc::clone(&self.inner), prefix.cloned(), offset.clone());
        listed(lane, move || {
            (*inner).list_with_offset(prefix.as_ref(), &offset)
        })
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let list = |_| self.store().list_with_delimiter(prefix);
        let lane = self.pacing.lists(prefix);
        lane.run_composite(list).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let idempotency = match options.mode {
            CopyMode::Overwrite => Idempotency::Idempotent,
            CopyMode::Create => Idempotency::NotIdempotent,
        };
        let copy = |_| self.store().copy_opts(from, to, options.clone());
        self.pacing.writes(to).run(idempotency, copy).await
    }

    /// Makes a copy and a delete, as object stores do. The rename is not retried, since the copy
    /// may be there already.
    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        let (copy, delete) = (self.pacing.writes(to), self.pacing.writes(from));
        let deleting = delete.begin().await?;
        let copying = copy.begin().await?;
        let renamed = self.store().rename_opts(from, to, options).await;
        let error = renamed.as_ref().err();
        copy.end(copying, error);
        // It is not known which of the two failed. Only the copy records the error.
        if error.is_none() {
            delete.end(deleting, None);
        }
        renamed
    }
}
