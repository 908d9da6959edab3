//! [`Socket`]: TCP, or TLS over it, on the side that accepts or on the one that connects. No call blocks.
//!
//! Invariants: all bytes that TLS has decrypted are passed to the caller at once, so none are left here when the socket has no more.
//! Encrypted bytes that the socket did not accept stay here; [`Socket::flush`] sends them.

use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;

use bytes::BytesMut;
use parking_lot::Mutex;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};
use tokio::net::TcpStream;

use crate::encryption::Encryption;

/// The first byte of TLS: a handshake record. Requests start with their version, 3 to 5.
const TLS_HANDSHAKE: u8 = 0x16;
/// Bytes that are read to find out whether a peer speaks TLS.
const FIRST_BYTES: usize = 1024;

/// The encryption of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFacts {
    /// `TLSv1.2` or `TLSv1.3`.
    pub protocol: String,
    /// The name of the cipher suite, as in Java.
    pub cipher_suite: String,
}

/// One side of a connection, encrypted or not.
pub struct Socket {
    tcp: TcpStream,
    /// `None` if no encryption is set up.
    layer: Option<Mutex<Layer>>,
}

enum Layer {
    /// The peer's first bytes will decide.
    Undecided(Arc<ServerConfig>),
    Unencrypted,
    Tls(Box<Tls>),
}

struct Tls {
    connection: Connection,
    /// Bytes that were read to find out that the peer speaks TLS.
    ahead: Vec<u8>,
}

impl Socket {
    /// A socket on the side that was connected to.
    ///
    /// # Errors
    /// TLS cannot begin.
    pub fn accepted(tcp: TcpStream, encryption: Option<&Encryption>) -> io::Result<Self> {
        let layer = encryption.map(|encryption| match encryption.is_optional() {
            true => Ok(Layer::Undecided(encryption.config())),
            false => Tls::begin(encryption.config(), Vec::new()),
        });
        Ok(Self {
            tcp,
            layer: layer.transpose()?.map(Mutex::new),
        })
    }

    /// A socket on the side that has connected, with TLS if there is a configuration. The handshake begins with the first [`Self::flush`]
    /// or write.
    ///
    /// # Errors
    /// TLS cannot begin.
    pub fn connected(tcp: TcpStream, config: Option<Arc<ClientConfig>>) -> io::Result<Self> {
        let name = ServerName::IpAddress(tcp.peer_addr()?.ip().to_canonical().into());
        let begin = |config| {
            let connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
            Ok::<_, io::Error>(Tls::layer(connection.into(), Vec::new()))
        };
        Ok(Self {
            tcp,
            layer: config.map(begin).transpose()?.map(Mutex::new),
        })
    }

    /// Waits until [`Self::try_read`] may have bytes.
    ///
    /// # Errors
    /// The runtime is shutting down.
    pub async fn readable(&self) -> io::Result<()> {
        self.tcp.readable().await
    }

    /// Waits until [`Self::flush`] may send bytes.
    ///
    /// # Errors
    /// The runtime is shutting down.
    pub async fn writable(&self) -> io::Result<()> {
        self.tcp.writable().await
    }

    /// Appends the bytes that have arrived to the buffer, and returns their number; 0 if the peer has closed its side.
    ///
    /// # Errors
    /// `WouldBlock` if no bytes have arrived; `InvalidData` if TLS refuses them; otherwise the connection is broken.
    pub fn try_read(&self, buffer: &mut BytesMut) -> io::Result<usize> {
        let Some(layer) = &self.layer else {
            return self.tcp.try_read_buf(buffer);
        };
        let mut layer = layer.lock();
        if let Layer::Undecided(config) = &*layer {
            let mut first = [0; FIRST_BYTES];
            let count = self.tcp.try_read(&mut first)?;
            let first = &first[..count];
            if first.first() != Some(&TLS_HANDSHAKE) {
                *layer = Layer::Unencrypted;
                buffer.extend_from_slice(first);
                return Ok(count);
            }
            *layer = Tls::begin(config.clone(), first.to_vec())?;
        }
        match &mut *layer {
            Layer::Undecided(_) | Layer::Unencrypted => self.tcp.try_read_buf(buffer),
            Layer::Tls(tls) => tls.read(&self.tcp, buffer),
        }
    }

    /// Sends some of the bytes, and returns their number.
    ///
    /// # Errors
    /// `WouldBlock` if the socket is full, or while the TLS handshake goes on; otherwise the connection is broken.
    pub fn try_write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match &self.layer {
            None => self.tcp.try_write_vectored(slices),
            Some(layer) => match &mut *layer.lock() {
                Layer::Undecided(_) | Layer::Unencrypted => self.tcp.try_write_vectored(slices),
                Layer::Tls(tls) => tls.write(&self.tcp, slices),
            },
        }
    }

    /// Sends encrypted bytes that the socket did not accept before.
    ///
    /// # Errors
    /// `WouldBlock` if the socket is full; otherwise the connection is broken.
    #[inline]
    pub fn flush(&self) -> io::Result<()> {
        self.layer
            .as_ref()
            .map_or(Ok(()), |layer| match &mut *layer.lock() {
                Layer::Undecided(_) | Layer::Unencrypted => Ok(()),
                Layer::Tls(tls) => tls.send(&self.tcp),
            })
    }

    /// True if encrypted bytes wait to be sent.
    #[inline]
    pub fn has_unsent(&self) -> bool {
        self.with_tls(|tls| tls.connection.wants_write()).unwrap_or(false)
    }

    /// Sends the end of the TLS stream, so that the peer can tell a complete answer from one that was cut off.
    pub fn close(&self) {
        self.with_tls(|tls| {
            tls.connection.send_close_notify();
            // If the socket is full, the peer sees its end without the notice.
            let _ = tls.send(&self.tcp);
        });
    }

    /// The encryption that was agreed on; `None` without encryption, or before the handshake is done.
    pub fn tls_facts(&self) -> Option<TlsFacts> {
        self.with_tls(|tls| {
            let protocol = match tls.connection.protocol_version()? {
                rustls::ProtocolVersion::TLSv1_2 => "TLSv1.2".to_owned(),
                rustls::ProtocolVersion::TLSv1_3 => "TLSv1.3".to_owned(),
                other => format!("{other:?}"),
            };
            let suite = tls.connection.negotiated_cipher_suite()?.suite();
            // Compat: the names of Java.
            let cipher_suite = format!("{suite:?}").replace("TLS13_", "TLS_");
            Some(TlsFacts {
                protocol,
                cipher_suite,
            })
        })
        .flatten()
    }

    /// The certificate that the peer showed, checked. Requires: the handshake is done, as after the first message.
    pub fn peer_certificate(&self) -> Option<CertificateDer<'static>> {
        self.with_tls(|tls| {
            let chain = tls.connection.peer_certificates()?;
            Some(chain.first()?.clone().into_owned())
        })
        .flatten()
    }

    fn with_tls<T>(&self, act: impl FnOnce(&mut Tls) -> T) -> Option<T> {
        match &mut *self.layer.as_ref()?.lock() {
            Layer::Undecided(_) | Layer::Unencrypted => None,
            Layer::Tls(tls) => Some(act(tls)),
        }
    }
}

impl Tls {
    fn begin(config: Arc<ServerConfig>, ahead: Vec<u8>) -> io::Result<Layer> {
        let connection = ServerConnection::new(config).map_err(io::Error::other)?;
        Ok(Self::layer(connection.into(), ahead))
    }

    fn layer(connection: Connection, ahead: Vec<u8>) -> Layer {
        Layer::Tls(Box::new(Self { connection, ahead }))
    }

    fn read(&mut self, tcp: &TcpStream, buffer: &mut BytesMut) -> io::Result<usize> {
        loop {
            let mut source = Source {
                ahead: &mut self.ahead,
                tcp,
            };
            if self.connection.read_tls(&mut source)? == 0 {
                return Ok(0);
            }
            let state = match self.connection.process_new_packets() {
                Ok(state) => state,
                Err(error) => {
                    // Sends the alert that tells the peer why.
                    let _ = self.send(tcp);
                    return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                }
            };
            match self.send(tcp) {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
            let count = state.plaintext_bytes_to_read();
            if count > 0 {
                let start = buffer.len();
                buffer.resize(start + count, 0);
                self.connection.reader().read_exact(&mut buffer[start..])?;
                return Ok(count);
            }
            if state.peer_has_closed() {
                return Ok(0);
            }
        }
    }

    fn write(&mut self, tcp: &TcpStream, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.send(tcp)?;
        let count = self.connection.writer().write_vectored(slices)?;
        match self.send(tcp) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ if count == 0 => Err(io::ErrorKind::WouldBlock.into()),
            _ => Ok(count),
        }
    }

    fn send(&mut self, tcp: &TcpStream) -> io::Result<()> {
        while self.connection.wants_write() {
            if self.connection.write_tls(&mut Sink(tcp))? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }
}

/// The bytes that the peer sent, as `rustls` reads them.
struct Source<'s> {
    ahead: &'s mut Vec<u8>,
    tcp: &'s TcpStream,
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ahead.is_empty() {
            return self.tcp.try_read(buffer);
        }
        let count = self.ahead.as_slice().read(buffer)?;
        self.ahead.drain(..count);
        Ok(count)
    }
}

/// The socket, as `rustls` writes to it.
struct Sink<'s>(&'s TcpStream);

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
