//! Accepts HTTP connections, encrypted if there is an [`Encryption`]. A connection that sends no request, or does not read its answer, is
//! closed after a timeout.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Extension;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use ilion_tls::Encryption;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Sleep, sleep};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::entry::Peer;
use crate::certificate::CertificateLogins;
use crate::descriptors::DescriptorReserve;

/// Most connections at a time; others wait.
const CONNECTIONS_MAX: usize = 128;
/// Pause after a failed accept: descriptors may be free by then.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Serves until the runtime ends. A connection is closed if the head of its next request has not arrived after `timeout`,
/// or if its client reads nothing of an answer for that time.
pub(super) async fn serve(listener: TcpListener, router: Router, how: Serving) {
    let Serving {
        timeout,
        encryption,
        certificate_logins,
    } = how;
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut reserve = DescriptorReserve::of_operators(ilion_env::descriptor_limit());
    loop {
        // The semaphore is never closed.
        let Ok(place) = places.clone().acquire_owned().await else {
            return;
        };
        let (stream, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection for administration could not be accepted");
                sleep(ACCEPT_RETRY).await;
                continue;
            }
        };
        if !reserve.admits(&stream) {
            continue;
        }
        let guarded = StallGuard {
            stream,
            timeout,
            deadline: None,
        };
        let acceptor = encryption
            .as_ref()
            .map(|encryption| TlsAcceptor::from(encryption.config()));
        let router = router.clone();
        tokio::spawn(async move {
            let served = match acceptor {
                None => {
                    let peer = Peer {
                        address,
                        identity: None,
                    };
                    serve_one(guarded, router, peer, timeout).await
                }
                Some(acceptor) => match tokio::time::timeout(timeout, acceptor.accept(guarded)).await {
                    Ok(Ok(stream)) => {
                        let identity = identity(&stream, certificate_logins);
                        serve_one(stream, router, Peer { address, identity }, timeout).await
                    }
                    Ok(Err(error)) => Err(error.into()),
                    Err(_) => Err("no handshake of TLS".into()),
                },
            };
            if let Err(error) = served {
                tracing::debug!(%error, "a connection for administration broke");
            }
            drop(place);
        });
    }
}

/// How connections are served.
#[derive(Clone)]
pub(super) struct Serving {
    pub timeout: Duration,
    /// `None` if connections are not encrypted.
    pub encryption: Option<Arc<Encryption>>,
    /// `None` if certificates are not used for logins.
    pub certificate_logins: Option<CertificateLogins>,
}

type Broken = Box<dyn std::error::Error + Send + Sync>;

async fn serve_one(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    peer: Peer,
    timeout: Duration,
) -> Result<(), Broken> {
    let service = TowerToHyperService::new(router.layer(Extension(peer)));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(timeout)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    Ok(served?)
}

/// The identity in the certificate that a client has shown, which TLS has checked.
fn identity(
    stream: &TlsStream<StallGuard>,
    logins: Option<CertificateLogins>,
) -> Option<Result<String, &'static str>> {
    let (_, connection) = stream.get_ref();
    let certificate = connection.peer_certificates()?.first()?;
    Some(logins?.identity(certificate))
}

/// A stream whose writes fail if the client reads nothing for too long.
struct StallGuard {
    stream: TcpStream,
    timeout: Duration,
    /// When the pending write fails; `None` after a write that succeeded.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl StallGuard {
    fn judge<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.deadline = None;
            return written;
        }
        let timeout = self.timeout;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(timeout)));
        ready!(deadline.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for StallGuard {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl AsyncWrite for StallGuard {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.judge(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.judge(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
