//! [`Starting`]: answers on the ports of a node that starts, so that those who wait see how far it is.
//!
//! A start takes long if there is much of the commit log to replay, or data to copy from other nodes.
//!
//! - Operators: see `admin::starting`.
//! - CQL clients: the first request gets the error 0x1002 (bootstrapping) with the reason, and the connection ends. Drivers
//!   try again, as after a refused connection. The port is open only from [`CLIENTS_AFTER`] on: most starts take less, and programs that
//!   wait for an open port should find a node that serves. Ports on which clients encrypt stay closed.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use ilion_protocol::{ErrorDetail, ErrorResponse, FrameDecoder, Limits, Response, Role};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::admin::DoorOptions;
use crate::admin::starting::{self, Progress, reason};
use crate::logins::encode_unpacked;
use crate::options::ServerOptions;
use crate::port::{ClientPorts, Port};
use crate::server::{StartError, runtime_of};

/// How long a start takes before clients get an answer.
const CLIENTS_AFTER: Duration = Duration::from_secs(2);
/// How long a client may take for its first request.
const CLIENT_TIME_MAX: Duration = Duration::from_secs(5);
/// Most clients at a time; others wait.
const CLIENTS_MAX: usize = 128;
const REQUEST_BYTES_MAX: u32 = 64 << 10;
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Answers until it is dropped. Connections that nobody has accepted then stay for the server.
pub struct Starting {
    runtime: Option<Runtime>,
}

impl Starting {
    /// Begins to answer on the ports that the node has taken.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn begin(
        clients: (&ClientPorts, &ServerOptions),
        admin: (&Port, &DoorOptions),
        progress: &Progress,
    ) -> Result<Self, StartError> {
        Self::begin_after(CLIENTS_AFTER, clients, admin, progress)
    }

    fn begin_after(
        clients_after: Duration,
        (clients, options): (&ClientPorts, &ServerOptions),
        (admin, door): (&Port, &DoorOptions),
        progress: &Progress,
    ) -> Result<Self, StartError> {
        let runtime = runtime_of("ilion-waiting", 1)?;
        let entered = runtime.enter();
        let listener = admin.twin()?.listen()?;
        runtime.spawn(starting::answer(listener, door, progress.clone()));
        let is_encrypted = options.tls.is_some() && clients.encrypted.is_none();
        if !is_encrypted {
            let port = clients.main.twin()?;
            let progress = progress.clone();
            runtime.spawn(async move {
                sleep(clients_after).await;
                answer_clients(port, progress).await;
            });
        }
        drop(entered);
        Ok(Self {
            runtime: Some(runtime),
        })
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // The listeners are closed when this returns.
            runtime.shutdown_timeout(Duration::from_secs(1));
        }
    }
}

async fn answer_clients(port: Port, progress: Progress) {
    let listener = match port.listen() {
        Ok(listener) => listener,
        Err(error) => {
            tracing::warn!(%error, "clients cannot be told that the node starts");
            return;
        }
    };
    tracing::info!("the start takes a while; clients are told how far it is");
    let places = Arc::new(Semaphore::new(CLIENTS_MAX));
    loop {
        // The semaphore is never closed.
        let Ok(place) = places.clone().acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_RETRY).await;
            continue;
        };
        let progress = progress.clone();
        tokio::spawn(async move {
            // A client that goes away needs no answer.
            let _ = timeout(CLIENT_TIME_MAX, answer_client(stream, &progress)).await;
            drop(place);
        });
    }
}

async fn answer_client(mut stream: TcpStream, progress: &Progress) -> io::Result<()> {
    let limits = Limits {
        max_frame_bytes: REQUEST_BYTES_MAX,
    };
    let mut decoder = FrameDecoder::new(Role::Server, limits);
    let mut buffer = BytesMut::new();
    loop {
        match decoder.decode(&mut buffer) {
            Ok(None) => {
                if stream.read_buf(&mut buffer).await? == 0 {
                    return Ok(());
                }
            }
            Ok(Some(frame)) => {
                let error = ErrorResponse::new(ErrorDetail::Bootstrapping, reason(progress));
                let bytes = encode_unpacked(frame.version, frame.stream, &Response::Error(error));
                stream.write_all(&bytes).await?;
                return stream.shutdown().await;
            }
            // The client may speak an unknown version of the protocol: the answer names those that are known.
            Err(error) => {
                let mut bytes = Vec::new();
                error.encode_answer(&mut bytes);
                stream.write_all(&bytes).await?;
                return stream.shutdown().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::sync::Arc;
    use std::time::Duration;

    use ilion_settings::Settings;

    use super::Starting;
    use crate::admin::DoorOptions;
    use crate::admin::starting::Progress;
    use crate::options::ServerOptions;
    use crate::port::{ClientPorts, Entrance, Port};

    const OPTIONS_V4: [u8; 9] = [4, 0, 0, 7, 5, 0, 0, 0, 0];

    /// What a port answers until it ends the connection; `None` if it is closed.
    fn ask(address: SocketAddr, request: &[u8]) -> Option<Vec<u8>> {
        let mut stream = match TcpStream::connect(address) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => return None,
            connected => connected.unwrap(),
        };
        stream.write_all(request).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        Some(answer)
    }

    fn get(address: SocketAddr, path: &str) -> String {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        String::from_utf8(ask(address, request.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn ports_of_a_node_that_starts_tell_how_far_it_is() {
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let options = ServerOptions {
            address: nowhere,
            ..ServerOptions::of(&Settings::default())
        };
        let clients = ClientPorts::take(&options).unwrap();
        let admin = Port::take(Entrance::Administration, nowhere).unwrap();
        let door = DoorOptions::of_this_machine(Duration::from_secs(10));
        let begin = |after| {
            let progress: Progress = Arc::new(|| "it opens its data directory".to_owned());
            Starting::begin_after(after, (&clients, &options), (&admin, &door), &progress).unwrap()
        };

        // A start that takes no time: clients find a closed port.
        let starting = begin(Duration::from_secs(3600));
        assert_eq!(ask(clients.main.address(), &OPTIONS_V4), None);
        assert!(get(admin.address(), "/healthz").ends_with("ok\n"));
        drop(starting);

        let starting = begin(Duration::ZERO);
        let answer = std::iter::repeat_with(|| ask(clients.main.address(), &OPTIONS_V4));
        let answer = answer.flatten().next().unwrap();
        let reason = "the node is starting: it opens its data directory; try again later";
        assert_eq!(answer[..5], [0x84, 0, 0, 7, 0]);
        assert_eq!(answer[9..13], [0, 0, 0x10, 0x02]);
        assert!(answer.ends_with(reason.as_bytes()), "{answer:?}");
        // A newer version of the protocol is answered with those that are known.
        let answer = ask(clients.main.address(), &[0x46, 0, 0, 7, 5, 0, 0, 0, 0]).unwrap();
        assert!(String::from_utf8_lossy(&answer).contains("version"), "{answer:?}");
        let ready = get(admin.address(), "/readyz");
        assert!(
            ready.starts_with("HTTP/1.1 503") && ready.ends_with(&format!("{reason}\n")),
            "{ready}"
        );
        let status = get(admin.address(), "/admin/status");
        assert!(
            status.starts_with("HTTP/1.1 503") && status.ends_with(&format!("{{\"error\":\"{reason}\"}}")),
            "{status}"
        );
        drop(starting);

        // The server gets the port, and with it who connects meanwhile.
        let mut early = TcpStream::connect(clients.main.address()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let accepted = runtime.block_on(async { clients.main.listen().unwrap().accept().await.unwrap().0 });
        drop(accepted);
        assert_eq!(early.read(&mut [0]).unwrap(), 0);
    }
}
