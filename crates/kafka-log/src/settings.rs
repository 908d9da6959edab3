//! What the topics must be like, and what to do about those that are not. Pure.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::{Options, frame};

/// Bytes of Kafka's batch and record beside the value, with room to spare.
const BATCH_BYTES: u32 = 4096;

/// A topic as the brokers describe it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Described {
    pub partitions: u32,
    /// Replicas of the partition that has the fewest.
    pub replicas: u16,
    pub settings: BTreeMap<String, String>,
}

/// A setting, the value it is created with, and the values that are right.
struct Rule {
    name: &'static str,
    value: String,
    permits: fn(found: &str, wanted: &str) -> bool,
    why: &'static str,
}

fn rules(options: &Options) -> Vec<Rule> {
    let rule = |name, value: &str, why| Rule {
        name,
        value: value.to_owned(),
        permits: |found, wanted| found == wanted,
        why,
    };
    let at_least = |found: &str, wanted: &str| {
        let numbers = found.parse::<u64>().ok().zip(wanted.parse::<u64>().ok());
        numbers.is_some_and(|(found, wanted)| found >= wanted)
    };
    let in_sync = options.min_in_sync().to_string();
    vec![
        Rule {
            permits: at_least,
            ..rule(
                "min.insync.replicas",
                &in_sync,
                "a record that one broker has is lost with it",
            )
        },
        rule(
            "unclean.leader.election.enable",
            "false",
            "a broker that missed records would lead without them",
        ),
        rule(
            "retention.ms",
            "-1",
            "records that replicas still need would be deleted by age",
        ),
        rule(
            "retention.bytes",
            "-1",
            "records that replicas still need would be deleted by size",
        ),
        rule("cleanup.policy", "delete", "records would be left out of the log"),
        rule(
            "message.timestamp.type",
            "LogAppendTime",
            "replicas decide by the time of the log",
        ),
        Rule {
            permits: |found, _| ["producer", "uncompressed"].contains(&found),
            ..rule("compression.type", "producer", "compressed batches are not read")
        },
        Rule {
            permits: at_least,
            ..rule(
                "max.message.bytes",
                &message_bytes_max(options).to_string(),
                "large writes would be refused",
            )
        },
    ]
}

fn message_bytes_max(options: &Options) -> u32 {
    options
        .record_bytes_max
        .saturating_add(frame::HEAD_BYTES_MAX as u32 + BATCH_BYTES)
}

/// The settings that a topic is created with.
pub(crate) fn created_with(options: &Options) -> Vec<(String, String)> {
    let rules = rules(options).into_iter();
    rules.map(|rule| (rule.name.to_owned(), rule.value)).collect()
}

/// The names of the settings that matter.
pub(crate) fn names(options: &Options) -> Vec<String> {
    created_with(options).into_iter().map(|(name, _)| name).collect()
}

/// The problems of a topic, each with the command that mends it.
pub(crate) fn problems(
    topic: &str,
    found: &Described,
    partitions: RangeInclusive<u32>,
    options: &Options,
) -> Vec<String> {
    let servers = options.client.brokers.join(",");
    let mut problems = Vec::new();
    if !partitions.contains(&found.partitions) {
        problems.push(format!(
            "topic {topic} has {} partitions, and this cluster at most {} logs in it: the number is that of the cluster's creation and \
             cannot change; if the topic is of another cluster, choose another prefix",
            found.partitions,
            partitions.end()
        ));
    }
    if found.replicas < options.replication_factor {
        problems.push(format!(
            "topic {topic} has {} replicas, wanted {}: add some with kafka-reassign-partitions.sh --bootstrap-server {servers}, or lower the \
             replication factor in the settings of Ilion",
            found.replicas, options.replication_factor
        ));
    }
    for rule in rules(options) {
        let value = found.settings.get(rule.name).map_or("unknown", String::as_str);
        if !(rule.permits)(value, &rule.value) {
            problems.push(format!(
                "topic {topic} has {}={value}, wanted {}: {}. Run: kafka-configs.sh --bootstrap-server {servers} --alter \
                 --entity-type topics --entity-name {topic} --add-config {}={}",
                rule.name, rule.value, rule.why, rule.name, rule.value
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use ilion_kafka_client::Security;
    use ilion_kafka_url::parse_url;
    use uuid::Uuid;

    use super::*;

    fn options() -> Options {
        let url = parse_url("kafka://a:1,b:2/p").unwrap();
        Options::new(url, Security::default(), Uuid::nil(), 4, u32::MAX)
    }

    fn right() -> Described {
        Described {
            partitions: 4,
            replicas: 3,
            settings: created_with(&options()).into_iter().collect(),
        }
    }

    #[test]
    fn a_topic_as_it_is_created_is_right_and_stricter_ones_are() {
        assert_eq!(
            problems("p.data", &right(), 1..=4, &options()),
            Vec::<String>::new()
        );
        let mut stricter = right();
        for (name, value) in [
            ("min.insync.replicas", "3"),
            ("max.message.bytes", "33554432"),
            ("compression.type", "uncompressed"),
        ] {
            stricter.settings.insert(name.to_owned(), value.to_owned());
        }
        assert_eq!(
            problems("p.data", &stricter, 1..=4, &options()),
            Vec::<String>::new()
        );
    }

    #[test]
    fn each_wrong_setting_is_told_with_the_command_that_mends_it() {
        for (name, value) in [
            ("min.insync.replicas", "1"),
            ("unclean.leader.election.enable", "true"),
            ("retention.ms", "604800000"),
            ("retention.bytes", "1000"),
            ("cleanup.policy", "compact"),
            ("cleanup.policy", "compact,delete"),
            ("message.timestamp.type", "CreateTime"),
            ("compression.type", "zstd"),
            ("max.message.bytes", "1048588"),
        ] {
            let mut wrong = right();
            wrong.settings.insert(name.to_owned(), value.to_owned());
            let told = problems("p.data", &wrong, 1..=4, &options());
            assert_eq!(told.len(), 1, "{told:?}");
            assert!(
                told[0].starts_with(&format!("topic p.data has {name}={value}, wanted ")),
                "{told:?}"
            );
            assert!(told[0].contains("kafka-configs.sh --bootstrap-server a:1,b:2 --alter"));
            let wanted = &right().settings[name];
            assert!(
                told[0].ends_with(&format!("--entity-name p.data --add-config {name}={wanted}")),
                "{told:?}"
            );
        }
    }

    #[test]
    fn a_missing_setting_too_few_replicas_and_other_partitions_are_told() {
        let mut wrong = right();
        wrong.settings.remove("retention.ms");
        (wrong.replicas, wrong.partitions) = (2, 5);
        let told = problems("p.data", &wrong, 1..=4, &options());
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[0].starts_with("topic p.data has 5 partitions, and this cluster at most 4 logs in it"));
        assert!(told[1].starts_with("topic p.data has 2 replicas, wanted 3"));
        assert!(told[2].starts_with("topic p.data has retention.ms=unknown, wanted -1"));
    }

    #[test]
    fn one_broker_needs_one_replica_in_sync() {
        let mut options = options();
        options.replication_factor = 1;
        assert!(created_with(&options).contains(&("min.insync.replicas".to_owned(), "1".to_owned())));
    }
}
