//! What is sent again after which failure: with the connector as often as `object_store` alone does
//! it, for every form of request that its stores send.

mod support;

extern crate alloc;

use alloc::sync::Arc;
use core::{error::Error as _, iter, time::Duration};
use std::io;

use async_trait::async_trait;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use http::Response;
use kit::{Reply, Server};
use object_store::{
    BackoffConfig, ClientOptions, Error, ObjectStore, ObjectStoreExt as _, PutMode, PutPayload,
    Result, RetryConfig, StaticCredentialProvider, UpdateVersion,
    aws::{AmazonS3Builder, S3CopyIfNotExists},
    azure::MicrosoftAzureBuilder,
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    },
    gcp::{GcpCredential, GoogleCloudStorageBuilder},
    http::HttpBuilder,
    path::Path,
};
use paceline_object_store::{Lanes, PacedConnector};
use support::{hyper::Hyper, standard};

/// The outcome of a request.
#[derive(Clone, Copy, Debug)]
enum Failing {
    Status(u16),
    /// The connection is closed.
    Closed,
    /// The client hears nothing, for too long or at all: the work may have been done.
    Late(HttpErrorKind),
}

/// The status that [`Clumsy`] takes for an answer that came too late.
const LATE: u16 = 598;
const CUT_OFF: u16 = 599;

/// A client that loses some answers.
#[derive(Debug)]
struct Clumsy(HttpClient);

#[async_trait]
impl HttpService for Clumsy {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let response = self.0.execute(request).await?;
        let kind = match response.status().as_u16() {
            LATE => HttpErrorKind::Timeout,
            CUT_OFF => HttpErrorKind::Interrupted,
            _ => return Ok(response),
        };
        Err(HttpError::new(kind, io::Error::other("lost")))
    }
}

/// The host's own client, or the same one in a connector.
#[derive(Clone, Copy, Debug)]
enum Client {
    Alone,
    Paced,
}

impl HttpConnector for Client {
    fn connect(&self, options: &ClientOptions) -> Result<HttpClient> {
        match self {
            Self::Alone => Ok(HttpClient::new(Clumsy(Hyper.connect(options)?))),
            Self::Paced => {
                let lane = standard();
                let lanes = Lanes::shared(lane.clone(), lane);
                PacedConnector::new(Self::Alone, lanes).connect(options)
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Service {
    S3,
    Gcs,
    Azure,
    WebDav,
}

use Failing::{Closed, Late, Status};
use Service::{Azure, Gcs, S3, WebDav};

impl Service {
    /// A store that sends what failed twice again, as the strategy does.
    fn store(self, url: &str, client: Client, single: bool) -> Arc<dyn ObjectStore> {
        let millisecond = Duration::from_millis(1);
        let retry = RetryConfig {
            max_retries: 2,
            backoff: BackoffConfig {
                init_backoff: millisecond,
                max_backoff: millisecond,
                base: 2.,
            },
            ..RetryConfig::default()
        };
        let plain = ClientOptions::new().with_allow_http(true);
        match self {
            S3 => {
                let header = ("cf-copy-destination-if-none-match", "*");
                let copies = if single {
                    S3CopyIfNotExists::Header(header.0.into(), header.1.into())
                } else {
                    S3CopyIfNotExists::Multipart
                };
                let store = AmazonS3Builder::new()
                    .with_endpoint(url)
                    .with_bucket_name("logs")
                    .with_skip_signature(true)
                    .with_copy_if_not_exists(copies)
                    .with_client_options(plain)
                    .with_retry(retry)
                    .with_http_connector(client);
                Arc::new(store.build().expect("a store"))
            }
            Gcs => {
                let bearer = "none".into();
                let credentials = StaticCredentialProvider::new(GcpCredential { bearer });
                let store = GoogleCloudStorageBuilder::new()
                    .with_base_url(url)
                    .with_bucket_name("logs")
                    .with_credentials(Arc::new(credentials))
                    .with_client_options(plain)
                    .with_retry(retry)
                    .with_http_connector(client);
                Arc::new(store.build().expect("a store"))
            }
            Azure => {
                let store = MicrosoftAzureBuilder::new()
                    .with_endpoint(url.into())
                    .with_account("test")
                    .with_container_name("logs")
                    .with_skip_signature(true)
                    .with_client_options(plain)
                    .with_retry(retry)
                    .with_http_connector(client);
                Arc::new(store.build().expect("a store"))
            }
            WebDav => {
                let store = HttpBuilder::new()
                    .with_url(url)
                    .with_client_options(plain)
                    .with_retry(retry)
                    .with_http_connector(client);
                Arc::new(store.build().expect("a store"))
            }
        }
    }
}

/// What is asked of a store.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Get,
    List,
    Put,
    Create,
    Update,
    Copy,
    CopyNew,
    Rename,
    Delete,
    Upload,
    Abort,
}

impl Asked {
    async fn of(self, store: Arc<dyn ObjectStore>) -> Result<()> {
        let (a, b) = (Path::from("d/a"), Path::from("d/b"));
        let payload = || PutPayload::from_static(b"one");
        let update = UpdateVersion {
            e_tag: Some("\"x\"".into()),
            version: Some("7".into()),
        };
        match self {
            Self::Get => store.get(&a).await?.bytes().await.map(drop),
            Self::List => store.list(None).try_collect::<Vec<_>>().await.map(drop),
            Self::Put => store.put(&a, payload()).await.map(drop),
            Self::Create => {
                let put = store.put_opts(&a, payload(), PutMode::Create.into());
                put.await.map(drop)
            }
            Self::Update => {
                let put = store.put_opts(&a, payload(), PutMode::Update(update).into());
                put.await.map(drop)
            }
            Self::Copy => store.copy(&a, &b).await,
            Self::CopyNew => store.copy_if_not_exists(&a, &b).await,
            Self::Rename => store.rename(&a, &b).await,
            Self::Delete => {
                let locations = stream::iter([Ok(a), Ok(b)]).boxed();
                let gone = store.delete_stream(locations).try_collect::<Vec<_>>();
                gone.await.map(drop)
            }
            Self::Upload => {
                let mut upload = store.put_multipart(&a).await?;
                upload.put_part(payload()).await?;
                upload.complete().await.map(drop)
            }
            Self::Abort => store.put_multipart(&a).await?.abort().await,
        }
    }
}

/// One form of request: what is asked of which store, and what the request has in its first line
/// and headers. Then whether `object_store` sends it again after an answer that was lost.
///
/// `false` stands for a setting: S3 copies to a new name in parts.
type Form = (Service, bool, Asked, &'static [&'static str], bool);

/// The forms, by the sources of `object_store`: every request that is marked `idempotent` there or has a
/// safe method is sent again after a timeout, and all after an answer or a closed connection
/// (`client/retry.rs`). GCS's copies are left out: `object_store` 0.13.2 takes one mode for the other.
const FORMS: [Form; 34] = [
    (S3, false, Asked::Get, &["GET"], true),
    (S3, false, Asked::List, &["GET", "list-type=2"], true),
    (S3, false, Asked::Put, &["PUT"], true),
    (S3, false, Asked::Create, &["PUT", "if-none-match"], false),
    (S3, false, Asked::Update, &["PUT", "if-match"], false),
    (S3, false, Asked::Copy, &["PUT", "x-amz-copy-source"], true),
    (S3, true, Asked::CopyNew, &["PUT", "-if-none-match"], true),
    (S3, false, Asked::CopyNew, &["PUT", "partNumber"], true),
    (S3, false, Asked::CopyNew, &["POST", "if-none-match"], true),
    (S3, false, Asked::Delete, &["POST", "?delete"], false),
    (S3, false, Asked::Upload, &["POST", "?uploads"], true),
    (S3, false, Asked::Upload, &["PUT", "partNumber"], true),
    (S3, false, Asked::Upload, &["POST", "uploadId"], true),
    (S3, false, Asked::Abort, &["DELETE", "uploadId"], true),
    (Gcs, false, Asked::Put, &["PUT"], true),
    (
        Gcs,
        false,
        Asked::Create,
        &["PUT", "x-goog-if-generation-match"],
        false,
    ),
    (
        Gcs,
        false,
        Asked::Update,
        &["PUT", "x-goog-if-generation-match"],
        false,
    ),
    (Gcs, false, Asked::Delete, &["DELETE", "%2Fa"], false),
    (Gcs, false, Asked::Upload, &["POST", "?uploads"], false),
    (Gcs, false, Asked::Upload, &["PUT", "partNumber"], true),
    (Gcs, false, Asked::Upload, &["POST", "uploadId"], true),
    (Gcs, false, Asked::Abort, &["DELETE", "uploadId"], false),
    (Azure, false, Asked::Put, &["PUT"], true),
    (
        Azure,
        false,
        Asked::Create,
        &["PUT", "if-none-match"],
        false,
    ),
    (Azure, false, Asked::Update, &["PUT", "if-match"], false),
    (
        Azure,
        false,
        Asked::Copy,
        &["PUT", "x-ms-copy-source"],
        true,
    ),
    (
        Azure,
        false,
        Asked::CopyNew,
        &["PUT", "if-none-match"],
        false,
    ),
    (Azure, false, Asked::Delete, &["POST", "comp=batch"], false),
    (Azure, false, Asked::Upload, &["PUT", "comp=block&"], true),
    (
        Azure,
        false,
        Asked::Upload,
        &["PUT", "comp=blocklist"],
        true,
    ),
    (WebDav, false, Asked::List, &["PROPFIND"], true),
    (WebDav, false, Asked::Copy, &["COPY"], false),
    (
        WebDav,
        false,
        Asked::CopyNew,
        &["COPY", "overwrite: F"],
        false,
    ),
    (WebDav, false, Asked::Rename, &["DELETE"], false),
];

/// Answers `asked` of a form, the first `fails` requests of that form with a failure. Returns how
/// many of the form came, and its outcome.
async fn play(form: Form, failing: Failing, fails: usize, client: Client) -> (usize, Result<()>) {
    let (service, single, asked, words, _) = form;
    let server = Server::failing(words, fails, move |head, fails| {
        reply(head, fails.then_some(failing))
    })
    .await;
    let came = asked
        .of(service.store(server.endpoint(), client, single))
        .await;
    let requests = server.asked();
    (requests.iter().filter(|one| one.has(words)).count(), came)
}

fn reply(said: &str, failing: Option<Failing>) -> Reply {
    let status = match failing {
        None => 200,
        Some(Status(status)) => status,
        Some(Late(HttpErrorKind::Timeout)) => LATE,
        Some(Late(_)) => CUT_OFF,
        Some(Closed) => return Err(io::ErrorKind::ConnectionReset.into()),
    };
    let body = if status == 200 { success(said) } else { "" };
    let response = Response::builder()
        .status(status)
        .header("etag", "\"x\"")
        .header("x-goog-generation", "7")
        .header("content-type", "multipart/mixed; boundary=b")
        .header("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT");
    Ok(response.body(body.into()).expect("a response"))
}

/// Returns the body that a store wants to see.
fn success(said: &str) -> &'static str {
    let has = |word: &str| said.contains(word);
    if has("?delete") {
        "<DeleteResult><Deleted><Key>d/a</Key></Deleted></DeleteResult>"
    } else if has("?uploads") {
        "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>"
    } else if has("POST") && has("uploadId") {
        "<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>"
    } else if has("partNumber") {
        "<CopyPartResult><ETag>x</ETag></CopyPartResult>"
    } else if has("list-type") {
        "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"
    } else if has("PROPFIND") {
        "<D:multistatus xmlns:D=\"DAV:\"><D:response><D:href>/</D:href><D:propstat><D:prop>\
         <D:getlastmodified>Sun, 06 Nov 1994 08:49:37 GMT</D:getlastmodified>\
         <D:resourcetype><D:collection/></D:resourcetype></D:prop>\
         <D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response></D:multistatus>"
    } else if has("comp=batch") {
        "--b\r\nContent-ID: 0\r\n\r\nHTTP/1.1 202 Accepted\r\n\r\n\r\n\
         --b\r\nContent-ID: 1\r\n\r\nHTTP/1.1 202 Accepted\r\n\r\n\r\n--b--\r\n"
    } else {
        ""
    }
}

/// Says how a form is sent, alone or with the connector, if that is not as expected: so often, with
/// this success.
async fn wrong(form: Form, failing: Failing, fails: usize, sent: (usize, bool)) -> Vec<String> {
    let mut wrong = Vec::new();
    for client in [Client::Alone, Client::Paced] {
        let (sends, came) = play(form, failing, fails, client).await;
        if (sends, came.is_ok()) != sent {
            wrong.push(format!(
                "{client:?} {form:?} {failing:?}: {sends}, {came:?}"
            ));
        }
    }
    wrong
}

#[tokio::test]
async fn after_an_answer_or_a_closed_connection_every_request_is_sent_again() {
    let mut all = Vec::new();
    for form in FORMS {
        for failing in [Status(500), Status(502), Closed] {
            all.extend(wrong(form, failing, 1, (2, true)).await);
        }
        let statuses = [408, 429, 500, 502, 503, 504].map(Status);
        for failing in statuses.into_iter().chain([Closed]) {
            all.extend(wrong(form, failing, usize::MAX, (3, false)).await);
        }
    }
    // Two conditions at once conflict now and then, which S3's store repeats by itself.
    let update: Form = (S3, false, Asked::Update, &["PUT", "if-match"], false);
    all.extend(wrong(update, Status(409), 1, (2, true)).await);
    assert!(all.is_empty(), "{}: {all:#?}", all.len());
}

#[tokio::test]
async fn after_a_lost_answer_what_the_store_repeats_is_sent_again() {
    let mut all = Vec::new();
    for form in FORMS {
        let (.., is_repeated) = form;
        let once = if is_repeated { (2, true) } else { (1, false) };
        let always = if is_repeated { 3 } else { 1 };
        for failing in [HttpErrorKind::Timeout, HttpErrorKind::Interrupted].map(Late) {
            all.extend(wrong(form, failing, 1, once).await);
            all.extend(wrong(form, failing, usize::MAX, (always, false)).await);
        }
    }
    assert!(all.is_empty(), "{}: {all:#?}", all.len());
}

/// The store says of a put whose answer was lost what it says alone: nobody else was there first.
#[tokio::test]
async fn a_put_of_a_new_object_whose_answer_is_lost_is_the_stores_own_error() {
    for service in [S3, Gcs, Azure] {
        let form: Form = (service, false, Asked::Create, &["PUT"], false);
        let [alone, paced] = [Client::Alone, Client::Paced].map(async |client| {
            let (sends, came) = play(form, Late(HttpErrorKind::Timeout), 1, client).await;
            let error = came.expect_err("the answer is lost");
            assert!(matches!(error, Error::Generic { .. }), "{error:?}");
            let mut causes = iter::successors(error.source(), |error| (*error).source());
            let kind = causes.find_map(|cause| cause.downcast_ref::<HttpError>());
            (sends, kind.map(HttpError::kind))
        });
        let alone = alone.await;
        assert_eq!(alone, (1, Some(HttpErrorKind::Timeout)), "{service:?}");
        assert_eq!(alone, paced.await, "{service:?}");
    }
}
