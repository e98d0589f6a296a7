//! The service: an account with a limit on requests and one on tokens, and its headers.
//!
//! What the public documentation of such services says, and what was chosen here:
//!
//! - *Headers*, as `OpenAI` documents them: `x-ratelimit-limit-requests`, `-remaining-requests`,
//!   `-reset-requests`, the same for `-tokens`, with resets like `6m0s` and `120ms`. A reset is the
//!   time until the limit is whole again, so the limits refill all the time. A 429 has
//!   `retry-after` in whole seconds, and `retry-after-ms`, which the vendors' clients prefer; its
//!   body says in `error.type` whether it was requests or tokens.
//! - *An estimate is counted at admission.* `OpenAI`: the larger of `max_tokens` and an estimate by
//!   the number of characters. Anthropic: estimated by `max_tokens` at the beginning of a request,
//!   and corrected at the end by the tokens that it used. Here the prompt and `max_tokens` are
//!   counted at admission, and the difference to the true cost, either way, at the end.
//! - *When the headers are from* is not documented. Published answers of `OpenAI` say `120ms` of a
//!   limit of 500 a minute after an answer that took seconds: they show the limit as it was at
//!   admission. So it is here, and the headers come with the answer.
//! - *A refused request counts* against the limit of requests by `OpenAI`'s documentation. Here it
//!   does not, which is kinder to clients that are refused often.

use core::time::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    ledger::Ledger,
    number::nanos,
    policer::{Counting, Policer},
    settings::Limits,
    workload::Job,
};

/// An answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Reply {
    /// Returns what the request cost, if it was not refused.
    pub(crate) fn usage(&self) -> Option<u32> {
        let tokens = self.body.pointer("/usage/total_tokens")?;
        u32::try_from(tokens.as_u64()?).ok()
    }
}

/// An account.
#[derive(Debug)]
pub(crate) struct Service {
    opened: Instant,
    limits: Limits,
    jobs: Vec<Job>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The counts and their limits: of requests, and of tokens.
    limits: [(&'static str, u64, Policer); 2],
    ledger: Ledger,
}

impl Service {
    /// Opens an account for a batch.
    pub(crate) fn new(limits: Limits, jobs: Vec<Job>) -> Self {
        let count = |name, limit: u32| {
            let minute = nanos(limits.minute);
            let policer = Policer::new(Counting::Refill, minute, None, limit.into());
            (name, limit.into(), policer)
        };
        let state = State {
            limits: [
                count("requests", limits.requests),
                count("tokens", limits.tokens),
            ],
            ledger: Ledger::new(limits.minute, &jobs),
        };
        Self {
            opened: Instant::now(),
            limits,
            jobs,
            state: Mutex::new(state),
        }
    }

    /// Returns what its batch is.
    pub(crate) fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what was counted so far.
    pub(crate) fn ledger(&self) -> Ledger {
        self.state().ledger.clone()
    }

    /// Carries out the request with this number: decides at once, answers when it is done.
    pub(crate) async fn answer(&self, number: usize, client: usize) -> Reply {
        let Some(job) = self.jobs.get(number).copied() else {
            let status = StatusCode::NOT_FOUND;
            return Reply {
                status,
                ..Reply::default()
            };
        };
        let reply = self.state().admit(self.opened.elapsed(), job, client);
        if reply.status.is_success() {
            tokio::time::sleep(self.limits.latency(job)).await;
            self.state().finish(self.opened.elapsed(), job);
        }
        reply
    }
}

impl State {
    /// Brings the counts up to `now`.
    fn look(&mut self, now: Duration) {
        for (_, limit, policer) in &mut self.limits {
            policer.look(nanos(now), *limit);
        }
    }

    fn admit(&mut self, now: Duration, job: Job, client: usize) -> Reply {
        self.look(now);
        let wait = |(_, limit, policer): &(_, u64, Policer), amount| {
            Duration::from_nanos(policer.until(amount, *limit))
        };
        let requests = wait(&self.limits[0], 1);
        let tokens = wait(&self.limits[1], job.estimate.into());
        let wait = requests.max(tokens);
        let admitted = wait.is_zero();
        if admitted {
            self.limits[0].2.take(1_u8);
            self.limits[1].2.take(job.estimate);
        }
        self.ledger.enter(now, job, client, admitted);
        let mut headers = HeaderMap::new();
        for (name, limit, policer) in &self.limits {
            let reset = written(Duration::from_nanos(policer.until(*limit, *limit)));
            put(&mut headers, &format!("x-ratelimit-limit-{name}"), limit);
            let left = policer.left(*limit);
            put(
                &mut headers,
                &format!("x-ratelimit-remaining-{name}"),
                &left,
            );
            put(&mut headers, &format!("x-ratelimit-reset-{name}"), &reset);
        }
        if admitted {
            return Reply {
                status: StatusCode::OK,
                headers,
                body: json!({ "usage": { "total_tokens": job.cost } }),
            };
        }
        let millis = wait.as_micros().div_ceil(1_000);
        put(&mut headers, "retry-after", &millis.div_ceil(1_000));
        put(&mut headers, "retry-after-ms", &millis);
        let limit = usize::from(tokens >= requests);
        Reply {
            status: StatusCode::TOO_MANY_REQUESTS,
            headers,
            body: json!({ "error": { "type": self.limits[limit].0 } }),
        }
    }

    /// Corrects the estimate by the true cost.
    fn finish(&mut self, now: Duration, job: Job) {
        self.look(now);
        let more = i64::from(job.cost) - i64::from(job.estimate);
        self.limits[1].2.take(more);
        self.ledger.answer();
    }
}

/// Returns a duration as these services write it: `120ms`, `1.5s`, `6m0s`.
fn written(span: Duration) -> String {
    let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let (minutes, rest) = (millis / 60_000, millis % 60_000);
    let seconds = Duration::from_millis(rest).as_secs_f64();
    match (minutes, rest) {
        (0, 0..1_000) => format!("{rest}ms"),
        (0, _) => format!("{seconds}s"),
        _ => format!("{minutes}m{seconds}s"),
    }
}

fn put(headers: &mut HeaderMap, name: &str, value: &impl ToString) {
    let name = HeaderName::from_bytes(name.as_bytes());
    let value = HeaderValue::from_str(&value.to_string());
    if let (Ok(name), Ok(value)) = (name, value) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use http::StatusCode;

    use super::{Service, written};
    use crate::{settings::Limits, workload::Job};

    #[test]
    fn durations_are_written_as_in_the_documentation() {
        let texts = [0, 120, 1_000, 1_500, 360_000, 252_172];
        let texts = texts.map(|millis| written(Duration::from_millis(millis)));
        assert_eq!(texts, ["0ms", "120ms", "1s", "1.5s", "6m0s", "4m12.172s"]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_estimate_is_counted_at_once_and_corrected_at_the_end() {
        let limits = Limits {
            requests: 60,
            tokens: 6_000,
            minute: Duration::from_secs(60),
        };
        let job = Job {
            estimate: 3_000,
            cost: 1_000,
        };
        let service = Service::new(limits, vec![job; 4]);
        let header = |reply: &super::Reply, name: &str| {
            let value = reply
                .headers
                .get(name)
                .and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        let (first, second, third) = tokio::join!(
            service.answer(0, 0),
            service.answer(1, 0),
            service.answer(2, 0)
        );
        assert_eq!(first.status, StatusCode::OK);
        assert_eq!(header(&first, "x-ratelimit-remaining-tokens"), "3000");
        assert_eq!(header(&first, "x-ratelimit-reset-tokens"), "30s");
        assert_eq!(header(&second, "x-ratelimit-remaining-requests"), "58");
        assert_eq!(third.status, StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(header(&third, "retry-after"), "30");
        assert_eq!(header(&third, "retry-after-ms"), "30000");
        // 4,000 of 6,000 have been given back by now.
        assert_eq!(service.answer(3, 0).await.status, StatusCode::OK);
    }
}
