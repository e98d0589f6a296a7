//! Waiting for send tokens: in a task, on a thread, by your own means, or not at all.

#[cfg(feature = "async-io")]
mod async_io;
mod blocking;
mod future;
pub(crate) mod interrupt;
pub(crate) mod limiter;
mod place;
mod pool;
mod set;
mod sleep;
#[cfg(feature = "tokio")]
mod tokio;
pub(crate) mod waiter;

#[cfg(feature = "async-io")]
pub use self::async_io::AsyncIoSleep;
pub(crate) use blocking::thread_waker;
pub use future::Acquire;
pub use interrupt::Interrupt;
pub use limiter::AcquireRequest;
use limiter::SendLimiter;
pub use paceline_core::{AskedFor, Limit};
pub(crate) use place::{LOOK_AGAIN, Waiting};
pub use place::{PlaceInLine, Rest};
pub(crate) use sleep::name_of;
pub use sleep::{DefaultSleep, Sleep, Timer, sleep_fn};
use waiter::Waiter;
