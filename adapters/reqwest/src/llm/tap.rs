//! A body that is scanned on its way to the caller.

use alloc::sync::Arc;
use core::{
    error::Error,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use paceline::strategy::AttemptCharge;
use reqwest::{Body, Response};

use super::{
    Counting, Shared, Tokens,
    counts::one,
    events::Framing,
    scan::{Scan, Usage},
    tokens::{clamped, of_text},
};
use crate::body::with_body;

/// What it takes to settle a response when it ends.
pub(super) struct Account {
    pub(super) shared: Arc<Shared>,
    pub(super) counting: Counting,
    pub(super) estimate: Tokens,
    pub(super) charge: AttemptCharge,
}

/// Settles `account` when the body of `response` ends.
pub(super) fn tapped(response: Response, account: Account) -> Response {
    let framing = framing(&response);
    with_body(response, |body| {
        Body::wrap(Tap {
            body,
            framing,
            scan: Scan::default(),
            ended: false,
            account,
        })
    })
}

fn framing(response: &Response) -> Framing {
    let Some(kind) = response.headers().get(http::header::CONTENT_TYPE) else {
        return Framing::Json;
    };
    let kind = kind.as_bytes().trim_ascii_start();
    let is = |name: &[u8]| {
        let start = kind.get(..name.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(name))
    };
    if is(b"text/event-stream") {
        Framing::events()
    } else if is(b"application/") || is(b"text/") {
        Framing::Json
    } else {
        Framing::None
    }
}

struct Tap {
    body: Body,
    framing: Framing,
    scan: Scan,
    ended: bool,
    account: Account,
}

impl HttpBody for Tap {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(piece) = frame.data_ref() {
                    let Self { framing, scan, .. } = &mut *self;
                    framing.feed(piece, scan);
                }
            }
            Some(Err(_)) => {}
            None => self.ended = true,
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body ended or broke off, or the caller dropped it.
impl Drop for Tap {
    fn drop(&mut self) {
        // A body of a known length is not polled again after its last piece.
        let ended = self.ended || self.body.is_end_stream();
        self.scan.end();
        self.account.close(&self.scan, ended);
    }
}

impl Account {
    /// Settles the usage of the response, if it is known.
    fn close(&self, scan: &Scan, ended: bool) {
        let counts = &self.shared.counts;
        let usage = scan.usage();
        if let Some(Usage {
            input: Some(input),
            output: Some(output),
        }) = usage
        {
            let used = Tokens::new(clamped(input), clamped(output));
            one(&counts.settled);
            counts.used(used);
            self.shared.usual.learn(used.output());
            return self.settle(used);
        }
        one(if scan.is_wrong() {
            &counts.wrong_usage
        } else if ended {
            &counts.without_usage
        } else {
            &counts.cut
        });
        // The unread rest may have cost as much as the estimate.
        let estimate = self.estimate;
        let input = usage.and_then(|usage| usage.input).map(clamped);
        let streamed = clamped(of_text(scan.text()));
        let output = estimate.output().max(streamed);
        let known = Tokens::new(input.unwrap_or(estimate.input()), output);
        if known != estimate {
            self.settle(known);
        }
    }

    fn settle(&self, tokens: Tokens) {
        let costs = self.counting.weights(tokens);
        // Each rate has a cost, or the request would not have been sent. A debit that does not fit
        // a line is left out.
        let _settled = self.charge.settle(costs.as_slice());
    }
}
