//! A client as a service that builds its requests.

use alloc::boxed::Box;
use core::{
    error::Error,
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use reqwest::{Request, Response};
use reqwest_middleware::ClientWithMiddleware;
use tower_service::Service;

/// A client with its middlewares as a [`Service`] that builds its requests, for client crates whose
/// transport users can replace.
///
/// # Examples
///
/// `with_http_service` of `async-openai` hands over a factory of requests:
///
/// ```ignore
/// use async_openai::{Client, middleware::HttpRequestFactory};
///
/// let service = ClientService::new(client, |factory: HttpRequestFactory| async move { factory.build().await });
/// let openai = Client::new().with_http_service(service);
/// ```
#[derive(Clone)]
pub struct ClientService<B> {
    client: ClientWithMiddleware,
    build: B,
}

impl<B> ClientService<B> {
    /// Sends by `client` the requests that `build` makes.
    pub const fn new(client: ClientWithMiddleware, build: B) -> Self {
        Self { client, build }
    }
}

impl<R, B, F, E> Service<R> for ClientService<B>
where
    B: Fn(R) -> F,
    F: Future<Output = Result<Request, E>> + Send + 'static,
    E: From<reqwest::Error> + From<Box<dyn Error + Send + Sync>> + Send + 'static,
{
    type Response = Response;
    type Error = E;
    type Future = Pin<Box<dyn Future<Output = Result<Response, E>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), E>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: R) -> Self::Future {
        let (client, request) = (self.client.clone(), (self.build)(request));
        Box::pin(async move {
            client
                .execute(request.await?)
                .await
                .map_err(|error| match error {
                    reqwest_middleware::Error::Reqwest(error) => error.into(),
                    reqwest_middleware::Error::Middleware(error) => {
                        Box::<dyn Error + Send + Sync>::from(error).into()
                    }
                })
        })
    }
}

impl<B> fmt::Debug for ClientService<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientService")
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}
