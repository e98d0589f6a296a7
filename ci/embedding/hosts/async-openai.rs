//! Lists the models, with the retries that the crate has by default.

use async_openai::{Client, config::OpenAIConfig};
use embedding_stub::measure;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    measure("{\"object\":\"list\",\"data\":[]}", |url| {
        let config = OpenAIConfig::new().with_api_base(url).with_api_key("none");
        let client = Client::with_config(config);
        move || {
            let client = client.clone();
            async move { client.models().list().await.is_ok() }
        }
    })
    .await
}
