//! A connection to the brokers: one client of rskafka, its time limits, and what its errors mean.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use futures_util::future::join_all;
use ilion_kafka_client::client_config;
use rskafka::BackoffConfig;
use rskafka::chrono::DateTime;
use rskafka::client::error::{Error as ClientError, ProtocolError};
use rskafka::client::partition::{Compression, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder, Credentials as SaslCredentials, SaslConfig};
use tokio::time::timeout;

use crate::{Error, Mechanism, Options, Record, record};

/// Longest answer of a broker that is read. Metadata of thousands of partitions is below.
const ANSWER_BYTES_MAX: usize = 32 << 20;
/// The library's own retries end after these pauses, so that ours decide.
const LIBRARY_RETRIES: Duration = Duration::from_secs(1);

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

/// A client, and its connections by partition.
pub(crate) struct Connection {
    client: Client,
    partitions: BTreeMap<i32, PartitionClient>,
}

impl Connection {
    pub async fn open(options: &Options, topic: &str) -> Result<Self, Trouble> {
        let mut builder = ClientBuilder::new(options.brokers.clone())
            .client_id("ilion")
            .max_message_size(ANSWER_BYTES_MAX)
            .backoff_config(BackoffConfig {
                init_backoff: Duration::from_millis(50),
                max_backoff: Duration::from_millis(500),
                base: 2.0,
                deadline: Some(LIBRARY_RETRIES),
            });
        if options.security.is_encrypted {
            let config = client_config(options.security.issuers.as_deref())
                .map_err(|error| Trouble::Final(Error::Refused(error.to_string())))?;
            builder = builder.tls_config(config);
        }
        if let Some(credentials) = &options.security.credentials {
            let shown = SaslCredentials::new(credentials.username.clone(), credentials.password.clone());
            builder = builder.sasl_config(match credentials.mechanism {
                Mechanism::Plain => SaslConfig::Plain(shown),
                Mechanism::ScramSha256 => SaslConfig::ScramSha256(shown),
                Mechanism::ScramSha512 => SaslConfig::ScramSha512(shown),
            });
        }
        let client = within(options.request_timeout, topic, builder.build()).await?;
        Ok(Self {
            client,
            partitions: BTreeMap::new(),
        })
    }

    /// The partitions of a topic; `None`: there is no such topic.
    pub async fn partitions(&self, options: &Options, topic: &str) -> Result<Option<Vec<i32>>, Trouble> {
        let topics = within(options.request_timeout, topic, self.client.list_topics()).await?;
        let found = topics.into_iter().find(|found| found.name == topic);
        Ok(found.map(|found| found.partitions.into_iter().collect()))
    }

    /// Creates a topic; numbers that are -1 are those of the brokers.
    pub async fn create(&self, options: &Options, topic: &str, partitions: i32) -> Result<(), Trouble> {
        let controller = self
            .client
            .controller_client()
            .map_err(|error| trouble_of(error, topic))?;
        let millis = i32::try_from(options.request_timeout.as_millis()).unwrap_or(i32::MAX);
        let creating = controller.create_topic(topic, partitions, -1, millis);
        within(options.request_timeout, topic, creating).await
    }

    /// Sends what is pending, all partitions at a time, one request after another for each. What was acknowledged is taken away. Returns
    /// the first trouble.
    pub async fn send(
        &mut self,
        options: &Options,
        topic: &str,
        pending: &mut Pending,
    ) -> Result<(), Trouble> {
        for partition in pending.keys() {
            if !self.partitions.contains_key(partition) {
                let opening = self
                    .client
                    .partition_client(topic, *partition, UnknownTopicHandling::Error);
                let opened = within(options.request_timeout, topic, opening).await?;
                self.partitions.insert(*partition, opened);
            }
        }
        let partitions = &self.partitions;
        let sending = pending.iter_mut().map(|(partition, requests)| async move {
            match partitions.get(partition) {
                Some(client) => send_to(client, options, topic, requests).await,
                None => Err(Trouble::Gone),
            }
        });
        let results = join_all(sending).await;
        pending.retain(|_, requests| !requests.is_empty());
        results.into_iter().collect()
    }
}

/// Sends requests one after another.
async fn send_to(
    client: &PartitionClient,
    options: &Options,
    topic: &str,
    requests: &mut VecDeque<Vec<Record>>,
) -> Result<(), Trouble> {
    while let Some(request) = requests.front() {
        let bytes = request.iter().map(Record::size_bytes).max().unwrap_or(0);
        let records = request.iter().map(of_library).collect();
        let sending = client.produce(records, Compression::NoCompression);
        match timeout(options.request_timeout, sending).await {
            Ok(Ok(_)) => drop(requests.pop_front()),
            Ok(Err(error)) if is_too_large(&error) => {
                if !record::halve(requests) {
                    let topic = topic.to_owned();
                    return Err(Trouble::Final(Error::TooLarge { topic, bytes }));
                }
            }
            Ok(Err(error)) => return Err(trouble_of(error, topic)),
            Err(_) => return Err(silence(options.request_timeout)),
        }
    }
    Ok(())
}

fn of_library(record: &Record) -> rskafka::record::Record {
    let headers = record.headers.iter();
    rskafka::record::Record {
        key: record.key.clone(),
        value: Some(record.value.clone()),
        headers: headers
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect(),
        timestamp: DateTime::from_timestamp_millis(record.created_millis).unwrap_or_default(),
    }
}

/// Gives a request up after the time: the library would wait for ever.
async fn within<T>(
    at_most: Duration,
    topic: &str,
    asking: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, Trouble> {
    match timeout(at_most, asking).await {
        Ok(answer) => answer.map_err(|error| trouble_of(error, topic)),
        Err(_) => Err(silence(at_most)),
    }
}

fn silence(after: Duration) -> Trouble {
    Trouble::Passing(format!("a broker did not answer within {after:?}"))
}

fn is_too_large(error: &ClientError) -> bool {
    use ProtocolError::{MessageTooLarge, RecordListTooLarge};
    let ClientError::ServerError { protocol_error, .. } = error else {
        return false;
    };
    matches!(protocol_error, MessageTooLarge | RecordListTooLarge)
}

/// What an error of the library means.
fn trouble_of(error: ClientError, topic: &str) -> Trouble {
    use ProtocolError as P;
    let topic = topic.to_owned();
    if let ClientError::ServerError {
        protocol_error,
        error_message,
        ..
    } = &error
    {
        let problem = match error_message {
            Some(message) => format!("{protocol_error}: {message}"),
            None => protocol_error.to_string(),
        };
        return match protocol_error {
            P::UnknownTopicOrPartition => Trouble::Gone,
            P::TopicAuthorizationFailed | P::ClusterAuthorizationFailed => {
                Trouble::Final(Error::Denied { topic, problem })
            }
            P::SaslAuthenticationFailed | P::UnsupportedSaslMechanism | P::IllegalSaslState => {
                Trouble::Final(Error::Login(problem))
            }
            P::InvalidTopicException
            | P::InvalidRecord
            | P::InvalidPartitions
            | P::InvalidReplicationFactor
            | P::PolicyViolation
            | P::UnsupportedForMessageFormat
            | P::UnsupportedVersion => Trouble::Final(Error::Broken { topic, problem }),
            _ => Trouble::Passing(problem),
        };
    }
    let text = error.to_string();
    // The library has these as texts inside of the errors of its retries only.
    let is_login = [
        "SaslAuthenticationFailed",
        "unsupported sasl mechanism",
        "UnsupportedSaslMechanism",
    ]
    .iter()
    .any(|name| text.contains(name));
    match is_login {
        true => Trouble::Final(Error::Login(text)),
        false => Trouble::Passing(text),
    }
}
