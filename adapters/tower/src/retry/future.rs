//! One operation: its attempts, and what lies between them.

use alloc::sync::Arc;
use core::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use paceline::{RetryStrategy, SendPermit};
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};
use tower_service::Service;

use super::{
    course::{Course, Retried},
    layer::Shared,
};
use crate::{BoxError, Classify, Refused, Replay, turn::InLine};

pin_project! {
    /// The future of [`Retry`](crate::Retry).
    ///
    /// The operation begins when it is first polled. Dropped, it gives its place in line back; what it paid for a retry
    /// is spent, and the outcome of a send in progress goes unrecorded.
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
        stage: Stage<Svc::Future, C::Answer<Retried<S>>>,
        service: Svc,
        // The caller's, until the operation begins.
        request: Option<Req>,
        // To be sent next.
        next: Option<K::Sent>,
        course: Option<Course<S>>,
        shared: Arc<Shared<S, C, K>>,
    }
}

pin_project! {
    #[project = StageProj]
    enum Stage<F, A> {
        Begin,
        Pausing { #[pin] delay: Sleep },
        Readying,
        Turning,
        InLine { turn: InLine },
        UnderWay { #[pin] sent: F },
        GivingUp { #[pin] delay: Sleep, answer: Option<Result<A, BoxError>> },
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
            course: None,
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
    /// Goes from stage to stage until one has to wait. Long, as each stage is an arm.
    fn drive(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<C::Answer<Retried<S>>, BoxError>> {
        loop {
            let mut this = self.as_mut().project();
            let permit = match this.stage.as_mut().project() {
                StageProj::Begin => {
                    self.as_mut().begin();
                    continue;
                }
                StageProj::Pausing { delay } => {
                    ready!(delay.poll(context));
                    this.stage.set(Stage::Readying);
                    continue;
                }
                StageProj::Readying => {
                    ready!(this.service.poll_ready(context)).map_err(Into::into)?;
                    this.stage.set(Stage::Turning);
                    continue;
                }
                StageProj::Turning => {
                    let Some(course) = this.course else {
                        return Poll::Pending;
                    };
                    let taken = course.take_turn().map_err(Refused::from)?;
                    let Some(permit) = taken else {
                        let turn = course.wait();
                        this.stage.set(Stage::InLine { turn });
                        continue;
                    };
                    permit
                }
                StageProj::InLine { turn } => ready!(turn.as_mut().poll(context))?,
                StageProj::UnderWay { sent } => {
                    let result = ready!(sent.poll(context)).map_err(Into::into);
                    if let Some(ended) = self.as_mut().conclude(result) {
                        return Poll::Ready(ended);
                    }
                    continue;
                }
                StageProj::GivingUp { delay, answer } => {
                    ready!(delay.poll(context));
                    return answer.take().map_or(Poll::Pending, Poll::Ready);
                }
                StageProj::Done => return Poll::Pending, // polled again after its end
            };
            if self.as_mut().send(permit).is_none() {
                return Poll::Pending;
            }
        }
    }

    /// Sends the next request, `None` if there is none: then the operation was never begun.
    fn send(self: Pin<&mut Self>, permit: SendPermit) -> Option<()> {
        let mut this = self.project();
        let (course, request) = (this.course.as_mut()?, this.next.take()?);
        course.sent(permit);
        if course.may_go_on() {
            *this.next = this.shared.replay.copy(&request);
        }
        let sent = this.service.call(request);
        this.stage.set(Stage::UnderWay { sent });
        Some(())
    }

    /// Begins the operation.
    fn begin(self: Pin<&mut Self>) {
        let mut this = self.project();
        let Some(request) = this.request.take() else {
            return;
        };
        let request = this.shared.replay.sendable(request);
        let idempotency = this.shared.replay.idempotency(&request);
        let course = Course::begin(&this.shared.settings, idempotency);
        *this.next = Some(request);
        // The service is ready already, and is not asked again without need.
        this.stage.set(match course.delay() {
            Duration::ZERO => Stage::Turning,
            delay => Stage::Pausing {
                delay: sleep(delay),
            },
        });
        *this.course = Some(course);
    }

    /// Ends an attempt: returns what the caller gets, or `None` if there is more to come.
    fn conclude(
        self: Pin<&mut Self>,
        result: Result<Svc::Response, BoxError>,
    ) -> Option<Result<C::Answer<Retried<S>>, BoxError>> {
        let mut this = self.project();
        let course = this.course.as_mut()?;
        let classifier = &this.shared.classifier;
        let Some(failure) = classifier.classify(result.as_ref()) else {
            let outcome = course.answered();
            return Some(match result {
                Ok(response) => Ok(classifier.answer(response, Some(outcome))),
                Err(error) => {
                    crate::classify::succeeded(Some(outcome)); // an error that counts as none
                    Err(error)
                }
            });
        };
        match course.failed(&failure, this.next.is_some()) {
            Ok(()) => {
                drop(result); // a response may hold its connection
                this.stage.set(match course.delay() {
                    Duration::ZERO => Stage::Readying,
                    delay => Stage::Pausing {
                        delay: sleep(delay),
                    },
                });
                None
            }
            Err(delay) => {
                let answer = result.map(|response| classifier.answer(response, None));
                if delay.is_zero() {
                    return Some(answer);
                }
                let (delay, answer) = (sleep(delay), Some(answer));
                this.stage.set(Stage::GivingUp { delay, answer });
                None
            }
        }
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
            Stage::Pausing { .. } => "backing off",
            Stage::Readying => "waiting for the service",
            Stage::Turning | Stage::InLine { .. } => "in line",
            Stage::UnderWay { .. } => "under way",
            Stage::GivingUp { .. } => "giving up",
            Stage::Done => "done",
        };
        f.debug_tuple("RetryFuture").field(&stage).finish()
    }
}
