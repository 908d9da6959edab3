//! Where topics of Kafka are: `kafka://HOST:PORT,HOST:PORT/PREFIX`.
//!
//! A crate of its own, so that the settings can name brokers without the client that speaks to them.

/// Port of a broker whose address has none.
const PORT: u16 = 9092;
/// Longest name of a topic. Kafka's rule.
const NAME_CHARS_MAX: usize = 249;

/// A text that is no URL of topics; who wrote it must correct it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UrlError(String);

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
/// The text is no such URL.
pub fn parse_url(text: &str) -> Result<Url, UrlError> {
    let refuse = |problem: &str| {
        UrlError(format!(
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
}
