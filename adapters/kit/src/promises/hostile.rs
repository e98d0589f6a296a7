//! Refusals whose bodies are hostile.

use alloc::sync::Arc;
use core::{
    future::{Future, pending},
    sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::{Instant, timeout},
};

/// The deadline of the clients of [`a_hostile_body_is_bounded`].
pub const BODY_DEADLINE: Duration = Duration::from_secs(1);

/// The most bytes that a server may send before it notices that the client has stopped reading.
const IN_BUFFERS: usize = 16 << 20;

/// The body of a 429.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hostile {
    /// A gigabyte, with its length announced.
    Gigabyte,
    /// Chunks without end.
    Endless,
    /// The beginning of a body, and no more.
    Stalled,
    /// Bytes that are no text.
    NoText,
    /// Shorter than announced.
    Cut,
}

/// The requests that the server has seen, and the bytes that it has sent.
#[derive(Default)]
struct Seen {
    requests: AtomicU32,
    sent: AtomicUsize,
}

impl Hostile {
    async fn answer(self, stream: &mut TcpStream, seen: &Seen) -> std::io::Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        seen.requests.fetch_add(1, Relaxed);
        let length = match self {
            Self::Endless => "transfer-encoding: chunked",
            Self::Gigabyte => "content-length: 1073741824",
            Self::Stalled | Self::Cut => "content-length: 100",
            Self::NoText => "content-length: 4",
        };
        let head = format!("HTTP/1.1 429 Too Many Requests\r\n{length}\r\n\r\n");
        stream.write_all(head.as_bytes()).await?;
        let piece = vec![b'x'; 0x4000];
        match self {
            Self::NoText => stream.write_all(&[0xff, 0xfe, 0, 0xc3]).await?,
            Self::Cut => {
                stream.write_all(b"{\"error\":").await?;
                stream.shutdown().await?;
            }
            Self::Stalled => {
                stream.write_all(b"{\"error\":").await?;
                pending::<()>().await;
            }
            Self::Gigabyte | Self::Endless => loop {
                if self == Self::Endless {
                    stream.write_all(b"4000\r\n").await?;
                }
                stream.write_all(&piece).await?;
                if self == Self::Endless {
                    stream.write_all(b"\r\n").await?;
                }
                seen.sent.fetch_add(piece.len(), Relaxed);
            },
        }
        Ok(())
    }

    async fn serve(self) -> (String, Arc<Seen>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        let seen = Arc::<Seen>::default();
        let noted = seen.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let noted = noted.clone();
                tokio::spawn(async move {
                    // Until the client closes the connection.
                    while self.answer(&mut stream, &noted).await.is_ok() {}
                });
            }
        });
        (url, seen)
    }
}

/// A client that wants the bodies of refusals bounds a hostile body in size and time, and returns
/// the answer.
///
/// `get` sends one request by a strategy of three attempts without a backoff and with
/// [`BODY_DEADLINE`], and returns the answer as text.
pub async fn a_hostile_body_is_bounded<F: Future<Output = String>>(get: impl Fn(String) -> F) {
    use Hostile::{Cut, Endless, Gigabyte, NoText, Stalled};

    for (hostile, requests) in [
        (Gigabyte, 3),
        (Endless, 3),
        (Stalled, 1),
        (NoText, 3),
        (Cut, 3),
    ] {
        let (url, seen) = hostile.serve().await;
        let begun = Instant::now();
        let said = timeout(BODY_DEADLINE * 5, get(url)).await;
        let said = said.unwrap_or_else(|_| panic!("{hostile:?}: it does not end"));
        assert!(said.contains("429"), "{hostile:?}: {said:.200}");
        assert!(said.len() < 0x2_0000, "{hostile:?}: {} bytes", said.len());
        let took = begun.elapsed();
        assert!(took < BODY_DEADLINE * 3 / 2, "{hostile:?}: {took:?}");
        assert_eq!(seen.requests.load(Relaxed), requests, "{hostile:?}");
        let sent = seen.sent.load(Relaxed);
        assert!(sent < 3 * IN_BUFFERS, "{hostile:?}: {sent} bytes");
    }
}
