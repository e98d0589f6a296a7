# shellcheck shell=bash disable=SC2034 # read by embedding.sh
# Each client has a rate, under the layer that retries.
version=5.0.0
module=src/client/paced.rs
features='"client"'
needs='k8s-openapi = { version = "0.29", features = ["latest"] }'
change() {
    after src/client/mod.rs 'pub mod retry;' '
mod paced;'
    before src/client/builder.rs '.service(client);' '.layer_fn(|inner| {
            let paced = std::sync::Arc::<crate::client::paced::Paced>::default();
            tower::service_fn(move |request: Request<Body>| {
                let (inner, paced) = (Clone::clone(&inner), paced.clone());
                async move {
                    let status = |sent: &Result<Response<Incoming>, _>| sent.as_ref().ok().map(|response| response.status().as_u16());
                    paced.send(tower::ServiceExt::oneshot(inner, request), status).await
                }
            })
        })
        '
}
untested="they need the crate kube, which the package does not name"
