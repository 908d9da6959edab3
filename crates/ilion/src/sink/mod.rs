//! `ilion cdc sink`: sends the changes of tables into topics of Kafka, at least once, each partition in order.
//!
//! Each table has two threads. `reading` requests changes from the node, beginning where the node knows that this consumer stopped, and
//! collects them in a [`round`]. `sending` takes the round as soon as the brokers have acknowledged the previous one, sends it, and
//! commits its position to the node. So two rounds are in memory, and a slow broker slows the reader. All changes before a committed
//! position are in the topic, whichever process is killed.
//!
//! | module | |
//! | --- | --- |
//! | `line` | a line of the node: a change with its key, or a position |
//! | `round` | changes on their way, by partition of the topic |
//! | `handover` | the round between the two threads |
//! | `reading` | from the node; goes on after a broken connection |
//! | `sending` | into the topic; commits positions |
//! | `wire` | what keys and values of records are: JSON, or Avro with the numbers of its schemas |
//! | `source` | the table and the consumer; messages to the operator |

mod handover;
pub mod line;
mod reading;
mod round;
mod sending;
mod source;
mod wire;

use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use ilion_env::{Env, RealEnv};
use ilion_kafka::{Credentials, Mechanism, Missing, Options, Registry, RegistryOptions, Security, Topic};
use ilion_kafka_url::parse_url;

use crate::Failure;
use crate::ask::client;
use crate::cli::{CdcSinkArguments, SaslMechanism};
use handover::Handover;
use reading::Reading;
use sending::Sending;
use source::{Source, tell};
use wire::Wire;

/// Largest file with a password or certificates.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Sends changes until all are sent (`--once`), or until a permanent failure.
pub fn run(arguments: &CdcSinkArguments) -> Result<(), Failure> {
    let url = parse_url(&arguments.url).map_err(|error| Failure::Usage(error.to_string()))?;
    let env: Arc<dyn Env> = RealEnv::new();
    let options = Arc::new(Options {
        brokers: url.brokers,
        security: security(&*env, arguments)?,
        request_timeout: Duration::from_millis(arguments.request_timeout_ms),
    });
    let missing = match arguments.create_topics {
        true => Missing::Create(arguments.partitions),
        false => Missing::Refuse,
    };
    let registry = registry(&*env, arguments)?;
    let client = client(&arguments.admin)?.with_silence_max(reading::SILENCE_MAX);
    // Open all topics before the first change is sent.
    let mut tables = Vec::new();
    for name in &arguments.tables {
        let (keyspace, table) = name
            .split_once('.')
            .ok_or_else(|| Failure::Usage(format!("{name} names no table: expected KEYSPACE.TABLE")))?;
        let source = Source {
            consumer: arguments.consumer.clone().unwrap_or_else(|| url.prefix.clone()),
            keyspace: keyspace.to_owned(),
            table: table.to_owned(),
        };
        let topic = format!("{}.{keyspace}.{table}", url.prefix);
        tables.push((
            source,
            Topic::open(&options, &topic, missing).map_err(Failure::of)?,
        ));
    }
    let (ended, outcomes) = mpsc::channel();
    let count = tables.len();
    for (source, topic) in tables {
        tell(&format!(
            "{}.{} goes to topic {} ({} partitions) as consumer {}",
            source.keyspace,
            source.table,
            topic.name(),
            topic.partitions(),
            source.consumer
        ));
        let handover = Arc::new(Handover::new(topic.partitions()));
        let reading = Reading {
            client: client.clone(),
            source: source.clone(),
            from: arguments.from.clone(),
            is_once: arguments.once,
            wire: Wire::new(registry.clone(), topic.name()),
        };
        let sending = Sending {
            client: client.clone(),
            env: Arc::clone(&env),
            source,
            topic,
            releases: arguments.release,
        };
        let (of_reader, ended) = (Arc::clone(&handover), ended.clone());
        spawn("ilion-sink-read", move || {
            of_reader.close(survive(|| reading.run(&of_reader)));
        })?;
        spawn("ilion-sink-send", move || {
            // The receiver is gone if another table failed.
            let _ = ended.send(survive(|| sending.run(&handover)));
        })?;
    }
    // The first failure ends the process, and with it the other threads.
    outcomes.iter().take(count).collect()
}

/// Turns a panic of a thread into a failure, which ends the sink. Otherwise the other thread would wait for it forever.
fn survive(run: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    let outcome = panic::catch_unwind(AssertUnwindSafe(run));
    outcome.unwrap_or_else(|_| {
        Err(Failure::Failed(
            "the sink met a bug; the lines above have it".to_owned(),
        ))
    })
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(run);
    spawned.map(drop).map_err(Failure::of)
}

/// The registry of schemas; `None` if the arguments name none.
fn registry(env: &dyn Env, arguments: &CdcSinkArguments) -> Result<Option<Registry>, Failure> {
    let Some(url) = &arguments.schema_registry else {
        return Ok(None);
    };
    let user = arguments.schema_registry_user.as_ref();
    let login = user.zip(arguments.schema_registry_password_file.as_deref());
    let login = login.map(|(user, path)| Ok((user.clone(), password(env, path)?)));
    let issuers = arguments.schema_registry_ca.as_deref();
    let registry = Registry::new(RegistryOptions {
        url: url.clone(),
        login: login.transpose()?,
        issuers: issuers.map(|path| read(env, path)).transpose()?,
        request_timeout: Duration::from_millis(arguments.request_timeout_ms),
    });
    registry
        .map(Some)
        .map_err(|error| Failure::Usage(error.to_string()))
}

fn read(env: &dyn Env, path: &Path) -> Result<Vec<u8>, Failure> {
    env.read_all(path, FILE_BYTES_MAX).map_err(Failure::of)
}

/// The password in a file, without the line break at its end.
fn password(env: &dyn Env, path: &Path) -> Result<String, Failure> {
    let bytes = read(env, path)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

fn security(env: &dyn Env, arguments: &CdcSinkArguments) -> Result<Security, Failure> {
    let credentials = match (&arguments.sasl_username, &arguments.sasl_password_file) {
        (Some(username), Some(path)) => Some(Credentials {
            mechanism: match arguments.sasl {
                SaslMechanism::Plain => Mechanism::Plain,
                SaslMechanism::ScramSha256 => Mechanism::ScramSha256,
                SaslMechanism::ScramSha512 => Mechanism::ScramSha512,
            },
            username: username.clone(),
            password: password(env, path)?,
        }),
        _ => None,
    };
    Ok(Security {
        is_encrypted: arguments.tls || arguments.tls_ca.is_some(),
        issuers: arguments
            .tls_ca
            .as_deref()
            .map(|path| read(env, path))
            .transpose()?,
        credentials,
    })
}
