//! The time limit of an attempt. It begins when the turn has come.
//!
//! The SDK's own limit begins before the request is signed, and so counts the wait in line.

use alloc::sync::{Arc, Weak};
use core::{
    error::Error,
    fmt,
    future::poll_fn,
    iter::successors,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use aws_smithy_async::rt::sleep::{AsyncSleep as _, SharedAsyncSleep, Sleep};
use aws_smithy_runtime_api::{
    box_error::BoxError,
    client::{http::HttpConnectorFuture, orchestrator::HttpResponse, result::ConnectorError},
};
use aws_smithy_types::{body::SdkBody, config_bag::ConfigBag, timeout::TimeoutConfig};
use http_body::{Body, Frame, SizeHint};
use paceline::operation::{Stop, StopReason};

/// The value of `operation_attempt_timeout`, which applies to each attempt of the operation.
#[derive(Debug)]
pub(crate) struct Limit(Arc<Duration>);

/// A [`Limit`] in the extensions of a request. It applies while the operation is under way, and not
/// to a stream that the user reads.
#[derive(Clone, Debug)]
pub(crate) struct Limited(Weak<Duration>);

impl Limit {
    /// Takes the limit out of the SDK's configuration of the operation, if there is one.
    pub(crate) fn take(bag: &mut ConfigBag) -> Option<Self> {
        let timeouts = bag.load::<TimeoutConfig>()?;
        let span = timeouts.operation_attempt_timeout()?;
        let mut rest = timeouts.to_builder();
        rest.set_operation_attempt_timeout(None);
        bag.interceptor_state().store_put(rest.build());
        Some(Self(Arc::new(span)))
    }

    pub(crate) fn of_request(&self) -> Limited {
        Limited(Arc::downgrade(&self.0))
    }
}

impl Limited {
    /// Sends a request, and waits no longer than the limit for the answer and its body.
    pub(crate) async fn apply(
        self,
        sent: HttpConnectorFuture,
        sleep: &SharedAsyncSleep,
    ) -> Result<HttpResponse, ConnectorError> {
        let Some(span) = self.0.upgrade().map(|span| *span) else {
            return sent.await;
        };
        let mut timer = sleep.sleep(span);
        let mut sent = pin!(sent);
        let mut response = poll_fn(|cx| match sent.as_mut().poll(cx) {
            Poll::Pending => Pin::new(&mut timer)
                .poll(cx)
                .map(|()| Err(ConnectorError::timeout(TimedOut(span).into()))),
            answered @ Poll::Ready(_) => answered,
        })
        .await?;
        if response.body().bytes().is_none() {
            let inner = response.take_body();
            *response.body_mut() = SdkBody::from_body_1_x(LimitedBody {
                inner,
                timer,
                span,
                limit: self.0,
            });
        }
        Ok(response)
    }
}

/// A body that has to end before the timer does, while the operation is under way.
struct LimitedBody {
    inner: SdkBody,
    timer: Sleep,
    span: Duration,
    limit: Weak<Duration>,
}

impl Body for LimitedBody {
    type Data = <SdkBody as Body>::Data;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, BoxError>>> {
        let this = self.get_mut();
        match Pin::new(&mut this.inner).poll_frame(cx) {
            Poll::Pending if this.limit.strong_count() > 0 => Pin::new(&mut this.timer)
                .poll(cx)
                .map(|()| Some(Err(TimedOut(this.span).into()))),
            frame => frame,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        Body::size_hint(&self.inner)
    }
}

/// An attempt took longer than its limit. The message is the same as in the SDK's own error.
#[derive(Clone, Copy, Debug)]
struct TimedOut(Duration);

/// Returns the time limit that caused `error`: of the attempt, or of an operation whose turn would
/// not have come in time.
pub(crate) fn behind(error: &(dyn Error + 'static)) -> Option<BoxError> {
    successors(Some(error), |&error| error.source()).find_map(|error| {
        let stop = error.downcast_ref::<Stop>();
        let stop = stop.filter(|stop| matches!(stop.why(), StopReason::OutOfTime { .. }));
        let timed_out = error.downcast_ref::<TimedOut>();
        timed_out
            .map(|&late| late.into())
            .or_else(|| stop.map(|stop| stop.clone().into()))
    })
}

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(span) = self;
        write!(
            f,
            "operation attempt timeout (single attempt) occurred after {span:?}"
        )
    }
}

impl Error for TimedOut {}
