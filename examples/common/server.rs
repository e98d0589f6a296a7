//! A service on its own port.

use alloc::sync::Arc;
use core::{
    convert::Infallible,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};
use std::io;

use http_body_util::Full;
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, task::JoinHandle, time::sleep};

/// What answers the requests.
pub(crate) trait Serve: Send + Sync + 'static {
    fn serve(
        &self,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<Full<Bytes>>> + Send;
}

/// A running service. Dropping it closes the port.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    listener: JoinHandle<()>,
}

impl Server {
    /// Opens a port on loopback.
    pub(crate) async fn start(service: Arc<impl Serve>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let listener = tokio::spawn(listen(listener, service));
        Ok(Self { address, listener })
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

async fn listen(listener: TcpListener, service: Arc<impl Serve>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file descriptors, most likely: wait until a connection has closed.
            sleep(Duration::from_millis(10)).await;
            continue;
        };
        // Without it the kernel may hold small answers back.
        let _held_back = stream.set_nodelay(true);
        let service = Arc::clone(&service);
        tokio::spawn(async move {
            let serve =
                service_fn(|request| async { Ok::<_, Infallible>(service.serve(request).await) });
            // An error here is the client's to see: its request goes without an answer.
            let _closed = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), serve)
                .await;
        });
    }
}
