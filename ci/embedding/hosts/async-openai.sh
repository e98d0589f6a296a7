# shellcheck shell=bash disable=SC2034 # read by embedding.sh
# Each client has a rate, under the layer that retries.
version=0.43.0
features='"model"'
change() {
    after src/lib.rs 'mod executor;' '
mod paced;'
    after src/executor.rs 'pub struct ReqwestService {
    client: reqwest::Client,' '
    paced: Arc<crate::paced::Paced>,'
    after src/executor.rs 'Self { client' ', paced: Arc::default()'
    after src/executor.rs 'let client = self.client.clone();' '
        let paced = self.paced.clone();'
    before src/executor.rs 'client.execute(request).await' 'paced.send('
    after src/executor.rs 'client.execute(request)' ',
                |sent| sent.as_ref().ok().map(|response| response.status().as_u16()))'
}
tests=(--features full)
# These ask the maker's service. Line 124 does not compile as published.
skipped=(embedding::tests:: file::tests:: vector_store_files::tests:: boxed_future_test '(line 124)')
