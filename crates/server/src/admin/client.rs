//! The other side of the door, for the command line: as much HTTP as it takes, over a plain socket.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Why the node did not do it.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody is there; is the node running, and is this its port?
    #[error(
        "cannot reach a node's administration on {address}: {source}; is it running, and is this its admin_address and admin_port?"
    )]
    Unreachable {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// Somebody else is there.
    #[error("what answers on {0} is not Ilion's administration")]
    Foreign(SocketAddr),
    /// The node says why.
    #[error("the node refused: {0}")]
    Refused(String),
}

/// Answers are not larger.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// Asks a node.
#[derive(Clone, Debug)]
pub struct AdminClient {
    address: SocketAddr,
    token: Option<String>,
}

impl AdminClient {
    /// Of the node with this `admin_address` and `admin_port`.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, token: None }
    }

    /// The same, showing the node's token.
    #[must_use]
    pub fn with_token(self, token: Option<String>) -> Self {
        Self { token, ..self }
    }

    /// Asks for a report.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn get<T: serde::de::DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.ask("GET", path)
    }

    /// Asks for something to be done, and waits until it is.
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
        Err(ClientError::Refused(reason.to_owned()))
    }

    fn exchange(&self, method: &str, path: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&self.address, Duration::from_secs(5))?;
        let address = self.address;
        let shown = self.token.as_ref();
        let shown = shown.map_or(String::new(), |token| {
            format!("Authorization: Bearer {token}\r\n")
        });
        write!(
            stream,
            "{method} {path} HTTP/1.0\r\nHost: {address}\r\n{shown}Content-Length: 0\r\nConnection: close\r\n\r\n"
        )?;
        let mut answer = String::new();
        stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer)?;
        Ok(answer)
    }
}

/// Status and body. HTTP 1.0 sends no chunks, so the body is what follows the empty line.
fn split_answer(answer: &str) -> Option<(u16, &str)> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?;
    Some((status.parse().ok()?, body))
}

#[cfg(test)]
mod tests {
    use super::split_answer;

    #[test]
    fn status_and_body_are_found() {
        let answer = "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(split_answer(answer), Some((200, "{}")));
        assert_eq!(split_answer("SSH-2.0-OpenSSH\r\n"), None);
        assert_eq!(split_answer(""), None);
    }
}
