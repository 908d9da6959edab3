//! Logins of roles at the HTTP port.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use ilion_auth::Sessions;
use ilion_auth::plain::Credentials;
use ilion_env::Env;
use ilion_query::{AccessControl, Error, Login, Operation};
use ilion_types::hex;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::caller::Peer;
use super::refusal::Refusal;
use crate::logins::{Logins, Proof};
use crate::server::Server;
use crate::server_node::ServerNode;

/// Most logins of this port that are checked or wait at a time. Further ones are refused at once: each occupies one of the few
/// connections.
const WAITING_MAX: usize = 32;

/// A session of the dashboard.
#[derive(Clone)]
struct RoleSession {
    login: Arc<Login>,
    /// The stamp of the role's password: the session ends when the password is changed.
    password_stamp: Option<[u8; 32]>,
}

/// Logins of roles at the HTTP port, and the sessions of those who have logged in.
pub struct RoleLogins {
    access: Arc<AccessControl>,
    logins: Weak<Logins>,
    env: Arc<dyn Env>,
    sessions: Mutex<Sessions<RoleSession>>,
    places: Semaphore,
    cookie: String,
}

impl RoleLogins {
    /// The logins of a node and its server; `None` if nobody needs to log in.
    pub fn of(node: &ServerNode, server: &Server) -> Option<Self> {
        let access = node.processor().access();
        access.requires_login().then(|| Self {
            access: access.clone(),
            logins: server.logins(),
            env: node.engine().env().clone(),
            sessions: Mutex::default(),
            places: Semaphore::new(WAITING_MAX),
            cookie: String::new(),
        })
    }

    /// Names the cookie after the port, since browsers send cookies to all ports of a host.
    pub(in super::super) fn at_port(self, port: u16, is_encrypted: bool) -> Self {
        // Browsers take a cookie with this prefix over TLS only, and for this host only.
        let prefix = if is_encrypted { "__Host-" } else { "" };
        Self {
            cookie: format!("{prefix}ilion-{port}"),
            ..self
        }
    }

    pub(super) fn cookie(&self) -> &str {
        &self.cookie
    }

    /// The login of a session.
    pub(super) async fn of_session(&self, key: &str) -> Result<Arc<Login>, Refusal> {
        let now = self.env.monotonic_nanos();
        let ended = || Refusal::unknown("the session has ended: log in again");
        let session = self
            .sessions
            .lock()
            .use_now(key, now)
            .cloned()
            .ok_or_else(ended)?;
        let (access, login) = (self.access.clone(), session.login.clone());
        let stamp = blocking(move || access.password_stamp(&login.role)).await?;
        if stamp != session.password_stamp {
            self.sessions.lock().end(key);
            return Err(ended());
        }
        Ok(session.login)
    }

    /// Logs a role in.
    pub(super) async fn by_password(
        &self,
        from: SocketAddr,
        credentials: Credentials,
    ) -> Result<Arc<Login>, Refusal> {
        Ok(self.log_in(from, Proof::Password(credentials)).await?)
    }

    /// Logs in a client by its certificate.
    pub(super) async fn by_certificate(&self, peer: &Peer) -> Result<Arc<Login>, Refusal> {
        match &peer.identity {
            None => Err(Refusal::unknown(
                "log in: with the name and password of a role (Authorization: Basic), or with the node's token (Bearer)",
            )),
            Some(Err(why)) => Err(Refusal::unknown(why)),
            Some(Ok(identity)) => Ok(self
                .log_in(peer.address, Proof::Identity(identity.clone()))
                .await?),
        }
    }

    async fn log_in(&self, from: SocketAddr, proof: Proof) -> Result<Arc<Login>, Error> {
        let busy = || Error::Overloaded("Too many logins are waiting; try again later".to_owned());
        let _place = self.places.try_acquire().map_err(|_| busy())?;
        let logins = self.logins.upgrade();
        let logins = logins.ok_or_else(|| Error::Overloaded("The node is stopping".to_owned()))?;
        logins.at_door(from, proof).await
    }

    /// Checks whether a role has the permission for an operation.
    pub(super) async fn permit(&self, login: &Arc<Login>, operation: Operation) -> Result<(), Refusal> {
        let (access, login) = (self.access.clone(), login.clone());
        blocking(move || access.check_operation(&login, operation)).await
    }

    /// Logs a role in and begins a session; returns its key.
    pub(super) async fn begin_session(
        &self,
        from: SocketAddr,
        credentials: Credentials,
    ) -> Result<String, Refusal> {
        let (access, role) = (self.access.clone(), credentials.name.clone());
        // Taken before the password is checked: if the password is changed meanwhile, the new session is already invalid.
        let password_stamp = blocking(move || access.password_stamp(&role)).await?;
        let login = self.by_password(from, credentials).await?;
        self.permit(&login, Operation::LogIn).await?;
        let mut random = [0; 32];
        self.env.random_bytes(&mut random);
        let key = hex::print(&random);
        let (role, now) = (login.role.clone(), self.env.monotonic_nanos());
        let session = RoleSession {
            login,
            password_stamp,
        };
        self.sessions.lock().begin(&key, &role, session, now);
        Ok(key)
    }

    /// Ends a session.
    pub(super) fn end_session(&self, key: &str) {
        self.sessions.lock().end(key);
    }
}

/// Runs code that may read files, on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Refusal> {
    let bug = || Error::ServerError("it met a bug of the server; its log has more".to_owned());
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.unwrap_or_else(|_| Err(bug()))?)
}
