//! Connections to the leaders of a topic, and what their errors mean.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use futures_util::future::join_all;
use ilion_kafka_client::batch::{self, Entry};
use ilion_kafka_client::messages::{CreateTopic, CreateTopics, Produce, ProducePartition, ProduceTopic};
use ilion_kafka_client::{Cluster, Connection as ToBroker, Error as ClientError, codes};

use crate::{Error, Options, Record, record};

/// Why an attempt failed.
pub(crate) enum Trouble {
    /// It may pass.
    Passing(String),
    /// The topic or partition is not known: it passes after an election, and does not if the topic was removed.
    Gone,
    /// It will not pass.
    Final(Error),
}

/// What is still to be sent to each partition: requests in their order.
pub(crate) type Pending = BTreeMap<i32, VecDeque<Vec<Record>>>;

/// What is to be sent to the partitions of one broker.
type OfBroker<'a> = Vec<(i32, &'a mut VecDeque<Vec<Record>>)>;

/// Connections to the leaders of a topic, as they were when it was opened.
pub(crate) struct Connection {
    cluster: Arc<Cluster>,
    brokers: BTreeMap<i32, ToBroker>,
}

impl Connection {
    pub async fn open(options: &Options, topic: &str) -> Result<Self, Trouble> {
        let cluster = Cluster::connect(options.clone(), vec![topic.to_owned()]).await;
        Ok(Self {
            cluster: cluster.map_err(|error| trouble_of(error, topic))?,
            brokers: BTreeMap::new(),
        })
    }

    /// The partitions of a topic; `None`: there is no such topic.
    pub fn partitions(&self, topic: &str) -> Result<Option<Vec<i32>>, Trouble> {
        let view = self.cluster.view();
        if !view.denied.is_empty() {
            return Err(trouble_of_code(codes::TOPIC_AUTHORIZATION_FAILED, None, topic));
        }
        let partitions = view.topics.get(topic);
        Ok(partitions.map(|partitions| partitions.keys().copied().collect()))
    }

    /// Creates a topic with the brokers' default number of replicas; -1 partitions are their default, too.
    pub async fn create(&self, topic: &str, partitions: i32) -> Result<(), Trouble> {
        let limit = self.cluster.options().request_timeout;
        let request = CreateTopics {
            topics: vec![CreateTopic {
                name: topic.to_owned(),
                partitions,
                replication_factor: -1,
                ..CreateTopic::default()
            }],
            timeout_millis: i32::try_from(limit.as_millis()).unwrap_or(i32::MAX),
            validate_only: false,
        };
        let controller = self.cluster.connect_to(self.cluster.view().controller).await;
        let mut controller = controller.map_err(|error| trouble_of(error, topic))?;
        let answer = controller.ask(&request, limit).await;
        let answer = answer.map_err(|error| trouble_of(error, topic))?;
        match answer.topics.into_iter().next() {
            Some(created) if created.error == codes::NONE => Ok(()),
            Some(created) => Err(trouble_of_code(created.error, created.message, topic)),
            None => Err(Trouble::Passing(
                "the broker said nothing of the topic".to_owned(),
            )),
        }
    }

    /// Sends what is pending, to all brokers at a time, one request after another for each. Removes the acknowledged requests from
    /// `pending`. Returns the first trouble.
    pub async fn send(&mut self, topic: &str, pending: &mut Pending) -> Result<(), Trouble> {
        let view = self.cluster.view();
        let mut by_broker: BTreeMap<i32, OfBroker<'_>> = BTreeMap::new();
        for (partition, requests) in pending.iter_mut() {
            let known = view.topics.get(topic).and_then(|known| known.get(partition));
            let Some(leader) = known.ok_or(Trouble::Gone)?.leader else {
                return Err(Trouble::Passing(format!("partition {partition} has no leader")));
            };
            by_broker.entry(leader).or_default().push((*partition, requests));
        }
        let cluster = &self.cluster;
        let sending = by_broker.into_iter().map(|(broker, mut requests)| {
            let open = self.brokers.remove(&broker);
            async move {
                let mut open = match open.filter(ToBroker::is_usable) {
                    Some(open) => open,
                    None => {
                        let opened = cluster.connect_to(broker).await;
                        opened.map_err(|error| trouble_of(error, topic))?
                    }
                };
                send_to(&mut open, cluster.options(), topic, &mut requests).await?;
                Ok((broker, open))
            }
        });
        let results: Vec<Result<(i32, ToBroker), Trouble>> = join_all(sending).await;
        pending.retain(|_, requests| !requests.is_empty());
        for result in results {
            let (broker, open) = result?;
            self.brokers.insert(broker, open);
        }
        Ok(())
    }
}

/// Sends requests one after another, each with one batch of each partition.
async fn send_to(
    broker: &mut ToBroker,
    options: &Options,
    topic: &str,
    partitions: &mut OfBroker<'_>,
) -> Result<(), Trouble> {
    let limit = options.request_timeout;
    loop {
        let batches: Vec<ProducePartition> = partitions
            .iter()
            .filter_map(|(index, requests)| {
                Some(ProducePartition {
                    index: *index,
                    records: batch::encode(requests.front()?.iter().map(entry)).into(),
                })
            })
            .collect();
        if batches.is_empty() {
            return Ok(());
        }
        let request = Produce {
            transactional_id: None,
            acks: -1,
            timeout_millis: i32::try_from(limit.as_millis()).unwrap_or(i32::MAX),
            topics: vec![ProduceTopic {
                name: topic.to_owned(),
                partitions: batches,
            }],
        };
        let answer = broker.ask(&request, limit).await;
        let answer = answer.map_err(|error| trouble_of(error, topic))?;
        let answers = answer.topics.into_iter().flat_map(|topic| topic.partitions);
        let mut answers: BTreeMap<i32, _> = answers.map(|answer| (answer.index, answer)).collect();
        let mut trouble = None;
        for (index, requests) in partitions.iter_mut().filter(|(_, requests)| !requests.is_empty()) {
            let (code, message) = match answers.remove(index) {
                Some(answer) => (answer.error, answer.error_message),
                None => {
                    return Err(Trouble::Passing(format!(
                        "the broker said nothing of partition {index}"
                    )));
                }
            };
            match code {
                codes::NONE => drop(requests.pop_front()),
                codes::MESSAGE_TOO_LARGE | codes::RECORD_LIST_TOO_LARGE => {
                    let sizes = requests.front().into_iter().flatten().map(Record::size_bytes);
                    let bytes = sizes.max().unwrap_or(0);
                    if !record::halve(requests) {
                        let topic = topic.to_owned();
                        trouble = trouble.or(Some(Trouble::Final(Error::TooLarge { topic, bytes })));
                    }
                }
                code => trouble = trouble.or(Some(trouble_of_code(code, message, topic))),
            }
        }
        if let Some(trouble) = trouble {
            return Err(trouble);
        }
    }
}

fn entry(record: &Record) -> Entry<'_> {
    Entry {
        key: record.key.as_deref(),
        value: &record.value,
        headers: &record.headers,
        created_millis: record.created_millis,
    }
}

fn trouble_of(error: ClientError, topic: &str) -> Trouble {
    match error {
        ClientError::Unreachable(problem) => Trouble::Passing(problem),
        ClientError::Refused(problem) => Trouble::Final(Error::Refused(problem)),
        ClientError::Login(problem) => Trouble::Final(Error::Login(problem)),
        ClientError::Denied { problem, .. } => Trouble::Final(Error::Denied {
            topic: topic.to_owned(),
            problem,
        }),
    }
}

/// What the code of an error means.
fn trouble_of_code(code: i16, message: Option<String>, topic: &str) -> Trouble {
    let topic = topic.to_owned();
    let name = codes::name(code);
    let problem = match message {
        Some(message) => format!("{name}: {message}"),
        None => name,
    };
    match code {
        codes::UNKNOWN_TOPIC_OR_PARTITION => Trouble::Gone,
        codes::TOPIC_AUTHORIZATION_FAILED | codes::CLUSTER_AUTHORIZATION_FAILED => {
            Trouble::Final(Error::Denied { topic, problem })
        }
        codes::INVALID_TOPIC_EXCEPTION
        | codes::INVALID_RECORD
        | codes::INVALID_PARTITIONS
        | codes::INVALID_REPLICATION_FACTOR
        | codes::POLICY_VIOLATION
        | codes::UNSUPPORTED_FOR_MESSAGE_FORMAT
        | codes::UNSUPPORTED_VERSION => Trouble::Final(Error::Broken { topic, problem }),
        _ => Trouble::Passing(problem),
    }
}
