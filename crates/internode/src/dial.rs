//! Opens a connection to another node: TCP, TLS, greetings.

use std::net::SocketAddr;
use std::sync::Arc;

use ilion_cluster::Node;
use ilion_protocol::{Opcode, Response, ResponseFrame, Role};
use ilion_tls::{Encryption, Socket};
use tokio::net::TcpStream;

use crate::hello::{Hello, Identity, NEWEST, OLDEST, Reply};
use crate::receiver::{Found, Receiver};
use crate::sender::append_envelope;
use crate::strangers::printable;

/// An open connection.
pub(crate) struct Opened {
    pub socket: Arc<Socket>,
    pub receiver: Receiver,
}

/// Connects to a node.
///
/// # Errors
/// The node cannot be reached, or refuses this one; the text says why.
pub(crate) async fn dial(
    address: SocketAddr,
    node: Node,
    this: &Identity,
    encryption: Option<&Encryption>,
) -> Result<Opened, String> {
    let tcp = TcpStream::connect(address)
        .await
        .map_err(|error| error.to_string())?;
    // Messages are written whole: Nagle's algorithm would only delay them.
    tcp.set_nodelay(true).map_err(|error| error.to_string())?;
    let config = encryption.map(|encryption| {
        encryption
            .connecting_config()
            .ok_or("its encryption is for accepting only")
    });
    let socket = Socket::connected(tcp, config.transpose()?).map_err(|error| error.to_string())?;
    let hello = Hello {
        oldest: OLDEST,
        newest: NEWEST,
        identity: *this,
        wanted: node,
    };
    let mut bytes = Vec::new();
    append_envelope(&mut bytes, Opcode::NodeRequest, 0, |out| {
        out.bytes(&hello.encode());
    })?;
    let is_encrypted = encryption.is_some();
    let explain = |error: std::io::Error| explain(&error, is_encrypted);
    write_all(&socket, &bytes).await.map_err(explain)?;
    let mut receiver = Receiver::new(Role::Client);
    let reply = loop {
        match receiver.frame() {
            Ok(Some(frame)) => break Reply::decode(&frame.body).map_err(|error| error.to_string())?,
            Ok(None) => {}
            Err(error) => return Err(of_cql(receiver.peek()).unwrap_or_else(|| error.to_string())),
        }
        socket.readable().await.map_err(explain)?;
        let found = receiver.read(&socket).map_err(explain)?;
        if socket.has_unsent() {
            flush(&socket).await.map_err(explain)?;
        }
        if let Some(answer) = of_cql(receiver.peek()) {
            return Err(answer);
        }
        if found == Found::End {
            return Err(closed_early(is_encrypted));
        }
    };
    match reply {
        Reply::Refused(reason) => Err(format!("it refuses: {reason}")),
        Reply::Welcome { node: answered, .. } if answered != node => {
            Err(format!("node {answered} answers there, instead of node {node}"))
        }
        Reply::Welcome { .. } => {
            receiver.open();
            Ok(Opened {
                socket: Arc::new(socket),
                receiver,
            })
        }
    }
}

fn closed_early(is_encrypted: bool) -> String {
    let hint = match is_encrypted {
        true => {
            "does it encrypt, too (server_encryption_options), and does it trust the certificate of this node?"
        }
        false => {
            "does it encrypt (server_encryption_options), and is the port that for other nodes (storage_port)?"
        }
    };
    format!("it closed the connection at once: {hint}")
}

/// Adds what the operator can do about an error of TLS.
fn explain(error: &std::io::Error, is_encrypted: bool) -> String {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset, InvalidData};
    match error.kind() {
        InvalidData => format!("TLS failed ({error}): check server_encryption_options of both nodes"),
        ConnectionReset | BrokenPipe => format!("{error}: {}", closed_early(is_encrypted)),
        _ => error.to_string(),
    }
}

/// The message about a port that answers in CQL; `None` if the bytes are no such answer, or only its start.
fn of_cql(bytes: &[u8]) -> Option<String> {
    let mut decoder = ilion_protocol::FrameDecoder::new(Role::Client, ilion_protocol::Limits::default());
    let frame = decoder.decode(&mut bytes.into()).ok()??;
    let said = match ResponseFrame::decode(&frame).ok()?.response {
        Response::Error(error) => error.message.clone(),
        _ => printable(&frame.body),
    };
    Some(format!(
        "its port answers as one for CQL clients ({said}): other nodes connect to storage_port"
    ))
}

/// Sends all of the bytes.
pub(crate) async fn write_all(socket: &Socket, bytes: &[u8]) -> std::io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match socket.try_write_vectored(&[std::io::IoSlice::new(rest)]) {
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => socket.writable().await?,
            Err(error) => return Err(error),
        }
    }
    flush(socket).await
}

/// Sends encrypted bytes that are still here.
pub(crate) async fn flush(socket: &Socket) -> std::io::Result<()> {
    loop {
        match socket.flush() {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => socket.writable().await?,
            result => return result,
        }
    }
}
