//! Where the brokers are, and how they are spoken to.

use std::fmt;
use std::time::Duration;

use crate::Error;

/// Port of a broker whose address has none.
const PORT: u16 = 9092;
/// Longest name of a topic. Kafka's rule.
const NAME_CHARS_MAX: usize = 249;

/// How brokers are spoken to.
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
    /// Encrypts.
    pub is_encrypted: bool,
    /// PEM with the certificates of who may issue those of the brokers; `None`: those that the system trusts.
    pub issuers: Option<Vec<u8>>,
    /// Logs in.
    pub credentials: Option<Credentials>,
}

/// A login by SASL.
#[derive(Clone)]
pub struct Credentials {
    /// How the password is shown.
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

/// A parsed `kafka://host:port,host:port/PREFIX`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// `host:port` each.
    pub brokers: Vec<String>,
    /// What the names of topics begin with.
    pub prefix: String,
}

/// Parses `kafka://host:port,host:port/PREFIX`.
///
/// # Errors
/// [`Error::Refused`]: it is none.
pub fn parse_url(text: &str) -> Result<Url, Error> {
    let refuse = |problem: &str| {
        Error::Refused(format!(
            "{text:?}: {problem}; expected kafka://HOST:PORT,HOST:PORT/PREFIX"
        ))
    };
    let rest = text
        .strip_prefix("kafka://")
        .ok_or_else(|| refuse("no URL of brokers"))?;
    let (addresses, prefix) = rest
        .split_once('/')
        .ok_or_else(|| refuse("no prefix of topics"))?;
    let mut brokers = Vec::new();
    for address in addresses.split(',') {
        let (host, port) = match address.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().map_err(|_| refuse("a port is no number"))?),
            None => (address, PORT),
        };
        if host.is_empty() || host.contains([':', '@', '[', ']']) {
            return Err(refuse("an address of a broker is no name and no IPv4 address"));
        }
        brokers.push(format!("{host}:{port}"));
    }
    if !is_topic_name(prefix) {
        return Err(refuse("the prefix has characters that no topic may have"));
    }
    Ok(Url {
        brokers,
        prefix: prefix.to_owned(),
    })
}

/// Whether a topic may have this name. Kafka's rule.
pub fn is_topic_name(name: &str) -> bool {
    let is_permitted = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    !name.is_empty()
        && name.len() <= NAME_CHARS_MAX
        && name != "."
        && name != ".."
        && name.chars().all(is_permitted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_brokers_and_a_prefix() {
        let url = parse_url("kafka://a:1,b.example/shop-1").expect("a URL");
        assert_eq!(url.brokers, ["a:1", "b.example:9092"]);
        assert_eq!(url.prefix, "shop-1");
    }

    #[test]
    fn other_texts_are_refused_with_what_is_wrong() {
        for (text, problem) in [
            ("http://a/x", "no URL of brokers"),
            ("kafka://a:1", "no prefix"),
            ("kafka://a:1/", "the prefix"),
            ("kafka://a:1/x/y", "the prefix"),
            ("kafka://a:x/y", "a port"),
            ("kafka://a:1,/y", "an address"),
            ("kafka://user@a/y", "an address"),
            ("kafka://[::1]:9092/y", "an address"),
        ] {
            let refused = parse_url(text).expect_err(text).to_string();
            assert!(refused.contains(problem), "{text}: {refused}");
        }
    }

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
