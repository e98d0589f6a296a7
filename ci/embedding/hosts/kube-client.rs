//! Reads one configuration map, with the retries that the crate has by default.

use embedding_stub::measure;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{Api, Client, Config};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    measure("{\"metadata\":{\"name\":\"settings\"}}", |url| {
        let config = Config::new(url.parse().expect("a URL"));
        let maps: Api<ConfigMap> = Api::namespaced(Client::try_from(config).expect("a client"), "default");
        move || {
            let maps = maps.clone();
            async move { maps.get("settings").await.is_ok() }
        }
    })
    .await
}
