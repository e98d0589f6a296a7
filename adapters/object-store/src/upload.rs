//! Uploads in parts.

use alloc::boxed::Box;

use async_trait::async_trait;
use object_store::{MultipartUpload, PutPayload, PutResult, Result, UploadPart};

use crate::lane::Lane;

/// An upload in which each part waits for its turn.
#[derive(Debug)]
pub(crate) struct PacedUpload {
    lane: Lane,
    inner: Box<dyn MultipartUpload>,
}

impl PacedUpload {
    pub(crate) fn new(lane: Lane, inner: Box<dyn MultipartUpload>) -> Self {
        Self { lane, inner }
    }
}

// Nothing here is sent twice, since a second part would be another.
#[async_trait]
impl MultipartUpload for PacedUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (lane, part) = (self.lane.clone(), self.inner.put_part(data));
        Box::pin(async move { lane.once(part).await })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.lane.once(self.inner.complete()).await
    }

    async fn abort(&mut self) -> Result<()> {
        self.lane.once(self.inner.abort()).await
    }
}
