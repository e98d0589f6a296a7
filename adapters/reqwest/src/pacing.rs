//! The middleware and its settings.

use alloc::{string::String, sync::Arc};
use core::{fmt, time::Duration};

use paceline::{
    Adaptive, Failure, RetryStrategy,
    classify::{
        Classifier, HeaderLimits, HttpResponseParts, RefusalClassifier, ServiceUnavailable,
        pause_after,
    },
    headers::AttemptHeader,
    law::LimitReports,
    set::Weights,
};
use reqwest::Request;
use reqwest_middleware::Result;

use crate::{OneShotBody, body, bounds::Bounds, error, hosts::Hosts};

/// The most hosts with their own strategy, unless [`Pacing::max_hosts`] sets another number.
const MAX_HOSTS: usize = 1_024;

type Answers = dyn for<'a> Classifier<HttpResponseParts<'a>> + Send + Sync;
type ReadLimits = dyn Fn(&HttpResponseParts<'_>) -> LimitReports + Send + Sync;
type Costs = dyn Fn(&HttpResponseParts<'_>) -> Option<Weights> + Send + Sync;
type ScopeOf = dyn Fn(&Request) -> Option<String> + Send + Sync;
type Choose = dyn Fn(&Request) -> Arc<dyn RetryStrategy> + Send + Sync;

/// The middleware. Each send of a request waits for its turn, and a failed request is sent again if
/// a strategy decides so.
///
/// Add it to a client last, so that the other middlewares run once for each operation. Middlewares
/// after it run for each attempt. Clones share strategies, quota and rate.
///
/// Inside of an attempt of another loop of paceline it sends once
/// ([`OuterAttempt`](paceline::operation::OuterAttempt)), and so do loops of paceline in the
/// middlewares after it. Switch off other retries, or they multiply: a retry middleware, and
/// reqwest's `ClientBuilder::retry`.
///
/// # Examples
///
/// ```
/// use paceline::Adaptive;
/// use paceline_reqwest::Pacing;
/// use reqwest_middleware::ClientBuilder;
///
/// let client = ClientBuilder::new(reqwest::Client::new())
///     .with(Pacing::by_host(|_host| Adaptive::paced()))
///     .build();
/// ```
#[derive(Clone)]
pub struct Pacing {
    strategies: Strategies,
    answers: Arc<Answers>,
    pub(crate) one_shot: OneShotBody,
    pub(crate) bounds: Bounds,
    pub(crate) marks: bool,
    pub(crate) tells: Option<AttemptHeader>,
    scope: Option<Arc<ScopeOf>>,
    limits: Arc<ReadLimits>,
    costs: Option<Arc<Costs>>,
}

fn answers(unavailable: ServiceUnavailable) -> Arc<Answers> {
    Arc::new(RefusalClassifier::new().with_unavailable(unavailable))
}

#[derive(Clone)]
enum Strategies {
    One(Arc<dyn RetryStrategy>),
    Hosts(Arc<Hosts>),
    Chosen(Arc<Choose>),
}

impl Pacing {
    /// Uses one strategy for all requests.
    pub fn new(strategy: impl RetryStrategy + 'static) -> Self {
        Self::shared(Arc::new(strategy))
    }

    /// Uses [`Adaptive::bulk`] for all requests, for pipelines that may lose no request to
    /// throttling. A bare 503 is throttling, after which any request is sent again.
    ///
    /// For other settings build the strategy with
    /// [`bulk`](paceline::config::StrategyBuilder::bulk), and give [`RefusalClassifier`] the same
    /// meaning of 503:
    ///
    /// ```
    /// use paceline::{Adaptive, classify::{RefusalClassifier, ServiceUnavailable}};
    /// use paceline_reqwest::Pacing;
    ///
    /// let answers = RefusalClassifier::new().with_unavailable(ServiceUnavailable::Throttle);
    /// let strategy = Adaptive::builder().bulk().max_attempts(8).build().unwrap();
    /// let pacing = Pacing::new(strategy).classifier(answers);
    /// ```
    #[must_use]
    pub fn bulk() -> Self {
        Self::new(Adaptive::bulk()).with_503(ServiceUnavailable::Throttle)
    }

    /// Uses one strategy for all requests. Another client can share the strategy, or code that
    /// looks at its state.
    #[must_use]
    pub fn shared(strategy: Arc<dyn RetryStrategy>) -> Self {
        Self::of(Strategies::One(strategy))
    }

    /// Makes a strategy for each host when its first request comes.
    ///
    /// The strategy is made once, and requests that come to a new host together wait for it. At
    /// most 1,024 hosts have a strategy ([`max_hosts`](Self::max_hosts)), kept as long as the
    /// middleware. All other hosts share a strategy, which is made for the host `""` when needed.
    /// The ports of a host share a strategy; [`by`](Self::by) can separate them. A look-up takes no
    /// lock.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{Adaptive, Standard};
    /// use paceline_reqwest::Pacing;
    ///
    /// let pacing = Pacing::by_host(|_host| Adaptive::paced()).max_hosts(64);
    /// ```
    pub fn by_host<S: RetryStrategy + 'static>(
        make: impl Fn(&str) -> S + Send + Sync + 'static,
    ) -> Self {
        let make = move |host: &str| Arc::new(make(host)) as Arc<dyn RetryStrategy>;
        Self::of(Strategies::Hosts(Arc::new(Hosts::new(
            Arc::new(make),
            MAX_HOSTS,
        ))))
    }

    /// Asks `choose` for the strategy of each request: by tenant, by path, from a map of your own.
    ///
    /// `choose` is called once for each operation, and has to keep the strategies.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use paceline::{Adaptive, RetryStrategy, Standard};
    /// use paceline_reqwest::Pacing;
    ///
    /// let search: Arc<dyn RetryStrategy> = Arc::new(Adaptive::paced());
    /// let rest: Arc<dyn RetryStrategy> = Arc::new(Standard::new());
    /// let pacing = Pacing::by(move |request| match request.url().path() {
    ///     "/search" => search.clone(),
    ///     _ => rest.clone(),
    /// });
    /// ```
    pub fn by(choose: impl Fn(&Request) -> Arc<dyn RetryStrategy> + Send + Sync + 'static) -> Self {
        Self::of(Strategies::Chosen(Arc::new(choose)))
    }

    fn of(strategies: Strategies) -> Self {
        Self {
            strategies,
            answers: answers(ServiceUnavailable::Overloaded),
            one_shot: OneShotBody::default(),
            bounds: Bounds::default(),
            marks: false,
            tells: None,
            scope: None,
            limits: Arc::new(|parts| HeaderLimits::new().read(parts)),
            costs: None,
        }
    }

    fn with_503(mut self, unavailable: ServiceUnavailable) -> Self {
        self.answers = answers(unavailable);
        self
    }

    /// Sets how many hosts have their own strategy; the first hosts get it. With 0 all hosts share
    /// a strategy. This has an effect only after [`by_host`](Self::by_host). Threads that bring new
    /// hosts at the same moment may exceed the number by one each.
    #[must_use]
    pub fn max_hosts(mut self, hosts: usize) -> Self {
        self.strategies = match self.strategies {
            Strategies::Hosts(map) => Strategies::Hosts(Arc::new(map.with_max(hosts))),
            other => other,
        };
        self
    }

    /// Lets `classifier` say what answers mean; `None` is a success.
    ///
    /// The default is [`RefusalClassifier`], for which a bare 503 is
    /// [`Overloaded`](ServiceUnavailable::Overloaded). A 503 then lowers the send rate, and a POST
    /// without an idempotency key is not sent again. If the classifier
    /// [wants](Classifier::wants_body) the body of a refusal, up to 64 KiB are read. The caller
    /// still gets the whole body. The table of the AWS SDKs, where a 503 is transient:
    ///
    /// ```
    /// use paceline::{Adaptive, classify::HttpClassifier};
    /// use paceline_reqwest::Pacing;
    ///
    /// let pacing = Pacing::new(Adaptive::paced()).classifier(HttpClassifier::new());
    /// ```
    ///
    /// A service that refuses with status 200 needs a classifier that reads successes:
    ///
    /// ```
    /// use paceline::{Adaptive, classify::{BodyRefusals, RefusalClassifier}};
    /// use paceline_reqwest::Pacing;
    ///
    /// let answers = (BodyRefusals::GraphQl, RefusalClassifier::new());
    /// let pacing = Pacing::new(Adaptive::paced()).classifier(answers);
    /// ```
    #[must_use]
    pub fn classifier(
        mut self,
        classifier: impl for<'a> Classifier<HttpResponseParts<'a>> + Send + Sync + 'static,
    ) -> Self {
        self.answers = Arc::new(classifier);
        self
    }

    /// Lets `read` say what a response declares about the service's limits. The default is
    /// [`HeaderLimits`]. `read` is called for strategies that obey such limits, as
    /// [`Adaptive::declared`](paceline::Adaptive::declared) does.
    ///
    /// # Examples
    ///
    /// A client of GitHub that keeps to the hourly limit. GitHub's secondary limits, a 403 with
    /// `Retry-After` or a text of throttling, are throttling by default:
    ///
    /// ```
    /// use paceline::Adaptive;
    /// use paceline_reqwest::Pacing;
    /// use reqwest_middleware::ClientBuilder;
    ///
    /// let pacing = Pacing::by_host(|_host| Adaptive::declared());
    /// let client = ClientBuilder::new(reqwest::Client::new()).with(pacing).build();
    /// ```
    ///
    /// A service with its own headers:
    ///
    /// ```
    /// use paceline::{Adaptive, law::{LimitReport, LimitReports}};
    /// use paceline_reqwest::Pacing;
    ///
    /// let pacing = Pacing::new(Adaptive::declared()).limits_by(|response| {
    ///     let left = response.headers().get("x-left").and_then(|left| left.to_str().ok()?.parse().ok());
    ///     left.map_or(LimitReports::new(), |left| LimitReport::new(left).limit(100).into())
    /// });
    /// ```
    #[must_use]
    pub fn limits_by(
        mut self,
        read: impl Fn(&HttpResponseParts<'_>) -> LimitReports + Send + Sync + 'static,
    ) -> Self {
        self.limits = Arc::new(read);
        self
    }

    /// Lets `read` say the true cost of a request at each send rate, in tokens. The strategy
    /// settles it against the [`Weights`] in the request's extensions. By default no cost is read.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::Adaptive;
    /// use paceline_reqwest::Pacing;
    ///
    /// let pacing = Pacing::new(Adaptive::declared()).costs_by(|response| {
    ///     let cost = response.headers().get("x-cost")?.to_str().ok()?.parse().ok()?;
    ///     Some([cost].into())
    /// });
    /// ```
    #[must_use]
    pub fn costs_by(
        mut self,
        read: impl Fn(&HttpResponseParts<'_>) -> Option<Weights> + Send + Sync + 'static,
    ) -> Self {
        self.costs = Some(Arc::new(read));
        self
    }

    /// Sets how requests are handled whose body is a stream. [`OneShotBody::SendOnce`] by default.
    #[must_use]
    pub fn one_shot_body(mut self, what: OneShotBody) -> Self {
        self.one_shot = what;
        self
    }

    /// Names the scope of each request, for strategies with a state for each scope, such as
    /// paceline's `Scopes` (its feature `scopes`). `None` is the shared state. By default requests
    /// have no scope.
    ///
    /// # Examples
    ///
    /// A rate for each tenant, however many hosts there are:
    ///
    /// ```
    /// use paceline::Adaptive;
    /// use paceline_reqwest::Pacing;
    ///
    /// let pacing = Pacing::new(Adaptive::paced()).scope_by(|request| {
    ///     let tenant = request.headers().get("x-tenant")?;
    ///     Some(tenant.to_str().ok()?.to_owned())
    /// });
    /// ```
    #[must_use]
    pub fn scope_by(
        mut self,
        scope: impl Fn(&Request) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.scope = Some(Arc::new(scope));
        self
    }

    /// Accepts no longer wait than `span` from the service: 60 s by default.
    ///
    /// A response that asks for more is returned at once, and the send rate pauses for no longer
    /// than `span`.
    #[must_use]
    pub const fn max_retry_after(mut self, span: Duration) -> Self {
        self.bounds.max_retry_after = Some(span);
        self
    }

    /// Gives each request `span`, with all its attempts and waits. No limit by default.
    ///
    /// No backoff or wait begins that would use up the rest of the time, and no attempt begins
    /// after the deadline. If a backoff or the wait for a turn does not fit, the last answer is
    /// returned at once. Before the first attempt the result is an error with a
    /// [`Stop`](paceline::operation::Stop). An attempt under way is cut off, with
    /// [`DeadlinePassed`](crate::DeadlinePassed). A response's body is not cut off, unless the
    /// classifier wants that body.
    #[must_use]
    pub const fn deadline(mut self, span: Duration) -> Self {
        self.bounds.deadline = Some(span);
        self
    }

    /// Lets loops of paceline in later middlewares send again. Use it if these send several
    /// requests for one, as a paginator does. By default the loops send once.
    #[must_use]
    pub const fn composite(mut self) -> Self {
        self.bounds.composite = true;
        self
    }

    /// Puts the [`OuterAttempt`](paceline::operation::OuterAttempt) and the
    /// [`Attempt`](paceline::operation::Attempt) into the extensions of each request, for later
    /// middlewares. The mark allocates if a request has no extensions.
    ///
    /// A loop of paceline in another task finds the outer attempt there, and sends once. Loops that
    /// the middlewares await need no mark.
    ///
    /// A middleware that signs a request reads from the attempt which of several keys to sign with
    /// ([`Attempt::member`](paceline::operation::Attempt::member)). The same holds behind the
    /// middleware for language models.
    #[must_use]
    pub const fn mark_requests(mut self) -> Self {
        self.marks = true;
        self
    }

    /// Sends the number of each attempt in `header`. By default no header is sent.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{Adaptive, headers::AttemptHeader};
    /// use paceline_reqwest::Pacing;
    ///
    /// let pacing = Pacing::new(Adaptive::paced()).tell_attempts(AttemptHeader::EnvoyAttemptCount);
    /// ```
    #[must_use]
    pub const fn tell_attempts(mut self, header: AttemptHeader) -> Self {
        self.tells = Some(header);
        self
    }

    pub(crate) fn choose(&self, request: &Request) -> Arc<dyn RetryStrategy> {
        match &self.strategies {
            Strategies::One(strategy) => Arc::clone(strategy),
            Strategies::Hosts(hosts) => hosts.get(request.url().host_str().unwrap_or_default()),
            Strategies::Chosen(choose) => choose(request),
        }
    }

    pub(crate) fn scope_of(&self, request: &Request) -> Option<String> {
        self.scope.as_ref().and_then(|scope| scope(request))
    }

    /// Returns the answer of an attempt, and what it means. A body that the classifier wants is
    /// read, for at most the time that `left` returns.
    pub(crate) async fn judge(
        &self,
        strategy: &dyn RetryStrategy,
        answer: Result<reqwest::Response>,
        may_fail_late: bool,
        left: impl Fn() -> Option<Duration>,
    ) -> Judged {
        let response = match answer {
            Ok(response) => response,
            Err(error) => {
                let failure = error::classify(&error);
                return Judged::failed(error, failure);
            }
        };
        let parts = HttpResponseParts::new(response.status(), response.headers());
        let is_late = may_fail_late && response.status().is_success();
        if !is_late && !self.answers.wants_body(&parts) {
            let failure = self.answers.classify(&parts);
            let (limits, costs) = self.declared(strategy, &parts);
            let pause = pause_after(&parts);
            return Judged {
                pause,
                answer: Ok(response),
                failure,
                is_whole: false,
                limits,
                costs,
            };
        }
        let (beginning, unread) = body::read(response, left()).await;
        let parts = HttpResponseParts::new(unread.head.status(), unread.head.headers());
        let failure = beginning.classify(&*self.answers, parts);
        let parts = parts.with_refusal(&beginning.bytes);
        let (limits, costs) = self.declared(strategy, &parts);
        let pause = pause_after(&parts);
        let (response, is_whole) = unread.after(beginning);
        Judged {
            answer: Ok(response),
            failure,
            is_whole,
            limits,
            costs,
            pause,
        }
    }

    /// Returns the limits that a response declares, if `strategy` obeys limits, and the true cost
    /// of its request.
    fn declared(
        &self,
        strategy: &dyn RetryStrategy,
        parts: &HttpResponseParts<'_>,
    ) -> (LimitReports, Option<Weights>) {
        let limits = if strategy.obeys_limits() {
            (self.limits)(parts)
        } else {
            LimitReports::new()
        };
        (limits, self.costs.as_ref().and_then(|read| read(parts)))
    }
}

/// The answer of an attempt, and what it means.
pub(crate) struct Judged {
    pub(crate) answer: Result<reqwest::Response>,
    /// `None` if the attempt succeeded.
    pub(crate) failure: Option<Failure>,
    /// Whether the whole body was read, so that the answer holds no connection.
    pub(crate) is_whole: bool,
    pub(crate) limits: LimitReports,
    pub(crate) costs: Option<Weights>,
    /// The pause that a success asks for.
    pub(crate) pause: Option<Duration>,
}

impl Judged {
    /// Returns an attempt without an answer.
    pub(crate) const fn failed(error: reqwest_middleware::Error, failure: Failure) -> Self {
        Self {
            answer: Err(error),
            failure: Some(failure),
            is_whole: true,
            limits: LimitReports::new(),
            costs: None,
            pause: None,
        }
    }
}

impl fmt::Debug for Pacing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pacing")
            .field("strategies", &self.strategies)
            .field("one_shot", &self.one_shot)
            .field("deadline", &self.bounds.deadline)
            .field("max_retry_after", &self.bounds.max_retry_after)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Strategies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(strategy) => strategy.fmt(f),
            Self::Hosts(hosts) => hosts.fmt(f),
            Self::Chosen(_) => f.write_str(".."),
        }
    }
}
