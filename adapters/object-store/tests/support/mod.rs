//! A scripted store in memory, and strategies in the time of the tests.

#![allow(dead_code, reason = "each test program uses a part")]

extern crate alloc;

pub(crate) mod hyper;

use alloc::sync::Arc;
use core::fmt;
use std::sync::Mutex;

use async_trait::async_trait;
use futures_util::{StreamExt as _, future::ready, stream, stream::BoxStream};
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
    memory::InMemory, path::Path,
};
use paceline::{Adaptive, Standard};

pub(crate) const SLOW_DOWN: &str = "Server returned non-2xx status code: 503 X: SlowDown";
pub(crate) const BROKEN: &str = "Server returned non-2xx status code: 500 X: ";
pub(crate) const WRONG: &str = "Server returned non-2xx status code: 400 X: ";

/// Writes each request down, and fails as scripted.
#[derive(Debug, Default)]
pub(crate) struct Scripted {
    memory: InMemory,
    script: Arc<Script>,
}

#[derive(Debug, Default)]
pub(crate) struct Script {
    requests: Mutex<Vec<&'static str>>,
    failures: Mutex<Vec<&'static str>>,
}

impl Script {
    /// Notes a request, which fails if the script says so.
    fn ask(&self, request: &'static str) -> Result<()> {
        self.requests
            .lock()
            .expect("no panic in here")
            .push(request);
        match self.failures.lock().expect("no panic in here").pop() {
            Some("") | None => Ok(()),
            Some(text) => Err(Error::Generic {
                store: "Scripted",
                source: text.into(),
            }),
        }
    }

    /// Returns the requests since the last call.
    pub(crate) fn requests(&self) -> Vec<&'static str> {
        core::mem::take(&mut *self.requests.lock().expect("no panic in here"))
    }

    /// Lets the next requests fail with these texts; an empty one is a success.
    pub(crate) fn fail(&self, texts: &[&'static str]) {
        let reversed = texts.iter().rev().copied().collect();
        *self.failures.lock().expect("no panic in here") = reversed;
    }
}

impl Scripted {
    pub(crate) fn new() -> (Self, Arc<Script>) {
        let store = Self::default();
        let script = store.script.clone();
        (store, script)
    }
}

impl fmt::Display for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scripted")
    }
}

#[async_trait]
impl ObjectStore for Scripted {
    async fn put_opts(
        &self,
        to: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        self.script.ask("put")?;
        self.memory.put_opts(to, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        to: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.script.ask("create")?;
        let inner = self.memory.put_multipart_opts(to, opts).await?;
        let script = self.script.clone();
        Ok(Box::new(Upload { inner, script }))
    }

    async fn get_opts(&self, from: &Path, options: GetOptions) -> Result<GetResult> {
        self.script.ask(if options.head { "head" } else { "get" })?;
        self.memory.get_opts(from, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let script = self.script.clone();
        // It reads ahead, as real ones do.
        let asked = locations.map(move |location| {
            let script = script.clone();
            async move {
                let location = location?;
                script.ask("delete").map(|()| location)
            }
        });
        let asked = asked.buffered(3);
        self.memory.delete_stream(asked.boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (script, list) = (self.script.clone(), self.memory.list(prefix));
        let pages = list
            .chunks(4)
            .flat_map(move |page| match script.ask("list") {
                Ok(()) => stream::iter(page).boxed(),
                Err(error) => stream::once(ready(Err(error))).boxed(),
            });
        pages.boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.script.ask("list")?;
        self.memory.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.script.ask("copy")?;
        self.memory.copy_opts(from, to, options).await
    }
}

#[derive(Debug)]
struct Upload {
    inner: Box<dyn MultipartUpload>,
    script: Arc<Script>,
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (script, part) = (self.script.clone(), self.inner.put_part(data));
        Box::pin(async move {
            script.ask("part")?;
            part.await
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.script.ask("complete")?;
        self.inner.complete().await
    }

    async fn abort(&mut self) -> Result<()> {
        self.script.ask("abort")?;
        self.inner.abort().await
    }
}

/// So many sends a second, whatever is throttled, without a backoff.
pub(crate) fn fixed(rate: u32) -> Arc<Adaptive> {
    Arc::new(kit::fixed(rate).build().expect("in range"))
}

/// A strategy that refuses what would have to wait for ten sends a second.
pub(crate) fn refusing() -> Adaptive {
    let strategy = kit::fixed(10).name("orders").fail_fast(true);
    strategy.build().expect("in range")
}

/// Three attempts, without a backoff and without a rate.
pub(crate) fn standard() -> Arc<Standard> {
    Arc::new(kit::standard().build().expect("in range"))
}
