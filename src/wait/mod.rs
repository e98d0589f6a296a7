//! Waiting for send tokens: in a task, on a thread, by oneself, or not at all.

#[cfg(feature = "async-io")]
mod async_io;
mod blocking;
mod future;
mod limiter;
mod place;
mod sleep;
#[cfg(feature = "tokio")]
mod tokio;

#[cfg(feature = "async-io")]
pub use self::async_io::{AsyncIoSleep, AsyncIoTimer};
#[cfg(feature = "tokio")]
pub use self::tokio::TokioTimer;
pub(crate) use blocking::block;
pub use future::Acquire;
pub(crate) use future::Alarm;
pub use limiter::{Ask, SendLimiter};
pub use place::PlaceInLine;
pub(crate) use place::{LOOK_AGAIN, Rest};
pub use sleep::{DefaultSleep, Sleep, Timer};
