//! One operation: its attempts, and the waits between them.

use alloc::sync::Arc;
use core::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use paceline::{
    Failure, Operation, RetryStrategy,
    law::LimitReports,
    operation::{Attempts, Verdict, Waiter, within},
    strategy::Reports,
    wait::DefaultSleep,
};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::{Retried, layer::Shared};
use crate::{BoxError, Classify, Refused, Replay};

pin_project! {
    /// The future of [`Retry`](crate::Retry).
    ///
    /// The operation begins when the future is first polled. A dropped future gives its place in
    /// line back. The payment for a retry is spent, and the outcome of a send in progress goes
    /// unrecorded.
    #[must_use = "a future does nothing until it is polled"]
    pub struct RetryFuture<Svc, Req, S, C, K>
    where
        Svc: Service<K::Sent>,
        S: RetryStrategy,
        S: ?Sized,
        C: Classify<Svc::Response, BoxError>,
        K: Replay<Req>,
    {
        #[pin]
        stage: Stage<Svc::Future>,
        service: Svc,
        // The caller's request, until the operation begins.
        request: Option<Req>,
        // The request to be sent next.
        next: Option<K::Sent>,
        attempts: Option<Attempts<Arc<S>>>,
        // The answer that the caller gets if no other follows.
        last: Option<Result<C::Answer<Retried<S>>, BoxError>>,
        has_weights: bool,
        has_deadline: bool,
        // Whether each attempt carries the time left.
        tells_time: bool,
        waiter: Waiter<DefaultSleep>,
        shared: Arc<Shared<S, C, K>>,
    }
}

pin_project! {
    #[project = StageProj]
    enum Stage<F> {
        Begin,
        Pausing,
        Readying { armed: bool },
        InLine,
        UnderWay { #[pin] sent: F, limited: bool },
        GivingUp,
        Done,
    }
}

impl<Svc, Req, S, C, K> RetryFuture<Svc, Req, S, C, K>
where
    Svc: Service<K::Sent>,
    S: RetryStrategy + ?Sized,
    C: Classify<Svc::Response, BoxError>,
    K: Replay<Req>,
{
    pub(super) const fn new(service: Svc, request: Req, shared: Arc<Shared<S, C, K>>) -> Self {
        Self {
            stage: Stage::Begin,
            service,
            request: Some(request),
            next: None,
            attempts: None,
            last: None,
            has_weights: false,
            has_deadline: false,
            tells_time: false,
            waiter: Waiter::new(DefaultSleep::new()),
            shared,
        }
    }
}

impl<Svc, Req, S, C, K> Future for RetryFuture<Svc, Req, S, C, K>
where
    Svc: Service<K::Sent>,
    Svc::Error: Into<BoxError>,
    S: RetryStrategy + ?Sized + 'static,
    C: Classify<Svc::Response, BoxError>,
    K: Replay<Req>,
{
    type Output = Result<C::Answer<Retried<S>>, BoxError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let ended = ready!(self.as_mut().drive(context));
        self.project().stage.set(Stage::Done);
        Poll::Ready(ended)
    }
}

impl<Svc, Req, S, C, K> RetryFuture<Svc, Req, S, C, K>
where
    Svc: Service<K::Sent>,
    Svc::Error: Into<BoxError>,
    S: RetryStrategy + ?Sized + 'static,
    C: Classify<Svc::Response, BoxError>,
    K: Replay<Req>,
{
    /// Goes from stage to stage until a stage has to wait.
    fn drive(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<C::Answer<Retried<S>>, BoxError>> {
        loop {
            let mut this = self.as_mut().project();
            let clock = this.shared.settings.strategy.clock();
            match (this.stage.as_mut().project(), this.attempts.as_mut()) {
                (StageProj::Begin, _) => self.as_mut().begin(),
                (StageProj::Pausing, Some(attempts)) => {
                    ready!(this.waiter.poll_backoff(attempts, clock, context));
                    this.stage.set(Stage::Readying { armed: false });
                }
                // Readiness comes before the turn, which must be used at once.
                (StageProj::Readying { armed }, Some(attempts)) => {
                    if let Poll::Ready(ready) = this.service.poll_ready(context) {
                        ready.map_err(Into::into)?;
                        this.stage.set(Stage::InLine);
                        continue;
                    }
                    if !*armed {
                        let Some(left) = attempts.time_left(clock) else {
                            return Poll::Pending;
                        };
                        this.waiter.arm(left);
                        *armed = true;
                    }
                    ready!(this.waiter.poll_elapsed(context));
                    let refused = Refused::not_ready(attempts.name());
                    return Poll::Ready(self.stop_with(refused));
                }
                (StageProj::InLine, Some(attempts)) => {
                    let Some(mut request) = this.next.take() else {
                        return Poll::Pending; // the operation was never begun
                    };
                    let attempt = match this.waiter.poll_next(attempts, clock, context) {
                        Poll::Ready(Ok(attempt)) => attempt,
                        Poll::Ready(Err(stop)) => {
                            return Poll::Ready(self.stop_with(stop.into()));
                        }
                        Poll::Pending => {
                            *this.next = Some(request);
                            return Poll::Pending;
                        }
                    };
                    if !attempt.is_last() {
                        *this.next = this.shared.replay.copy(&request);
                        attempts.set_repeatable(this.next.is_some());
                    }
                    let (outer, settings) = (attempts.outer(), &this.shared.settings);
                    if settings.marks {
                        this.shared.replay.mark(&mut request, attempt, outer);
                    }
                    if let Some(header) = settings.tells {
                        this.shared.replay.tell(&mut request, &attempt, header);
                    }
                    let limit = attempt.time_limit();
                    if let Some(limit) = limit {
                        this.waiter.arm(limit);
                        if *this.tells_time {
                            this.shared.replay.set_time_left(&mut request, limit);
                        }
                    }
                    *this.last = None;
                    let sent = within(outer, || this.service.call(request));
                    let limited = limit.is_some();
                    this.stage.set(Stage::UnderWay { sent, limited });
                }
                (StageProj::UnderWay { sent, limited }, Some(attempts)) => {
                    let result = match within(attempts.outer(), || sent.poll(context)) {
                        // A service with its own deadline may end a call at the same moment.
                        Poll::Ready(Err(_))
                            if *limited && this.waiter.poll_elapsed(context).is_ready() =>
                        {
                            None
                        }
                        Poll::Ready(result) => Some(result.map_err(Into::into)),
                        Poll::Pending if *limited => {
                            ready!(this.waiter.poll_elapsed(context));
                            None
                        }
                        Poll::Pending => return Poll::Pending,
                    };
                    if let Some(ended) = self.as_mut().conclude(result) {
                        return Poll::Ready(ended);
                    }
                }
                (StageProj::GivingUp, _) => {
                    ready!(this.waiter.poll_elapsed(context));
                    return this.last.take().map_or(Poll::Pending, Poll::Ready);
                }
                // Polled again after its end.
                (StageProj::Done, _) | (_, None) => return Poll::Pending,
            }
        }
    }

    /// Begins the operation.
    fn begin(self: Pin<&mut Self>) {
        let mut this = self.project();
        let Some(request) = this.request.take() else {
            return;
        };
        let (replay, settings) = (&this.shared.replay, &this.shared.settings);
        let request = replay.sendable(request);
        let idempotency = settings.idempotency;
        let idempotency = idempotency.unwrap_or_else(|| replay.idempotency(&request));
        let mut operation = Operation::new(settings.strategy.clone()).idempotency(idempotency);
        let own = replay.deadline(&request);
        *this.tells_time = own.is_some();
        operation = operation.class(replay.class(&request));
        operation = operation.inside(replay.outer(&request));
        if let Some(weights) = replay.weights(&request) {
            operation = operation.weights(weights);
            *this.has_weights = true;
        }
        let (operation, has_deadline) = settings.apply(operation, own);
        *this.has_deadline = has_deadline;
        let attempts = operation.start();
        // The service is ready already. It is polled again only after a backoff.
        let clock = settings.strategy.clock();
        this.stage.set(match attempts.backoff(clock) {
            None => Stage::InLine,
            Some(_) => Stage::Pausing,
        });
        *this.next = Some(request);
        *this.attempts = Some(attempts);
    }

    /// Ends an attempt, whose `result` is `None` if it was cut off. Returns what the caller gets,
    /// or `None` if more is to come.
    fn conclude(
        self: Pin<&mut Self>,
        result: Option<Result<Svc::Response, BoxError>>,
    ) -> Option<Result<C::Answer<Retried<S>>, BoxError>> {
        let mut this = self.project();
        let attempts = this.attempts.as_mut()?;
        let classifier = &this.shared.classifier;
        let (result, failure) = match result {
            Some(result) => {
                let failure = classifier.classify(result.as_ref());
                (Some(result), failure)
            }
            None => (None, Some(Failure::timeout())),
        };
        let strategy = &this.shared.settings.strategy;
        let limits = match &result {
            Some(Ok(response)) if strategy.obeys_limits() => classifier.limits(response),
            _ => LimitReports::new(),
        };
        let reports = Reports::at(strategy.clock()).declaring(&limits);
        let Some(failure) = failure else {
            // The outcome may come only at the end of the body.
            let _sending = attempts.observe(reports);
            let result = result?;
            let response = result.as_ref().ok();
            let costs = response.and_then(|response| classifier.costs(response));
            let pause = response.and_then(|response| classifier.pause(response));
            let outcome = Retried::new(this.attempts.take()?, *this.has_weights, costs, pause);
            return Some(match result {
                Ok(response) => Ok(classifier.answer(response, outcome)),
                Err(error) => {
                    crate::classify::succeeded(outcome); // an error that counts as none
                    Err(error)
                }
            });
        };
        let result = result.ok_or_else(|| Refused::cut_off(attempts.name()));
        let verdict = attempts.failed(&failure, reports);
        let delay = match &verdict {
            Ok(Verdict::Stop(stop)) => stop.delay(),
            _ => Duration::ZERO,
        };
        let goes_on = matches!(verdict, Ok(Verdict::Again(_)));
        let ended = match (result, verdict) {
            (Err(refused), _) => classifier.refused(refused),
            (Ok(Err(error)), _) => Err(error),
            (Ok(Ok(response)), Ok(Verdict::Stop(stop))) => {
                Ok(classifier.answer(classifier.stopped(response, stop), None))
            }
            (Ok(Ok(response)), _) => Ok(classifier.answer(response, None)),
        };
        if goes_on {
            // A response may hold its connection, so it is kept only if it may be the last
            // response.
            *this.last = Some(ended).filter(|ended| ended.is_err() || *this.has_deadline);
            this.stage.set(Stage::Pausing);
            None
        } else if delay.is_zero() {
            Some(ended)
        } else {
            this.waiter.arm(delay);
            *this.last = Some(ended);
            this.stage.set(Stage::GivingUp);
            None
        }
    }

    /// Ends an operation without another attempt. Returns the last answer, if there is one.
    fn stop_with(
        self: Pin<&mut Self>,
        refused: Refused,
    ) -> Result<C::Answer<Retried<S>>, BoxError> {
        let this = self.project();
        *this.attempts = None;
        let last = this.last.take();
        last.unwrap_or_else(|| this.shared.classifier.refused(refused))
    }
}

impl<Svc, Req, S, C, K> fmt::Debug for RetryFuture<Svc, Req, S, C, K>
where
    Svc: Service<K::Sent>,
    S: RetryStrategy + ?Sized,
    C: Classify<Svc::Response, BoxError>,
    K: Replay<Req>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.stage {
            Stage::Begin => "not polled",
            Stage::Pausing => "backing off",
            Stage::Readying { .. } => "waiting for the service",
            Stage::InLine => "in line",
            Stage::UnderWay { .. } => "under way",
            Stage::GivingUp => "giving up",
            Stage::Done => "done",
        };
        f.debug_tuple("RetryFuture").field(&stage).finish()
    }
}
