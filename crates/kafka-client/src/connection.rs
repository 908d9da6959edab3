//! A connection to one broker: opened, encrypted, logged in; then one request at a time, each within a time limit.
//!
//! A broker answers the requests of a connection one after another, so a second one on its way would wait anyway. A connection whose
//! request was given up is of no use any more: its answer may still come.

use std::time::Duration;

use aws_lc_rs::rand;
use bytes::Bytes;
use ilion_codec::{Reader, Writer};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;

use crate::certificates::client_config;
use crate::messages::{ApiVersions, REQUESTS, Request, SaslAuthenticate, SaslHandshake};
use crate::scram::{Hash, Scram};
use crate::wire::{Input, Wire};
use crate::{Credentials, Error, Mechanism, Options, codes};

/// The longest answer that is read: a fetch brings a few MiB, or one batch that is larger.
const ANSWER_BYTES_MAX: usize = 128 << 20;
/// Bytes of memory for an answer before its bytes have arrived.
const ANSWER_BYTES_AT_FIRST: usize = 256 << 10;
const CLIENT: &str = "ilion";
/// A connection that was not used for this time may have been closed: brokers do that after ten minutes, devices in between earlier.
const IDLE_MAX: Duration = Duration::from_secs(240);

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A connection to one broker.
pub struct Connection {
    stream: Box<dyn Stream>,
    address: String,
    next_id: i32,
    is_usable: bool,
    last_used: Instant,
}

/// Opens connections.
pub struct Connector {
    options: Options,
    /// `None`: connections are not encrypted.
    encryption: Option<TlsConnector>,
}

impl Connector {
    /// Reads the certificates; asks no broker.
    ///
    /// # Errors
    /// [`Error::Refused`]: the certificates are wrong.
    pub fn new(options: Options) -> Result<Self, Error> {
        let security = &options.security;
        let encryption = match security.is_encrypted {
            true => Some(TlsConnector::from(client_config(security.issuers.as_deref())?)),
            false => None,
        };
        Ok(Self { options, encryption })
    }

    /// How brokers are spoken to.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Connects to `host:port` and logs in, within the time of a request.
    ///
    /// # Errors
    /// The broker does not answer, refuses the login, or speaks other versions of the protocol.
    pub async fn open(&self, address: &str) -> Result<Connection, Error> {
        let limit = self.options.request_timeout;
        match timeout(limit, self.connect(address)).await {
            Ok(opened) => opened,
            Err(_) => Err(silence(address, limit)),
        }
    }

    async fn connect(&self, address: &str) -> Result<Connection, Error> {
        let problem = |error: std::io::Error| Error::Unreachable(format!("broker {address}: {error}"));
        let socket = TcpStream::connect(address).await.map_err(problem)?;
        socket.set_nodelay(true).map_err(problem)?;
        let stream: Box<dyn Stream> = match &self.encryption {
            None => Box::new(socket),
            Some(encryption) => {
                let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
                let name = ServerName::try_from(host.to_owned())
                    .map_err(|_| Error::Refused(format!("{host} is no name that a certificate can have")))?;
                Box::new(encryption.connect(name, socket).await.map_err(problem)?)
            }
        };
        let mut connection = Connection {
            stream,
            address: address.to_owned(),
            next_id: 0,
            is_usable: true,
            last_used: Instant::now(),
        };
        connection.check_versions().await?;
        if let Some(credentials) = &self.options.security.credentials {
            connection.log_in(credentials).await?;
        }
        Ok(connection)
    }
}

impl Connection {
    /// The broker's `host:port`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Whether it can take a request: no request was given up, and it was used lately.
    pub fn is_usable(&self) -> bool {
        self.is_usable && self.last_used.elapsed() < IDLE_MAX
    }

    /// Sends a request and waits for its answer. If the future is dropped before that, the connection is of no use any more.
    ///
    /// # Errors
    /// There is no answer in time, or the connection broke. The request may have been executed.
    pub async fn ask<R: Request>(&mut self, request: &R, at_most: Duration) -> Result<R::Answer, Error> {
        if !self.is_usable {
            return Err(self.broken("a request before this one was given up"));
        }
        self.is_usable = false;
        let answer = match timeout(at_most, self.exchange(request)).await {
            Ok(answer) => answer?,
            Err(_) => return Err(silence(&self.address, at_most)),
        };
        (self.is_usable, self.last_used) = (true, Instant::now());
        Ok(answer)
    }

    async fn exchange<R: Request>(&mut self, request: &R) -> Result<R::Answer, Error> {
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        let bytes = encode(request, id);
        let sent = async {
            self.stream.write_all(&bytes).await?;
            self.stream.flush().await
        };
        sent.await.map_err(|error| self.broken(&error.to_string()))?;
        let answer = self.read_answer().await?;
        let mut id_bytes = Reader::new(&answer);
        if id_bytes.i32() != Ok(id) {
            return Err(self.broken("an answer to another request"));
        }
        let body = answer.slice(4..);
        R::Answer::decode(&mut Input::new(&body)).map_err(|error| {
            self.broken(&format!(
                "the answer to {} cannot be read: expected {} at byte {}",
                R::NAME,
                error.expected,
                error.offset
            ))
        })
    }

    async fn read_answer(&mut self) -> Result<Bytes, Error> {
        let length = self.stream.read_i32().await;
        let length = length.map_err(|error| self.broken(&error.to_string()))?;
        let length = usize::try_from(length).ok();
        let Some(length) = length.filter(|length| (4..=ANSWER_BYTES_MAX).contains(length)) else {
            return Err(self.broken("an answer of an impossible length; is this a broker, and without TLS?"));
        };
        // The memory grows with the bytes that come, whatever the length says.
        let mut bytes = Vec::with_capacity(length.min(ANSWER_BYTES_AT_FIRST));
        let mut rest = (&mut self.stream).take(length as u64);
        let read = rest.read_to_end(&mut bytes).await;
        match read {
            Ok(_) if bytes.len() == length => Ok(bytes.into()),
            Ok(_) => Err(self.broken("it was closed within an answer")),
            Err(error) => Err(self.broken(&error.to_string())),
        }
    }

    fn broken(&self, problem: &str) -> Error {
        Error::Unreachable(format!("broker {}: {problem}", self.address))
    }

    async fn check_versions(&mut self) -> Result<(), Error> {
        let answer = self.exchange(&ApiVersions {}).await?;
        for (key, version, name) in REQUESTS {
            let spoken = answer.requests.iter().find(|spoken| spoken.key == *key);
            // Brokers without logins may not list the requests of logins.
            let is_spoken = spoken.is_none_or(|spoken| (spoken.min..=spoken.max).contains(version));
            if !is_spoken || (spoken.is_none() && !name.starts_with("Sasl")) {
                return Err(Error::Refused(format!(
                    "broker {} does not speak version {version} of {name}: brokers of Kafka 2.4 and later do",
                    self.address
                )));
            }
        }
        Ok(())
    }

    async fn log_in(&mut self, credentials: &Credentials) -> Result<(), Error> {
        let mechanism = match credentials.mechanism {
            Mechanism::Plain => "PLAIN",
            Mechanism::ScramSha256 => "SCRAM-SHA-256",
            Mechanism::ScramSha512 => "SCRAM-SHA-512",
        };
        let greeting = SaslHandshake {
            mechanism: mechanism.to_owned(),
        };
        let greeted = self.exchange(&greeting).await?;
        if greeted.error != codes::NONE {
            return Err(Error::Login(format!(
                "{mechanism} is not permitted there, but {}",
                greeted.mechanisms.join(", ")
            )));
        }
        let (name, password) = (&credentials.username, &credentials.password);
        let hash = match credentials.mechanism {
            Mechanism::Plain => {
                let shown = format!("\0{name}\0{password}");
                return self.step(shown).await.map(drop);
            }
            Mechanism::ScramSha256 => Hash::Sha256,
            Mechanism::ScramSha512 => Hash::Sha512,
        };
        let scram = Scram::new(hash, name, password, nonce()?);
        let challenge = self.step(scram.first_message()).await?;
        let proof = scram
            .prove(&challenge)
            .map_err(|problem| Error::Login(problem.to_owned()))?;
        let last = self.step(proof.message.clone()).await?;
        match proof.is_confirmed_by(&last) {
            true => Ok(()),
            false => Err(Error::Login("the broker does not know the password".to_owned())),
        }
    }

    async fn step(&mut self, message: String) -> Result<String, Error> {
        let bytes = message.into_bytes().into();
        let answer = self.exchange(&SaslAuthenticate { bytes }).await?;
        if answer.error != codes::NONE {
            let name = codes::name(answer.error);
            return Err(Error::Login(answer.message.unwrap_or(name)));
        }
        String::from_utf8(answer.bytes.to_vec())
            .map_err(|_| Error::Login("the broker's message is no text".to_owned()))
    }
}

/// A request with its length and head.
fn encode<R: Request>(request: &R, id: i32) -> Vec<u8> {
    let mut out = Writer::with_capacity(1024);
    out.i32(0);
    R::KEY.encode(&mut out);
    R::VERSION.encode(&mut out);
    id.encode(&mut out);
    CLIENT.to_owned().encode(&mut out);
    request.encode(&mut out);
    let length = i32::try_from(out.len() - 4).unwrap_or(i32::MAX);
    out.as_mut_slice()[..4].copy_from_slice(&length.to_be_bytes());
    out.into_vec()
}

fn nonce() -> Result<String, Error> {
    let mut random = [0; 18];
    rand::fill(&mut random).map_err(|_| Error::Refused("the system has no randomness".to_owned()))?;
    use base64::Engine as _;
    Ok(base64::engine::general_purpose::STANDARD.encode(random))
}

fn silence(address: &str, after: Duration) -> Error {
    Error::Unreachable(format!("broker {address} did not answer within {after:?}"))
}
