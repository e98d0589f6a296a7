//! An object service on its own port: PUT, GET and server-side copy, with a limit on each kind.

use alloc::sync::Arc;
use core::{
    convert::Infallible,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};
use std::{
    io,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request, Response,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::sleep,
};

use crate::{
    ledger::{Ledger, Verdict},
    policer::Policer,
    s3::{self, ServiceError},
    store::Store,
};

/// What a service allows, and how long it takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Reads (GET) a second.
    pub(crate) reads: u32,
    /// Writes (PUT, copies included) a second.
    pub(crate) writes: u32,
    /// Requests of either kind that are served at once after a pause.
    pub(crate) burst: u32,
    /// The time from a request to its answer, whatever the answer is.
    pub(crate) latency: Duration,
}

/// A running service. Dropping it closes its port.
#[derive(Debug)]
pub(crate) struct Service {
    shared: Arc<Shared>,
    address: SocketAddr,
    listener: JoinHandle<()>,
}

impl Service {
    /// Opens a port on loopback and serves the sources of a run of `objects` objects.
    pub(crate) async fn start(limits: Limits, objects: u32) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let state = State {
            reads: Policer::new(limits.reads, limits.burst),
            writes: Policer::new(limits.writes, limits.burst),
            store: Store::with_sources(objects),
            ledger: Ledger::default(),
        };
        let shared = Arc::new(Shared {
            opened: Instant::now(),
            latency: limits.latency,
            state: Mutex::new(state),
        });
        let listener = tokio::spawn(listen(listener, Arc::clone(&shared)));
        Ok(Self {
            shared,
            address,
            listener,
        })
    }

    /// Returns the address that the service listens on.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the time since it opened: the clock of its limits and of its ledger.
    pub(crate) fn age(&self) -> Duration {
        self.shared.opened.elapsed()
    }

    /// Returns what the service has counted so far.
    pub(crate) fn ledger(&self) -> Ledger {
        self.shared.state().ledger.clone()
    }

    /// Returns how many of the run's `objects` it holds a right copy of.
    pub(crate) fn copies(&self, objects: u32) -> u64 {
        self.shared.state().store.copies(objects)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

#[derive(Debug)]
struct Shared {
    opened: Instant,
    latency: Duration,
    state: Mutex<State>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides at once, answers after the latency.
    async fn serve(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        let now = self.opened.elapsed();
        let call = Call::read(request).await;
        let answer = self.state().answer(now, call);
        sleep(self.latency).await;
        Ok(response(answer))
    }
}

/// One request, as far as the service looks at it.
#[derive(Debug)]
enum Call {
    Get { path: String },
    Put { path: String, body: Bytes },
    Copy { from: String, to: String },
    Unknown(ServiceError),
}

impl Call {
    async fn read(request: Request<Incoming>) -> Self {
        let path = request.uri().path().to_owned();
        let from = request.headers().get(s3::COPY_SOURCE);
        let from = from
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        match (request.method(), from) {
            (&Method::GET, _) => Self::Get { path },
            (&Method::PUT, Some(from)) => Self::Copy { from, to: path },
            (&Method::PUT, None) => match request.into_body().collect().await {
                Ok(body) => Self::Put {
                    path,
                    body: body.to_bytes(),
                },
                Err(_) => Self::Unknown(ServiceError::IncompleteBody),
            },
            _ => Self::Unknown(ServiceError::MethodNotAllowed),
        }
    }
}

#[derive(Debug)]
struct State {
    reads: Policer,
    writes: Policer,
    store: Store,
    ledger: Ledger,
}

impl State {
    /// Carries out `call` if its limit admits it, and enters the answer into the ledger.
    fn answer(&mut self, now: Duration, call: Call) -> Result<Bytes, ServiceError> {
        let (verdict, answer) = match self.carry_out(now, call) {
            Ok((verdict, body)) => (verdict, Ok(body)),
            Err(ServiceError::SlowDown) => (Verdict::Throttled, Err(ServiceError::SlowDown)),
            Err(error) => (Verdict::Rejected, Err(error)),
        };
        self.ledger.enter(now, verdict);
        answer
    }

    fn carry_out(&mut self, now: Duration, call: Call) -> Result<(Verdict, Bytes), ServiceError> {
        let limit = match call {
            Call::Get { .. } => &mut self.reads,
            Call::Put { .. } | Call::Copy { .. } => &mut self.writes,
            Call::Unknown(error) => return Err(error),
        };
        if !limit.admits(now) {
            return Err(ServiceError::SlowDown);
        }
        match call {
            Call::Get { path } => {
                let body = self.store.get(&path).ok_or(ServiceError::NoSuchKey)?;
                Ok((Verdict::Read, body))
            }
            Call::Put { path, body } => {
                self.store.put(&path, body);
                Ok((Verdict::Wrote, Bytes::new()))
            }
            Call::Copy { from, to } => {
                let body = self.store.get(&from).ok_or(ServiceError::NoSuchKey)?;
                self.store.put(&to, body);
                Ok((Verdict::Wrote, Bytes::from(s3::copied())))
            }
            Call::Unknown(error) => Err(error),
        }
    }
}

fn response(answer: Result<Bytes, ServiceError>) -> Response<Full<Bytes>> {
    match answer {
        Ok(body) => Response::new(Full::new(body)),
        Err(error) => {
            let mut response = Response::new(Full::new(Bytes::from(error.body())));
            *response.status_mut() = error.status();
            response
        }
    }
}

async fn listen(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(converse(stream, Arc::clone(&shared)))),
            // Out of file descriptors, most likely: wait until a connection has closed.
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn converse(stream: TcpStream, shared: Arc<Shared>) {
    // Without it, the kernel may hold small answers back; the answers come all the same.
    let _held_back = stream.set_nodelay(true);
    let serve = service_fn(|request| shared.serve(request));
    // An error here is the client's to see: its request goes without an answer, and it counts that.
    let _closed = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), serve)
        .await;
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::{Call, State};
    use crate::{
        ledger::Ledger,
        policer::Policer,
        s3::ServiceError,
        store::{Store, destination, source},
    };

    fn state(reads: u32, writes: u32) -> State {
        State {
            reads: Policer::new(0, reads),
            writes: Policer::new(0, writes),
            store: Store::with_sources(4),
            ledger: Ledger::default(),
        }
    }

    fn copy(number: u32) -> Call {
        Call::Copy {
            from: source(number),
            to: destination(number),
        }
    }

    #[test]
    fn a_copy_over_the_limit_is_refused_and_copies_nothing() {
        let mut state = state(0, 2);
        let answers = [0, 1, 2].map(|number| state.answer(Duration::ZERO, copy(number)).err());
        assert_eq!(answers, [None, None, Some(ServiceError::SlowDown)]);
        assert_eq!(state.store.copies(4), 2);
        assert_eq!((state.ledger.wrote, state.ledger.throttled), (2, 1));
    }

    #[test]
    fn reads_and_writes_have_limits_of_their_own() {
        let mut state = state(1, 0);
        let get = || Call::Get { path: source(0) };
        assert!(state.answer(Duration::ZERO, get()).is_ok());
        let refused = state.answer(Duration::ZERO, copy(0));
        assert_eq!(refused, Err(ServiceError::SlowDown));
        let refused = state.answer(Duration::ZERO, get());
        assert_eq!(refused, Err(ServiceError::SlowDown));
    }

    #[test]
    fn a_copy_of_what_is_not_there_is_no_throttle() {
        let mut state = state(9, 9);
        let answer = state.answer(Duration::ZERO, copy(4));
        assert_eq!(answer, Err(ServiceError::NoSuchKey));
        assert_eq!((state.ledger.rejected, state.ledger.throttled), (1, 0));
    }
}
