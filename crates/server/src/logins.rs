//! Logins by password (AUTHENTICATE, AUTH_RESPONSE, AUTH_SUCCESS) or certificate.
//!
//! After STARTUP a client that must log in is answered with AUTHENTICATE; its session is then `Authenticating`. The task of
//! the connection hands its AUTH_RESPONSE over to a thread of this module, and the session is `Checking` until that thread has
//! answered: AUTH_SUCCESS, and the session is `Ready`; or an error, and the client may try again.
//!
//! Logins at the HTTP port ([`Logins::at_door`]) use the same threads, bounds and waits.
//!
//! With an authenticator of certificates, STARTUP itself is handed over, with the identity in the certificate. It is answered with READY,
//! or with an error, and then the session is `Refused`.
//!
//! A password that was right before is recognised at once. Checking any other password takes about 50 ms of a processor, on purpose. So
//! the threads are few and have a low priority, and failed checks get a small share of the processors. [`LoginTurns`] decides which login
//! is checked next. After failed logins of an address, its next ones wait in a timer, without a thread, before they are submitted
//! ([`LoginPace`]).
//!
//! Compat: the rules are those of `AuthResponse`, `PasswordAuthenticator` and `MutualTlsAuthenticator` of Cassandra 5.0.

use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use ilion_auth::plain::{self, Credentials};
use ilion_auth::{LoginPace, RunningCheck};
use ilion_env::Env;
use ilion_protocol::{
    ErrorDetail, ErrorResponse, Frame, Request, RequestFrame, Response, ResponseHead, Version,
    encode_response,
};
use ilion_query::{AccessControl, Error, Identity, Login};
use ilion_tls::Socket;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::auditor::Auditor;
use crate::certificate::CertificateLogins;
use crate::error_table::error_response;
use crate::login_turns::{LoginThreads, LoginTurns, Step};
use crate::metrics::ServerMetrics;
use crate::request::expect_in_stage;
use crate::session::{ConnectionStage, InFlight, SentBy, Session};

/// Most characters of a role or identity in the log.
const NAME_CHARS_MAX: usize = 64;
/// The class name in AUTHENTICATE. Compat: drivers know it.
const AUTHENTICATOR_CLASS: &str = "org.apache.cassandra.auth.PasswordAuthenticator";

/// Checks logins. See [`AccessControl`].
pub trait LoginCheck: Send + Sync {
    /// True if clients must log in.
    fn requires_login(&self) -> bool;
    /// Logs in a client whose password was right before; returns `None` if the password must be checked. Quick.
    ///
    /// # Errors
    /// The answer to the client.
    fn recognise(&self, role: &str, password: &str, from: IpAddr) -> Result<Option<Arc<Login>>, Error>;
    /// Checks the password and logs the client in. Slow.
    ///
    /// # Errors
    /// The answer to the client.
    fn log_in(&self, role: &str, password: &str, from: IpAddr) -> Result<Arc<Login>, Error>;
    /// Logs in a client whose certificate has this identity.
    ///
    /// # Errors
    /// The answer to the client.
    fn log_in_by_identity(&self, identity: &str, from: IpAddr) -> Result<Arc<Login>, Error>;
}

impl LoginCheck for AccessControl {
    fn requires_login(&self) -> bool {
        self.requires_login()
    }

    fn recognise(&self, role: &str, password: &str, from: IpAddr) -> Result<Option<Arc<Login>>, Error> {
        self.recognise(role, password, from)
    }

    fn log_in(&self, role: &str, password: &str, from: IpAddr) -> Result<Arc<Login>, Error> {
        self.log_in(role, password, from)
    }

    fn log_in_by_identity(&self, identity: &str, from: IpAddr) -> Result<Arc<Login>, Error> {
        self.log_in_by_identity(identity, from)
    }
}

/// For servers whose clients need not log in.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLogins;

impl LoginCheck for NoLogins {
    fn requires_login(&self) -> bool {
        false
    }

    fn recognise(&self, _: &str, _: &str, _: IpAddr) -> Result<Option<Arc<Login>>, Error> {
        Ok(None)
    }

    fn log_in(&self, _: &str, _: &str, _: IpAddr) -> Result<Arc<Login>, Error> {
        Err(Error::BadCredentials("there are no logins".to_owned()))
    }

    fn log_in_by_identity(&self, _: &str, _: IpAddr) -> Result<Arc<Login>, Error> {
        Err(Error::BadCredentials("there are no logins".to_owned()))
    }
}

/// The credentials of a client.
pub(crate) enum Proof {
    Password(Credentials),
    /// The identity in its certificate.
    Identity(String),
}

/// A login to check.
pub(crate) struct Attempt {
    from: SocketAddr,
    proof: Proof,
    asker: Asker,
}

/// The receiver of the outcome of a login.
enum Asker {
    /// A CQL client.
    Client {
        session: Arc<Session>,
        version: Version,
        stream: i16,
        cost: InFlight,
    },
    /// A request to the HTTP port.
    Door(oneshot::Sender<Result<Arc<Login>, Error>>),
}

impl Asker {
    fn is_gone(&self) -> bool {
        match self {
            Self::Client { session, .. } => session.is_gone(),
            Self::Door(sender) => sender.is_closed(),
        }
    }
}

/// The logins of a server.
pub(crate) struct Logins {
    checks: Arc<dyn LoginCheck>,
    /// `None` if certificates are not used for logins.
    by_certificate: Option<CertificateLogins>,
    /// `None` if nobody needs to log in.
    turns: Option<Arc<LoginTurns<Attempt>>>,
    pace: Mutex<LoginPace>,
    clock: Arc<dyn Env>,
    metrics: Arc<ServerMetrics>,
    auditor: Arc<Auditor>,
}

impl Logins {
    /// Starts the threads, if clients must log in.
    pub fn start(
        checks: Arc<dyn LoginCheck>,
        by_certificate: Option<CertificateLogins>,
        thread_count: usize,
        clock: Arc<dyn Env>,
        metrics: Arc<ServerMetrics>,
        auditor: Arc<Auditor>,
    ) -> std::io::Result<(Arc<Self>, LoginThreads)> {
        let turns = checks
            .requires_login()
            .then(|| LoginTurns::new(clock.clone(), thread_count));
        let logins = Arc::new(Self {
            checks,
            by_certificate,
            turns: turns.clone(),
            pace: Mutex::default(),
            clock,
            metrics,
            auditor,
        });
        let threads = match turns {
            None => LoginThreads::default(),
            Some(turns) => {
                let logins = Arc::downgrade(&logins);
                turns.start_threads(move |step| {
                    // Fails only if the server has stopped; then no client waits.
                    if let Some(logins) = logins.upgrade() {
                        logins.run(step);
                    }
                })?
            }
        };
        Ok((logins, threads))
    }

    /// Handles a valid STARTUP: sets the next stage of the session and returns the answer; `None` if a login thread will answer.
    pub fn begin(&self, session: &Arc<Session>, socket: &Socket, frame: &Frame) -> Option<Response> {
        if self.turns.is_none() {
            session.set_stage(ConnectionStage::Ready);
            return Some(Response::Ready);
        }
        match self.identity(socket) {
            None => {
                session.set_stage(ConnectionStage::Authenticating);
                Some(Response::Authenticate(AUTHENTICATOR_CLASS.to_owned()))
            }
            Some(Ok(identity)) => {
                let cost = InFlight::of(frame);
                session.set_stage(ConnectionStage::Checking);
                session.begin(cost);
                self.submit(Attempt {
                    from: session.peer,
                    proof: Proof::Identity(identity),
                    asker: Asker::Client {
                        session: session.clone(),
                        version: frame.version,
                        stream: frame.stream,
                        cost,
                    },
                });
                None
            }
            Some(Err(why)) => {
                self.metrics.logins_failed.inc();
                tracing::warn!(peer = %session.peer, why, "a certificate is no login");
                self.auditor.login_failed_now(session.peer, why);
                session.set_stage(ConnectionStage::Refused);
                let error = Error::BadCredentials(why.to_owned());
                Some(Response::Error(error_response(error, session.peer.ip())))
            }
        }
    }

    /// The identity in the certificate with which the client logs in; `None` if it logs in with a password.
    fn identity(&self, socket: &Socket) -> Option<Result<String, &'static str>> {
        let by_certificate = self.by_certificate?;
        match socket.peer_certificate() {
            Some(certificate) => Some(by_certificate.identity(&certificate)),
            None if by_certificate.falls_back => None,
            None => Some(Err("No certificate present on connection")),
        }
    }

    /// Handles a frame of a session that has not logged in. Called by the task of its connection.
    pub fn take(self: &Arc<Self>, session: &Arc<Session>, frame: &Frame) {
        match self.attempt(session, frame) {
            Ok(attempt) => self.submit_in_time(attempt),
            Err(error) => {
                if error.detail == ErrorDetail::BadCredentials {
                    self.auditor.login_failed_now(session.peer, &error.message);
                }
                let response = Response::Error(error);
                answer(
                    session,
                    frame.version,
                    frame.stream,
                    &response,
                    InFlight::default(),
                );
            }
        }
    }

    /// Decodes the login in a frame. A session has at most one login that is being checked.
    fn attempt(&self, session: &Arc<Session>, frame: &Frame) -> Result<Attempt, ErrorResponse> {
        let request = RequestFrame::decode(frame)?;
        expect_in_stage(session.stage(), &request.request)?;
        let Request::AuthResponse(token) = &request.request else {
            return Err(ErrorResponse::server("a request came before its login"));
        };
        let token = token.as_deref().unwrap_or_default();
        let refused = |why: &str| error_response(Error::BadCredentials(why.to_owned()), session.peer.ip());
        let credentials = plain::decode(token).map_err(refused)?;
        let cost = InFlight::of(frame);
        session.set_stage(ConnectionStage::Checking);
        session.begin(cost);
        Ok(Attempt {
            from: session.peer,
            proof: Proof::Password(credentials),
            asker: Asker::Client {
                session: session.clone(),
                version: frame.version,
                stream: frame.stream,
                cost,
            },
        })
    }

    /// Logs in a client of the HTTP port.
    ///
    /// # Errors
    /// The answer to the client.
    pub async fn at_door(self: &Arc<Self>, from: SocketAddr, proof: Proof) -> Result<Arc<Login>, Error> {
        let (sender, outcome) = oneshot::channel();
        let asker = Asker::Door(sender);
        self.submit_in_time(Attempt { from, proof, asker });
        let stopping = || Err(Error::Overloaded("The node is stopping".to_owned()));
        outcome.await.unwrap_or_else(|_| stopping())
    }

    /// Submits a login to the threads, after the delay of its address.
    fn submit_in_time(self: &Arc<Self>, attempt: Attempt) {
        let wait = match &attempt.proof {
            Proof::Password(_) => {
                let now = self.clock.monotonic_nanos();
                self.pace.lock().wait(attempt.from.ip(), now)
            }
            Proof::Identity(_) => Duration::ZERO,
        };
        if wait.is_zero() {
            return self.submit(attempt);
        }
        let logins = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            logins.submit(attempt);
        });
    }

    fn submit(&self, attempt: Attempt) {
        let refused = match &self.turns {
            Some(turns) => turns.arrive(attempt),
            None => Some(attempt),
        };
        self.refuse(refused);
    }

    /// Refuses logins because too many wait.
    fn refuse(&self, attempts: impl IntoIterator<Item = Attempt>) {
        for attempt in attempts {
            self.metrics.logins_overloaded.inc();
            let overloaded = Error::Overloaded("Too many logins are waiting; try again later".to_owned());
            self.finish(attempt, Err(overloaded));
        }
    }

    /// Runs a step of a login, on a login thread.
    fn run(&self, step: Step<Attempt>) {
        match step {
            Step::Begin(attempt) => self.recognise(attempt),
            Step::Hash(attempt, running) => self.check(attempt, running),
            Step::GiveUp(attempts) => self.refuse(attempts),
        }
    }

    /// Finishes a login that needs no slow hash; the others wait for their turn.
    fn recognise(&self, attempt: Attempt) {
        if attempt.asker.is_gone() {
            return;
        }
        let from = attempt.from.ip();
        let recognised = without_panic(|| match &attempt.proof {
            Proof::Password(Credentials { name, password }) => self.checks.recognise(name, password, from),
            Proof::Identity(identity) => self.checks.log_in_by_identity(identity, from).map(Some),
        });
        match recognised {
            Ok(Some(login)) => self.finish(attempt, Ok(login)),
            Err(error) => self.finish(attempt, Err(error)),
            Ok(None) => {
                let standing = self.pace.lock().standing(from, self.clock.monotonic_nanos());
                let refused = self
                    .turns
                    .as_ref()
                    .and_then(|turns| turns.wait(from, standing, attempt));
                self.refuse(refused);
            }
        }
    }

    fn check(&self, attempt: Attempt, running: RunningCheck) {
        let Some(turns) = &self.turns else { return };
        let credentials = match &attempt.proof {
            Proof::Password(credentials) if !attempt.asker.is_gone() => credentials,
            _ => return turns.finish(running, 0, false),
        };
        let Credentials { name, password } = credentials;
        let begun = self.clock.thread_cpu_nanos();
        let checked = without_panic(|| self.checks.log_in(name, password, attempt.from.ip()));
        let cost = self.clock.thread_cpu_nanos().saturating_sub(begun);
        turns.finish(running, cost, checked.is_err());
        self.finish(attempt, checked);
    }

    fn finish(&self, attempt: Attempt, outcome: Result<Arc<Login>, Error>) {
        match &outcome {
            Ok(login) => {
                self.metrics.logins.inc();
                self.pace
                    .lock()
                    .succeeded(attempt.from.ip(), self.clock.monotonic_nanos());
                self.auditor.logged_in(attempt.from, &login.role);
            }
            Err(error @ Error::BadCredentials(_)) => {
                self.note_failure(attempt.from.ip(), &attempt.proof);
                self.auditor.login_failed(attempt.from, &error.to_string());
            }
            Err(_) => {}
        }
        let (session, version, stream, cost) = match attempt.asker {
            Asker::Client {
                session,
                version,
                stream,
                cost,
            } => (session, version, stream, cost),
            Asker::Door(sender) => {
                // The client may have disconnected meanwhile.
                let _ = sender.send(outcome);
                return;
            }
        };
        let response = match outcome {
            Ok(login) => {
                session.change_client(|client| client.state.identity = Identity::User(login));
                session.set_stage(ConnectionStage::Ready);
                match &attempt.proof {
                    Proof::Password(_) => Response::AuthSuccess(None),
                    Proof::Identity(_) => Response::Ready,
                }
            }
            Err(error) => {
                session.set_stage(match &attempt.proof {
                    Proof::Password(_) => ConnectionStage::Authenticating,
                    Proof::Identity(_) => ConnectionStage::Refused,
                });
                Response::Error(error_response(error, session.peer.ip()))
            }
        };
        match &attempt.proof {
            Proof::Password(_) => answer(&session, version, stream, &response, cost),
            // The answer to STARTUP is neither in a segment nor compressed.
            Proof::Identity(_) => {
                let packed = encode_unpacked(version, stream, &response);
                session.deliver(packed, cost, SentBy::Caller);
            }
        }
    }

    fn note_failure(&self, address: IpAddr, proof: &Proof) {
        let cut = |name: &str| name.chars().take(NAME_CHARS_MAX).collect::<String>();
        self.metrics.logins_failed.inc();
        match proof {
            Proof::Password(credentials) => {
                self.pace.lock().failed(address, self.clock.monotonic_nanos());
                let role = cut(&credentials.name);
                tracing::warn!(%address, ?role, "a login failed");
            }
            // Nobody guesses a certificate, so later logins of the address need not wait.
            Proof::Identity(identity) => {
                let identity = cut(identity);
                tracing::warn!(%address, ?identity, "a login by certificate failed");
            }
        }
    }
}

impl Drop for Logins {
    fn drop(&mut self) {
        if let Some(turns) = &self.turns {
            turns.close();
        }
    }
}

/// Runs a check; returns an error if it panics.
fn without_panic<T>(check: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    // The panic hook logs the panic itself.
    let bug = || Error::ServerError("the login met a bug of the server; its log has more".to_owned());
    catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|_| Err(bug()))
}

/// Encodes an answer to OPTIONS or STARTUP, which is neither in segments nor compressed.
pub(crate) fn encode_unpacked(version: Version, stream: i16, response: &Response) -> Vec<u8> {
    let mut out = Vec::new();
    // These answers are far below the limit of an envelope.
    let _ = encode_response(&mut out, &ResponseHead::new(version, stream), response, None);
    out
}

/// Sends an answer to a session that has not logged in, or has just logged in.
fn answer(session: &Session, version: Version, stream: i16, response: &Response, done: InFlight) {
    let Some(wire) = session.wire() else {
        return;
    };
    let mut out = Vec::new();
    let head = ResponseHead::new(version, stream);
    // These answers are far below the limit of an envelope.
    let _ = encode_response(&mut out, &head, response, wire.of_envelopes());
    session.deliver(wire.pack(out), done, SentBy::Caller);
}
