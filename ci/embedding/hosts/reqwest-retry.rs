//! A client with the backoff of the README, and three retries.

use embedding_stub::measure;
use reqwest_middleware::ClientBuilder;
use reqwest_retry::{RetryTransientMiddleware, policies::ExponentialBackoff};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    measure("{}", |url| {
        let bounds = ExponentialBackoff::builder().build_with_max_retries(3);
        let retries = RetryTransientMiddleware::new_with_policy(bounds);
        let client = ClientBuilder::new(reqwest::Client::new()).with(retries).build();
        move || {
            let request = client.get(&url).send();
            async move { request.await.is_ok_and(|response| response.status().is_success()) }
        }
    })
    .await
}
