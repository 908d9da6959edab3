//! HTTP client of the administration, for the command line: a minimal HTTP 1.0 over a socket, plain or with TLS.

use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No node listens on this address.
    #[error(
        "cannot reach a node's administration on {address}: {source}; is it running, and is this its admin_address and admin_port?"
    )]
    Unreachable {
        /// The address that was tried.
        address: SocketAddr,
        /// The error of the socket.
        source: io::Error,
    },
    /// Another program listens on this address, or the port is encrypted and the request was not.
    #[error(
        "what answers on {0} is not Ilion's administration; if it is, and encrypted, give the certificate of its issuer"
    )]
    Foreign(SocketAddr),
    /// The certificate of the issuer, or the name of the node, cannot be used.
    #[error("{0}")]
    Encryption(String),
    /// The request has no valid login or token.
    #[error(
        "the node refused: {0}; give the role and its password (--username, --password-file), or its token (--admin-token-file)"
    )]
    Unknown(String),
    /// The node is starting, and says how far it is.
    #[error("{0}")]
    Starting(String),
    /// The node refused the request, for this reason.
    #[error("the node refused: {0}")]
    Refused(String),
    /// The node failed, for this reason; its log has more.
    #[error("the node failed: {0}")]
    Failed(String),
}

impl ClientError {
    /// True if no node serves at the address yet or any more: programs that go on for long try again then.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Starting(_))
    }
}

/// Largest head of an answer, if the answer is read line by line.
const HEAD_BYTES_MAX: u64 = 64 << 10;
/// Largest answer; for an answer that is read line by line, largest line.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// Sends requests to the administration of one node.
#[derive(Clone)]
pub struct AdminClient {
    address: SocketAddr,
    /// Value of the header `Authorization`.
    authorization: Option<String>,
    /// `None` if requests are not encrypted.
    encryption: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    /// A request fails if its answer pauses for longer; `None` is no limit.
    silence_max: Option<Duration>,
}

/// A connection: plain or encrypted.
trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

impl AdminClient {
    /// A client of the node with this `admin_address` and `admin_port`.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            authorization: None,
            encryption: None,
            silence_max: None,
        }
    }

    /// Sends this token with each request.
    #[must_use]
    pub fn with_token(self, token: &str) -> Self {
        let authorization = Some(format!("Bearer {token}"));
        Self {
            authorization,
            ..self
        }
    }

    /// Sends the name and password of this role with each request.
    #[must_use]
    pub fn with_login(self, role: &str, password: &str) -> Self {
        let authorization = Some(format!("Basic {}", STANDARD.encode(format!("{role}:{password}"))));
        Self {
            authorization,
            ..self
        }
    }

    /// Makes a request fail if the node sends no byte for this long.
    #[must_use]
    pub fn with_silence_max(self, silence_max: Duration) -> Self {
        let silence_max = Some(silence_max);
        Self { silence_max, ..self }
    }

    /// Encrypts requests. The node's certificate must be for this name or address, and issued by one of the certificates in `issuers` (PEM).
    ///
    /// # Errors
    /// There is no certificate in `issuers`, or the name is invalid.
    pub fn with_encryption(self, issuers: &[u8], name: &str) -> Result<Self, ClientError> {
        let problem = |problem: String| ClientError::Encryption(problem);
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(issuers) {
            let added = certificate.map_err(|error| error.to_string());
            let added =
                added.and_then(|certificate| roots.add(certificate).map_err(|error| error.to_string()));
            added.map_err(|error| problem(format!("the certificate of the issuer: {error}")))?;
        }
        if roots.is_empty() {
            return Err(problem("there is no certificate of an issuer".to_owned()));
        }
        let name =
            ServerName::try_from(name.to_owned()).map_err(|error| problem(format!("{name}: {error}")))?;
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
        let builder = builder.with_safe_default_protocol_versions();
        let config = builder.map_err(|error| problem(error.to_string()))?;
        let config = config.with_root_certificates(roots).with_no_client_auth();
        Ok(Self {
            encryption: Some((Arc::new(config), name)),
            ..self
        })
    }

    /// Requests a report.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn get<T: serde::de::DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.ask("GET", path, &[])
    }

    /// Requests an action, and waits until it is done.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn post(&self, path: &str) -> Result<Value, ClientError> {
        self.ask("POST", path, &[])
    }

    /// As [`Self::post`], with these bytes as the body.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn post_bytes(&self, path: &str, bytes: &[u8]) -> Result<Value, ClientError> {
        self.ask("POST", path, bytes)
    }

    /// Requests one of the health checks, which answer in plain text.
    ///
    /// # Errors
    /// See [`ClientError`]; `Failed` has the reason why the node is not well.
    pub fn check(&self, path: &str) -> Result<(), ClientError> {
        let answer = self.answer("GET", path, &[])?;
        match split_answer(&answer) {
            Some((200, "ok\n")) => Ok(()),
            Some((503, reason)) => Err(ClientError::Failed(reason.trim_end().to_owned())),
            _ => Err(ClientError::Foreign(self.address)),
        }
    }

    /// Reads the lines of an answer as they come, until `take` returns false.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn lines(&self, path: &str, take: &mut dyn FnMut(&str) -> bool) -> Result<(), ClientError> {
        let unreachable = |source| ClientError::Unreachable {
            address: self.address,
            source,
        };
        let mut answer = BufReader::new(self.send("GET", path, &[]).map_err(unreachable)?);
        let mut next_line = |line: &mut String, bytes_max| {
            line.clear();
            let read = (&mut answer).take(bytes_max).read_line(line);
            read.map_err(unreachable)
        };
        let (mut head, mut line) = (String::new(), String::new());
        while line != "\r\n" {
            if next_line(&mut line, HEAD_BYTES_MAX)? == 0 || head.len() as u64 > HEAD_BYTES_MAX {
                return Err(ClientError::Foreign(self.address));
            }
            head.push_str(&line);
        }
        if !matches!(split_answer(&head), Some((200, _))) {
            while next_line(&mut line, HEAD_BYTES_MAX)? > 0 && head.len() as u64 <= 2 * HEAD_BYTES_MAX {
                head.push_str(&line);
            }
            return self.read_answer::<Value>(&head).map(|_| ());
        }
        while next_line(&mut line, ANSWER_BYTES_MAX)? > 0 {
            if !take(line.trim_end_matches('\n')) {
                break;
            }
        }
        Ok(())
    }

    fn answer(&self, method: &str, path: &str, body: &[u8]) -> Result<String, ClientError> {
        self.exchange(method, path, body)
            .map_err(|source| ClientError::Unreachable {
                address: self.address,
                source,
            })
    }

    fn ask<T: serde::de::DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> Result<T, ClientError> {
        let answer = self.answer(method, path, body)?;
        self.read_answer(&answer)
    }

    fn read_answer<T: serde::de::DeserializeOwned>(&self, answer: &str) -> Result<T, ClientError> {
        let foreign = || ClientError::Foreign(self.address);
        let (status, body) = split_answer(answer).ok_or_else(foreign)?;
        if status == 200 {
            return serde_json::from_str(body).map_err(|_| foreign());
        }
        let error: Value = serde_json::from_str(body).map_err(|_| foreign())?;
        let reason = error["error"].as_str().ok_or_else(foreign)?;
        Err(match status {
            401 => ClientError::Unknown(reason.to_owned()),
            500 => ClientError::Failed(reason.to_owned()),
            503 => ClientError::Starting(reason.to_owned()),
            _ => ClientError::Refused(reason.to_owned()),
        })
    }

    fn exchange(&self, method: &str, path: &str, body: &[u8]) -> io::Result<String> {
        let mut answer = String::new();
        self.send(method, path, body)?
            .take(ANSWER_BYTES_MAX)
            .read_to_string(&mut answer)?;
        match answer.is_empty() {
            // The node has ended meanwhile, or the port is encrypted.
            true => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the connection ended without an answer (if the port is encrypted, give the certificate of its issuer)",
            )),
            false => Ok(answer),
        }
    }

    /// Sends a request; returns the connection, from which the answer can be read.
    fn send(&self, method: &str, path: &str, body: &[u8]) -> io::Result<Box<dyn Stream>> {
        let tcp = TcpStream::connect_timeout(&self.address, Duration::from_secs(5))?;
        tcp.set_read_timeout(self.silence_max)?;
        let mut stream: Box<dyn Stream> = match &self.encryption {
            None => Box::new(tcp),
            Some((config, name)) => {
                let connection =
                    ClientConnection::new(config.clone(), name.clone()).map_err(io::Error::other)?;
                Box::new(StreamOwned::new(connection, tcp))
            }
        };
        let address = self.address;
        let authorization = self.authorization.as_ref();
        let authorization =
            authorization.map_or(String::new(), |value| format!("Authorization: {value}\r\n"));
        let head = format!(
            "{method} {path} HTTP/1.0\r\nHost: {address}\r\n{authorization}Content-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)?;
        stream.flush()?;
        Ok(stream)
    }
}

/// Splits an answer into status and body. HTTP 1.0 has no chunked bodies, so the body is all that follows the empty line.
fn split_answer(answer: &str) -> Option<(u16, &str)> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?;
    Some((status.parse().ok()?, body))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;

    use super::{AdminClient, split_answer};

    #[test]
    fn a_login_is_shown_in_the_header() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = AdminClient::new(listener.local_addr().unwrap()).with_login("alice", "open sesame");
        let answering = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let head: Vec<String> = lines
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty())
                .collect();
            stream.write_all(b"HTTP/1.0 200 OK\r\n\r\n{}").unwrap();
            head
        });
        client.post("/admin/flush").unwrap();
        let head = answering.join().unwrap();
        // RFC 7617.
        let expected = "Authorization: Basic YWxpY2U6b3BlbiBzZXNhbWU=";
        assert!(head.iter().any(|line| line == expected), "{head:?}");
    }

    #[test]
    fn status_and_body_are_found() {
        let answer = "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(split_answer(answer), Some((200, "{}")));
        assert_eq!(split_answer("SSH-2.0-OpenSSH\r\n"), None);
        assert_eq!(split_answer(""), None);
    }
}
