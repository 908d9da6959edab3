//! HTTP client of the administration, for the command line: a minimal HTTP 1.0 over a plain socket.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No node listens there.
    #[error(
        "cannot reach a node's administration on {address}: {source}; is it running, and is this its admin_address and admin_port?"
    )]
    Unreachable {
        /// The address that was tried.
        address: SocketAddr,
        /// The error of the socket.
        source: io::Error,
    },
    /// Another program listens there.
    #[error("what answers on {0} is not Ilion's administration")]
    Foreign(SocketAddr),
    /// The node refused the request, for this reason.
    #[error("the node refused: {0}")]
    Refused(String),
    /// The node failed, for this reason; its log has more.
    #[error("the node failed: {0}")]
    Failed(String),
}

/// Longest answer.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// Sends requests to the administration of one node.
#[derive(Clone, Debug)]
pub struct AdminClient {
    address: SocketAddr,
    /// The value of the header Authorization.
    authorization: Option<String>,
}

impl AdminClient {
    /// A client of the node with this `admin_address` and `admin_port`.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            authorization: None,
        }
    }

    /// Sends this token with each request.
    #[must_use]
    pub fn with_token(self, token: Option<String>) -> Self {
        Self {
            authorization: token.map(|token| format!("Bearer {token}")),
            ..self
        }
    }

    /// Sends this role and password with each request.
    #[must_use]
    pub fn with_login(self, role: &str, password: &str) -> Self {
        let login = BASE64_STANDARD.encode(format!("{role}:{password}"));
        Self {
            authorization: Some(format!("Basic {login}")),
            ..self
        }
    }

    /// Requests a report.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn get<T: serde::de::DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.ask("GET", path)
    }

    /// Requests an action, and waits until it is done.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn post(&self, path: &str) -> Result<Value, ClientError> {
        self.ask("POST", path)
    }

    fn ask<T: serde::de::DeserializeOwned>(&self, method: &str, path: &str) -> Result<T, ClientError> {
        let answer = self
            .exchange(method, path)
            .map_err(|source| ClientError::Unreachable {
                address: self.address,
                source,
            })?;
        let foreign = || ClientError::Foreign(self.address);
        let (status, body) = split_answer(&answer).ok_or_else(foreign)?;
        if status == 200 {
            return serde_json::from_str(body).map_err(|_| foreign());
        }
        let error: Value = serde_json::from_str(body).map_err(|_| foreign())?;
        let reason = error["error"].as_str().ok_or_else(foreign)?;
        match status {
            500 => Err(ClientError::Failed(reason.to_owned())),
            _ => Err(ClientError::Refused(reason.to_owned())),
        }
    }

    fn exchange(&self, method: &str, path: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&self.address, Duration::from_secs(5))?;
        let address = self.address;
        let shown = self.authorization.as_ref();
        let shown = shown.map_or(String::new(), |value| format!("Authorization: {value}\r\n"));
        write!(
            stream,
            "{method} {path} HTTP/1.0\r\nHost: {address}\r\n{shown}Content-Length: 0\r\nConnection: close\r\n\r\n"
        )?;
        let mut answer = String::new();
        stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer)?;
        Ok(answer)
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
