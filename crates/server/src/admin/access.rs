//! Access control of the HTTP port.
//!
//! Without a token the port accepts requests of this machine only. Pages of other sites in a browser of this machine are
//! refused, too: their requests have another `Origin`, or another `Host` if a foreign name resolves to this machine (DNS
//! rebinding). With a token, a request from any address passes if it shows the token.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};

use ilion_env::Env;

use crate::settings::Settings;

/// Largest token file.
const TOKEN_BYTES_MAX: u64 = 4096;

/// The settings of the HTTP port cannot be used; the operator must change them.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The port is open to other machines and has no token.
    #[error("admin_address {0} is reached by other machines: set admin_token_file, or leave it at 127.0.0.1")]
    Open(IpAddr),
    /// The file has no token.
    #[error("there is no token in admin_token_file {}: its first line must be one", .0.display())]
    NoToken(PathBuf),
    /// The file cannot be read.
    #[error(transparent)]
    Env(#[from] ilion_env::Error),
}

/// Reads the token: the first line of the file.
///
/// # Errors
/// The file cannot be read, or its first line is no token.
pub fn read_token(env: &dyn Env, path: &Path) -> Result<String, AccessError> {
    let none = || AccessError::NoToken(path.to_path_buf());
    let bytes = env.read_all(path, TOKEN_BYTES_MAX)?;
    let text = String::from_utf8(bytes).map_err(|_| none())?;
    let token = text.lines().next().unwrap_or_default().trim();
    match token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Err(none()),
        false => Ok(token.to_owned()),
    }
}

/// What a request must show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    token: Option<String>,
}

impl Access {
    /// The access that the settings ask for.
    ///
    /// # Errors
    /// The settings would open the port to everybody, or the token cannot be read.
    pub fn of(env: &dyn Env, settings: &Settings) -> Result<Self, AccessError> {
        match &settings.admin_token_file {
            Some(path) => Ok(Self::with_token(read_token(env, path)?)),
            None if settings.admin_address.is_loopback() => Ok(Self::of_this_machine()),
            None => Err(AccessError::Open(settings.admin_address)),
        }
    }

    /// No token: the port must listen on a loopback address.
    pub fn of_this_machine() -> Self {
        Self::default()
    }

    /// Requests must have the header `Authorization: Bearer <token>`.
    pub fn with_token(token: String) -> Self {
        Self { token: Some(token) }
    }

    /// Decides whether a request for this path may pass. Pure.
    pub(super) fn check(&self, path: &str, headers: &HeaderMap) -> Result<(), StatusCode> {
        let is_own_page = headers
            .get(header::ORIGIN)
            .is_none_or(|origin| is_origin_of(origin, headers.get(header::HOST)));
        if !is_own_page {
            return Err(StatusCode::FORBIDDEN);
        }
        match &self.token {
            None if is_local(headers) => Ok(()),
            None => Err(StatusCode::FORBIDDEN),
            // The page prompts the user for the token.
            Some(_) if path == "/" || path.starts_with("/assets/") => Ok(()),
            Some(token) if is_shown(token, headers) => Ok(()),
            Some(_) => Err(StatusCode::UNAUTHORIZED),
        }
    }
}

fn is_local(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    host.is_none_or(|host| {
        host.parse()
            .is_ok_and(|host: Authority| is_name_of_this_machine(host.host()))
    })
}

fn is_name_of_this_machine(name: &str) -> bool {
    let address = name.trim_start_matches('[').trim_end_matches(']').parse();
    name == "localhost" || address.is_ok_and(|address: IpAddr| address.is_loopback())
}

fn is_origin_of(origin: &HeaderValue, host: Option<&HeaderValue>) -> bool {
    let authority = origin.to_str().ok().and_then(|origin| {
        origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"))
    });
    authority.is_some() && authority == host.and_then(|host| host.to_str().ok())
}

fn is_shown(token: &str, headers: &HeaderMap) -> bool {
    let shown = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    shown.is_some_and(|shown| is_same(shown, token.as_bytes()))
}

/// Constant time: the time does not reveal how much of a guess is right.
fn is_same(shown: &[u8], token: &[u8]) -> bool {
    let differences = shown.iter().zip(token).fold(0, |all, (a, b)| all | (a ^ b));
    shown.len() == token.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(header::HeaderName, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn only_pages_of_this_door_ask_on_this_machine() {
        let check = |pairs: &[_]| Access::of_this_machine().check("/api/query", &headers(pairs));
        let here = (header::HOST, "127.0.0.1:9043");
        assert_eq!(check(std::slice::from_ref(&here)), Ok(()));
        let own = (header::ORIGIN, "http://127.0.0.1:9043");
        assert_eq!(check(&[here.clone(), own]), Ok(()));
        let other_port = (header::ORIGIN, "http://127.0.0.1:8080");
        assert_eq!(check(&[here.clone(), other_port]), Err(StatusCode::FORBIDDEN));
        let opaque = (header::ORIGIN, "null");
        assert_eq!(check(&[here, opaque]), Err(StatusCode::FORBIDDEN));
        let rebound = [
            (header::HOST, "evil.example"),
            (header::ORIGIN, "http://evil.example"),
        ];
        assert_eq!(check(&rebound), Err(StatusCode::FORBIDDEN));
    }

    #[test]
    fn this_machine_has_several_names() {
        let check =
            |host| Access::of_this_machine().check("/admin/status", &headers(&[(header::HOST, host)]));
        for host in [
            "127.0.0.1:9043",
            "127.0.0.2:9043",
            "localhost:9043",
            "localhost",
            "[::1]:9043",
            "[::1]",
        ] {
            assert_eq!(check(host), Ok(()), "{host}");
        }
        for host in [
            "192.0.2.1:9043",
            "localhost.example",
            "127.0.0.1.example:9043",
            "[::2]:9043",
            "",
        ] {
            assert_eq!(check(host), Err(StatusCode::FORBIDDEN), "{host}");
        }
    }

    #[test]
    fn with_a_token_all_but_the_page_needs_it() {
        let access = Access::with_token("secret".to_owned());
        let shown = |token| headers(&[(header::HOST, "db.example:9043"), (header::AUTHORIZATION, token)]);
        assert_eq!(access.check("/admin/status", &shown("Bearer secret")), Ok(()));
        for wrong in [
            "Bearer secre",
            "Bearer secrets",
            "Bearer ",
            "secret",
            "Basic secret",
        ] {
            assert_eq!(
                access.check("/admin/status", &shown(wrong)),
                Err(StatusCode::UNAUTHORIZED)
            );
        }
        assert_eq!(access.check("/", &HeaderMap::new()), Ok(()));
        assert_eq!(
            access.check("/metrics", &HeaderMap::new()),
            Err(StatusCode::UNAUTHORIZED)
        );
    }
}
