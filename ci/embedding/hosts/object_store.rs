//! Reads one object of a store behind HTTP, with the retries that the crate has by default.

use std::sync::Arc;

use embedding_stub::measure;
use object_store::{ClientOptions, ObjectStoreExt, http::HttpBuilder};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    measure("{}", |url| {
        let options = ClientOptions::new().with_allow_http(true);
        let store = HttpBuilder::new().with_url(url).with_client_options(options).build();
        let store = Arc::new(store.expect("a store"));
        move || {
            let store = Arc::clone(&store);
            async move { store.get(&"object".into()).await.is_ok() }
        }
    })
    .await
}
