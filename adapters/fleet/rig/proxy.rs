//! A proxy between members and the engine, that can be cut and joined again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A proxy on a port of its own, until it is dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    port: u16,
    target: Arc<AtomicU16>,
    open: Arc<watch::Sender<bool>>,
    accepting: tokio::task::JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn to(target: u16) -> Self {
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
                    tokio::spawn(join(stream, target, switch.subscribe()));
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

async fn join(mut near: TcpStream, target: u16, mut open: watch::Receiver<bool>) {
    let Ok(mut far) = TcpStream::connect(("127.0.0.1", target)).await else {
        return;
    };
    tokio::select! {
        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
        _ = open.wait_for(|open| !open) => {}
    }
}
