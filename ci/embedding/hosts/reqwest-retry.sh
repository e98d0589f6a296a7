# shellcheck shell=bash disable=SC2034 # read by embedding.sh
# Each middleware has a strategy. Its loop asks before each attempt and after each failure, and keeps its policy.
version=0.9.1
inserted=attempts.rs
module=src/attempts.rs
taken=paceline place=.
needs='reqwest = { version = "0.13.1", default-features = false }
reqwest-middleware = { version = "0.5", default-features = false }'
change() {
    after src/lib.rs 'mod middleware;' '
mod attempts;'
    after src/middleware.rs '    retry_policy: T,
    retryable_strategy: R,' '
    paceline: crate::attempts::Shared,'
    after src/middleware.rs 'retry_policy,
' '            paceline: Default::default(),
'
    after src/middleware.rs 'let start_time = SystemTime::now();' '
        let mut turns = self.paceline.start();'
    before src/middleware.rs 'let result = next.clone().run(' 'turns.next().await;
            '
    after src/middleware.rs 'self.retry_policy.should_retry(start_time, n_past_retries);' '
                let status = result.as_ref().ok().map(|response| response.status().as_u16());
                let retry_decision = match turns.failed(status) {
                    true => retry_decision,
                    false => retry_policies::RetryDecision::DoNotRetry,
                };'
    before src/middleware.rs '// Report whether we failed' 'turns.answered();
            '
}
