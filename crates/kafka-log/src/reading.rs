//! [`Reading`]: fetches what a tail follows, with a task for each broker.
//!
//! A task asks its broker for all partitions that the broker leads in one request, which the broker answers when there are records. An answer
//! that does not come in time ends the connection; meanwhile other brokers are asked for the leaders.
//!
//! After records a task rests before it asks again, so that under load an answer has many records. It does not rest while its broker is
//! known to have more: records that this node has appended, or whose end it has asked for, are never late.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ilion_kafka_client::messages::{
    CONSUMER, EARLIEST, Fetch, FetchPartition, FetchTopic, Fetched, LATEST, ListOffsets,
    ListOffsetsPartition, ListOffsetsTopic,
};
use ilion_kafka_client::{Connection, Error, View, codes};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until};

use crate::arrivals::{Arrivals, State};
use crate::counts::add_one;
use crate::following::{Asked, Failure, Range, judge_range};
use crate::shared::Shared;

/// A broker without new records answers after this time. It is also the longest wait of a partition that is added to the reads.
const POLL: Duration = Duration::from_millis(200);
/// After it has received records, a task waits so long before it asks its broker again. A record that no request of this node waits for may
/// be applied here later by this time.
const REST: Duration = Duration::from_millis(5);
/// Approximate maximum size of an answer in bytes; `PARTITION_BYTES` is the maximum for one partition in it.
const ANSWER_BYTES: i32 = 4 << 20;
const PARTITION_BYTES: i32 = 1 << 20;
/// A partition that failed is asked for again after this time.
const PAUSE: Duration = Duration::from_millis(50);
/// The pause for a partition that this login may not read.
const PAUSE_DENIED: Duration = Duration::from_secs(5);

/// The tasks that fetch what a tail follows.
pub(crate) struct Reading {
    shared: Arc<Shared>,
    arrivals: Arc<Arrivals>,
}

impl Reading {
    pub(crate) fn new(shared: Arc<Shared>, arrivals: Arc<Arrivals>) -> Self {
        Self { shared, arrivals }
    }

    /// Starts a task for each broker, and follows the leaders; never returns.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut tasks = JoinSet::new();
        let mut views = self.shared.cluster.views();
        loop {
            let view = Arc::clone(&views.borrow_and_update());
            for (broker, waker) in self.adopt(&view) {
                tasks.spawn(Arc::clone(&self).read_from(broker, waker));
            }
            if views.changed().await.is_err() {
                return;
            }
        }
    }

    /// Takes the leaders of a view over. Returns the brokers that are new, each with what wakes its task.
    fn adopt(&self, view: &View) -> Vec<(i32, Arc<Notify>)> {
        let mut state = self.arrivals.state.lock();
        state.leaders = self.shared.topics.leaders(view);
        if let Some(trouble) = &view.trouble {
            state.following.note(&trouble.to_string());
        }
        let mut added = Vec::new();
        for broker in view.brokers.keys() {
            state.wakers.entry(*broker).or_insert_with(|| {
                let waker = Arc::new(Notify::new());
                added.push((*broker, Arc::clone(&waker)));
                waker
            });
        }
        state.wake();
        added
    }

    /// Fetches the partitions of a broker; never returns.
    async fn read_from(self: Arc<Self>, broker: i32, waker: Arc<Notify>) {
        let mut connection: Option<Connection> = None;
        let mut is_failing = false;
        loop {
            let (asked, ready_at) = self.ask(broker);
            if asked.is_empty() {
                match ready_at {
                    None => waker.notified().await,
                    Some(ready_at) => tokio::select! {
                        () = waker.notified() => {}
                        () = sleep_until(ready_at.into()) => {}
                    },
                }
                continue;
            }
            let open = match connection.take().filter(Connection::is_usable) {
                Some(open) => Ok(open),
                None => {
                    self.shared
                        .cluster
                        .renewing(self.shared.cluster.connect_to(broker))
                        .await
                }
            };
            let fetched = match open {
                Ok(open) => self.fetch(connection.insert(open), &asked).await,
                Err(trouble) => Err(trouble),
            };
            if fetched == Ok(true) {
                self.arrivals.rest(broker, &waker, REST).await;
            }
            let trouble = fetched.err();
            match trouble {
                None if is_failing => tracing::info!("broker {broker} sends records again"),
                Some(ref trouble) if !is_failing => {
                    tracing::warn!("broker {broker} does not send records: {trouble}; trying again");
                }
                _ => {}
            }
            is_failing = trouble.is_some();
            if let Some(trouble) = trouble {
                add_one(&self.shared.counting.fetch_errors);
                self.arrivals.state.lock().following.note(&trouble.to_string());
                self.shared.cluster.renew();
                sleep(PAUSE).await;
            }
        }
    }

    /// The requests for a broker; without any, the time at which there may be some.
    fn ask(&self, broker: i32) -> (Vec<Asked>, Option<Instant>) {
        let mut state = self.arrivals.state.lock();
        let State {
            following,
            leaders,
            is_full,
            ..
        } = &mut *state;
        let is_led = |partition| leaders.get(&partition) == Some(&broker);
        *is_full = self.arrivals.is_full(following);
        match *is_full {
            true => (Vec::new(), None),
            false => (following.ask(Instant::now(), is_led), following.ready_at(is_led)),
        }
    }

    /// Fetches records. Returns whether some have come.
    async fn fetch(&self, connection: &mut Connection, asked: &[Asked]) -> Result<bool, Error> {
        let request = self.request(asked);
        let at_most = POLL + self.shared.options.client.request_timeout;
        let answer = self
            .shared
            .cluster
            .renewing(connection.ask(&request, at_most))
            .await?;
        add_one(&self.shared.counting.fetch_requests);
        let by_number: HashMap<u32, Asked> = asked.iter().map(|asked| (asked.partition, *asked)).collect();
        let has_records = (answer.topics.iter())
            .flat_map(|topic| &topic.partitions)
            .any(|partition| !partition.records.is_empty());
        for asked in self.receive(answer, &by_number) {
            let range = self.range(connection, asked).await?;
            self.settle_range(asked, range);
        }
        Ok(has_records)
    }

    fn request(&self, asked: &[Asked]) -> Fetch {
        let partitions = asked.iter().map(|asked| {
            let partition = |index| FetchPartition {
                index,
                current_leader_epoch: -1,
                fetch_offset: asked.next,
                log_start_offset: -1,
                max_bytes: PARTITION_BYTES,
            };
            (asked.partition, partition)
        });
        let topic = |name, partitions| FetchTopic { name, partitions };
        let topics = self.shared.topics.group(partitions, topic);
        Fetch {
            replica_id: -1,
            max_wait_millis: i32::try_from(POLL.as_millis()).unwrap_or(i32::MAX),
            min_bytes: 1,
            max_bytes: ANSWER_BYTES,
            isolation_level: 0,
            session_id: 0,
            session_epoch: -1,
            topics,
            forgotten: Vec::new(),
        }
    }

    /// Takes an answer. Returns the partitions that do not have the offset that was asked for.
    fn receive(&self, answer: Fetched, asked: &HashMap<u32, Asked>) -> Vec<Asked> {
        let (mut outside, mut must_renew) = (Vec::new(), false);
        let now = Instant::now();
        let mut state = self.arrivals.state.lock();
        for topic in answer.topics {
            for partition in topic.partitions {
                let number = self.shared.topics.number(&topic.name, partition.index);
                let Some(asked) = number.and_then(|number| asked.get(&number)).copied() else {
                    continue;
                };
                match partition.error {
                    codes::NONE => {
                        let end = partition.high_watermark;
                        self.shared.counting.reach(asked.partition, end);
                        state.following.receive(asked, partition.records, end, now);
                    }
                    codes::OFFSET_OUT_OF_RANGE => outside.push(asked),
                    codes::TOPIC_AUTHORIZATION_FAILED => {
                        add_one(&self.shared.counting.fetch_errors);
                        let problem = format!("the login of Ilion needs Read on topic {}", topic.name);
                        state.following.put_off(asked, &problem, now + PAUSE_DENIED);
                    }
                    error => {
                        add_one(&self.shared.counting.fetch_errors);
                        let problem = format!("topic {}, partition {}", topic.name, partition.index);
                        let problem = format!("{problem}: {}", codes::name(error));
                        state.following.put_off(asked, &problem, now + PAUSE);
                        must_renew = true;
                    }
                }
            }
        }
        let has_come = state.following.has_come();
        drop(state);
        if has_come {
            self.arrivals.come.notify_all();
        }
        if must_renew {
            self.shared.cluster.renew();
        }
        outside
    }

    /// Asks for start and end of a partition; `None`: the broker does not say now.
    async fn range(&self, connection: &mut Connection, asked: Asked) -> Result<Option<Range>, Error> {
        let mut ends = [0; 2];
        for (end, timestamp) in ends.iter_mut().zip([EARLIEST, LATEST]) {
            let Some((name, index)) = self.shared.topics.place(asked.partition) else {
                return Ok(None);
            };
            let request = ListOffsets {
                replica_id: CONSUMER,
                isolation_level: 0,
                topics: vec![ListOffsetsTopic {
                    name: name.to_owned(),
                    partitions: vec![ListOffsetsPartition {
                        index,
                        current_leader_epoch: -1,
                        timestamp,
                    }],
                }],
            };
            let limit = self.shared.options.client.request_timeout;
            let answer = connection.ask(&request, limit).await?;
            let mut partitions = answer.topics.into_iter().flat_map(|topic| topic.partitions);
            match partitions.next() {
                Some(found) if found.error == codes::NONE => *end = found.offset,
                _ => return Ok(None),
            }
        }
        let [start, end] = ends;
        Ok(Some(judge_range(asked.next, start, end)))
    }

    fn settle_range(&self, asked: Asked, range: Option<Range>) {
        let mut state = self.arrivals.state.lock();
        match range {
            Some(Range::Deleted(start)) => state.following.fail(asked, Failure::Deleted { start }),
            Some(Range::Shorter(end)) => {
                let place = self.shared.topics.place(asked.partition);
                let (topic, index) = place.unwrap_or(("", 0));
                let problem = format!(
                    "topic {topic}, partition {index} ends at offset {end}, and this node has read up to {}: the topic was created anew, or \
                     its brokers lost records. Restore the topic, or start a new cluster with another prefix from a backup",
                    asked.next
                );
                state.following.fail(asked, Failure::Refused(problem));
            }
            Some(Range::Within) | None => {
                let until = Instant::now() + PAUSE;
                state
                    .following
                    .put_off(asked, "the broker has not the offset yet", until);
            }
        }
        drop(state);
        self.arrivals.come.notify_all();
    }
}
