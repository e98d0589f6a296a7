//! The attempt of an outer loop, as the inner loops see it.

use core::{
    cell::Cell,
    future::{Future, poll_fn},
    pin::pin,
};

std::thread_local! {
    /// The outer attempt that runs on this thread now.
    static CURRENT: Cell<Option<OuterAttempt>> = const { Cell::new(None) };
}

/// An attempt of a retry loop that is under way, as the inner loops see it. Inner loops send once,
/// because only the outermost loop sends a request again.
///
/// Retries upon retries multiply: three loops of 4, 3 and 4 attempts send one request 48 times to a
/// service that is down. So paceline's loops mark their calls. A loop that finds the mark waits for
/// its turn, sends once and records the outcome. After a failure that it would have retried, it
/// takes no quota and stops with [`LeftToOuter`](crate::operation::StopReason::LeftToOuter). The
/// outer loop classifies that failure, pays from its quota, and sends again.
///
/// # Where it is seen
///
/// The mark is a value of the thread. A blocking loop sets the mark while it calls its operation,
/// and an asynchronous loop sets it during each poll of an attempt's future.
///
/// | what runs inside of the attempt | finds the mark |
/// |---|---|
/// | what the operation calls, or awaits | yes |
/// | futures that it joins or selects among | yes |
/// | a task that it spawns, another thread | no, unless it is carried there |
/// | a request with it among its extensions, in paceline's adapters for HTTP | yes, in any task |
///
/// [`current`](Self::current) and [`within_async`] carry the mark into a task. A value that is
/// created on first use, by the first request, is created inside the attempt of this request.
///
/// # Loops that set no mark
///
/// - [Composites](crate::Operation::composite), whose parts are separate requests.
/// - Operations that get one attempt only, and attempts whose request cannot be sent again
///   ([`set_repeatable`](crate::operation::Attempts::set_repeatable)). The inner loop retries then.
/// - Loops of other crates. [`within`] and [`within_async`] mark their attempts.
///
/// # Examples
///
/// ```
/// use paceline::{Failure, RetryStrategyExt, Standard, operation::StopReason};
///
/// let (outer, inner) = (Standard::new(), Standard::new());
/// let mut sends = 0;
/// let stopped = outer.run(|_| {
///     let stopped = inner.run(|_| {
///         sends += 1;
///         Err::<(), _>(Failure::throttling())
///     });
///     let stopped = stopped.unwrap_err();
///     assert_eq!(stopped.why(), StopReason::LeftToOuter);
///     Err::<(), _>(stopped.into_error().unwrap())
/// });
/// assert_eq!((stopped.unwrap_err().attempts(), sends), (3, 3)); // not 9
/// assert_eq!(inner.quota().available(), 500);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OuterAttempt {
    /// 0 if the number is not known.
    number: u32,
    max: Option<u32>,
}

impl OuterAttempt {
    /// Creates the mark of an attempt of another crate's loop, whose number is not known.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            number: 0,
            max: None,
        }
    }

    pub(super) const fn of(number: u32, max: Option<u32>) -> Self {
        Self { number, max }
    }

    /// Returns the outer attempt that runs on this thread now, to carry it into a task or a thread.
    /// `None` if there is no outer attempt.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::thread;
    /// use paceline::operation::{OuterAttempt, within};
    ///
    /// within(Some(OuterAttempt::new()), || {
    ///     let outer = OuterAttempt::current();
    ///     thread::scope(|threads| {
    ///         threads.spawn(|| assert_eq!(OuterAttempt::current(), None));
    ///         threads.spawn(|| within(outer, || assert_eq!(OuterAttempt::current(), outer)));
    ///     });
    /// });
    /// assert_eq!(OuterAttempt::current(), None);
    /// ```
    #[must_use]
    pub fn current() -> Option<Self> {
        // A thread that ends has no outer attempt.
        CURRENT.try_with(Cell::get).ok().flatten()
    }

    /// Returns the number of the attempt, 1 for the first, or `None` if it is not known.
    #[must_use]
    pub const fn number(&self) -> Option<u32> {
        match self.number {
            0 => None,
            number => Some(number),
        }
    }

    /// Returns the most attempts there may be, or `None` if there is no limit or it is not known.
    #[must_use]
    pub const fn max(&self) -> Option<u32> {
        self.max
    }
}

/// Puts the former mark back, also when a panic passes.
struct Before(Option<OuterAttempt>);

impl Drop for Before {
    fn drop(&mut self) {
        let _ended = CURRENT.try_with(|current| current.set(self.0));
    }
}

/// Calls `send` as the attempt `outer` of a loop. Paceline's loops inside `send` send once.
///
/// With `None` the mark does not change. An attempt that is under way already stays the outer
/// attempt.
pub fn within<T>(outer: Option<OuterAttempt>, send: impl FnOnce() -> T) -> T {
    let Some(outer) = outer else {
        return send();
    };
    let before = CURRENT.try_with(|current| current.replace(Some(outer)));
    let _before = before.ok().map(Before);
    send()
}

/// Awaits `send` as the attempt `outer` of a loop, like [`within`].
///
/// # Examples
///
/// A loop of another crate, and a task that the attempt spawns:
///
/// ```
/// # #[cfg(feature = "tokio")] {
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use paceline::{Failure, RetryStrategyExt, Standard};
/// use paceline::operation::{OuterAttempt, within_async};
///
/// async fn fetch() -> u32 {
///     let stopped = Standard::new().run_async(async |_| Err::<(), _>(Failure::transient())).await;
///     stopped.unwrap_err().attempts()
/// }
///
/// let attempts = within_async(Some(OuterAttempt::new()), async {
///     let spawned = tokio::spawn(within_async(OuterAttempt::current(), fetch()));
///     (fetch().await, spawned.await.unwrap())
/// });
/// assert_eq!(attempts.await, (1, 1));
/// # }
/// # main() }
/// ```
pub async fn within_async<F: Future>(outer: Option<OuterAttempt>, send: F) -> F::Output {
    let mut send = pin!(send);
    poll_fn(|cx| within(outer, || send.as_mut().poll(cx))).await
}
