//! One request: in line, then under way.

use core::{
    fmt,
    future::Future,
    ops::Deref,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use paceline::{
    Clock, ControlLaw, Failure, Outcome, SendLimiter, SendPermit, SendRate,
    law::LimitReports,
    set::Weights,
    wait::{Acquire, Sleep},
};
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::{BoxError, Classify, Conclude, Refused, classify::succeeded};

pin_project! {
    /// The future of [`SendRateService`](crate::SendRateService).
    ///
    /// The future takes its place when it is first polled, and gives the place back when it is
    /// dropped. A request that was sent by then counts as sent, and its outcome goes unrecorded.
    #[must_use = "a future does nothing until it is polled"]
    pub struct SendRateFuture<Svc, Req, J, R, C, Z>
    where
        Svc: Service<Req>,
        R: Deref<Target = SendRate>,
        C: Clock,
        Z: Sleep,
    {
        #[pin]
        stage: Stage<Svc::Future, Acquire<R, C, Z>>,
        // The request until it is sent.
        unsent: Option<(Svc, Req)>,
        limiter: SendLimiter<R, C, Z>,
        classifier: J,
    }
}

pin_project! {
    #[project = StageProj]
    enum Stage<F, T> {
        InLine { #[pin] turn: T },
        UnderWay { #[pin] sent: F, permit: SendPermit },
        Done,
    }
}

impl<Svc, Req, J, R, C, Z> SendRateFuture<Svc, Req, J, R, C, Z>
where
    Svc: Service<Req>,
    R: Deref<Target = SendRate> + Clone,
    C: Clock + Clone,
    Z: Sleep + Clone,
{
    pub(super) fn new(
        service: Svc,
        request: Req,
        limiter: SendLimiter<R, C, Z>,
        classifier: J,
        turn: Acquire<R, C, Z>,
    ) -> Self {
        Self {
            stage: Stage::InLine { turn },
            unsent: Some((service, request)),
            limiter,
            classifier,
        }
    }
}

impl<Svc, Req, J, R, C, Z> Future for SendRateFuture<Svc, Req, J, R, C, Z>
where
    Svc: Service<Req>,
    Svc::Error: Into<BoxError>,
    J: Classify<Svc::Response, BoxError>,
    R: Deref<Target = SendRate> + Clone + Unpin,
    C: Clock + Clone + Unpin,
    Z: Sleep + Clone + Unpin,
{
    type Output = Result<J::Answer<Rated<R, C, Z>>, BoxError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            match this.stage.as_mut().project() {
                StageProj::InLine { turn } => {
                    let taken = ready!(turn.poll(context));
                    this.stage.set(Stage::Done);
                    let permit = match taken.map_err(Refused::from) {
                        Ok(permit) => permit,
                        Err(refused) => return Poll::Ready(this.classifier.refused(refused)),
                    };
                    let Some((mut service, request)) = this.unsent.take() else {
                        continue;
                    };
                    let sent = service.call(request);
                    this.stage.set(Stage::UnderWay { sent, permit });
                }
                StageProj::UnderWay { sent, permit } => {
                    let result = ready!(sent.poll(context)).map_err(Into::into);
                    let rated = Rated {
                        limiter: this.limiter.clone(),
                        permit: *permit,
                        success: Outcome::NotThrottled,
                    };
                    this.stage.set(Stage::Done);
                    return Poll::Ready(finish(this.classifier, result, rated));
                }
                StageProj::Done => return Poll::Pending, // polled again after its end
            }
        }
    }
}

/// Gets reports of a response before its outcome.
pub(super) trait Hears: Conclude {
    /// Hands on the limits that a response declares, if the rate obeys them.
    fn observe(&self, limits: impl FnOnce() -> LimitReports);

    /// Settles the true cost of the request.
    fn settle_costs(&mut self, costs: Weights);

    /// Notes the pause that a success asks for.
    fn pause(&mut self, span: Duration);
}

/// Records the outcome if it is known, or leaves it to the answer.
pub(super) fn finish<Res, J, O>(
    classifier: &J,
    result: Result<Res, BoxError>,
    mut rated: O,
) -> Result<J::Answer<O>, BoxError>
where
    J: Classify<Res, BoxError>,
    O: Hears,
{
    if let Ok(response) = &result {
        rated.observe(|| classifier.limits(response));
        if let Some(costs) = classifier.costs(response) {
            rated.settle_costs(costs);
        }
        if let Some(span) = classifier.pause(response) {
            rated.pause(span);
        }
    }
    let outcome = match classifier.classify(result.as_ref()) {
        None => Some(rated),
        Some(failure) => {
            rated.conclude(Some(&failure));
            None
        }
    };
    match result {
        Ok(response) => Ok(classifier.answer(response, outcome)),
        Err(error) => {
            succeeded(outcome); // an error that counts as none
            Err(error)
        }
    }
}

/// A sent request whose outcome is not recorded yet.
pub struct Rated<R, C, Z> {
    limiter: SendLimiter<R, C, Z>,
    permit: SendPermit,
    /// The outcome to record for a success.
    success: Outcome,
}

impl<R: Deref<Target = SendRate>, C: Clock, Z> Hears for Rated<R, C, Z> {
    fn observe(&self, limits: impl FnOnce() -> LimitReports) {
        if self.limiter.send_rate().law() == ControlLaw::Declared {
            self.limiter.observe(self.permit, &limits());
        }
    }

    // Each request takes one token, without an estimate.
    fn settle_costs(&mut self, _costs: Weights) {}

    fn pause(&mut self, span: Duration) {
        self.success = Outcome::PauseAfter(span);
    }
}

impl<R: Deref<Target = SendRate>, C: Clock, Z> Conclude for Rated<R, C, Z> {
    fn conclude(self, failure: Option<&Failure>) {
        let outcome = failure.map_or(self.success, Outcome::from);
        self.limiter.record(self.permit, outcome);
    }
}

impl<R: fmt::Debug, C: fmt::Debug, Z> fmt::Debug for Rated<R, C, Z> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rated")
            .field("limiter", &self.limiter)
            .field("permit", &self.permit)
            .field("success", &self.success)
            .finish()
    }
}

impl<Svc, Req, J, R, C, Z> fmt::Debug for SendRateFuture<Svc, Req, J, R, C, Z>
where
    Svc: Service<Req>,
    R: Deref<Target = SendRate>,
    C: Clock,
    Z: Sleep,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.stage {
            Stage::InLine { .. } => "in line",
            Stage::UnderWay { .. } => "under way",
            Stage::Done => "done",
        };
        f.debug_tuple("SendRateFuture").field(&stage).finish()
    }
}
