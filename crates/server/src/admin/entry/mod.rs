//! Decides who may use the HTTP port: one layer in front of all routes ([`admit`]).
//!
//! A request must come from a page of the port itself or from no page ([`Access`]). Its path decides what it needs ([`need`]). On a node
//! without logins it must then show the token, if one is set. On a node with logins it must show a role's name and password, the cookie
//! of a session, the certificate of its connection, or the token ([`shown`]), and the role must have the permission that the path needs
//! ([`RoleLogins`]). Handlers get the [`Caller`]. Orders, wrong tokens and missing permissions are recorded in the audit log here; `Logins`
//! records logins by password or certificate, and the code that executes a statement records the statement.
//!
//! | request | answer |
//! | --- | --- |
//! | `GET /api/session` | JSON [`SessionReport`]: what the node asks for, and who is logged in |
//! | `POST /api/login` | JSON [`LoginOrder`]: begins a session, with a cookie |
//! | `POST /api/logout` | ends it |

mod access;
mod caller;
mod need;
mod refusal;
mod role_logins;
mod session;
mod shown;
mod token_pace;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::sync::Semaphore;

use self::access::Refused;
pub use self::access::{Access, AccessError, read_token};
pub use self::caller::Caller;
pub(super) use self::caller::Peer;
use self::need::Need;
use self::refusal::Refusal;
pub use self::role_logins::RoleLogins;
pub use self::session::{AskedFor, LoginOrder, SessionReport};
use self::shown::Shown;
use self::token_pace::TokenPace;
use super::loads::{PIECE_BYTES_MAX, PIECE_PATH};
use crate::auditor::Auditor;

/// Largest number of characters of an order in the audit log.
const ORDER_CHARS_MAX: usize = 4096;

/// Largest body of a request, except for pieces of SSTables: axum's own default.
const BODY_BYTES_MAX: usize = 2 << 20;
/// Largest number of bodies with pieces of SSTables that are received at the same time; others wait.
const PIECES_MAX: usize = 8;

/// Decides who may use the HTTP port.
pub(super) struct Entry {
    access: Access,
    /// `None` if the node has no logins.
    roles: Option<RoleLogins>,
    /// A request that is not complete after this time is refused.
    timeout: Duration,
    pieces: Semaphore,
    tokens: TokenPace,
    /// `None` if there is no audit log.
    auditor: Option<Arc<Auditor>>,
}

impl Entry {
    pub fn new(
        access: Access,
        roles: Option<RoleLogins>,
        timeout: Duration,
        auditor: Option<Arc<Auditor>>,
    ) -> Self {
        Self {
            access,
            roles,
            timeout,
            pieces: Semaphore::new(PIECES_MAX),
            tokens: TokenPace::default(),
            auditor,
        }
    }

    /// Finds out who sends a request, and decides whether the request may pass.
    async fn decide(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
        peer: &Peer,
    ) -> Result<Caller, Refusal> {
        let need = Need::of(method, path);
        self.access
            .check_page(need, method, headers)
            .map_err(|refused| self.refusal(refused))?;
        let shown = Shown::of(headers, self.cookie());
        if let Shown::Token(token) = &shown
            && need != Need::Nothing
            && self.access.has_token()
        {
            self.check_token(token, peer).await?;
        }
        let Some(roles) = &self.roles else {
            let token = match &shown {
                Shown::Token(token) => Some(token.as_str()),
                _ => None,
            };
            let checked = self.access.check_token(need, token);
            return checked
                .map(|()| Caller::Operator)
                .map_err(|refused| self.refusal(refused));
        };
        if need == Need::Nothing {
            return Ok(Caller::Nobody);
        }
        let login = match shown {
            Shown::Token(token) if self.access.is_token(&token) => return of_program(need),
            Shown::Token(_) => return Err(Refusal::unknown("the token is wrong")),
            Shown::Unreadable => return Err(Refusal::unknown("the header Authorization cannot be read")),
            // Browsers send `Origin` with every request that may change something.
            Shown::Session(_) if *method != Method::GET && !headers.contains_key(header::ORIGIN) => {
                return Err(Refusal::new(
                    StatusCode::FORBIDDEN,
                    "a request with the cookie of a session must say its Origin",
                ));
            }
            Shown::Session(key) => roles.of_session(&key).await?,
            Shown::Password(credentials) => roles.by_password(peer.address, credentials).await?,
            Shown::Nothing => roles.by_certificate(peer).await?,
        };
        let permitted = roles.permit(&login, need.operation()).await;
        if let (Err(refusal), Some(auditor)) = (&permitted, &self.auditor) {
            let request = format!("{method} {path}");
            auditor.not_permitted_now(&login.role, peer.address, &request, &refusal.reason);
        }
        permitted.map(|()| Caller::Role(login, peer.address))
    }

    /// Refuses a wrong token. If this address has sent wrong tokens before, the request waits before its token is checked.
    async fn check_token(&self, token: &str, peer: &Peer) -> Result<(), Refusal> {
        let address = peer.address.ip();
        if !self.tokens.wait(address).await {
            let busy = "too many requests wait after wrong tokens; try again later";
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, busy));
        }
        if self.access.is_token(token) {
            return Ok(());
        }
        self.tokens.failed(address);
        tracing::warn!(%address, "a request to the HTTP port has shown a wrong token");
        if let Some(auditor) = &self.auditor {
            auditor.login_failed_now(peer.address, "wrong token");
        }
        Err(Refusal::unknown("the token is wrong"))
    }

    /// Executes an order and records it. The order is recorded before it is executed, so that an order to switch the audit log off is in
    /// the log; if the log was off then, the order is recorded afterwards.
    async fn execute(
        &self,
        caller: Caller,
        peer: Peer,
        order: String,
        executed: impl Future<Output = Response>,
    ) -> Response {
        let Some(auditor) = self.auditor.clone() else {
            return executed.await;
        };
        let order = Arc::new(Order {
            auditor,
            caller,
            peer,
            text: order,
        });
        let begun = order.clone();
        let is_recorded = recorded(move || begun.record()).await;
        let response = executed.await;
        let status = response.status();
        if status.is_client_error() || status.is_server_error() {
            recorded(move || order.record_failure(status)).await;
        } else if !is_recorded {
            recorded(move || order.record()).await;
        }
        response
    }

    /// The name of the cookie; empty without logins.
    fn cookie(&self) -> &str {
        self.roles.as_ref().map_or("", RoleLogins::cookie)
    }

    fn refusal(&self, refused: Refused) -> Refusal {
        match refused {
            Refused::NoToken => {
                Refusal::unknown("show the node's token: Authorization: Bearer <token> (admin_token_file)")
            }
            Refused::Foreign if self.access.asks_for_logins() => Refusal::new(
                StatusCode::FORBIDDEN,
                "the request comes from a page of another site, or the node does not know the name in it: IP addresses, localhost and \
                 admin_host_names are known",
            ),
            Refused::Foreign => Refusal::new(
                StatusCode::FORBIDDEN,
                "the request comes from a page of another site, or for a name that is not of this machine",
            ),
        }
    }
}

/// The caller of a request with the token, which permits everything except statements: these need a role.
fn of_program(need: Need) -> Result<Caller, Refusal> {
    match need {
        Need::LogIn => Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "the token stands for no role, and this node wants one for each statement: log in",
        )),
        _ => Ok(Caller::Program),
    }
}

/// The routes of sessions.
pub(super) fn routes(entry: Arc<Entry>) -> Router {
    session::routes().with_state(entry)
}

/// An order to the node.
struct Order {
    auditor: Arc<Auditor>,
    caller: Caller,
    peer: Peer,
    text: String,
}

impl Order {
    fn record(&self) -> bool {
        self.auditor
            .ordered(self.caller.role(), self.peer.address, &self.text)
    }

    fn record_failure(&self, status: StatusCode) -> bool {
        let why = format!("it failed: {status}");
        self.auditor
            .order_failed(self.caller.role(), self.peer.address, &self.text, &why);
        true
    }
}

/// Runs `record` on a thread that may block.
async fn recorded(record: impl FnOnce() -> bool + Send + 'static) -> bool {
    tokio::task::spawn_blocking(record).await.unwrap_or_else(|error| {
        tracing::error!(%error, "an order to the HTTP port is not in the audit log");
        false
    })
}

/// An order as a text for the audit log, without its body. Pure.
fn order_text(method: &Method, uri: &Uri) -> String {
    let path = uri.path();
    let text = match uri.query() {
        None => format!("{method} {path}"),
        // A setting that is a secret cannot be changed this way, but somebody may try to.
        Some(query) if query.to_ascii_lowercase().contains("password") => format!("{method} {path}?(hidden)"),
        Some(query) => format!("{method} {path}?{query}"),
    };
    text.chars().take(ORDER_CHARS_MAX).collect()
}

/// Decides whether a request may pass, receives its body, and passes it on.
pub(super) async fn admit(State(entry): State<Arc<Entry>>, request: Request, next: Next) -> Response {
    let (mut head, body) = request.into_parts();
    let Some(peer) = head.extensions.get::<Peer>().cloned() else {
        return Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the connection has no address")
            .into_response();
    };
    let caller = match entry
        .decide(&head.method, head.uri.path(), &head.headers, &peer)
        .await
    {
        Ok(caller) => caller,
        Err(refusal) => return refusal.into_response(),
    };
    // Begin and end of a load are recorded, but not each piece.
    let is_order =
        Need::of(&head.method, head.uri.path()) == Need::Administer && head.uri.path() != PIECE_PATH;
    let order = is_order.then(|| (caller.clone(), order_text(&head.method, &head.uri)));
    head.extensions.insert(caller);
    // The semaphore is never closed.
    let (bytes_max, _place) = match head.uri.path() {
        PIECE_PATH => (PIECE_BYTES_MAX, entry.pieces.acquire().await.ok()),
        _ => (BODY_BYTES_MAX, None),
    };
    let executed = async {
        match tokio::time::timeout(entry.timeout, to_bytes(body, bytes_max)).await {
            Ok(Ok(body)) => next.run(Request::from_parts(head, body.into())).await,
            Ok(Err(_)) => StatusCode::PAYLOAD_TOO_LARGE.into_response(),
            Err(_) => StatusCode::REQUEST_TIMEOUT.into_response(),
        }
    };
    let mut response = match order {
        None => executed.await,
        Some((caller, order)) => entry.execute(caller, peer, order, executed).await,
    };
    let headers = response.headers_mut();
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}
