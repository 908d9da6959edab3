//! Logins: AUTHENTICATE, AUTH_RESPONSE and AUTH_SUCCESS.
//!
//! After STARTUP a client that must log in is answered with AUTHENTICATE; its session is then `Authenticating`. The task of
//! the connection hands its AUTH_RESPONSE over to a thread of this module, and the session is `Checking` until that thread has
//! answered: AUTH_SUCCESS, and the session is `Ready`; or an error, and the client may try again.
//!
//! Checking a password takes some 50 ms of a processor, on purpose. So the threads are few, have a low priority, and only
//! this many checks wait for them; reads and writes of other clients go on. Logins of an address with failed ones wait before
//! they are checked ([`LoginPace`]): they wait in a timer, which holds no thread.
//!
//! Compat: the rules are those of `AuthResponse` and `PasswordAuthenticator` of Cassandra 5.0.

use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Sender, bounded};
use ilion_auth::LoginPace;
use ilion_auth::plain::{self, Credentials};
use ilion_env::Env;
use ilion_protocol::{
    ErrorDetail, ErrorResponse, Frame, Request, RequestFrame, Response, ResponseHead, Version,
    encode_response,
};
use ilion_query::{AccessControl, Error, Identity, Login};
use parking_lot::Mutex;

use crate::auditor::Auditor;
use crate::error_table::error_response;
use crate::metrics::ServerMetrics;
use crate::request::expect_in_stage;
use crate::session::{ConnectionStage, InFlight, SentBy, Session};

/// Most logins that wait for a thread. A hundred more of them would wait longer than clients do.
const WAITING_MAX: usize = 1024;
/// Characters of a role in the log.
const ROLE_CHARS_MAX: usize = 64;
/// The class that clients are told. Compat: drivers know it.
const AUTHENTICATOR_CLASS: &str = "org.apache.cassandra.auth.PasswordAuthenticator";

/// Checks passwords. See [`AccessControl`].
pub trait PasswordCheck: Send + Sync {
    /// True if clients must log in.
    fn requires_login(&self) -> bool;
    /// Logs a client in; takes long.
    ///
    /// # Errors
    /// The answer to the client.
    fn log_in(&self, role: &str, password: &str) -> Result<Arc<Login>, Error>;
}

impl PasswordCheck for AccessControl {
    fn requires_login(&self) -> bool {
        self.requires_login()
    }

    fn log_in(&self, role: &str, password: &str) -> Result<Arc<Login>, Error> {
        self.log_in(role, password)
    }
}

/// Nobody needs to log in.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLogins;

impl PasswordCheck for NoLogins {
    fn requires_login(&self) -> bool {
        false
    }

    fn log_in(&self, _: &str, _: &str) -> Result<Arc<Login>, Error> {
        Err(Error::BadCredentials("there are no logins".to_owned()))
    }
}

/// A login to check.
struct Attempt {
    session: Arc<Session>,
    credentials: Credentials,
    version: Version,
    stream: i16,
    cost: InFlight,
}

/// The logins of a server.
pub(crate) struct Logins {
    checks: Arc<dyn PasswordCheck>,
    /// `None` if nobody needs to log in.
    sender: Option<Sender<Attempt>>,
    pace: Mutex<LoginPace>,
    clock: Arc<dyn Env>,
    metrics: Arc<ServerMetrics>,
    auditor: Arc<Auditor>,
}

/// The threads that check passwords.
pub(crate) struct LoginThreads(Vec<JoinHandle<()>>);

impl Logins {
    /// Starts the threads, if clients must log in.
    pub fn start(
        checks: Arc<dyn PasswordCheck>,
        thread_count: usize,
        clock: Arc<dyn Env>,
        metrics: Arc<ServerMetrics>,
        auditor: Arc<Auditor>,
    ) -> std::io::Result<(Arc<Self>, LoginThreads)> {
        let requires_login = checks.requires_login();
        let (sender, receiver) = bounded(WAITING_MAX);
        let logins = Arc::new(Self {
            checks,
            sender: requires_login.then_some(sender),
            pace: Mutex::default(),
            clock,
            metrics,
            auditor,
        });
        let mut threads = Vec::new();
        for index in 0..thread_count.max(1) * usize::from(requires_login) {
            let (logins, receiver) = (Arc::downgrade(&logins), receiver.clone());
            let run = move || {
                if let Some(logins) = logins.upgrade() {
                    logins.clock.yield_to_others();
                }
                while let Ok(attempt) = receiver.recv() {
                    let Some(logins) = logins.upgrade() else { break };
                    logins.check(attempt);
                }
            };
            let name = format!("ilion-login-{index}");
            threads.push(std::thread::Builder::new().name(name).spawn(run)?);
        }
        Ok((logins, LoginThreads(threads)))
    }

    /// The answer to a valid STARTUP, and the stage that follows.
    pub fn begin(&self, session: &Session) -> Response {
        if self.sender.is_none() {
            session.set_stage(ConnectionStage::Ready);
            return Response::Ready;
        }
        session.set_stage(ConnectionStage::Authenticating);
        Response::Authenticate(AUTHENTICATOR_CLASS.to_owned())
    }

    /// Takes a frame of a session that has not logged in. Called by the task of its connection.
    pub fn take(self: &Arc<Self>, session: &Arc<Session>, frame: &Frame) {
        match self.attempt(session, frame) {
            Ok(attempt) => self.submit_in_time(attempt),
            Err(error) => {
                if error.detail == ErrorDetail::BadCredentials {
                    self.auditor.login_failed_now(session, &error.message);
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

    /// The login in a frame. Only one of a session is checked at a time.
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
            session: session.clone(),
            credentials,
            version: frame.version,
            stream: frame.stream,
            cost,
        })
    }

    /// Submits a login to the threads, after the wait that its address has to take.
    fn submit_in_time(self: &Arc<Self>, attempt: Attempt) {
        let address = attempt.session.peer.ip();
        let wait = self.pace.lock().wait(address, self.clock.monotonic_nanos());
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
        let sent = match &self.sender {
            Some(sender) => sender.try_send(attempt).map_err(|refused| refused.into_inner()),
            None => Err(attempt),
        };
        if let Err(attempt) = sent {
            let overloaded = Error::Overloaded("Too many logins are waiting; try again later".to_owned());
            self.finish(attempt, Err(overloaded));
        }
    }

    fn check(&self, attempt: Attempt) {
        if attempt.session.is_gone() {
            return;
        }
        let Credentials { name, password } = &attempt.credentials;
        let checked = catch_unwind(AssertUnwindSafe(|| self.checks.log_in(name, password)));
        // The panic hook has logged the panic itself.
        let bug = || Error::ServerError("the login met a bug of the server; its log has more".to_owned());
        self.finish(attempt, checked.unwrap_or_else(|_| Err(bug())));
    }

    fn finish(&self, attempt: Attempt, outcome: Result<Arc<Login>, Error>) {
        let session = &attempt.session;
        let response = match outcome {
            Ok(login) => {
                self.metrics.logins.inc();
                self.auditor.logged_in(session, &login.role);
                session.change_client(|client| client.state.identity = Identity::User(login));
                session.set_stage(ConnectionStage::Ready);
                Response::AuthSuccess(None)
            }
            Err(error) => {
                if matches!(error, Error::BadCredentials(_)) {
                    self.note_failure(session.peer.ip(), &attempt.credentials.name);
                    self.auditor.login_failed(session, &error.to_string());
                }
                session.set_stage(ConnectionStage::Authenticating);
                Response::Error(error_response(error, session.peer.ip()))
            }
        };
        answer(session, attempt.version, attempt.stream, &response, attempt.cost);
    }

    fn note_failure(&self, address: IpAddr, role: &str) {
        self.metrics.logins_failed.inc();
        self.pace.lock().failed(address, self.clock.monotonic_nanos());
        let role: String = role.chars().take(ROLE_CHARS_MAX).collect();
        tracing::warn!(%address, ?role, "a login failed");
    }
}

impl LoginThreads {
    /// Waits until the threads have ended, which they do when the last [`Logins`] is dropped.
    pub fn join(self) {
        for thread in self.0 {
            if thread.join().is_err() {
                tracing::error!("a thread of logins has panicked");
            }
        }
    }
}

/// Sends an answer to a session that has not logged in, or has just done.
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
