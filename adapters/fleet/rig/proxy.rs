//! A proxy between members and the engine: it can be cut, led elsewhere, and be far away.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// A proxy on a free port, until it is dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    port: u16,
    target: Arc<AtomicU16>,
    open: Arc<watch::Sender<bool>>,
    accepting: tokio::task::JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn to(target: u16) -> Self {
        Self::far(target, Duration::ZERO).await
    }

    /// A proxy that adds `round_trip` to each answer, half of it in each direction. Connecting
    /// takes one more.
    pub(crate) async fn far(target: u16, round_trip: Duration) -> Self {
        Self::shaky(target, round_trip, Duration::ZERO).await
    }

    /// The proxy of [`far`](Self::far). Each piece takes up to `jitter` more, in each direction.
    pub(crate) async fn shaky(target: u16, round_trip: Duration, jitter: Duration) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let open = Arc::new(watch::Sender::new(true));
        let switch = Arc::clone(&open);
        let target = Arc::new(AtomicU16::new(target));
        let towards = Arc::clone(&target);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                if *switch.borrow() {
                    let target = towards.load(Relaxed);
                    tokio::spawn(join(
                        stream,
                        target,
                        switch.subscribe(),
                        [round_trip, jitter],
                    ));
                }
            }
        });
        Self {
            port,
            target,
            open,
            accepting,
        }
    }

    pub(crate) fn address(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Cuts every connection, and each new one at once.
    pub(crate) fn cut(&self) {
        self.open.send_replace(false);
    }

    /// Leads new connections elsewhere.
    pub(crate) fn turn_to(&self, target: u16) {
        self.target.store(target, Relaxed);
    }

    pub(crate) fn join(&self) {
        self.open.send_replace(true);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn join(
    near: TcpStream,
    target: u16,
    mut open: watch::Receiver<bool>,
    [round_trip, jitter]: [Duration; 2],
) {
    let Ok(far) = TcpStream::connect(("127.0.0.1", target)).await else {
        return;
    };
    let _undelayed = (near.set_nodelay(true), far.set_nodelay(true));
    tokio::time::sleep(round_trip).await; // the handshake
    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
    tokio::select! {
        () = carry(near_in, far_out, [round_trip / 2, jitter]) => {}
        () = carry(far_in, near_out, [round_trip / 2, jitter]) => {}
        _ = open.wait_for(|open| !open) => {}
    }
}

/// Copies what comes, each piece `later` than it came and up to `jitter` more, in their order.
async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    [later, jitter]: [Duration; 2],
) {
    let (sender, mut pieces) = mpsc::unbounded_channel();
    let reading = async {
        let mut piece = vec![0; 65_536];
        while let Ok(length @ 1..) = from.read(&mut piece).await {
            let later = later + jitter.mul_f64(fastrand::f64());
            if sender
                .send((Instant::now() + later, piece[..length].to_vec()))
                .is_err()
            {
                return;
            }
        }
    };
    let writing = async {
        while let Some((due, piece)) = pieces.recv().await {
            tokio::time::sleep_until(due).await;
            if to.write_all(&piece).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = reading => {}
        () = writing => {}
    }
}
