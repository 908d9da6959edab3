//! Requests about sessions: the current login, logging in, logging out.

use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use ilion_query::Operation;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::caller::Peer;
use super::need::{LOGIN, LOGOUT, SESSION};
use super::refusal::Refusal;
use super::shown::{credentials, session};
use super::{Entry, RoleLogins};

/// The name and password of a role.
#[derive(Deserialize)]
pub struct LoginOrder {
    /// Its name.
    pub role: String,
    /// Its password.
    pub password: String,
}

/// The credentials that the node asks for, and the current login.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionReport {
    /// What requests must show.
    pub asks_for: AskedFor,
    /// The role of this session; `None` if nobody is logged in.
    pub role: Option<String>,
    /// Whether the caller may see metrics and reports.
    pub may_watch: bool,
    /// Whether the caller may administer the node.
    pub may_administer: bool,
}

/// What requests must show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AskedFor {
    /// No credentials: requests must come from this machine.
    #[default]
    Nothing,
    /// A token.
    Token,
    /// A role's login.
    Login,
}

pub(super) fn routes() -> Router<Arc<Entry>> {
    Router::new()
        .route(SESSION, get(report))
        .route(LOGIN, post(log_in))
        .route(LOGOUT, post(log_out))
}

async fn report(State(entry): State<Arc<Entry>>, headers: HeaderMap) -> Json<SessionReport> {
    let Some(roles) = &entry.roles else {
        return Json(SessionReport {
            asks_for: match entry.access.asks_for_token() {
                true => AskedFor::Token,
                false => AskedFor::Nothing,
            },
            ..SessionReport::default()
        });
    };
    let mut report = SessionReport {
        asks_for: AskedFor::Login,
        ..SessionReport::default()
    };
    if let Some(key) = session(&headers, roles.cookie())
        && let Ok(login) = roles.of_session(&key).await
        && roles.permit(&login, Operation::LogIn).await.is_ok()
    {
        report.role = Some(login.role.clone());
        report.may_watch = roles.permit(&login, Operation::Watch).await.is_ok();
        report.may_administer = roles.permit(&login, Operation::Administer).await.is_ok();
    }
    Json(report)
}

fn roles(entry: &Entry) -> Result<&RoleLogins, Refusal> {
    let without = || Refusal::new(StatusCode::BAD_REQUEST, "this node has no logins");
    entry.roles.as_ref().ok_or_else(without)
}

async fn log_in(
    State(entry): State<Arc<Entry>>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    Json(order): Json<LoginOrder>,
) -> Result<Response, Refusal> {
    let roles = roles(&entry)?;
    let unfit = || Refusal::unknown("the name or password is empty or too long");
    let credentials = credentials(&order.role, &order.password).ok_or_else(unfit)?;
    let key = roles.begin_session(peer.address, credentials).await?;
    // A browser has one session: the earlier one ends.
    if let Some(before) = session(&headers, roles.cookie()) {
        roles.end_session(&before);
    }
    Ok(with_cookie(roles, &key, ""))
}

async fn log_out(State(entry): State<Arc<Entry>>, headers: HeaderMap) -> Result<Response, Refusal> {
    let roles = roles(&entry)?;
    if let Some(key) = session(&headers, roles.cookie()) {
        roles.end_session(&key);
    }
    Ok(with_cookie(roles, "", "; Max-Age=0"))
}

fn with_cookie(roles: &RoleLogins, key: &str, end: &str) -> Response {
    let name = roles.cookie();
    let secure = if name.starts_with("__Host-") {
        "; Secure"
    } else {
        ""
    };
    let cookie = format!("{name}={key}; Path=/; HttpOnly; SameSite=Strict{secure}{end}");
    ([(header::SET_COOKIE, cookie)], Json(json!({}))).into_response()
}
