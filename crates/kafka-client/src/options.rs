//! Where the brokers are, and how to connect to them.

use std::fmt;
use std::time::Duration;

/// How to connect to brokers.
#[derive(Clone, Debug)]
pub struct Options {
    /// `host:port` of some brokers; these name the others.
    pub brokers: Vec<String>,
    /// Encryption and login.
    pub security: Security,
    /// A request, or a connection, that takes longer is given up and tried again.
    pub request_timeout: Duration,
}

/// Encryption and login of connections.
#[derive(Clone, Debug, Default)]
pub struct Security {
    /// Whether connections are encrypted (TLS).
    pub is_encrypted: bool,
    /// PEM with the certificates of the issuers to trust; `None`: those that the system trusts.
    pub issuers: Option<Vec<u8>>,
    /// The login; `None`: no login.
    pub credentials: Option<Credentials>,
}

/// A login by SASL.
#[derive(Clone)]
pub struct Credentials {
    /// The mechanism, which decides whether the brokers see the password.
    pub mechanism: Mechanism,
    /// The user.
    pub username: String,
    /// The password.
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {}", self.mechanism, self.username)
    }
}

/// Mechanisms of SASL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// PLAIN: the brokers see the password.
    Plain,
    /// SCRAM-SHA-256.
    ScramSha256,
    /// SCRAM-SHA-512.
    ScramSha512,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_printed() {
        let credentials = Credentials {
            mechanism: Mechanism::Plain,
            username: "ann".to_owned(),
            password: "secret".to_owned(),
        };
        assert_eq!(format!("{credentials:?}"), "Plain of ann");
    }
}
