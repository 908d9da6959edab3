//! The token of SASL PLAIN, with which a client logs in.
//!
//! ```text
//! token := authorization id, 0x00, name, 0x00, password
//! ```
//!
//! Compat: `PasswordAuthenticator.decodeCredentials` of Cassandra 5.0; the authorization id is ignored. Unlike there, bytes that are not
//! UTF-8 are refused and not replaced.

/// Longer tokens are refused.
pub const TOKEN_BYTES_MAX: usize = 4096;

/// Name and password of a token.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Name of the role.
    pub name: String,
    /// Its password.
    pub password: String,
}

impl std::fmt::Debug for Credentials {
    /// Passwords do not belong in logs.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Credentials({:?})", self.name)
    }
}

/// Cuts name and password out of a token.
///
/// # Errors
/// The text says what is wrong with the token, for the client.
pub fn decode(token: &[u8]) -> Result<Credentials, &'static str> {
    if token.len() > TOKEN_BYTES_MAX {
        return Err("Credential format error: the token is longer than 4096 bytes");
    }
    let mut parts = token.rsplit(|byte| *byte == 0);
    let (last, name, _) = (parts.next(), parts.next(), parts.next());
    if parts.next().is_some() {
        return Err("Credential format error: username or password is empty or contains NUL(\\0) character");
    }
    // Without any NUL there is no password; without a second one there is no name.
    let password = last.filter(|password| name.is_some() && !password.is_empty());
    let has_two = token.iter().filter(|byte| **byte == 0).count() == 2;
    let password = password.ok_or("Password must not be null")?;
    let name = name.filter(|name| has_two && !name.is_empty());
    let name = name.ok_or("Authentication ID must not be null")?;
    let text = |bytes: &[u8]| std::str::from_utf8(bytes).map(str::to_owned);
    match (text(name), text(password)) {
        (Ok(name), Ok(password)) => Ok(Credentials { name, password }),
        _ => Err("Credential format error: username or password is not UTF-8"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(token: &[u8]) -> Result<(String, String), &'static str> {
        decode(token).map(|found| (found.name, found.password))
    }

    #[test]
    fn name_and_password_are_found() {
        let found = Ok(("bob".to_owned(), "secret".to_owned()));
        assert_eq!(decoded(b"\0bob\0secret"), found);
        assert_eq!(decoded(b"admin\0bob\0secret"), found);
    }

    #[test]
    fn broken_tokens_are_refused() {
        assert_eq!(decoded(b""), Err("Password must not be null"));
        assert_eq!(decoded(b"secret"), Err("Password must not be null"));
        assert_eq!(decoded(b"\0bob\0"), Err("Password must not be null"));
        assert_eq!(decoded(b"bob\0secret"), Err("Authentication ID must not be null"));
        assert_eq!(decoded(b"\0\0secret"), Err("Authentication ID must not be null"));
        assert!(decoded(b"\0bob\0sec\0ret").unwrap_err().contains("contains NUL"));
        assert!(decoded(b"\0bob\0\xff").unwrap_err().contains("UTF-8"));
        assert!(decoded(&[b'x'; 5000]).unwrap_err().contains("longer than 4096"));
    }

    #[test]
    fn no_token_does_harm() {
        // All tokens of up to four bytes from these: NULs, letters, halves of characters.
        const BYTES: [u8; 4] = [0, b'a', 0xc3, 0xff];
        for number in 0..4_usize.pow(5) {
            let digit = |place: u32| number / 4_usize.pow(place) % 4;
            let token: Vec<u8> = (0..digit(4) as u32 + 1)
                .map(|place| BYTES[digit(place)])
                .collect();
            if let Ok((name, password)) = decoded(&token) {
                assert!(!name.is_empty() && !password.is_empty());
                assert!(!name.contains('\0') && !password.contains('\0'));
            }
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        let shown = format!("{:?}", decode(b"\0bob\0secret"));
        assert!(shown.contains("bob") && !shown.contains("secret"));
    }
}
