//! [`LogPlace`]: where the commit log is; and [`TabletCount`].
//!
//! ```text
//! log := "local" | "kafka://" host [":" port] ("," host [":" port])* "/" prefix
//! ```

use ilion_kafka_url::{Url, parse_url};

use crate::form::Form;

/// Where the commit log is (`log`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LogPlace {
    /// In local files. The node is a single node.
    #[default]
    Local,
    /// In topics of Kafka. The nodes with the same log are a cluster.
    Kafka(Url),
}

impl Form for LogPlace {
    fn parse(text: &str) -> Result<Self, String> {
        if text == "local" {
            return Ok(Self::Local);
        }
        match parse_url(text) {
            Ok(url) => Ok(Self::Kafka(url)),
            Err(_) => Err("local or kafka://HOST:PORT,HOST:PORT/PREFIX".to_owned()),
        }
    }

    fn print(&self) -> String {
        match self {
            Self::Local => "local".to_owned(),
            Self::Kafka(url) => format!("kafka://{}/{}", url.brokers.join(","), url.prefix),
        }
    }
}

/// How many slices the ring of a cluster has (`tablets`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TabletCount(pub u32);

impl Form for TabletCount {
    fn parse(text: &str) -> Result<Self, String> {
        let count = text.parse().ok();
        let count = count.filter(|count| ilion_cluster::Tablets::new(*count).is_some());
        count
            .map(Self)
            .ok_or_else(|| format!("a number from 1 to {}", ilion_cluster::TABLETS_MAX))
    }

    fn print(&self) -> String {
        self.0.to_string()
    }
}
