//! The way to the service: HTTP over loopback, or a call in the same process for tests.

use alloc::sync::Arc;

use http::{HeaderValue, Request, Response};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};

use crate::{
    server::Serve,
    service::{Reply, Service},
};

/// Which client of several a request is from.
const CLIENT: &str = "x-client";

/// How a client reaches the service.
#[derive(Clone, Debug)]
pub(crate) enum Transport {
    Http {
        http: reqwest::Client,
        port: u16,
        client: usize,
    },
    #[cfg_attr(not(test), expect(dead_code, reason = "for tests in virtual time"))]
    Direct(Arc<Service>, usize),
}

impl Transport {
    pub(crate) fn http(port: u16, client: usize) -> Result<Self, reqwest::Error> {
        let http = reqwest::Client::builder().no_proxy().build()?;
        Ok(Self::Http { http, port, client })
    }

    /// Sends one request, and returns what came back, if anything did.
    pub(crate) async fn send(&self, number: usize) -> Option<Reply> {
        let (http, port, client) = match self {
            Self::Http { http, port, client } => (http, *port, *client),
            Self::Direct(service, client) => return Some(service.answer(number, *client).await),
        };
        let url = format!("http://127.0.0.1:{port}/v1/requests/{number}");
        let request = http.post(url).header(CLIENT, client);
        let response = request.send().await.ok()?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.bytes().await.ok()?;
        Some(Reply {
            status,
            headers,
            body: serde_json::from_slice(&body).ok()?,
        })
    }
}

impl Serve for Service {
    async fn serve(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let number = request.uri().path().rsplit('/').next();
        let number = number.and_then(|number| number.parse().ok());
        let client = request.headers().get(CLIENT).map(HeaderValue::to_str);
        let client = client.and_then(|client| client.ok()?.parse().ok());
        let reply = self.answer(number.unwrap_or(usize::MAX), client.unwrap_or(0));
        let reply = reply.await;
        let mut response = Response::new(Full::new(Bytes::from(reply.body.to_string())));
        *response.status_mut() = reply.status;
        response.headers_mut().extend(reply.headers);
        response
    }
}
