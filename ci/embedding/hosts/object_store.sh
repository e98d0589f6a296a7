# shellcheck shell=bash disable=SC2034 # read by embedding.sh
# Each HTTP client has a rate, and the retry loop sends each attempt by it.
version=0.14.2
module=src/client/paced.rs
features='"http", "fs"'
change() {
    after src/client/mod.rs 'pub(crate) mod retry;' '
pub(crate) mod paced;'
    after src/client/http/connection.rs 'pub struct HttpClient(Arc<dyn HttpService>' ', pub(crate) Arc<crate::client::paced::Paced>'
    after src/client/http/connection.rs 'Self(Arc::new(service)' ', Arc::default()'
    before src/client/retry.rs 'self.client.execute(request)' '
                self.client.1.send('
    after src/client/retry.rs 'self.client.execute(request)' ',
                    |sent| sent.as_ref().ok().map(|response| response.status().as_u16()))
                '
}
tests=(--features http,fs)
skipped=(
    local::tests::fsync_rename_if_not_exists_propagates_source_delete_sync_error # takes a permission away that root needs not
    SpawnedReqwestConnector # an example that needs the feature `azure`
)
