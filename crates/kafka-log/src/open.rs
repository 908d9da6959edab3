//! Connecting, and topics that are created or checked.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ilion_kafka_client::messages::{
    CreateTopic, CreateTopics, DescribeConfigs, DescribeResource, TopicConfig,
};
use ilion_kafka_client::{Cluster, Connection, Error as ClientError, View, codes};
use tokio::time::{Instant, sleep, timeout_at};

use crate::settings::{self, Described};
use crate::topics::Topics;
use crate::{Missing, Options};

/// The kind of a topic in requests for settings.
const TOPIC: i8 = 2;
/// Brokers learn of a new topic one after another; this is long enough.
const APPEARING_MAX: Duration = Duration::from_secs(30);
/// A broker that does not know a new topic yet is asked again after this time.
const APPEARING_AGAIN: Duration = Duration::from_millis(100);

/// Why the logs cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No broker answers: the addresses are wrong, the brokers are down, or a firewall is in between. It may pass.
    #[error(
        "no broker of {brokers} answers: {problem}; check the addresses (also advertised.listeners of the brokers), and whether they expect \
         TLS or a login"
    )]
    NoBroker {
        /// The addresses.
        brokers: String,
        /// The error of the last broker.
        problem: String,
    },
    /// The options are wrong, or the brokers refuse the login or an action: the operator of Ilion or of the brokers must act.
    #[error("{0}")]
    Refused(String),
    /// The topics are not as they must be. Each problem names the command that mends it.
    #[error("{}", problems.join("\n"))]
    WrongTopics {
        /// What is wrong, a sentence each.
        problems: Vec<String>,
    },
}

/// Connects, creates topics that are missing, and checks those that exist. A task of the runtime keeps the view of the cluster up to date.
pub(crate) async fn open(options: &Options) -> Result<(Arc<Cluster>, Topics), OpenError> {
    if let Some(problem) = options.problem() {
        return Err(OpenError::Refused(problem));
    }
    let explain = |error| explain(options, error);
    let topics = Topics::new(options, options.partitions.min(options.tablets));
    let names = vec![topics.data.clone(), topics.meta.clone()];
    let cluster = Cluster::connect(options.client.clone(), names).await;
    let cluster = cluster.map_err(explain)?;
    let renewing = Arc::clone(&cluster);
    tokio::spawn(async move { renewing.run().await });
    create_missing(&cluster, options, &topics).await?;
    let found = describe_when_known(&cluster, options, &topics).await?;
    let mut problems = Vec::new();
    for (name, partitions_max) in [(&topics.data, options.tablets), (&topics.meta, 1)] {
        let found = found.get(name).cloned().unwrap_or_default();
        problems.extend(settings::problems(name, &found, 1..=partitions_max, options));
    }
    if !problems.is_empty() {
        return Err(OpenError::WrongTopics { problems });
    }
    // Another node may have created it, with a number of its own.
    let partitions = found.get(&topics.data).map_or(0, |data| data.partitions);
    Ok((cluster, Topics::new(options, partitions)))
}

/// The topics, and how many partitions each gets if it is created.
fn wanted(topics: &Topics) -> [(&str, u32); 2] {
    [(&topics.data, topics.sharing.partitions), (&topics.meta, 1)]
}

fn explain(options: &Options, error: ClientError) -> OpenError {
    match error {
        ClientError::Unreachable(problem) => OpenError::NoBroker {
            brokers: options.client.brokers.join(","),
            problem,
        },
        other => OpenError::Refused(other.to_string()),
    }
}

async fn create_missing(cluster: &Cluster, options: &Options, topics: &Topics) -> Result<(), OpenError> {
    let view = cluster.view();
    if let Some(topic) = view.denied.first() {
        return Err(OpenError::Refused(format!(
            "the brokers refused topic {topic}: the login of Ilion needs Describe, Read, Write and DescribeConfigs on it, and Delete to \
             delete old records"
        )));
    }
    let missing: Vec<(&str, u32)> = wanted(topics)
        .into_iter()
        .filter(|(name, _)| !view.topics.contains_key(*name))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
    let names = names.join(" and ");
    if options.missing == Missing::Refuse {
        return Err(OpenError::Refused(format!(
            "there is no topic {names}: the node would create it in a new cluster only. Check the addresses and the prefix; if the topic was \
             deleted, its records are lost, and the cluster must be restored from a backup"
        )));
    }
    if usize::from(options.replication_factor) > view.brokers.len() {
        return Err(OpenError::Refused(format!(
            "topic {names} cannot be created: {} brokers are up, and each log must be on {}. Start more brokers, or lower the replication \
             factor in the settings of Ilion: with less than 3, the loss of a broker stops writes or loses them",
            view.brokers.len(),
            options.replication_factor
        )));
    }
    create(cluster, options, &missing).await?;
    await_leaders(cluster, &missing).await
}

async fn create(cluster: &Cluster, options: &Options, missing: &[(&str, u32)]) -> Result<(), OpenError> {
    let explain = |error| explain(options, error);
    let configs = settings::created_with(options);
    let request = CreateTopics {
        topics: missing
            .iter()
            .map(|(name, partitions)| CreateTopic {
                name: (*name).to_owned(),
                partitions: i32::try_from(*partitions).unwrap_or(i32::MAX),
                replication_factor: i16::try_from(options.replication_factor).unwrap_or(i16::MAX),
                assignments: Vec::new(),
                configs: configs
                    .iter()
                    .map(|(name, value)| TopicConfig {
                        name: name.clone(),
                        value: Some(value.clone()),
                    })
                    .collect(),
            })
            .collect(),
        timeout_millis: i32::try_from(APPEARING_MAX.as_millis()).unwrap_or(i32::MAX),
        validate_only: false,
    };
    let controller = cluster.view().controller;
    let mut connection = cluster.connect_to(controller).await.map_err(explain)?;
    let answer = connection.ask(&request, APPEARING_MAX).await.map_err(explain)?;
    for topic in answer.topics {
        // Another node may have created it first.
        if ![codes::NONE, codes::TOPIC_ALREADY_EXISTS].contains(&topic.error) {
            let code = codes::name(topic.error);
            let message = topic.message.unwrap_or_default();
            return Err(OpenError::Refused(format!(
                "the brokers do not create topic {}: {code} {message}",
                topic.name
            )));
        }
        if topic.error == codes::NONE {
            tracing::info!("created topic {}", topic.name);
        }
    }
    Ok(())
}

/// Waits until the brokers know the topics, and each partition has a leader.
async fn await_leaders(cluster: &Cluster, wanted: &[(&str, u32)]) -> Result<(), OpenError> {
    let deadline = Instant::now() + APPEARING_MAX;
    let mut views = cluster.views();
    loop {
        let view = Arc::clone(&views.borrow_and_update());
        let has_leaders = |name: &str, partitions: u32| {
            let indexes = 0..i32::try_from(partitions).unwrap_or(i32::MAX);
            indexes
                .into_iter()
                .all(|index| view.leader(name, index).is_some())
        };
        if wanted
            .iter()
            .all(|(name, partitions)| has_leaders(name, *partitions))
        {
            return Ok(());
        }
        cluster.renew();
        if !matches!(timeout_at(deadline, views.changed()).await, Ok(Ok(()))) {
            return Err(OpenError::Refused(format!(
                "the brokers have created the topics, and they have no leaders after {APPEARING_MAX:?}: look into the logs of the brokers"
            )));
        }
    }
}

/// Waits until the broker that is asked knows the topics: it may learn of new ones after their leaders.
async fn describe_when_known(
    cluster: &Cluster,
    options: &Options,
    topics: &Topics,
) -> Result<BTreeMap<String, Described>, OpenError> {
    let deadline = Instant::now() + APPEARING_MAX;
    loop {
        let described = describe(cluster, options, topics, &cluster.view()).await;
        match described.map_err(|error| explain(options, error))? {
            Some(found) => return Ok(found),
            None if Instant::now() < deadline => sleep(APPEARING_AGAIN).await,
            None => {
                return Err(OpenError::Refused(format!(
                    "a broker does not know the topics {} and {} after {APPEARING_MAX:?}, and others do: look into the logs of the brokers",
                    topics.data, topics.meta
                )));
            }
        }
    }
}

/// The topics as they are; `None` if the broker does not know them yet.
async fn describe(
    cluster: &Cluster,
    options: &Options,
    topics: &Topics,
    view: &View,
) -> Result<Option<BTreeMap<String, Described>>, ClientError> {
    let resource = |name: &String| DescribeResource {
        kind: TOPIC,
        name: name.clone(),
        settings: Some(settings::names(options)),
    };
    let request = DescribeConfigs {
        resources: vec![resource(&topics.data), resource(&topics.meta)],
        include_synonyms: false,
    };
    let mut connection = any_broker(cluster, view).await?;
    let answer = connection.ask(&request, options.client.request_timeout).await?;
    let mut described = BTreeMap::new();
    for resource in answer.resources {
        if resource.error == codes::UNKNOWN_TOPIC_OR_PARTITION {
            return Ok(None);
        }
        if resource.error != codes::NONE {
            return Err(ClientError::Denied {
                what: format!("the settings of topic {}", resource.name),
                problem: format!(
                    "{} {}; the login of Ilion needs DescribeConfigs on it",
                    codes::name(resource.error),
                    resource.message.unwrap_or_default()
                ),
            });
        }
        let settings = resource.settings.into_iter();
        let settings = settings.filter_map(|setting| Some((setting.name, setting.value?)));
        let partitions = view.topics.get(&resource.name);
        let replicas = partitions.and_then(|partitions| {
            partitions
                .values()
                .map(|partition| partition.replicas.len())
                .min()
        });
        let found = Described {
            partitions: partitions.map_or(0, |partitions| partitions.len().try_into().unwrap_or(u32::MAX)),
            replicas: replicas.unwrap_or(0).try_into().unwrap_or(u16::MAX),
            settings: settings.collect(),
        };
        described.insert(resource.name, found);
    }
    Ok(Some(described))
}

/// A connection to the first broker that answers.
async fn any_broker(cluster: &Cluster, view: &View) -> Result<Connection, ClientError> {
    let mut last = ClientError::Unreachable("no broker is up".to_owned());
    for broker in view.brokers.keys() {
        match cluster.connect_to(*broker).await {
            Ok(connection) => return Ok(connection),
            Err(error) => last = error,
        }
    }
    Err(last)
}
