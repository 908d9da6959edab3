//! Checks that hold for every request to the HTTP port: it comes from no foreign page, names this node, and shows the token if one is set.
//!
//! Pages of other sites in an operator's browser are refused: their requests have another `Origin`, or another `Host` if a foreign name
//! resolves to this node (DNS rebinding), or say in `Sec-Fetch-Site` where they come from.
//!
//! Without logins and without a token the port accepts requests of this machine only. With a token, a request from any address passes if
//! it shows the token. With logins, see [`super::Entry`].

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, header};

use ilion_env::Env;
use ilion_settings::{Authenticator, Settings};
use ilion_tls::TlsError;

use super::need::Need;
use crate::encryption::admin_encryption;

/// Largest token file.
const TOKEN_BYTES_MAX: u64 = 4096;

/// The settings of the HTTP port cannot be used; the operator must change them.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The port is open to other machines, and asks for no login and no token.
    #[error(
        "admin_address {0} is reached by other machines: set admin_token_file, or authenticator and admin_encryption_options, or leave \
         it at 127.0.0.1"
    )]
    Open(IpAddr),
    /// Passwords would go over the network unencrypted.
    #[error(
        "admin_address {0} is reached by other machines, which would send the passwords of roles without encryption: enable \
         admin_encryption_options, or leave it at 127.0.0.1"
    )]
    Plain(IpAddr),
    /// The file has no token.
    #[error("there is no token in admin_token_file {}: its first line must be one", .0.display())]
    NoToken(PathBuf),
    /// Encryption cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
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

/// The rules for requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    token: Option<String>,
    hosts: Hosts,
    /// If true, pages of this port must have an origin with `https`; if false, `http` or, behind a proxy, `https`.
    is_encrypted: bool,
}

/// The names of this node that `Host` may contain.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Hosts {
    /// There are no logins and no token: only names of this machine.
    ThisMachine,
    /// Roles log in: addresses, localhost and these names. A page of another name would get no cookie, but could guess passwords.
    Named(Vec<String>),
    /// Any name: a token is needed, and browsers do not send it by themselves.
    Any,
}

/// Why a request may not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It comes from a foreign page, or `Host` does not name this node.
    Foreign,
    /// The token is missing or wrong.
    NoToken,
}

impl Access {
    /// The rules in the settings.
    ///
    /// # Errors
    /// The settings would open the port to everybody or send passwords in the clear, or the token cannot be read.
    pub fn of(env: &dyn Env, settings: &Settings) -> Result<Self, AccessError> {
        let address = settings.admin_address;
        // An IPv4 loopback address in IPv6 form is not accepted: nobody needs it, and it is easily misread.
        let is_of_this_machine = address.is_loopback();
        let asks_for_logins = settings.authenticator != Authenticator::AllowAll;
        let is_encrypted = admin_encryption(settings).is_some();
        let token = settings.admin_token_file.as_deref();
        let token = token.map(|path| read_token(env, path)).transpose()?;
        let hosts = match (asks_for_logins, &token) {
            (true, _) if !is_of_this_machine && !is_encrypted => return Err(AccessError::Plain(address)),
            (true, _) => Hosts::Named(settings.admin_host_names.0.clone()),
            (false, Some(_)) => Hosts::Any,
            (false, None) if is_of_this_machine => Hosts::ThisMachine,
            (false, None) => return Err(AccessError::Open(address)),
        };
        Ok(Self {
            token,
            hosts,
            is_encrypted,
        })
    }

    /// The rules without login and token. Requires: the port listens on a loopback address.
    pub fn of_this_machine() -> Self {
        Self {
            token: None,
            hosts: Hosts::ThisMachine,
            is_encrypted: false,
        }
    }

    /// True if roles log in.
    pub(super) fn asks_for_logins(&self) -> bool {
        matches!(self.hosts, Hosts::Named(_))
    }

    /// True if everybody must show a token.
    pub(super) fn asks_for_token(&self) -> bool {
        self.token.is_some() && !self.asks_for_logins()
    }

    /// Decides whether a request comes from a page of this port, or from no page. Pure.
    pub(super) fn check_page(&self, need: Need, method: &Method, headers: &HeaderMap) -> Result<(), Refused> {
        let host = headers.get(header::HOST);
        let is_own_page = headers
            .get(header::ORIGIN)
            .is_none_or(|origin| self.is_origin_of(origin, host));
        let is_for_this_node = match &self.hosts {
            Hosts::ThisMachine => is_host(host, is_name_of_this_machine),
            Hosts::Named(names) => is_host(host, |name| {
                is_name_of_this_machine(name)
                    || address_in(name).is_some()
                    || names.iter().any(|known| known.eq_ignore_ascii_case(name))
            }),
            Hosts::Any => true,
        };
        // A link on another site may lead to the page, which holds no data.
        let is_visit = need == Need::Nothing && method == Method::GET;
        let is_from_elsewhere = headers
            .get("sec-fetch-site")
            .is_some_and(|site| site != "same-origin" && site != "none");
        match is_own_page && is_for_this_node && (is_visit || !is_from_elsewhere) {
            true => Ok(()),
            false => Err(Refused::Foreign),
        }
    }

    fn is_origin_of(&self, origin: &HeaderValue, host: Option<&HeaderValue>) -> bool {
        let authority = origin.to_str().ok().and_then(|origin| {
            let plain = origin.strip_prefix("http://").filter(|_| !self.is_encrypted);
            plain.or_else(|| origin.strip_prefix("https://"))
        });
        authority.is_some() && authority == host.and_then(|host| host.to_str().ok())
    }

    /// On a node without logins: decides whether a request shows the token, if one is set. Pure.
    pub(super) fn check_token(&self, need: Need, shown: Option<&str>) -> Result<(), Refused> {
        match &self.token {
            None if self.asks_for_logins() => Err(Refused::NoToken),
            None => Ok(()),
            // Anybody may load the dashboard's page: it prompts the user for the token.
            Some(_) if need == Need::Nothing => Ok(()),
            Some(_) if shown.is_some_and(|shown| self.is_token(shown)) => Ok(()),
            Some(_) => Err(Refused::NoToken),
        }
    }

    /// True if there is a token.
    pub(super) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// True if this is the token.
    pub(super) fn is_token(&self, shown: &str) -> bool {
        let token = self.token.as_ref();
        token.is_some_and(|token| is_same(shown.as_bytes(), token.as_bytes()))
    }
}

/// True if the header `Host` has a known name or, as in requests of old programs, is missing.
fn is_host(host: Option<&HeaderValue>, is_known: impl Fn(&str) -> bool) -> bool {
    let Some(host) = host else {
        return true;
    };
    let authority = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
    authority.is_some_and(|authority| is_known(authority.host()))
}

fn is_name_of_this_machine(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || address_in(name).is_some_and(|address| address.is_loopback())
}

fn address_in(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// Compares in constant time, so that the time does not reveal how much of a guess is right.
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

    const HERE: &str = "127.0.0.1:9043";

    fn with_logins() -> Access {
        Access {
            token: None,
            hosts: Hosts::Named(vec!["db.example".to_owned()]),
            is_encrypted: false,
        }
    }

    fn check(access: &Access, pairs: &[(header::HeaderName, &'static str)]) -> bool {
        let (post, headers) = (Method::POST, headers(pairs));
        access.check_page(Need::LogIn, &post, &headers).is_ok()
    }

    #[test]
    fn only_pages_of_this_port_ask() {
        for access in [Access::of_this_machine(), with_logins()] {
            let from = |origin| check(&access, &[(header::HOST, HERE), (header::ORIGIN, origin)]);
            assert!(check(&access, &[(header::HOST, HERE)]));
            assert!(from("http://127.0.0.1:9043"));
            for other in [
                "http://127.0.0.1:8080",
                "http://localhost:9043",
                "null",
                "",
                "file://127.0.0.1:9043",
            ] {
                assert!(!from(other), "{other}");
            }
            let evil = "http://evil.example";
            assert!(!check(
                &access,
                &[(header::HOST, "evil.example"), (header::ORIGIN, evil)]
            ));
        }
    }

    #[test]
    fn other_sites_may_lead_to_the_page_only() {
        let access = with_logins();
        let site = header::HeaderName::from_static("sec-fetch-site");
        for (from, is_own) in [
            ("same-origin", true),
            ("none", true),
            ("same-site", false),
            ("cross-site", false),
        ] {
            let shown = headers(&[(header::HOST, HERE), (site.clone(), from)]);
            let passes = |need, method: Method| access.check_page(need, &method, &shown).is_ok();
            assert!(passes(Need::Nothing, Method::GET), "{from}");
            assert_eq!(passes(Need::Nothing, Method::POST), is_own, "{from}");
            assert_eq!(passes(Need::Watch, Method::GET), is_own, "{from}");
        }
    }

    #[test]
    fn this_node_has_several_names() {
        let names = [
            ("127.0.0.1:9043", true, true),
            ("127.0.0.2:9043", true, true),
            ("localhost:9043", true, true),
            ("LOCALHOST", true, true),
            ("[::1]:9043", true, true),
            ("[::1]", true, true),
            ("192.0.2.1:9043", false, true),
            ("[::2]:9043", false, true),
            ("DB.example:9043", false, true),
            ("localhost.example", false, false),
            ("127.0.0.1.example:9043", false, false),
            ("evil.db.example", false, false),
            ("", false, false),
        ];
        for (host, is_of_this_machine, is_with_logins) in names {
            let shown = [(header::HOST, host)];
            assert_eq!(
                check(&Access::of_this_machine(), &shown),
                is_of_this_machine,
                "{host}"
            );
            assert_eq!(check(&with_logins(), &shown), is_with_logins, "{host}");
        }
    }

    #[test]
    fn with_a_token_all_but_the_page_needs_it() {
        let access = Access {
            token: Some("secret".to_owned()),
            hosts: Hosts::Any,
            is_encrypted: false,
        };
        assert_eq!(access.check_token(Need::Watch, Some("secret")), Ok(()));
        for wrong in [Some("secre"), Some("secrets"), Some(""), None] {
            assert_eq!(access.check_token(Need::Watch, wrong), Err(Refused::NoToken));
        }
        assert_eq!(access.check_token(Need::Nothing, None), Ok(()));
        assert_eq!(
            Access::of_this_machine().check_token(Need::Administer, None),
            Ok(())
        );
        assert!(!with_logins().is_token(""));
    }

    #[test]
    fn a_port_that_other_machines_reach_asks_for_something() {
        let env = ilion_env::MemEnv::new(1);
        let at = |address: &str, authenticator, is_encrypted| Settings {
            admin_address: address.parse().unwrap(),
            authenticator,
            admin_encryption_options_enabled: Some(is_encrypted),
            ..Settings::default()
        };
        let of = |settings| Access::of(&env, &settings);
        let (open, password) = (Authenticator::AllowAll, Authenticator::Password);
        assert_eq!(
            of(at("127.0.0.1", open, false)).unwrap(),
            Access::of_this_machine()
        );
        assert!(of(at("127.0.0.1", password, false)).unwrap().asks_for_logins());
        assert!(of(at("10.0.0.1", password, true)).unwrap().asks_for_logins());
        assert!(matches!(
            of(at("10.0.0.1", password, false)),
            Err(AccessError::Plain(_))
        ));
        for is_encrypted in [true, false] {
            assert!(matches!(
                of(at("10.0.0.1", open, is_encrypted)),
                Err(AccessError::Open(_))
            ));
        }
    }
}
