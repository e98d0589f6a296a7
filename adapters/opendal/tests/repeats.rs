//! What is sent again after which failure: with the layer as often as by `OpenDAL`'s own
//! `RetryLayer`, for every form of request, but for conditions and appends whose answer is lost.

mod support;

use core::time::Duration;
use std::io;

use http::{Request, Response};
use kit::{Reply, Server};
use opendal::{
    Buffer, Error, ErrorKind, HttpBody, HttpTransport, HttpTransporter, OperationContext, Operator,
    Result,
    layers::RetryLayer,
    services::{Azblob, Gcs, S3, Webdav},
};
use opendal_http_transport_reqwest::ReqwestTransport;
use support::standard;

use Failing::{Closed, Lost, Status};
use Service::{Azure, GCloud, Simple, WebDav};

/// The outcome of a request.
#[derive(Clone, Copy, Debug)]
enum Failing {
    Status(u16),
    /// The connection is closed.
    Closed,
    /// The client hears nothing for too long: the work may have been done.
    Lost,
}

/// The status that [`Clumsy`] takes for an answer that came too late.
const LATE: u16 = 598;

/// A transport that loses some answers.
struct Clumsy(ReqwestTransport);

impl HttpTransport for Clumsy {
    async fn fetch(&self, request: Request<Buffer>) -> Result<Response<HttpBody>> {
        let response = self.0.fetch(request).await?;
        match response.status().as_u16() {
            LATE => Err(Error::new(ErrorKind::Unexpected, "lost").set_temporary()),
            _ => Ok(response),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Service {
    Simple,
    GCloud,
    Azure,
    WebDav,
}

impl Service {
    fn operator(self, url: &str) -> Operator {
        let operator = match self {
            Simple => Operator::new(
                S3::default()
                    .endpoint(url)
                    .bucket("logs")
                    .region("us-east-1")
                    .access_key_id("test")
                    .secret_access_key("testtest")
                    .disable_config_load()
                    .disable_ec2_metadata(),
            ),
            GCloud => Operator::new(
                Gcs::default()
                    .endpoint(url)
                    .bucket("logs")
                    .token("none".into())
                    .disable_config_load()
                    .disable_vm_metadata(),
            ),
            Azure => Operator::new(
                Azblob::default()
                    .endpoint(url)
                    .container("logs")
                    .account_name("test")
                    .account_key("dGVzdA=="),
            ),
            WebDav => Operator::new(Webdav::default().endpoint(url)),
        };
        let client = reqwest::Client::builder().no_proxy().build();
        let transport = Clumsy(ReqwestTransport::new(client.expect("a client")));
        let context = OperationContext::new().with_http_transport(HttpTransporter::new(transport));
        operator.expect("a service").with_context(context)
    }
}

/// The layer that sends again: the host's, or paceline's, with two repetitions.
#[derive(Clone, Copy, Debug)]
enum By {
    Host,
    Pacing,
}

impl By {
    fn on(self, operator: Operator) -> Operator {
        match self {
            Self::Host => {
                let millisecond = Duration::from_millis(1);
                let layer = RetryLayer::new().with_max_times(2);
                operator.layer(
                    layer
                        .with_min_delay(millisecond)
                        .with_max_delay(millisecond),
                )
            }
            Self::Pacing => operator.layer(standard().0),
        }
    }
}

/// What is asked of a service.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Read,
    List,
    Write,
    Create,
    Append,
    Copy,
    CopyNew,
    Rename,
    Delete,
    Deletes,
    Upload,
    Directory,
}

impl Asked {
    async fn of(self, operator: Operator) -> Result<()> {
        match self {
            Self::Read => operator.read("a").await.map(drop),
            Self::List => operator.list("").await.map(drop),
            Self::Write => operator.write("a", "one").await.map(drop),
            Self::Create => {
                let write = operator.write_with("a", "one").if_not_exists(true);
                write.await.map(drop)
            }
            Self::Append => {
                let write = operator.write_with("a", "one").append(true);
                write.await.map(drop)
            }
            Self::Copy => operator.copy("a", "b").await.map(drop),
            Self::CopyNew => {
                let copy = operator.copy_with("a", "b").if_not_exists(true);
                copy.await.map(drop)
            }
            Self::Rename => operator.rename("a", "b").await,
            Self::Delete => operator.delete("a").await,
            Self::Deletes => operator.delete_iter(["a", "b"]).await,
            Self::Upload => {
                let part = vec![0; 5 << 20];
                let mut writer = operator.writer("a").await?;
                writer.write(part.clone()).await?;
                writer.write(part).await?;
                writer.close().await.map(drop)
            }
            Self::Directory => operator.create_dir("d/").await,
        }
    }
}

/// One form of request: what is asked of which service, and what the request has in its first line
/// and headers. Then whether it is repeated if its answer is lost.
type Form = (Service, Asked, &'static [&'static str], bool);

/// `RetryLayer` repeats every operation whose error is temporary: the statuses 500, 502, 503
/// and 504 of these services, and every failure of the transport. It has no way to repeat Azure's
/// `CopyBlob`, which is left out here.
const FORMS: [Form; 29] = [
    (Simple, Asked::Read, &["GET"], true),
    (Simple, Asked::List, &["GET"], true),
    (Simple, Asked::Write, &["PUT"], true),
    (Simple, Asked::Create, &["PUT", "if-none-match"], false),
    (Simple, Asked::Append, &["PUT", "x-amz-write-offset"], false),
    (Simple, Asked::Copy, &["PUT", "x-amz-copy-source"], true),
    (Simple, Asked::CopyNew, &["PUT", "if-none-match"], false),
    (Simple, Asked::Delete, &["DELETE"], true),
    (Simple, Asked::Deletes, &["POST", "?delete"], true),
    (Simple, Asked::Upload, &["POST", "?uploads"], true),
    (Simple, Asked::Upload, &["PUT", "partNumber=1"], true),
    (Simple, Asked::Upload, &["POST", "uploadId"], true),
    (GCloud, Asked::Write, &["POST", "uploadType="], true),
    (GCloud, Asked::Create, &["POST", "ifGenerationMatch"], false),
    (GCloud, Asked::Create, &["PUT", "/session"], true),
    (GCloud, Asked::Copy, &["POST", "/rewriteTo/"], true),
    (GCloud, Asked::Delete, &["DELETE"], true),
    (GCloud, Asked::Deletes, &["POST", "/batch/"], true),
    (GCloud, Asked::Upload, &["POST", "?uploads"], true),
    (GCloud, Asked::Upload, &["POST", "uploadId"], true),
    (Azure, Asked::Write, &["PUT"], true),
    (Azure, Asked::Create, &["PUT", "if-none-match"], false),
    (Azure, Asked::Append, &["PUT", "comp=appendblock"], false),
    (Azure, Asked::Deletes, &["POST", "comp=batch"], true),
    (WebDav, Asked::List, &["PROPFIND"], true),
    (WebDav, Asked::Copy, &["COPY"], true),
    (WebDav, Asked::Rename, &["MOVE"], true),
    (WebDav, Asked::Directory, &["MKCOL"], true),
    (WebDav, Asked::Delete, &["DELETE"], true),
];

/// Answers what a form asks, the first `fails` requests of the form with a failure. Returns how many
/// of the form came, and its outcome.
async fn play(form: Form, failing: Failing, fails: usize, by: By) -> (usize, Result<()>) {
    let (service, asked, words, _) = form;
    let server = Server::failing(words, fails, move |head, fails| {
        reply(head, fails.then_some(failing))
    })
    .await;
    let came = asked.of(by.on(service.operator(server.endpoint()))).await;
    let requests = server.asked();
    (requests.iter().filter(|one| one.has(words)).count(), came)
}

fn reply(said: &str, failing: Option<Failing>) -> Reply {
    let status = match failing {
        None => success(said).0,
        Some(Status(status)) => status,
        Some(Lost) => LATE,
        Some(Closed) => return Err(io::ErrorKind::ConnectionReset.into()),
    };
    let body = if failing.is_none() {
        success(said).1
    } else {
        ""
    };
    let mut response = Response::builder()
        .status(status)
        .header("etag", "\"x\"")
        .header("content-type", "multipart/mixed; boundary=b")
        .header("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT");
    if said.starts_with("HEAD") {
        let headers = [("content-length", "3"), ("x-ms-blob-type", "AppendBlob")];
        for (name, value) in headers {
            response = response.header(name, value);
        }
    }
    if said.contains("uploadType=resumable") {
        let (_, host) = said.split_once("host: ").expect("a host");
        let host = host.lines().next().unwrap_or_default();
        response = response.header("location", format!("http://{host}/session"));
    }
    Ok(response.body(body.into()).expect("a response"))
}

const BATCH: &str = "--b\r\nContent-Type: application/http\r\nContent-ID: 0\r\n\r\n\
    HTTP/1.1 202 Accepted\r\n\r\n\r\n--b\r\nContent-Type: application/http\r\nContent-ID: 1\r\n\r\n\
    HTTP/1.1 202 Accepted\r\n\r\n\r\n--b--\r\n";

/// Returns the status and the body that a service wants to see.
fn success(said: &str) -> (u16, &'static str) {
    let is = |method: &str| said.starts_with(method);
    let has = |word: &str| said.contains(word);
    match () {
        () if has("?delete") => (
            200,
            "<DeleteResult><Deleted><Key>a</Key></Deleted><Deleted><Key>b</Key></Deleted></DeleteResult>",
        ),
        () if has("?uploads") => (
            200,
            "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>",
        ),
        () if is("POST") && has("uploadId") => (
            200,
            "<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>",
        ),
        () if has("list-type") => (
            200,
            "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>",
        ),
        () if has("comp=batch") => (202, BATCH),
        () if has("/batch/") => (200, BATCH),
        () if has("/rewriteTo/") => (
            200,
            "{\"done\":true,\"totalBytesRewritten\":\"3\",\"objectSize\":\"3\",\"resource\":{\"size\":\"3\"}}",
        ),
        () if has("uploadType=") || has("/session") => (200, "{\"size\":\"3\",\"etag\":\"x\"}"),
        () if has("x-amz-copy-source") => {
            (200, "<CopyObjectResult><ETag>x</ETag></CopyObjectResult>")
        }
        () if has("x-ms-copy-source") => (202, ""),
        () if is("PROPFIND /d/") => (404, ""),
        () if is("PROPFIND") => (
            207,
            "<D:multistatus xmlns:D=\"DAV:\"><D:response><D:href>/</D:href><D:propstat><D:prop>\
             <D:getlastmodified>Sun, 06 Nov 1994 08:49:37 GMT</D:getlastmodified>\
             <D:resourcetype><D:collection/></D:resourcetype></D:prop>\
             <D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response></D:multistatus>",
        ),
        () if is("DELETE") && has("x-ms-") => (202, ""),
        () if is("DELETE") => (204, ""),
        () if is("GET") => (200, "one"),
        () if is("HEAD") => (200, ""),
        () if is("PUT") && has("amz") => (200, ""),
        () => (201, ""),
    }
}

/// Says how a form is sent, if that is not as expected: so often, with this success.
async fn wrong(
    form: Form,
    failing: Failing,
    fails: usize,
    by: By,
    sent: (usize, bool),
) -> Option<String> {
    let (sends, came) = play(form, failing, fails, by).await;
    let wrong = || format!("{by:?} {form:?} {failing:?}: {sends}, {came:?}");
    ((sends, came.is_ok()) != sent).then(wrong)
}

#[tokio::test]
async fn after_an_answer_every_request_is_sent_again() {
    let mut all = Vec::new();
    for form in FORMS {
        for by in [By::Host, By::Pacing] {
            for failing in [500, 502].map(Status) {
                all.extend(wrong(form, failing, 1, by, (2, true)).await);
            }
            for failing in [500, 502, 503, 504].map(Status) {
                all.extend(wrong(form, failing, usize::MAX, by, (3, false)).await);
            }
        }
    }
    assert!(all.is_empty(), "{}: {all:#?}", all.len());
}

#[tokio::test]
async fn without_an_answer_all_but_conditions_and_appends_are_sent_again() {
    let mut all = Vec::new();
    for form in FORMS {
        let (.., is_repeated) = form;
        for by in [By::Host, By::Pacing] {
            let (once, always) = match (by, is_repeated) {
                (By::Pacing, false) => ((1, false), 1),
                _ => ((2, true), 3),
            };
            for failing in [Closed, Lost] {
                all.extend(wrong(form, failing, 1, by, once).await);
                all.extend(wrong(form, failing, usize::MAX, by, (always, false)).await);
            }
        }
    }
    assert!(all.is_empty(), "{}: {all:#?}", all.len());
}
