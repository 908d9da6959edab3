//! What a request to the HTTP port needs, by its path. A path that is not listed here needs a superuser.

use axum::http::Method;
use ilion_query::Operation;

/// The paths of sessions, which need no login.
pub(super) const SESSION: &str = "/api/session";
pub(super) const LOGIN: &str = "/api/login";
pub(super) const LOGOUT: &str = "/api/logout";

/// What a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// No credentials: the page and its parts, which have no data; logging in and out; health checks.
    Nothing,
    /// A login. Statements and reads of changes are then checked as those of any client.
    LogIn,
    /// Metrics and reports.
    Watch,
    /// Everything else.
    Administer,
}

impl Need {
    /// The need of a request. Pure.
    pub fn of(method: &Method, path: &str) -> Self {
        let is_read = method == Method::GET || method == Method::HEAD;
        match path {
            "/" | SESSION | LOGIN | LOGOUT => Self::Nothing,
            _ if path.starts_with("/assets/") => Self::Nothing,
            // Health checks have no login; `nodetool statusbinary` is the health check of the container.
            "/healthz" | "/readyz" | "/admin/binary" if is_read => Self::Nothing,
            "/api/query" | "/admin/changes" | "/admin/changes/commit" => Self::LogIn,
            "/metrics" | "/api/spectrogram" | "/api/slowest" | "/api/history" if is_read => Self::Watch,
            _ if path.starts_with("/admin/") && is_read => Self::Watch,
            _ => Self::Administer,
        }
    }

    /// The operation that a role must be permitted.
    pub fn operation(self) -> Operation {
        match self {
            Self::Nothing | Self::LogIn => Operation::LogIn,
            Self::Watch => Operation::Watch,
            Self::Administer => Operation::Administer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_need_what_they_do() {
        for (method, path, need) in [
            (Method::GET, "/", Need::Nothing),
            (Method::GET, "/assets/app.js", Need::Nothing),
            (Method::POST, "/api/login", Need::Nothing),
            (Method::GET, "/healthz", Need::Nothing),
            (Method::GET, "/readyz", Need::Nothing),
            (Method::GET, "/admin/binary", Need::Nothing),
            (Method::POST, "/admin/binary", Need::Administer),
            (Method::POST, "/api/query", Need::LogIn),
            (Method::GET, "/admin/changes", Need::LogIn),
            (Method::POST, "/admin/changes/commit", Need::LogIn),
            (Method::GET, "/admin/changes/consumers", Need::Watch),
            (Method::POST, "/admin/changes/release", Need::Administer),
            (Method::POST, "/admin/changes/forget", Need::Administer),
            (Method::GET, "/metrics", Need::Watch),
            (Method::HEAD, "/admin/status", Need::Watch),
            (Method::GET, "/api/slowest", Need::Watch),
            (Method::GET, "/api/history", Need::Watch),
            (Method::POST, "/api/history", Need::Administer),
            (Method::POST, "/admin/status", Need::Administer),
            (Method::POST, "/admin/drain", Need::Administer),
            (Method::DELETE, "/admin/status", Need::Administer),
            (Method::POST, "/metrics", Need::Administer),
            (Method::GET, "//admin/status", Need::Administer),
            (Method::GET, "/new", Need::Administer),
            (Method::GET, "/api/login/", Need::Administer),
            (Method::GET, "/assets", Need::Administer),
        ] {
            assert_eq!(Need::of(&method, path), need, "{method} {path}");
        }
    }
}
