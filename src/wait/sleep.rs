//! How tasks sleep, whatever the runtime.

use alloc::boxed::Box;
use core::{
    any::type_name,
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

/// A runtime's way to sleep, which creates the timers.
///
/// The trait is generic rather than `dyn`, so that waiting allocates and calls indirectly only if
/// the timer of the caller's runtime does. If the timer has to be chosen at run time, `Timer` may
/// be a `Box<dyn Timer>`.
///
/// [`DefaultSleep`] uses tokio's timer with the feature `tokio`. `AsyncIoSleep` uses smol's timer
/// with the feature `async-io`.
///
/// # Examples
///
/// For a clock that a test moves by hand, a timer that never fires:
///
/// ```
/// use core::{task::{Context, Poll}, time::Duration};
/// use paceline::wait::{Sleep, Timer};
///
/// #[derive(Debug)]
/// struct Never;
///
/// impl Sleep for Never {
///     type Timer = Box<dyn Timer>;
///     fn timer(&self) -> Self::Timer {
///         Box::new(Never)
///     }
/// }
///
/// impl Timer for Never {
///     fn arm(&mut self, _: Duration) {}
///     fn poll_elapsed(&mut self, _: &mut Context<'_>) -> Poll<()> {
///         Poll::Pending
///     }
/// }
/// ```
pub trait Sleep {
    /// One sleeper's timer.
    type Timer: Timer;

    /// Creates a timer that is not armed.
    fn timer(&self) -> Self::Timer;
}

/// A timer that is armed over and over, without an allocation after the first time.
pub trait Timer: Send + Unpin {
    /// Lets the timer fire `span` from now. An earlier setting no longer counts.
    fn arm(&mut self, span: Duration);

    /// Returns whether the timer has fired since it was armed. If not, the timer wakes the task
    /// once it fires.
    ///
    /// A timer that is not armed may return either. A timer may fire early, because the waiter
    /// looks at its own clock.
    fn poll_elapsed(&mut self, cx: &mut Context<'_>) -> Poll<()>;
}

impl<Z: Sleep + ?Sized> Sleep for &Z {
    type Timer = Z::Timer;

    fn timer(&self) -> Self::Timer {
        (**self).timer()
    }
}

impl<T: Timer + ?Sized> Timer for Box<T> {
    fn arm(&mut self, span: Duration) {
        (**self).arm(span);
    }

    fn poll_elapsed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        (**self).poll_elapsed(cx)
    }
}

/// A way to sleep by a function whose future ends when a span is over.
#[derive(Clone, Copy)]
struct SleepFn<F>(F);

/// Lets tasks sleep by `sleep`, whose future ends when a span is over. Each rest allocates one
/// future.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "tokio")] {
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use paceline::{Failure, RetryStrategyExt, Standard, wait::sleep_fn};
///
/// let operation = Standard::new();
/// let operation = operation.operation().sleep_on(sleep_fn(tokio::time::sleep));
/// assert_eq!(operation.run_async(async |_| Ok::<_, Failure>(42)).await.unwrap(), 42);
/// # }
/// # main() }
/// ```
pub const fn sleep_fn<F, T>(sleep: F) -> impl Sleep + Clone + Send + Unpin
where
    F: Fn(Duration) -> T + Clone + Send + Unpin,
    T: Future<Output = ()> + Send,
{
    SleepFn(sleep)
}

impl<F, T> Sleep for SleepFn<F>
where
    F: Fn(Duration) -> T + Clone + Send + Unpin,
    T: Future<Output = ()> + Send,
{
    type Timer = (F, Option<Pin<Box<T>>>);

    fn timer(&self) -> Self::Timer {
        (self.0.clone(), None)
    }
}

/// The function, and the future that it returned. `None` once the future has ended, because it must
/// not be polled again.
impl<F, T> Timer for (F, Option<Pin<Box<T>>>)
where
    F: Fn(Duration) -> T + Send + Unpin,
    T: Future<Output = ()> + Send,
{
    fn arm(&mut self, span: Duration) {
        self.1 = Some(Box::pin((self.0)(span)));
    }

    fn poll_elapsed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(timer) = &mut self.1 else {
            return Poll::Ready(());
        };
        let elapsed = timer.as_mut().poll(cx);
        if elapsed.is_ready() {
            self.1 = None;
        }
        elapsed
    }
}

/// Threads park; tasks sleep by tokio's timer, with the feature `tokio`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct DefaultSleep;

impl DefaultSleep {
    /// Creates the way to sleep.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

/// The name of a way to sleep, which need not be `Debug`, without its path and in no quotes.
struct Name(&'static str);

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Returns the name of the type for `Debug`.
pub(crate) fn name_of<Z>() -> impl fmt::Debug {
    let whole = type_name::<Z>();
    let path = whole.split('<').next().unwrap_or(whole);
    Name(path.rsplit("::").next().unwrap_or(path))
}
