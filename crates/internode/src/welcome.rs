//! Receives a connection: TLS, the greeting, and the decision whether the node is welcome.

use std::net::SocketAddr;
use std::sync::Arc;

use ilion_protocol::{Opcode, Role};
use ilion_tls::{Connecting, Encryption, Socket, names_address};
use tokio::net::TcpStream;

use crate::dial::flush;
use crate::hello::{Hello, Identity, Reply, judge};
use crate::peers::Peers;
use crate::receiver::{Found, Receiver};
use crate::sender::append_envelope;
use crate::strangers::{CASSANDRA, FirstBytes};

/// A node that is welcome.
pub(crate) struct Welcomed {
    pub socket: Arc<Socket>,
    pub receiver: Receiver,
    pub identity: Identity,
}

/// What decides who is welcome.
pub(crate) struct Door {
    pub identity: Identity,
    pub peers: Arc<dyn Peers>,
    pub encryption: Option<Arc<Encryption>>,
}

/// The first byte of TLS.
const TLS_HANDSHAKE: u8 = 0x16;

impl Door {
    /// Receives a connection.
    ///
    /// # Errors
    /// The connection is refused; the text is for this node's log. The other side was told why, if it can understand that.
    pub async fn receive(&self, tcp: TcpStream, peer: SocketAddr) -> Result<Welcomed, String> {
        let gone = |error: std::io::Error| error.to_string();
        tcp.set_nodelay(true).map_err(gone)?;
        let mut first = [0];
        if tcp.peek(&mut first).await.map_err(gone)? == 0 {
            return Err("it closed the connection at once".to_owned());
        }
        let is_tls = first == [TLS_HANDSHAKE];
        // Without TLS although it is required: the connection is read as plain text, since its bytes show which program it is.
        let encryption = self.encryption.as_deref().filter(|_| is_tls);
        let socket = Socket::accepted(tcp, encryption).map_err(gone)?;
        let mut receiver = Receiver::new(Role::Server);
        let hello = self.hello(&socket, &mut receiver).await?;
        let refuse = |reason: String| refuse(&socket, reason);
        if self.encryption.is_some() && !is_tls {
            let reason = "this node accepts encrypted connections only (server_encryption_options: internode_encryption: all)";
            return Err(refuse(reason.to_owned()).await);
        }
        if let Err(reason) = self.check_name(&socket, peer) {
            return Err(refuse(reason).await);
        }
        let version = match judge(&hello, &self.identity) {
            Ok(version) => version,
            Err(reason) => return Err(refuse(reason).await),
        };
        if let Err(reason) = self.peers.admit(&hello) {
            return Err(refuse(reason).await);
        }
        let Identity {
            node, session, host, ..
        } = self.identity;
        let welcome = Reply::Welcome {
            version,
            node,
            session,
            host,
        };
        reply(&socket, &welcome).await?;
        receiver.open();
        Ok(Welcomed {
            socket: Arc::new(socket),
            receiver,
            identity: hello.identity,
        })
    }

    async fn hello(&self, socket: &Socket, receiver: &mut Receiver) -> Result<Hello, String> {
        loop {
            socket.readable().await.map_err(|error| error.to_string())?;
            let found = receiver.read(socket).map_err(|error| match error.kind() {
                std::io::ErrorKind::InvalidData => {
                    format!("TLS failed ({error}): check server_encryption_options of both nodes")
                }
                _ => error.to_string(),
            })?;
            if socket.has_unsent() {
                flush(socket).await.map_err(|error| error.to_string())?;
            }
            if found == Found::End {
                return Err("it closed the connection before it greeted".to_owned());
            }
            if receiver.peek().len() < FirstBytes::COUNT {
                continue;
            }
            match FirstBytes::of(receiver.peek()) {
                FirstBytes::Other => {}
                FirstBytes::Cassandra => return Err(CASSANDRA.to_owned()),
                FirstBytes::Tls => {
                    return Err(
                        "it encrypts, and this node does not (server_encryption_options: internode_encryption)"
                            .to_owned(),
                    );
                }
            }
            match receiver.frame() {
                Ok(None) => {}
                Ok(Some(frame)) => match Hello::decode(&frame.body) {
                    Ok(hello) => return Ok(hello),
                    Err(error) => return Err(refuse(socket, format!("a damaged greeting {error}")).await),
                },
                Err(error) => {
                    // The answer is in CQL, for clients that came to the wrong port.
                    let mut answer = Vec::new();
                    error.encode_answer(&mut answer);
                    let _ = write(socket, &answer).await;
                    socket.close();
                    return Err(error.to_string());
                }
            }
        }
    }

    /// Compat: `require_endpoint_verification` holds on both sides of a connection.
    fn check_name(&self, socket: &Socket, peer: SocketAddr) -> Result<(), String> {
        let names = |encryption: &Arc<Encryption>| encryption.options().connecting == Connecting::Named;
        if !self.encryption.as_ref().is_some_and(names) {
            return Ok(());
        }
        match socket.peer_certificate() {
            Some(certificate) if !names_address(&certificate, peer.ip()) => Err(format!(
                "the certificate of the node that connects does not name its address, {} (require_endpoint_verification)",
                peer.ip()
            )),
            _ => Ok(()),
        }
    }
}

/// Tells the other side why it is refused. Returns the reason.
async fn refuse(socket: &Socket, reason: String) -> String {
    let told = reply(socket, &Reply::Refused(reason.clone())).await;
    socket.close();
    match told {
        Ok(()) => reason,
        Err(_) => format!("{reason} (it could not be told)"),
    }
}

async fn reply(socket: &Socket, reply: &Reply) -> Result<(), String> {
    let mut bytes = Vec::new();
    append_envelope(&mut bytes, Opcode::NodeAnswer, 0, |out| {
        out.bytes(&reply.encode());
    })?;
    write(socket, &bytes).await.map_err(|error| error.to_string())
}

async fn write(socket: &Socket, bytes: &[u8]) -> std::io::Result<()> {
    crate::dial::write_all(socket, bytes).await
}
