//! The operation of the README: an exponential backoff with jitter and three retries.

use embedding_stub::{get, measure};
use tokio_retry::{
    Retry,
    strategy::{ExponentialBackoff, jitter},
};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    measure("{}", |url| {
        #[cfg(feature = "after")]
        let paced = std::sync::Arc::<tokio_retry::Paced>::default();
        move || {
            let url = url.clone();
            let action = move || {
                let url = url.clone();
                async move { if get(&url).await.ok() == Some(200) { Ok(()) } else { Err(()) } }
            };
            #[cfg(feature = "after")]
            let action = tokio_retry::paced(action, paced.clone(), |_| true);
            let backoff = ExponentialBackoff::from_millis(10).map(jitter).take(3);
            async move { Retry::start(backoff, action).await.is_ok() }
        }
    })
    .await
}
