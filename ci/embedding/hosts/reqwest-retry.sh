# shellcheck shell=bash disable=SC2034 # read by embedding.sh
# Each middleware has a rate, and its loop sends each attempt by it.
version=0.9.1
needs='reqwest = { version = "0.13.1", default-features = false }
reqwest-middleware = { version = "0.5", default-features = false }'
change() {
    after src/lib.rs 'mod middleware;' '
mod paced;'
    after src/middleware.rs '    retry_policy: T,
    retryable_strategy: R,' '
    paced: crate::paced::Paced,'
    after src/middleware.rs 'retry_policy,
' '            paced: Default::default(),
'
    before src/middleware.rs 'next.clone().run(duplicate_request, ext)' '
                self.paced.send('
    after src/middleware.rs 'next.clone().run(duplicate_request, ext)' ',
                |sent| sent.as_ref().ok().map(|response| response.status().as_u16()))
                '
}
