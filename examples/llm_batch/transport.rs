//! The way to the service: HTTP over loopback, or a call in the same process for tests.

use alloc::sync::Arc;

use http::{HeaderMap, Request, Response};
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
    Direct(Arc<Service>),
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
            Self::Direct(service) => return Some(service.answer(number, 0).await),
        };
        let url = format!("http://127.0.0.1:{port}/v1/requests/{number}");
        let request = http.post(url).header(CLIENT, client);
        let response = request.send().await.ok()?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.bytes().await.ok()?;
        let body: serde_json::Value = serde_json::from_slice(&body).ok()?;
        let usage = body.pointer("/usage/total_tokens");
        let usage = usage.and_then(serde_json::Value::as_u64);
        let error = body.pointer("/error/type").and_then(|error| error.as_str());
        Some(Reply {
            status,
            headers,
            usage: usage.and_then(|tokens| u32::try_from(tokens).ok()),
            error: error.map(str::to_owned),
        })
    }
}

impl Serve for Service {
    async fn serve(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let number = request.uri().path().rsplit('/').next();
        let number = number.and_then(|number| number.parse().ok());
        let client = number_in(request.headers(), CLIENT);
        let reply = self
            .answer(number.unwrap_or(usize::MAX), client.unwrap_or(0))
            .await;
        let body = match reply.usage {
            Some(tokens) => serde_json::json!({ "usage": { "total_tokens": tokens } }),
            None => serde_json::json!({ "error": { "type": reply.error } }),
        };
        let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
        *response.status_mut() = reply.status;
        response.headers_mut().extend(reply.headers);
        response
    }
}

fn number_in(headers: &HeaderMap, name: &str) -> Option<usize> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}
