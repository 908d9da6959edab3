//! A topic that takes records: what is retried, and when it is given up.

use std::sync::Arc;
use std::time::Duration;

use ilion_kafka_url::is_topic_name;
use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;

use crate::connection::{Connection, Pending, Trouble};
use crate::{Error, Options, Record, record};

/// Pauses between attempts.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// A topic that is not known this many times in a row was removed.
const GONE_MAX: u32 = 12;
/// Attempts to see a topic that was created just now: the brokers learn of it one after another.
const APPEARING_MAX: u32 = 100;

/// What happens if there is no such topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// It is refused.
    Refuse,
    /// It is created with this many partitions; `None`: the default of the brokers.
    Create(Option<u32>),
}

/// A topic that takes records. Its calls block; between them nothing happens.
pub struct Topic {
    runtime: Runtime,
    options: Arc<Options>,
    name: String,
    partitions: Vec<i32>,
    /// `None` after the last connection broke.
    connection: Option<Connection>,
}

impl Topic {
    /// Connects, and finds the topic.
    ///
    /// # Errors
    /// No broker answers, there is no such topic, or the login is refused.
    pub fn open(options: &Arc<Options>, name: &str, missing: Missing) -> Result<Self, Error> {
        if !is_topic_name(name) {
            return Err(Error::Refused(format!(
                "{name:?} is no name of a topic: letters, digits, '.', '_' and '-' are permitted, and 249 characters"
            )));
        }
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Error::Refused(format!("no runtime of tokio: {error}")))?;
        let (connection, partitions) = runtime
            .block_on(find(options, name, missing))
            .map_err(|trouble| match trouble {
                Trouble::Final(error) => error,
                Trouble::Gone => Error::NoTopic {
                    topic: name.to_owned(),
                },
                Trouble::Passing(problem) => Error::NoBroker {
                    brokers: options.brokers.join(","),
                    problem,
                },
            })?;
        Ok(Self {
            runtime,
            options: Arc::clone(options),
            name: name.to_owned(),
            partitions,
            connection: Some(connection),
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many partitions it had when it was opened.
    pub fn partitions(&self) -> usize {
        self.partitions.len()
    }

    /// Sends records, by the index of their partition, and returns when the brokers have all of them. After an error that may pass, calls
    /// `tell` with it and tries again, without an end.
    ///
    /// # Errors
    /// An error that does not pass. Some records may have been sent.
    ///
    /// # Panics
    /// A partition is none of this topic.
    pub fn send(
        &mut self,
        records: Vec<(usize, Vec<Record>)>,
        tell: &mut dyn FnMut(&str),
    ) -> Result<(), Error> {
        let pending = records.into_iter();
        let mut pending: Pending = pending
            .filter(|(_, records)| !records.is_empty())
            .map(|(index, records)| (self.partitions[index], record::cut(records)))
            .collect();
        let (mut pause, mut times_gone) = (PAUSE_MIN, 0);
        while !pending.is_empty() {
            let left = count(&pending);
            let trouble = match self.runtime.block_on(attempt(
                &mut self.connection,
                &self.options,
                &self.name,
                &mut pending,
            )) {
                Ok(()) => continue,
                Err(Trouble::Final(error)) => return Err(error),
                Err(Trouble::Gone) => {
                    times_gone += 1;
                    if times_gone == GONE_MAX {
                        let topic = self.name.clone();
                        return Err(Error::NoTopic { topic });
                    }
                    "the topic is not known".to_owned()
                }
                Err(Trouble::Passing(problem)) => {
                    times_gone = 0;
                    problem
                }
            };
            tell(&format!("topic {}: {trouble}; trying again", self.name));
            // The old connection may still wait for the answer to a request; a new connection does not wait behind that request.
            self.connection = None;
            if count(&pending) < left {
                pause = PAUSE_MIN;
            }
            // The timer is made inside of the runtime.
            self.runtime.block_on(async { sleep(pause).await });
            pause = (2 * pause).min(PAUSE_MAX);
        }
        Ok(())
    }
}

fn count(pending: &Pending) -> usize {
    pending.values().flatten().map(Vec::len).sum()
}

async fn attempt(
    connection: &mut Option<Connection>,
    options: &Options,
    name: &str,
    pending: &mut Pending,
) -> Result<(), Trouble> {
    let connection = match connection {
        Some(connection) => connection,
        None => connection.insert(Connection::open(options, name).await?),
    };
    connection.send(name, pending).await
}

async fn find(options: &Options, name: &str, missing: Missing) -> Result<(Connection, Vec<i32>), Trouble> {
    let connection = Connection::open(options, name).await?;
    if let Some(partitions) = connection.partitions(name)? {
        return Ok((connection, partitions));
    }
    let Missing::Create(partitions) = missing else {
        return Err(Trouble::Gone);
    };
    let partitions = partitions.map_or(-1, |partitions| i32::try_from(partitions).unwrap_or(i32::MAX));
    connection.create(name, partitions).await?;
    for _ in 0..APPEARING_MAX {
        // A connection knows the topics from when it was opened, so each attempt opens another one.
        let connection = Connection::open(options, name).await?;
        if let Some(partitions) = connection.partitions(name)? {
            return Ok((connection, partitions));
        }
        sleep(PAUSE_MIN).await;
    }
    Err(Trouble::Gone)
}
