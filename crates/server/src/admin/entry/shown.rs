//! The credentials of a request: a token, a name and a password, or the key of a session.

use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ilion_auth::plain::{Credentials, TOKEN_BYTES_MAX};

/// The credentials of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// No credentials.
    Nothing,
    /// `Authorization: Bearer TOKEN`.
    Token(String),
    /// `Authorization: Basic ..`: name and password.
    Password(Credentials),
    /// The cookie of a session.
    Session(String),
    /// A header `Authorization` that is none of these.
    Unreadable,
}

impl Shown {
    /// The credentials in the headers; `cookie` is the name of the cookie. `Authorization` takes precedence over a cookie. Pure.
    pub fn of(headers: &HeaderMap, cookie: &str) -> Self {
        match headers.get(header::AUTHORIZATION) {
            Some(value) => value
                .to_str()
                .ok()
                .and_then(authorization)
                .unwrap_or(Self::Unreadable),
            None => session(headers, cookie).map_or(Self::Nothing, Self::Session),
        }
    }
}

/// Parses `Authorization`. The case of the scheme's letters does not matter (RFC 9110).
fn authorization(value: &str) -> Option<Shown> {
    let (scheme, rest) = value.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(Shown::Token(rest.trim().to_owned()));
    }
    if !scheme.eq_ignore_ascii_case("basic") || rest.len() > 2 * TOKEN_BYTES_MAX {
        return None;
    }
    let text = String::from_utf8(STANDARD.decode(rest.trim()).ok()?).ok()?;
    let (name, password) = text.split_once(':')?;
    credentials(name, password).map(Shown::Password)
}

/// A name and a password, or `None` if no role can have them: the bounds are those of CQL clients.
pub(super) fn credentials(name: &str, password: &str) -> Option<Credentials> {
    let is_whole = |text: &str| !text.is_empty() && !text.contains('\0');
    let fits = name.len() + password.len() + 2 <= TOKEN_BYTES_MAX;
    (is_whole(name) && is_whole(password) && fits).then(|| Credentials {
        name: name.to_owned(),
        password: password.to_owned(),
    })
}

/// The value of a cookie. `None` if there are two of this name: a page of another port of this host may have added one.
pub(super) fn session(headers: &HeaderMap, cookie: &str) -> Option<String> {
    let lines = headers.get_all(header::COOKIE).iter();
    let pairs = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'));
    let mut found = pairs.filter_map(|pair| pair.trim().split_once('=').filter(|(name, _)| *name == cookie));
    let (_, key) = found.next()?;
    found.next().is_none().then(|| key.to_owned())
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn shown(pairs: &[(HeaderName, &str)]) -> Shown {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        Shown::of(&headers, "key")
    }

    fn authorized(value: &str) -> Shown {
        shown(&[(header::AUTHORIZATION, value)])
    }

    #[test]
    fn tokens_passwords_and_sessions_are_found() {
        assert_eq!(shown(&[]), Shown::Nothing);
        assert_eq!(authorized("Bearer abc"), Shown::Token("abc".to_owned()));
        assert_eq!(authorized("bearer abc"), Shown::Token("abc".to_owned()));
        let Shown::Password(found) = authorized(&format!("Basic {}", STANDARD.encode("bob:a:b"))) else {
            panic!("no password");
        };
        assert_eq!((&*found.name, &*found.password), ("bob", "a:b"));
        assert_eq!(
            shown(&[(header::COOKIE, "a=b; key=1; c=d")]),
            Shown::Session("1".to_owned())
        );
        let both = [(header::COOKIE, "key=1"), (header::AUTHORIZATION, "Bearer x")];
        assert_eq!(shown(&both), Shown::Token("x".to_owned()));
    }

    #[test]
    fn what_cannot_be_read_is_no_login() {
        let basic = |text: &[u8]| authorized(&format!("Basic {}", STANDARD.encode(text)));
        for text in [
            &b"bob"[..],
            b":secret",
            b"bob:",
            b"bob:\xff",
            b"bo\0b:secret",
            &[b':'; 5000],
        ] {
            assert_eq!(basic(text), Shown::Unreadable, "{text:?}");
        }
        for value in [
            "",
            "Basic",
            "Basic !!",
            "Digest x",
            &format!("Basic {}", "A".repeat(100_000)),
        ] {
            assert_eq!(authorized(value), Shown::Unreadable, "{value}");
        }
        assert_eq!(shown(&[(header::COOKIE, "key=1; key=2")]), Shown::Nothing);
        let twice = [(header::COOKIE, "key=1"), (header::COOKIE, "key=2")];
        assert_eq!(shown(&twice), Shown::Nothing);
        assert_eq!(shown(&[(header::COOKIE, "keys=1; key; ke=y")]), Shown::Nothing);
    }
}
