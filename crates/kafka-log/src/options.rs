//! [`Options`] of the logs.

use std::time::Duration;

use ilion_kafka_client::Security;
use ilion_kafka_url::Url;
use uuid::Uuid;

/// Where the logs are, and how they behave.
#[derive(Clone, Debug)]
pub struct Options {
    /// Addresses, encryption, login; time limit of requests other than appends, and of connecting.
    pub client: ilion_kafka_client::Options,
    /// The topics are `PREFIX.data` and `PREFIX.meta`.
    pub prefix: String,
    /// The cluster. Records of another one are not read.
    pub cluster: Uuid,
    /// Logs of tablets.
    pub tablets: u32,
    /// In how many partitions of the data topic the logs of tablets are kept, if it is created; at most as many as there are tablets. If the
    /// topic is there, it keeps its number.
    pub partitions: u32,
    /// The number of the meta log. It is that of no tablet.
    pub meta_log: u32,
    /// What happens if the topics are not there.
    pub missing: Missing,
    /// How many brokers have a copy of each record.
    pub replication_factor: u16,
    /// The largest record, envelope and body.
    pub record_bytes_max: u32,
    /// A record that is not acknowledged in this time is given up, once the attempt that is under way has ended.
    pub append_timeout: Duration,
    /// The end of a log that brokers do not confirm in this time is not known. Appending a record, which callers do then, takes at least as
    /// long while a broker hangs.
    pub end_timeout: Duration,
    /// Maximum bytes of records on their way to the brokers. A larger record is sent alone.
    pub append_bytes_max: usize,
    /// Maximum number of records of a log on their way. Must be below 1024: replicas recognise repeated records among the newest 1024 of
    /// a sender.
    pub append_records_max: usize,
    /// Maximum bytes that a tail reads ahead of its caller, beside one answer of each broker.
    pub tail_bytes_max: usize,
    /// A log that a tail cannot reach for this time is reported.
    pub unreachable_after: Duration,
}

/// What happens if the topics are not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// They are created.
    Create,
    /// It is an error.
    Refuse,
}

impl Options {
    /// The usual options.
    pub fn new(url: Url, security: Security, cluster: Uuid, tablets: u32, meta_log: u32) -> Self {
        Self {
            client: ilion_kafka_client::Options {
                brokers: url.brokers,
                security,
                request_timeout: Duration::from_secs(2),
            },
            prefix: url.prefix,
            cluster,
            tablets,
            partitions: 1,
            meta_log,
            missing: Missing::Create,
            replication_factor: 3,
            record_bytes_max: 16 << 20,
            append_timeout: Duration::from_secs(5),
            end_timeout: Duration::from_millis(200),
            append_bytes_max: 32 << 20,
            append_records_max: 1000,
            tail_bytes_max: 8 << 20,
            unreachable_after: Duration::from_secs(5),
        }
    }

    /// So many brokers have each acknowledged record, at least: the least `min.insync.replicas` that is permitted. Pure.
    pub(crate) fn min_in_sync(&self) -> usize {
        if self.replication_factor == 1 { 1 } else { 2 }
    }

    /// The message about a wrong option; `None` if all are right. Pure.
    pub(crate) fn problem(&self) -> Option<String> {
        if self.tablets == 0 || self.meta_log < self.tablets || i32::try_from(self.tablets).is_err() {
            return Some(format!(
                "{} tablets and a meta log {}: there must be a tablet, and the meta log must have no tablet's number",
                self.tablets, self.meta_log
            ));
        }
        if self.partitions == 0 {
            return Some("0 partitions for tablets: there must be one".to_owned());
        }
        if self.replication_factor == 0 {
            return Some("a replication factor of 0: at least one broker must have the logs".to_owned());
        }
        let names = [format!("{}.data", self.prefix), format!("{}.meta", self.prefix)];
        if !names.iter().all(|name| ilion_kafka_url::is_topic_name(name)) {
            return Some(format!(
                "{:?} is no prefix of topics: letters, digits, '.', '_' and '-' are permitted, and 244 characters",
                self.prefix
            ));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_options_are_told() {
        let url = ilion_kafka_url::parse_url("kafka://a:1/p").unwrap();
        let right = Options::new(url, Security::default(), Uuid::nil(), 4, u32::MAX);
        assert_eq!(right.problem(), None);
        let wrong = |change: &dyn Fn(&mut Options)| {
            let mut options = right.clone();
            change(&mut options);
            options.problem().unwrap()
        };
        assert!(wrong(&|options| options.tablets = 0).contains("there must be a tablet"));
        assert!(wrong(&|options| options.meta_log = 3).contains("no tablet's number"));
        assert!(wrong(&|options| options.partitions = 0).contains("0 partitions"));
        assert!(wrong(&|options| options.replication_factor = 0).contains("at least one broker"));
        assert!(wrong(&|options| options.prefix = "x".repeat(245)).contains("is no prefix"));
    }
}
